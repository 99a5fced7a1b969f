//! A Parquet file in the making.

use super::column::Column;
use super::encoded::{Encoded, LOCAL_PART, PARTS};
use super::{RowGroup, join};
use crate::sql::footer::PackedFooter;
use crate::sql::tables::Bytes;
use crate::sql::workers;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::config::TableParquetOptions;
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::file_format::write::get_writer_schema;
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::object_store::{ObjectStoreExt, WriteMultipart};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, ArrowWriterOptions};
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
use futures::StreamExt;
use futures::future::Either;
use std::io::{self, Write};
use std::sync::Arc;

/// What a Parquet file begins with.
const MAGIC: &[u8] = b"PAR1";

/// A Parquet file in the making.
pub(super) struct ParquetFile {
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
    /// Begins the one that `config` names.
    pub(super) async fn begin(
        config: &FileSinkConfig,
        mut options: TableParquetOptions,
        context: &TaskContext,
    ) -> Result<Self> {
        let schema = get_writer_schema(config);
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

        let url = &config.object_store_url;
        let store = context.runtime_env().object_store(url)?;
        let upload = store.put_multipart(config.table_paths[0].prefix()).await?;
        let part = match url.as_str().starts_with("file:") {
            true => LOCAL_PART,
            false => context.session_config().options().execution.objectstore_writer_buffer_size,
        };
        let upload = WriteMultipart::new_with_chunk_size(upload, part);
        Ok(ParquetFile { schema, properties, factory, footer, data, encoded, upload, rows: 0 })
    }

    /// How many rows a row group has.
    pub(super) fn rows_of_a_group(&self) -> usize {
        let set = self.properties.max_row_group_row_count();
        set.unwrap_or(DEFAULT_MAX_ROW_GROUP_ROW_COUNT)
    }

    /// Adds a row group, unless it is empty.
    pub(super) async fn write(mut self, group: RowGroup) -> Result<Self> {
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
    pub(super) async fn finish(mut self) -> Result<u64> {
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
