//! What neighbours cost, as ratios: exact search against a plain matrix product of the same shape,
//! two threads against one, all lazy learners at k = 1..30 against one of them.
//!
//! `LABELFLOW_DATA` names the directory of data sets; without it, what needs them is left out. An
//! argument chooses one part: `search`, `graph`, `scene` or `bibtex`. Jobs of one thread are measured
//! in seconds of its processor, where the system tells them.

// A benchmark that cannot be set up has to stop.
#![allow(clippy::expect_used)]

mod seconds;

use arrow::array::{ArrayRef, Float64Array, ListBuilder, StringBuilder, StructArray};
use labelflow::data::LabelSets;
use labelflow::evaluate::{Dataset, Experiment, Protocol, Stratify};
use labelflow::formats::{ArffReader, LabelSource};
use labelflow::models::{Model, Registry, Trainer};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, Axis, Slice};
use rayon::prelude::*;
use seconds::{seconds, with_threads};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

const STORED: usize = 12_000;
const QUERIES: usize = 4_096;
const FEATURES: usize = 294;
/// Features of the rows in a graph.
const DIMENSIONS: usize = 20;
/// Each job is repeated, and the quickest counts.
const REPEATS: usize = 5;

fn main() {
    let parts: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|p| p == part);
    if wanted("search") {
        search();
    }
    if wanted("graph") {
        graph();
    }
    match std::env::var_os("LABELFLOW_DATA").map(PathBuf::from) {
        Some(data) => {
            if wanted("scene") {
                with_threads(1, || folds(&data));
            }
            if wanted("bibtex") {
                with_threads(1, || bibtex(&data));
            }
        }
        None => println!("skipped: set LABELFLOW_DATA to the directory of data sets"),
    }
}

/// Numbers from 0 to 1 without pattern.
fn numbers(rows: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut x = seed;
    let mut next = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..FEATURES).map(|_| (0..rows).map(|_| next()).collect()).collect()
}

fn columns(columns: &[Vec<f64>]) -> ArrayRef {
    let array = |(i, c): (usize, &Vec<f64>)| -> (String, ArrayRef) {
        (format!("f{i:03}"), Arc::new(Float64Array::from(c.clone())))
    };
    let named: Vec<(String, ArrayRef)> = columns.iter().enumerate().map(array).collect();
    let named = named.iter().map(|(n, a)| (n.as_str(), Arc::clone(a))).collect::<Vec<_>>();
    Arc::new(StructArray::try_from(named).expect("columns"))
}

/// Rows that take turns with so many labels.
fn model(spec: &str, stored: &[Vec<f64>], names: usize) -> Model {
    let mut labels = ListBuilder::new(StringBuilder::new());
    for row in 0..STORED {
        labels.append_value([Some(format!("l{}", row % names))]);
    }
    let labels: ArrayRef = Arc::new(labels.finish());
    let mut trainer = Trainer::try_new(&Registry::default(), spec).expect("a trainer");
    trainer.observe(&labels, &columns(stored)).expect("rows");
    trainer.finish().expect("a model")
}

/// Exact search with k = 10 against the product of all queries with all stored rows.
fn search() {
    let (stored, queries) = (numbers(STORED, 1), numbers(QUERIES, 2));
    let matrix = |columns: &[Vec<f64>], rows: usize| -> Array2<f64> {
        Array2::from_shape_fn((rows, FEATURES), |(row, column)| columns[column][row])
    };
    let (a, b) = (matrix(&queries, QUERIES), matrix(&stored, STORED));
    let model = model("brknn(k=10)", &stored, 6);
    let mut rows = model.read(&columns(&queries)).expect("rows");
    let scorer = model.scorer().expect("parameters");
    let times = [1, 2].map(|threads| {
        let mut out: Vec<Array2<f64>> =
            (0..threads).map(|_| Array2::zeros((QUERIES / threads, STORED))).collect();
        with_threads(threads, || {
            let product = seconds(REPEATS, || product(&a.view(), &b.view(), &mut out));
            let found = seconds(REPEATS, || {
                // Other rows each time, because answers are remembered.
                rows.dense[0] += 1e-6;
                scorer.predict(&rows, &mut LabelSets::default()).expect("sets");
            });
            println!(
                "search/{STORED}/{QUERIES}/{FEATURES}, {threads} threads: {found:.3} s, plain \
                 product {product:.3} s, ratio {:.2} (at most 2)",
                found / product
            );
            found
        })
    });
    println!("two threads against one: {:.2} (at least 1.8)", times[0] / times[1]);
}

/// How many of the true neighbours a graph finds, and what it costs. Every row has a label of its
/// own, and the labels with a share are the neighbours.
fn graph() {
    const QUERIES: usize = 200;
    let (stored, queries) = (numbers(STORED, 4), columns(&numbers(QUERIES, 5)[..DIMENSIONS]));
    let neighbours = |index: &str| -> (Vec<bool>, f64, f64) {
        let spec = format!("brknn(k=10, index={index})");
        let model = model(&spec, &stored[..DIMENSIONS], STORED);
        let (rows, mut scores) = (model.read(&queries).expect("rows"), Vec::new());
        let start = Instant::now();
        let scorer = model.scorer().expect("parameters");
        let built = start.elapsed().as_secs_f64();
        scorer.score(&rows, &mut scores).expect("scores");
        let searched = start.elapsed().as_secs_f64() - built;
        (scores.iter().map(|&s| s > -39.0).collect(), built, searched)
    };
    let (exact, _, all) = neighbours("exact");
    let (found, built, some) = neighbours("hnsw");
    let common = exact.iter().zip(&found).filter(|(a, b)| **a && **b).count();
    println!(
        "index=hnsw, {STORED} rows of {DIMENSIONS} numbers without pattern: {:.4} of the 10 nearest \
         found, built in {built:.1} s, {QUERIES} searches {some:.2} s, exact ones {all:.2} s",
        common as f64 / (10 * QUERIES) as f64
    );
}

/// One product for each thread, of its share of the queries with all stored rows.
fn product(queries: &ArrayView2<'_, f64>, stored: &ArrayView2<'_, f64>, out: &mut [Array2<f64>]) {
    out.par_iter_mut().enumerate().for_each(|(thread, out)| {
        let share = out.nrows();
        let rows = Slice::from(thread * share..(thread + 1) * share);
        general_mat_mul(1.0, &queries.slice_axis(Axis(0), rows), &stored.t(), 0.0, out);
        std::hint::black_box(&out);
    });
}

fn read(data: &Path, name: &str) -> Dataset {
    let path = data.join(name).join(format!("{name}.arff"));
    let batches = ArffReader::try_open(&path, &LabelSource::Auto).expect("a data set");
    let batches = batches.collect::<Result<Vec<_>, _>>().expect("rows");
    Dataset::try_new(name, &batches, "labels").expect("a data set")
}

fn evaluate(data: &Dataset, protocol: Protocol, specs: &[&str]) {
    let registry = Registry::default();
    let (clock, watch) = (&|| 0.0, &|| ());
    let experiment = Experiment {
        registry: &registry,
        protocol,
        stratify: Stratify::None,
        seed: 1,
        clock,
        watch,
    };
    let specs: Vec<String> = specs.iter().map(|s| s.to_string()).collect();
    experiment.run(data, &specs).expect("an evaluation");
}

/// All five learners at k = 1..30 against ML-kNN at k = 30: 10 folds of scene.
fn folds(data: &Path) {
    let scene = read(data, "scene");
    let all = [
        "brknn(k=1..30)",
        "brknn_a(k=1..30)",
        "brknn_b(k=1..30)",
        "lpknn(k=1..30)",
        "mlknn(k=1..30)",
    ];
    let run = |specs: &[&str]| seconds(REPEATS, || evaluate(&scene, Protocol::folds(10), specs));
    let (one, all) = (run(&["mlknn(k=30)"]), run(&all));
    println!(
        "scene, 10 folds: mlknn(k=30) {one:.3} s, all five at k=1..30 {all:.3} s, ratio {:.2} (at \
         most 3)",
        all / one
    );
}

/// One fold of bibtex, one thread: fitting and scoring ML-kNN.
fn bibtex(data: &Path) {
    let bibtex = read(data, "bibtex");
    let fold = Protocol::HoldOut { train: 0.8, repeats: 1 };
    let spent = seconds(REPEATS, || evaluate(&bibtex, fold, &["mlknn(k=10)"]));
    println!(
        "bibtex, mlknn(k=10), one fold of {} rows fitted and scored: {spent:.3} s of one core \
         (well under 1)",
        bibtex.len()
    );
}
