//! Running a query to its end while somebody watches.

use super::error::from_datafusion;
use super::tables::explain;
use crate::error::{Error, Result};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::DataFrame;
use futures::StreamExt;
use std::sync::Arc;
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
}

/// Runs `query` and returns its rows; `watch` is told ten times a second how far it is.
///
/// # Errors
///
/// What the query fails with, as a labelflow error.
pub async fn run_to_end(query: DataFrame, watch: impl FnMut(Progress)) -> Result<Vec<RecordBatch>> {
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
    mut watch: impl FnMut(Progress),
    mut take: impl FnMut(RecordBatch) -> Result<()>,
) -> Result<()> {
    let mut rows = RunningQuery::start(query).await?;
    let total = leaves(&rows.plan).iter().map(|leaf| total_rows(leaf)).sum::<Option<u64>>();
    loop {
        match tokio::time::timeout(TICK, rows.next()).await {
            Ok(batch) => match batch? {
                Some(batch) => take(batch)?,
                None => return Ok(()),
            },
            Err(_) => {
                let rows = leaves(&rows.plan).iter().map(|leaf| rows_so_far(leaf)).sum();
                watch(Progress { rows, total });
            }
        }
    }
}

/// A query that gives its rows batch by batch; its errors name the file that is to blame.
pub struct RunningQuery {
    plan: Arc<dyn ExecutionPlan>,
    stream: SendableRecordBatchStream,
}

impl RunningQuery {
    /// Plans and starts `query`.
    ///
    /// # Errors
    ///
    /// What planning fails with.
    pub async fn start(query: DataFrame) -> Result<Self> {
        let task = Arc::new(query.task_ctx());
        let plan = query.create_physical_plan().await.map_err(from_datafusion)?;
        let stream = execute_stream(Arc::clone(&plan), task).map_err(|e| explained(&plan, e))?;
        Ok(RunningQuery { plan, stream })
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

fn rows_so_far(leaf: &Arc<dyn ExecutionPlan>) -> u64 {
    leaf.metrics().and_then(|m| m.output_rows()).unwrap_or(0) as u64
}
