//! Parquet files that are written column by column, with memory for two row groups.
//!
//! DataFusion encodes all columns of a row group side by side while its rows arrive, each with a
//! compressor of its own, and begins the next group before the last ones are written: memory is as
//! large as the groups that happen to be on their way. Here the rows of a group are collected. Then
//! its columns are encoded, as many at a time as there are threads, and each is written when it is
//! encoded, while the rows of the next group are collected, or wait in the input ([`InOrder`]). What is
//! to be said of it at the end of the file is packed until then
//! ([`PackedFooter`](super::footer::PackedFooter)).

mod column;
mod encoded;
mod file;

use super::ordered::InOrder;
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::config::{ConfigOptions, TableParquetOptions};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::utils::memory::get_record_batch_memory_size;
use datafusion::datasource::physical_plan::parquet::ParquetSink;
use datafusion::datasource::physical_plan::{FileSink, FileSinkConfig};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use file::ParquetFile;
use futures::future::{BoxFuture, ready};
use futures::{FutureExt, StreamExt};
use std::fmt;
use std::sync::Arc;

/// The rule that lets single Parquet files be written column by column.
#[derive(Debug)]
pub(super) struct WriteByColumn;

impl PhysicalOptimizerRule for WriteByColumn {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(write) = plan.downcast_ref::<DataSinkExec>() else { return Ok(plan) };
        let computes_ahead = write.input().downcast_ref::<InOrder>().is_some();
        let sink = write.sink().downcast_ref::<ParquetSink>();
        let sink = sink.and_then(|sink| ColumnSink::instead_of(sink, computes_ahead));
        Ok(match (sink, write.sort_order()) {
            (Some(sink), None) => {
                Arc::new(DataSinkExec::new(Arc::clone(write.input()), Arc::new(sink), None))
            }
            // The order is noted in the file, which is left to DataFusion.
            _ => plan,
        })
    }

    fn name(&self) -> &str {
        "write_by_column"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Writes one Parquet file.
#[derive(Debug)]
struct ColumnSink {
    config: FileSinkConfig,
    options: TableParquetOptions,
    /// Whether the input goes on while nobody asks for its rows.
    computes_ahead: bool,
}

impl ColumnSink {
    /// One that writes what `sink` would, if that is a single file with nothing that depends on the
    /// order of writing.
    fn instead_of(sink: &ParquetSink, computes_ahead: bool) -> Option<Self> {
        let (config, options) = (sink.config(), sink.parquet_options());
        let single = config.table_partition_cols.is_empty()
            && config
                .table_paths
                .first()
                .is_some_and(|p| config.file_output_mode.single_file_output(p));
        let parallel = options.global.allow_single_file_parallelism
            && !options.global.content_defined_chunking.enabled;
        (single && parallel).then(|| ColumnSink {
            config: config.clone(),
            options: options.clone(),
            computes_ahead,
        })
    }
}

impl DisplayAs for ColumnSink {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let (url, computes_ahead) = (&self.config.original_url, self.computes_ahead);
        write!(f, "ColumnSink({url}, computes_ahead={computes_ahead})")
    }
}

#[async_trait]
impl DataSink for ColumnSink {
    fn schema(&self) -> &SchemaRef {
        self.config.output_schema()
    }

    async fn write_all(
        &self,
        mut data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let file = ParquetFile::begin(&self.config, self.options.clone(), context).await?;
        let full = file.rows_of_a_group();
        let empty = || {
            let consumer = MemoryConsumer::new("rows of a Parquet row group");
            RowGroup::new(consumer.register(context.memory_pool()))
        };
        let mut group = empty();
        let mut writing: BoxFuture<Result<ParquetFile>> = ready(Ok(file)).boxed();
        while let Some(batch) = data.next().await {
            let mut batch = batch?;
            while group.rows + batch.num_rows() >= full {
                let missing = full - group.rows;
                group.push(batch.slice(0, missing))?;
                batch = batch.slice(missing, batch.num_rows() - missing);
                let file = writing.await?;
                let complete = std::mem::replace(&mut group, empty());
                let written = join(SpawnedTask::spawn(file.write(complete))).map(|file| file?);
                writing = match self.computes_ahead {
                    // The next rows are in memory once, there.
                    true => ready(Ok(written.await?)).boxed(),
                    false => written.boxed(),
                };
            }
            group.push(batch)?;
        }
        let file = writing.await?;
        // A task, as the writing of row groups: what those have given back serves for the footer.
        join(SpawnedTask::spawn(async { file.write(group).await?.finish().await })).await?
    }
}

async fn join<T: Send + 'static>(task: SpawnedTask<T>) -> Result<T> {
    task.join_unwind().await.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))
}

/// The rows of a row group.
struct RowGroup {
    batches: Vec<RecordBatch>,
    rows: usize,
    memory: MemoryReservation,
}

impl RowGroup {
    fn new(memory: MemoryReservation) -> Self {
        RowGroup { batches: Vec::new(), rows: 0, memory }
    }

    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() > 0 {
            self.memory.try_grow(get_record_batch_memory_size(&batch))?;
            self.rows += batch.num_rows();
            self.batches.push(batch);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
