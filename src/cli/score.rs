//! `labelflow score`: `predict_labels` into a file.

use super::columns::{ColumnOptions, list, literal, quoted};
use super::{block_on, output};
use crate::error::{Error, Result};
use crate::models::{Model, Registry};
use crate::sql::{SessionOptions, from_datafusion, run_to_end, session};
use crate::store::read_model;
use arrow::array::AsArray;
use arrow::datatypes::{DataType, Field, UInt64Type};
use clap::Args;
use datafusion::prelude::SessionContext;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Arguments of `score`.
#[derive(Debug, Args)]
pub(super) struct Score {
    /// The model file.
    #[arg(long, value_name = "FILE")]
    pub(super) model: PathBuf,
    /// The data to score: a file, directory or pattern.
    #[arg(value_name = "DATA")]
    pub(super) input: String,
    /// The file to write; its extension chooses the format (.parquet, .csv, .json or .arrow).
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: PathBuf,
    /// Add a column `label_scores` with the probability of every label.
    #[arg(long)]
    pub(super) scores: bool,
    /// Predict the K most probable labels, best first, instead of a set.
    #[arg(long, value_name = "K")]
    pub(super) top: Option<usize>,
    /// Add a column `label_sets` with the K most probable sets and their probabilities.
    #[arg(long, value_name = "K")]
    pub(super) sets: Option<usize>,
    #[command(flatten)]
    pub(super) columns: ColumnOptions,
    /// How many threads work; 0 is one per core.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(super) threads: usize,
}

impl Score {
    pub(super) fn run(&self) -> Result<()> {
        let format = file_format(&self.output)?;
        let model = read_model(&self.model, &Registry::default())?;
        let start = Instant::now();
        let rows = block_on(self.threads, async {
            let mut rows = 0;
            output::write_file(&self.output, async |name| {
                rows = self.write(&model, &name, format).await?;
                Ok(())
            })
            .await?;
            Ok(rows)
        })?;
        eprintln!(
            "scored {rows} rows in {}: {}",
            output::seconds(start.elapsed()),
            self.output.display()
        );
        Ok(())
    }

    async fn write(&self, model: &Model, name: &str, format: &str) -> Result<u64> {
        // One partition keeps the rows in their order; predictions and encoding run on all threads.
        let ctx = session(&SessionOptions { partitions: 1, ..Default::default() })?;
        let table = literal(&self.input);
        let data = ctx.sql(&format!("SELECT * FROM {table}")).await.map_err(from_datafusion)?;
        let schema = data.schema().inner();
        let features = self.columns.for_model(schema, model)?;
        if features.is_empty() {
            // Let the model say which feature it misses.
            model.check_features(&DataType::Struct(schema.fields().clone()))?;
        }
        let features = list(&features);
        let file = literal(&self.model.to_string_lossy());
        let predicted = match self.top {
            Some(k) => format!("top_labels({file}, {k}, {features})"),
            None => format!("predict_labels({file}, {features})"),
        };
        let mut columns = vec![(predicted, "predicted_labels")];
        if self.scores {
            columns.push((format!("score_labels({file}, {features})"), "label_scores"));
        }
        if let Some(k) = self.sets {
            columns.push((format!("predict_sets({file}, {k}, {features})"), "label_sets"));
        }
        let kept: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
        if let Some((_, taken)) = columns.iter().find(|(_, c)| kept.iter().any(|k| k == c)) {
            return Err(Error::data(format!(
                "`{}` has a column `{taken}` already: rename it first",
                self.input
            )));
        }
        if format == "CSV" && columns.len() > 1 {
            return Err(Error::usage(
                "scores and sets do not fit into CSV: write .parquet, .json or .arrow",
            ));
        }
        let added: Vec<String> = columns.iter().map(|(e, n)| format!("{e} AS {n}")).collect();
        let copy = copy_statement(
            &format!("SELECT {}, {} FROM {table}", list(&kept), added.join(", ")),
            &ctx,
            name,
            format,
        )
        .await?;
        let bar = output::bar("scoring", None);
        let query = ctx.sql(&copy).await.map_err(from_datafusion)?;
        let count = run_to_end(query, |p| output::show(&bar, p)).await?;
        bar.finish_and_clear();
        let count = count.iter().find(|b| b.num_rows() > 0).map(|b| b.column(0));
        Ok(count.and_then(|c| c.as_primitive_opt::<UInt64Type>()).map_or(0, |c| c.value(0)))
    }
}

/// The statement that writes the rows of `query` to the file `name`.
///
/// CSV has no lists: a list of labels is written as `a;b`. In Parquet, numbers with a fraction get no
/// dictionary: they seldom repeat, and building one takes half the time and memory of writing.
pub(super) async fn copy_statement(
    query: &str,
    ctx: &SessionContext,
    name: &str,
    format: &str,
) -> Result<String> {
    let rows = ctx.sql(query).await.map_err(from_datafusion)?;
    let fields = rows.schema().fields();
    let (mut query, mut options) = (query.to_string(), String::new());
    if format == "CSV" {
        let column = |f: &Arc<Field>| match f.data_type() {
            DataType::List(_) => format!("array_to_string({0}, ';') AS {0}", quoted(f.name())),
            _ => quoted(f.name()),
        };
        let columns: Vec<String> = fields.iter().map(column).collect();
        query = format!("SELECT {} FROM ({query})", columns.join(", "));
    } else if format == "PARQUET" {
        // A dot in the name would be taken for a path into a struct.
        let plain = |f: &&Arc<Field>| f.data_type().is_floating() && !f.name().contains('.');
        let option = |f: &Arc<Field>| {
            format!("{} 'false'", literal(&format!("format.dictionary_enabled::{}", f.name())))
        };
        let columns: Vec<String> = fields.iter().filter(plain).map(option).collect();
        if !columns.is_empty() {
            options = format!(" OPTIONS ({})", columns.join(", "));
        }
    }
    Ok(format!("COPY ({query}) TO {} STORED AS {format}{options}", literal(name)))
}

/// The format of an output file as DataFusion names it.
pub(super) fn file_format(path: &Path) -> Result<&'static str> {
    let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("parquet") => Ok("PARQUET"),
        Some("csv") => Ok("CSV"),
        Some("json") => Ok("JSON"),
        Some("arrow") => Ok("ARROW"),
        _ => Err(Error::usage(format!(
            "output `{}`: give the file one of the extensions .parquet, .csv, .json, .arrow",
            path.display()
        ))),
    }
}
