//! The ratios of the design, measured in one run on one generated file.
//!
//! Not a criterion benchmark: each line compares two jobs of seconds with each other, alternating,
//! and takes the best of three. `LABELFLOW_BENCH_ROWS` sets the number of rows (default 1,000,000).

// A benchmark that cannot be set up has to stop.
#![allow(clippy::expect_used)]

use std::path::Path;
use std::process::Command;
use std::time::Instant;

const ROUNDS: usize = 3;

fn main() {
    let rows: u64 = std::env::var("LABELFLOW_BENCH_ROWS")
        .ok()
        .and_then(|r| r.parse().ok())
        .unwrap_or(1_000_000);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    println!("generating {rows} rows, 120 features, 100 labels, cardinality 4.4");
    generate(rows, &path("data.parquet"));
    generate(rows / 10, &path("tenth.parquet"));
    generate(rows * 4, &path("four.parquet"));

    let columns: Vec<String> = (0..120).map(|i| format!("sum(f{i})")).collect();
    let numbers = format!("SELECT {} FROM '{}'", columns.join(", "), path("data.parquet"));
    // The bytes that `fit` reads: lists have no sum, so their lengths are added.
    let sum = numbers.replace(" FROM", ", sum(cardinality(labels)) FROM");
    let copy =
        format!("COPY (SELECT * FROM '{}') TO '{}'", path("data.parquet"), path("copy.parquet"));
    // As DataFusion does it by itself: with a dictionary for every column.
    let plain_copy = format!("{copy} OPTIONS ('format.dictionary_enabled' 'true')");
    let fit = |threads: &str, data: &str| {
        cli(&["fit", "--threads", threads, &path(data), "-o", &path("m.labelflow")])
    };
    let score = |threads: &str, data: &str| {
        let (data, out) = (path(data), path("scored.parquet"));
        // To free an old file of that size takes longer than to read one.
        let _ = std::fs::remove_file(&out);
        cli(&["score", "--threads", threads, "--model", &path("m.labelflow"), &data, "-o", &out])
    };
    let sql = |query: &str, threads: &str| {
        let _ = std::fs::remove_file(path("copy.parquet"));
        cli(&["sql", "--threads", threads, query])
    };

    let [a, b, c] =
        best([&|| fit("0", "data.parquet"), &|| sql(&sum, "0"), &|| sql(&numbers, "0")]);
    report("fit against a sum of every column", a / b, "at most 1.5", a / b <= 1.5);
    report("fit against a sum of every number", a / c, "", a / c <= 1.5);
    let [a, b, c] =
        best([&|| score("0", "data.parquet"), &|| sql(&plain_copy, "0"), &|| sql(&copy, "0")]);
    report("score against COPY of DataFusion", a / b, "at most 1.5", a / b <= 1.5);
    report("score against COPY of labelflow", a / c, "at most 1.5", a / c <= 1.5);
    let [a, b] = best([&|| fit("1", "data.parquet"), &|| fit("2", "data.parquet")]);
    report("fit, one core against two", a / b, "at least 1.8", a / b >= 1.8);
    // What a thread costs once, its first use of memory, counts for less.
    let [a, b] = best([&|| fit("1", "four.parquet"), &|| fit("2", "four.parquet")]);
    report("the same, four times the rows", a / b, "at least 1.8", a / b >= 1.8);
    let [a, b] = best([&|| score("1", "data.parquet"), &|| score("2", "data.parquet")]);
    report("score, one core against two", a / b, "at least 1.8", a / b >= 1.8);
    let [a, b] = best([&|| fit("2", "data.parquet"), &|| fit("2", "tenth.parquet")]);
    report("fit, ten times the rows", a / b, "at most 10.5", a / b <= 10.5);
    let [a, b] = best([&|| score("2", "data.parquet"), &|| score("2", "tenth.parquet")]);
    report("score, ten times the rows", a / b, "at most 10.5", a / b <= 10.5);
    let memory = |run: Run| run.bytes as f64;
    let ratio = memory(fit("2", "four.parquet")) / memory(fit("2", "data.parquet"));
    report("memory of fit, four times the rows", ratio, "about 1", ratio <= 1.1);
    let ratio = memory(score("2", "four.parquet")) / memory(score("2", "data.parquet"));
    report("memory of score, four times the rows", ratio, "about 1", ratio <= 1.1);
}

/// Time and peak memory of a run.
#[derive(Clone, Copy)]
struct Run {
    seconds: f64,
    bytes: u64,
}

/// Runs the command line in its own process, so that memory is its own.
fn cli(args: &[&str]) -> Run {
    let start = Instant::now();
    let mut child = command(args)
        .args(args)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the command starts");
    let status = format!("/proc/{}/status", child.id());
    let mut bytes = 0;
    let code = loop {
        if let Some(code) = child.try_wait().expect("the command can be waited for") {
            break code;
        }
        bytes = bytes.max(peak_memory(Path::new(&status)));
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    assert!(code.success(), "labelflow {} failed", args.join(" "));
    Run { seconds: start.elapsed().as_secs_f64(), bytes }
}

/// The command line, held to one core when it is to work with one thread: files are read and written
/// on threads of their own, which would be a second core.
fn command(args: &[&str]) -> Command {
    let labelflow = env!("CARGO_BIN_EXE_labelflow");
    let one = args.windows(2).any(|pair| pair == ["--threads", "1"]);
    if !one || !Path::new("/usr/bin/taskset").exists() {
        return Command::new(labelflow);
    }
    let mut held = Command::new("/usr/bin/taskset");
    held.args(["-c", "0", labelflow]);
    held
}

/// The largest resident size so far, where the system tells it.
fn peak_memory(status: &Path) -> u64 {
    let text = std::fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// The best time of each job over alternating rounds.
fn best<const N: usize>(jobs: [&dyn Fn() -> Run; N]) -> [f64; N] {
    let mut best = [f64::INFINITY; N];
    for _ in 0..ROUNDS {
        for (best, job) in best.iter_mut().zip(jobs) {
            *best = best.min(job().seconds);
        }
    }
    best
}

fn report(what: &str, ratio: f64, wanted: &str, met: bool) {
    println!("{what:<40} {ratio:>6.2}   {wanted:<12} {}", if met { "met" } else { "NOT MET" });
}

fn generate(rows: u64, path: &str) {
    let rows = rows.to_string();
    let shape = ["--features", "120", "--labels", "100", "--cardinality", "4.4", "--seed", "1"];
    cli(&[&["generate", "--rows", &rows][..], &shape, &[path]].concat());
}
