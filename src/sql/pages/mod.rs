//! Parquet files of this machine, read page by page.
//!
//! DataFusion has all columns of a row group in memory before it decodes the first row, because a
//! request to a distant store is dear. On a local disk it is not. Here every column is read one page
//! at a time, when its rows are asked for, on the thread that asks: a scan takes the memory of a few
//! pages of each column, and bytes are decoded while they are in the cache of the processor. What a
//! large footer says of row groups is packed until they are read
//! ([`PackedFooter`](super::footer::PackedFooter)).
//!
//! Scans with a predicate or of single fields of a struct, files whose columns have to be converted for
//! their table, and other stores are left to DataFusion.

mod rows;
mod whole_footers;

use super::footer::PackedFooter;
use super::scans::{self, Footer};
use super::tables::is_local;
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::{FileRange, PartitionedFile};
use datafusion::datasource::physical_plan::parquet::{
    ParquetRowSelection, apply_file_schema_type_coercions,
};
use datafusion::datasource::physical_plan::{
    FileGroup, FileOpener, FileScanConfig, FileSource, ParquetSource,
};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::{ObjectStore, path as store};
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, PhysicalExpr};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use rows::{Opener, is_unchanged};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use whole_footers::with_whole_footers;

/// The rule that lets local Parquet files be read page by page.
pub(super) struct PageByPage(pub(super) Arc<RuntimeEnv>);

impl fmt::Debug for PageByPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PageByPage")
    }
}

impl PhysicalOptimizerRule for PageByPage {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        scans::replace(plan, |scan| self.instead_of(scan))
    }

    fn name(&self) -> &str {
        "page_by_page"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl PageByPage {
    /// `scan` page by page, where it is one of whole columns of local files.
    fn instead_of(&self, scan: &DataSourceExec) -> Option<FileScanConfig> {
        let (config, source) = scan.downcast_to_file_source::<ParquetSource>()?;
        let store = self.0.object_store(&config.object_store_url).ok()?;
        if !is_local(&store) {
            return None;
        }
        let kept = self.0.cache_manager.get_file_metadata_cache();
        let mut columns = source.projection().into_iter().flat_map(|p| p.iter());
        let plain = source.filter().is_none()
            && config.limit.is_none()
            && config.expr_adapter_factory.is_none()
            && source.table_schema().virtual_columns().is_empty()
            && !columns.any(|c| takes_field(&c.expr));
        let theirs: Arc<dyn FileSource> = Arc::new(with_whole_footers(source, &kept));
        let mut replaced = config.clone();
        replaced.file_source = match plain {
            true => {
                Arc::new(Pages { files: Arc::new(files(config, &kept)), theirs, batch_size: 0 })
            }
            false => theirs,
        };
        Some(replaced)
    }
}

/// How the files of a scan are read page by page, where they are.
fn files(config: &FileScanConfig, kept: &Arc<FileMetadataCache>) -> Files {
    let source = config.file_source();
    let table = source.table_schema().file_schema();
    let mut found = BTreeMap::new();
    for file in config.file_groups.iter().flat_map(FileGroup::iter).filter(|f| is_whole(f)) {
        let location = file.object_meta.location.clone();
        found.entry(location).or_insert_with(|| (file, PagedFile::of(file, table, kept)));
    }
    let footers = found.values().filter_map(|(_, paged)| Some(&paged.as_ref()?.footer));
    let large = footers.map(Footer::memory_size).sum::<usize>() >= LARGE;
    // Row groups are unpacked with all their columns, which takes longer than reading a few of them.
    let asked = source.projection().map_or(table.fields().len(), |p| p.column_indices().len());
    let pack = large && asked * FEW > table.fields().len();
    let files = found.into_iter().filter_map(|(location, (file, paged))| {
        let mut paged = paged?;
        if let (true, Footer::Read(footer)) = (pack, &paged.footer) {
            let packed = Arc::new(PackedFooter::of_places(footer).ok()?);
            scans::keep(kept, &file.object_meta, &packed);
            paged.footer = Footer::Packed(packed);
        }
        Some((location, paged))
    });
    files.collect()
}

impl PagedFile {
    /// How `file` is read; `None` where DataFusion has to look at it, because its footer is not known
    /// or its columns are not those of the table.
    fn of(
        file: &PartitionedFile,
        table: &SchemaRef,
        kept: &Arc<FileMetadataCache>,
    ) -> Option<Self> {
        let footer = Footer::of(kept, &file.object_meta)?;
        // One that makes no sense is for DataFusion to explain.
        let rows = footer.rows()?.into();
        // Times of a catalogue may be none of this file system's.
        if !is_unchanged(&file.object_meta).ok()? {
            return None;
        }
        let empty = Arc::new(ParquetMetaData::new(footer.file().clone(), Vec::new()));
        let own = ArrowReaderMetadata::try_new(empty, ArrowReaderOptions::new()).ok()?;
        // What only the reader can convert, such as text to views, as DataFusion has it do.
        let mut options = ArrowReaderOptions::new();
        let mut read = Arc::clone(own.schema());
        if let Some(schema) = apply_file_schema_type_coercions(table, &read) {
            options = options.with_schema(Arc::new(schema));
            let empty = Arc::clone(own.metadata());
            let metadata = ArrowReaderMetadata::try_new(empty, options.clone()).ok()?;
            read = Arc::clone(metadata.schema());
        }
        let (found, wanted) = (read.fields(), table.fields());
        let same =
            |(a, b): (&FieldRef, &FieldRef)| a.name() == b.name() && a.data_type() == b.data_type();
        if found.len() != wanted.len() || !found.iter().zip(wanted).all(same) {
            return None;
        }
        Some(PagedFile { footer, rows, options })
    }
}

/// Whether a field of a struct is asked for: DataFusion reads no other then.
fn takes_field(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let call = expr.downcast_ref::<ScalarFunctionExpr>();
    call.is_some_and(|c| c.fun().name() == "get_field")
        || expr.children().into_iter().any(takes_field)
}

/// Bytes of the footers of a scan, as DataFusion keeps them, from which on they are kept packed: to read
/// small ones again for the next query would take longer than they are worth.
const LARGE: usize = 1 << 20;
/// Scans of at most one column in so many leave footers as they are.
const FEW: usize = 4;
/// What `EXPLAIN ANALYZE` calls the number of files, or pieces of files, that are read page by page.
const BY_PAGES: &str = "files_read_by_pages";

/// A file that is read page by page.
#[derive(Clone)]
struct PagedFile {
    footer: Footer,
    /// How many rows each row group has.
    rows: Arc<[usize]>,
    options: ArrowReaderOptions,
}

/// Files that are read page by page, by name.
type Files = BTreeMap<store::Path, PagedFile>;

/// Whether `file` is read to its end, but for rows that are not chosen, and with its own columns.
fn is_whole(file: &PartitionedFile) -> bool {
    let whole = |r: &FileRange| r.start == 0 && r.end as u64 == file.object_meta.size;
    let chosen = file.extension::<ParquetRowSelection>().is_some();
    file.extensions.len() == usize::from(chosen)
        && file.arrow_schema.is_none()
        && file.range.as_ref().is_none_or(whole)
}

/// Parquet files of which those that can be are read page by page, the others as DataFusion does.
struct Pages {
    theirs: Arc<dyn FileSource>,
    files: Arc<Files>,
    /// DataFusion tells it before it reads.
    batch_size: usize,
}

impl FileSource for Pages {
    fn create_file_opener(
        &self,
        object_store: Arc<dyn ObjectStore>,
        base_config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        self.theirs.create_file_opener(object_store, base_config, partition)
    }

    fn create_morselizer(
        &self,
        object_store: Arc<dyn ObjectStore>,
        base_config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        let table = self.table_schema();
        let schema = Arc::clone(table.file_schema());
        let split = match self.projection() {
            Some(projection) => SplitProjection::new(&schema, projection),
            None => SplitProjection::unprojected(table),
        };
        let opener = Opener { columns: split.file_indices.clone(), batch_size: self.batch_size };
        Ok(Box::new(PagesOrTheirs {
            pages: ProjectionOpener::try_new(split, Arc::new(opener), &schema)?,
            theirs: self.theirs.create_morselizer(object_store, base_config, partition)?,
            files: Arc::clone(&self.files),
            by_pages: MetricBuilder::new(self.metrics()).counter(BY_PAGES, partition),
        }))
    }

    fn table_schema(&self) -> &TableSchema {
        self.theirs.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        let theirs = self.theirs.with_batch_size(batch_size);
        Arc::new(Pages { theirs, files: Arc::clone(&self.files), batch_size })
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.theirs.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.theirs.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.theirs.metrics()
    }

    fn file_type(&self) -> &str {
        self.theirs.file_type()
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.theirs.fmt_extra(t, f)
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.theirs.reorder_files(files)
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.theirs.apply_expressions(f)
    }
}

/// Chooses for each file how it is read.
struct PagesOrTheirs {
    pages: Arc<dyn FileOpener>,
    theirs: Box<dyn Morselizer>,
    files: Arc<Files>,
    /// How many files are read page by page.
    by_pages: Count,
}

impl fmt::Debug for PagesOrTheirs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PagesOrTheirs")
    }
}

impl Morselizer for PagesOrTheirs {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        match self.files.get(&file.object_meta.location).filter(|_| is_whole(&file)) {
            Some(paged) => {
                self.by_pages.add(1);
                let batches = self.pages.open(file.with_extension(paged.clone()))?;
                Ok(Box::new(Batches(batches.into_stream().try_flatten().boxed())))
            }
            None => self.theirs.plan_file(file),
        }
    }
}

/// The rows of a file.
struct Batches(BoxStream<'static, Result<RecordBatch>>);

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Batches")
    }
}

impl MorselPlanner for Batches {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        Ok(Some(MorselPlan::new().with_morsels(vec![self])))
    }
}

impl Morsel for Batches {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        self.0
    }
}

#[cfg(test)]
mod tests;
