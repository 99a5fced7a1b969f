//! Arrays without the encodings that only save space.

use crate::error::Result;
use arrow::array::{Array, ArrayRef};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use std::sync::Arc;

/// The type of the values of `data_type`: dictionaries and runs are taken off.
pub(crate) fn plain_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, value) => plain_type(value),
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type()),
        other => other,
    }
}

/// `array` without dictionaries and runs around its values.
///
/// # Cost
///
/// Nothing for an array that has neither, else a copy of the values.
pub(crate) fn plain(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Dictionary(..) | DataType::RunEndEncoded(..) => {
            // A dictionary of runs, or runs of a dictionary, is unpacked layer by layer.
            let inner = match array.data_type() {
                DataType::Dictionary(_, value) => value.as_ref().clone(),
                DataType::RunEndEncoded(_, values) => values.data_type().clone(),
                other => other.clone(),
            };
            plain(&cast(array, &inner)?)
        }
        _ => Ok(Arc::clone(array)),
    }
}
