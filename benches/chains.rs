//! Fitting and scoring of binary relevance and chains on sparse rows of the shape of bibtex.
//!
//! With `LABELFLOW_DATA` set, on bibtex itself.

// A benchmark that cannot be set up has to stop.
#![allow(clippy::expect_used)]

use arrow::array::{ArrayRef, Float64Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow::compute::concat_batches;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use labelflow::formats::{ArffReader, LabelSource};
use labelflow::math::content_hash;
use labelflow::models::{Registry, Trainer, split_columns};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

const ROWS: usize = 7395;
const FEATURES: u64 = 1836;
const LABELS: u64 = 159;
const SPECS: [&str; 4] = ["br", "br(base=svm(calibrate=none))", "br(base=naive_bayes)", "cc"];

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

fn benches(c: &mut Criterion) {
    let registry = Registry::default();
    let (labels, features) = data();
    for spec in SPECS {
        let id = format!("{spec}/{ROWS}/{FEATURES}/{LABELS}");
        let mut trainer = Trainer::try_new(&registry, spec).expect("a trainer");
        trainer.observe(&labels, &features).expect("rows");
        let mut group = c.benchmark_group("finish");
        group.sample_size(10);
        group.bench_function(BenchmarkId::from_parameter(&id), |b| {
            b.iter(|| black_box(trainer.finish().expect("a model")));
        });
        group.finish();
        let model = trainer.finish().expect("a model");
        let rows = model.read(&features).expect("rows");
        let scorer = model.scorer().expect("a scorer");
        let mut group = c.benchmark_group("score");
        group.throughput(Throughput::Elements(rows.len as u64));
        group.sample_size(10);
        group.bench_function(BenchmarkId::from_parameter(&id), |b| {
            let mut scores = Vec::new();
            b.iter(|| scorer.score(black_box(&rows), &mut scores).expect("scores"));
        });
        group.finish();
    }
}

criterion_group!(all, benches);
criterion_main!(all);
