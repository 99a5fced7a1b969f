//! Generated multi-label data: any number of rows from a seed.
//!
//! For demonstrations, benchmarks and tests that need a table of a given shape with something to learn in it. Not
//! for comparing algorithms with each other: the data are Gaussian shifts per label, as naive Bayes likes them.
//!
//! # Definition
//!
//! Labels have skewed frequencies and belong to topics; a row has one or two topics and takes most of its labels from
//! them (see `labels.rs`). Each label moves a few features up or down, the set size moves a few others, a
//! quarter is noise; every feature has its own unit and offset (see `features.rs`). The strength of the shifts
//! follows the shape. From 10 features, 6 labels and 2 of them in a row to 120, 100 and 4.4, NaiBX reaches a Jaccard
//! score of 0.5 to 0.8 on the rows after 4,000. One label of two in a row is easier (5 features: 0.82), and more labels
//! than features are harder (50 features, 300 labels, 10 in a row: 0.42; 3, 40 and 5: 0.26).
//!
//! Every value is a pure function of the seed, the row number and the column, made of integer and exactly rounded
//! operations only: any cut into batches, any thread and any platform gives the same bytes.

mod features;
mod labels;
mod names;
mod options;
mod random;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use self::features::FeatureModel;
use self::labels::{LabelModel, LabelSets};
use self::names::LabelNames;
pub use self::options::GeneratorOptions;
use self::random::key;
use crate::data::{Id, LabelId};
use crate::error::{Error, Result};
use crate::math::Sequence;

/// The most numbers in one batch (16 GiB).
const MAX_BATCH_VALUES: usize = 1 << 31;

/// A plan from which the rows of any range can be made.
///
/// # Cost
///
/// About 20 ns for each feature value on one core. The plan itself is small: up to 12 shifts for each label.
///
/// # Examples
///
/// ```
/// use labelflow::data::generate::{Generator, GeneratorOptions};
///
/// let generator = Generator::try_new(GeneratorOptions { rows: 100, ..Default::default() })?;
/// let whole = generator.batch(0, 100)?;
/// assert_eq!((whole.num_rows(), whole.num_columns()), (100, 22));
/// assert_eq!(generator.batch(40, 10)?, whole.slice(40, 10));
/// # Ok::<(), labelflow::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Generator {
    options: GeneratorOptions,
    schema: SchemaRef,
    names: LabelNames,
    labels: LabelModel,
    features: FeatureModel,
    row_seed: u64,
    set_seed: u64,
    column_seed: u64,
    /// The row from which labels have switched their meaning.
    drift_from: Option<u64>,
}

impl Generator {
    /// Draws the plan: topics, label frequencies, shifts and units.
    ///
    /// # Errors
    ///
    /// Usage, if an option is out of its range (see [`GeneratorOptions`]).
    pub fn try_new(options: GeneratorOptions) -> Result<Self> {
        options.check()?;
        let GeneratorOptions { features, labels, cardinality, seed, .. } = options;
        Ok(Generator {
            options,
            schema: schema(features),
            names: LabelNames::new(labels),
            labels: LabelModel::new(labels, cardinality, Sequence(key(seed, 0))),
            features: FeatureModel::new(features, labels, cardinality, Sequence(key(seed, 1))),
            row_seed: key(seed, 2),
            set_seed: key(seed, 3),
            column_seed: key(seed, 4),
            drift_from: None,
        })
    }

    /// The same rows, but half-way through some labels switch their meaning: labels 0 and 1 show in
    /// the features as 1 and 0 did, and so on with every fifth label and the one after it.
    #[must_use]
    pub fn with_drift(mut self) -> Self {
        self.drift_from = Some(self.options.rows / 2);
        self
    }

    /// The names of the labels that switch their meaning in [`Generator::with_drift`].
    pub fn switching_labels(&self) -> Vec<String> {
        let labels = self.options.labels;
        let switch = LabelId::all(labels).filter(|&y| switched(y, labels) != y);
        switch.map(|y| self.names.name(y)).collect()
    }

    /// The columns of every batch: `id` (Int64), `f0`, `f1`, ... (Float64) and `labels` (List of Utf8).
    ///
    /// # Nulls
    ///
    /// None. A row without labels has an empty list.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The rows `first_row..first_row + rows`.
    ///
    /// # Errors
    ///
    /// Usage, if the range goes beyond the last row; limit, if the batch would hold more than 2^31 numbers or its
    /// labels more than 2 GiB of text.
    pub fn batch(&self, first_row: u64, rows: usize) -> Result<RecordBatch> {
        let end = self.checked_end(first_row, rows)?;
        let keys: Vec<u64> = (first_row..end).map(|row| key(self.row_seed, row)).collect();
        let sets = self.label_sets(&keys)?;
        let shown = self.shown(first_row, &sets);
        let shown = shown.as_ref().unwrap_or(&sets);
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.features.len() + 2);
        columns
            .push(Arc::new(Int64Array::from_iter_values((first_row..end).map(|row| row as i64))));
        for feature in 0..self.features.len() {
            let column_key = key(self.column_seed, feature as u64);
            let values = self.features.values(feature, column_key, &keys, shown);
            columns.push(Arc::new(Float64Array::from(values)));
        }
        columns.push(Arc::new(self.names.lists(&sets)?));
        Ok(RecordBatch::try_new(self.schema(), columns)?)
    }

    /// All rows in order, `batch_rows` at a time; the last batch may be shorter.
    ///
    /// # Errors
    ///
    /// Those of [`batch`](Self::batch), and usage if `batch_rows` is 0. Nothing follows an error.
    pub fn batches(self, batch_rows: usize) -> impl Iterator<Item = Result<RecordBatch>> + Send {
        let mut first_row = 0;
        std::iter::from_fn(move || {
            let left = self.options.rows - first_row;
            if left == 0 {
                return None;
            }
            let rows = left.min(batch_rows as u64);
            let batch = match rows {
                0 => Err(Error::usage("parameter `batch_rows` must be at least 1, got 0")),
                _ => self.batch(first_row, rows as usize),
            };
            first_row = if batch.is_ok() { first_row + rows } else { self.options.rows };
            Some(batch)
        })
    }

    /// The labels that show in the features, where they are others than the row has.
    fn shown(&self, first_row: u64, sets: &LabelSets) -> Option<LabelSets> {
        let from = self.drift_from?.saturating_sub(first_row) as usize;
        let labels = self.options.labels;
        let mut ids = sets.ids().to_vec();
        let mut ends = Vec::new();
        for (row, size) in sets.sizes().enumerate() {
            let start = ends.last().copied().unwrap_or(0);
            if row >= from {
                ids[start..start + size].iter_mut().for_each(|y| *y = switched(*y, labels));
            }
            ends.push(start + size);
        }
        Some(LabelSets::new(self.labels.len(), ids, ends))
    }

    /// The row after the last of the range, if the range is inside the data and fits into memory.
    fn checked_end(&self, first_row: u64, rows: usize) -> Result<u64> {
        let GeneratorOptions { rows: all, features, .. } = self.options;
        let Some(end) = first_row.checked_add(rows as u64).filter(|&end| end <= all) else {
            return Err(Error::usage(format!(
                "a batch of {rows} rows from row {first_row} on goes beyond the {all} rows of the generator"
            )));
        };
        let most = MAX_BATCH_VALUES / (features + 1);
        if rows > most {
            return Err(Error::limit(format!(
                "a batch with {features} features holds at most {most} rows, got {rows}; ask for smaller batches"
            )));
        }
        Ok(end)
    }

    /// The labels of the rows with these keys.
    fn label_sets(&self, keys: &[u64]) -> Result<LabelSets> {
        let (mut ids, mut ends) = (Vec::new(), Vec::with_capacity(keys.len()));
        let mut taken = vec![false; self.labels.len()];
        let most = self.names.most();
        for row_key in keys {
            self.labels.draw(Sequence(row_key ^ self.set_seed), &mut taken, &mut ids);
            if ids.len() > most {
                return Err(Error::limit(format!(
                    "a batch holds at most {most} labels, reached after {} of {} rows; ask for smaller batches",
                    ends.len(),
                    keys.len()
                )));
            }
            ends.push(ids.len());
        }
        Ok(LabelSets::new(self.labels.len(), ids, ends))
    }
}

/// The label whose meaning label `y` takes over.
fn switched(y: LabelId, labels: usize) -> LabelId {
    match y.index() % 5 {
        0 if y.index() + 1 < labels => LabelId(y.0 + 1),
        1 => LabelId(y.0 - 1),
        _ => y,
    }
}

fn schema(features: usize) -> SchemaRef {
    let mut fields = vec![Field::new("id", DataType::Int64, false)];
    fields.extend((0..features).map(|i| Field::new(format!("f{i}"), DataType::Float64, false)));
    fields.push(Field::new("labels", DataType::List(LabelNames::item()), false));
    Arc::new(Schema::new(fields))
}
