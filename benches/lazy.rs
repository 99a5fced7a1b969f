//! What neighbours cost, as ratios: exact search against a plain matrix product of the same shape,
//! two threads against one, all lazy learners at k = 1..30 against one of them.
//!
//! `LABELFLOW_DATA` names the directory of data sets; without it, what needs them is left out.

// A benchmark that cannot be set up has to stop.
#![allow(clippy::expect_used)]

use arrow::array::{ArrayRef, Float64Array, ListBuilder, StringBuilder, StructArray};
use labelflow::data::LabelSets;
use labelflow::evaluate::{Dataset, Experiment, Protocol, Stratify};
use labelflow::formats::{ArffReader, LabelSource};
use labelflow::models::{Model, Registry, Trainer};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, Axis, Slice};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

const STORED: usize = 12_000;
const QUERIES: usize = 4_096;
const FEATURES: usize = 294;
/// Each job is repeated, and the quickest counts.
const REPEATS: usize = 5;

fn main() {
    search();
    match std::env::var_os("LABELFLOW_DATA").map(PathBuf::from) {
        Some(data) => {
            folds(&data);
            bibtex(&data);
        }
        None => println!("skipped: set LABELFLOW_DATA to the directory of data sets"),
    }
}

/// The least seconds of several runs.
fn seconds(mut job: impl FnMut()) -> f64 {
    let once = |_| {
        let start = Instant::now();
        job();
        start.elapsed().as_secs_f64()
    };
    (0..REPEATS).map(once).fold(f64::INFINITY, f64::min)
}

fn with_threads<T: Send>(threads: usize, job: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("threads").install(job)
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

fn model(spec: &str, stored: &[Vec<f64>]) -> Model {
    let mut labels = ListBuilder::new(StringBuilder::new());
    for row in 0..STORED {
        labels.append_value([Some(format!("l{}", row % 6))]);
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
    let model = model("brknn(k=10)", &stored);
    let rows = model.read(&columns(&queries)).expect("rows");
    let scorer = model.scorer().expect("parameters");
    let times = [1, 2].map(|threads| {
        with_threads(threads, || {
            let product = seconds(|| product(&a.view(), &b.view()));
            let found = seconds(|| {
                let mut sets = LabelSets::default();
                scorer.predict(&rows, &mut sets).expect("sets");
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

fn product(queries: &ArrayView2<'_, f64>, stored: &ArrayView2<'_, f64>) {
    const BLOCK: usize = 128;
    (0..QUERIES / BLOCK).into_par_iter().for_each_init(
        || Array2::<f64>::zeros((BLOCK, STORED)),
        |out, block| {
            let rows = Slice::from(block * BLOCK..(block + 1) * BLOCK);
            let part = queries.slice_axis(Axis(0), rows);
            general_mat_mul(1.0, &part, &stored.t(), 0.0, out);
            std::hint::black_box(&out);
        },
    );
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
    let run = |specs: &[&str]| seconds(|| evaluate(&scene, Protocol::folds(10), specs));
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
    let spent = with_threads(1, || seconds(|| evaluate(&bibtex, fold, &["mlknn(k=10)"])));
    println!("bibtex, mlknn(k=10), {} rows, one fold: {spent:.3} s of one core", bibtex.len());
}
