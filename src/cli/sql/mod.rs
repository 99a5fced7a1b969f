//! `labelflow sql`: queries with all labelflow functions, and a shell for them.

mod copy;
mod editor;
mod history;
mod shell;
mod statements;

use super::columns::{literal, quoted};
use super::output::{Format, Printer};
use super::sink::{FileFormat, write_directly};
use super::{block_on, output, thread_count};
use crate::error::{Error, Result};
use crate::formats::LabelSource;
use crate::sql::{FileOptions, SessionOptions, from_datafusion, run_each, session};
use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use clap::Args;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::parser::DFParser;
use std::io::{BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Arguments of `sql`.
#[derive(Debug, Args)]
pub(super) struct Sql {
    /// A query, or several separated by semicolons. Files are tables: FROM 'train.parquet'.
    /// Without one, queries are read from a shell or from what is piped in.
    #[arg(value_name = "QUERY")]
    pub(super) query: Option<String>,
    /// A file with queries.
    #[arg(short, long, value_name = "FILE", conflicts_with = "query")]
    pub(super) file: Option<PathBuf>,
    /// A name for a file: --table train=train.parquet.
    #[arg(long, value_name = "NAME=FILE")]
    pub(super) table: Vec<String>,
    /// Mulan's list of labels of ARFF files; by default the file of the same name with .xml, or
    /// MEKA's header.
    #[arg(long, value_name = "XML")]
    pub(super) labels_xml: Option<PathBuf>,
    /// How rows are printed.
    #[arg(long, value_enum, default_value = "table")]
    pub(super) format: Format,
    /// How many threads work; 0 is one per core.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(super) threads: usize,
    /// Megabytes that queries may take in memory; a query that needs more fails. No bound without it.
    #[arg(long, value_name = "MB")]
    pub(super) memory: Option<usize>,
}

impl Sql {
    pub(super) fn run(&self) -> Result<()> {
        let text = match (&self.query, &self.file) {
            (Some(query), _) => Some(query.clone()),
            (None, Some(file)) => Some(read_script(file)?),
            (None, None) if std::io::stdin().is_terminal() => None,
            (None, None) => Some(read_input()?),
        };
        block_on(self.threads, async {
            let partitions = thread_count(self.threads);
            let labels = self.labels_xml.clone().map_or(LabelSource::Auto, LabelSource::Xml);
            let files = FileOptions { arff_labels: labels, ..Default::default() };
            let memory_limit = self.memory.map(|mb| mb.saturating_mul(1 << 20));
            let options = SessionOptions { partitions, files, memory_limit, ..Default::default() };
            let ctx = session(&options)?;
            self.name_tables(&ctx).await?;
            let out = Box::new(BufWriter::new(std::io::stdout()));
            let mut runner = Runner { ctx, format: self.format, timing: false, out };
            match text {
                Some(text) => runner.run_text(&text).await,
                None => shell::run(&mut runner).await,
            }
        })
    }

    async fn name_tables(&self, ctx: &SessionContext) -> Result<()> {
        for pair in &self.table {
            let (name, file) = pair.split_once('=').ok_or_else(|| {
                Error::usage(format!("`--table {pair}`: write it as --table name=file"))
            })?;
            let view = format!("CREATE VIEW {} AS SELECT * FROM {}", quoted(name), literal(file));
            ctx.sql(&view).await.map_err(from_datafusion)?;
        }
        Ok(())
    }
}

fn read_script(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).map_err(|e| Error::io(format!("script `{}`", file.display()), e))
}

fn read_input() -> Result<String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|e| Error::io("standard input", e))?;
    Ok(text)
}

/// A session and how its results are shown.
struct Runner {
    ctx: SessionContext,
    format: Format,
    /// Whether rows and seconds are told after each query.
    timing: bool,
    /// Where results go.
    out: Box<dyn Write>,
}

impl Runner {
    /// Runs the statements of `text` one after the other, up to the first that fails.
    async fn run_text(&mut self, text: &str) -> Result<()> {
        for mut statement in DFParser::parse_sql(text).map_err(from_datafusion)? {
            copy::name_format(&mut statement)?;
            let plan =
                self.ctx.state().statement_to_plan(statement).await.map_err(from_datafusion)?;
            self.run_plan(plan).await?;
        }
        Ok(())
    }

    async fn run_plan(&mut self, mut plan: LogicalPlan) -> Result<()> {
        let start = std::time::Instant::now();
        let (query, output) = match copy::stream(&plan)? {
            Some((rows, file)) => (self.write_stream(rows.clone(), file).await?, None),
            None => {
                let output = copy::redirect(&mut plan)?;
                (self.ctx.execute_logical_plan(plan).await.map_err(from_datafusion)?, output)
            }
        };
        let schema = query.schema().inner().clone();
        let has_rows = !schema.fields().is_empty();
        let bar = output::bar("running", None);
        let mut printer = Printer::new(self.format);
        let mut rows = 0;
        let out = &mut self.out;
        let ended = run_each(query, output::watch(&bar, "running"), |batch| {
            rows += batch.num_rows();
            if printer.streams() {
                bar.finish_and_clear();
            }
            if has_rows { printer.push(&batch, out) } else { Ok(()) }
        });
        let ended = ended.await;
        bar.finish_and_clear();
        if ended.is_err() {
            // Rows that came before the failure are shown.
            let _ = self.out.flush();
        }
        ended?;
        if let Some(output) = output {
            output.commit()?;
        }
        if has_rows {
            printer.finish(&schema, &mut self.out)?;
        }
        if self.timing {
            output::tell(&format!("{rows} rows in {}", output::seconds(start.elapsed())));
        }
        Ok(())
    }

    /// Writes `rows` to an Arrow IPC stream; returns how many there are, as `COPY` does.
    async fn write_stream(&self, rows: LogicalPlan, file: &Path) -> Result<DataFrame> {
        let query = self.ctx.execute_logical_plan(rows).await.map_err(from_datafusion)?;
        let bar = output::bar("running", None);
        let mut count = 0;
        let written = output::write_file(file, async |name| {
            count = write_directly(query, &name, FileFormat::Arrows, &bar).await?;
            Ok(())
        });
        let written = written.await;
        bar.finish_and_clear();
        written?;
        let count: ArrayRef = Arc::new(UInt64Array::from(vec![count]));
        let count = RecordBatch::try_from_iter([("count", count)])?;
        self.ctx.read_batch(count).map_err(from_datafusion)
    }

    /// Writes a line for people.
    fn say(&mut self, text: &str) -> Result<()> {
        let written = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
        written.map_err(output::to_output)
    }
}
