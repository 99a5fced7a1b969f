//! `labelflow sql`: queries with all labelflow functions.

use super::columns::{literal, quoted};
use super::output::{Format, print_batches};
use super::{block_on, output};
use crate::error::{Error, Result};
use crate::sql::{SessionOptions, from_datafusion, run_to_end, session};
use clap::Args;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::DFParser;
use std::path::PathBuf;

/// Arguments of `sql`.
#[derive(Debug, Args)]
pub(super) struct Sql {
    /// A query, or several separated by semicolons. Files are tables: FROM 'train.parquet'.
    #[arg(value_name = "QUERY", required_unless_present = "file")]
    pub(super) query: Option<String>,
    /// A file with queries.
    #[arg(short, long, value_name = "FILE", conflicts_with = "query")]
    pub(super) file: Option<PathBuf>,
    /// A name for a file: --table train=train.parquet.
    #[arg(long, value_name = "NAME=FILE")]
    pub(super) table: Vec<String>,
    /// How rows are printed.
    #[arg(long, value_enum, default_value = "table")]
    pub(super) format: Format,
    /// How many threads work; 0 is one per core.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(super) threads: usize,
}

impl Sql {
    pub(super) fn run(&self) -> Result<()> {
        let text = match (&self.query, &self.file) {
            (Some(query), _) => query.clone(),
            (None, Some(file)) => std::fs::read_to_string(file)
                .map_err(|e| Error::io(format!("script `{}`", file.display()), e))?,
            (None, None) => return Err(Error::usage("give a query, or a script with --file")),
        };
        block_on(self.threads, async {
            let ctx = session(&SessionOptions { partitions: self.threads, ..Default::default() })?;
            self.name_tables(&ctx).await?;
            for statement in DFParser::parse_sql(&text).map_err(from_datafusion)? {
                let plan =
                    ctx.state().statement_to_plan(statement).await.map_err(from_datafusion)?;
                let query = ctx.execute_logical_plan(plan).await.map_err(from_datafusion)?;
                let schema = query.schema().inner().clone();
                let bar = output::bar("running", None);
                let mut batches = run_to_end(query, |p| output::show(&bar, p)).await?;
                bar.finish_and_clear();
                if schema.fields().is_empty() {
                    continue;
                }
                if batches.is_empty() {
                    batches.push(arrow::record_batch::RecordBatch::new_empty(schema));
                }
                print_batches(&batches, self.format)?;
            }
            Ok(())
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
