//! What two models know, number by number.

use super::subject::{ensure, text};
use crate::error::Result;
use crate::models::Model;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type};

/// How far moments may be apart, in units of the largest number of their field.
const TOLERANCE: f64 = 1e-12;

/// Whether the statistics of two models are the same: names and counts equal, moments to 1e-12.
///
/// The states are compared field by field. Numbers of a field may differ by 1e-12 of the largest
/// among them, which no count does.
///
/// # Errors
///
/// The field that differs.
pub fn same_states(a: &Model, b: &Model) -> Result<(), String> {
    ensure(a.rows() == b.rows(), || format!("{} rows seen against {}", a.rows(), b.rows()))?;
    ensure(a.space() == b.space(), || "labels or features differ".to_string())?;
    let state = |model: &Model| -> Result<ArrayRef, String> {
        Ok(std::sync::Arc::new(model.learner().encode().map_err(text)?))
    };
    same_arrays("state", &state(a)?, &state(b)?)
}

fn same_arrays(path: &str, a: &ArrayRef, b: &ArrayRef) -> Result<(), String> {
    ensure(a.data_type() == b.data_type() && a.len() == b.len(), || {
        let of = |array: &ArrayRef| format!("{} of type {}", array.len(), array.data_type());
        format!("`{path}` has {} against {}", of(a), of(b))
    })?;
    match a.data_type() {
        DataType::Struct(fields) => {
            for (i, field) in fields.iter().enumerate() {
                let path = format!("{path}.{}", field.name());
                same_arrays(&path, a.as_struct().column(i), b.as_struct().column(i))?;
            }
            Ok(())
        }
        DataType::List(_) => {
            let (a, b) = (a.as_list::<i32>(), b.as_list::<i32>());
            ensure(a.offsets() == b.offsets(), || {
                format!("the lists of `{path}` differ in length")
            })?;
            same_arrays(path, a.values(), b.values())
        }
        DataType::Float64 => {
            let (a, b) = (a.as_primitive::<Float64Type>(), b.as_primitive::<Float64Type>());
            let largest = a.values().iter().fold(0.0, |max: f64, v| max.max(v.abs()));
            let missing = |a: f64, b: f64| a.is_nan() && b.is_nan();
            let near =
                |a: f64, b: f64| a == b || missing(a, b) || (a - b).abs() <= TOLERANCE * largest;
            let apart = a.values().iter().zip(b.values()).find(|(a, b)| !near(**a, **b));
            ensure(apart.is_none() && a.nulls() == b.nulls(), || {
                format!("a number of `{path}` differs: {apart:?}, the largest is {largest}")
            })
        }
        _ => ensure(a == b, || format!("`{path}` differs")),
    }
}
