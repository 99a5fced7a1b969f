//! Training: from Arrow arrays to a model.

use super::{Algorithm, CheckedSpec, Learner, Model, Registry};
use crate::data::{Binding, FeatureOptions, FeatureSpace, LabelReader, Remap, Rows, Space};
use crate::error::{Error, Result};
use arrow::array::{Array, ArrayRef, StructArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use std::sync::Arc;

/// A model in the making: observes rows, merges with others, and is finished into a [`Model`].
///
/// # Cost
///
/// Memory is that of the statistics and of one batch of rows, however many rows are observed.
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
    options: FeatureOptions,
    space: Space,
    rows_seen: u64,
    learner: Box<dyn Learner>,
    binding: Option<Binding>,
    buffer: Rows,
}

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
    /// A spec to which the order of rows matters: see [`Trainer::start_in_order`].
    pub fn start(algorithm: Algorithm, spec: CheckedSpec) -> Result<Self> {
        let trainer = Trainer::start_in_order(algorithm, spec)?;
        if trainer.learner.needs_order() {
            return Err(Error::usage(format!(
                "`{}` depends on the order of rows, which only a stream has: learn from a stream, \
                 or keep rows without regard to their order, such as keep=sample(n)",
                trainer.spec
            )));
        }
        Ok(trainer)
    }

    /// A trainer of a checked spec, for a stream: rows are observed in their order, by this trainer
    /// alone.
    pub fn start_in_order(algorithm: Algorithm, spec: CheckedSpec) -> Result<Self> {
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
        let options = (algorithm.features)(&spec)?;
        let buffer = Rows::default();
        Ok(Trainer { algorithm, spec, options, space, rows_seen, learner, binding: None, buffer })
    }

    /// Learns from the labelled rows of a batch; rows whose labels are NULL are passed over.
    ///
    /// # Errors
    ///
    /// Arrays that break the data contract; what was learned before stays.
    pub fn observe(&mut self, labels: &ArrayRef, features: &ArrayRef) -> Result<()> {
        let known = self.space.labels.len();
        let declared = self.space.features.declared;
        let observed = self.observe_rows(labels, features);
        if observed.is_err() {
            self.space.labels.truncate(known);
            // New keys and values are harmless: names that nothing is known of are dropped.
            if !declared {
                self.space.features = FeatureSpace::default();
                self.binding = None;
            }
        }
        observed
    }

    fn observe_rows(&mut self, labels: &ArrayRef, features: &ArrayRef) -> Result<()> {
        if labels.len() != features.len() {
            return Err(Error::data(format!(
                "there are {} rows of labels and {} of features",
                labels.len(),
                features.len()
            )));
        }
        self.buffer.clear();
        let max = self.options.max_labels.unwrap_or(usize::MAX);
        let vocabulary = &mut self.space.labels;
        let labelled = LabelReader::read(labels, &mut self.buffer.labels, |name| {
            let id = vocabulary.intern(name);
            if id as usize >= max {
                return Err(Error::limit(format!(
                    "label `{name}` is one more than max_labels={max} allows: raise it"
                )));
            }
            Ok(Some(id))
        })?;
        let features = match labelled {
            None => Arc::clone(features),
            Some(rows) => take(features, &UInt32Array::from(rows), None)?,
        };
        if features.is_empty() {
            return Ok(());
        }
        let bound = self.binding.as_ref().is_some_and(|b| b.data_type() == features.data_type());
        if !bound {
            self.binding = Some(Binding::declare(&features, &self.options, &mut self.space)?);
        }
        if let Some(binding) = &self.binding {
            binding.read_growing(&features, &mut self.space.features, &mut self.buffer)?;
        }
        self.learner.observe(&self.buffer, &self.space)?;
        self.rows_seen += self.buffer.len as u64;
        Ok(())
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

    /// Adds what `model` has seen.
    ///
    /// # Errors
    ///
    /// Models of other specs or other columns; this trainer then stays as it was.
    pub fn merge(&mut self, model: &Model) -> Result<()> {
        self.check_spec(model)?;
        let ids = self.widen(model.space())?;
        if ids.is_identity() {
            self.learner.merge(model.learner())?;
        } else {
            self.learner.merge(&*model.learner().remap(&ids))?;
        }
        self.rows_seen += model.rows();
        Ok(())
    }

    /// Makes room for the names of `other`, within the bounds; on an error nothing changes.
    fn widen(&mut self, other: &Space) -> Result<Remap> {
        let mut space = self.space.clone();
        let ids = space.absorb(other)?;
        let (labels, features) = (space.labels.len(), space.features.len());
        let over = |len: usize, max: Option<usize>| max.filter(|max| len > *max);
        if let Some(max) = over(labels, self.options.max_labels) {
            return Err(Error::limit(format!(
                "together there are {labels} labels, more than max_labels={max} allows: raise it"
            )));
        }
        if let Some(max) = over(features, self.options.max_features) {
            return Err(Error::limit(format!(
                "together there are {features} features, more than max_features={max} allows: raise it"
            )));
        }
        self.space = space;
        Ok(ids)
    }

    /// Takes away what `model` has seen.
    ///
    /// # Errors
    ///
    /// What was never added, what would lose more than six digits, algorithms that cannot forget.
    pub fn forget(&mut self, model: &Model) -> Result<()> {
        self.check_spec(model)?;
        let mut space = self.space.clone();
        let ids = space.absorb(model.space())?;
        self.learner.forget(&*model.learner().remap(&ids))?;
        self.space = space;
        self.rows_seen = self.rows_seen.saturating_sub(model.rows());
        Ok(())
    }

    /// Multiplies all weights by `factor`.
    ///
    /// # Errors
    ///
    /// A factor outside 0 to 1, algorithms that cannot decay.
    pub fn decay(&mut self, factor: f64) -> Result<()> {
        if !(0.0..=1.0).contains(&factor) {
            return Err(Error::usage(format!("a decay factor is from 0 to 1, not {factor}")));
        }
        self.learner.decay(factor)
    }

    fn check_spec(&self, model: &Model) -> Result<()> {
        if self.spec.canonical() != model.spec().canonical() {
            return Err(Error::incompatible(format!(
                "models of different specs do not fit together: `{}` and `{}`; train them alike",
                self.spec,
                model.spec()
            )));
        }
        Ok(())
    }

    /// How many rows were learned.
    pub fn rows(&self) -> u64 {
        self.rows_seen
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        self.space.heap_size() + self.learner.heap_size()
    }

    /// The model of what was learned so far: labels and features in name order.
    ///
    /// # Errors
    ///
    /// No labelled row was seen.
    pub fn finish(&self) -> Result<Model> {
        if self.rows_seen == 0 {
            return Err(Error::data(
                "there is no labelled row to learn from: every label list is NULL, or there are no rows",
            ));
        }
        let (space, ids) = self.space.sorted(&self.learner.used(&self.space));
        let learner = self.learner.remap(&ids);
        Ok(Model::new(self.algorithm, self.spec.clone(), space, self.rows_seen, learner))
    }
}

/// The label column of a batch, and the others as one struct.
///
/// A single column of maps or lists besides the labels is not wrapped: its entries are the features.
///
/// # Errors
///
/// A label column that is not there lists those that are.
pub fn split_columns(batch: &RecordBatch, labels: &str) -> Result<(ArrayRef, ArrayRef)> {
    let schema = batch.schema();
    let at = schema.index_of(labels).map_err(|_| {
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        Error::not_found(format!(
            "there is no label column `{labels}`; the columns are: {}",
            names.join(", ")
        ))
    })?;
    let rest: Vec<usize> = (0..batch.num_columns()).filter(|&i| i != at).collect();
    Ok((Arc::clone(batch.column(at)), root(&batch.project(&rest)?)))
}

/// The columns of a batch as one array of features.
pub fn root(batch: &RecordBatch) -> ArrayRef {
    match batch.columns() {
        [column] if holds_features(column.data_type()) => Arc::clone(column),
        _ => Arc::new(StructArray::from(batch.clone())),
    }
}

/// Whether one column of this type is all features of a row rather than one of them.
pub fn holds_features(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Struct(_)
            | DataType::Map(..)
            | DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
    )
}
