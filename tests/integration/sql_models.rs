//! Models in SQL that a script cannot make: damaged bytes, URLs, a bounded memory.

use crate::program::{Workplace, split};
use datafusion::arrow::array::{ArrayRef, AsArray, BinaryViewArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::prelude::SessionContext;
use labelflow::ErrorKind;
use labelflow::sql::{SessionOptions, from_datafusion, session};
use std::sync::Arc;
use tokio::runtime::Runtime;

fn run(ctx: &SessionContext, sql: &str) -> labelflow::Result<Vec<RecordBatch>> {
    Runtime::new().unwrap().block_on(async {
        let query = ctx.sql(sql).await.map_err(from_datafusion)?;
        query.collect().await.map_err(from_datafusion)
    })
}

fn count(ctx: &SessionContext, sql: &str) -> i64 {
    run(ctx, sql).unwrap()[0].column(0).as_primitive::<Int64Type>().value(0)
}

#[test]
fn a_damaged_model_in_a_table_is_named() {
    let place = Workplace::with_data();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    place.rows("COPY (SELECT * FROM 't.parquet' WHERE id < 90) TO 'part.parquet'");
    place.ok(&split("fit part.parquet -o part.labelflow"));
    let (whole, mut damaged) = (place.bytes("m.labelflow"), place.bytes("part.labelflow"));
    damaged[2000] ^= 1;
    let digest = labelflow::store::digest_of(&damaged).unwrap().to_string();
    let ctx = session(&SessionOptions::default()).unwrap();
    let bad: [&[u8]; 3] = [&damaged, &whole[..500], b""];
    for (i, bytes) in bad.into_iter().enumerate() {
        let models: ArrayRef = Arc::new(BinaryViewArray::from_iter_values([&whole, bytes]));
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![0, 1]));
        let batch = RecordBatch::try_from_iter([("id", ids), ("model", models)]).unwrap();
        let _ = ctx.deregister_table("models").unwrap();
        ctx.register_batch("models", batch).unwrap();
        let file = place.path("t.parquet").display().to_string();
        let join = format!("FROM '{file}' AS t JOIN models AS m ON t.id % 2 = m.id");
        for call in ["predict_labels(model, f0, f1, f2, f3)", "score_labels(model, f0, f1, f2, f3)"]
        {
            let error = run(&ctx, &format!("SELECT {call} {join}")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            let expected = if i == 0 { digest.as_str() } else { "the model in row " };
            assert!(error.to_string().contains(expected), "{error}");
        }
        assert!(run(&ctx, "SELECT merge_models(model) FROM models").is_err());
        assert!(run(&ctx, "SELECT model_info(model) FROM models").is_err());
    }
}

#[test]
fn a_damaged_copy_of_a_known_model_is_found_out() {
    let place = Workplace::with_data();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    let whole = place.bytes("m.labelflow");
    let ctx = session(&SessionOptions::default()).unwrap();
    let file = place.path("t.parquet").display().to_string();
    let join = format!("FROM '{file}' AS t CROSS JOIN models");
    let predict = format!("SELECT count(predict_labels(model, f0, f1, f2, f3)) {join}");
    let one = "(SELECT model FROM models)";
    let constant = format!("SELECT count(predict_labels({one}, f0, f1, f2, f3)) FROM '{file}'");
    let table = |bytes: &[u8]| {
        let models: ArrayRef = Arc::new(BinaryViewArray::from_iter_values([bytes]));
        let _ = ctx.deregister_table("models").unwrap();
        ctx.register_batch("models", RecordBatch::try_from_iter([("model", models)]).unwrap())
            .unwrap();
    };
    for at in (0..whole.len()).step_by(whole.len() / 50) {
        // The healthy model is known to the session when its damaged copy comes.
        table(&whole);
        assert_eq!((count(&ctx, &predict), count(&ctx, &constant)), (200, 200));
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        table(&damaged);
        let info = "SELECT model_info(model) FROM models";
        let decay = "SELECT decay_model(model, 0.5) FROM models";
        let merge = "SELECT merge_models(model) FROM models";
        for sql in [predict.as_str(), constant.as_str(), info, decay, merge] {
            let error = run(&ctx, sql).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {at}, {sql}: {error}");
        }
    }
}

#[test]
fn a_model_is_read_from_a_url_and_again_when_it_changes() {
    let place = Workplace::with_data();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    let url = format!("file://{}", place.path("m.labelflow").display());
    let ctx = session(&SessionOptions::default()).unwrap();
    let rows = format!("SELECT model_info('{url}')['rows']");
    assert_eq!(count(&ctx, &rows), 200);
    let file = place.path("t.parquet").display().to_string();
    let hits = |url: &str| {
        let same = format!("predict_labels('{url}', f0, f1, f2, f3)");
        count(&ctx, &format!("SELECT count(*) FROM '{file}' WHERE cardinality({same}) > 0"))
    };
    assert_eq!(hits(&url), hits(&place.path("m.labelflow").display().to_string()));
    place.rows("COPY (SELECT * FROM 't.parquet' WHERE id < 50) TO 'part.parquet'");
    place.ok(&split("fit part.parquet -o m.labelflow"));
    assert_eq!(count(&ctx, &rows), 50);
    let error = run(&ctx, "SELECT predict_labels('file:///no/such.labelflow', 1)").unwrap_err();
    assert!(error.to_string().contains("model file `file:///no/such.labelflow`"), "{error}");
    let error = run(&ctx, "SELECT predict_labels('s3://bucket/m.labelflow', 1)").unwrap_err();
    assert!(error.to_string().contains("s3://bucket"), "{error}");
}

#[test]
fn planning_finds_what_can_be_known_without_rows() {
    let place = Workplace::with_data();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    let (data, model) = (place.path("t.parquet"), place.path("m.labelflow"));
    let (data, model) = (data.display().to_string(), model.display().to_string());
    place.ok(&split("fit t.parquet --algorithm brknn -o lazy.labelflow"));
    let lazy = place.path("lazy.labelflow").display().to_string();
    let ctx = session(&SessionOptions::default()).unwrap();
    let plan = |sql: &str| {
        Runtime::new().unwrap().block_on(async {
            let query = ctx.sql(sql).await.map_err(from_datafusion)?;
            query.into_optimized_plan().map_err(from_datafusion)
        })
    };
    for (call, expected) in [
        ("train_labels('nabx', labels, f0)".to_string(), "did you mean `naibx`"),
        ("train_labels('naibx', labels, DATE '2024-01-01')".into(), "cannot be a feature"),
        (
            "train_labels(array_to_string(labels, ','), labels, f0)".into(),
            "must be a constant text",
        ),
        ("train_labels('naibx', f0, f1)".into(), "labels must be a list"),
        (format!("predict_labels('{model}', f0, f1)"), "feature `f2` of the model is missing"),
        ("predict_labels('no.labelflow', f0)".into(), "model file `no.labelflow`"),
        ("learn_and_predict('naibx', labels, f0) OVER ()".into(), "ORDER BY"),
        ("train_labels('brknn(keep=last(5))', labels, f0)".into(), "depends on the order of rows"),
        (
            "learn_and_predict('brknn(keep=last(5))', labels, f0) \
             OVER (ORDER BY id ROWS BETWEEN 9 PRECEDING AND 1 PRECEDING)"
                .into(),
            "cannot slide",
        ),
        ("exact_match(DISTINCT labels, labels)".into(), "DISTINCT is not supported"),
        (format!("top_labels('{model}', -1, f0, f1, f2, f3)"), "one whole number from 0"),
        (format!("predict_sets('{model}', 2000, f0, f1, f2, f3)"), "at most 1000"),
        (format!("predict_sets('{lazy}', 2, f0, f1, f2, f3)"), "does not rank label sets"),
        (format!("predict_labels('file://{model}', f0, f1)"), "feature `f2` of the model"),
    ] {
        let error = plan(&format!("SELECT {call} FROM '{data}'")).unwrap_err();
        assert!(error.to_string().contains(expected), "{call}: {error}");
    }
    assert!(
        plan(&format!("SELECT predict_labels('{model}', f0, f1, f2, f3) FROM '{data}'")).is_ok()
    );
}

#[test]
fn a_query_over_the_memory_limit_says_so() {
    let options =
        SessionOptions { memory_limit: Some(20 << 20), partitions: 2, ..Default::default() };
    let ctx = session(&options).unwrap();
    // Every row brings a label and tokens of its own: the model takes more than there is.
    let rows = "SELECT value % 50000 AS tenant, ['l' || value] AS labels, ['a' || value, 'b' || value] AS words \
                FROM generate_series(0, 999999)";
    for group in ["", "GROUP BY tenant"] {
        let sql = format!(
            "SELECT count(m) FROM (SELECT train_labels('naibx', labels, words) AS m FROM ({rows}) {group})"
        );
        let error = run(&ctx, &sql).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert!(error.to_string().contains("memory"), "{error}");
    }
    let small = "SELECT count(m) FROM (SELECT train_labels('naibx', ['a'], value) AS m FROM generate_series(0, 99999) GROUP BY value % 10)";
    assert_eq!(count(&ctx, small), 10);
}

#[test]
fn what_ending_takes_counts_as_memory() {
    let place = Workplace::new();
    place.ok(&split("generate --rows 20000 --features 20 --labels 10 --seed 3 t.parquet"));
    let features = (0..20).map(|f| format!("f{f}")).collect::<Vec<_>>().join(", ");
    let train = |spec: &str| {
        let model = format!("train_labels('{spec}', labels, {features})");
        format!("SELECT count(m) FROM (SELECT {model} AS m FROM 't.parquet')")
    };
    // The rows take less than 12 MB; a copy of them and what is fitted do not fit besides.
    for spec in ["br(base=logistic(max_steps=1))", "brknn", "cc(keep=all, base=svm(max_steps=1))"] {
        let (_, error) = place.failure(&["sql", "--memory", "12", &train(spec)]);
        assert!(error.contains("memory"), "{spec}: {error}");
        place.ok(&["sql", "--memory", "200", &train(spec)]);
    }
    place.ok(&["sql", "--memory", "12", &train("naibx")]);
}

#[test]
fn an_evaluation_in_sql_is_that_of_the_command_line() {
    let place = Workplace::new();
    place.ok(&split("generate --rows 900 --features 5 --labels 6 --seed 2 all.parquet"));
    place.rows("COPY (SELECT * FROM 'all.parquet' WHERE id < 600) TO 'train.parquet'");
    place.rows("COPY (SELECT * FROM 'all.parquet' WHERE id >= 600) TO 'test.parquet'");
    place.ok(&split("fit train.parquet -o tags.labelflow"));
    let evaluate = "evaluate train.parquet --test test.parquet --algorithm naibx --format json";
    let lines = place.json(&split(evaluate));
    for (metric, function) in [
        ("hamming_score", "hamming_score"),
        ("jaccard", "jaccard_score"),
        ("exact_match", "exact_match"),
        ("micro_f1", "micro_f1"),
        ("macro_f1", "macro_f1"),
    ] {
        let value = place.rows(&format!(
            "SELECT {function}(labels, predict_labels('tags.labelflow', f0, f1, f2, f3, f4), 6) FROM 'test.parquet'"
        ));
        let line = lines.iter().find(|l| l["metric"] == metric).unwrap();
        let (sql, cli): (f64, f64) = (value[0].parse().unwrap(), line["mean"].as_f64().unwrap());
        assert!((sql - cli).abs() < 1e-12, "{metric}: {sql} in SQL, {cli} by evaluate");
    }
}

#[test]
fn every_function_has_an_entry_in_the_catalogue() {
    let ctx = session(&SessionOptions::default()).unwrap();
    let names = labelflow::sql::function_names();
    assert!(names.contains(&"train_labels") && names.contains(&"hamming_score"));
    for name in names {
        let sql = format!(
            "SELECT count(*) FROM information_schema.routines WHERE routine_name = '{name}' \
             AND description IS NOT NULL AND syntax_example LIKE '{name}(%'"
        );
        assert!(count(&ctx, &sql) > 0, "{name}");
    }
}

#[test]
fn every_function_is_documented() {
    let root = env!("CARGO_MANIFEST_DIR");
    let text = std::fs::read_to_string(format!("{root}/docs/sql.md")).unwrap();
    let metrics = text.split("## Metrics\n").nth(1).unwrap();
    for name in labelflow::sql::function_names() {
        let heading = text.contains(&format!("## {name}\n"));
        assert!(heading || metrics.contains(&format!("`{name}`")), "{name} is not in docs/sql.md");
    }
}

#[test]
fn rows_are_printed_as_they_come() {
    let place = Workplace::with_data();
    let query = "SELECT id, CAST(CASE WHEN id = 199 THEN 'x' ELSE '1' END AS INT) AS y \
                 FROM 't.parquet'";
    let all = "SELECT id FROM 't.parquet' WHERE id < 3 ORDER BY id";
    assert_eq!(place.ok(&["sql", all, "--format", "csv"]), "id\n0\n1\n2\n");
    assert_eq!(place.ok(&["sql", all, "--format", "json"]).lines().count(), 3);
    // A table is printed whole or not at all.
    let (_, message) = place.failure(&["sql", query]);
    assert!(message.contains('x'), "{message}");
    let limited = place.failure(&[
        "sql",
        "--memory",
        "1",
        "SELECT array_agg(value) FROM generate_series(1, 9999999)",
    ]);
    assert!(limited.1.contains("memory"), "{}", limited.1);
}

#[test]
fn a_copy_that_fails_leaves_nothing_behind() {
    let place = Workplace::with_data();
    let before = place.files(".");
    for to in ["out.parquet", "out.csv"] {
        let query =
            format!("COPY (SELECT id, CAST('x' || id AS INT) AS y FROM 't.parquet') TO '{to}'");
        place.failure(&["sql", &query]);
        assert_eq!(place.files("."), before, "{to}");
    }
    place.ok(&["sql", "COPY (SELECT * FROM 't.parquet') TO 'parts/' STORED AS PARQUET"]);
    assert_eq!(place.rows("SELECT count(*) FROM 'parts/'"), ["200"]);
    place.ok(&["sql", "COPY (SELECT id FROM 't.parquet') TO 'ids.csv'"]);
    assert_eq!(place.rows("SELECT count(*) FROM 'ids.csv'"), ["200"]);
    assert!(place.files(".").iter().all(|name| !name.starts_with('.')));
}

#[test]
fn statements_come_from_files_and_pipes() {
    use std::io::Write;
    let place = Workplace::with_data();
    place.write(
        "script.sql",
        "CREATE TABLE a AS SELECT 1 AS x; -- one; two\nSELECT x + 1 AS y FROM a;",
    );
    assert!(place.ok(&["sql", "-f", "script.sql"]).contains("| 2 |"));
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_labelflow"))
        .args(["sql", "--format", "csv"])
        .current_dir(place.dir())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"SELECT ['a', 'b'] AS l, 'x' AS t").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "l,t\na;b,x\n");
}
