//! Lazy learners against brute force, and what the common suite cannot say.

mod behaviour;
mod brute;

use super::fit::Lazy;
use super::search::Blocks;
use crate::data::{LabelId, LabelSets};
use crate::math::sigmoid;
use crate::models::{Learner, Model, Registry, Scorer, Trainer};
use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Float64Array, ListBuilder, StringArray, StringBuilder,
    StructArray,
};
use brute::Brute;
use std::sync::Arc;

/// A fixed sequence that looks random (SplitMix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 11) as usize % n
    }

    fn unless<T>(&mut self, one_in: usize, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if one_in > 0 && self.below(one_in) == 0 { None } else { Some(value(self)) }
    }
}

/// A row of these tests; `None` is NULL.
#[derive(Debug, Clone)]
struct Row {
    x: [Option<f64>; 3],
    flag: Option<bool>,
    city: Option<usize>,
    words: Option<Vec<usize>>,
    labels: Vec<usize>,
}

/// Rows on a coarse grid, so that distances are often equal, and some of them twice or more.
fn grid(dice: &mut Dice, len: usize, missing: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    while rows.len() < len {
        if dice.below(4) == 0 && !rows.is_empty() {
            let again = rows[dice.below(rows.len())].clone();
            rows.push(again);
            continue;
        }
        let x = [0, 1, 2].map(|_| dice.unless(missing, |d| d.below(5) as f64 / 4.0));
        // Most rows have the flag, few a word: both ways of listing them.
        let flag = dice.unless(missing, |d| d.below(4) > 0);
        let city = dice.unless(missing, |d| d.below(3));
        let words = dice.unless(missing, |d| (0..d.below(3)).map(|_| d.below(4)).collect());
        let labels = (0..4).filter(|&y| dice.below(3) == 0 || x[0] == Some(y as f64 / 4.0));
        rows.push(Row { x, flag, city, words, labels: labels.collect() });
    }
    // The ends of the grid, so that scaling is by whole powers of two.
    for (row, end) in [0.0, 1.0].into_iter().enumerate() {
        rows[row].x = [Some(end); 3];
    }
    rows
}

/// Which columns a table has.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Columns {
    Dense,
    Sparse,
    Categories,
    Mixed,
}

fn features(rows: &[Row], columns: Columns) -> ArrayRef {
    let x = |i: usize| Arc::new(rows.iter().map(|r| r.x[i]).collect::<Float64Array>()) as ArrayRef;
    let flag: ArrayRef = Arc::new(rows.iter().map(|r| r.flag).collect::<BooleanArray>());
    let city = |i: usize| -> ArrayRef {
        let name =
            |r: &Row| r.city.map(|c| ["oslo", "paris", "rome"][(c + i * r.labels.len()) % 3]);
        Arc::new(rows.iter().map(name).collect::<StringArray>())
    };
    let mut words = ListBuilder::new(StringBuilder::new());
    for row in rows {
        let names =
            row.words.as_ref().map(|w| w.iter().map(|w| Some(["ant", "bee", "cat", "dog"][*w])));
        words.append_option(names);
    }
    let words: ArrayRef = Arc::new(words.finish());
    let named = match columns {
        Columns::Dense => vec![("x0", x(0)), ("x1", x(1)), ("x2", x(2))],
        Columns::Sparse => vec![("flag", flag), ("words", words)],
        Columns::Categories => vec![("a", city(0)), ("b", city(1))],
        Columns::Mixed => {
            vec![("x0", x(0)), ("x1", x(1)), ("flag", flag), ("a", city(0)), ("words", words)]
        }
    };
    Arc::new(StructArray::try_from(named).unwrap())
}

fn labels(rows: &[Row]) -> ArrayRef {
    let mut b = ListBuilder::new(StringBuilder::new());
    rows.iter().for_each(|r| b.append_value(r.labels.iter().map(|y| Some(format!("l{y}")))));
    Arc::new(b.finish())
}

fn train(spec: &str, rows: &[Row], columns: Columns) -> Model {
    let mut trainer = Trainer::try_new(&Registry::default(), spec).unwrap();
    trainer.observe(&labels(rows), &features(rows, columns)).unwrap();
    trainer.finish().unwrap()
}

fn state(model: &Model) -> &Lazy {
    model.learner().as_any().downcast_ref().unwrap()
}

/// Label numbers and probabilities, row by row.
type Answers = Vec<(Vec<LabelId>, Vec<f64>)>;

fn answers(model: &Model, features: &ArrayRef) -> Answers {
    said(&*model.scorer().unwrap(), model, features)
}

/// What the parameters `scorer` of `model` say.
fn said(scorer: &dyn Scorer, model: &Model, features: &ArrayRef) -> Answers {
    let rows = model.read(features).unwrap();
    let labels = model.space().labels.len();
    let (mut sets, mut scores) = (LabelSets::default(), Vec::new());
    scorer.predict(&rows, &mut sets).unwrap();
    scorer.score(&rows, &mut scores).unwrap();
    assert!(scores.iter().all(|s| s.is_finite()));
    let scores = scores.chunks_exact(labels).map(|s| s.iter().map(|&s| sigmoid(s)).collect());
    sets.iter().map(<[LabelId]>::to_vec).zip(scores).collect()
}

/// What the definition says.
fn defined(model: &Model, queries: &ArrayRef) -> Answers {
    let table = state(model).store.table();
    let rows = table.repeated();
    let brute = Brute {
        rows: &rows,
        params: state(model).params,
        labels: model.space().labels.len(),
        sparse: model.space().features.sparse_len(),
    };
    brute.answers(&model.read(queries).unwrap())
}

#[track_caller]
fn assert_same(found: &Answers, expected: &Answers, what: &dyn std::fmt::Display) {
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found.0, expected.0, "{what} query {i}: {found:?} {expected:?}");
        for (a, b) in found.1.iter().zip(&expected.1) {
            assert!((a - b).abs() < 1e-9, "{what} query {i}: {found:?} {expected:?}");
        }
    }
}

/// Whether the model says what its definition says.
#[track_caller]
fn agrees_with_brute_force(model: &Model, queries: &ArrayRef) {
    assert_same(&answers(model, queries), &defined(model, queries), model.spec());
}

const METHODS: [&str; 5] = ["brknn", "brknn_a", "brknn_b", "lpknn", "mlknn"];

#[test]
fn brute_force_with_many_ties() {
    let mut dice = Dice(7);
    for columns in [Columns::Dense, Columns::Sparse, Columns::Categories, Columns::Mixed] {
        for (round, missing) in [(0, 0), (1, 6), (2, 0), (3, 3)] {
            let (rows, queries) = (grid(&mut dice, 60, missing), grid(&mut dice, 25, missing));
            let queries = features(&queries, columns);
            for method in METHODS {
                let k = [1, 2, 5, 8][(round + method.len()) % 4];
                let model = train(&format!("{method}(k={k})"), &rows, columns);
                agrees_with_brute_force(&model, &queries);
                agrees_with_brute_force(&model, &features(&rows, columns));
            }
        }
    }
}

#[test]
fn brute_force_of_other_distances_and_weights() {
    let mut dice = Dice(11);
    let options = [
        "distance=manhattan",
        "distance=manhattan, weight=distance, scale=none",
        "distance=cosine, scale=none",
        "distance=cosine",
        "weight=distance",
        "scale=standard, weight=distance",
        "scale=none",
    ];
    for columns in [Columns::Dense, Columns::Sparse, Columns::Mixed] {
        for option in options {
            // Real scales and weights differ in their last digits: no ties wanted there.
            let exact = !option.contains("weight") && !option.contains("standard");
            let missing = if exact { 5 } else { 0 };
            let (mut rows, mut queries) =
                (grid(&mut dice, 40, missing), grid(&mut dice, 12, missing));
            if !exact {
                let x = rows.iter_mut().chain(&mut queries).flat_map(|r| r.x.iter_mut().flatten());
                x.for_each(|x| *x = dice.below(1 << 20) as f64 / f64::from(1 << 20));
            }
            let queries = features(&queries, columns);
            for method in METHODS {
                let k = if exact || columns != Columns::Sparse { 5 } else { 1 };
                let model = train(&format!("{method}(k={k}, {option})"), &rows, columns);
                agrees_with_brute_force(&model, &queries);
            }
        }
    }
}

#[test]
fn brute_force_in_blocks() {
    let mut dice = Dice(13);
    let (rows, queries) = (grid(&mut dice, 2100, 9), grid(&mut dice, 40, 9));
    // The same in whole numbers, whose quick distances are exact.
    let whole = [&rows, &queries].map(|rows| {
        let mut rows = rows.clone();
        let x = rows.iter_mut().flat_map(|r| r.x.iter_mut().flatten());
        x.for_each(|x| *x = (*x * 4.0).round());
        rows
    });
    for columns in [Columns::Dense, Columns::Sparse, Columns::Categories, Columns::Mixed] {
        for option in ["distance=euclidean", "scale=none", "distance=manhattan", "distance=cosine"]
        {
            if columns == Columns::Categories && option != "distance=euclidean" {
                continue;
            }
            let (rows, queries) =
                if option == "scale=none" { (&whole[0], &whole[1]) } else { (&rows, &queries) };
            let asked = features(queries, columns);
            let model = train(&format!("mlknn(k=6, {option})"), rows, columns);
            let expected = defined(&model, &asked);
            assert_same(&answers(&model, &asked), &expected, model.spec());
            for (queries, points) in [(7, 7), (3, 100), (64, 1000)] {
                let mut small = state(&model).clone();
                small.params.metric.blocks = Blocks { queries, dense: points, sparse: points };
                small.counts = None;
                let scorer = small.fit(model.space()).unwrap();
                assert_same(&said(&*scorer, &model, &asked), &expected, model.spec());
            }
        }
    }
}

fn sets(model: &Model, features: &ArrayRef) -> Vec<Vec<String>> {
    let lists = model.predict(features).unwrap();
    let names = |l: ArrayRef| l.as_string::<i32>().iter().flatten().map(str::to_string).collect();
    lists.iter().map(|l| l.map(names).unwrap_or_default()).collect()
}

/// One column of numbers.
fn line(x: impl IntoIterator<Item = f64>) -> ArrayRef {
    let x: ArrayRef = Arc::new(Float64Array::from_iter_values(x));
    Arc::new(StructArray::try_from(vec![("x", x)]).unwrap())
}

fn lists(sets: &[&[&str]]) -> ArrayRef {
    let mut b = ListBuilder::new(StringBuilder::new());
    sets.iter().for_each(|s| b.append_value(s.iter().map(Some)));
    Arc::new(b.finish())
}

fn learn(spec: &str, labels: &ArrayRef, features: &ArrayRef) -> Model {
    let mut trainer = Trainer::try_new(&Registry::default(), spec).unwrap();
    trainer.observe(labels, features).unwrap();
    trainer.finish().unwrap()
}
