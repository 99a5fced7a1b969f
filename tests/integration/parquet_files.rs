//! Parquet files that are written column by column, and scans that are cut by rows.

use crate::program::{Workplace, split};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{Int64Type, UInt64Type};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use datafusion::parquet::file::serialized_reader::ReadOptionsBuilder;
use datafusion::physical_plan::execute_stream_partitioned;
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use labelflow::sql::{SessionOptions, session};
use std::fs::File;
use std::path::Path;
use tokio::runtime::Runtime;

/// Rows of each row group of a file.
fn row_groups(file: &Path) -> Vec<i64> {
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    reader.metadata().row_groups().iter().map(|g| g.num_rows()).collect()
}

fn rows(ctx: &SessionContext, runtime: &Runtime, sql: &str) -> Vec<RecordBatch> {
    runtime.block_on(async { ctx.sql(sql).await.unwrap().collect().await.unwrap() })
}

/// Nested columns have several columns in the file, which stay together and in order.
#[test]
fn every_type_comes_back_in_groups_of_the_asked_size() {
    let place = Workplace::new();
    let runtime = Runtime::new().unwrap();
    let options = SessionOptions { batch_size: 64, ..Default::default() };
    let ctx = session(&options).unwrap();
    // These rows have no order that a copy would have to note.
    place.ok(&split("generate --rows 1050 --features 2 --labels 3 --seed 1 source.parquet"));
    let all = "SELECT value AS id, value / 2.0 AS half, 'n' || value AS name, \
         CASE WHEN value % 3 > 0 THEN ['a', NULL, 'b' || value] END AS list, \
         named_struct('x', value, 'y', ['q' || value]) AS pair, \
         MAP {'k' || (value % 5): value} AS map, value % 2 = 0 AS flag \
         FROM (SELECT id AS value FROM 'SOURCE')";
    let all = all.replace("SOURCE", &place.path("source.parquet").display().to_string());
    let file = place.path("all.parquet");
    let copy = |limit: usize, size: usize| {
        let name = file.display();
        let copy = format!(
            "COPY (SELECT * FROM ({all}) WHERE id < {limit}) TO '{name}' \
             OPTIONS ('format.max_row_group_size' '{size}')"
        );
        let plan = rows(&ctx, &runtime, &format!("EXPLAIN {copy}"));
        assert!(pretty_format_batches(&plan).unwrap().to_string().contains("ColumnSink"));
        let count = rows(&ctx, &runtime, &copy);
        assert_eq!(count[0].column(0).as_primitive::<UInt64Type>().value(0), limit as u64);
        let read = rows(&ctx, &runtime, &format!("SELECT * FROM '{name}' ORDER BY id"));
        let expected =
            rows(&ctx, &runtime, &format!("SELECT * FROM ({all}) WHERE id < {limit} ORDER BY id"));
        let text = |rows: &[RecordBatch]| pretty_format_batches(rows).unwrap().to_string();
        if limit > 0 {
            assert_eq!(text(&read), text(&expected));
        }
        row_groups(&file)
    };
    assert_eq!(copy(1050, 100), [vec![100; 10], vec![50]].concat());
    // Smaller than a batch, a whole number of groups, one group, no row.
    assert_eq!(copy(100, 10), [10; 10]);
    assert_eq!(copy(1000, 200), [200; 5]);
    assert_eq!(copy(1050, 5000), [1050]);
    assert!(copy(0, 100).is_empty());
    let empty = rows(&ctx, &runtime, &format!("SELECT count(*) FROM '{}'", file.display()));
    assert_eq!(empty[0].column(0).as_primitive::<Int64Type>().value(0), 0);
}

/// What a memory limit refuses is refused while the rows of a group are collected.
#[test]
fn the_rows_of_a_group_count_as_memory() {
    let place = Workplace::new();
    let runtime = Runtime::new().unwrap();
    place.ok(&split("generate --rows 60000 --features 4 --labels 3 --seed 1 all.parquet"));
    let options = SessionOptions { memory_limit: Some(1 << 20), ..Default::default() };
    let ctx = session(&options).unwrap();
    let copy = format!(
        "COPY (SELECT * FROM '{}') TO '{}'",
        place.path("all.parquet").display(),
        place.path("large.parquet").display()
    );
    let refused = runtime.block_on(async { ctx.sql(&copy).await.unwrap().collect().await });
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("Parquet row group"), "{refused}");
    assert!(!place.path("large.parquet").exists());
}

/// A file of one row group is read by all partitions, which take its pieces in turns: every row once,
/// with an index of pages and without.
#[test]
fn partitions_share_the_pieces_of_a_file() {
    let place = Workplace::new();
    place.ok(&split("generate --rows 150000 --features 2 --labels 3 --seed 1 all.parquet"));
    let runtime = Runtime::new().unwrap();
    let one = |name: &str, options: &str| {
        let file = place.path(name);
        let (all, path) = (place.path("all.parquet"), file.display());
        let ctx = session(&SessionOptions::default()).unwrap();
        let options = format!("OPTIONS ('format.max_row_group_size' '150000'{options})");
        let copy = format!("COPY (SELECT * FROM '{}') TO '{path}' {options}", all.display());
        rows(&ctx, &runtime, &copy);
        assert_eq!(row_groups(&file), [150_000]);
        file
    };
    let pages = one("pages.parquet", "");
    let one_page = one(
        "page.parquet",
        ", 'format.data_page_row_count_limit' '150000', 'format.data_pagesize_limit' '100000000'",
    );
    for file in [pages, one_page] {
        let ids = |partitions: usize| -> Vec<Vec<i64>> {
            let ctx = session(&SessionOptions { partitions, ..Default::default() }).unwrap();
            rows(&ctx, &runtime, "SET datafusion.optimizer.repartition_file_min_size = 1");
            runtime.block_on(async {
                let sql = format!("SELECT id FROM '{}' WHERE f0 IS NOT NULL", file.display());
                let query = ctx.sql(&sql).await.unwrap();
                let task = query.task_ctx();
                let plan = query.create_physical_plan().await.unwrap();
                let mut parts = execute_stream_partitioned(plan, task.into()).unwrap();
                let mut ids = vec![Vec::new(); parts.len()];
                // One batch of each in turns, as threads of one speed would.
                loop {
                    let mut more = false;
                    for (part, ids) in parts.iter_mut().zip(&mut ids) {
                        if let Some(batch) = part.try_next().await.unwrap() {
                            ids.extend(batch.column(0).as_primitive::<Int64Type>().values());
                            more = true;
                        }
                    }
                    if !more {
                        return ids;
                    }
                }
            })
        };
        for partitions in [1, 2, 3, 8] {
            let parts = ids(partitions);
            assert_eq!(parts.len(), partitions);
            let mut all = parts.concat();
            all.sort();
            assert_eq!(all, (0..150_000).collect::<Vec<i64>>());
            let fair = 150_000 / partitions;
            let off = |part: &Vec<i64>| part.len().abs_diff(fair);
            let lengths: Vec<usize> = parts.iter().map(Vec::len).collect();
            assert!(parts.iter().all(|p| off(p) <= 3 * 8192), "{lengths:?}");
        }
    }
}

/// Workplace with a model and files that are read in several pieces: `all` has three row groups, `large`
/// a single one, of whose pages none has as many rows as a batch, `parts` is a directory of files of all
/// sizes, `days` one with partitions.
fn in_pieces() -> Workplace {
    let place = Workplace::new();
    let generate = |rows: usize, name: &str| {
        let path = place.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let shape = "--features 2 --labels 3 --seed 1";
        place.ok(&split(&format!("generate --rows {rows} {shape} {name}")));
    };
    generate(150_000, "all.parquet");
    for (name, rows) in [("a", 70_000), ("b", 3), ("c", 0), ("d", 90_000)] {
        generate(rows, &format!("parts/{name}.parquet"));
    }
    for (day, rows) in [(1, 1000), (2, 70_000)] {
        generate(rows, &format!("days/day={day}/rows.parquet"));
    }
    let copy = "COPY (SELECT * FROM 'all.parquet') TO 'large.parquet' OPTIONS \
         ('format.max_row_group_size' '150000', 'format.data_page_row_count_limit' '5000')";
    place.ok(&["sql", copy]);
    assert_eq!(row_groups(&place.path("large.parquet")), [150_000]);
    place.ok(&split("fit all.parquet -o m.labelflow"));
    place
}

fn two_threads() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap()
}

/// A session whose rows have an order.
fn ordered() -> SessionContext {
    session(&SessionOptions { partitions: 1, ..Default::default() }).unwrap()
}

/// A query that predicts rows of `data`, several pieces of it at a time.
fn predict(place: &Workplace, ctx: &SessionContext, data: &str, condition: &str) -> String {
    let (model, data) = (place.path("m.labelflow"), place.path(data));
    let (model, data) = (model.display(), data.display());
    let sql = format!(
        "SELECT id, predict_labels('{model}', f0, f1) AS predicted, \
         score_labels('{model}', f0, f1) AS scores FROM '{data}' {condition}"
    );
    let plan = plan(ctx, &sql);
    assert!(plan.contains("InOrder"), "{plan}");
    sql
}

fn plan(ctx: &SessionContext, sql: &str) -> String {
    let plan = rows(ctx, &two_threads(), &format!("EXPLAIN {sql}"));
    pretty_format_batches(&plan).unwrap().to_string()
}

/// Rows of one partition leave in the order of the files, predicted by however many threads: the same
/// bytes, from whole row groups, parts of them and files that are smaller.
#[test]
fn predictions_keep_the_order_of_files() {
    let place = in_pieces();
    let ctx = ordered();
    for (data, rows) in
        [("all.parquet", 150_000), ("large.parquet", 150_000), ("parts", 160_003), ("days", 71_000)]
    {
        let sql = predict(&place, &ctx, data, "");
        // The sink knows that its input goes on by itself.
        let copy = plan(&ctx, &format!("COPY ({sql}) TO '{}'", place.path("c.parquet").display()));
        assert!(copy.contains("computes_ahead=true"), "{copy}");
        for options in ["", "--scores"] {
            let score = |threads: usize| {
                let threads = format!("--threads {threads}");
                let files = format!("--model m.labelflow {data} -o out.parquet");
                place.ok(&split(&format!("score {options} {threads} {files}")));
                place.bytes("out.parquet")
            };
            let one = score(1);
            assert_eq!(row_groups(&place.path("out.parquet")).iter().sum::<i64>(), rows);
            for threads in [2, 3, 9] {
                assert!(score(threads) == one, "{data} {options} with {threads} threads");
            }
        }
    }
}

/// A predicate that the scan knows leaves the order as it is.
#[test]
fn chosen_rows_keep_their_order() {
    let place = in_pieces();
    let ctx = ordered();
    rows(&ctx, &two_threads(), "SET datafusion.execution.parquet.pushdown_filters = true");
    // Of the first piece and of pages of the last no rows are read.
    let condition = "WHERE id BETWEEN 70000 AND 140000 AND f0 > -20 AND id % 3 = 1";
    let sql = predict(&place, &ctx, "all.parquet", condition);
    let one = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let text = |rows: &[RecordBatch]| pretty_format_batches(rows).unwrap().to_string();
    let expected = text(&rows(&ctx, &one, &sql));
    assert!(expected.lines().count() > 5_000);
    assert!(text(&rows(&ctx, &two_threads(), &sql)) == expected);
}

/// Rows that are predicted before their turn count as memory until they leave, or nobody wants them.
#[test]
fn rows_that_wait_for_others_count_as_memory() {
    let place = in_pieces();
    let ctx = ordered();
    let sql = predict(&place, &ctx, "all.parquet", "");
    let reserved = || ctx.runtime_env().memory_pool.reserved();
    let until = async |what: &str, reached: &dyn Fn(usize) -> bool| {
        let wait = async {
            while !reached(reserved()) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), wait).await.expect(what);
    };
    // The first batch, when all others of its piece and some of the next ones wait.
    let begin = async || {
        let mut rows = ctx.sql(&sql).await.unwrap().execute_stream().await.unwrap();
        let first = rows.try_next().await.unwrap().unwrap();
        let many = 9 * first.get_array_memory_size();
        until("rows wait", &|reserved| reserved >= many).await;
        (first, rows)
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    runtime.unwrap().block_on(async {
        let (first, mut rows) = begin().await;
        let id = |batch: RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        let mut ids = id(first);
        while let Some(batch) = rows.try_next().await.unwrap() {
            ids.extend(id(batch));
        }
        assert_eq!(ids, (0..150_000).collect::<Vec<i64>>());
        // The model is left.
        assert!(reserved() < 8192, "{}", reserved());
        let (_, rows) = begin().await;
        drop(rows);
        until("nothing waits", &|reserved| reserved < 8192).await;
    });
}

/// What is wrong with a later piece is told after the rows before it, and nothing comes after it.
#[test]
fn a_damaged_page_is_told_when_its_turn_comes() {
    let place = in_pieces();
    let file = File::open(place.path("all.parquet")).unwrap();
    let options = ReadOptionsBuilder::new().with_page_index().build();
    let reader = SerializedFileReader::new_with_options(file, options).unwrap();
    // The sixth page of a feature in the second row group.
    let page = &reader.metadata().offset_index().unwrap()[1][1].page_locations()[5];
    assert_eq!(page.first_row_index, 5 * 8192);
    let mut bytes = place.bytes("all.parquet");
    bytes[page.offset as usize..][..1000].fill(0xff);
    place.write("all.parquet", bytes);
    let ctx = ordered();
    let sql = predict(&place, &ctx, "all.parquet", "");
    two_threads().block_on(async {
        let mut stream = ctx.sql(&sql).await.unwrap().execute_stream().await.unwrap();
        let mut rows = 0;
        let error = loop {
            match stream.try_next().await {
                Ok(batch) => rows += batch.expect("an error comes before the end").num_rows(),
                Err(error) => break error,
            }
        };
        assert_eq!(rows, 65_536 + 5 * 8192, "{error}");
        assert!(matches!(stream.try_next().await, Ok(None)));
    });
}
