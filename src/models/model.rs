//! Trained models.

use super::{Algorithm, CheckedSpec, Insight, Learner, Peer, RankedSet, Scorer, Trainer};
use crate::data::{Binding, LabelSets, Rows, Space, Used, Vocabulary};
use crate::error::{Error, Result};
use crate::math::{content_hash, sigmoid, top_k};
use arrow::array::Array;
use arrow::array::{ArrayRef, Float64Array, ListArray, StringArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// How many row buffers a model keeps: as many as threads are likely to score with it.
const MAX_BUFFERS: usize = 8;

/// The content of a mutex; a panic elsewhere leaves caches as good as they were.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A trained model: an immutable value in name order.
///
/// Parameters for scoring are derived from the statistics on first use and kept.
#[derive(Debug)]
pub struct Model {
    algorithm: Algorithm,
    spec: CheckedSpec,
    space: Space,
    rows: u64,
    learner: Box<dyn Learner>,
    scorer: OnceLock<Arc<dyn Scorer>>,
    /// The binding of the last batch type, since batches of one query have one type.
    binding: Mutex<Option<Arc<Binding>>>,
    /// Buffers of batches that were scored, to be used again.
    buffers: Mutex<Vec<Rows>>,
    /// The digest of the bytes it was read from.
    digest: Option<Box<str>>,
    /// A hash of what decides how features are read.
    reading: OnceLock<u128>,
}

impl Model {
    /// The model that `learner`, numbered as in `space` (which is in name order), has become.
    pub fn new(
        algorithm: Algorithm,
        spec: CheckedSpec,
        space: Space,
        rows: u64,
        learner: Box<dyn Learner>,
    ) -> Self {
        let (scorer, binding, buffers) = (OnceLock::new(), Mutex::new(None), Mutex::default());
        let (digest, reading) = (None, OnceLock::new());
        Model { algorithm, spec, space, rows, learner, scorer, binding, buffers, digest, reading }
    }

    /// The model of a learner whose parameters are fitted.
    fn fitted(
        algorithm: Algorithm,
        spec: CheckedSpec,
        space: Space,
        rows: u64,
        (learner, scorer): Peer,
    ) -> Self {
        let mut model = Model::new(algorithm, spec, space, rows, learner);
        model.scorer = OnceLock::from(Arc::from(scorer));
        model
    }

    /// The same model with the digest of the bytes it was read from.
    pub(crate) fn with_digest(mut self, digest: &str) -> Self {
        self.digest = Some(digest.into());
        self
    }

    /// The digest of the bytes it was read from, if it was read from bytes.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// The same model with a closed learner, where its algorithm has one.
    pub(super) fn closed(self) -> Result<Self> {
        Ok(match self.learner.close(&self.space)? {
            None => self,
            Some(closed) => Model::fitted(self.algorithm, self.spec, self.space, self.rows, closed),
        })
    }

    /// The algorithm that learned it.
    pub fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// Its spec.
    pub fn spec(&self) -> &CheckedSpec {
        &self.spec
    }

    /// Its labels and features in name order.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// How many rows it has learned from.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What it knows.
    pub fn learner(&self) -> &dyn Learner {
        &*self.learner
    }

    /// What people want to know about it: at most `most` features per label and pairs.
    pub fn insight(&self, most: usize) -> Insight {
        self.learner.insight(&self.space, most)
    }

    /// A trainer that goes on learning from here.
    pub fn reopen(&self) -> Result<Trainer> {
        let same = self.learner.remap(&self.space.sorted(&Used::all(&self.space)).1);
        let space = self.space.clone();
        Trainer::with_learner(self.algorithm, self.spec.clone(), space, self.rows, same)
    }

    /// The fitted parameters.
    pub fn scorer(&self) -> Result<Arc<dyn Scorer>> {
        if let Some(scorer) = self.scorer.get() {
            return Ok(Arc::clone(scorer));
        }
        let scorer: Arc<dyn Scorer> = Arc::from(self.learner.fit(&self.space)?);
        Ok(Arc::clone(self.scorer.get_or_init(|| scorer)))
    }

    /// What this model knows under other specs whose learners are of the same kind
    /// ([`Learner::state_kind`]): a model for each, which share their work on the same rows.
    ///
    /// # Errors
    ///
    /// Specs of another kind.
    pub fn peers(&self, specs: &[(Algorithm, CheckedSpec)]) -> Result<Vec<Model>> {
        let started = specs.iter().map(|(algorithm, spec)| (algorithm.start)(spec));
        let started = started.collect::<Result<Vec<_>>>()?;
        let kind = self.learner.state_kind();
        if kind.is_none() || started.iter().any(|learner| learner.state_kind() != kind) {
            return Err(Error::incompatible("learners of different kinds do not share a state"));
        }
        let fitted = self.learner.fit_peers(&started, &self.space)?;
        let model = |((algorithm, spec), peer): (&(Algorithm, CheckedSpec), Peer)| {
            let (spec, space) = (spec.clone(), self.space.clone());
            Model::fitted(*algorithm, spec, space, self.rows, peer)
        };
        Ok(specs.iter().zip(fitted).map(model).collect())
    }

    /// What a user should know about what was learned, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        self.learner.notes(&self.space)
    }

    /// Reads features into rows in the numbering of this model.
    ///
    /// # Errors
    ///
    /// A feature of the model that is missing is named.
    pub fn read(&self, features: &ArrayRef) -> Result<Rows> {
        let mut rows = lock(&self.buffers).pop().unwrap_or_default();
        rows.clear();
        self.binding(features.data_type())?.read(features, &self.space.features, &mut rows)?;
        Ok(rows)
    }

    /// Takes the buffers of rows that are no longer needed.
    fn recycle(&self, rows: Rows) {
        let mut buffers = lock(&self.buffers);
        if buffers.len() < MAX_BUFFERS {
            buffers.push(rows);
        }
    }

    fn binding(&self, data_type: &DataType) -> Result<Arc<Binding>> {
        let mut slot = lock(&self.binding);
        if let Some(binding) = slot.as_ref().filter(|b| b.data_type() == data_type) {
            return Ok(Arc::clone(binding));
        }
        let options = (self.algorithm.features)(&self.spec)?;
        let binding = Arc::new(Binding::try_new(data_type, &options, &self.space.features)?);
        *slot = Some(Arc::clone(&binding));
        Ok(binding)
    }

    /// Whether features of this type can be scored.
    ///
    /// # Errors
    ///
    /// The feature that is missing or does not fit is named.
    pub fn check_features(&self, data_type: &DataType) -> Result<()> {
        self.binding(data_type).map(drop)
    }

    /// Whether features are read alike for this model and `other`: rows read for one can be scored
    /// by both.
    pub fn reads_like(&self, other: &Model) -> bool {
        self.reading() == other.reading()
    }

    fn reading(&self) -> u128 {
        *self.reading.get_or_init(|| {
            let content = format!("{} {:?}", self.spec, self.space.features.families());
            content_hash(0, content.as_bytes())
        })
    }

    /// The label set of every row: a list of label names in name order.
    pub fn predict(&self, features: &ArrayRef) -> Result<ListArray> {
        self.with_rows(features, |rows| self.predict_rows(rows))
    }

    /// As [`Model::predict`], of rows that were read for this model.
    pub fn predict_rows(&self, rows: &Rows) -> Result<ListArray> {
        let mut sets = LabelSets::default();
        self.scorer()?.predict(rows, &mut sets)?;
        Ok(self.name_lists(sets.iter()))
    }

    fn with_rows<T>(&self, features: &ArrayRef, f: impl FnOnce(&Rows) -> Result<T>) -> Result<T> {
        let rows = self.read(features)?;
        let result = f(&rows);
        self.recycle(rows);
        result
    }

    /// The `k` most probable labels of every row, best first.
    pub fn top(&self, features: &ArrayRef, k: usize) -> Result<ListArray> {
        self.with_rows(features, |rows| self.top_rows(rows, k))
    }

    /// As [`Model::top`], of rows that were read for this model.
    pub fn top_rows(&self, rows: &Rows, k: usize) -> Result<ListArray> {
        let ranked = self.ranked(rows, k)?;
        Ok(self.name_lists(ranked.iter().map(|row| row.iter().map(|r| r.0).collect::<Vec<_>>())))
    }

    /// The probability of every label in every row, best first: a list of (label, score).
    pub fn score(&self, features: &ArrayRef) -> Result<ListArray> {
        self.with_rows(features, |rows| self.score_rows(rows))
    }

    /// As [`Model::score`], of rows that were read for this model.
    pub fn score_rows(&self, rows: &Rows) -> Result<ListArray> {
        let ranked = self.ranked(rows, self.space.labels.len())?;
        let offsets = OffsetBuffer::from_lengths(ranked.iter().map(Vec::len));
        let labels = ranked.iter().flatten().map(|r| Some(self.space.labels.name(r.0)));
        let labels: ArrayRef = Arc::new(StringArray::from_iter(labels));
        let scores = Float64Array::from_iter_values(ranked.iter().flatten().map(|r| r.1));
        let DataType::Struct(fields) = scored_label_type() else {
            return Err(Error::internal("scores are structs"));
        };
        let values = StructArray::try_new(fields, vec![labels, Arc::new(scores)], None)?;
        let item = Arc::new(Field::new_list_field(scored_label_type(), true));
        Ok(ListArray::try_new(item, offsets, Arc::new(values), None)?)
    }

    fn ranked(&self, rows: &Rows, k: usize) -> Result<Vec<Vec<(u32, f64)>>> {
        let mut scores = Vec::new();
        self.scorer()?.score(rows, &mut scores)?;
        let mut best = Vec::new();
        let labels = self.space.labels.len();
        if labels == 0 {
            return Ok(vec![Vec::new(); rows.len]);
        }
        Ok(scores
            .chunks_exact(labels)
            .map(|row| {
                top_k(row, k, &mut best);
                best.iter().map(|&id| (id, sigmoid(row[id as usize]))).collect()
            })
            .collect())
    }

    /// The most probable label sets of every row with their probabilities.
    pub fn rank_sets(&self, features: &ArrayRef, most: usize) -> Result<Vec<Vec<RankedSet>>> {
        self.with_rows(features, |rows| self.rank_sets_rows(rows, most))
    }

    /// As [`Model::rank_sets`], of rows that were read for this model.
    pub fn rank_sets_rows(&self, rows: &Rows, most: usize) -> Result<Vec<Vec<RankedSet>>> {
        self.scorer()?.rank_sets(rows, most)
    }

    /// A list array of the names of label ids.
    pub fn name_lists<R: AsRef<[u32]>>(&self, rows: impl Iterator<Item = R>) -> ListArray {
        name_lists(&self.space.labels, rows)
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        // Fitted parameters take about as much as the statistics they come from.
        self.space.heap_size() + 2 * self.learner.heap_size()
    }
}

/// A list array of the names that `labels` has for the ids of each row.
pub(crate) fn name_lists<R: AsRef<[u32]>>(
    labels: &Vocabulary,
    rows: impl Iterator<Item = R>,
) -> ListArray {
    let mut offsets = vec![0i32];
    let mut bytes = Vec::new();
    let mut ends = vec![0i32];
    for row in rows {
        for &id in row.as_ref() {
            bytes.extend_from_slice(labels.name(id).as_bytes());
            ends.push(bytes.len() as i32);
        }
        offsets.push((ends.len() - 1) as i32);
    }
    let values = StringArray::new(OffsetBuffer::new(ends.into()), bytes.into(), None);
    let item = Arc::new(Field::new_list_field(DataType::Utf8, true));
    ListArray::new(item, OffsetBuffer::new(offsets.into()), Arc::new(values), None)
}

/// The type of one entry of a score list.
pub(crate) fn scored_label_type() -> DataType {
    DataType::Struct(Fields::from(vec![
        Field::new("label", DataType::Utf8, false),
        Field::new("score", DataType::Float64, false),
    ]))
}
