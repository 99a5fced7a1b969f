//! Files that are read row by row, as one table.

use super::super::error::to_datafusion;
use super::super::query::RowsRead;
use crate::error::{Error, Result};
use crate::formats::{FileReader, LabelSource};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::PartitionStream;
use std::path::PathBuf;
use std::sync::Arc;

/// Files of one format and one schema, read anew by every scan, one after the other.
#[derive(Debug)]
pub(super) struct RowFiles {
    paths: Vec<PathBuf>,
    labels: LabelSource,
    schema: SchemaRef,
}

impl RowFiles {
    /// A table of `paths`, with at most `partitions` of them read at a time. With one partition the
    /// rows are in the order of the files.
    pub(super) fn table(
        paths: &[PathBuf],
        labels: &LabelSource,
        partitions: usize,
    ) -> DataFusionResult<Arc<dyn TableProvider>> {
        let schema = common_schema(paths, labels).map_err(to_datafusion)?;
        let share = paths.len().div_ceil(partitions.max(1)).max(1);
        let part = |paths: &[PathBuf]| -> Arc<dyn PartitionStream> {
            let schema = Arc::clone(&schema);
            Arc::new(RowFiles { paths: paths.to_vec(), labels: labels.clone(), schema })
        };
        let parts = paths.chunks(share).map(part).collect();
        Ok(Arc::new(StreamingTable::try_new(Arc::clone(&schema), parts)?))
    }
}

/// The schema that all files have.
fn common_schema(paths: &[PathBuf], labels: &LabelSource) -> Result<SchemaRef> {
    let [first, others @ ..] = paths else {
        return Err(Error::internal("a table without files"));
    };
    let schema = FileReader::try_open(first, labels)?.schema();
    for other in others {
        if FileReader::try_open(other, labels)?.schema() != schema {
            return Err(Error::incompatible(format!(
                "file `{}` has other columns or labels than `{}`: read them apart",
                other.display(),
                first.display()
            )));
        }
    }
    Ok(schema)
}

impl PartitionStream for RowFiles {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, ctx: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut stream = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), 2);
        let sender = stream.tx();
        let (paths, labels) = (self.paths.clone(), self.labels.clone());
        let rows = ctx.session_config().batch_size();
        let read = RowsRead::of(&ctx);
        stream.spawn_blocking(move || {
            for path in &paths {
                let reader = FileReader::try_open(path, &labels).map_err(to_datafusion)?;
                for batch in reader.with_batch_size(rows) {
                    read.add(batch.as_ref().map_or(0, |batch| batch.num_rows()));
                    if sender.blocking_send(batch.map_err(to_datafusion)).is_err() {
                        return Ok(());
                    }
                }
            }
            read.end();
            Ok(())
        });
        stream.build()
    }
}
