//! Bounds, vectors that come late, and row numbers: how rows are cut does not matter.

use crate::error::{ErrorKind, Result};
use crate::models::{GroupedTrainer, Model, Registry, Trainer};
use crate::store;
use arrow::array::{
    Array, ArrayRef, FixedSizeListBuilder, Float64Array, Float64Builder, ListBuilder,
    StringBuilder, StructArray,
};
use std::sync::Arc;

fn lists<S: AsRef<str>>(rows: &[&[Option<S>]]) -> ArrayRef {
    let mut builder = ListBuilder::new(StringBuilder::new());
    rows.iter().for_each(|row| builder.append_value(row.iter().map(Option::as_ref)));
    Arc::new(builder.finish())
}

/// One row with these tokens and label `a`.
fn row(tokens: &[&str]) -> (ArrayRef, ArrayRef) {
    let tokens: Vec<Option<&str>> = tokens.iter().copied().map(Some).collect();
    (lists(&[&[Some("a")]]), lists(&[&tokens]))
}

fn observe(trainer: &mut Trainer, tokens: &[&str]) -> Result<()> {
    let (labels, features) = row(tokens);
    trainer.observe(&labels, &features)
}

#[test]
fn a_batch_over_the_bound_leaves_no_trace() {
    let mut trainer = Trainer::try_new(&Registry::default(), "naibx(max_features=3)").unwrap();
    observe(&mut trainer, &["p", "q"]).unwrap();
    let error = observe(&mut trainer, &["s", "t"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    let text = "there are 4 features, more than max_features=3 allows: raise it or use fewer";
    assert!(error.to_string().starts_with(text), "{error}");
    observe(&mut trainer, &["p"]).unwrap();
    observe(&mut trainer, &["r"]).unwrap();
    let model = trainer.finish().unwrap();
    assert_eq!((model.rows(), model.space().features.sparse_len()), (3, 3));
}

fn numbers(columns: usize) -> ArrayRef {
    let column = |i: usize| -> (String, ArrayRef) {
        (format!("f{i}"), Arc::new(Float64Array::from(vec![1.0, 2.0])))
    };
    let columns: Vec<(String, ArrayRef)> = (0..columns).map(column).collect();
    let columns: Vec<(&str, ArrayRef)> =
        columns.iter().map(|(name, array)| (name.as_str(), Arc::clone(array))).collect();
    Arc::new(StructArray::try_from(columns).unwrap())
}

#[test]
fn columns_count_as_features() {
    let labels = lists(&[&[Some("a")], &[Some("b")]]);
    let registry = Registry::default();
    let (algorithm, spec) = registry.resolve("naibx(max_features=2)").unwrap();
    for (columns, fits) in [(2, true), (3, false)] {
        let features = numbers(columns);
        let mut trainer = Trainer::start(algorithm, spec.clone()).unwrap();
        assert_eq!(trainer.observe(&labels, &features).is_ok(), fits);
        let mut grouped = GroupedTrainer::try_new(algorithm, spec.clone()).unwrap();
        grouped.grow(1);
        assert_eq!(grouped.observe(&labels, &features, None, &[0, 0]).is_ok(), fits);
    }
}

const WIDTH: usize = 2;

/// The vectors of rows `from..to`; only every third row from row 5 on has one.
fn vector(i: usize) -> Option<[f64; WIDTH]> {
    (i >= 5 && i.is_multiple_of(3)).then_some([i as f64, (i * i % 7) as f64])
}

fn vectors(fixed: bool) -> ArrayRef {
    let mut list = ListBuilder::new(Float64Builder::new());
    let mut array = FixedSizeListBuilder::new(Float64Builder::new(), WIDTH as i32);
    for i in 0..20 {
        list.append_option(vector(i).map(|v| v.map(Some)));
        array.values().append_slice(&vector(i).unwrap_or([0.0; WIDTH]));
        array.append(vector(i).is_some());
    }
    if fixed { Arc::new(array.finish()) } else { Arc::new(list.finish()) }
}

fn table(fixed: bool) -> (ArrayRef, ArrayRef) {
    let x: ArrayRef = Arc::new(Float64Array::from_iter_values((0..20).map(|i| (i % 6) as f64)));
    let features = StructArray::try_from(vec![("x", x), ("v", vectors(fixed))]).unwrap();
    let names: Vec<[Option<&str>; 1]> = (0..20).map(|i| [Some(["a", "b"][i % 2])]).collect();
    (lists(&names.iter().map(|n| &n[..]).collect::<Vec<_>>()), Arc::new(features))
}

fn learned(fixed: bool, cuts: &[usize]) -> Model {
    let (labels, features) = table(fixed);
    let mut trainer = Trainer::try_new(&Registry::default(), "mlknn(k=3)").unwrap();
    for w in cuts.windows(2) {
        let len = w[1] - w[0];
        trainer.observe(&labels.slice(w[0], len), &features.slice(w[0], len)).unwrap();
    }
    trainer.finish().unwrap()
}

#[test]
fn vectors_may_be_null_in_the_first_rows() {
    let whole = store::to_bytes(&learned(false, &[0, 20])).unwrap();
    for fixed in [false, true] {
        for cuts in [&[0, 20][..], &[0, 3, 6, 20], &[0, 5, 20], &[0, 1, 2, 3, 4, 5, 6, 7, 20]] {
            let model = learned(fixed, cuts);
            assert_eq!(model.rows(), 20);
            assert_eq!(store::to_bytes(&model).unwrap(), whole, "{fixed} {cuts:?}");
        }
    }
}

#[test]
fn vectors_may_be_null_in_all_rows() {
    let (labels, features) = table(false);
    let mut trainer = Trainer::try_new(&Registry::default(), "naibx").unwrap();
    trainer.observe(&labels.slice(0, 3), &features.slice(0, 3)).unwrap();
    let model = trainer.finish().unwrap();
    assert_eq!((model.rows(), model.space().features.dense_len()), (3, 1));
    model.predict(&features).unwrap();
    trainer.observe(&labels.slice(3, 17), &features.slice(3, 17)).unwrap();
    assert_eq!(trainer.finish().unwrap().space().features.dense_len(), 1 + WIDTH);
}

#[test]
fn groups_wait_for_vectors_too() {
    let (labels, features) = table(false);
    let (algorithm, spec) = Registry::default().resolve("naibx").unwrap();
    let mut grouped = GroupedTrainer::try_new(algorithm, spec).unwrap();
    assert!(grouped.must_wait(&features.slice(0, 5)).unwrap());
    assert!(!grouped.must_wait(&features).unwrap());
    grouped.grow(2);
    let groups: Vec<usize> = (0..20).map(|i| i / 10).collect();
    grouped.observe(&labels, &features, None, &groups).unwrap();
    assert!(!grouped.must_wait(&features.slice(0, 5)).unwrap());
    for trainer in grouped.take(2).into_iter().flatten() {
        assert_eq!(trainer.finish().unwrap().space().features.dense_len(), 1 + WIDTH);
    }
}

#[test]
fn a_row_is_counted_over_all_batches() {
    let mut trainer = Trainer::try_new(&Registry::default(), "naibx").unwrap();
    let rows = 8192;
    let good: Vec<&[Option<&str>]> = vec![&[Some("a")]; rows];
    let mut bad = good.clone();
    bad[10_000 - rows] = &[Some("a"), None];
    let x: ArrayRef = Arc::new(Float64Array::from_iter_values((0..rows).map(|i| i as f64)));
    let features: ArrayRef = Arc::new(StructArray::try_from(vec![("x", x)]).unwrap());
    // Rows without weight count as rows.
    let weights: ArrayRef =
        Arc::new(Float64Array::from_iter_values((0..rows).map(|i| f64::from(i % 2 == 0))));
    trainer.observe_weighted(&lists(&good), &features, Some(&weights)).unwrap();
    let error = trainer.observe_weighted(&lists(&bad), &features, Some(&weights)).unwrap_err();
    assert!(
        error.to_string().contains("label list of row 10000 holds a NULL, [a, NULL]"),
        "{error}"
    );
}
