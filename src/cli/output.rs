//! Progress bars, tables and files on their way out.

use super::lists::{BETWEEN, items, joined};
use crate::error::{Error, Result};
use crate::sql::Progress;
use crate::store::AtomicFile;
use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A bar on a terminal, nothing when piped.
pub(super) fn bar(what: &str, total: Option<u64>) -> ProgressBar {
    let bar = match total {
        Some(total) => ProgressBar::new(total),
        None => ProgressBar::no_length(),
    };
    bar.set_draw_target(ProgressDrawTarget::stderr());
    draw_as(&bar, if total.is_some() { WITH_TOTAL } else { "{msg} {human_pos} ({per_sec})" });
    bar.set_message(what.to_string());
    bar
}

const WITH_TOTAL: &str = "{msg} {bar:30} {human_pos} of {human_len} rows ({per_sec}, {eta} left)";

fn draw_as(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

/// As [`bar`], for steps that may take long: the time goes on between them.
pub(super) fn steps(what: &str, total: u64) -> ProgressBar {
    let bar = bar(what, Some(total));
    draw_as(&bar, "{msg} {bar:30} {human_pos} of {human_len} ({elapsed} so far)");
    if !bar.is_hidden() {
        bar.enable_steady_tick(Duration::from_millis(200));
    }
    bar
}

/// Lines on a terminal that are written anew, nothing when piped.
pub(super) fn lines(text: &str) -> ProgressBar {
    let bar = bar(text, None);
    draw_as(&bar, "{msg}");
    bar
}

/// Shows the progress of a query on `bar`: its rows, and when all are read what is done `then`.
pub(super) fn watch(bar: &ProgressBar, then: &'static str) -> impl FnMut(Progress) + Send + use<> {
    let bar = bar.clone();
    let mut reading = true;
    move |progress| {
        if let Some(total) = progress.total
            && bar.length() != Some(total)
        {
            bar.set_length(total);
            draw_as(&bar, WITH_TOTAL);
        }
        bar.set_position(progress.rows);
        if std::mem::replace(&mut reading, !progress.read) && progress.read {
            bar.set_message(then);
            draw_as(&bar, "{msg} {spinner} {human_pos} rows read, {elapsed} so far");
        }
        bar.tick();
    }
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Columns for people.
    Table,
    /// Comma-separated values; lists as `a;b`.
    Csv,
    /// One JSON object a line.
    Json,
}

/// Prints the rows of a query as they come; a table when all are there, since its columns are as wide
/// as the widest value.
pub(super) struct Printer {
    format: Format,
    /// The batches of a table.
    table: Vec<RecordBatch>,
    has_head: bool,
}

impl Printer {
    pub(super) fn new(format: Format) -> Self {
        Printer { format, table: Vec::new(), has_head: false }
    }

    /// Whether rows are printed as they come.
    pub(super) fn streams(&self) -> bool {
        self.format != Format::Table
    }

    /// Prints or takes the next rows.
    pub(super) fn push(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()> {
        let batch = readable(batch)?;
        match self.format {
            Format::Table => {
                self.table.push(batch);
                Ok(())
            }
            Format::Csv => {
                let has_head = std::mem::replace(&mut self.has_head, true);
                write_csv(out, &batch, !has_head)
            }
            Format::Json => write_json(out, &batch).map_err(to_output),
        }
    }

    /// Prints what is left; `schema` is that of the query, for one without rows.
    pub(super) fn finish(mut self, schema: &SchemaRef, out: &mut dyn Write) -> Result<()> {
        if self.table.is_empty() && !self.has_head {
            self.push(&RecordBatch::new_empty(Arc::clone(schema)), out)?;
        }
        if self.format == Format::Table {
            let text = arrow::util::pretty::pretty_format_batches(&self.table)?;
            writeln!(out, "{text}").map_err(to_output)?;
        }
        out.flush().map_err(to_output)
    }
}

/// An error of standard output.
pub(super) fn to_output(error: std::io::Error) -> Error {
    Error::io(STDOUT, error)
}

/// How errors of standard output begin.
const STDOUT: &str = "standard output";

/// Whether whoever reads standard output has closed it. It ends a command, but is no failure.
pub(super) fn is_closed_pipe(error: &Error) -> bool {
    let source = std::error::Error::source(error);
    let io = source.and_then(|e| e.downcast_ref::<std::io::Error>());
    io.is_some_and(|e| e.kind() == ErrorKind::BrokenPipe) && error.to_string().starts_with(STDOUT)
}

/// Prints a line of results.
pub(super) fn say(line: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{line}").map_err(to_output)
}

/// Prints a line that is no result to standard error; when nobody reads it, nothing is lost.
pub(super) fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Models and other bytes are told by their size.
fn readable(batch: &RecordBatch) -> Result<RecordBatch> {
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        if matches!(
            field.data_type(),
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView
        ) {
            let bytes = cast(column, &DataType::LargeBinary)?;
            let bytes = bytes.as_binary::<i64>();
            let sizes: StringArray =
                bytes.iter().map(|b| b.map(|b| format!("<{} bytes>", b.len()))).collect();
            fields.push(Arc::new(Field::new(field.name(), DataType::Utf8, true)));
            columns.push(Arc::new(sizes) as ArrayRef);
        } else {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(column));
        }
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// The values of a column as texts: lists as `a;b`, structs as Arrow prints them.
fn texts(name: &str, column: &ArrayRef) -> Result<Vec<String>> {
    if items(column.data_type()).is_some_and(|item| !item.data_type().is_nested()) {
        let lists = joined(name, column)?;
        return Ok(lists.iter().map(|text| text.unwrap_or_default().to_string()).collect());
    }
    (0..column.len()).map(|row| text(column, row)).collect()
}

fn text(column: &ArrayRef, row: usize) -> Result<String> {
    if column.is_null(row) {
        return Ok(String::new());
    }
    if let Some(item) = items(column.data_type()) {
        let lists = cast(&column.slice(row, 1), &DataType::List(Arc::clone(item)))?;
        let values = lists.as_list::<i32>().value(0);
        let items = (0..values.len()).map(|i| text(&values, i)).collect::<Result<Vec<_>>>()?;
        return Ok(items.join(BETWEEN));
    }
    let options = FormatOptions::default();
    Ok(ArrayFormatter::try_new(column.as_ref(), &options)?.value(row).to_string())
}

/// A text as a field of a CSV line.
pub(super) fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

fn write_csv(out: &mut dyn Write, batch: &RecordBatch, head: bool) -> Result<()> {
    let schema = batch.schema();
    let names = || schema.fields().iter().map(|f| f.name());
    if head {
        let names: Vec<String> = names().map(|name| csv_field(name)).collect();
        writeln!(out, "{}", names.join(",")).map_err(to_output)?;
    }
    let columns = names().zip(batch.columns());
    let columns: Vec<Vec<String>> =
        columns.map(|(name, column)| texts(name, column)).collect::<Result<_>>()?;
    for row in 0..batch.num_rows() {
        let fields: Vec<String> = columns.iter().map(|column| csv_field(&column[row])).collect();
        writeln!(out, "{}", fields.join(",")).map_err(to_output)?;
    }
    Ok(())
}

fn write_json(out: &mut dyn Write, batch: &RecordBatch) -> std::io::Result<()> {
    use datafusion::arrow::json::{WriterBuilder, writer::LineDelimited};
    let mut lines = Vec::new();
    let builder = WriterBuilder::new().with_explicit_nulls(true);
    let mut writer = builder.build::<_, LineDelimited>(&mut lines);
    writer.write(batch).and_then(|()| writer.finish()).map_err(std::io::Error::other)?;
    out.write_all(&lines)
}

/// Lines of cells as columns, the first line as head; numbers to the right.
pub(super) fn print_table(lines: &[Vec<String>]) -> Result<()> {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| {
        lines.iter().filter_map(|l| l.get(c)).map(|s| s.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let numeric =
        |c: usize| lines.iter().skip(1).all(|l| l.get(c).is_none_or(|s| s.parse::<f64>().is_ok()));
    let right: Vec<bool> = (0..columns).map(numeric).collect();
    let mut out = std::io::stdout().lock();
    for line in lines {
        let mut text = String::new();
        for (c, cell) in line.iter().enumerate() {
            let pad = " ".repeat(widths[c] - cell.chars().count());
            let cell = if right[c] { format!("{pad}{cell}") } else { format!("{cell}{pad}") };
            text.push_str(&cell);
            text.push_str("  ");
        }
        writeln!(out, "{}", text.trim_end()).map_err(to_output)?;
    }
    Ok(())
}

/// Runs `write` on a temporary name beside `path` and gives it its name when it is done.
pub(super) async fn write_file<F, Fut>(path: &Path, write: F) -> Result<()>
where
    F: FnOnce(String) -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let file = AtomicFile::try_new(path)?;
    let name = file
        .temporary()
        .to_str()
        .ok_or_else(|| Error::usage(format!("output `{}` is no valid UTF-8", path.display())))?;
    write(name.to_string()).await?;
    file.commit()
}

/// A number of seconds for people.
pub(super) fn seconds(elapsed: Duration) -> String {
    format!("{:.1} s", elapsed.as_secs_f64())
}
