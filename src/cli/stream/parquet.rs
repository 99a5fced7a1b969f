//! Part files in Parquet.

use crate::error::{Error, Result};
use crate::stream::PartWriter;
use arrow::array::RecordBatch;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::schema::types::ColumnPath;
use std::fs::File;

/// Rows of a row group, as everywhere.
const ROW_GROUP: usize = 65_536;

struct ParquetPart(ArrowWriter<File>);

/// Starts a file with the columns of `batch`.
pub(super) fn start(file: File, batch: &RecordBatch) -> Result<Box<dyn PartWriter>> {
    let mut properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_compression(Compression::UNCOMPRESSED);
    // Numbers with a fraction seldom repeat: a dictionary of them costs and saves nothing.
    for field in batch.schema().fields().iter().filter(|f| f.data_type().is_floating()) {
        let path = ColumnPath::new(vec![field.name().clone()]);
        properties = properties.set_column_dictionary_enabled(path, false);
    }
    let writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build()));
    Ok(Box::new(ParquetPart(writer.map_err(failed)?)))
}

impl PartWriter for ParquetPart {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch).map_err(failed)
    }

    fn finish(self: Box<Self>) -> Result<File> {
        self.0.into_inner().map_err(failed)
    }
}

/// A failed write, with the reason that is underneath.
fn failed(error: ParquetError) -> Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
            Ok(cause) => Error::io("a part file", *cause),
            Err(other) => Error::io("a part file", std::io::Error::other(other.to_string())),
        },
        other => Error::io("a part file", std::io::Error::other(other.to_string())),
    }
}
