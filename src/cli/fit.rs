//! `labelflow fit`: `train_labels` over a parallel scan, into a model file.

use super::columns::{ColumnOptions, LearnOptions, literal};
use super::labelled::LabelledTable;
use super::{block_on, output, thread_count};
use crate::error::{Error, Result};
use crate::models::{Registry, Trainer};
use crate::sql::{SessionOptions, run_to_end};
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
        Trainer::try_new(&Registry::default(), &algorithm)?;
        AtomicFile::try_new(&self.output)?;
        let start = Instant::now();
        let bytes = block_on(self.threads, self.learn(&algorithm))?;
        write_atomically(&self.output, &bytes)?;
        let model = from_bytes(&bytes, &Registry::default())?;
        for note in model.notes() {
            output::tell(&format!("note: {note}"));
        }
        output::tell(&format!(
            "learned {} labels from {} rows and {} features in {}: {}",
            model.space().labels.len(),
            model.rows(),
            model.space().features.len(),
            output::seconds(start.elapsed()),
            self.output.display()
        ));
        Ok(())
    }

    async fn learn(&self, algorithm: &str) -> Result<Vec<u8>> {
        let options =
            SessionOptions { partitions: thread_count(self.threads), ..Default::default() };
        let data =
            LabelledTable::open(&self.input, &self.columns, &self.learn.labels, options).await?;
        let (named, spec) = Registry::default().resolve(algorithm)?;
        if let Some(column) = (named.features)(&spec)?.given_size.filter(|c| !data.has(c)) {
            output::tell(&format!(
                "note: there is no column `{column}`, which gives the size of each set; rows to score \
                 need it"
            ));
        }
        let query = format!(
            "SELECT train_labels({}, {}, {}) AS model FROM {}",
            literal(algorithm),
            data.labels,
            data.features,
            data.table
        );
        let bar = output::bar("learning", None);
        let query = data.query(&query).await?;
        let batches = run_to_end(query, output::watch(&bar, "fitting")).await?;
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
