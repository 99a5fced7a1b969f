//! Statistics and scoring on rows in memory.

// A benchmark that cannot be set up has to stop.
#![allow(clippy::expect_used)]

use arrow::array::{Array, ArrayRef, AsArray, ListBuilder, StringBuilder};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use labelflow::data::generate::{Generator, GeneratorOptions};
use labelflow::models::{Registry, Trainer, split_columns};
use std::hint::black_box;

/// (rows, features, labels, cardinality).
const SHAPES: [(usize, usize, usize, f64); 2] = [(8192, 120, 100, 4.4), (8192, 20, 10, 2.0)];

fn data(rows: usize, features: usize, labels: usize, cardinality: f64) -> (ArrayRef, ArrayRef) {
    let options = GeneratorOptions { rows: rows as u64, features, labels, cardinality, seed: 1 };
    let generator = Generator::try_new(options).expect("valid options");
    let batch = generator.batch(0, rows).expect("rows");
    let columns: Vec<usize> = (1..batch.num_columns()).collect();
    split_columns(&batch.project(&columns).expect("columns"), "labels").expect("labels")
}

/// Rows, words and labels of a table of texts: a row has a few words for each of its labels.
const TEXTS: (usize, usize, usize) = (8192, 2000, 50);

/// Token lists, with labels as often as those of generated rows.
fn texts(rows: usize, words: usize, labels: usize) -> (ArrayRef, ArrayRef) {
    let (truth, _) = data(rows, 1, labels, 2.5);
    let sets = truth.as_list::<i32>();
    let mut tokens = ListBuilder::new(StringBuilder::new());
    let mut state = 1u64;
    let mut dice = |sides: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % sides
    };
    for row in 0..rows {
        for label in sets.value(row).as_string::<i32>().iter().flatten() {
            for _ in 0..6 {
                tokens.values().append_value(format!("{label}_{}", dice(words / labels)));
            }
        }
        for _ in 0..12 {
            tokens.values().append_value(format!(
                "label_{:02}_{}",
                dice(labels),
                dice(words / labels)
            ));
        }
        tokens.append(true);
    }
    (truth, std::sync::Arc::new(tokens.finish()))
}

fn benches(c: &mut Criterion) {
    let registry = Registry::default();
    let mut tables: Vec<(String, ArrayRef, ArrayRef)> = Vec::new();
    for (rows, features, labels, cardinality) in SHAPES {
        let (truth, x) = data(rows, features, labels, cardinality);
        tables.push((format!("{rows}/{features}/{labels}"), truth, x));
    }
    let (rows, words, labels) = TEXTS;
    let (truth, x) = texts(rows, words, labels);
    tables.push((format!("{rows}/{words}_tokens/{labels}"), truth, x));
    for algorithm in registry.algorithms() {
        for (shape, truth, x) in &tables {
            let rows = truth.len();
            let id = format!("{}/{shape}", algorithm.name);
            let mut group = c.benchmark_group("observe");
            group.throughput(Throughput::Elements(rows as u64));
            group.bench_function(BenchmarkId::from_parameter(&id), |b| {
                let mut trainer = Trainer::try_new(&registry, algorithm.name).expect("a trainer");
                b.iter(|| trainer.observe(black_box(truth), black_box(x)).expect("rows"));
            });
            group.finish();
            let mut trainer = Trainer::try_new(&registry, algorithm.name).expect("a trainer");
            trainer.observe(truth, x).expect("rows");
            let model = trainer.finish().expect("a model");
            let mut group = c.benchmark_group("predict");
            group.throughput(Throughput::Elements(rows as u64));
            group.bench_function(BenchmarkId::from_parameter(&id), |b| {
                b.iter(|| black_box(model.predict(black_box(x)).expect("sets")));
            });
            group.finish();
            let mut group = c.benchmark_group("score");
            group.throughput(Throughput::Elements(rows as u64));
            group.bench_function(BenchmarkId::from_parameter(&id), |b| {
                b.iter(|| black_box(model.score(black_box(x)).expect("scores")));
            });
            group.finish();
        }
    }
}

criterion_group!(all, benches);
criterion_main!(all);
