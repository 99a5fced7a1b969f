//! Trained models.

use super::{
    Algorithm, CheckedSpec, Decay, Insight, LabelLists, Learner, Origin, Peer, RankedSet, Scorer,
    Trainer,
};
use crate::data::{Binding, LabelId, LabelSets, Rows, Space, Used};
use crate::error::{Error, Result};
use crate::math::{content_hash, sigmoid, top_k};
use arrow::array::{Array, ArrayRef, ListArray};
use arrow::datatypes::DataType;
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
    /// The bytes it was read from.
    origin: Option<Origin>,
    /// A hash of what decides how features are read.
    reading: OnceLock<u128>,
    decay: Option<Decay>,
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
        let (origin, reading) = (None, OnceLock::new());
        Model {
            algorithm,
            spec,
            space,
            rows,
            learner,
            scorer,
            binding,
            buffers,
            origin,
            reading,
            decay: None,
        }
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

    /// The same model, with what it was read from.
    pub(crate) fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    /// The same model, whose weights have faded so.
    pub(crate) fn with_decay(mut self, decay: Option<Decay>) -> Self {
        self.decay = decay;
        self
    }

    /// How its weights have faded while it learned; `None` when it never forgot.
    pub fn decay(&self) -> Option<Decay> {
        self.decay
    }

    /// The bytes it was read from, if it was read from bytes.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// The digest of the bytes it was read from, if it was read from bytes.
    pub fn digest(&self) -> Option<&str> {
        self.origin().map(|origin| &*origin.digest)
    }

    /// The same model with a closed learner, where its algorithm has one.
    pub(super) fn closed(self) -> Result<Self> {
        let decay = self.decay;
        Ok(match self.learner.close(&self.space)? {
            None => self,
            Some(closed) => Model::fitted(self.algorithm, self.spec, self.space, self.rows, closed),
        }
        .with_decay(decay))
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
        let reopened =
            Trainer::with_learner(self.algorithm, self.spec.clone(), space, self.rows, same)?;
        Ok(reopened.with_decay(self.decay))
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
        let mut notes = self.learner.notes(&self.space);
        notes.extend(self.decay.map(|decay| decay.to_string()));
        notes
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

    /// How features are read for this model: rows read for one can be scored by all that read them
    /// alike.
    pub fn reading(&self) -> u128 {
        *self.reading.get_or_init(|| {
            let mut content = self.spec.to_string().into_bytes();
            self.space.features.write_reading(&mut content);
            content_hash(0, &content)
        })
    }

    /// The label set of every row: a list of label names in name order.
    pub fn predict(&self, features: &ArrayRef) -> Result<ListArray> {
        let mut lists = LabelLists::default();
        self.with_rows(features, |rows| self.predict_rows(rows, &mut lists))?;
        lists.names()
    }

    /// Adds what [`Model::predict`] gives for rows that were read for this model.
    pub fn predict_rows(&self, rows: &Rows, out: &mut LabelLists) -> Result<()> {
        let mut sets = LabelSets::default();
        self.scorer()?.predict(rows, &mut sets)?;
        sets.iter().for_each(|set| out.push(&self.space.labels, set.iter().copied()));
        Ok(())
    }

    /// Reads features, and takes the buffer of the rows back.
    pub(crate) fn with_rows<T>(
        &self,
        features: &ArrayRef,
        f: impl FnOnce(&Rows) -> Result<T>,
    ) -> Result<T> {
        let rows = self.read(features)?;
        let result = f(&rows);
        self.recycle(rows);
        result
    }

    /// The `k` most probable labels of every row, best first.
    pub fn top(&self, features: &ArrayRef, k: usize) -> Result<ListArray> {
        let mut lists = LabelLists::default();
        self.with_rows(features, |rows| self.top_rows(rows, k, &mut lists))?;
        lists.names()
    }

    /// Adds what [`Model::top`] gives for rows that were read for this model.
    pub fn top_rows(&self, rows: &Rows, k: usize, out: &mut LabelLists) -> Result<()> {
        self.ranked(rows, k, |_, best| {
            out.push(&self.space.labels, best.iter().copied().map(LabelId));
        })
    }

    /// The probability of every label in every row, best first: a list of (label, score).
    pub fn score(&self, features: &ArrayRef) -> Result<ListArray> {
        let mut lists = LabelLists::default();
        self.with_rows(features, |rows| self.score_rows(rows, &mut lists))?;
        lists.scored()
    }

    /// Adds what [`Model::score`] gives for rows that were read for this model.
    pub fn score_rows(&self, rows: &Rows, out: &mut LabelLists) -> Result<()> {
        let labels = &self.space.labels;
        self.ranked(rows, labels.len(), |scores, best| {
            let scored = best.iter().map(|&id| (LabelId(id), sigmoid(scores[id as usize])));
            out.push_scored(labels, scored);
        })
    }

    /// Hands the scores of every row and its `k` best labels to `each`.
    fn ranked(&self, rows: &Rows, k: usize, mut each: impl FnMut(&[f64], &[u32])) -> Result<()> {
        let mut scores = Vec::new();
        self.scorer()?.score(rows, &mut scores)?;
        let mut best = Vec::new();
        let labels = self.space.labels.len();
        if labels == 0 {
            (0..rows.len).for_each(|_| each(&[], &[]));
            return Ok(());
        }
        for row in scores.chunks_exact(labels) {
            top_k(row, k, &mut best);
            each(row, &best);
        }
        Ok(())
    }

    /// The most probable label sets of every row with their probabilities.
    pub fn rank_sets(&self, features: &ArrayRef, most: usize) -> Result<Vec<Vec<RankedSet>>> {
        self.with_rows(features, |rows| self.scorer()?.rank_sets(rows, most))
    }

    /// Adds what [`Model::rank_sets`] gives for rows that were read for this model.
    pub fn rank_sets_rows(&self, rows: &Rows, most: usize, out: &mut LabelLists) -> Result<()> {
        let ranked = self.scorer()?.rank_sets(rows, most)?;
        ranked.iter().for_each(|sets| out.push_sets(&self.space.labels, sets));
        Ok(())
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        // Fitted parameters take about as much as the statistics they come from.
        self.space.heap_size() + 2 * self.learner.heap_size()
    }
}
