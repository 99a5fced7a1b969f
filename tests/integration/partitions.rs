//! The cut of the rows does not matter: counts agree bit for bit, predictions row by row.

use crate::program::{Workplace, split};
use crate::states::assert_same_state;
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::Float64Type;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::prelude::SessionContext;
use labelflow::models::{Model, Registry};
use labelflow::sql::{SessionOptions, session};
use labelflow::store;
use std::sync::Arc;
use tokio::runtime::Runtime;

const FEATURES: usize = 20;

/// 2000 rows in row groups of 100.
fn data() -> Workplace {
    let place = Workplace::new();
    place.ok(&split("generate --rows 2000 --features 20 --labels 10 --seed 5 all.parquet"));
    place.rows(
        "COPY (SELECT * FROM 'all.parquet') TO 't.parquet' \
         OPTIONS ('format.max_row_group_size' '100', 'format.data_page_row_count_limit' '100')",
    );
    place
}

fn features() -> String {
    (0..FEATURES).map(|i| format!("f{i}")).collect::<Vec<_>>().join(", ")
}

fn open(partitions: usize, runtime: &Runtime) -> SessionContext {
    let ctx =
        session(&SessionOptions { partitions, batch_size: 256, ..Default::default() }).unwrap();
    // Small files are cut too (if they have more rows than a batch).
    let set = "SET datafusion.optimizer.repartition_file_min_size = 1";
    runtime.block_on(async { ctx.sql(set).await.unwrap().collect().await.unwrap() });
    ctx
}

fn query(ctx: &SessionContext, runtime: &Runtime, sql: &str) -> Vec<RecordBatch> {
    runtime.block_on(async { ctx.sql(sql).await.unwrap().collect().await.unwrap() })
}

fn model(ctx: &SessionContext, runtime: &Runtime, sql: &str) -> Model {
    let batches = query(ctx, runtime, sql);
    let bytes = batches[0].column(0).as_binary_view().value(0);
    store::from_bytes(bytes, &Registry::default()).unwrap()
}

/// How many partitions the scan of a plan has.
fn scan_partitions(plan: &Arc<dyn ExecutionPlan>) -> usize {
    match plan.children().first() {
        Some(child) => scan_partitions(child),
        None => plan.output_partitioning().partition_count(),
    }
}

fn assert_same(model: &Model, reference: &Model, what: &str) {
    assert_same_state(model, reference, what);
    let (insight, insight0) = (model.insight(1000), reference.insight(1000));
    assert_eq!(insight.label_counts, insight0.label_counts, "{what}");
    assert_eq!(insight.pairs, insight0.pairs, "{what}");
    assert_eq!(insight.label_counts.len(), 10);
}

#[test]
fn partitions_and_groups_learn_the_same() {
    let place = data();
    let file = place.path("t.parquet");
    let table = format!("'{}'", file.display());
    let runtime = Runtime::new().unwrap();
    let list = features();
    let train = format!("SELECT train_labels('naibx', labels, {list}) AS m FROM {table}");
    let reference = model(&open(1, &runtime), &runtime, &train);
    assert_eq!(reference.rows(), 2000);
    let predicted = |model: &Model, ctx: &SessionContext| {
        let path = place.path("m.labelflow");
        store::write_model(&path, model).unwrap();
        let sql = format!(
            "SELECT id, predict_labels('{}', {list}) AS p, labels FROM {table} ORDER BY id",
            path.display()
        );
        pretty_format_batches(&query(ctx, &runtime, &sql)).unwrap().to_string()
    };
    let expected = predicted(&reference, &open(1, &runtime));
    assert_eq!(expected.lines().count(), 2004);
    for partitions in [1, 2, 8] {
        let ctx = open(partitions, &runtime);
        let plan = runtime
            .block_on(async { ctx.sql(&train).await.unwrap().create_physical_plan().await })
            .unwrap();
        assert_eq!(scan_partitions(&plan), partitions);
        let whole = model(&ctx, &runtime, &train);
        assert_same(&whole, &reference, &format!("{partitions} partitions"));
        assert!(predicted(&whole, &ctx) == expected, "{partitions} partitions");
        let merge = format!(
            "SELECT merge_models(m) FROM (SELECT train_labels('naibx', labels, {list}) AS m \
             FROM {table} GROUP BY id % 7)"
        );
        let merged = model(&ctx, &runtime, &merge);
        assert_same(&merged, &reference, &format!("groups in {partitions} partitions"));
        assert!(predicted(&merged, &ctx) == expected, "groups in {partitions} partitions");
    }
}

/// Learners that keep rows keep them in an order that depends on content alone: equal bytes.
#[test]
fn rows_are_kept_alike_in_any_partitions() {
    let place = data();
    let table = format!("'{}'", place.path("t.parquet").display());
    let runtime = Runtime::new().unwrap();
    let list = features();
    for spec in ["mlknn(k=10)", "lpknn(k=3, keep=sample(300))"] {
        let train = format!("SELECT train_labels('{spec}', labels, {list}) AS m FROM {table}");
        let predict = format!(
            "SELECT id, predict_labels((SELECT train_labels('{spec}', labels, {list}) FROM {table}), \
             {list}) AS p FROM {table} ORDER BY id"
        );
        let learned = |partitions: usize| {
            let ctx = open(partitions, &runtime);
            let batches = query(&ctx, &runtime, &train);
            let bytes = batches[0].column(0).as_binary_view().value(0).to_vec();
            let predicted = query(&ctx, &runtime, &predict);
            (bytes, pretty_format_batches(&predicted).unwrap().to_string())
        };
        let (bytes, predicted) = learned(1);
        assert_eq!(predicted.lines().count(), 2004);
        for partitions in [2, 8] {
            let (others, same) = learned(partitions);
            assert!(others == bytes, "{spec}: {partitions} partitions give other bytes");
            assert!(same == predicted, "{spec}: {partitions} partitions predict otherwise");
        }
    }
}

/// One state per input row is asked for when groups are many; the metrics of the plan tell.
#[test]
fn rows_skip_partial_aggregation() {
    let place = data();
    let runtime = Runtime::new().unwrap();
    let ctx = open(4, &runtime);
    for set in [
        "SET datafusion.execution.skip_partial_aggregation_probe_rows_threshold = 1",
        "SET datafusion.execution.skip_partial_aggregation_probe_ratio_threshold = 0.0",
    ] {
        query(&ctx, &runtime, set);
    }
    query(&ctx, &runtime, "SET datafusion.execution.batch_size = 100");
    let sql = format!(
        "EXPLAIN ANALYZE SELECT id, train_labels('naibx', labels, f0, f1) FROM '{}' GROUP BY id",
        place.path("t.parquet").display()
    );
    let text = pretty_format_batches(&query(&ctx, &runtime, &sql)).unwrap().to_string();
    let skipped = text.split("skipped_aggregation_rows=").nth(1).expect(&text);
    assert!(!skipped.starts_with('0'), "{text}");
}

/// Metrics are sums of whole numbers: the same bits for any cut.
#[test]
fn metrics_agree_bit_for_bit() {
    let place = data();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    place.ok(&split("score --model m.labelflow t.parquet --scores -o all_scored.parquet"));
    place.rows(
        "COPY (SELECT * FROM 'all_scored.parquet') TO 's.parquet' OPTIONS ('format.max_row_group_size' '100')",
    );
    let runtime = Runtime::new().unwrap();
    let names = [
        "hamming_score",
        "exact_match",
        "jaccard_score",
        "example_precision",
        "example_recall",
        "example_f1",
        "micro_precision",
        "micro_recall",
        "micro_f1",
        "macro_precision",
        "macro_recall",
        "macro_f1",
        "label_cardinality",
        "empty_share",
    ];
    let ranked = [
        "ranking_loss",
        "one_error",
        "coverage",
        "average_precision",
        "precision_at_1",
        "precision_at_3",
        "precision_at_5",
        "ndcg_at_5",
    ];
    let of_sets = names.iter().map(|n| format!("{n}(labels, predicted_labels) AS {n}"));
    let of_scores = ranked.iter().map(|n| format!("{n}(labels, label_scores) AS {n}"));
    let columns: Vec<String> = of_sets.chain(of_scores).collect();
    let sql = format!("SELECT {} FROM '{}'", columns.join(", "), place.path("s.parquet").display());
    let values = |partitions: usize| -> Vec<u64> {
        let batches = query(&open(partitions, &runtime), &runtime, &sql);
        let bits = |c: &Arc<dyn Array>| c.as_primitive::<Float64Type>().value(0).to_bits();
        batches[0].columns().iter().map(bits).collect()
    };
    assert_eq!(values(1).len(), names.len() + ranked.len());
    assert_eq!(values(1), values(8));
    assert_eq!(values(1), values(2));
}
