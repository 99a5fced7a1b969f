//! Whether two models know the same: counts exactly, moments to 1e-12.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StructArray};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use labelflow::models::Model;

/// How far moments may be apart, as a part of the larger of them, or of one.
const TOLERANCE: f64 = 1e-12;

/// Fails, with `what`, unless both models have learned the same from as many rows.
#[track_caller]
pub(crate) fn assert_same_state(model: &Model, reference: &Model, what: &str) {
    assert_eq!(model.rows(), reference.rows(), "{what}");
    assert_eq!(model.spec(), reference.spec(), "{what}");
    assert_eq!(model.space(), reference.space(), "{what}");
    let state = |model: &Model| model.learner().encode().unwrap().to_array().unwrap();
    let (mut counts, mut moments) = (0, 0);
    compare(&state(model), &state(reference), "state", &mut counts, &mut moments)
        .unwrap_or_else(|difference| panic!("{what}: {difference}"));
    assert!(counts > 0 && moments > 0, "{what}: a state has counts and moments");
}

/// Compares all columns, and counts the values that are counts and those that are moments.
fn compare(
    a: &StructArray,
    b: &StructArray,
    path: &str,
    counts: &mut usize,
    moments: &mut usize,
) -> Result<(), String> {
    if a.fields() != b.fields() {
        return Err(format!("{path}: {:?} and {:?}", a.fields(), b.fields()));
    }
    for ((field, a), b) in a.fields().iter().zip(a.columns()).zip(b.columns()) {
        let path = format!("{path}.{}", field.name());
        match field.data_type() {
            DataType::Struct(_) => {
                compare(a.as_struct(), b.as_struct(), &path, counts, moments)?;
            }
            DataType::List(item)
                if item.data_type() == &DataType::Float64 && is_moment(field.name()) =>
            {
                *moments += near(a, b, &path)?;
            }
            DataType::List(_) => {
                same(&a.as_list::<i32>().value(0), &b.as_list::<i32>().value(0), &path)?;
                *counts += a.as_list::<i32>().value(0).len();
            }
            _ => {
                same(a, b, &path)?;
                *counts += a.len();
            }
        }
    }
    Ok(())
}

/// Means and sums of squares.
fn is_moment(name: &str) -> bool {
    name.contains("mean") || name.contains("m2") || name.contains("square")
}

/// Equal in every element.
fn same(a: &ArrayRef, b: &ArrayRef, path: &str) -> Result<(), String> {
    if a.len() != b.len() {
        return Err(format!("{path}: {} and {} values", a.len(), b.len()));
    }
    // The debug output of Arrow leaves out elements in the middle: only arrays tell.
    match (0..a.len()).find(|&i| a.slice(i, 1) != b.slice(i, 1)) {
        Some(i) => Err(format!("{path}[{i}]: {:?} and {:?}", a.slice(i, 1), b.slice(i, 1))),
        None => Ok(()),
    }
}

/// How many moments there are, if all are near.
fn near(a: &ArrayRef, b: &ArrayRef, path: &str) -> Result<usize, String> {
    let (a, b) = (a.as_list::<i32>().value(0), b.as_list::<i32>().value(0));
    let (a, b) = (a.as_primitive::<Float64Type>(), b.as_primitive::<Float64Type>());
    if a.len() != b.len() {
        return Err(format!("{path}: {} and {} moments", a.len(), b.len()));
    }
    let far = |(a, b): (f64, f64)| {
        let distance = (a - b).abs();
        // Not a number is far from everything.
        distance.is_nan() || distance > TOLERANCE * a.abs().max(b.abs()).max(1.0)
    };
    match (0..a.len()).find(|&i| far((a.value(i), b.value(i)))) {
        Some(i) => Err(format!("{path}[{i}]: {} and {}", a.value(i), b.value(i))),
        None => Ok(a.len()),
    }
}

mod tests {
    use super::*;
    use datafusion::arrow::array::{Float64Array, ListArray, UInt32Array};
    use datafusion::arrow::buffer::OffsetBuffer;
    use datafusion::arrow::datatypes::Field;
    use std::sync::Arc;

    const LEN: usize = 50;

    fn list(values: ArrayRef) -> ArrayRef {
        let field = Arc::new(Field::new_list_field(values.data_type().clone(), false));
        let offsets = OffsetBuffer::from_lengths([values.len()]);
        Arc::new(ListArray::new(field, offsets, values, None))
    }

    fn structure(columns: Vec<(&str, ArrayRef)>) -> StructArray {
        let column = |(name, array): (&str, ArrayRef)| {
            (Arc::new(Field::new(name, array.data_type().clone(), false)), array)
        };
        StructArray::from(columns.into_iter().map(column).collect::<Vec<_>>())
    }

    /// A state of 50 rows, counts and means, with something added in the middle of one of them.
    fn state(row: u32, n: f64, mean: f64) -> StructArray {
        let middle = |i: usize| f64::from(u8::from(i == LEN / 2));
        let rows = (0..LEN).map(|i| i as u32 + row * middle(i) as u32);
        let weights = (0..LEN).map(|i| i as f64 + n * middle(i));
        let means = (0..LEN).map(|i| 0.5 * i as f64 + mean * middle(i));
        let inner = structure(vec![
            ("n", list(Arc::new(Float64Array::from_iter_values(weights)))),
            ("mean", list(Arc::new(Float64Array::from_iter_values(means)))),
        ]);
        structure(vec![
            ("row", list(Arc::new(UInt32Array::from_iter_values(rows)))),
            ("dense", Arc::new(inner)),
        ])
    }

    fn found(a: &StructArray, b: &StructArray) -> Result<(usize, usize), String> {
        let (mut counts, mut moments) = (0, 0);
        compare(a, b, "state", &mut counts, &mut moments).map(|()| (counts, moments))
    }

    #[test]
    fn an_element_in_the_middle_that_differs_is_found() {
        let reference = state(0, 0.0, 0.0);
        assert_eq!(found(&reference, &reference), Ok((2 * LEN, LEN)));
        // Moments may differ in the last digits, counts may not.
        assert_eq!(found(&state(0, 0.0, 1e-12), &reference), Ok((2 * LEN, LEN)));
        for (other, place) in [
            (state(1, 0.0, 0.0), "state.row[25]"),
            (state(0, 1e-12, 0.0), "state.dense.n[25]"),
            (state(0, 0.0, 1e-9), "state.dense.mean[25]"),
            (state(0, 0.0, f64::NAN), "state.dense.mean[0]"),
        ] {
            let difference = found(&other, &reference).unwrap_err();
            assert!(difference.starts_with(place), "{difference}");
        }
    }
}
