//! What the conformance suite cannot say: values, and the searches against enumeration.

mod agreement;
mod behaviour;
mod edges;
mod ensembles;
mod search;
mod thresholds;

use crate::models::{Model, Registry, Trainer};
use arrow::array::{
    Array, ArrayRef, Float64Array, Float64Builder, ListBuilder, MapBuilder, StringBuilder,
    StructArray, UInt32Array,
};
use arrow::compute::take;
use std::sync::Arc;

/// Label lists, one text of letters per row.
fn label_lists<'a>(rows: impl IntoIterator<Item = Vec<&'a str>>) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    rows.into_iter().for_each(|row| lists.append_value(row.into_iter().map(Some)));
    Arc::new(lists.finish())
}

/// Columns `x0`, `x1`, ... of numbers.
fn numbers(columns: &[Vec<f64>]) -> ArrayRef {
    let column = |(i, values): (usize, &Vec<f64>)| {
        (format!("x{i:02}"), Arc::new(Float64Array::from(values.clone())) as ArrayRef)
    };
    let named: Vec<(String, ArrayRef)> = columns.iter().enumerate().map(column).collect();
    let named: Vec<(&str, ArrayRef)> =
        named.iter().map(|(n, a)| (n.as_str(), Arc::clone(a))).collect();
    Arc::new(StructArray::try_from(named).unwrap())
}

/// Maps from `s0`, `s1`, ... to the values that are not zero.
fn maps(rows: &[Vec<f64>]) -> ArrayRef {
    let mut builder = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
    for row in rows {
        for (i, &value) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
            builder.keys().append_value(format!("s{i}"));
            builder.values().append_value(value);
        }
        builder.append(true).unwrap();
    }
    Arc::new(builder.finish())
}

fn trainer(spec: &str, labels: &ArrayRef, features: &ArrayRef) -> Trainer {
    let mut trainer = Trainer::try_new(&Registry::default(), spec).unwrap();
    trainer.observe(labels, features).unwrap();
    trainer
}

fn train(spec: &str, labels: &ArrayRef, features: &ArrayRef) -> Model {
    trainer(spec, labels, features).finish().unwrap()
}

/// Log-odds of every label for every row.
fn log_odds(model: &Model, features: &ArrayRef) -> Vec<f64> {
    let mut scores = Vec::new();
    model.scorer().unwrap().score(&model.read(features).unwrap(), &mut scores).unwrap();
    scores
}

/// The predicted labels of every row.
fn predicted(model: &Model, features: &ArrayRef) -> Vec<Vec<String>> {
    let lists = model.predict(features).unwrap();
    let texts = |row: Option<ArrayRef>| {
        let row = row.unwrap();
        let texts = row.as_any().downcast_ref::<arrow::array::StringArray>().unwrap();
        texts.iter().flatten().map(str::to_string).collect()
    };
    lists.iter().map(texts).collect()
}

fn slice(array: &ArrayRef, rows: impl IntoIterator<Item = u32>) -> ArrayRef {
    take(array, &UInt32Array::from_iter_values(rows), None).unwrap()
}

/// A number in [0, 1) from `i`, without pattern.
fn noise(i: u64) -> f64 {
    let x = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((x ^ (x >> 27)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Rows whose `labels` labels depend on four numbers and on each other.
fn dependent(rows: usize, labels: usize) -> (ArrayRef, ArrayRef) {
    let names: Vec<String> = (0..labels).map(|y| format!("l{y:02}")).collect();
    let columns: Vec<Vec<f64>> = (0..4u64)
        .map(|d| (0..rows as u64).map(|r| 4.0 * noise(r * 4 + d) - 2.0).collect())
        .collect();
    let sets = (0..rows).map(|r| {
        let mut set: Vec<&str> = Vec::new();
        let mut last = false;
        for (y, name) in names.iter().enumerate() {
            let pull = if last { 1.0 } else { -0.4 };
            let score = columns[y % 4][r] * if y % 3 == 0 { 1.2 } else { -0.8 } + pull;
            last = noise((r * labels + y) as u64 + 1_000_000) < crate::math::sigmoid(1.5 * score);
            if last {
                set.push(name);
            }
        }
        set
    });
    (label_lists(sets.collect::<Vec<_>>()), numbers(&columns))
}
