//! Scans by pages against those of DataFusion, and files that are not as they should be.

use super::rows::{LocalFile, Opener};
use super::{BY_PAGES, PagedFile};
use crate::sql::footer::PackedFooter;
use crate::sql::scans::Footer;
use crate::sql::tables::Bytes;
use crate::sql::{SessionOptions, session};
use datafusion::arrow::array::{
    Array, ArrayRef, Decimal128Array, DictionaryArray, Float64Array, Int32Array, Int64Array,
    ListArray, MapArray, StringArray, StructArray, TimestampNanosecondArray, TimestampSecondArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{Field, Fields, Int32Type};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::ParquetFileReaderFactory;
use datafusion::datasource::physical_plan::parquet::metadata::CachedParquetMetaData;
use datafusion::datasource::physical_plan::{FileOpener, ParquetSource};
use datafusion::error::Result;
use datafusion::execution::cache::cache_manager::{
    CachedFileMetadataEntry, DEFAULT_METADATA_CACHE_LIMIT,
};
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::{ObjectMeta, ObjectStoreExt, path as store};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderOptions, RowSelection, RowSelector};
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::Result as ParquetResult;
use datafusion::parquet::file::metadata::{
    PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader,
};
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use datafusion::parquet::file::reader::ChunkReader;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::prelude::SessionContext;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use std::fs::{File, create_dir_all};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

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
    write_groups(path, rows, 30_000, 2000);
}

/// Writes row groups and pages with so many rows.
fn write_groups(path: &Path, rows: &RecordBatch, group: usize, page: usize) {
    create_dir_all(path.parent().unwrap()).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group))
        .set_data_page_row_count_limit(page)
        .set_write_batch_size(page.min(500))
        .build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(properties)).unwrap();
    writer.write(rows).unwrap();
    writer.close().unwrap();
}

/// The footer of a file, and what its store knows of it.
fn looked_at(path: &Path) -> (ParquetMetaData, ObjectMeta) {
    let footer = ParquetMetaDataReader::new().parse_and_finish(&File::open(path).unwrap()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let location = store::Path::from_absolute_path(path).unwrap();
    (footer, runtime.block_on(LocalFileSystem::new().head(&location)).unwrap())
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
        count(&ctx, query)
    })
}

/// How many files, or pieces of them, `query` reads page by page.
fn count(ctx: &SessionContext, query: &str) -> usize {
    let plan = run(ctx, &format!("EXPLAIN ANALYZE {query}"));
    let counts = plan.split(BY_PAGES).skip(1).map(|rest| {
        let digits = rest.trim_start_matches('=').split([',', ']']).next().unwrap();
        digits.parse::<usize>().unwrap()
    });
    counts.sum()
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

/// The footer that a session keeps: whether it is packed, and whether it has the places of pages.
fn kept(ctx: &SessionContext) -> (bool, bool) {
    let entries = ctx.runtime_env().cache_manager.get_file_metadata_cache().list_entries();
    let footer = entries.into_values().next().unwrap().value.file_metadata;
    match footer.as_any().downcast_ref::<CachedParquetMetaData>() {
        Some(read) => (false, read.parquet_metadata().offset_index().is_some()),
        None => {
            let packed = footer.as_any().downcast_ref::<PackedFooter>().unwrap();
            (true, packed.unpack(0..1).unwrap().offset_index().is_some())
        }
    }
}

/// The footer is packed by a scan by pages when it is large, and as DataFusion reads it when another scan
/// had to read it again; tables that were created remember their statistics, and do not read it for those.
#[test]
fn scans_of_both_kinds_follow_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.parquet");
    let table = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", file.display());
    for large in [false, true] {
        let mut columns: Vec<(String, ArrayRef)> = Vec::new();
        let ids = Int64Array::from_iter_values(0..30_000);
        let width = if large { 40 } else { 2 };
        columns.extend((0..width).map(|i| (format!("c{i}"), Arc::new(ids.clone()) as ArrayRef)));
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        write_groups(&file, &rows, 1000, 250);
        let theirs = SessionContext::new();
        run(&theirs, &table);
        for partitions in [1, 3] {
            let ctx = session(&SessionOptions { partitions, ..Default::default() }).unwrap();
            run(&ctx, "SET datafusion.optimizer.repartition_file_min_size = 1");
            run(&ctx, &table);
            assert_eq!(kept(&ctx), (false, true));
            let sums = |columns: std::ops::Range<usize>| {
                let sums: Vec<String> = columns.map(|i| format!("sum(c{i})")).collect();
                format!("SELECT {} FROM t", sums.join(", "))
            };
            let (whole, few) = (&*sums(0..width), &*sums(0..width / 4));
            let chosen = "SELECT sum(c0), count(c1) FROM t WHERE c0 BETWEEN 5990 AND 6010";
            let both =
                "SELECT sum(c0) FROM (SELECT c0 FROM t UNION ALL SELECT c1 FROM t WHERE c0 > 9)";
            let mut pieces = Vec::new();
            if large {
                // Not packed for few columns, and not read again.
                assert_eq!(run(&ctx, few), run(&theirs, few));
                assert_eq!(kept(&ctx), (false, true));
                assert!(count(&ctx, few) > 0);
            }
            for query in [whole, whole, chosen, whole, both, whole, chosen, chosen, whole] {
                assert_eq!(run(&ctx, query), run(&theirs, query), "{query}");
                // DataFusion has read it again for the scan with a predicate, after it was packed.
                let read_again = query != whole;
                assert_eq!(kept(&ctx), (large && !read_again, true), "{query}");
                let read = count(&ctx, query);
                assert_eq!(read > 0, query != chosen, "{query}");
                pieces.extend((query == whole).then_some(read));
            }
            assert!(pieces.iter().all(|&p| p == pieces[0] && p >= partitions), "{pieces:?}");
        }
    }
}

#[test]
fn large_footers_are_known() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.parquet");
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..800));
    let columns = (0..100).map(|i| (format!("c{i}"), Arc::clone(&ids)));
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    write_groups(&file, &rows, 1, 1);
    let footer = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
    let footer = footer.parse_and_finish(&File::open(&file).unwrap()).unwrap();
    // More than DataFusion keeps where nobody says otherwise.
    assert!(footer.memory_size() > DEFAULT_METADATA_CACHE_LIMIT);
    assert_eq!(by_pages(&format!("SELECT sum(c0), max(c99) FROM '{}'", file.display()))[0], 1);
}

#[test]
fn row_groups_are_read_together_as_long_as_they_have_few_rows() {
    let runs = |groups: &[usize], selected: Option<Vec<(bool, usize)>>| -> Vec<_> {
        let selector = |(skip, rows)| match skip {
            true => RowSelector::skip(rows),
            false => RowSelector::select(rows),
        };
        let selected = selected.map(|s| s.into_iter().map(selector).collect());
        let runs = super::rows::runs(groups, selected).unwrap().into_iter();
        runs.map(|run| (run.groups, run.rows.map(|rows| rows.row_count()))).collect()
    };
    let groups = [30_000, 30_000, 30_000, 30_000, 10_000];
    assert_eq!(runs(&groups, None), [(0..2, None), (2..4, None), (4..5, None)]);
    let skipped = runs(&groups, Some(vec![(true, 29_990), (false, 20), (true, 99_990)]));
    assert_eq!(skipped, [(0..2, Some(20))]);
    let skipped = runs(&groups, Some(vec![(false, 30_000), (true, 30_000), (false, 70_000)]));
    assert_eq!(skipped, [(0..1, Some(30_000)), (2..4, Some(60_000)), (4..5, Some(10_000))]);
    assert_eq!(runs(&groups, Some(vec![(true, 130_000)])), []);
    for other in [129_999, 130_001] {
        let other = RowSelection::from(vec![RowSelector::select(other)]);
        assert!(super::rows::runs(&groups, Some(other)).is_err());
    }
    let groups = [0, 70_000, 0, 10];
    assert_eq!(runs(&groups, None), [(0..1, None), (1..2, None), (2..4, None)]);
    let skipped = runs(&groups, Some(vec![(true, 70_000), (false, 10)]));
    assert_eq!(skipped, [(3..4, Some(10))]);
}

/// Without an index DataFusion would take what is kept for half of a footer.
#[test]
fn footers_without_an_index_are_shared() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.parquet");
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(1000))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .build();
    let rows = rows(0, 20_000);
    let mut writer =
        ArrowWriter::try_new(File::create(&file).unwrap(), rows.schema(), Some(properties))
            .unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    let ctx = session(&SessionOptions { partitions: 3, ..Default::default() }).unwrap();
    run(&ctx, "SET datafusion.optimizer.repartition_file_min_size = 1");
    run(&ctx, &format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", file.display()));
    let kept = || {
        let cache = ctx.runtime_env().cache_manager.get_file_metadata_cache();
        let entry = cache.list_entries().into_values().next().unwrap().value.file_metadata;
        let read = entry.as_any().downcast_ref::<CachedParquetMetaData>().unwrap();
        Arc::clone(read.parquet_metadata())
    };
    let before = kept();
    assert!(before.offset_index().is_none());
    for _ in 0..2 {
        let rows = run(&ctx, "SELECT count(*) FROM t WHERE id > 15000");
        assert!(rows.contains("4999"), "{rows}");
        assert!(Arc::ptr_eq(&before, &kept()));
    }
}

#[test]
fn times_of_a_catalogue_and_footers_without_sense_are_left_to_datafusion() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    write(&path, &rows(0, 10));
    let (footer, known) = looked_at(&path);
    let kept = session(&SessionOptions::default()).unwrap().runtime_env();
    let kept = kept.cache_manager.get_file_metadata_cache();
    let read = |footer: ParquetMetaData, known: &ObjectMeta| {
        let footer = Arc::new(CachedParquetMetaData::new(Arc::new(footer)));
        kept.put(&known.location, CachedFileMetadataEntry::new(known.clone(), footer));
        let file = PartitionedFile::new_from_meta(known.clone());
        PagedFile::of(&file, &rows(0, 1).schema(), &kept).is_some()
    };
    assert!(read(footer.clone(), &known));
    let less = footer.row_group(0).clone().into_builder().set_num_rows(-1).build().unwrap();
    assert!(!read(footer.clone().into_builder().set_row_groups(vec![less]).build(), &known));
    assert!(!read(footer, &ObjectMeta { last_modified: Default::default(), ..known }));
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
    let prices = Decimal128Array::from(vec![12_345, 1]).with_precision_and_scale(10, 2).unwrap();
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
}

#[test]
fn nothing_comes_after_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    write(&path, &rows(0, 100_000));
    let footer = Arc::new(PackedFooter::of_places(&looked_at(&path).0).unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let read = |known: ObjectMeta| -> Vec<bool> {
        let (footer, rows) = (Footer::Packed(Arc::clone(&footer)), footer.rows().collect());
        let paged = PagedFile { footer, rows, options: Default::default() };
        let file = PartitionedFile::new_from_meta(known).with_extension(paged);
        let opener = Opener { columns: vec![0], batch_size: 10_000 };
        runtime.block_on(async {
            let batches = opener.open(file).unwrap().await.unwrap();
            batches.map(|batch| batch.is_ok()).collect().await
        })
    };
    assert_eq!(read(looked_at(&path).1), [true; 10]);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4..4000].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    // The row groups that follow are as they were.
    assert_eq!(read(looked_at(&path).1), [false]);
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
    assert_eq!(count(&ctx, &query), 2);
}

/// The error of a query on a file that something happens to after planning.
fn after_planning(happen: impl Fn(&Path)) -> String {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.parquet");
    write(&file, &rows(0, 10));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let error = runtime.block_on(async {
        let ctx = session(&SessionOptions::default()).unwrap();
        let query = format!("SELECT id FROM '{}'", file.display());
        let plan = ctx.sql(&query).await.unwrap().create_physical_plan().await.unwrap();
        happen(&file);
        datafusion::physical_plan::collect(plan, ctx.task_ctx()).await.unwrap_err()
    });
    error.to_string()
}

#[test]
fn a_file_that_is_gone_is_named() {
    let error = after_planning(|file| std::fs::remove_file(file).unwrap());
    assert!(error.contains("a.parquet`"), "{error}");
}

#[test]
fn a_file_that_was_replaced_is_not_read() {
    let error = after_planning(|file| write(file, &rows(10, 10)));
    assert!(error.contains("a.parquet` was changed"), "{error}");
    let error = after_planning(|file| write(file, &rows(0, 20)));
    assert!(error.contains("run the query again"), "{error}");
}

#[test]
fn what_a_damaged_file_asks_for_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.parquet"), [0; 100]).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = LocalFileSystem::new_with_prefix(dir.path()).unwrap();
    let known = runtime.block_on(store.head(&"a.parquet".into())).unwrap();
    let location = store::Path::from_absolute_path(dir.path().join("a.parquet")).unwrap();
    let file = LocalFile::open(&ObjectMeta { location, ..known }).unwrap();
    assert_eq!(file.get_bytes(90, 10).unwrap().len(), 10);
    assert!(file.get_bytes(90, 11).is_err());
    assert!(file.get_bytes(0, usize::MAX / 2).is_err());
}

/// Readers that say how often they read a footer, which takes them a while.
#[derive(Debug, Clone)]
struct Slow(Arc<ParquetMetaData>, Arc<AtomicUsize>);

impl ParquetFileReaderFactory for Slow {
    fn create_reader(
        &self,
        _: usize,
        _: PartitionedFile,
        _: Option<usize>,
        _: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        Ok(Box::new(self.clone()))
    }
}

impl AsyncFileReader for Slow {
    fn get_bytes(&mut self, _: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async { Ok(Bytes::new()) }.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        let policy = options.map(ArrowReaderOptions::offset_index_policy);
        assert_eq!(policy, Some(PageIndexPolicy::Optional));
        async {
            self.1.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(Arc::new(ParquetMetaData::clone(&self.0)))
        }
        .boxed()
    }
}

/// Also where nothing keeps it.
#[test]
fn a_footer_is_read_once_for_all_who_want_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    write(&path, &rows(0, 10));
    let (footer, known) = looked_at(&path);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let slow = Slow(Arc::new(footer), Arc::default());
    let source = ParquetSource::new(rows(0, 1).schema());
    let source = source.with_parquet_file_reader_factory(Arc::new(slow.clone()));
    let small = session(&SessionOptions { memory_limit: Some(2), ..Default::default() }).unwrap();
    let kept = small.runtime_env().cache_manager.get_file_metadata_cache();
    let source = super::with_whole_footers(&source, &kept);
    let factory = source.parquet_file_reader_factory().unwrap();
    let read = || {
        let file = PartitionedFile::new_from_meta(known.clone());
        let metrics = ExecutionPlanMetricsSet::new();
        let mut reader = factory.create_reader(0, file, None, &metrics).unwrap();
        async move { reader.get_metadata(None).await.unwrap() }
    };
    let count = || slow.1.load(Ordering::Relaxed);
    let (a, b, c) = runtime.block_on(async { tokio::join!(read(), read(), read()) });
    assert!(Arc::ptr_eq(&a, &b) && Arc::ptr_eq(&b, &c));
    assert_eq!(count(), 1);
    drop((a, b, c));
    runtime.block_on(read());
    assert_eq!(count(), 2);
}
