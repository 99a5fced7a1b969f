//! The columns of a batch as labels and features.

use crate::data::plain_type;
use crate::error::{Error, Result};
use arrow::array::{Array, ArrayRef, StructArray};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use std::sync::Arc;

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
        plain_type(data_type),
        DataType::Struct(_)
            | DataType::Map(..)
            | DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
    )
}
