//! Parquet files that are written column by column, with memory for two row groups.
//!
//! DataFusion encodes all columns of a row group side by side while its rows arrive, each with a
//! compressor of its own, and begins the next group before the last ones are written: memory is as
//! large as the groups that happen to be on their way. Here the rows of a group are collected. Then
//! its columns are encoded, as many at a time as there are threads, and each is written when it is
//! encoded, while the rows of the next group are collected, or wait in the input ([`InOrder`]).

use super::ordered::InOrder;
use super::tables::{Buffer, Buffers, Bytes};
use super::workers;
use async_trait::async_trait;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::config::{ConfigOptions, TableParquetOptions};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::utils::memory::get_record_batch_memory_size;
use datafusion::datasource::file_format::write::get_writer_schema;
use datafusion::datasource::physical_plan::parquet::ParquetSink;
use datafusion::datasource::physical_plan::{FileSink, FileSinkConfig};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::object_store::{ObjectStoreExt, WriteMultipart};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriterOptions,
    compute_leaves,
};
use datafusion::parquet::file::properties::{
    DEFAULT_MAX_ROW_GROUP_ROW_COUNT, WriterPropertiesBuilder,
};
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::future::{BoxFuture, Either, ready};
use futures::{FutureExt, StreamExt};
use std::fmt;
use std::io::{self, Write};
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that go to a local file at a time. Other stores ask for larger parts.
const LOCAL_PART: usize = 1 << 20;
/// Parts that are on their way at a time.
const PARTS: usize = 8;

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

    async fn open(&self, context: &TaskContext) -> Result<ParquetFile> {
        let schema = get_writer_schema(&self.config);
        let mut options = self.options.clone();
        if !options.global.skip_arrow_metadata {
            options.arrow_schema(&schema);
        }
        let properties = WriterPropertiesBuilder::try_from(&options)?.build();
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(options.global.skip_arrow_metadata);
        let encoded = Encoded::new();
        let writer =
            ArrowWriter::try_new_with_options(encoded.clone(), Arc::clone(&schema), options)?;
        let (writer, factory) = writer.into_serialized_writer()?;

        let url = &self.config.object_store_url;
        let store = context.runtime_env().object_store(url)?;
        let upload = store.put_multipart(self.config.table_paths[0].prefix()).await?;
        let part = match url.as_str().starts_with("file:") {
            true => LOCAL_PART,
            false => context.session_config().options().execution.objectstore_writer_buffer_size,
        };
        let upload = WriteMultipart::new_with_chunk_size(upload, part);
        Ok(ParquetFile { schema, writer, factory, encoded, upload, rows: 0 })
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
        let file = self.open(context).await?;
        let full = file.writer.properties().max_row_group_row_count();
        let full = full.unwrap_or(DEFAULT_MAX_ROW_GROUP_ROW_COUNT);
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
        writing.await?.write(group).await?.finish().await
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

/// A Parquet file in the making.
struct ParquetFile {
    schema: SchemaRef,
    writer: SerializedFileWriter<Encoded>,
    factory: ArrowRowGroupWriterFactory,
    /// What `writer` has written and `upload` does not have yet.
    encoded: Encoded,
    upload: WriteMultipart,
    rows: u64,
}

impl ParquetFile {
    /// Adds a row group, unless it is empty.
    async fn write(mut self, group: RowGroup) -> Result<Self> {
        if group.rows == 0 {
            return Ok(self);
        }
        self.rows += group.rows as u64;
        let threads = workers();
        let index = self.writer.flushed_row_groups().len();
        let columns = self.columns(index, group.batches)?;
        let encode = |column: Column| SpawnedTask::spawn(async move { column.encode() });
        // Lists take longest: they begin first, so that nothing waits for them at the end.
        let begun = |column: Column| match column.field.data_type().is_nested() {
            true => Either::Left(encode(column)),
            false => Either::Right(column),
        };
        let columns: Vec<_> = columns.into_iter().map(begun).collect();
        let encoded = |column| match column {
            Either::Left(task) => join(task),
            Either::Right(column) => join(encode(column)),
        };
        // Some are encoded while others wait for their turn to be written.
        let mut columns = futures::stream::iter(columns).map(encoded).buffered(2 * threads);
        let mut row_group = self.writer.next_row_group()?;
        while let Some(chunks) = columns.next().await {
            for chunk in chunks?? {
                chunk.append_to_row_group(&mut row_group)?;
            }
            send(self.encoded.full(), &mut self.upload).await?;
        }
        row_group.close()?;
        drop(group.memory);
        drop(columns);
        Ok(self)
    }

    /// The columns of `batches`, each with its writers: nested ones have several.
    fn columns(&self, index: usize, batches: Vec<RecordBatch>) -> Result<Vec<Column>> {
        let mut writers = self.factory.create_column_writers(index)?.into_iter().enumerate();
        let leaves = self.writer.schema_descr();
        let mut next = writers.next();
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for (i, field) in self.schema.fields().iter().enumerate() {
            let mut own = Vec::new();
            while let Some((_, writer)) =
                next.take_if(|(leaf, _)| leaves.get_column_root_idx(*leaf) == i)
            {
                own.push(writer);
                next = writers.next();
            }
            let arrays = batches.iter().map(|b| Arc::clone(b.column(i))).collect();
            columns.push(Column { field: Arc::clone(field), arrays, writers: own });
        }
        Ok(columns)
    }

    /// Writes the footer; returns how many rows there are.
    async fn finish(mut self) -> Result<u64> {
        self.writer.finish()?;
        send(self.encoded.rest(), &mut self.upload).await?;
        self.upload.finish().await?;
        Ok(self.rows)
    }
}

/// Hands on what is encoded.
async fn send(parts: Vec<Bytes>, upload: &mut WriteMultipart) -> Result<()> {
    for part in parts {
        upload.wait_for_capacity(PARTS).await?;
        upload.put(part);
    }
    Ok(())
}

/// Collects what is written, in buffers that serve again when they are in the file.
#[derive(Clone)]
struct Encoded(Arc<Mutex<Parts>>);

struct Parts {
    buffers: Arc<Buffers>,
    full: Vec<Bytes>,
    open: Option<Buffer>,
}

impl Encoded {
    fn new() -> Self {
        // A long column takes more at a time, which are not kept.
        let buffers = Arc::new(Buffers::keeping(2 * PARTS * LOCAL_PART));
        Encoded(Arc::new(Mutex::new(Parts { buffers, full: Vec::new(), open: None })))
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parts that are full.
    fn full(&self) -> Vec<Bytes> {
        take(&mut self.parts().full)
    }

    /// All that is written.
    fn rest(&self) -> Vec<Bytes> {
        let last = self.parts().open.take().map(Bytes::from_owner);
        self.full().into_iter().chain(last).collect()
    }
}

impl Write for Encoded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut parts = self.parts();
        let mut open = parts.open.take().unwrap_or_else(|| parts.buffers.empty(LOCAL_PART));
        let written = open.push(bytes);
        match open.is_full() {
            true => parts.full.push(Bytes::from_owner(open)),
            false => parts.open = Some(open),
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A column of a row group that is not encoded yet.
struct Column {
    field: FieldRef,
    arrays: Vec<ArrayRef>,
    writers: Vec<ArrowColumnWriter>,
}

impl Column {
    fn encode(mut self) -> Result<Vec<ArrowColumnChunk>> {
        for array in take(&mut self.arrays) {
            let leaves = compute_leaves(&self.field, &array)?;
            for (leaf, writer) in leaves.iter().zip(&mut self.writers) {
                writer.write(leaf)?;
            }
        }
        let chunks = self.writers.into_iter().map(|w| Ok(w.close()?));
        chunks.collect()
    }
}
