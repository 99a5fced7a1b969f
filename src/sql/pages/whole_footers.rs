//! Footers with the indexes of pages, wherever DataFusion reads them again.
//!
//! DataFusion keeps footers with the places and values of pages when it looks at a table, and finds them
//! in its cache when it opens the files. When a packed one is there by then, it reads the file anew: each
//! partition for itself, without the indexes, and that would be kept. No later scan could be cut where
//! pages begin.

use crate::sql::scans::Footer;
use crate::sql::tables::Bytes;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetSource;
use datafusion::datasource::physical_plan::parquet::ParquetFileReaderFactory;
use datafusion::error::Result;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::object_store::{ObjectMeta, path::Path};
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::Result as ParquetResult;
use datafusion::parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::lock::Mutex as Turn;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// `source`, which reads footers that are not `kept` as DataFusion knows them once, with the indexes of
/// pages.
pub(super) fn with_whole_footers(
    source: &ParquetSource,
    kept: &Arc<FileMetadataCache>,
) -> ParquetSource {
    // One without a factory keeps no footers.
    let Some(theirs) = source.parquet_file_reader_factory().map(Arc::clone) else {
        return source.clone();
    };
    let whole = WholeFooters { theirs, kept: Arc::clone(kept), turns: Mutex::default() };
    source.clone().with_parquet_file_reader_factory(Arc::new(whole))
}

struct WholeFooters {
    theirs: Arc<dyn ParquetFileReaderFactory>,
    kept: Arc<FileMetadataCache>,
    /// For each file, whose turn it is to read its footer, and the one that was read if somebody still
    /// has it: the session may have no room for it.
    turns: Mutex<BTreeMap<Path, Arc<Turn<Weak<ParquetMetaData>>>>>,
}

impl fmt::Debug for WholeFooters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WholeFooters").field(&self.theirs).finish()
    }
}

impl ParquetFileReaderFactory for WholeFooters {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let known = file.object_meta.clone();
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = Arc::clone(turns.entry(known.location.clone()).or_default());
        Ok(Box::new(Reader {
            theirs: self.theirs.create_reader(partition, file, hint, metrics)?,
            kept: Arc::clone(&self.kept),
            known,
            turn,
        }))
    }
}

struct Reader {
    theirs: Box<dyn AsyncFileReader + Send>,
    kept: Arc<FileMetadataCache>,
    known: ObjectMeta,
    turn: Arc<Turn<Weak<ParquetMetaData>>>,
}

impl AsyncFileReader for Reader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.theirs.get_bytes(range)
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        self.theirs.get_byte_ranges(ranges)
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        let (theirs, kept, known) = (&mut self.theirs, &self.kept, &self.known);
        let is_kept = || matches!(Footer::of(kept, known), Some(Footer::Read(_)));
        let turn = &self.turn;
        async move {
            if is_kept() {
                return theirs.get_metadata(options).await;
            }
            let mut found = turn.lock().await;
            if is_kept() {
                return theirs.get_metadata(options).await;
            }
            if let Some(footer) = found.upgrade() {
                return Ok(footer);
            }
            let whole = options.cloned().unwrap_or_default();
            let whole = whole.with_page_index_policy(PageIndexPolicy::Optional);
            let footer = theirs.get_metadata(Some(&whole)).await?;
            *found = Arc::downgrade(&footer);
            Ok(footer)
        }
        .boxed()
    }
}
