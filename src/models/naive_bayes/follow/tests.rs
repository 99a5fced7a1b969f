//! Followed parameters against those fitted anew after every row.

use super::super::predict::Cascade;
use super::*;
use crate::data::generate::{Generator, GeneratorOptions};
use crate::models::{Registry, Trainer};
use arrow::array::{ArrayRef, AsArray, Float64Array, StructArray};
use arrow::datatypes::Float64Type;
use std::sync::Arc;

const ROWS: u64 = 400;

/// Generated labels, and features changed by `change(row, feature, value)`.
fn table(change: impl Fn(usize, usize, f64) -> Option<f64>) -> (ArrayRef, ArrayRef) {
    let shape = GeneratorOptions { rows: ROWS, features: 13, labels: 9, cardinality: 2.0, seed: 3 };
    let batch = Generator::try_new(shape).unwrap().batches(400).next().unwrap().unwrap();
    let column = |d: usize| -> (String, ArrayRef) {
        let name = format!("f{d}");
        let values = batch.column_by_name(&name).unwrap().as_primitive::<Float64Type>().clone();
        let changed = (0..values.len()).map(|row| change(row, d, values.value(row)));
        (name, Arc::new(changed.collect::<Float64Array>()))
    };
    let columns: Vec<(String, ArrayRef)> = (0..13).map(column).collect();
    let named = columns.iter().map(|(name, array)| (name.as_str(), Arc::clone(array)));
    let features = StructArray::try_from(named.collect::<Vec<_>>()).unwrap();
    (Arc::clone(batch.column_by_name("labels").unwrap()), Arc::new(features))
}

/// The scores of the labels that were seen agree up to a constant of the row.
fn assert_equal(found: &[f64], expected: &[f64], what: &str) {
    let mut first = None;
    for (f, e) in found.iter().zip(expected).filter(|(f, _)| f.is_finite()) {
        let shift = *first.get_or_insert(f - e);
        let scale = f.abs().max(e.abs()).max(1.0);
        assert!((f - e - shift).abs() <= 1e-9 * scale, "{what}: {found:?} for {expected:?}");
    }
}

/// Follows every row and compares with parameters fitted anew; returns how often nothing was pooled.
fn follow((labels, features): (ArrayRef, ArrayRef)) -> usize {
    let (algorithm, spec) = Registry::default().resolve("naibx").unwrap();
    let mut trainer = Trainer::start_in_order(algorithm, spec).unwrap();
    trainer.read(&labels, &features, None).unwrap();
    let mut followed: Option<Followed> = None;
    let (mut row, mut expected, mut added) = (Rows::default(), Vec::new(), 0);
    for i in 0..ROWS as usize {
        trainer.buffer().copy_row(i, &mut row);
        if let Some(followed) = &mut followed {
            let (learner, order) = (trainer.learner(), LabelId::all(9).collect::<Vec<_>>());
            let mut sets = LabelSets::default();
            followed.predict(&row, learner, &order, &mut sets).unwrap();
            followed.write_scores(row.dense_missing);
            let cascade = Cascade::fit(same_kind(learner).unwrap(), trainer.space());
            let mut sizes = Vec::new();
            cascade.label_and_size_scores(&row, 0..1, &mut expected, &mut sizes);
            assert_equal(&followed.label_scores, &expected, &format!("labels, row {i}"));
            followed.size.by_features(&mut followed.size_scores);
            assert_equal(&followed.size_scores, &sizes, &format!("sizes, row {i}"));
            added += usize::from(followed.all.was_added_to());
        }
        trainer.learn(&row).unwrap();
        let (learner, space) = (trainer.learner(), trainer.space());
        match &mut followed {
            Some(followed) => followed.learned(&row, learner, space).unwrap(),
            None => followed = Followed::start(same_kind(learner).unwrap(), space),
        }
    }
    added
}

#[test]
fn scores_are_those_of_parameters_fitted_anew() {
    let added = follow(table(|_, _, x| Some(x)));
    assert!(added > 30, "rows were added without pooling {added} times only");
}

#[test]
fn scores_agree_where_groups_lean_on_all_rows() {
    follow(table(|_, d, x| Some(if d == 2 { 3.0 } else { x })));
    follow(table(|row, d, x| Some(if d == 1 && row < 200 { 0.25 } else { x })));
}

#[test]
fn scores_agree_with_missing_and_far_values() {
    follow(table(|row, d, x| (row % 7 != d % 7).then_some(x)));
    follow(table(|row, d, x| (row < 390 || d > 3).then_some(x)));
    follow(table(|row, d, x| Some(if row % 90 == 89 && d == 4 { 1e10 } else { x })));
    follow(table(|_, _, x| Some(x * 1e-6 + 1e3)));
}
