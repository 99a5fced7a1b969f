//! Rows of a query into a file.

use super::columns::{literal, quoted};
use super::lists::{JoinItems, items};
use super::output;
use crate::error::{Error, ErrorKind, Result};
use crate::sql::{from_datafusion, run_each};
use arrow::array::{AsArray, RecordBatchWriter};
use arrow::datatypes::{Field, Fields, UInt64Type};
use arrow::ipc::writer::StreamWriter;
use datafusion::arrow::json::WriterBuilder;
use datafusion::arrow::json::writer::LineDelimited;
use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::{DataFrame, SessionContext};
use indicatif::ProgressBar;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

/// The format of an output file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileFormat {
    Parquet,
    Csv,
    Json,
    /// An Arrow IPC file.
    Arrow,
    /// An Arrow IPC stream.
    Arrows,
}

impl FileFormat {
    /// The format that the extension of `path` stands for.
    ///
    /// # Errors
    ///
    /// Other extensions.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("parquet") => Ok(FileFormat::Parquet),
            Some("csv") => Ok(FileFormat::Csv),
            Some("json" | "jsonl" | "ndjson") => Ok(FileFormat::Json),
            Some("arrow") => Ok(FileFormat::Arrow),
            Some("arrows") => Ok(FileFormat::Arrows),
            _ => Err(Error::usage(format!(
                "output `{}`: give the file one of the extensions .parquet, .csv, .json, .jsonl, \
                 .arrow, .arrows",
                path.display()
            ))),
        }
    }

    /// The name DataFusion has for it.
    fn name(self) -> &'static str {
        match self {
            FileFormat::Parquet => "PARQUET",
            FileFormat::Csv => "CSV",
            FileFormat::Json => "JSON",
            FileFormat::Arrow | FileFormat::Arrows => "ARROW",
        }
    }
}

/// Writes the rows of `query` to the file `name`; returns how many there are.
///
/// # Cost
///
/// A few batches in memory, however many rows.
pub(super) async fn write_rows(
    ctx: &SessionContext,
    query: &str,
    name: &str,
    format: FileFormat,
    bar: &ProgressBar,
) -> Result<u64> {
    let rows = match format {
        FileFormat::Arrows | FileFormat::Json => {
            write_directly(ctx, query, name, format, bar).await?
        }
        _ => {
            let copy = copy_statement(query, ctx, name, format).await?;
            let query = ctx.sql(&copy).await.map_err(from_datafusion)?;
            let mut rows = 0;
            run_each(query, output::watch(bar, "writing"), |batch| {
                let counts = batch.column(0).as_primitive_opt::<UInt64Type>();
                rows += counts.map_or(0, |c| c.iter().flatten().sum::<u64>());
                Ok(())
            })
            .await
            .map_err(unwritten)?;
            rows
        }
    };
    bar.finish_and_clear();
    Ok(rows)
}

/// Where DataFusion takes a failed write for a mistake of its own, says what it is.
fn unwritten(error: Error) -> Error {
    if !error.to_string().contains("Error encountered while finalizing writes") {
        return error;
    }
    let text = "the rows could not be written to the end: make room on the disk";
    Error::new(ErrorKind::Io, text).with_source(error)
}

/// Writes formats that DataFusion does not write, or not as they are wanted: its JSON leaves out what
/// is NULL, and a column that is NULL in all rows is not in the file.
async fn write_directly(
    ctx: &SessionContext,
    query: &str,
    name: &str,
    format: FileFormat,
    bar: &ProgressBar,
) -> Result<u64> {
    let query = ctx.sql(query).await.map_err(from_datafusion)?;
    let failed = |e| Error::io(format!("output `{name}`"), e);
    let mut file = BufWriter::new(File::create(name).map_err(failed)?);
    let rows = if format == FileFormat::Json {
        let builder = WriterBuilder::new().with_explicit_nulls(true);
        write_batches(query, builder.build::<_, LineDelimited>(&mut file), bar).await?
    } else {
        let writer = StreamWriter::try_new(&mut file, query.schema().as_arrow())?;
        write_batches(query, writer, bar).await?
    };
    file.flush().map_err(failed)?;
    Ok(rows)
}

async fn write_batches(
    query: DataFrame,
    mut writer: impl RecordBatchWriter,
    bar: &ProgressBar,
) -> Result<u64> {
    let mut rows = 0;
    run_each(query, output::watch(bar, "writing"), |batch| {
        rows += batch.num_rows() as u64;
        Ok(writer.write(&batch)?)
    })
    .await?;
    writer.close()?;
    Ok(rows)
}

/// The options of DataFusion that are false for Parquet: numbers with a fraction get no dictionary.
/// They seldom repeat, and building one takes half the time and memory of writing.
pub(super) fn without_dictionary(fields: &Fields) -> impl Iterator<Item = String> {
    // A dot in the name would be taken for a path into a struct.
    let plain = |f: &&Arc<Field>| f.data_type().is_floating() && !f.name().contains('.');
    let columns = fields.iter().filter(plain);
    columns.map(|f| format!("format.dictionary_enabled::{}", f.name()))
}

/// A column as CSV can hold it, as an SQL expression.
///
/// # Errors
///
/// Structs, maps and lists of them.
fn csv_column(field: &Field) -> Result<String> {
    match items(field.data_type()) {
        Some(item) if !item.data_type().is_nested() => Ok(JoinItems::call(field.name())),
        None if !field.data_type().is_nested() => Ok(quoted(field.name())),
        _ => Err(nested(field)),
    }
}

fn nested(field: &Field) -> Error {
    Error::usage(format!(
        "column `{}` holds maps, structs or lists of them, which do not fit into CSV: write .parquet, \
         .json, .arrow or .arrows",
        field.name()
    ))
}

/// The statement that writes the rows of `query` to the file `name`.
///
/// CSV has no lists: a list of labels is written as `a;b`.
async fn copy_statement(
    query: &str,
    ctx: &SessionContext,
    name: &str,
    format: FileFormat,
) -> Result<String> {
    let rows = ctx.sql(query).await.map_err(from_datafusion)?;
    let fields = rows.schema().fields();
    let (mut query, mut options) = (query.to_string(), String::new());
    if format == FileFormat::Csv {
        let columns = fields.iter().map(|f| csv_column(f)).collect::<Result<Vec<_>>>()?;
        query = format!("SELECT {} FROM ({query})", columns.join(", "));
        ctx.register_udf(ScalarUDF::from(JoinItems::new()));
    } else if format == FileFormat::Parquet {
        let without = without_dictionary(fields).map(|o| format!("{} 'false'", literal(&o)));
        let columns: Vec<String> = without.collect();
        if !columns.is_empty() {
            options = format!(" OPTIONS ({})", columns.join(", "));
        }
    }
    Ok(format!("COPY ({query}) TO {} STORED AS {}{options}", literal(name), format.name()))
}
