//! Training: from Arrow arrays to a model.

mod combine;

use super::bounds::check_bounds;
use super::columns::split_columns;
use super::grouped::CopyBuffer;
use super::reader::RowReader;
use super::{Algorithm, CheckedSpec, Decay, Learner, Model, Registry};
use crate::data::{FeatureSpace, Remap, Rows, Space, Used};
use crate::error::{Error, Result};
use arrow::array::{Array, ArrayRef};
use arrow::record_batch::RecordBatch;
use std::ops::Range;
use std::sync::Arc;

/// A model in the making: observes rows, merges with others, and is finished into a [`Model`].
///
/// # Cost
///
/// Memory is that of what the algorithm keeps and of one batch of rows. Where it keeps counts, that
/// does not follow the rows; lazy learners, and chains whose base is fitted from rows, keep them.
///
/// # Examples
///
/// ```
/// use arrow::array::{ArrayRef, Float64Array, ListBuilder, StringBuilder, StructArray};
/// use labelflow::models::{Registry, Trainer};
/// use std::sync::Arc;
///
/// let x: ArrayRef = Arc::new(Float64Array::from(vec![0.0, 0.1, 5.0, 5.1]));
/// let features: ArrayRef = Arc::new(StructArray::try_from(vec![("x", x)])?);
/// let mut labels = ListBuilder::new(StringBuilder::new());
/// for label in ["low", "low", "high", "high"] {
///     labels.append_value([Some(label)]);
/// }
/// let labels: ArrayRef = Arc::new(labels.finish());
///
/// let mut trainer = Trainer::try_new(&Registry::default(), "naibx")?;
/// trainer.observe(&labels, &features)?;
/// let model = trainer.finish()?;
/// assert_eq!(model.rows(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Trainer {
    algorithm: Algorithm,
    spec: CheckedSpec,
    space: Space,
    rows_seen: u64,
    learner: Box<dyn Learner>,
    reader: RowReader,
    buffer: Rows,
    /// How many names there must be before unused ones are looked for.
    compact_at: usize,
    /// Rows that came before the first vector of a column of vectors, whose length is not known
    /// yet.
    waiting: Vec<Batch>,
    /// How weights have faded.
    decay: Option<Decay>,
}

/// Labels, features and weights of some rows.
type Batch = (ArrayRef, ArrayRef, Option<ArrayRef>);

/// How many names there were.
#[derive(Debug, Clone, Copy)]
struct Known {
    labels: usize,
    declared: bool,
    sparse: usize,
    values: usize,
}

/// The least number of names for which it is worth looking for unused ones.
const COMPACT_FROM: usize = 4096;

impl Trainer {
    /// A trainer of the algorithm `spec` names.
    ///
    /// # Errors
    ///
    /// Unknown algorithms and parameters.
    pub fn try_new(registry: &Registry, spec: &str) -> Result<Self> {
        let (algorithm, spec) = registry.resolve(spec)?;
        Trainer::start(algorithm, spec)
    }

    /// A trainer of a checked spec, for rows in any order.
    ///
    /// # Errors
    ///
    /// A spec to which the order of rows matters: see [`Trainer::start_in_order`]. A spec that asks
    /// for the true size of each set.
    pub fn start(algorithm: Algorithm, spec: CheckedSpec) -> Result<Self> {
        Trainer::start_in_order(algorithm, spec)?.in_any_order()
    }

    /// As [`Trainer::start`], for a model that is evaluated and never used: a spec may ask for the
    /// true size of each set.
    pub(crate) fn start_evaluated(algorithm: Algorithm, spec: CheckedSpec) -> Result<Self> {
        Trainer::begin(algorithm, spec)?.in_any_order()
    }

    fn in_any_order(self) -> Result<Self> {
        if self.learner.needs_order() {
            return Err(Error::usage(format!(
                "`{}` depends on the order of rows, which only a stream has: learn from a stream, \
                 or keep rows without regard to their order, such as keep=sample(n)",
                self.spec
            )));
        }
        Ok(self)
    }

    /// A trainer of a checked spec, for a stream: rows are observed in their order, by this trainer
    /// alone.
    ///
    /// # Errors
    ///
    /// A spec that asks for the true size of each set, which only an evaluation knows.
    pub fn start_in_order(algorithm: Algorithm, spec: CheckedSpec) -> Result<Self> {
        let trainer = Trainer::begin(algorithm, spec)?;
        if trainer.reader.options.true_size {
            return Err(Error::usage(format!(
                "`{}` asks for the true size of each set, which only `evaluate` knows: name a column \
                 that holds it, as in size=given(n)",
                trainer.spec
            )));
        }
        Ok(trainer)
    }

    fn begin(algorithm: Algorithm, spec: CheckedSpec) -> Result<Self> {
        let learner = (algorithm.start)(&spec)?;
        Trainer::with_learner(algorithm, spec, Space::default(), 0, learner)
    }

    pub(super) fn with_learner(
        algorithm: Algorithm,
        spec: CheckedSpec,
        space: Space,
        rows_seen: u64,
        learner: Box<dyn Learner>,
    ) -> Result<Self> {
        let reader = RowReader::new((algorithm.features)(&spec)?);
        Ok(Trainer {
            algorithm,
            spec,
            space,
            rows_seen,
            learner,
            reader,
            buffer: Rows::default(),
            compact_at: COMPACT_FROM,
            waiting: Vec::new(),
            decay: None,
        })
    }

    /// Learns from the labelled rows of a batch; rows whose labels are NULL are passed over.
    ///
    /// # Errors
    ///
    /// Arrays that break the data contract; what was learned before stays.
    pub fn observe(&mut self, labels: &ArrayRef, features: &ArrayRef) -> Result<()> {
        self.observe_weighted(labels, features, None)
    }

    /// As [`Trainer::observe`], with rows that count more or less than others: a row of weight 3 is
    /// the same row three times. Rows whose weight is NULL or 0 are passed over.
    ///
    /// # Errors
    ///
    /// As [`Trainer::observe`]; a weight that is negative or infinite, an algorithm that takes none.
    pub fn observe_weighted(
        &mut self,
        labels: &ArrayRef,
        features: &ArrayRef,
        weights: Option<&ArrayRef>,
    ) -> Result<()> {
        if self.without_length(labels, features)?.is_some() {
            let batch = (Arc::clone(labels), Arc::clone(features), weights.map(Arc::clone));
            self.waiting.push(batch);
            return Ok(());
        }
        if !self.waiting.is_empty() && !self.space.features.declared {
            self.reader.declare(features, &mut self.space)?;
            self.observe_waiting()?;
        }
        self.observe_now(labels, features, weights)
    }

    fn observe_now(
        &mut self,
        labels: &ArrayRef,
        features: &ArrayRef,
        weights: Option<&ArrayRef>,
    ) -> Result<()> {
        let before = self.known();
        let observed = self.read_now(labels, features, weights).and_then(|_| {
            let rows = std::mem::take(&mut self.buffer);
            let learned = self.learn(&rows);
            self.buffer = rows;
            learned
        });
        if observed.is_err() {
            self.go_back(before);
        }
        observed
    }

    /// The column of vectors whose length labelled rows need and nothing tells yet.
    fn without_length(&self, labels: &ArrayRef, features: &ArrayRef) -> Result<Option<String>> {
        match labels.len() - labels.logical_null_count() {
            0 => Ok(None),
            _ => self.reader.without_length(features, &self.space),
        }
    }

    /// Learns the rows that wait, once the columns are known.
    fn observe_waiting(&mut self) -> Result<()> {
        if !self.space.features.declared {
            return Ok(());
        }
        let mut all = Ok(());
        for (labels, features, weights) in std::mem::take(&mut self.waiting) {
            all = all.and(self.observe_now(&labels, &features, weights.as_ref()));
        }
        all
    }

    /// Takes out the rows that wait for the length of a vector: labels, features and weights.
    #[cfg(feature = "sql")]
    pub(crate) fn take_waiting(&mut self) -> Vec<Batch> {
        std::mem::take(&mut self.waiting)
    }

    /// Where rows wait: a trainer that has learned them as rows of a table without a single vector,
    /// in which such a column has no features.
    pub(crate) fn settled(&self) -> Result<Option<Trainer>> {
        if self.waiting.is_empty() {
            return Ok(None);
        }
        let mut trainer = Trainer::begin(self.algorithm, self.spec.clone())?;
        for (labels, features, weights) in &self.waiting {
            trainer.observe_now(labels, features, weights.as_ref())?;
        }
        Ok(Some(trainer))
    }

    fn known(&self) -> Known {
        let features = &self.space.features;
        Known {
            labels: self.space.labels.len(),
            declared: features.declared,
            sparse: features.sparse_len(),
            values: features.value_len(),
        }
    }

    /// Goes back to the names there were, and to no columns if there were none.
    fn go_back(&mut self, to: Known) {
        self.space.labels.truncate(to.labels);
        if to.declared {
            self.space.features.truncate(to.sparse, to.values);
        } else {
            self.space.features = FeatureSpace::default();
            self.reader.unbind();
        }
    }

    /// Reads the rows of a batch that can be learned without learning them: [`Trainer::buffer`].
    /// Returns their row numbers, or `None` when all can.
    ///
    /// # Errors
    ///
    /// As [`Trainer::observe_weighted`]; a column of vectors of which none was there yet. What is
    /// known stays as it was.
    pub(crate) fn read(
        &mut self,
        labels: &ArrayRef,
        features: &ArrayRef,
        weights: Option<&ArrayRef>,
    ) -> Result<Option<Vec<u32>>> {
        if let Some(column) = self.without_length(labels, features)? {
            return Err(Error::data(format!(
                "{column} is NULL in every row so far, so that the length of its vectors is not \
                 known: give it a list type of fixed length, or begin with a row that has a vector"
            )));
        }
        self.read_now(labels, features, weights)
    }

    fn read_now(
        &mut self,
        labels: &ArrayRef,
        features: &ArrayRef,
        weights: Option<&ArrayRef>,
    ) -> Result<Option<Vec<u32>>> {
        let before = self.known();
        let read = self.reader.read(labels, features, weights, &mut self.space, &mut self.buffer);
        if read.is_err() {
            self.go_back(before);
        }
        read
    }

    /// The rows read last.
    pub(crate) fn buffer(&self) -> &Rows {
        &self.buffer
    }

    /// Reads rows that are not learned into `rows`; names that are not known are left out. Before
    /// the first labelled row no feature is known, and rows are empty.
    pub(crate) fn read_unlabelled(&mut self, features: &ArrayRef, rows: &mut Rows) -> Result<()> {
        rows.clear();
        rows.len = features.len();
        if self.space.features.declared && !features.is_empty() {
            self.reader.read_known(features, &self.space, rows)?;
        }
        Ok(())
    }

    /// Learns from rows in the numbering of this trainer.
    pub(crate) fn learn(&mut self, rows: &Rows) -> Result<()> {
        learn(&self.algorithm, &mut *self.learner, rows, &self.space)?;
        self.rows_seen += rows.len as u64;
        Ok(())
    }

    /// Learns from one row that counts `weight`, for algorithms that decay.
    pub(crate) fn learn_weighted(&mut self, row: &mut Rows, weight: f64) -> Result<()> {
        if self.learner.takes_weights() {
            row.weights = vec![weight];
            return self.learn(row);
        }
        let mut part = self.fresh()?;
        part.observe(row, &self.space)?;
        part.decay(weight)?;
        self.learner.merge(&*part)?;
        self.rows_seen += 1;
        Ok(())
    }

    /// Whether rows may have weights.
    #[cfg(feature = "sql")]
    pub(crate) fn takes_weights(&self) -> bool {
        self.learner.takes_weights()
    }

    /// The algorithm that learns.
    pub(crate) fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// Its spec.
    pub(crate) fn spec(&self) -> &CheckedSpec {
        &self.spec
    }

    /// What was learned, without the trainer.
    pub(crate) fn into_learner(self) -> Box<dyn Learner> {
        self.learner
    }

    /// A learner of the same spec that has seen nothing.
    pub(crate) fn fresh(&self) -> Result<Box<dyn Learner>> {
        (self.algorithm.start)(&self.spec)
    }

    /// The numbering of labels and features, in the order in which they were met.
    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    /// What was learned, in that numbering.
    pub(crate) fn learner(&self) -> &dyn Learner {
        &*self.learner
    }

    /// Puts `learner`, which has seen `rows` rows, in the place of what was learned.
    pub(crate) fn replace(&mut self, learner: Box<dyn Learner>, rows: u64) {
        self.rows_seen = rows;
        self.learner = learner;
    }

    /// Drops names that nothing is known of when they are more than half of a few thousand, and
    /// returns the new numbers of the others.
    pub(crate) fn compact(&mut self) -> Option<Remap> {
        let features = &self.space.features;
        let names = self.space.labels.len() + features.sparse_len() + features.value_len();
        if names < self.compact_at {
            return None;
        }
        let used = self.learner.used(&self.space);
        let kept = [&used.labels, &used.sparse, &used.values];
        let kept = kept.into_iter().flatten().filter(|used| **used).count();
        self.compact_at = COMPACT_FROM.max(2 * kept);
        if names < self.compact_at {
            return None;
        }
        let (space, ids) = self.space.compacted(&used);
        self.learner = self.learner.remap(&ids);
        self.space = space;
        self.reader.unbind();
        Some(ids)
    }

    /// What is known, under the numbers in use: unlike [`Trainer::finish`], [`Trainer::resume`]
    /// goes on from it with the same bits.
    pub(crate) fn snapshot(&self, learner: &dyn Learner, rows: u64) -> Model {
        let (space, ids) = self.space.compacted(&Used::all(&self.space));
        let learner = learner.remap(&ids);
        let model = Model::new(self.algorithm, self.spec.clone(), space, rows, learner);
        model.with_decay(self.decay)
    }

    /// A trainer that goes on from a [`Trainer::snapshot`].
    pub(crate) fn resume(snapshot: &Model) -> Result<Self> {
        let learner = snapshot.learner().remap(&Remap::identity(snapshot.space()));
        let (algorithm, spec) = (*snapshot.algorithm(), snapshot.spec().clone());
        let space = snapshot.space().clone();
        let trainer = Trainer::with_learner(algorithm, spec, space, snapshot.rows(), learner)?;
        Ok(trainer.with_decay(snapshot.decay()))
    }

    /// Learns from the rows `range` of `rows`, which were read in the numbering of `from`.
    pub(super) fn observe_copied(
        &mut self,
        rows: &Rows,
        from: &Space,
        range: Range<usize>,
        copy: &mut CopyBuffer,
    ) -> Result<()> {
        let before = self.known();
        if self.space.labels.is_empty() {
            self.space.labels = copy.labels_of(rows, from, range.clone());
        }
        let copied = copy.translator.copy(rows, from, range, &mut self.space, &mut copy.rows);
        let learned = copied.and_then(|()| {
            check_bounds(&self.space, &self.reader.options)?;
            self.learn(&copy.rows)
        });
        if learned.is_err() {
            self.go_back(before);
        }
        learned
    }

    /// As [`Trainer::observe`], with the labels in column `labels` and every other column a feature.
    ///
    /// # Errors
    ///
    /// As [`Trainer::observe`]; a label column that is not there lists those that are.
    pub fn observe_batch(&mut self, batch: &RecordBatch, labels: &str) -> Result<()> {
        let (labels, features) = split_columns(batch, labels)?;
        self.observe(&labels, &features)
    }

    /// How many rows were learned.
    pub fn rows(&self) -> u64 {
        self.rows_seen
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        let arrays = |(labels, features, weights): &Batch| {
            [Some(labels), Some(features), weights.as_ref()]
                .into_iter()
                .flatten()
                .map(|array| array.get_buffer_memory_size())
                .sum::<usize>()
        };
        let waiting: usize = self.waiting.iter().map(arrays).sum();
        self.space.heap_size() + self.learner.heap_size() + waiting
    }

    /// About how many bytes [`Trainer::finish`] and [`Trainer::state`] will take besides.
    pub fn ending_size(&self) -> usize {
        self.learner.ending_size(&self.space)
    }

    /// The model of what was learned so far: labels and features in name order, parameters fitted
    /// where the algorithm keeps them.
    ///
    /// # Errors
    ///
    /// No labelled row was seen.
    pub fn finish(&self) -> Result<Model> {
        self.state()?.closed()
    }

    /// What was learned so far as a model that is still open: it merges with others like it, and
    /// is what partitions hand to each other. Only a finished model is worth keeping.
    ///
    /// # Errors
    ///
    /// No labelled row was seen.
    pub fn state(&self) -> Result<Model> {
        if let Some(settled) = self.settled()? {
            return settled.state();
        }
        let (space, ids) = self.in_order()?;
        let learner = self.learner.remap(&ids);
        let model = Model::new(self.algorithm, self.spec.clone(), space, self.rows_seen, learner);
        Ok(model.with_decay(self.decay))
    }

    /// As [`Trainer::finish`], without a copy where the names are in order.
    ///
    /// # Errors
    ///
    /// As [`Trainer::finish`].
    pub fn into_finished(self) -> Result<Model> {
        self.into_state()?.closed()
    }

    /// As [`Trainer::state`], without a copy where the names are in order.
    ///
    /// # Errors
    ///
    /// As [`Trainer::state`].
    pub fn into_state(self) -> Result<Model> {
        if let Some(settled) = self.settled()? {
            return settled.into_state();
        }
        let (space, ids) = self.in_order()?;
        let learner = if ids.is_identity() { self.learner } else { self.learner.remap(&ids) };
        let model = Model::new(self.algorithm, self.spec, space, self.rows_seen, learner);
        Ok(model.with_decay(self.decay))
    }

    /// The names that are used in their order, and their new numbers.
    fn in_order(&self) -> Result<(Space, Remap)> {
        if self.rows_seen == 0 {
            return Err(Error::data(
                "there is no labelled row to learn from: every label list is NULL, or there are no rows",
            ));
        }
        Ok(self.space.sorted(&self.learner.used(&self.space)))
    }
}

fn learn(
    algorithm: &Algorithm,
    learner: &mut dyn Learner,
    rows: &Rows,
    space: &Space,
) -> Result<()> {
    if rows.len == 0 {
        return Ok(());
    }
    if !rows.weights.is_empty() && !learner.takes_weights() {
        return Err(Error::unsupported(format!(
            "`{}` takes no weights: leave them out, or repeat the rows",
            algorithm.name
        )));
    }
    learner.observe(rows, space)
}
