//! Footers with the indexes of pages, wherever DataFusion reads them.
//!
//! DataFusion keeps footers with the places and values of pages when it looks at a table, and finds them
//! in its cache when it opens the files. When a packed one is there by then it reads the file anew, without
//! the indexes, and would keep that: no later scan could be cut where pages begin.

use crate::sql::tables::Bytes;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetSource;
use datafusion::datasource::physical_plan::parquet::{
    CachedParquetFileReaderFactory, ParquetFileReaderFactory,
};
use datafusion::error::Result;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::object_store::ObjectStore;
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::Result as ParquetResult;
use datafusion::parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::ops::Range;
use std::sync::Arc;

/// `source`, which reads footers with the indexes of pages when it reads them.
pub(super) fn with_whole_footers(
    source: &ParquetSource,
    store: Arc<dyn ObjectStore>,
    cache: Arc<FileMetadataCache>,
) -> ParquetSource {
    let theirs = source.parquet_file_reader_factory().map(Arc::clone);
    let theirs =
        theirs.unwrap_or_else(|| Arc::new(CachedParquetFileReaderFactory::new(store, cache)));
    source.clone().with_parquet_file_reader_factory(Arc::new(WholeFooters(theirs)))
}

#[derive(Debug)]
struct WholeFooters(Arc<dyn ParquetFileReaderFactory>);

impl ParquetFileReaderFactory for WholeFooters {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        Ok(Box::new(Reader(self.0.create_reader(partition, file, hint, metrics)?)))
    }
}

struct Reader(Box<dyn AsyncFileReader + Send>);

impl AsyncFileReader for Reader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.0.get_bytes(range)
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        self.0.get_byte_ranges(ranges)
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        let options = options.cloned().unwrap_or_default();
        let options = options.with_page_index_policy(PageIndexPolicy::Optional);
        async move { self.0.get_metadata(Some(&options)).await }.boxed()
    }
}
