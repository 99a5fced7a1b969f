//! Scans by pages against those of DataFusion, and files that are not as they should be.

use super::{BY_PAGES, ChunkReader};
use crate::sql::{SessionOptions, session};
use datafusion::arrow::array::{
    Array, ArrayRef, Decimal128Array, DictionaryArray, Float64Array, Int32Array, Int64Array,
    ListArray, MapArray, StringArray, StructArray, TimestampNanosecondArray, TimestampSecondArray,
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
    assert_eq!(count(&ctx, &query), 2);
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
