//! Statistics and scoring on rows in memory.

// A benchmark that cannot be set up has to stop.
#![allow(clippy::expect_used)]

use arrow::array::ArrayRef;
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

fn benches(c: &mut Criterion) {
    let registry = Registry::default();
    for algorithm in registry.algorithms() {
        for (rows, features, labels, cardinality) in SHAPES {
            let (truth, x) = data(rows, features, labels, cardinality);
            let id = format!("{}/{rows}/{features}/{labels}", algorithm.name);
            let mut group = c.benchmark_group("observe");
            group.throughput(Throughput::Elements(rows as u64));
            group.bench_function(BenchmarkId::from_parameter(&id), |b| {
                let mut trainer = Trainer::try_new(&registry, algorithm.name).expect("a trainer");
                b.iter(|| trainer.observe(black_box(&truth), black_box(&x)).expect("rows"));
            });
            group.finish();
            let mut trainer = Trainer::try_new(&registry, algorithm.name).expect("a trainer");
            trainer.observe(&truth, &x).expect("rows");
            let model = trainer.finish().expect("a model");
            let mut group = c.benchmark_group("predict");
            group.throughput(Throughput::Elements(rows as u64));
            group.bench_function(BenchmarkId::from_parameter(&id), |b| {
                b.iter(|| black_box(model.predict(black_box(&x)).expect("sets")));
            });
            group.finish();
            let mut group = c.benchmark_group("score");
            group.throughput(Throughput::Elements(rows as u64));
            group.bench_function(BenchmarkId::from_parameter(&id), |b| {
                b.iter(|| black_box(model.score(black_box(&x)).expect("scores")));
            });
            group.finish();
        }
    }
}

criterion_group!(all, benches);
criterion_main!(all);
