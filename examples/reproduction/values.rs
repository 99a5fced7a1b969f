//! The features of a batch one value at a time, whichever way the file keeps them.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type};
use arrow::record_batch::RecordBatch;
use labelflow::data::{FeatureId, Vocabulary};
use labelflow::{Error, Result};

/// Shows row, feature and value of all columns but the labels, and of the entries of maps; flags are 0
/// and 1, missing values 0. Features that `names` does not know are added to it.
pub fn each_value(
    batch: &RecordBatch,
    names: &mut Vocabulary<FeatureId>,
    mut show: impl FnMut(usize, FeatureId, f64),
) -> Result<()> {
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        if field.name() == "labels" {
            continue;
        }
        if let Some(map) = column.as_map_opt() {
            let (keys, values) = (map.keys().as_string::<i32>(), numbers(map.values())?);
            for (row, ends) in map.value_offsets().windows(2).enumerate() {
                let entries = ends[0] as usize..ends[1] as usize;
                for (entry, &value) in entries.clone().zip(&values[entries]) {
                    show(row, names.intern(keys.value(entry)), value);
                }
            }
            continue;
        }
        let feature = names.intern(field.name());
        let values = numbers(column)?;
        values.into_iter().enumerate().for_each(|(row, value)| show(row, feature, value));
    }
    Ok(())
}

fn numbers(column: &ArrayRef) -> Result<Vec<f64>> {
    match column.data_type() {
        DataType::Float64 => {
            Ok(column.as_primitive::<Float64Type>().iter().map(|x| x.unwrap_or(0.0)).collect())
        }
        DataType::Boolean => {
            Ok(column.as_boolean().iter().map(|x| f64::from(x.unwrap_or(false))).collect())
        }
        other => Err(Error::data(format!("a column of {other} is no number"))),
    }
}
