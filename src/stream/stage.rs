//! A model around a stream of record batches.

use super::answers::no_labels;
use super::layout::Layout;
use super::pending::{Pending, WhenFull};
use super::{Answers, Forgetting, OnlineLearner, OnlineOptions, RunningReport, Span};
use crate::error::{Error, Result};
use crate::models::{Model, Registry};
use arrow::array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow::compute::concat;
use arrow::datatypes::{Field, Schema, SchemaRef};
use rayon::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// The column of predicted label sets.
pub const PREDICTED: &str = "predicted_labels";
/// The column of label probabilities.
pub const SCORES: &str = "label_scores";
/// The column that says how many rows had been learned by what answered.
pub const VERSION: &str = "model_version";

/// What a stage does with each row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Mode {
    /// Answers with a model that does not change.
    #[default]
    Score,
    /// Learns, and answers nothing.
    Learn,
    /// Answers with what was known before the row, then learns it.
    TestThenTrain,
    /// As test-then-train, but labels come later: a row without labels is answered and waits under
    /// its key; a row with labels is learned with the features and the event time of the row that
    /// waits, and scored against the answer given then, which is also its answer. Labels of rows
    /// that do not wait are passed over.
    Delayed {
        /// The column that joins a row and its labels.
        key: String,
        /// How many rows may wait.
        most: usize,
        /// What happens when more would.
        when_full: WhenFull,
    },
}

/// How a [`Stage`] works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageOptions {
    /// What it does with each row.
    pub mode: Mode,
    /// The column of labels: lists, or texts with a separator. A pattern, or several, choose columns
    /// of 0 and 1, one for each label. In [`Mode::Score`] they may be missing.
    pub labels: Vec<String>,
    /// What stands between the labels of a text.
    pub separator: Option<String>,
    /// Patterns of the columns that are features; all but labels, key, time and `exclude` when
    /// empty.
    pub features: Vec<String>,
    /// Patterns of columns that are no features.
    pub exclude: Vec<String>,
    /// The column of event times, for forgetting by time.
    pub time: Option<String>,
    /// How it learns; `learning.scores` adds the column `label_scores` in every mode.
    pub learning: OnlineOptions,
    /// The rows of the window of the running report.
    pub report_window: u64,
}

impl Default for StageOptions {
    fn default() -> Self {
        StageOptions {
            mode: Mode::default(),
            labels: vec!["labels".to_string()],
            separator: None,
            features: Vec::new(),
            exclude: Vec::new(),
            time: None,
            learning: OnlineOptions::default(),
            report_window: 10_000,
        }
    }
}

impl StageOptions {
    /// A report of nothing. Where the model forgets labels, so does the report.
    pub(super) fn empty_report(&self) -> RunningReport {
        let report = RunningReport::new(self.report_window);
        match (self.learning.drop_after, self.learning.forgetting) {
            (Some(rows), _) => report.keep(rows),
            (None, Forgetting::Window { length: Span::Rows(rows) }) => report.keep(rows),
            // How many rows a window of time has, nobody knows.
            (None, Forgetting::Window { .. }) => report.keep(0),
            (None, _) => report,
        }
    }
}

/// A place to put a new model for a running stage.
#[derive(Debug, Clone, Default)]
pub struct ModelHandle(Arc<Mutex<Option<Arc<Model>>>>);

impl ModelHandle {
    /// Gives the stage a new model, which it takes before its next batch. One that it cannot take,
    /// because it needs other columns or cannot learn, is left; [`Stage::notes`] says so.
    pub fn swap(&self, model: Arc<Model>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(model);
    }

    fn take(&self) -> Option<Arc<Model>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What a stage has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Rows that went through.
    pub rows: u64,
    /// Batches that were refused, and their rows.
    pub refused_batches: u64,
    /// Rows of those batches.
    pub refused_rows: u64,
    /// Labels whose row did not wait.
    pub unmatched: u64,
}

/// A model around a stream of record batches: adds columns, keeps rows and their order.
///
/// The columns of the first batch are those of the whole stream: later batches are matched by name,
/// columns that come later are left out, and a column that is gone or of another type is an error.
/// A batch that is refused leaves the stage as it was.
///
/// # Examples
///
/// ```
/// use labelflow::data::generate::{Generator, GeneratorOptions};
/// use labelflow::models::Registry;
/// use labelflow::stream::{Mode, Stage, StageOptions};
///
/// let rows = Generator::try_new(GeneratorOptions { rows: 2000, ..Default::default() })?;
/// let options = StageOptions {
///     mode: Mode::TestThenTrain,
///     exclude: vec!["id".to_string()],
///     ..StageOptions::default()
/// };
/// let mut stage = Stage::try_new(&Registry::default(), "naibx", options)?;
/// for batch in rows.batches(100) {
///     let answered = stage.process(&batch?)?;
///     assert!(answered.column_by_name("predicted_labels").is_some());
/// }
/// assert_eq!(stage.report().rows(), 2000);
/// # Ok::<(), labelflow::Error>(())
/// ```
#[derive(Debug)]
pub struct Stage {
    pub(super) options: StageOptions,
    pub(super) brain: Brain,
    pub(super) pending: Option<Pending>,
    pub(super) report: RunningReport,
    pub(super) counts: Counts,
    pub(super) layout: Option<Layout>,
    handle: ModelHandle,
    /// The digest of the model it was made with or took last, if that came from bytes.
    pub(super) model_digest: Option<String>,
    notes: Vec<String>,
    /// Whether it was said how exact the answers are.
    said: bool,
}

/// What answers.
#[derive(Debug)]
pub(super) enum Brain {
    Fixed(Arc<Model>),
    Learning(Box<OnlineLearner>),
}

impl Stage {
    /// A stage that learns the algorithm `spec` names from nothing.
    ///
    /// # Errors
    ///
    /// Unknown algorithms; options that do not fit together.
    pub fn try_new(registry: &Registry, spec: &str, options: StageOptions) -> Result<Self> {
        if options.mode == Mode::Score {
            return Err(Error::usage("scoring needs a model: give one, or learn"));
        }
        let learner = OnlineLearner::try_new(registry, spec, options.learning)?;
        Stage::with_brain(Brain::Learning(Box::new(learner)), options)
    }

    /// A stage that answers with `model`, and goes on learning from it if its mode is to learn.
    ///
    /// # Errors
    ///
    /// Options that do not fit together.
    pub fn from_model(model: Arc<Model>, options: StageOptions) -> Result<Self> {
        let brain = brain_of(&model, &options)?;
        let mut stage = Stage::with_brain(brain, options)?;
        stage.model_digest = model.digest().map(str::to_string);
        Ok(stage)
    }

    pub(super) fn with_brain(brain: Brain, options: StageOptions) -> Result<Self> {
        if options.learning.forgetting.needs_time() && options.time.is_none() {
            return Err(Error::usage("forgetting by time needs the column of event times"));
        }
        let pending = match &options.mode {
            Mode::Delayed { most, when_full, .. } => Some(Pending::new(*most, *when_full)),
            _ => None,
        };
        Ok(Stage {
            report: options.empty_report(),
            options,
            brain,
            pending,
            counts: Counts::default(),
            layout: None,
            handle: ModelHandle::default(),
            model_digest: None,
            notes: Vec::new(),
            said: false,
        })
    }

    /// Where to put a new model while the stage runs.
    pub fn handle(&self) -> ModelHandle {
        self.handle.clone()
    }

    /// The digest of the model it was made with or took last, if that was read from bytes; after a
    /// restart, that of the run before if the stage learns.
    pub fn model_digest(&self) -> Option<&str> {
        self.model_digest.as_deref()
    }

    /// What is worth saying of the last batch: a model that was taken or could not be, answers that
    /// are not exact.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The columns of the stream, once they are known.
    pub fn columns(&self) -> Option<&SchemaRef> {
        self.layout.as_ref().map(|layout| &layout.schema)
    }

    /// The columns of the answers to batches of `columns`, known before the first batch.
    ///
    /// # Errors
    ///
    /// Columns that the stage would refuse.
    pub fn schema(&self, columns: &SchemaRef) -> Result<SchemaRef> {
        let columns = self.columns().unwrap_or(columns);
        self.options.layout(columns)?;
        let predicts = self.options.mode != Mode::Learn;
        let scores = predicts && self.options.learning.scores;
        let predicted =
            if predicts { Some(Arc::new(no_labels(0).names()?) as ArrayRef) } else { None };
        let scores = if scores { Some(Arc::new(no_labels(0).scored()?) as ArrayRef) } else { None };
        let nothing = RecordBatch::new_empty(Arc::clone(columns));
        Ok(added(&nothing, predicted, scores, UInt64Array::from(Vec::<u64>::new()))?.schema())
    }

    /// The options it was made with.
    pub fn options(&self) -> &StageOptions {
        &self.options
    }

    /// How good the answers were.
    pub fn report(&self) -> &RunningReport {
        &self.report
    }

    /// What it has done.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How many rows wait for labels, and how many were given up.
    pub fn waiting(&self) -> (usize, u64) {
        self.pending.as_ref().map_or((0, 0), |p| (p.len(), p.given_up))
    }

    /// How many rows were learned.
    pub fn learned(&self) -> u64 {
        match &self.brain {
            Brain::Fixed(model) => model.rows(),
            Brain::Learning(learner) => learner.learned(),
        }
    }

    /// After how many learned rows parameters are derived anew, if it learns.
    pub fn update_every(&self) -> Option<u64> {
        match &self.brain {
            Brain::Fixed(_) => None,
            Brain::Learning(learner) => learner.update_every(),
        }
    }

    /// What a user should know about the model, one sentence each.
    pub fn model_notes(&self) -> Vec<String> {
        match &self.brain {
            Brain::Fixed(model) => model.notes(),
            Brain::Learning(learner) => learner.notes(),
        }
    }

    /// After how many learned rows scores are derived anew, if it learns and gives scores.
    pub fn scores_every(&self) -> Option<u64> {
        match &self.brain {
            Brain::Fixed(_) => None,
            Brain::Learning(learner) => learner.scores_every(),
        }
    }

    /// The model as it is now.
    ///
    /// # Errors
    ///
    /// Nothing was learned yet.
    pub fn model(&self) -> Result<Arc<Model>> {
        match &self.brain {
            Brain::Fixed(model) => Ok(Arc::clone(model)),
            Brain::Learning(learner) => Ok(Arc::new(learner.model()?)),
        }
    }

    /// The rows of `batch` with the answers added.
    ///
    /// # Errors
    ///
    /// A batch that breaks the data contract or has other columns than those before; the stage is
    /// then as it was. `Internal` when something fails after the first row of the batch was learned.
    pub fn process(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        self.notes.clear();
        let first = self.counts.rows;
        let done = self.process_rows(batch).map_err(|e| {
            let last = first + batch.num_rows() as u64;
            e.context(format!("rows {first} to {last} of the stream"))
        });
        match &done {
            Ok(out) => self.counts.rows += out.num_rows() as u64,
            Err(_) => {
                self.counts.refused_batches += 1;
                self.counts.refused_rows += batch.num_rows() as u64;
            }
        }
        done
    }

    fn process_rows(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let layout = match self.layout.take() {
            Some(layout) => layout,
            None => self.options.layout(&batch.schema())?,
        };
        self.take_model(&layout);
        let fitted = layout.fit(batch);
        let out = fitted.and_then(|batch| match self.options.mode {
            Mode::Score => self.score(&batch, &layout),
            Mode::Learn => self.learn(&batch, &layout),
            Mode::TestThenTrain => self.test_then_train(&batch, &layout),
            Mode::Delayed { .. } => self.delayed(&batch, &layout),
        });
        if out.is_ok() || self.counts.rows > 0 {
            self.layout = Some(layout);
        }
        if let Brain::Learning(learner) = &mut self.brain {
            if let Some(error) = learner.take_unfitted() {
                self.notes
                    .push(format!("new parameters cannot be derived, the old ones stay: {error}"));
            }
            if !self.said && learner.is_prepared() {
                self.said = true;
                self.notes.extend(learner.exactness());
            }
        }
        out
    }

    /// Takes the model that was put for it, or says why not.
    fn take_model(&mut self, layout: &Layout) {
        let Some(model) = self.handle.take() else { return };
        let fits = layout.feature_type().and_then(|features| model.check_features(&features));
        match fits.and_then(|()| brain_of(&model, &self.options)) {
            Ok(brain) => {
                self.brain = brain;
                self.model_digest = model.digest().map(str::to_string);
                self.notes.push(format!("took the new model of {} rows", model.rows()));
            }
            Err(error) => self.notes.push(format!("the model stays as it is: {error}")),
        }
    }

    fn score(&mut self, batch: &RecordBatch, layout: &Layout) -> Result<RecordBatch> {
        let Brain::Fixed(model) = &self.brain else {
            return Err(Error::internal("a stage that scores has a model"));
        };
        let features = layout.features(batch)?;
        let predicted = in_pieces(&features, |piece| Ok(Arc::new(model.predict(piece)?)))?;
        let scores = match self.options.learning.scores {
            true => Some(in_pieces(&features, |piece| Ok(Arc::new(model.score(piece)?)))?),
            false => None,
        };
        let versions = UInt64Array::from(vec![model.rows(); batch.num_rows()]);
        if layout.has_labels() {
            self.report.observe(&layout.labels(batch)?, &predicted)?;
        }
        added(batch, Some(predicted), scores, versions)
    }

    fn learn(&mut self, batch: &RecordBatch, layout: &Layout) -> Result<RecordBatch> {
        let features = layout.features(batch)?;
        let (labels, times) = (layout.labels(batch)?, layout.times(batch)?);
        let learner = learner(&mut self.brain)?;
        learner.learn(&labels, &features, times.as_ref())?;
        let versions = UInt64Array::from(vec![learner.learned(); batch.num_rows()]);
        added(batch, None, None, versions)
    }

    fn test_then_train(&mut self, batch: &RecordBatch, layout: &Layout) -> Result<RecordBatch> {
        let features = layout.features(batch)?;
        let (labels, times) = (layout.labels(batch)?, layout.times(batch)?);
        let answers =
            learner(&mut self.brain)?.learn_and_predict(&labels, &features, times.as_ref())?;
        let Answers { predicted, scores, versions } = answers;
        let predicted: ArrayRef = Arc::new(predicted);
        let scores = scores.map(|s| Arc::new(s) as ArrayRef);
        let observed = self.report.observe(&labels, &predicted);
        let out = observed.and_then(|()| added(batch, Some(predicted), scores, versions.into()));
        out.map_err(half_learned)
    }
}

/// Rows that one thread scores at a time.
const PIECE: usize = 2048;

/// The answers to all rows, piece by piece on all threads; a model does not change, so pieces do not
/// depend on each other.
fn in_pieces(
    features: &ArrayRef,
    answer: impl Fn(&ArrayRef) -> Result<ArrayRef> + Sync,
) -> Result<ArrayRef> {
    if features.len() <= PIECE {
        return answer(features);
    }
    let starts: Vec<usize> = (0..features.len()).step_by(PIECE).collect();
    let pieces: Result<Vec<ArrayRef>> = starts
        .into_par_iter()
        .map(|start| answer(&features.slice(start, PIECE.min(features.len() - start))))
        .collect();
    let pieces = pieces?;
    let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
    Ok(concat(&pieces)?)
}

fn brain_of(model: &Arc<Model>, options: &StageOptions) -> Result<Brain> {
    Ok(match options.mode {
        Mode::Score => Brain::Fixed(Arc::clone(model)),
        _ => Brain::Learning(Box::new(OnlineLearner::from_model(model, options.learning)?)),
    })
}

/// What fails after rows were learned is no fault of the batch, which must not come again.
pub(super) fn half_learned(error: Error) -> Error {
    Error::internal(format!("after the batch was learned: {error}"))
}

pub(super) fn learner(brain: &mut Brain) -> Result<&mut OnlineLearner> {
    match brain {
        Brain::Learning(learner) => Ok(learner),
        Brain::Fixed(_) => Err(Error::internal("a stage that learns has a learner")),
    }
}

/// The batch with columns added.
pub(super) fn added(
    batch: &RecordBatch,
    predicted: Option<ArrayRef>,
    scores: Option<ArrayRef>,
    versions: UInt64Array,
) -> Result<RecordBatch> {
    let schema = batch.schema();
    let mut fields: Vec<Arc<Field>> = schema.fields().iter().cloned().collect();
    let mut columns = batch.columns().to_vec();
    let versions: ArrayRef = Arc::new(versions);
    let new = [(PREDICTED, predicted), (SCORES, scores), (VERSION, Some(versions))];
    for (name, column) in new.into_iter().filter_map(|(n, c)| Some((n, c?))) {
        fields.push(Arc::new(Field::new(name, column.data_type().clone(), true)));
        columns.push(column);
    }
    let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}
