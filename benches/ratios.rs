//! The ratios of the design, measured in one run on one generated file.
//!
//! Not a criterion benchmark: each line compares jobs of seconds with each other. They alternate, so that
//! both jobs of a round find the machine alike; a line is the median of the ratios of all rounds, with the
//! lowest and the highest. `LABELFLOW_BENCH_ROWS` sets the number of rows (default 1,000,000).
//!
//! Every job is a process of its own. Those of DataFusion alone are this program again, with the
//! query in `LABELFLOW_BENCH_QUERY`.

// A benchmark that cannot be set up has to stop.
#![allow(clippy::expect_used)]

use datafusion::prelude::SessionContext;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

const ROUNDS: usize = 9;
/// Where the query of a process of DataFusion alone stands.
const QUERY: &str = "LABELFLOW_BENCH_QUERY";

fn main() {
    if let Ok(query) = std::env::var(QUERY) {
        return datafusion_alone(&query);
    }
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
    // The bytes that `fit` reads: lists have no sum, so their lengths are added.
    let sum = format!(
        "SELECT {}, sum(cardinality(labels)) FROM '{}'",
        columns.join(", "),
        path("data.parquet")
    );
    let copy =
        format!("COPY (SELECT * FROM '{}') TO '{}'", path("data.parquet"), path("copy.parquet"));
    let fit = |threads: &str, data: &str| {
        cli(&["fit", "--threads", threads, &path(data), "-o", &path("m.labelflow")])
    };
    // To free an old file of that size takes longer than to read one.
    let score = |threads: &str, data: &str| {
        let (data, out) = (path(data), path("scored.parquet"));
        let _ = std::fs::remove_file(&out);
        cli(&["score", "--threads", threads, "--model", &path("m.labelflow"), &data, "-o", &out])
    };
    let sql = |query: &str| {
        let _ = std::fs::remove_file(path("copy.parquet"));
        cli(&["sql", query])
    };
    let alone = |query: &str| {
        let _ = std::fs::remove_file(path("copy.parquet"));
        let this = std::env::current_exe().expect("the path of this program");
        run(vec![Command::new(this).env(QUERY, query)])
    };

    let times = alternate([&|| fit("0", "data.parquet"), &|| alone(&sum), &|| sql(&sum)]);
    at_most(1.5, "fit / sum of every column, DataFusion", times.map(|[a, b, _]| a / b));
    at_most(1.5, "fit / sum of every column, labelflow", times.map(|[a, _, c]| a / c));
    let times = alternate([&|| score("0", "data.parquet"), &|| alone(&copy), &|| sql(&copy)]);
    at_most(1.5, "score / COPY, DataFusion", times.map(|[a, b, _]| a / b));
    at_most(1.5, "score / COPY, labelflow", times.map(|[a, _, c]| a / c));
    // What the machine gives: on two cores at a time each may be slower.
    let one_fit = |out: &str| {
        ["fit", "--threads", "1", &path("data.parquet"), "-o", &path(out)].map(str::to_string)
    };
    let one_score = |out: &str| {
        let (model, data) = (path("m.labelflow"), path("data.parquet"));
        ["score", "--threads", "1", "--model", &model, &data, "-o", &path(out)].map(str::to_string)
    };
    let both = |args: [&[String]; 2]| run(vec![&mut held(0, args[0]), &mut held(1, args[1])]);
    let pair = || both([&one_fit("m1.labelflow"), &one_fit("m2.labelflow")]);
    let times = alternate([&|| fit("1", "data.parquet"), &|| fit("2", "data.parquet"), &pair]);
    report("two fits side by side / one after the other", times.map(|[a, _, c]| 2.0 * (a / c)));
    at_least(1.8, "fit, one core / two", times.map(|[a, b, _]| a / b));
    report("fit, processor seconds, two threads / one", times.map(|[a, b, _]| b.busy / a.busy));
    // What a thread costs once, its first use of memory, counts for less.
    let times = alternate([&|| fit("1", "four.parquet"), &|| fit("2", "four.parquet")]);
    at_least(1.8, "fit, one core / two, four times the rows", times.map(|[a, b]| a / b));
    let pair = || {
        let outs = ["scored1.parquet", "scored2.parquet"];
        outs.iter().for_each(|out| drop(std::fs::remove_file(path(out))));
        both([&one_score(outs[0]), &one_score(outs[1])])
    };
    let times = alternate([&|| score("1", "data.parquet"), &|| score("2", "data.parquet"), &pair]);
    report("two scores side by side / one after the other", times.map(|[a, _, c]| 2.0 * (a / c)));
    at_least(1.8, "score, one core / two", times.map(|[a, b, _]| a / b));
    report("score, processor seconds, two threads / one", times.map(|[a, b, _]| b.busy / a.busy));
    let times = alternate([&|| fit("2", "data.parquet"), &|| fit("2", "tenth.parquet")]);
    at_most(10.5, "fit, ten times the rows", times.map(|[a, b]| a / b));
    let times = alternate([&|| score("2", "data.parquet"), &|| score("2", "tenth.parquet")]);
    at_most(10.5, "score, ten times the rows", times.map(|[a, b]| a / b));
    let grown = |[few, many]: [Run; 2]| many.bytes as f64 / few.bytes as f64;
    let runs = alternate([&|| fit("2", "data.parquet"), &|| fit("2", "four.parquet")]);
    at_most(1.05, "memory of fit, four times the rows", runs.map(grown));
    let runs = alternate([&|| score("2", "data.parquet"), &|| score("2", "four.parquet")]);
    at_most(1.05, "memory of score, four times the rows", runs.map(grown));
}

/// Time, processor time and peak memory of a run.
#[derive(Clone, Copy)]
struct Run {
    seconds: f64,
    busy: f64,
    bytes: u64,
}

/// How many times as long a run takes as another.
impl std::ops::Div for Run {
    type Output = f64;

    fn div(self, other: Run) -> f64 {
        self.seconds / other.seconds
    }
}

/// Runs the command line in its own process, so that memory is its own; on one core when it is to
/// work with one thread: files are read and written on threads of their own, which would be a second.
fn cli(args: &[&str]) -> Run {
    let args: Vec<String> = args.iter().map(|a| a.to_string()).collect();
    match args.windows(2).any(|pair| pair == ["--threads", "1"]) {
        true => run(vec![&mut held(0, &args)]),
        false => run(vec![Command::new(env!("CARGO_BIN_EXE_labelflow")).args(&args)]),
    }
}

/// The command line on one core, where the system can do that.
fn held(core: usize, args: &[String]) -> Command {
    let labelflow = env!("CARGO_BIN_EXE_labelflow");
    let mut command = match Path::new("/usr/bin/taskset").exists() {
        true => Command::new("/usr/bin/taskset"),
        false => Command::new(labelflow),
    };
    if command.get_program() != labelflow {
        command.args(["-c", &core.to_string(), labelflow]);
    }
    command.args(args);
    command
}

/// Runs processes side by side, to the end of the last; memory and processor time are those of the first.
fn run(commands: Vec<&mut Command>) -> Run {
    let start = Instant::now();
    let start_one = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the command starts")
    };
    let mut children: Vec<Child> = commands.into_iter().map(start_one).collect();
    let of_first = format!("/proc/{}", children[0].id());
    let (mut bytes, mut busy) = (0, 0.0f64);
    while !children.is_empty() {
        bytes = bytes.max(peak_memory(Path::new(&of_first)));
        busy = busy.max(processor_seconds(Path::new(&of_first)));
        std::thread::sleep(std::time::Duration::from_millis(5));
        children.retain_mut(|child| match child.try_wait().expect("it can be waited for") {
            Some(code) => {
                assert!(code.success(), "a job failed");
                false
            }
            None => true,
        });
    }
    Run { seconds: start.elapsed().as_secs_f64(), busy, bytes }
}

/// Runs a query as DataFusion does with nothing changed.
fn datafusion_alone(query: &str) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let rows = runtime.block_on(async {
        let ctx = SessionContext::new().enable_url_table();
        ctx.sql(query).await?.collect().await
    });
    rows.expect("the query runs");
}

/// The largest resident size so far, where the system tells it.
fn peak_memory(process: &Path) -> u64 {
    let text = std::fs::read_to_string(process.join("status")).unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// The processor time so far, of all threads, where the system tells it.
fn processor_seconds(process: &Path) -> f64 {
    let text = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    // The name of the program, in brackets, may have blanks. Ticks are hundredths of a second.
    let rest = text.rsplit(')').next().unwrap_or_default();
    let ticks = rest.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

/// The runs of each job in each round, one job after the other.
fn alternate<const N: usize>(jobs: [&dyn Fn() -> Run; N]) -> [[Run; N]; ROUNDS] {
    [(); ROUNDS].map(|()| jobs.map(|job| job()))
}

fn at_most<const N: usize>(bound: f64, what: &str, ratios: [f64; N]) {
    let met = median(ratios) <= bound;
    println!("{} at most {bound:<5} {}", line(what, ratios), if met { "met" } else { "NOT MET" });
}

fn at_least<const N: usize>(bound: f64, what: &str, ratios: [f64; N]) {
    let met = median(ratios) >= bound;
    println!("{} at least {bound:<4} {}", line(what, ratios), if met { "met" } else { "NOT MET" });
}

fn report<const N: usize>(what: &str, ratios: [f64; N]) {
    println!("{}", line(what, ratios));
}

fn line<const N: usize>(what: &str, ratios: [f64; N]) -> String {
    let low = ratios.into_iter().fold(f64::INFINITY, f64::min);
    let high = ratios.into_iter().fold(0.0, f64::max);
    format!("{what:<46} {:>6.2}  ({low:.2} to {high:.2})", median(ratios))
}

fn median<const N: usize>(mut ratios: [f64; N]) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios[N / 2]
}

fn generate(rows: u64, path: &str) {
    let rows = rows.to_string();
    let shape = ["--features", "120", "--labels", "100", "--cardinality", "4.4", "--seed", "1"];
    cli(&[&["generate", "--rows", &rows][..], &shape, &[path]].concat());
}
