//! `labelflow score`: `predict_labels` into a file.

use super::columns::{ColumnOptions, list, literal, read_by};
use super::labelled::refuse_gap;
use super::sink::{FileFormat, write_rows};
use super::{block_on, output};
use crate::error::{Error, Result};
use crate::models::{Model, Registry};
use crate::sql::{SessionOptions, from_datafusion, session};
use crate::store::read_model;
use arrow::datatypes::DataType;
use clap::Args;
use std::path::PathBuf;
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
    /// The file to write; its extension chooses the format (.parquet, .csv, .json, .arrow or .arrows).
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
        let format = FileFormat::of(&self.output)?;
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
        output::tell(&format!(
            "scored {rows} rows in {}: {}",
            output::seconds(start.elapsed()),
            self.output.display()
        ));
        Ok(())
    }

    async fn write(&self, model: &Model, name: &str, format: FileFormat) -> Result<u64> {
        // One partition keeps the rows in their order; predictions and encoding run on all threads.
        let files = self.columns.files();
        let ctx = session(&SessionOptions { partitions: 1, files, ..Default::default() })?;
        let table = literal(&self.input);
        let data = ctx.sql(&format!("SELECT * FROM {table}")).await.map_err(from_datafusion)?;
        let schema = data.schema().inner();
        let features = self.columns.for_model(schema, model)?;
        if features.is_empty() {
            // Let the model say which feature it misses.
            model.check_features(&DataType::Struct(schema.fields().clone()))?;
        }
        let way_out = |_: &String| "the model needs it: add it, or leave the file out".to_string();
        refuse_gap(&ctx, &data, &self.input, &read_by(model, &features)?, way_out).await?;
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
        let added: Vec<String> = columns.iter().map(|(e, n)| format!("{e} AS {n}")).collect();
        let query = format!("SELECT {}, {} FROM {table}", list(&kept), added.join(", "));
        let bar = output::bar("scoring", None);
        write_rows(&ctx, &query, name, format, &bar).await
    }
}
