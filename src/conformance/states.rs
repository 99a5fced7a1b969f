//! What two models know, number by number.

use super::subject::{ensure, text};
use crate::error::Result;
use crate::models::Model;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type};

/// How far moments, and counts that are not whole, may be apart, relative to themselves.
const TOLERANCE: f64 = 1e-12;

/// Whether the statistics of two models are the same: names and counts equal, moments to 1e-12.
///
/// The states are compared field by field and number by number. A weight, mean and sum of squares
/// that belong together are compared together.
///
/// # Errors
///
/// The field that differs.
pub fn same_states(a: &Model, b: &Model) -> Result<(), String> {
    ensure(a.rows() == b.rows(), || format!("{} rows seen against {}", a.rows(), b.rows()))?;
    ensure(a.space() == b.space(), || "labels or features differ".to_string())?;
    let state = |model: &Model| -> Result<ArrayRef, String> {
        let state = model.learner().encode().and_then(|state| state.to_array());
        Ok(std::sync::Arc::new(state.map_err(text)?))
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
            let moments = ["n", "mean", "m2"].map(|name| numbers(a, name).zip(numbers(b, name)));
            if let [Some(n), Some(mean), Some(m2)] = moments {
                same_moments(path, n, mean, m2)?;
            }
            for (i, field) in fields.iter().enumerate() {
                if moments.iter().all(Option::is_some)
                    && matches!(field.name().as_str(), "n" | "mean" | "m2")
                {
                    continue;
                }
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
            let apart = a.values().iter().zip(b.values()).find(|(a, b)| !same_count(**a, **b));
            ensure(apart.is_none() && a.nulls() == b.nulls(), || {
                format!("a number of `{path}` differs: {apart:?}")
            })
        }
        _ => ensure(a == b, || format!("`{path}` differs")),
    }
}

/// Whole counts are equal; sums of other weights depend on their order in the last digits.
fn same_count(a: f64, b: f64) -> bool {
    let whole = a.fract() == 0.0 && b.fract() == 0.0;
    a == b || (a.is_nan() && b.is_nan()) || (!whole && (a - b).abs() <= TOLERANCE * a.abs())
}

/// The numbers of the list `name` of a state.
fn numbers<'a>(state: &'a ArrayRef, name: &str) -> Option<&'a [f64]> {
    let list = state.as_struct().column_by_name(name)?.as_list_opt::<i32>()?;
    Some(list.values().as_primitive_opt::<Float64Type>()?.values())
}

type Pair<'a> = (&'a [f64], &'a [f64]);

fn same_moments(path: &str, n: Pair, mean: Pair, m2: Pair) -> Result<(), String> {
    let lengths = [n.0, n.1, mean.0, mean.1, m2.0, m2.1].map(<[f64]>::len);
    ensure(lengths.iter().all(|len| *len == lengths[0]), || {
        format!("the moments of `{path}` differ in number: {lengths:?}")
    })?;
    for i in 0..n.0.len() {
        let (size, about, squares) = (n.0[i], mean.0[i], m2.0[i]);
        let sd = (squares / size.max(1.0)).sqrt();
        // A mean that is off by its tolerance adds this to the sum of squares.
        let shifted = size * (TOLERANCE * about).powi(2);
        let same = same_count(size, n.1[i])
            && (about - mean.1[i]).abs() <= TOLERANCE * (about.abs() + sd)
            && (squares - m2.1[i]).abs() <= TOLERANCE * squares + shifted;
        ensure(same, || {
            let other = (n.1[i], mean.1[i], m2.1[i]);
            format!(
                "moment {i} of `{path}` differs: {:?} against {other:?}",
                (size, about, squares)
            )
        })?;
    }
    Ok(())
}
