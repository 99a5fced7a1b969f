//! Test-then-train: predict each row with what was known before it, then learn it.

use super::Forgetting;
use super::memory::{Arrival, Memory};
use crate::data::{DROPPED, LabelSets, Remap, Rows, Vocabulary};
use crate::error::{Error, Result};
use crate::models::{Follower, LabelLists, Model, Registry, Trainer};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, UInt32Array, new_null_array};
use arrow::compute::{concat, take};
use arrow::datatypes::DataType;
use std::sync::Arc;

/// How often parameters are derived anew when they cannot follow row by row and nothing was said.
const UPDATE_EVERY: u64 = 1000;

/// How an [`OnlineLearner`] learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OnlineOptions {
    /// Derive parameters anew after this many learned rows. `None` is after every row where the
    /// algorithm can follow row by row ([`Learner::follow`](crate::models::Learner::follow)), and
    /// every 1000 rows where it cannot, or with every block of a window of rows that is shorter.
    pub update_every: Option<u64>,
    /// What is kept of the past.
    pub forgetting: Forgetting,
    /// Whether the probability of every label is wanted too. Every row changes every probability,
    /// so parameters are then derived anew every `update_every` rows.
    pub scores: bool,
    /// Forget a label when it has not been seen in this many learned rows.
    pub drop_after: Option<u64>,
}

/// What was known of each row before it was learned.
#[derive(Debug, Clone)]
pub struct Answers {
    /// The predicted label set of each row, in name order; empty before anything is known.
    pub predicted: ListArray,
    /// The probability of every label, best first, if asked for.
    pub scores: Option<ListArray>,
    /// For each row, how many rows had been learned by the parameters that answered.
    pub versions: Vec<u64>,
}

/// A model that learns while it answers.
///
/// Rows whose labels are NULL are answered and not learned. Answers do not depend on how rows are
/// cut into batches.
///
/// # Cost
///
/// Where the algorithm follows row by row, a row costs what it changes. Elsewhere parameters are
/// derived anew every so many rows, which costs as much as a model of that size.
///
/// # Examples
///
/// ```
/// use arrow::array::{Array, ArrayRef, AsArray, Float64Array, ListBuilder, StringBuilder, StructArray};
/// use labelflow::models::Registry;
/// use labelflow::stream::{OnlineLearner, OnlineOptions};
/// use std::sync::Arc;
///
/// let x: ArrayRef = Arc::new(Float64Array::from(vec![0.0, 5.0, 0.1, 5.1, 0.2]));
/// let features: ArrayRef = Arc::new(StructArray::try_from(vec![("x", x)])?);
/// let mut labels = ListBuilder::new(StringBuilder::new());
/// for label in ["low", "high", "low", "high", "low"] {
///     labels.append_value([Some(label)]);
/// }
/// let labels: ArrayRef = Arc::new(labels.finish());
///
/// let mut learner =
///     OnlineLearner::try_new(&Registry::default(), "naibx", OnlineOptions::default())?;
/// let answers = learner.learn_and_predict(&labels, &features, None)?;
/// assert!(answers.predicted.value(0).is_empty());
/// assert_eq!(answers.predicted.value(4).as_string::<i32>().value(0), "low");
/// assert_eq!(answers.versions, [0, 1, 2, 3, 4]);
/// assert_eq!(learner.model()?.rows(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OnlineLearner {
    pub(super) trainer: Trainer,
    pub(super) options: OnlineOptions,
    pub(super) memory: Memory,
    /// Rows learned since the beginning, forgotten ones too.
    pub(super) learned: u64,
    /// By label, the number of the row in which it was last learned, plus one.
    pub(super) last_seen: Vec<u64>,
    pub(super) parameters: Parameters,
    /// The place of each label in name order.
    order: Vec<u32>,
    /// The row at hand, and the rows that are not learned.
    row: Rows,
    unlabelled: Rows,
}

/// What answers.
#[derive(Debug)]
pub(super) enum Parameters {
    /// Not known yet: columns are not known before the first labelled row.
    Unknown,
    /// Parameters that follow every row; `None` when they have to start anew.
    Following(Option<Box<dyn Follower>>),
    /// A model that is replaced every so many rows; `None` before the first.
    Fitted { every: u64, model: Option<Box<Model>>, version: u64 },
}

impl OnlineLearner {
    /// A learner of the algorithm `spec` names that knows nothing.
    ///
    /// # Errors
    ///
    /// Unknown algorithms and parameters; forgetting that the algorithm cannot do.
    pub fn try_new(registry: &Registry, spec: &str, options: OnlineOptions) -> Result<Self> {
        let (algorithm, spec) = registry.resolve(spec)?;
        OnlineLearner::start(Trainer::start_in_order(algorithm, spec)?, options)
    }

    /// A learner that goes on from `model`.
    ///
    /// # Errors
    ///
    /// Forgetting that the algorithm cannot do.
    pub fn from_model(model: &Model, options: OnlineOptions) -> Result<Self> {
        OnlineLearner::start(model.reopen()?, options)
    }

    pub(super) fn start(trainer: Trainer, options: OnlineOptions) -> Result<Self> {
        options.forgetting.check()?;
        let algorithm = trainer.algorithm();
        let decays = (algorithm.capabilities)(trainer.spec()).decays;
        if matches!(options.forgetting, Forgetting::Decay { .. }) && !decays {
            return Err(Error::unsupported(format!(
                "`{}` cannot forget by decay: use a window",
                algorithm.name
            )));
        }
        if options.update_every == Some(0) || options.drop_after == Some(0) {
            return Err(Error::usage("update_every and drop_after are at least 1"));
        }
        Ok(OnlineLearner {
            memory: Memory::new(&options.forgetting),
            learned: trainer.rows(),
            last_seen: Vec::new(),
            parameters: Parameters::Unknown,
            order: Vec::new(),
            row: Rows::default(),
            unlabelled: Rows::default(),
            trainer,
            options,
        })
    }

    /// Predicts each row with what was known before it, then learns it.
    ///
    /// `times` are the event times of the rows, if forgetting goes by event time; a row whose time
    /// is NULL comes now.
    ///
    /// # Errors
    ///
    /// Arrays that break the data contract; then no row is learned.
    pub fn learn_and_predict(
        &mut self,
        labels: &ArrayRef,
        features: &ArrayRef,
        times: Option<&Int64Array>,
    ) -> Result<Answers> {
        self.check_times(features.len(), times)?;
        let labelled = self.read(labels, features)?;
        self.read_unlabelled(labelled.as_deref(), features)?;
        self.prepare()?;
        let rows = Labelled { rows: labelled.as_deref(), len: features.len() };
        match &self.parameters {
            Parameters::Following(_) => self.follow_rows(rows, times),
            _ => self.fitted_rows(rows, features, times),
        }
    }

    /// Answers and learns row by row.
    fn follow_rows(&mut self, rows: Labelled<'_>, times: Option<&Int64Array>) -> Result<Answers> {
        let mut sets = LabelSets::default();
        let mut versions = Vec::with_capacity(rows.len);
        for (row, place) in rows.places().enumerate() {
            versions.push(self.learned);
            match place {
                Place::Labelled(at) => self.trainer.buffer().copy_row(at, &mut self.row),
                Place::Unlabelled(at) => self.unlabelled.copy_row(at, &mut self.row),
            }
            let (learner, space) = (self.trainer.learner(), self.trainer.space());
            if let Parameters::Following(follower) = &mut self.parameters {
                if follower.is_none() {
                    *follower = learner.follow(space);
                }
                match follower {
                    Some(follower) => {
                        follower.predict(&self.row, learner, &self.order, &mut sets)?
                    }
                    None => return Err(Error::internal("a learner no longer follows its rows")),
                }
            }
            if let Place::Labelled(_) = place {
                self.learn_row(time_of(times, row))?;
            }
        }
        let place = |y: &u32| self.order[*y as usize];
        let mut lists = LabelLists::default();
        for set in sets.iter() {
            let mut set = set.to_vec();
            set.sort_unstable_by_key(place);
            lists.push(&self.trainer.space().labels, &set);
        }
        Ok(Answers { predicted: lists.names()?, scores: None, versions })
    }

    /// Answers with the model at hand, learns row by row, and takes a new model when it is time.
    fn fitted_rows(
        &mut self,
        rows: Labelled<'_>,
        features: &ArrayRef,
        times: Option<&Int64Array>,
    ) -> Result<Answers> {
        let mut found = Found::default();
        let mut unanswered = 0;
        for (row, place) in rows.places().enumerate() {
            let Place::Labelled(at) = place else { continue };
            self.trainer.buffer().copy_row(at, &mut self.row);
            self.learn_row(time_of(times, row))?;
            if self.is_time() {
                self.answer(&features.slice(unanswered, row + 1 - unanswered), &mut found)?;
                unanswered = row + 1;
                self.fit()?;
            }
        }
        self.answer(&features.slice(unanswered, rows.len - unanswered), &mut found)?;
        found.finish()
    }

    /// Answers with the model at hand; with empty lists when there is none yet.
    fn answer(&self, features: &ArrayRef, found: &mut Found) -> Result<()> {
        let (model, version) = match &self.parameters {
            Parameters::Fitted { model: Some(model), version, .. } => (Some(model), *version),
            _ => (None, 0),
        };
        found.versions.resize(found.versions.len() + features.len(), version);
        found.lists.push(match model {
            Some(model) => Arc::new(model.predict(features)?),
            None => Arc::new(no_labels(features.len()).names()?),
        });
        if self.options.scores {
            found.scores.push(match model {
                Some(model) => Arc::new(model.score(features)?),
                None => Arc::new(no_labels(features.len()).scored()?),
            });
        }
        Ok(())
    }

    /// Learns the labelled rows without predicting any.
    ///
    /// # Errors
    ///
    /// As [`OnlineLearner::learn_and_predict`].
    pub fn learn(
        &mut self,
        labels: &ArrayRef,
        features: &ArrayRef,
        times: Option<&Int64Array>,
    ) -> Result<()> {
        self.check_times(features.len(), times)?;
        let labelled = self.read(labels, features)?;
        for i in 0..self.trainer.buffer().len {
            let row = labelled.as_ref().map_or(i, |rows| rows[i] as usize);
            self.trainer.buffer().copy_row(i, &mut self.row);
            self.learn_row(time_of(times, row))?;
            if self.is_time() {
                self.fit()?;
            }
        }
        Ok(())
    }

    /// Predicts rows with what is known now.
    ///
    /// # Errors
    ///
    /// Arrays that break the data contract.
    pub fn predict(&mut self, features: &ArrayRef) -> Result<Answers> {
        let none = new_null_array(&DataType::Null, features.len());
        self.learn_and_predict(&none, features, None)
    }

    fn check_times(&self, rows: usize, times: Option<&Int64Array>) -> Result<()> {
        if times.is_none() && self.options.forgetting.needs_time() && rows > 0 {
            return Err(Error::usage(
                "forgetting goes by event time: name the column that holds it",
            ));
        }
        match times {
            Some(times) if times.len() != rows => {
                Err(Error::data(format!("there are {} times and {rows} rows", times.len())))
            }
            _ => Ok(()),
        }
    }

    fn read(&mut self, labels: &ArrayRef, features: &ArrayRef) -> Result<Option<Vec<u32>>> {
        self.compact()?;
        let labelled = self.trainer.read(labels, features, None)?;
        let known = &self.trainer.space().labels;
        if self.order.len() != known.len() {
            self.order = known.sorted().1;
            self.last_seen.resize(known.len(), 0);
        }
        Ok(labelled)
    }

    /// Reads the rows that are not learned: after this, no row can be refused.
    fn read_unlabelled(&mut self, labelled: Option<&[u32]>, features: &ArrayRef) -> Result<()> {
        let Some(labelled) = labelled else { return Ok(()) };
        let mut is_labelled = vec![false; features.len()];
        labelled.iter().for_each(|&row| is_labelled[row as usize] = true);
        let others = (0..features.len() as u32).filter(|&row| !is_labelled[row as usize]);
        let others = take(features, &UInt32Array::from_iter_values(others), None)?;
        self.trainer.read_unlabelled(&others, &mut self.unlabelled)
    }

    /// Learns the row at hand.
    fn learn_row(&mut self, time: Option<i64>) -> Result<()> {
        let position = match (self.options.forgetting.needs_time(), time) {
            (true, time) => time,
            (false, _) => Some(i64::try_from(self.learned).unwrap_or(i64::MAX)),
        };
        let mut arrival = Arrival::InPlace;
        if let Some(position) = position {
            arrival = self.memory.arrive(position, &mut self.trainer)?;
        }
        match arrival {
            Arrival::Late(weight) => self.trainer.learn_weighted(&mut self.row, weight)?,
            _ => self.trainer.learn(&self.row)?,
        }
        self.memory.learned(&self.row, self.trainer.space())?;
        self.learned += 1;
        for &label in self.row.labels.row(0) {
            self.last_seen[label as usize] = self.learned;
        }
        let dropped = self.drop_labels();
        if let Parameters::Following(follower) = &mut self.parameters {
            match follower {
                Some(known) if !dropped && matches!(arrival, Arrival::InPlace) => {
                    known.learned(&self.row, self.trainer.learner(), self.trainer.space())?;
                }
                _ => *follower = None,
            }
        }
        Ok(())
    }

    /// Forgets labels that were not seen for long; looked for at fixed rows.
    fn drop_labels(&mut self) -> bool {
        let Some(after) = self.options.drop_after else { return false };
        if !self.learned.is_multiple_of((after / 8).max(1)) {
            return false;
        }
        let old = |seen: u64| seen > 0 && self.learned - seen >= after;
        if !self.last_seen.iter().any(|&seen| old(seen)) {
            return false;
        }
        let mut ids = Remap::identity(self.trainer.space());
        for (id, seen) in ids.labels.iter_mut().zip(&mut self.last_seen) {
            if old(*seen) {
                (*id, *seen) = (DROPPED, 0);
            }
        }
        let learner = self.trainer.learner().remap(&ids);
        self.trainer.replace(learner, self.trainer.rows());
        self.memory.remap(&ids);
        true
    }

    /// Gives the memory of names that are no longer used back, when they are the larger part.
    fn compact(&mut self) -> Result<()> {
        if self.options.drop_after.is_none() && !matches!(self.memory, Memory::Sliding(_)) {
            return Ok(());
        }
        let Some(ids) = self.trainer.compact() else { return Ok(()) };
        self.memory.remap(&ids);
        let mut last_seen = vec![0; self.trainer.space().labels.len()];
        for (&new, &seen) in ids.labels.iter().zip(&self.last_seen) {
            if new != DROPPED {
                last_seen[new as usize] = seen;
            }
        }
        self.last_seen = last_seen;
        self.order = self.trainer.space().labels.sorted().1;
        if let Parameters::Following(follower) = &mut self.parameters {
            *follower = None;
        }
        Ok(())
    }

    /// Finds out how parameters are kept, once columns are known.
    fn prepare(&mut self) -> Result<()> {
        let declared = self.trainer.space().features.declared;
        if !declared || !matches!(self.parameters, Parameters::Unknown) {
            return Ok(());
        }
        let exact = !self.options.scores && self.options.update_every.unwrap_or(1) == 1;
        let follower = self.trainer.learner().follow(self.trainer.space());
        if let Some(follower) = follower.filter(|_| exact) {
            self.parameters = Parameters::Following(Some(follower));
            return Ok(());
        }
        let every = self.options.update_every.unwrap_or_else(|| match self.block_rows() {
            Some(rows) => rows.min(UPDATE_EVERY),
            None => UPDATE_EVERY,
        });
        self.parameters = Parameters::Fitted { every, model: None, version: 0 };
        self.fit()
    }

    /// Whether a new model is due: every so many rows, and more often at the beginning.
    fn is_time(&self) -> bool {
        match &self.parameters {
            Parameters::Fitted { every, .. } => {
                let due = match self.block_rows() {
                    // When old rows have just left: what is fitted then lies in the window of
                    // every row up to the next time.
                    Some(block) => self.learned % block % every == 1 % every,
                    None => self.learned.is_multiple_of(*every),
                };
                due || (self.learned < *every && self.learned.is_power_of_two())
            }
            _ => false,
        }
    }

    /// The length of a block, where parameters go by the blocks of a window of rows.
    fn block_rows(&self) -> Option<u64> {
        self.options.forgetting.block_rows().filter(|_| self.options.update_every.is_none())
    }

    /// Derives the parameters of a model anew.
    fn fit(&mut self) -> Result<()> {
        if let Parameters::Fitted { model, version, .. } = &mut self.parameters
            && self.trainer.rows() > 0
        {
            *model = Some(Box::new(self.trainer.finish()?));
            *version = self.learned;
        }
        Ok(())
    }

    /// How many rows are learned between new parameters: 1 is after every row.
    pub fn update_every(&self) -> Option<u64> {
        match &self.parameters {
            Parameters::Unknown => self.options.update_every,
            Parameters::Following(_) => Some(1),
            Parameters::Fitted { every, .. } => Some(*every),
        }
    }

    /// Adds what `other` has learned.
    ///
    /// With decay by event time both are brought to the later of their times.
    ///
    /// # Errors
    ///
    /// Learners that count rows of their own streams; other specs and columns.
    pub fn merge(&mut self, other: &OnlineLearner) -> Result<()> {
        let mut model = other.model()?;
        let span = match (self.options.forgetting, other.options.forgetting) {
            (Forgetting::Decay { half_life }, Forgetting::Decay { half_life: others })
                if half_life == others =>
            {
                Some(half_life)
            }
            _ => None,
        };
        let (mine, theirs) = self.memory.align(&other.memory, span)?;
        if theirs < 1.0 {
            let mut trainer = model.reopen()?;
            trainer.decay(theirs)?;
            model = trainer.finish()?;
        }
        if mine < 1.0 {
            self.trainer.decay(mine)?;
        }
        self.trainer.merge(&model)?;
        self.learned += other.learned;
        self.order.clear();
        self.parameters = Parameters::Unknown;
        Ok(())
    }

    /// The model of what is known now.
    ///
    /// # Errors
    ///
    /// Nothing was learned yet.
    pub fn model(&self) -> Result<Model> {
        self.trainer.finish()
    }

    /// How many rows were learned, forgotten ones included.
    pub fn learned(&self) -> u64 {
        self.learned
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        self.trainer.heap_size() + self.memory.heap_size()
    }
}

fn time_of(times: Option<&Int64Array>, row: usize) -> Option<i64> {
    times.filter(|t| t.is_valid(row)).map(|t| t.value(row))
}

/// Which rows of a batch have labels; `None` is all.
#[derive(Clone, Copy)]
struct Labelled<'a> {
    rows: Option<&'a [u32]>,
    len: usize,
}

/// The place of a row among those with labels, or among those without.
#[derive(Clone, Copy)]
enum Place {
    Labelled(usize),
    Unlabelled(usize),
}

impl<'a> Labelled<'a> {
    fn places(self) -> impl Iterator<Item = Place> + use<'a> {
        let mut labelled = 0;
        (0..self.len).map(move |row| match self.rows {
            None => Place::Labelled(row),
            Some(rows) if rows.get(labelled) == Some(&(row as u32)) => {
                labelled += 1;
                Place::Labelled(labelled - 1)
            }
            Some(_) => Place::Unlabelled(row - labelled),
        })
    }
}

/// Answers in the making.
#[derive(Default)]
struct Found {
    lists: Vec<ArrayRef>,
    scores: Vec<ArrayRef>,
    versions: Vec<u64>,
}

impl Found {
    fn finish(self) -> Result<Answers> {
        let joined = |parts: &[ArrayRef]| -> Result<ListArray> {
            let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
            Ok(concat(&parts)?.as_list::<i32>().clone())
        };
        let scores = if self.scores.is_empty() { None } else { Some(joined(&self.scores)?) };
        Ok(Answers { predicted: joined(&self.lists)?, scores, versions: self.versions })
    }
}

/// The answers of a model without labels.
fn no_labels(rows: usize) -> LabelLists {
    let mut lists = LabelLists::default();
    (0..rows).for_each(|_| lists.push(&Vocabulary::default(), &[]));
    lists
}
