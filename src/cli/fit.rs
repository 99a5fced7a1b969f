//! `labelflow fit`: `train_labels` over a parallel scan, into a model file.

use super::columns::{ColumnOptions, LearnOptions, list, literal};
use super::{block_on, output, thread_count};
use crate::error::{Error, Result};
use crate::models::Registry;
use crate::sql::{SessionOptions, from_datafusion, run_to_end, session};
use crate::store::{AtomicFile, from_bytes, write_atomically};
use arrow::array::{Array, AsArray};
use clap::Args;
use std::path::PathBuf;
use std::time::Instant;

/// Arguments of `fit`.
#[derive(Debug, Args)]
pub(super) struct Fit {
    /// The algorithm, such as naibx or 'naibx(smoothing=0.5)'.
    #[arg(long, default_value = "naibx", value_name = "SPEC")]
    pub(super) algorithm: String,
    #[command(flatten)]
    pub(super) columns: ColumnOptions,
    #[command(flatten)]
    pub(super) learn: LearnOptions,
    /// The training data: a file, directory or pattern.
    #[arg(value_name = "DATA")]
    pub(super) input: String,
    /// The model file to write.
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: PathBuf,
    /// How many threads work; 0 is one per core.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(super) threads: usize,
}

impl Fit {
    pub(super) fn run(&self) -> Result<()> {
        // What can be refused is refused before the scan.
        let algorithm = self.learn.spec(&self.algorithm)?;
        Registry::default().resolve(&algorithm)?;
        AtomicFile::try_new(&self.output)?;
        let start = Instant::now();
        let bytes = block_on(self.threads, self.learn(&algorithm))?;
        write_atomically(&self.output, &bytes)?;
        let model = from_bytes(&bytes, &Registry::default())?;
        for note in model.notes() {
            eprintln!("note: {note}");
        }
        eprintln!(
            "learned {} labels from {} rows and {} features in {}: {}",
            model.space().labels.len(),
            model.rows(),
            model.space().features.len(),
            output::seconds(start.elapsed()),
            self.output.display()
        );
        Ok(())
    }

    async fn learn(&self, algorithm: &str) -> Result<Vec<u8>> {
        let partitions = thread_count(self.threads);
        let files = self.columns.files();
        let ctx = session(&SessionOptions { partitions, files, ..Default::default() })?;
        let table = literal(&self.input);
        let data = ctx.sql(&format!("SELECT * FROM {table}")).await.map_err(from_datafusion)?;
        let schema = data.schema().inner();
        let labels = self.columns.label_sets(schema, &self.input, &self.learn.labels)?;
        if let Some(note) = self.columns.note(schema) {
            eprintln!("note: {note}");
        }
        let query = format!(
            "SELECT train_labels({}, {}, {}) AS model FROM {table}",
            literal(algorithm),
            labels,
            list(&self.columns.features(schema)?),
        );
        let bar = output::bar("learning", None);
        let query = ctx.sql(&query).await.map_err(from_datafusion)?;
        let batches = run_to_end(query, |p| output::show(&bar, p)).await?;
        bar.finish_and_clear();
        let model = batches.iter().find(|b| b.num_rows() > 0).map(|b| b.column(0));
        match model.and_then(|m| m.as_binary_view_opt()).filter(|m| m.is_valid(0)) {
            Some(model) => Ok(model.value(0).to_vec()),
            None => Err(Error::data(format!(
                "`{}` has no labelled row to learn from: it is empty, or every label list is NULL",
                self.input
            ))),
        }
    }
}
