//! Parquet files of this machine, read page by page.
//!
//! DataFusion has all columns of a row group in memory before it decodes the first row, because a
//! request to a distant store is dear. On a local disk it is not. Here every column is read one page
//! at a time, when its rows are asked for, on the thread that asks: a scan takes the memory of a few
//! pages of each column, and bytes are decoded while they are in the cache of the processor.
//!
//! Scans with a predicate or of single fields of a struct, files whose columns have to be converted for
//! their table, and other stores are left to DataFusion.

use super::scans;
use super::tables::{Bytes, is_local};
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::{FileRange, PartitionedFile};
use datafusion::datasource::physical_plan::parquet::{
    ParquetAccessPlan, ParquetRowSelection, apply_file_schema_type_coercions,
};
use datafusion::datasource::physical_plan::{
    FileOpenFuture, FileOpener, FileScanConfig, FileSource, ParquetSource,
};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::ObjectStore;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::reader::{ChunkReader, Length};
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, PhysicalExpr};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt, TryStreamExt};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        let mut columns = source.projection().into_iter().flat_map(|p| p.iter());
        let plain = source.filter().is_none()
            && config.limit.is_none()
            && config.expr_adapter_factory.is_none()
            && source.table_schema().virtual_columns().is_empty()
            && !columns.any(|c| takes_field(&c.expr));
        (is_local(&store) && plain).then(|| {
            let source = Pages {
                theirs: Arc::clone(config.file_source()),
                batch_size: 0,
                runtime: Arc::clone(&self.0),
            };
            let mut config = config.clone();
            config.file_source = Arc::new(source);
            config
        })
    }
}

/// Whether a field of a struct is asked for: DataFusion reads no other then.
fn takes_field(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let call = expr.downcast_ref::<ScalarFunctionExpr>();
    call.is_some_and(|c| c.fun().name() == "get_field")
        || expr.children().into_iter().any(takes_field)
}

/// What `EXPLAIN ANALYZE` calls the number of files, or pieces of files, that are read page by page.
const BY_PAGES: &str = "files_read_by_pages";

/// Parquet files of which those that can be are read page by page, the others as DataFusion does.
struct Pages {
    theirs: Arc<dyn FileSource>,
    /// DataFusion tells it before it reads.
    batch_size: usize,
    runtime: Arc<RuntimeEnv>,
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
            schema,
            runtime: Arc::clone(&self.runtime),
            by_pages: MetricBuilder::new(self.metrics()).counter(BY_PAGES, partition),
        }))
    }

    fn table_schema(&self) -> &TableSchema {
        self.theirs.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        let theirs = self.theirs.with_batch_size(batch_size);
        Arc::new(Pages { theirs, batch_size, runtime: Arc::clone(&self.runtime) })
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
    /// The columns of files as the table wants them.
    schema: SchemaRef,
    runtime: Arc<RuntimeEnv>,
    /// How many files are read page by page.
    by_pages: Count,
}

impl fmt::Debug for PagesOrTheirs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PagesOrTheirs")
    }
}

impl PagesOrTheirs {
    /// How the columns of `file` are read; `None` where DataFusion has to look at the file, because
    /// its footer is not known, its columns are not those of the table, or a part is asked for that
    /// is not a selection of rows.
    fn columns(&self, file: &PartitionedFile) -> Option<ArrowReaderMetadata> {
        let whole = |r: &FileRange| r.start == 0 && r.end as u64 == file.object_meta.size;
        let selected = file.extension::<ParquetRowSelection>().is_some();
        let known = file.extensions.len() == usize::from(selected);
        if !known || file.arrow_schema.is_some() || !file.range.as_ref().is_none_or(whole) {
            return None;
        }
        let footer = scans::footer(&self.runtime, file)?;
        let own = ArrowReaderMetadata::try_new(footer, ArrowReaderOptions::new()).ok()?;
        // What only the reader can convert, such as text to views, as DataFusion has it do.
        let read = match apply_file_schema_type_coercions(&self.schema, own.schema()) {
            Some(schema) => {
                let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
                ArrowReaderMetadata::try_new(Arc::clone(own.metadata()), options).ok()?
            }
            None => own,
        };
        let (found, wanted) = (read.schema().fields(), self.schema.fields());
        let same =
            |(a, b): (&FieldRef, &FieldRef)| a.name() == b.name() && a.data_type() == b.data_type();
        (found.len() == wanted.len() && found.iter().zip(wanted).all(same)).then_some(read)
    }
}

impl Morselizer for PagesOrTheirs {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        match self.columns(&file) {
            Some(columns) => {
                self.by_pages.add(1);
                let batches = self.pages.open(file.with_extension(columns))?;
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

/// Reads columns of files whose [`ArrowReaderMetadata`] comes with them.
struct Opener {
    /// The places of the columns in the file, in ascending order.
    columns: Vec<usize>,
    batch_size: usize,
}

impl FileOpener for Opener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let batches = self.read(&file)?;
        Ok(async { Ok(stream::iter(batches.map(|b| b.map_err(fault))).boxed()) }.boxed())
    }
}

impl Opener {
    fn read(&self, file: &PartitionedFile) -> Result<ParquetRecordBatchReader> {
        let Some(metadata) = file.extension::<ArrowReaderMetadata>() else {
            return Err(DataFusionError::Internal("a file comes without its footer".into()));
        };
        let path = LocalFileSystem::new().path_to_filesystem(&file.object_meta.location)?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(
            LocalFile::open(path)?,
            metadata.clone(),
        );
        let columns = self.columns.iter().copied();
        let columns = ProjectionMask::roots(metadata.parquet_schema(), columns);
        let mut builder = builder.with_projection(columns).with_batch_size(self.batch_size);
        if let Some(selected) = file.extension::<ParquetRowSelection>() {
            let all = metadata.metadata().row_groups();
            let selection = selected.selection().clone();
            let plan = ParquetAccessPlan::try_new_from_overall_row_selection(selection, all)?;
            let groups = plan.row_group_indexes();
            let rows = plan.into_overall_row_selection(all)?;
            builder = builder.with_row_groups(groups);
            if let Some(rows) = rows {
                builder = builder.with_row_selection(rows);
            }
        }
        Ok(builder.build()?)
    }
}

/// A file that names itself when it cannot be read.
struct LocalFile {
    file: File,
    path: PathBuf,
}

impl LocalFile {
    fn open(path: PathBuf) -> io::Result<Self> {
        match File::open(&path) {
            Ok(file) => Ok(LocalFile { file, path }),
            Err(error) => Err(named(&path, &error)),
        }
    }

    fn explain(&self, error: ParquetError) -> ParquetError {
        match error {
            ParquetError::External(cause) => match cause.downcast_ref::<io::Error>() {
                Some(error) => ParquetError::External(Box::new(named(&self.path, error))),
                None => ParquetError::External(cause),
            },
            error => error,
        }
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

impl Length for LocalFile {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for LocalFile {
    type T = <File as ChunkReader>::T;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        self.file.get_read(start).map_err(|e| self.explain(e))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        // A damaged file may ask for any number of bytes.
        if start.saturating_add(length as u64) > self.len() {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} are past the end")));
        }
        self.file.get_bytes(start, length).map_err(|e| self.explain(e))
    }
}

/// An error of the reader, which has its causes as text.
fn fault(error: ArrowError) -> DataFusionError {
    match error {
        ArrowError::ParquetError(text) => match text.strip_prefix("External: ") {
            Some(cause) => DataFusionError::External(cause.into()),
            None => {
                let text = text.strip_prefix("Parquet error: ").unwrap_or(&text);
                DataFusionError::from(ParquetError::General(text.to_string()))
            }
        },
        error => error.into(),
    }
}

#[cfg(test)]
mod tests;
