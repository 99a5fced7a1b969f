//! Labelled rows in memory.

use crate::data::{LabelId, LabelReader, LabelSets, Vocabulary, declared_labels};
use crate::error::{Error, Result};
use crate::models::split_columns;
use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::{concat_batches, take};
use arrow::record_batch::RecordBatch;

/// Features and labels of labelled rows, and the labels there can be.
#[derive(Debug, Clone)]
pub struct Dataset {
    name: String,
    labels: ArrayRef,
    features: ArrayRef,
    universe: Vocabulary<LabelId>,
    truth: LabelSets,
}

impl Dataset {
    /// The labelled rows of `batches`, with the labels in column `labels` and every other column a
    /// feature.
    ///
    /// The universe of labels is the one the label column declares in its metadata (as ARFF files
    /// do) or by its type (a struct of 0/1 columns), else the labels that occur.
    ///
    /// # Errors
    ///
    /// No labelled row, or columns that break the data contract.
    pub fn try_new(name: &str, batches: &[RecordBatch], labels: &str) -> Result<Self> {
        let Some(first) = batches.first() else {
            return Err(Error::data(format!("data set `{name}` has no rows")));
        };
        let batch = concat_batches(&first.schema(), batches)?;
        let (label_column, features) = split_columns(&batch, labels)?;
        let mut universe = declared_labels(batch.schema().field_with_name(labels)?)?;
        let mut truth = LabelSets::default();
        let labelled =
            LabelReader::read(&label_column, &mut truth, |n| Ok(Some(universe.intern(n))))?;
        let (label_column, features) = match labelled {
            None => (label_column, features),
            Some(rows) => {
                let rows = UInt32Array::from(rows);
                (take(&label_column, &rows, None)?, take(&features, &rows, None)?)
            }
        };
        if truth.is_empty() {
            return Err(Error::data(format!("data set `{name}` has no labelled row")));
        }
        Ok(Dataset { name: name.to_string(), labels: label_column, features, universe, truth })
    }

    /// Its name in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many labelled rows there are.
    pub fn len(&self) -> usize {
        self.truth.len()
    }

    /// Whether there are no rows; never true.
    pub fn is_empty(&self) -> bool {
        self.truth.is_empty()
    }

    /// The labels there can be.
    pub fn universe(&self) -> &Vocabulary<LabelId> {
        &self.universe
    }

    /// The label sets, numbered as in the universe.
    pub fn truth(&self) -> &LabelSets {
        &self.truth
    }

    /// The labels and features of some rows.
    pub(super) fn take(&self, rows: &[u32]) -> Result<(ArrayRef, ArrayRef)> {
        let rows = UInt32Array::from(rows.to_vec());
        Ok((take(&self.labels, &rows, None)?, take(&self.features, &rows, None)?))
    }
}
