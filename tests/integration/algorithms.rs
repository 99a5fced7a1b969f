//! Every algorithm in SQL: one partition, eight, and groups that are merged learn what the library
//! learns, and predict and score what it does.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StructArray, UInt32Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::arrow::datatypes::{Field, Fields, Int64Type};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use labelflow::conformance::{Answers, Subject, TOLERANCE, Table, same_states};
use labelflow::models::{Model, Registry};
use labelflow::sql::{SessionOptions, session};
use labelflow::store;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// The table as one batch: `id`, the features (the columns of a struct, or one column `f`), `labels`.
fn batch(table: &Table) -> RecordBatch {
    let (mut fields, mut columns): (Vec<Arc<Field>>, Vec<ArrayRef>) = match table.columns() {
        Some(all) => (all.fields().iter().cloned().collect(), all.columns().to_vec()),
        None => {
            let field = Field::new("f", table.features.data_type().clone(), true);
            (vec![Arc::new(field)], vec![Arc::clone(&table.features)])
        }
    };
    let ids: ArrayRef =
        Arc::new((0..table.len() as i64).collect::<datafusion::arrow::array::Int64Array>());
    for (name, column) in [("id", ids), ("labels", Arc::clone(&table.labels))] {
        fields.push(Arc::new(Field::new(name, column.data_type().clone(), true)));
        columns.push(column);
    }
    RecordBatch::from(StructArray::new(Fields::from(fields), columns, None))
}

/// A session that knows `batch` as table `t`, dealt out to `partitions` in batches of `size` rows.
fn open(batch: &RecordBatch, partitions: usize, size: usize) -> SessionContext {
    let ctx = session(&SessionOptions { partitions, ..Default::default() }).unwrap();
    let part = |p: usize| -> Vec<RecordBatch> {
        let rows: Vec<u32> = (p as u32..batch.num_rows() as u32).step_by(partitions).collect();
        let taken = |rows: &[u32]| take_record_batch(batch, &UInt32Array::from(rows.to_vec()));
        rows.chunks(size).map(|rows| taken(rows).unwrap()).collect()
    };
    let table = MemTable::try_new(batch.schema(), (0..partitions).map(part).collect()).unwrap();
    ctx.register_table("t", Arc::new(table)).unwrap();
    ctx
}

fn run(ctx: &SessionContext, runtime: &Runtime, sql: &str) -> Vec<RecordBatch> {
    runtime.block_on(async { ctx.sql(sql).await.unwrap().collect().await.unwrap() })
}

fn model(ctx: &SessionContext, runtime: &Runtime, sql: &str) -> Model {
    let batches = run(ctx, runtime, sql);
    let found = batches.iter().find(|b| b.num_rows() > 0).unwrap();
    store::from_bytes(found.column(0).as_binary_view().value(0), &Registry::default()).unwrap()
}

#[test]
fn sql_learns_and_answers_as_the_library_does() {
    let registry = Registry::default();
    let runtime = Runtime::new().unwrap();
    for algorithm in registry.algorithms() {
        // Models of some algorithms keep what is needed for merging only when told to.
        let keeps = algorithm.parameters.iter().any(|p| p.name == "keep");
        let name =
            if keeps { format!("{}(keep=all)", algorithm.name) } else { algorithm.name.into() };
        let subject = Subject::try_new(&registry, &name).unwrap();
        assert!(!subject.tables().is_empty(), "{name}");
        for table in subject.tables() {
            let batch = batch(table);
            let features: Vec<String> = batch
                .schema()
                .fields()
                .iter()
                .map(|f| f.name().clone())
                .filter(|f| f != "id" && f != "labels")
                .collect();
            let features = features.join(", ");
            let expected = subject.learn(table).unwrap();
            let answers = Answers::of(&expected, &table.features).unwrap();
            let (insight, labels) = (expected.insight(3), expected.space().labels.len());
            assert_eq!((insight.telling.len(), insight.label_counts.len()), (labels, labels));
            for (partitions, size) in [(1, 8192), (8, 7)] {
                let what = format!("{name}, table `{}`, {partitions} partitions", table.name);
                let ctx = open(&batch, partitions, size);
                let train =
                    format!("SELECT train_labels('{name}', labels, {features}) AS m FROM t");
                let merge = format!("SELECT merge_models(m) FROM ({train} GROUP BY id % 7)");
                for (way, sql) in [("one model", &train), ("groups merged", &merge)] {
                    let learned = model(&ctx, &runtime, sql);
                    same_states(&expected, &learned)
                        .unwrap_or_else(|e| panic!("{what}, {way}: {e}"));
                    let found = Answers::of(&learned, &table.features).unwrap();
                    answers
                        .agree(&found, TOLERANCE)
                        .unwrap_or_else(|e| panic!("{what}, {way}: {e}"));
                }
                let sql = format!(
                    "SELECT id, predict_labels((SELECT m FROM ({train})), {features}) AS p FROM t ORDER BY id"
                );
                for rows in run(&ctx, &runtime, &sql) {
                    let ids = rows.column(0).as_primitive::<Int64Type>();
                    let sets = rows.column(1).as_list::<i32>();
                    for (row, &id) in ids.values().iter().enumerate() {
                        let set = sets.value(row);
                        let set: Vec<&str> = set.as_string::<i32>().iter().flatten().collect();
                        assert_eq!(set, answers.sets[id as usize], "{what}, row {id}");
                    }
                }
            }
        }
    }
}
