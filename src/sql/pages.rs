//! Parquet files of this machine, read page by page.
//!
//! DataFusion has all columns of a row group in memory before it decodes the first row, because a
//! request to a distant store is dear. On a local disk it is not. Here every column is read one page
//! at a time, when its rows are asked for, on the thread that asks: a scan takes the memory of a few
//! pages of each column, and bytes are decoded while they are in the cache of the processor.
//!
//! Scans with a predicate or of single fields of a struct, files whose columns have to be converted for
//! their table, and other stores are left to DataFusion.

use super::pieces::footer;
use super::tables::{Bytes, is_local};
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::listing::{FileRange, PartitionedFile};
use datafusion::datasource::physical_plan::parquet::{
    ParquetAccessPlan, apply_file_schema_type_coercions,
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
        let paged = plan.transform_up(|node| {
            let scan = node.downcast_ref::<DataSourceExec>();
            Ok(match scan.and_then(|scan| Some((scan, self.instead_of(scan)?))) {
                Some((scan, config)) => {
                    let scan = scan.clone().with_data_source(Arc::new(config));
                    Transformed::yes(Arc::new(scan) as _)
                }
                None => Transformed::no(node),
            })
        })?;
        Ok(paged.data)
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
#[derive(Clone)]
struct Pages {
    theirs: Arc<dyn FileSource>,
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
    /// is not an access plan for its row groups.
    fn columns(&self, file: &PartitionedFile) -> Option<ArrowReaderMetadata> {
        let whole = |r: &FileRange| r.start == 0 && r.end as u64 == file.object_meta.size;
        let plan = file.extension::<ParquetAccessPlan>();
        let known = file.extensions.len() == usize::from(plan.is_some());
        if !known || file.arrow_schema.is_some() || !file.range.as_ref().is_none_or(whole) {
            return None;
        }
        let footer = footer(&self.runtime, file)?;
        if plan.is_some_and(|plan| plan.len() != footer.num_row_groups()) {
            return None;
        }
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
        if let Some(plan) = file.extension::<ParquetAccessPlan>() {
            let groups = plan.row_group_indexes();
            let rows = plan.clone().into_overall_row_selection(metadata.metadata().row_groups())?;
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
mod tests {
    use super::{BY_PAGES, ChunkReader};
    use crate::sql::{SessionOptions, session};
    use datafusion::arrow::array::{
        Array, ArrayRef, Decimal128Array, DictionaryArray, Float64Array, Int32Array, Int64Array,
        ListArray, MapArray, StringArray, StructArray, TimestampNanosecondArray,
        TimestampSecondArray,
    };
    use datafusion::arrow::buffer::OffsetBuffer;
    use datafusion::arrow::datatypes::{Field, Fields, Int32Type};
    use datafusion::arrow::record_batch::RecordBatch;
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::parquet::file::properties::WriterProperties;
    use datafusion::prelude::SessionContext;
    use std::fs::{File, create_dir_all};
    use std::path::Path;
    use std::sync::Arc;

    /// Columns of many types, with NULL in most.
    fn rows(from: i64, count: i64) -> RecordBatch {
        let ids = from..from + count;
        let some = |i: &i64| i % 7 != 3;
        let number = |i: i64| some(&i).then_some(i as f64 / 3.0);
        let name = |i: i64| some(&i).then(|| format!("name {}", i % 50));
        let numbers: Float64Array = ids.clone().map(number).collect();
        let names: StringArray = ids.clone().map(name).collect();
        let few: DictionaryArray<Int32Type> =
            ids.clone().map(|i| some(&i).then_some(["a", "b", "c"][i as usize % 3])).collect();
        let times: TimestampNanosecondArray = ids.clone().map(|i| some(&i).then_some(i)).collect();
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(
            ids.clone().map(|i| some(&i).then(|| (0..i as i32 % 4).map(Some))),
        );
        let fields = |fields: Vec<(Field, ArrayRef)>| {
            let (fields, arrays): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
            StructArray::new(Fields::from(fields), arrays, None)
        };
        let field = |name: &str, array: &ArrayRef, nulls| {
            (Field::new(name, array.data_type().clone(), nulls), Arc::clone(array))
        };
        let (x, y) = (Arc::new(numbers.clone()) as ArrayRef, Arc::new(names.clone()) as ArrayRef);
        let pair = fields(vec![field("x", &x, true), field("y", &y, true)]);
        let keys = Arc::new(StringArray::from_iter_values(ids.clone().map(|i| i.to_string()))) as _;
        let values = Arc::new(Int32Array::from_iter_values(ids.clone().map(|i| i as i32))) as _;
        let entries = fields(vec![field("keys", &keys, false), field("values", &values, true)]);
        let entry = Arc::new(Field::new("entries", entries.data_type().clone(), false));
        let lengths = OffsetBuffer::from_lengths(ids.clone().map(|_| 1));
        let maps = MapArray::new(entry, lengths, entries, None, false);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(Int64Array::from_iter_values(ids))),
            ("number", x),
            ("name", y),
            ("few", Arc::new(few)),
            ("time", Arc::new(times)),
            ("list", Arc::new(lists)),
            ("pair", Arc::new(pair)),
            ("map", Arc::new(maps)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn write(path: &Path, rows: &RecordBatch) {
        create_dir_all(path.parent().unwrap()).unwrap();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(30_000))
            .set_data_page_row_count_limit(2000)
            .set_write_batch_size(500)
            .build();
        let file = File::create(path).unwrap();
        let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(properties)).unwrap();
        writer.write(rows).unwrap();
        writer.close().unwrap();
    }

    fn run(ctx: &SessionContext, query: &str) -> String {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let rows = runtime.block_on(async { ctx.sql(query).await?.collect().await }).unwrap();
        pretty_format_batches(&rows).unwrap().to_string()
    }

    /// How many files, or pieces of them, `query` reads page by page, if it answers as DataFusion
    /// with nothing changed, with one partition and with three.
    fn by_pages(query: &str) -> [usize; 2] {
        let theirs = run(&SessionContext::new().enable_url_table(), query);
        [1, 3].map(|partitions| {
            let ctx = session(&SessionOptions { partitions, ..Default::default() }).unwrap();
            assert_eq!(run(&ctx, query), theirs, "{query}");
            let plan = run(&ctx, &format!("EXPLAIN ANALYZE {query}"));
            let counts = plan.split(BY_PAGES).skip(1).map(|rest| {
                let digits = rest.trim_start_matches('=').split([',', ']']).next().unwrap();
                digits.parse::<usize>().unwrap()
            });
            counts.sum()
        })
    }

    #[test]
    fn scans_answer_as_those_of_datafusion() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.parquet");
        write(&file, &rows(0, 70_000));
        let of_file = |query: &str| query.replace("{}", &file.display().to_string());
        for query in [
            "SELECT * FROM '{}' ORDER BY id",
            "SELECT id, name, id AS again, list FROM '{}' ORDER BY id DESC",
            "SELECT number * 2 AS double, pair, id FROM '{}' ORDER BY id",
            "SELECT few, count(*), sum(id), max(cardinality(map)) FROM '{}' GROUP BY few ORDER BY few",
            "SELECT sum(1) FROM '{}'",
        ] {
            let [one, three] = by_pages(&of_file(query));
            assert!(one == 1 && three >= 3, "{query}: {one} and {three}");
        }
        for query in [
            "SELECT id FROM '{}' WHERE id > 60000 ORDER BY id",
            "SELECT pair['y'] AS y, id FROM '{}' ORDER BY id",
        ] {
            assert_eq!(by_pages(&of_file(query)), [0, 0], "{query}");
        }
    }

    #[test]
    fn files_that_differ_from_their_table_are_left_to_datafusion() {
        let dir = tempfile::tempdir().unwrap();
        let all = rows(0, 1000);
        write(&dir.path().join("a.parquet"), &all);
        // Columns are missing, and stand elsewhere.
        write(&dir.path().join("b.parquet"), &all.project(&[1, 0]).unwrap());
        let query = "SELECT id, number, name FROM '{}/' ORDER BY id, name";
        let query = query.replace("{}", &dir.path().display().to_string());
        assert_eq!(by_pages(&query)[0], 1);
    }

    #[test]
    fn declared_types_are_converted() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.parquet");
        let seconds = TimestampSecondArray::from(vec![86_400, 7]);
        let prices =
            Decimal128Array::from(vec![12_345, 1]).with_precision_and_scale(10, 2).unwrap();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("nanoseconds", Arc::new(TimestampNanosecondArray::from(vec![5_000_000_000, 7]))),
            ("seconds", Arc::new(seconds)),
            ("price", Arc::new(prices)),
            ("number", Arc::new(Int32Array::from(vec![1, 2]))),
        ];
        write(&file, &RecordBatch::try_from_iter(columns).unwrap());
        let table = "CREATE EXTERNAL TABLE t (nanoseconds TIMESTAMP(3), seconds TIMESTAMP(9), \
                     price DECIMAL(40, 4), number DOUBLE) STORED AS PARQUET LOCATION '{}'";
        let table = table.replace("{}", &file.display().to_string());
        let answer = |ctx: SessionContext| {
            run(&ctx, &table);
            run(&ctx, "SELECT * FROM t ORDER BY number")
        };
        let ours = answer(session(&SessionOptions::default()).unwrap());
        assert_eq!(ours, answer(SessionContext::new()));
        assert!(ours.contains("1970-01-02") && ours.contains("123.4500"), "{ours}");
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.parquet");
        write(&file, &rows(0, 20_000));
        let bytes = std::fs::read(&file).unwrap();
        let query = format!("SELECT * FROM '{}'", file.display());
        let runtime = tokio::runtime::Runtime::new().unwrap();
        for cut in [0, 4000, 20_000] {
            let mut damaged = bytes.clone();
            damaged.splice(4..4 + cut, vec![0xff; cut]);
            std::fs::write(&file, &damaged).unwrap();
            let ctx = session(&SessionOptions::default()).unwrap();
            let rows = runtime.block_on(async { ctx.sql(&query).await?.collect().await });
            assert_eq!(rows.is_ok(), cut == 0, "{cut}");
            let told = rows.err().map(|e| e.to_string()).unwrap_or_default();
            assert!(cut == 0 || told.contains("Parquet error: "), "{told}");
        }
        let file = super::LocalFile::open(file).unwrap();
        assert!(file.get_bytes(0, usize::MAX / 2).is_err());
    }

    #[test]
    fn partition_columns_are_added() {
        let dir = tempfile::tempdir().unwrap();
        for kind in [1, 2] {
            write(&dir.path().join(format!("kind={kind}/a.parquet")), &rows(kind, 10));
        }
        let ctx = session(&SessionOptions::default()).unwrap();
        let query = "SELECT kind, sum(id) FROM '{}/' GROUP BY kind ORDER BY kind";
        let query = query.replace("{}", &dir.path().display().to_string());
        let sums = run(&ctx, &query);
        assert!(sums.contains("| 1    | 55 ") && sums.contains("| 2    | 65 "), "{sums}");
        assert!(run(&ctx, &format!("EXPLAIN ANALYZE {query}")).contains(BY_PAGES));
    }

    #[test]
    fn a_file_that_is_gone_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.parquet");
        write(&file, &rows(0, 10));
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let error = runtime.block_on(async {
            let ctx = session(&SessionOptions::default()).unwrap();
            let query = format!("SELECT id FROM '{}'", file.display());
            let plan = ctx.sql(&query).await.unwrap().create_physical_plan().await.unwrap();
            std::fs::remove_file(&file).unwrap();
            datafusion::physical_plan::collect(plan, ctx.task_ctx()).await.unwrap_err()
        });
        assert!(error.to_string().contains("a.parquet`"), "{error}");
    }
}
