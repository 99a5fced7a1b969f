//! Files as tables: whatever DataFusion reads, and ARFF.

use super::error::{from_datafusion, to_datafusion};
use crate::error::{Error, Result};
use crate::formats::{ArffReader, LabelSource};
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{DynamicFileCatalog, TableProvider, UrlTableFactory};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::SessionContext;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Makes a table of every file named in a query: `FROM 'train.parquet'`, `FROM 'emotions.arff'`.
pub fn enable_file_tables(ctx: &SessionContext, arff_labels: LabelSource) {
    let listing = DynamicListTableFactory::default();
    listing.session_store().with_state(ctx.state_weak_ref());
    let inner = Arc::clone(ctx.state().catalog_list());
    let files = FileTables { listing, arff_labels };
    ctx.register_catalog_list(Arc::new(DynamicFileCatalog::new(inner, Arc::new(files))));
}

/// Finds the table behind a file name.
#[derive(Debug)]
pub struct FileTables {
    listing: DynamicListTableFactory,
    arff_labels: LabelSource,
}

#[async_trait]
impl UrlTableFactory for FileTables {
    async fn try_new(&self, url: &str) -> DataFusionResult<Option<Arc<dyn TableProvider>>> {
        let path = Path::new(url);
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("arff")) {
            let table = ArffTable::try_new(path, &self.arff_labels).map_err(to_datafusion)?;
            let schema = Arc::clone(&table.schema);
            return Ok(Some(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(table)])?)));
        }
        // A plain name is a table that does not exist; what looks like a file should be one.
        let is_file = url.contains(['/', '\\']) || path.extension().is_some();
        let is_pattern = url.contains("://") || url.contains(['*', '?', '[']);
        if is_file && !is_pattern && !path.exists() {
            return Err(to_datafusion(Error::not_found(format!(
                "file `{url}` does not exist: check the path"
            ))));
        }
        let named = |e| to_datafusion(from_datafusion(e).context(format!("`{url}`")));
        let table = self.listing.try_new(url).await.map_err(named)?;
        if table.is_none() && is_file {
            return Err(to_datafusion(Error::usage(format!(
                "`{url}` cannot be read: name a file, directory or pattern of .parquet, .csv, \
                 .json, .arrow or .arff"
            ))));
        }
        Ok(table)
    }
}

/// An ARFF file, read anew by every scan.
#[derive(Debug)]
struct ArffTable {
    path: PathBuf,
    labels: LabelSource,
    schema: SchemaRef,
}

impl ArffTable {
    fn try_new(path: &Path, labels: &LabelSource) -> Result<Self> {
        let schema = ArffReader::try_open(path, labels)?.schema();
        Ok(ArffTable { path: path.to_path_buf(), labels: labels.clone(), schema })
    }
}

impl PartitionStream for ArffTable {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, ctx: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut stream = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), 2);
        let sender = stream.tx();
        let (path, labels) = (self.path.clone(), self.labels.clone());
        let rows = ctx.session_config().batch_size();
        stream.spawn_blocking(move || {
            let reader = ArffReader::try_open(&path, &labels).map_err(to_datafusion)?;
            for batch in reader.with_batch_size(rows) {
                if sender.blocking_send(batch.map_err(to_datafusion)).is_err() {
                    break;
                }
            }
            Ok(())
        });
        stream.build()
    }
}
