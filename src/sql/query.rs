//! Running a query to its end while somebody watches.

use super::error::from_datafusion;
use super::tables::{explain, scan};
use crate::error::{Error, Result};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::datasource::physical_plan::FileGroup;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, execute_stream};
use datafusion::prelude::DataFrame;
use futures::StreamExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often progress is told.
const TICK: Duration = Duration::from_millis(100);

/// Rows read so far, and how many there are where that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Rows that have left the scans.
    pub rows: u64,
    /// Rows the scans will give.
    pub total: Option<u64>,
    /// Whether the scans have given all their rows: what is left is computing.
    pub read: bool,
}

/// What those sources of a query have given that DataFusion does not count.
#[derive(Debug, Default)]
pub(crate) struct RowsRead {
    rows: AtomicU64,
    ended: AtomicUsize,
}

impl RowsRead {
    /// That of the query which `ctx` belongs to.
    pub(crate) fn of(ctx: &TaskContext) -> Arc<Self> {
        ctx.session_config().get_extension().unwrap_or_default()
    }

    /// Told by a source for each batch.
    pub(crate) fn add(&self, rows: usize) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Told by a source that has given all its rows.
    pub(crate) fn end(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs `query` and returns its rows; `watch` is told ten times a second how far it is.
///
/// # Errors
///
/// What the query fails with, as a labelflow error.
pub async fn run_to_end(
    query: DataFrame,
    watch: impl FnMut(Progress) + Send + 'static,
) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    run_each(query, watch, |batch| {
        batches.push(batch);
        Ok(())
    })
    .await?;
    Ok(batches)
}

/// As [`run_to_end`], with each batch given to `take` and not kept.
///
/// # Errors
///
/// What the query or `take` fails with.
pub async fn run_each(
    query: DataFrame,
    watch: impl FnMut(Progress) + Send + 'static,
    mut take: impl FnMut(RecordBatch) -> Result<()>,
) -> Result<()> {
    let mut rows = RunningQuery::start(query).await?;
    let _ticker = Ticker::start(&rows, watch)?;
    while let Some(batch) = rows.next().await? {
        take(batch)?;
    }
    Ok(())
}

/// A thread that tells how far a query is. The threads of the query may be computing for minutes.
struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    fn start(
        query: &RunningQuery,
        mut watch: impl FnMut(Progress) + Send + 'static,
    ) -> Result<Self> {
        let (plan, read) = (Arc::clone(&query.plan), Arc::clone(&query.read));
        let total = leaves(&plan).into_iter().map(total_rows).sum::<Option<u64>>();
        let (stop, stopped) = channel();
        let tell = move || {
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                watch(progress(&plan, &read, total));
            }
        };
        let thread = std::thread::Builder::new().name("progress".to_string()).spawn(tell);
        let thread = thread.map_err(|e| Error::io("a thread cannot start", e))?;
        Ok(Ticker { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A watcher that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// A query that gives its rows batch by batch; its errors name the file that is to blame.
pub struct RunningQuery {
    plan: Arc<dyn ExecutionPlan>,
    read: Arc<RowsRead>,
    stream: SendableRecordBatchStream,
}

impl RunningQuery {
    /// Plans and starts `query`.
    ///
    /// # Errors
    ///
    /// What planning fails with.
    pub async fn start(query: DataFrame) -> Result<Self> {
        let read = Arc::new(RowsRead::default());
        let task = query.task_ctx();
        let config = task.session_config().clone().with_extension(Arc::clone(&read));
        let task = Arc::new(task.with_session_config(config));
        let plan = query.create_physical_plan().await.map_err(from_datafusion)?;
        let stream = execute_stream(Arc::clone(&plan), task).map_err(|e| explained(&plan, e))?;
        Ok(RunningQuery { plan, read, stream })
    }

    /// The columns of its rows.
    pub fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }

    /// The next batch; `None` at the end.
    ///
    /// # Errors
    ///
    /// What the query fails with.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.stream.next().await.transpose().map_err(|e| explained(&self.plan, e))
    }
}

fn explained(plan: &Arc<dyn ExecutionPlan>, error: DataFusionError) -> Error {
    explain(&leaves(plan), from_datafusion(error))
}

fn leaves(plan: &Arc<dyn ExecutionPlan>) -> Vec<&Arc<dyn ExecutionPlan>> {
    if plan.children().is_empty() {
        return vec![plan];
    }
    plan.children().into_iter().flat_map(leaves).collect()
}

fn total_rows(leaf: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    let statistics =
        StatisticsContext::new().compute(leaf.as_ref(), &StatisticsArgs::new()).ok()?;
    statistics.num_rows.get_value().map(|n| *n as u64)
}

fn progress(plan: &Arc<dyn ExecutionPlan>, read: &RowsRead, total: Option<u64>) -> Progress {
    let mut rows = read.rows.load(Ordering::Relaxed);
    let (mut ended, mut parts) = (read.ended.load(Ordering::Relaxed), 0);
    for leaf in leaves(plan) {
        // Partitions share the files of a scan: what has ended is the files.
        let files = scan(leaf).map(|scan| scan.file_groups.iter().map(FileGroup::len).sum());
        parts += files.unwrap_or_else(|| leaf.output_partitioning().partition_count());
        let Some(metrics) = leaf.metrics() else { continue };
        rows += metrics.output_rows().unwrap_or(0) as u64;
        ended += match files {
            Some(_) => metrics.sum_by_name("files_processed").map_or(0, |files| files.as_usize()),
            None => metrics.iter().filter(|metric| has_ended(metric.value())).count(),
        };
    }
    Progress { rows, total, read: ended >= parts }
}

fn has_ended(metric: &MetricValue) -> bool {
    matches!(metric, MetricValue::EndTimestamp(at) if at.value().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{SessionOptions, session};
    use datafusion::arrow::datatypes::DataType;
    use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
    use std::sync::Mutex;

    /// `slow(x)`: `x`, after so long for each batch.
    fn slow(time: Duration) -> ScalarUDF {
        let wait = move |values: &[ColumnarValue]| {
            std::thread::sleep(time);
            Ok(values[0].clone())
        };
        let int = DataType::Int64;
        create_udf("slow", vec![int.clone()], int, Volatility::Volatile, Arc::new(wait))
    }

    /// Progress is told while the only thread of a query computes, whoever reads the rows.
    #[test]
    fn a_thread_that_computes_is_watched() {
        let dir = tempfile::tempdir().unwrap();
        let csv = dir.path().join("t.csv");
        std::fs::write(&csv, "x\n1\n2\n3\n").unwrap();
        let svm = dir.path().join("t.svm");
        std::fs::write(&svm, "a 1:1\nb 1:2\na 2:3\n").unwrap();
        let ctx = session(&SessionOptions { partitions: 1, ..Default::default() }).unwrap();
        ctx.register_udf(slow(4 * TICK));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for file in [csv, svm] {
            let sql = format!("SELECT slow(count(*)) FROM '{}'", file.display());
            let told = Arc::new(Mutex::new(Vec::new()));
            let tell = Arc::clone(&told);
            let rows = runtime.block_on(async {
                let query = ctx.sql(&sql).await.unwrap();
                run_to_end(query, move |p| tell.lock().unwrap().push(p)).await.unwrap()
            });
            assert_eq!(rows[0].num_rows(), 1);
            let last = told.lock().unwrap().last().copied();
            assert_eq!(last, Some(Progress { rows: 3, total: None, read: true }), "{sql}");
        }
    }

    /// A scan of more files than partitions has ended with the last of them.
    #[test]
    fn all_files_are_read_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let ctx = session(&SessionOptions { partitions: 2, ..Default::default() }).unwrap();
        ctx.register_udf(slow(2 * TICK));
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&told);
        runtime.block_on(async {
            for file in 0..6 {
                let name = dir.path().join(format!("{file}.parquet"));
                let copy = format!("COPY (SELECT {file} AS x) TO '{}'", name.display());
                ctx.sql(&copy).await.unwrap().collect().await.unwrap();
            }
            let sql = format!("SELECT slow(x) FROM '{}/' WHERE slow(x) >= 0", dir.path().display());
            let query = ctx.sql(&sql).await.unwrap();
            run_to_end(query, move |p| tell.lock().unwrap().push(p)).await.unwrap();
        });
        let told = told.lock().unwrap();
        assert!(told.iter().any(|p| p.rows > 0 && p.rows < 6), "{told:?}");
        assert!(told.iter().all(|p| !p.read || p.rows == 6), "{told:?}");
    }
}
