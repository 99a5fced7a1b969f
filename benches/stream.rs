//! The ratios of the streaming stage, measured in one run on one generated file.
//!
//! Each line compares two jobs of seconds with each other, alternating, and takes the best of
//! three:
//!
//! - `labelflow stream` against `labelflow score`, Parquet to Parquet, both with all threads;
//! - scoring against row-exact test-then-train of the same batches in memory, both on one thread,
//!   since rows can only be learned one after the other;
//! - the peak memory of a long stream through a pipe against that of a million rows.
//!
//! `LABELFLOW_BENCH_ROWS` sets the number of rows (default 200,000), `LABELFLOW_LONG_ROWS` the length
//! of the long stream (default 5,000,000). The full comparison is
//! `LABELFLOW_LONG_ROWS=50000000 cargo bench --bench stream`.

// A benchmark that cannot be set up has to stop.
#![allow(clippy::expect_used, clippy::panic)]

use arrow::array::RecordBatch;
use arrow::ipc::writer::StreamWriter;
use labelflow::data::generate::{Generator, GeneratorOptions};
use labelflow::models::Registry;
use labelflow::stream::{Mode, Stage, StageOptions};
use std::io::BufWriter;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: usize = 3;

fn main() {
    let rows = number("LABELFLOW_BENCH_ROWS", 200_000);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    println!("{rows} rows, 120 features, 100 labels, cardinality 4.4");
    let shape = format!(
        "generate --rows {rows} --features 120 --labels 100 --cardinality 4.4 {}",
        path("data.parquet")
    );
    run(&shape.split(' ').collect::<Vec<_>>());
    run(&["fit", &path("data.parquet"), "-o", &path("m.labelflow")]);

    let model = path("m.labelflow");
    let score =
        || seconds(&["score", "--model", &model, &path("data.parquet"), "-o", &path("s.parquet")]);
    let stream = || {
        for name in ["parts", "c"] {
            // They are not there the first time.
            let _ = std::fs::remove_dir_all(path(name));
        }
        let (parts, checkpoints) = (path("parts"), path("c"));
        let output = ["-o", &parts, "--checkpoint", &checkpoints, "--checkpoint-every", "1000000"];
        seconds(&[&["stream", "--model", &model, &path("data.parquet")], &output[..]].concat())
    };
    let (mut a, mut b) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        a = a.min(stream());
        b = b.min(score());
    }
    report("stream against score, Parquet to Parquet", a / b, "at most 1.3", a / b <= 1.3);

    let (scoring, learning) = in_memory(rows.min(50_000));
    println!("scoring {scoring:.0} rows/s, test-then-train {learning:.0} rows/s, one thread");
    report(
        "scoring against row-exact learning, both on one thread",
        scoring / learning,
        "at most 5",
        scoring <= 5.0 * learning,
    );

    let long = number("LABELFLOW_LONG_ROWS", 5_000_000);
    let (short, long) = (memory_of(1_000_000), memory_of(long));
    let ratio = long as f64 / short as f64;
    report("memory of the long stream", ratio, "at most 1.05", ratio <= 1.05);
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn report(what: &str, ratio: f64, wanted: &str, good: bool) {
    println!("{what}: {ratio:.2} ({wanted}){}", if good { "" } else { "  MISSED" });
}

fn run(arguments: &[&str]) {
    let program = env!("CARGO_BIN_EXE_labelflow");
    let done = Command::new(program).args(arguments).output().expect("labelflow runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn seconds(arguments: &[&str]) -> f64 {
    let start = Instant::now();
    run(arguments);
    start.elapsed().as_secs_f64()
}

/// Rows per second of scoring and of test-then-train on one thread, batches in memory.
fn in_memory(rows: u64) -> (f64, f64) {
    // Rows are learned one after the other; scoring would use all threads.
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("the first pool");
    let shape = GeneratorOptions { rows, features: 120, labels: 100, cardinality: 4.4, seed: 1 };
    let generator = Generator::try_new(shape).expect("options");
    let batches: Vec<RecordBatch> =
        generator.batches(8192).collect::<Result<_, _>>().expect("rows");
    let options = |mode| StageOptions { mode, exclude: vec!["id".into()], ..Default::default() };
    let mut speeds = (0.0f64, 0.0f64);
    for _ in 0..ROUNDS {
        let mut stage = Stage::try_new(&Registry::default(), "naibx", options(Mode::TestThenTrain))
            .expect("a stage");
        let start = Instant::now();
        for batch in &batches {
            stage.process(batch).expect("answers");
        }
        speeds.1 = speeds.1.max(rows as f64 / start.elapsed().as_secs_f64());
        let model = stage.model().expect("a model");
        let mut stage =
            Stage::from_model(Arc::clone(&model), options(Mode::Score)).expect("a stage");
        stage.process(&batches[0]).expect("answers");
        let start = Instant::now();
        for batch in &batches {
            stage.process(batch).expect("answers");
        }
        speeds.0 = speeds.0.max(rows as f64 / start.elapsed().as_secs_f64());
    }
    speeds
}

/// The peak memory of a stream of so many rows of 8 features and 10 labels through a pipe.
fn memory_of(rows: u64) -> u64 {
    let mut child = Command::new("/usr/bin/time")
        .args(["-f", "%M", env!("CARGO_BIN_EXE_labelflow"), "stream", "--algorithm", "naibx"])
        .args(["--learn", "--exclude", "id"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("/usr/bin/time");
    let shape =
        GeneratorOptions { rows: 1_000_000, features: 8, labels: 10, cardinality: 2.0, seed: 1 };
    let generator = Generator::try_new(shape).expect("options");
    let block: Vec<RecordBatch> =
        generator.batches(8192).take(16).collect::<Result<_, _>>().expect("rows");
    let mut input = child.stdin.take().map(BufWriter::new).expect("a pipe");
    let mut writer = StreamWriter::try_new(&mut input, &block[0].schema()).expect("a stream");
    let mut written = 0;
    for batch in block.iter().cycle() {
        writer.write(batch).expect("the stream is read");
        written += batch.num_rows() as u64;
        if written >= rows {
            break;
        }
    }
    writer.finish().expect("the stream is read");
    drop(writer);
    drop(input);
    let done = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{text}");
    let kilobytes = text.lines().last().and_then(|l| l.trim().parse::<u64>().ok());
    kilobytes.unwrap_or_else(|| panic!("no memory in `{text}`")) * 1024
}
