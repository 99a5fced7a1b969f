//! Test-then-train: predict each row with what was known before it, then learn it.

use super::Forgetting;
use super::answers::{Answers, Fitted, Found, Labelled, Place};
use super::memory::{Arrival, Memory};
use crate::data::{Id, LabelId, LabelSets, Remap, Rows};
use crate::error::{Error, Result};
use crate::models::{Follower, LabelLists, Model, Registry, Trainer};
use arrow::array::{Array, ArrayRef, Int64Array, UInt32Array, new_null_array};
use arrow::compute::take;
use arrow::datatypes::DataType;

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
    /// so they are those of a model derived anew every `update_every` rows, every 1000 when nothing
    /// is said; predicted sets do not depend on it.
    pub scores: bool,
    /// Forget a label when it has not been seen in this many learned rows.
    pub drop_after: Option<u64>,
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
    /// The model that answers, or whose scores are given.
    pub(super) fitted: Option<Fitted>,
    /// Why the last model could not be derived.
    unfitted: Option<Error>,
    /// The place of each label in name order.
    order: Vec<LabelId>,
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
    /// A model that is replaced every so many rows.
    Fitted,
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

    pub(super) fn start(mut trainer: Trainer, options: OnlineOptions) -> Result<Self> {
        options.forgetting.check()?;
        let algorithm = trainer.algorithm();
        let decays = (algorithm.capabilities)(trainer.spec()).decays;
        if matches!(options.forgetting, Forgetting::Decay { .. }) && !decays {
            return Err(Error::unsupported(format!(
                "`{}` cannot forget by decay: use a window",
                algorithm.name
            )));
        }
        let window = matches!(options.forgetting, Forgetting::Window { .. });
        if window && trainer.learner().needs_order() {
            return Err(Error::usage(format!(
                "`{}` forgets by itself, and a window would do so too: use one of them",
                trainer.spec()
            )));
        }
        if options.update_every == Some(0) || options.drop_after == Some(0) {
            return Err(Error::usage("update_every and drop_after are at least 1"));
        }
        Ok(OnlineLearner {
            memory: Memory::new(&options.forgetting, &mut trainer),
            learned: trainer.rows(),
            // What a model knows at the start counts as seen in its last row.
            last_seen: vec![trainer.rows(); trainer.space().labels.len()],
            parameters: Parameters::Unknown,
            fitted: None,
            unfitted: None,
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
    /// Arrays that break the data contract; then no row is learned. `Internal` when something else
    /// fails in the middle of a batch: what was learned then cannot be said.
    pub fn learn_and_predict(
        &mut self,
        labels: &ArrayRef,
        features: &ArrayRef,
        times: Option<&Int64Array>,
    ) -> Result<Answers> {
        self.check_times(features.len(), times)?;
        let labelled = self.read(labels, features, times)?;
        self.read_unlabelled(labelled.as_deref(), features)?;
        self.prepare()?;
        if let Some(Fitted { model: Some(model), .. }) = &self.fitted {
            model.check_features(features.data_type())?;
        }
        let rows = Labelled { rows: labelled.as_deref(), len: features.len() };
        let before = self.learned;
        let answered = match &self.parameters {
            Parameters::Following(_) => self.follow_rows(rows, features, times),
            _ => self.fitted_rows(rows, features, times),
        };
        answered.map_err(|error| self.midway(before, error))
    }

    /// An error after rows were learned is no fault of the batch, which is half learned.
    fn midway(&self, before: u64, error: Error) -> Error {
        if self.learned == before {
            return error;
        }
        Error::internal(format!("after {} rows of the batch: {error}", self.learned - before))
    }

    /// Answers and learns row by row.
    fn follow_rows(
        &mut self,
        rows: Labelled<'_>,
        features: &ArrayRef,
        times: Option<&Int64Array>,
    ) -> Result<Answers> {
        let mut sets = LabelSets::default();
        let mut versions = Vec::with_capacity(rows.len);
        let mut scored = Found::default();
        let mut unscored = 0;
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
                if self.is_time(self.learned) {
                    scored.score(&self.fitted, &features.slice(unscored, row + 1 - unscored))?;
                    unscored = row + 1;
                    self.fit();
                }
            }
        }
        if self.options.scores {
            scored.score(&self.fitted, &features.slice(unscored, rows.len - unscored))?;
        }
        let place = |y: &LabelId| self.order[y.index()];
        let mut lists = LabelLists::default();
        for set in sets.iter() {
            let mut set = set.to_vec();
            set.sort_unstable_by_key(place);
            lists.push(&self.trainer.space().labels, set.into_iter());
        }
        let scores = scored.scores()?;
        Ok(Answers { predicted: lists.names()?, scores, versions })
    }

    /// Answers with the model at hand, learns row by row, and takes a new model when it is time.
    fn fitted_rows(
        &mut self,
        rows: Labelled<'_>,
        features: &ArrayRef,
        times: Option<&Int64Array>,
    ) -> Result<Answers> {
        let places: Vec<Place> = rows.places().collect();
        let mut found = Found::default();
        let mut start = 0;
        loop {
            // What is answered before anything is learned cannot fail half-way.
            let end = self.next_fit(&places, start);
            found.answer(&self.fitted, self.options.scores, &features.slice(start, end - start))?;
            for (row, place) in places.iter().enumerate().take(end).skip(start) {
                let Place::Labelled(at) = *place else { continue };
                self.trainer.buffer().copy_row(at, &mut self.row);
                self.learn_row(time_of(times, row))?;
                if self.is_time(self.learned) {
                    self.fit();
                }
            }
            start = end;
            if start == places.len() {
                return found.finish();
            }
        }
    }

    /// The row after the one with which a new model is due, from `start`; or the end.
    fn next_fit(&self, places: &[Place], start: usize) -> usize {
        let mut learned = self.learned;
        for (row, place) in places.iter().enumerate().skip(start) {
            if let Place::Labelled(_) = place {
                learned += 1;
                if self.is_time(learned) {
                    return row + 1;
                }
            }
        }
        places.len()
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
        let labelled = self.read(labels, features, times)?;
        let before = self.learned;
        for i in 0..self.trainer.buffer().len {
            let row = labelled.as_ref().map_or(i, |rows| rows[i] as usize);
            self.trainer.buffer().copy_row(i, &mut self.row);
            self.learn_row(time_of(times, row)).map_err(|error| self.midway(before, error))?;
            if self.is_time(self.learned) {
                self.fit();
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
        match times {
            Some(times) if times.len() != rows => {
                Err(Error::data(format!("there are {} times and {rows} rows", times.len())))
            }
            _ => Ok(()),
        }
    }

    fn read(
        &mut self,
        labels: &ArrayRef,
        features: &ArrayRef,
        times: Option<&Int64Array>,
    ) -> Result<Option<Vec<u32>>> {
        self.compact()?;
        let labelled = self.trainer.read(labels, features, None)?;
        let known = &self.trainer.space().labels;
        if self.order.len() != known.len() {
            self.order = known.sorted().1;
            self.last_seen.resize(known.len(), 0);
        }
        let learns = self.trainer.buffer().len > 0;
        if learns && times.is_none() && self.options.forgetting.needs_time() {
            return Err(Error::usage(
                "forgetting goes by event time: name the column that holds it",
            ));
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
        for label in self.row.labels.row(0) {
            self.last_seen[label.index()] = self.learned;
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
                (*id, *seen) = (LabelId::NONE, 0);
            }
        }
        let learner = self.trainer.learner().remap(&ids);
        self.trainer.replace(learner, self.trainer.rows());
        self.memory.remap(&ids);
        true
    }

    /// Gives the memory of names that are no longer used back, when they are the larger part.
    fn compact(&mut self) -> Result<()> {
        let Some(ids) = self.trainer.compact() else { return Ok(()) };
        self.memory.remap(&ids);
        let mut last_seen = vec![0; self.trainer.space().labels.len()];
        for (new, &seen) in ids.labels.iter().zip(&self.last_seen) {
            if *new != LabelId::NONE {
                last_seen[new.index()] = seen;
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
        let exact = self.options.update_every.unwrap_or(1) == 1;
        let follower = self.trainer.learner().follow(self.trainer.space());
        self.parameters = match follower.filter(|_| exact) {
            Some(follower) => Parameters::Following(Some(follower)),
            None => Parameters::Fitted,
        };
        let follows = matches!(self.parameters, Parameters::Following(_));
        if (!follows || self.options.scores) && self.fitted.is_none() {
            let every = self.options.update_every.unwrap_or_else(|| match self.block_rows() {
                Some(rows) => rows.min(UPDATE_EVERY),
                None => UPDATE_EVERY,
            });
            self.fitted = Some(Fitted { every, model: None, version: 0 });
            self.fit();
        }
        Ok(())
    }

    /// Whether a new model is due after so many rows: every so many, and more often at the beginning.
    fn is_time(&self, learned: u64) -> bool {
        self.fitted.as_ref().is_some_and(|Fitted { every, .. }| {
            let due = match self.block_rows() {
                // When old rows have just left: what is fitted then lies in the window of every row
                // up to the next time.
                Some(block) => learned % block % every == 1 % every,
                None => learned.is_multiple_of(*every),
            };
            due || (learned < *every && learned.is_power_of_two())
        })
    }

    /// The length of a block, where parameters go by the blocks of a window of rows.
    fn block_rows(&self) -> Option<u64> {
        self.options.forgetting.block_rows().filter(|_| self.options.update_every.is_none())
    }

    /// Derives the parameters of a model anew; where that fails, the old ones stay.
    fn fit(&mut self) {
        let Some(fitted) = self.fitted.as_mut().filter(|_| self.trainer.rows() > 0) else { return };
        match self.trainer.finish() {
            Ok(model) => {
                (fitted.model, fitted.version) = (Some(Box::new(model)), self.learned);
            }
            Err(error) => self.unfitted = Some(error),
        }
    }

    /// Why new parameters could not be derived, if that happened since it was last asked: the old
    /// ones answer then.
    pub fn take_unfitted(&mut self) -> Option<Error> {
        self.unfitted.take()
    }

    /// Whether it is known how parameters are kept.
    pub(super) fn is_prepared(&self) -> bool {
        !matches!(self.parameters, Parameters::Unknown)
    }

    /// How far answers and scores are behind, if they are.
    pub(super) fn exactness(&self) -> Option<String> {
        let behind = |every: Option<u64>| every.filter(|every| *every > 1);
        if let Some(every) = behind(self.update_every()) {
            return Some(format!(
                "answers are not row-exact: parameters are derived anew every {every} rows"
            ));
        }
        behind(self.scores_every()).map(|every| {
            format!("label_scores are those of a model derived anew every {every} rows")
        })
    }

    /// How many rows are learned between new parameters: 1 is after every row.
    pub fn update_every(&self) -> Option<u64> {
        match &self.parameters {
            Parameters::Unknown => self.options.update_every,
            Parameters::Following(_) => Some(1),
            Parameters::Fitted => self.fitted.as_ref().map(|fitted| fitted.every),
        }
    }

    /// How many rows are learned between new scores, if scores are wanted.
    pub fn scores_every(&self) -> Option<u64> {
        self.fitted.as_ref().filter(|_| self.options.scores).map(|fitted| fitted.every)
    }

    /// Adds what `other` has learned.
    ///
    /// With decay by event time both are brought to the later of their times.
    ///
    /// # Errors
    ///
    /// Learners that count rows of their own streams; other specs and columns. This learner then
    /// stays as it was.
    pub fn merge(&mut self, other: &OnlineLearner) -> Result<()> {
        let windows = [&self.memory, &other.memory].map(|m| matches!(m, Memory::Sliding(_)));
        if windows.contains(&true) || self.options.forgetting != other.options.forgetting {
            return Err(Error::incompatible(
                "these learners forget differently, or keep windows of their own streams, and \
                 cannot be merged: use decay by event time, of one half-life, or none",
            ));
        }
        self.trainer.merge(&other.model()?)?;
        self.memory.adopt(&mut self.trainer);
        self.learned += other.learned;
        self.last_seen.resize(self.trainer.space().labels.len(), self.learned);
        self.order.clear();
        self.parameters = Parameters::Unknown;
        self.fitted = None;
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

    /// What a user should know about what was learned, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        if self.trainer.rows() == 0 {
            return Vec::new();
        }
        self.trainer.learner().notes(self.trainer.space())
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
