//! The ratios of the SQL layer, measured in one run on generated rows.
//!
//! Not a criterion benchmark: each line compares two jobs with each other, alternating, and takes
//! the best of three. Seconds are those of the processor where the system tells them, so that other
//! work on the machine counts little. `LABELFLOW_BENCH_ROWS` sets the number of rows (default
//! 1,000,000).

// A benchmark that cannot be set up has to stop.
#![allow(clippy::expect_used)]

use labelflow::sql::{SessionOptions, session};
use std::process::Command;
use std::time::Instant;
use tokio::runtime::Runtime;

const ROUNDS: usize = 3;
const FEATURES: &str = "f0, f1, f2, f3, f4, f5, f6, f7, f8, f9";

fn main() {
    let rows: u64 = std::env::var("LABELFLOW_BENCH_ROWS")
        .ok()
        .and_then(|r| r.parse().ok())
        .unwrap_or(1_000_000);
    let groups = rows / 100;
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    println!("generating {rows} rows, 10 features, 8 labels");
    let (data, model) = (path("data.parquet"), path("m.labelflow"));
    let count = rows.to_string();
    cli(&["generate", "--rows", &count, "--features", "10", "--labels", "8", &data]);
    cli(&["fit", &data, "-o", &model]);

    // The command line and SQL: the same path.
    let learn = format!("SELECT train_labels('naibx', labels, {FEATURES}) FROM '{data}'");
    let [a, b] = best([&|| cli(&["sql", &learn]), &|| cli(&["fit", &data, "-o", &path("a")])]);
    report("train_labels against fit", a / b, "at most 1.05", a / b <= 1.05);
    let copy = format!(
        "COPY (SELECT *, predict_labels('{model}', {FEATURES}) AS predicted_labels FROM '{data}') TO '{}'",
        path("a.parquet")
    );
    let scored = path("b.parquet");
    let [a, b] = best([&|| cli(&["sql", &copy]), &|| {
        cli(&["score", "--model", &model, &data, "-o", &scored])
    }]);
    report("COPY of predict_labels against score", a / b, "at most 1.05", a / b <= 1.05);

    // Groups, with rows in memory: in the order of their groups, and shuffled.
    for (order, tenant) in
        [("in order", "id / 100".to_string()), ("shuffled", format!("id * 7919 % {groups}"))]
    {
        let engine = Engine::new();
        let table = format!("CREATE TABLE t AS SELECT {tenant} AS tenant, * FROM '{data}'");
        engine.run(&table);
        let many = format!(
            "SELECT tenant, train_labels('naibx', labels, {FEATURES}) AS model FROM t GROUP BY tenant"
        );
        let one = format!(
            "SELECT one, train_labels('naibx', labels, {FEATURES}) FROM (SELECT *, tenant * 0 AS one FROM t) GROUP BY one"
        );
        let [a, b] = best([&|| engine.run(&many), &|| engine.run(&one)]);
        let what = format!("{groups} groups against one, {order}");
        report(&what, a / b, "at most 4", a / b <= 4.0);

        engine.run(&format!("CREATE TABLE models AS {many}"));
        let joined = format!(
            "SELECT max(cardinality(predict_labels(model, {FEATURES}))) FROM t JOIN models ON t.tenant = models.tenant"
        );
        let constant =
            format!("SELECT max(cardinality(predict_labels('{model}', {FEATURES}))) FROM t");
        // A session of its own for each: models are decoded in the time that is measured.
        let [a, b] = best([&|| engine.again().run(&joined), &|| engine.again().run(&constant)]);
        let what = format!("a join with {groups} models against one, {order}");
        report(&what, a / b, "at most 3", a / b <= 3.0);
    }
}

/// A session and its threads.
struct Engine {
    runtime: Runtime,
    ctx: datafusion::prelude::SessionContext,
}

impl Engine {
    fn new() -> Self {
        let ctx = session(&SessionOptions::default()).expect("a session");
        Engine { runtime: Runtime::new().expect("a runtime"), ctx }
    }

    /// The same tables with functions that know no model yet.
    fn again(&self) -> Engine {
        let fresh = Engine::new();
        self.runtime.block_on(async {
            for name in ["t", "models"] {
                let table = self.ctx.table_provider(name).await.expect("a table");
                fresh.ctx.register_table(name, table).expect("a new name");
            }
        });
        fresh
    }

    fn run(&self, sql: &str) -> f64 {
        seconds(|| {
            self.runtime.block_on(async {
                self.ctx.sql(sql).await.expect("a plan").collect().await.expect("rows")
            });
        })
    }
}

/// Seconds of a run of the command line in its own process.
fn cli(args: &[&str]) -> f64 {
    seconds(|| {
        let output = Command::new(env!("CARGO_BIN_EXE_labelflow")).args(args).output();
        let output = output.expect("the command starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    })
}

/// What `job` takes: seconds of the processor, of this process and of those that ended in it, else
/// of the clock.
fn seconds(job: impl FnOnce()) -> f64 {
    let start = Instant::now();
    let now = || processor().unwrap_or_else(|| start.elapsed().as_secs_f64());
    let before = now();
    job();
    now() - before
}

/// User and system time so far, own and of children, which Linux counts in hundredths.
fn processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    let ticks = rest.split(' ').skip(11).take(4).map(|field| field.parse::<u64>());
    Some(ticks.sum::<Result<u64, _>>().ok()? as f64 / 100.0)
}

/// The best time of each job over alternating rounds.
fn best(jobs: [&dyn Fn() -> f64; 2]) -> [f64; 2] {
    let mut best = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        for (best, job) in best.iter_mut().zip(jobs) {
            *best = best.min(job());
        }
    }
    println!("  {:.3} s and {:.3} s", best[0], best[1]);
    best
}

fn report(what: &str, ratio: f64, wanted: &str, met: bool) {
    println!("{what:<48} {ratio:>6.2}   {wanted:<12} {}", if met { "met" } else { "NOT MET" });
}
