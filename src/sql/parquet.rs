//! Parquet files that are written column by column, with memory for two row groups.
//!
//! DataFusion encodes all columns of a row group side by side while its rows arrive, each with a
//! compressor of its own, and begins the next group before the last ones are written: memory is as
//! large as the groups that happen to be on their way. Here the rows of a group are collected. Then
//! its columns are encoded, as many at a time as there are threads, and each is written when it is
//! encoded, while the rows of the next group are collected, or wait in the input ([`InOrder`]). What is
//! to be said of it at the end of the file is packed until then ([`PackedFooter`]).

use super::footer::PackedFooter;
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
use datafusion::parquet::bloom_filter::Sbbf;
use datafusion::parquet::errors::Result as ParquetResult;
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaDataWriter, RowGroupMetaData,
};
use datafusion::parquet::file::page_index::column_index::ColumnIndexMetaData;
use datafusion::parquet::file::properties::{
    DEFAULT_MAX_ROW_GROUP_ROW_COUNT, WriterPropertiesBuilder, WriterPropertiesPtr,
};
use datafusion::parquet::file::writer::{OnCloseRowGroup, SerializedRowGroupWriter, TrackedWrite};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::future::{BoxFuture, Either, ready};
use futures::{FutureExt, StreamExt};
use std::fmt;
use std::io::{self, Write};
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a Parquet file begins with.
const MAGIC: &[u8] = b"PAR1";
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
        let writer = ArrowWriter::try_new_with_options(io::sink(), Arc::clone(&schema), options)?;
        let (writer, factory) = writer.into_serialized_writer()?;
        let properties = Arc::clone(writer.properties());
        let footer = PackedFooter::new(writer.close()?.file_metadata().clone());
        let encoded = Encoded::new();
        let mut data = TrackedWrite::new(encoded.clone());
        data.write_all(MAGIC)?;

        let url = &self.config.object_store_url;
        let store = context.runtime_env().object_store(url)?;
        let upload = store.put_multipart(self.config.table_paths[0].prefix()).await?;
        let part = match url.as_str().starts_with("file:") {
            true => LOCAL_PART,
            false => context.session_config().options().execution.objectstore_writer_buffer_size,
        };
        let upload = WriteMultipart::new_with_chunk_size(upload, part);
        Ok(ParquetFile { schema, properties, factory, footer, data, encoded, upload, rows: 0 })
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
        let full = file.properties.max_row_group_row_count();
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

/// A Parquet file in the making.
struct ParquetFile {
    schema: SchemaRef,
    properties: WriterPropertiesPtr,
    factory: ArrowRowGroupWriterFactory,
    footer: PackedFooter,
    data: TrackedWrite<Encoded>,
    /// What went into `data` and `upload` does not have yet.
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
        let index = self.footer.rows().len();
        let number = i16::try_from(index).map_err(|_| too_many_groups())?;
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
        let schema = self.footer.file().schema_descr_ptr();
        let footer = &mut self.footer;
        let remember: OnCloseRowGroup<Encoded> =
            Box::new(|data, group, filters, values, places| {
                let group = with_filters(data, group, filters)?;
                let values = values.into_iter().map(|v| v.unwrap_or(ColumnIndexMetaData::NONE));
                footer.push(group, Some(values.collect()), places.into_iter().collect())
            });
        let properties = Arc::clone(&self.properties);
        let mut row_group = SerializedRowGroupWriter::new(
            schema,
            properties,
            &mut self.data,
            number,
            Some(remember),
        );
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

    /// The columns of `batches`, the row group with that number, each with its writers: nested ones have
    /// several.
    fn columns(&self, index: usize, batches: Vec<RecordBatch>) -> Result<Vec<Column>> {
        let mut writers = self.factory.create_column_writers(index)?.into_iter().enumerate();
        let leaves = self.footer.file().schema_descr();
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
        let packed = self.footer;
        let footer = packed.unpack(0..packed.rows().len())?;
        drop(packed);
        ParquetMetaDataWriter::new_with_tracked(self.data, &footer)
            .with_write_path_in_schema(self.properties.write_path_in_schema())
            .finish()?;
        send(self.encoded.rest(), &mut self.upload).await?;
        self.upload.finish().await?;
        Ok(self.rows)
    }
}

/// Writes the Bloom filters of a row group, each noted with its column.
fn with_filters<W: Write>(
    data: &mut TrackedWrite<W>,
    group: RowGroupMetaData,
    filters: Vec<Option<Sbbf>>,
) -> ParquetResult<RowGroupMetaData> {
    let mut group = group.into_builder();
    let columns = group.take_columns().into_iter().zip(filters);
    let noted = |(column, filter): (ColumnChunkMetaData, Option<Sbbf>)| {
        let Some(filter) = filter else { return Ok(column) };
        let start = data.bytes_written();
        filter.write(&mut *data)?;
        let length = i32::try_from(data.bytes_written() - start)?;
        let column = column.into_builder().set_bloom_filter_offset(Some(start as i64));
        column.set_bloom_filter_length(Some(length)).build()
    };
    let columns = columns.map(noted).collect::<ParquetResult<_>>()?;
    group.set_column_metadata(columns).build()
}

fn too_many_groups() -> DataFusionError {
    DataFusionError::Execution(
        "a Parquet file has at most 32,768 row groups: write several files, or more rows a group \
         (datafusion.execution.parquet.max_row_group_size)"
            .to_string(),
    )
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::footer::tests::rows;
    use crate::sql::{SessionOptions, session};
    use datafusion::dataframe::DataFrameWriteOptions;
    use datafusion::parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};

    /// All bytes of a file but those of its footer, to which those of page indexes do not belong.
    fn before_footer(file: &[u8]) -> &[u8] {
        let (rest, end) = file.split_at(file.len() - 8);
        let length = u32::from_le_bytes(end[..4].try_into().unwrap()) as usize;
        &rest[..rest.len() - length]
    }

    /// As the writer of the crate `parquet` writes them, which encodes on one thread and keeps structs for
    /// the footer. That has ranges of values also in a form that Parquet has given up since.
    #[test]
    fn files_are_those_of_the_plain_writer() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let path = dir.path().join("a.parquet").display().to_string();
        let rows = rows(1000);
        let written = |set: &dyn Fn(&mut TableParquetOptions)| {
            let mut options = TableParquetOptions::default();
            options.global.max_row_group_size = 300;
            options.global.data_page_row_count_limit = 50;
            options.global.write_batch_size = 50;
            options.key_value_metadata.insert("made by".into(), Some("a test".into()));
            set(&mut options);
            runtime.block_on(async {
                let ctx = session(&SessionOptions::default()).unwrap();
                let frame = ctx.read_batch(rows.clone()).unwrap();
                let single = DataFrameWriteOptions::new().with_single_file_output(true);
                frame.write_parquet(&path, single, Some(options.clone())).await.unwrap();
            });
            options.arrow_schema(&rows.schema());
            let properties = WriterPropertiesBuilder::try_from(&options).unwrap().build();
            let mut plain = Vec::new();
            let mut writer =
                ArrowWriter::try_new(&mut plain, rows.schema(), Some(properties)).unwrap();
            writer.write(&rows).unwrap();
            writer.close().unwrap();
            let (plain, ours) = (Bytes::from(plain), Bytes::from(std::fs::read(&path).unwrap()));
            assert!(before_footer(&ours) == before_footer(&plain));
            let read = |file: &Bytes| {
                let reader = ParquetMetaDataReader::new();
                let reader = reader.with_page_index_policy(PageIndexPolicy::Optional);
                reader.parse_and_finish(file).unwrap()
            };
            let footer = read(&ours);
            assert_eq!(footer, read(&plain));
            footer
        };
        let footer = written(&|_| ());
        assert_eq!(footer.num_row_groups(), 4);
        let footer = written(&|options| options.global.bloom_filter_on_write = true);
        assert!(footer.row_group(3).column(0).bloom_filter_offset().is_some());
        written(&|options| options.global.statistics_enabled = Some("chunk".into()));
        written(&|options| options.global.statistics_enabled = Some("none".into()));
    }

    #[test]
    fn more_row_groups_than_a_file_can_have_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet").display().to_string();
        let rows = rows(32_769).project(&[0]).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let error = runtime.block_on(async {
            let mut options = TableParquetOptions::default();
            options.global.max_row_group_size = 1;
            let ctx = session(&SessionOptions::default()).unwrap();
            let single = DataFrameWriteOptions::new().with_single_file_output(true);
            let frame = ctx.read_batch(rows).unwrap();
            frame.write_parquet(&path, single, Some(options)).await.unwrap_err()
        });
        let told = error.to_string();
        assert!(
            told.contains("32,768 row groups") && told.contains("max_row_group_size"),
            "{told}"
        );
    }
}
