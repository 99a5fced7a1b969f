//! Runs `tests/slt/*.slt` in sessions of several shapes.
//!
//! A table made in a script is dealt out row by row to the partitions of the session, in batches of
//! its batch size, so that small tables are cut too. `LABELFLOW_UPDATE=1` writes what the first
//! session prints into the files instead of checking it.

use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use labelflow::sql::{SessionOptions, from_datafusion, session};
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// A labelflow session as a database under test.
#[derive(Clone)]
struct Database {
    ctx: SessionContext,
    partitions: usize,
    batch_size: usize,
}

impl Database {
    fn new(partitions: usize, batch_size: usize) -> Self {
        let options = SessionOptions { partitions, batch_size, ..Default::default() };
        let ctx = session(&options).unwrap();
        Database { ctx, partitions, batch_size }
    }

    async fn execute(&self, sql: &str) -> labelflow::Result<(SchemaRef, Vec<RecordBatch>)> {
        let query = self.ctx.sql(sql).await.map_err(from_datafusion)?;
        let schema = query.schema().inner().clone();
        let batches = query.collect().await.map_err(from_datafusion)?;
        if let Some(name) = sql.trim_start().strip_prefix("CREATE TABLE ") {
            self.deal(name.split_whitespace().next().unwrap()).await;
        }
        Ok((schema, batches))
    }

    /// Row i of table `name` goes to partition i modulo their number.
    async fn deal(&self, name: &str) {
        let table = self.ctx.table(name).await.unwrap();
        let schema = table.schema().inner().clone();
        let all = concat_batches(&schema, &table.collect().await.unwrap()).unwrap();
        let rows: Vec<u32> = (0..all.num_rows() as u32).collect();
        let partition = |p: usize| -> Vec<RecordBatch> {
            let own: Vec<u32> = rows.iter().copied().skip(p).step_by(self.partitions).collect();
            let batch = |rows: &[u32]| take_record_batch(&all, &UInt32Array::from(rows.to_vec()));
            own.chunks(self.batch_size).map(|rows| batch(rows).unwrap()).collect()
        };
        let table = MemTable::try_new(schema, (0..self.partitions).map(partition).collect());
        self.ctx.deregister_table(name).unwrap();
        self.ctx.register_table(name, Arc::new(table.unwrap())).unwrap();
    }
}

#[async_trait]
impl AsyncDB for Database {
    type Error = labelflow::Error;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, labelflow::Error> {
        // In a task of its own, so that a panic fails its statement and names its place.
        let (database, sql) = (self.clone(), sql.to_string());
        let work = tokio::spawn(async move { database.execute(&sql).await });
        let (schema, batches) =
            work.await.map_err(|panic| labelflow::Error::internal(panic.to_string()))??;
        if schema.fields().is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        let types = schema.fields().iter().map(|f| column_type(f.data_type())).collect();
        let mut rows = Vec::new();
        for batch in &batches {
            for row in 0..batch.num_rows() {
                rows.push(batch.columns().iter().map(|column| text(column, row)).collect());
            }
        }
        Ok(DBOutput::Rows { types, rows })
    }

    async fn shutdown(&mut self) {}
}

fn column_type(data_type: &DataType) -> DefaultColumnType {
    match data_type {
        t if t.is_integer() => DefaultColumnType::Integer,
        t if t.is_floating() => DefaultColumnType::FloatingPoint,
        t if t.is_string() => DefaultColumnType::Text,
        _ => DefaultColumnType::Any,
    }
}

/// A value as text: numbers to six digits after the point, lists as `[a, b]`, bytes by their number.
fn text(column: &ArrayRef, row: usize) -> String {
    if column.is_null(row) {
        return "NULL".into();
    }
    let number = |x: f64| {
        // No negative zero: it comes from rounding.
        let rounded = (x * 1e6).round() / 1e6 + 0.0;
        format!("{rounded}")
    };
    match column.data_type() {
        DataType::Float32 => number(column.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => number(column.as_primitive::<Float64Type>().value(row)),
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            let items: Vec<String> = (0..items.len()).map(|i| text(&items, i)).collect();
            format!("[{}]", items.join(", "))
        }
        DataType::Struct(fields) => {
            let columns = column.as_struct().columns();
            let items = fields.iter().zip(columns).map(|(field, column)| {
                let value = text(column, row);
                format!("{}: {value}", field.name())
            });
            format!("{{{}}}", items.collect::<Vec<_>>().join(", "))
        }
        DataType::Utf8 if column.as_string::<i32>().value(row).is_empty() => "(empty)".into(),
        DataType::BinaryView => format!("<{} bytes>", column.as_binary_view().value(row).len()),
        _ => {
            let options = FormatOptions::default();
            ArrayFormatter::try_new(column.as_ref(), &options).unwrap().value(row).to_string()
        }
    }
}

fn scripts() -> Vec<PathBuf> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut scripts: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "slt")).collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    scripts
}

fn run_all(partitions: usize, batch_size: usize) {
    let runtime = Runtime::new().unwrap();
    let mut failures = Vec::new();
    for script in scripts() {
        let mut runner = Runner::new(|| async move { Ok(Database::new(partitions, batch_size)) });
        runner.with_column_validator(sqllogictest::strict_column_validator);
        if let Err(error) = runtime.block_on(runner.run_file_async(&script)) {
            failures.push(error.display(false).to_string());
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn scripts_in_one_partition() {
    if std::env::var_os("LABELFLOW_UPDATE").is_some() {
        return update_all();
    }
    run_all(1, 8192);
}

#[test]
fn scripts_in_eight_partitions() {
    run_all(8, 8192);
}

#[test]
fn scripts_in_tiny_batches() {
    run_all(3, 3);
}

fn update_all() {
    let runtime = Runtime::new().unwrap();
    for script in scripts() {
        let mut runner = Runner::new(|| async { Ok(Database::new(1, 8192)) });
        let work = runner.update_test_file(
            &script,
            " ",
            sqllogictest::default_validator,
            sqllogictest::default_normalizer,
            sqllogictest::strict_column_validator,
        );
        runtime.block_on(work).unwrap();
    }
}
