//! What binary relevance and chains cost on sparse rows of the shape of bibtex: fitting in seconds
//! of one processor, scoring against a plain product of the rows with a matrix of weights.
//!
//! With `LABELFLOW_DATA` set, on bibtex itself. Arguments name the specs; without any, those below.

// A benchmark that cannot be set up has to stop.
#![allow(clippy::expect_used)]

mod seconds;

use arrow::array::{ArrayRef, Float64Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow::compute::concat_batches;
use labelflow::data::{Id, Rows};
use labelflow::formats::{ArffReader, LabelSource};
use labelflow::math::content_hash;
use labelflow::models::{Registry, Trainer, split_columns};
use seconds::{seconds, with_threads};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

const ROWS: usize = 7395;
const FEATURES: u64 = 1836;
const LABELS: u64 = 159;
const SPECS: [&str; 6] = [
    "br",
    "br(base=svm(calibrate=none))",
    "br(base=naive_bayes)",
    "cc",
    "ecc(base=naive_bayes)",
    "pcc(base=naive_bayes, beam=5)",
];

/// Labels and features: a label makes some features likely.
fn generated() -> (ArrayRef, ArrayRef) {
    let mut labels = ListBuilder::new(StringBuilder::new());
    let mut features = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
    let draw = |row: usize, i: u64, below: u64| {
        let bytes = [(row as u64).to_le_bytes(), i.to_le_bytes()].concat();
        (content_hash(7, &bytes) as u64) % below
    };
    for row in 0..ROWS {
        // Low numbers are frequent.
        let set: Vec<u64> =
            (0..2).map(|i| draw(row, i, LABELS) * draw(row, i + 2, LABELS) / LABELS).collect();
        labels.append_value(set.iter().map(|y| Some(format!("label{y:03}"))));
        let mut words: Vec<u64> = (0..68)
            .map(|i| match i % 3 {
                0 => (set[i as usize % 2] * 11 + draw(row, i + 10, 11)) % FEATURES,
                _ => draw(row, i + 10, FEATURES) * draw(row, i + 100, FEATURES) / FEATURES,
            })
            .collect();
        words.sort_unstable();
        words.dedup();
        for word in words {
            features.keys().append_value(format!("word{word:04}"));
            features.values().append_value(1.0);
        }
        features.append(true).expect("a row");
    }
    (Arc::new(labels.finish()), Arc::new(features.finish()))
}

fn data() -> (ArrayRef, ArrayRef) {
    let Some(directory) = std::env::var_os("LABELFLOW_DATA") else { return generated() };
    let path = Path::new(&directory).join("bibtex/bibtex.arff");
    let reader = ArffReader::try_open(&path, &LabelSource::Auto).expect("bibtex");
    let batches: Vec<_> = reader.map(|b| b.expect("rows")).collect();
    let batch = concat_batches(&batches[0].schema(), &batches).expect("one batch");
    split_columns(&batch, "labels").expect("labels")
}

fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let specs = if named.is_empty() { SPECS.map(String::from).to_vec() } else { named };
    let (labels, features) = data();
    for spec in specs {
        let mut trainer = Trainer::try_new(&Registry::default(), &spec).expect("a trainer");
        trainer.observe(&labels, &features).expect("rows");
        let fit = || drop(black_box(trainer.finish().expect("a model")));
        let fitted = with_threads(1, || seconds(1, fit));
        let both = with_threads(2, || seconds(1, fit));
        println!(
            "{spec}/{ROWS}/{FEATURES}/{LABELS}: fitted in {fitted:.2} s of one processor, {both:.2} s \
             with two"
        );
        let model = trainer.finish().expect("a model");
        let rows = model.read(&features).expect("rows");
        let scorer = model.scorer().expect("a scorer");
        let names = model.space().labels.len();
        let (scored, plain) = with_threads(1, || {
            let mut scores = Vec::new();
            let scored =
                seconds(5, || scorer.score(black_box(&rows), &mut scores).expect("scores"));
            (scored, seconds(5, || drop(black_box(product(&rows, names)))))
        });
        println!(
            "{spec}: {} rows scored in {scored:.3} s, plain product {plain:.3} s, ratio {:.2}",
            rows.len,
            scored / plain
        );
    }
}

/// The rows times a matrix of as many columns as there are labels.
fn product(rows: &Rows, labels: usize) -> Vec<f64> {
    let ids = rows.sparse.ids().iter().max().map_or(0, |id| id.index() + 1);
    let weights: Vec<f64> = (0..ids * labels).map(|i| i as f64).collect();
    let mut out = vec![0.0; rows.len * labels];
    for (row, out) in out.chunks_exact_mut(labels).enumerate() {
        let (ids, values) = rows.sparse.row(row);
        for (id, x) in ids.iter().zip(values) {
            let weights = &weights[id.index() * labels..(id.index() + 1) * labels];
            out.iter_mut().zip(weights).for_each(|(o, w)| *o += x * w);
        }
    }
    out
}
