//! `labelflow describe`: what a data set is like, in one parallel scan.

use super::columns::{ColumnOptions, LabelOptions};
use super::labelled::LabelledTable;
use super::output::{Format, print_table, say};
use super::{block_on, output, thread_count};
use crate::error::{Error, Result};
use crate::evaluate::{DESCRIBE, Description, Frequent};
use crate::models::Registry;
use crate::sql::{SessionOptions, run_to_end};
use crate::store::from_bytes;
use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use clap::Args;
use serde::Serialize;
use std::path::Path;

/// Arguments of `describe`.
#[derive(Debug, Args)]
pub(super) struct Describe {
    /// The data sets: files, directories or patterns.
    #[arg(value_name = "DATA", required = true)]
    pub(super) inputs: Vec<String>,
    #[command(flatten)]
    pub(super) columns: ColumnOptions,
    #[command(flatten)]
    pub(super) reading: LabelOptions,
    /// How many of the most frequent labels, pairs and sets are shown.
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(super) most: usize,
    /// How many threads work; 0 is one per core.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(super) threads: usize,
    /// How the description is printed; csv has the figures without labels, pairs and sets.
    #[arg(long, value_enum, default_value = "table")]
    pub(super) format: Format,
}

/// A description as it is printed.
#[derive(Debug, Serialize)]
struct Report {
    dataset: String,
    unlabelled: u64,
    #[serde(flatten)]
    description: Description,
}

impl Describe {
    pub(super) fn run(&self) -> Result<()> {
        for (i, input) in self.inputs.iter().enumerate() {
            let report = block_on(self.threads, self.describe(input))?;
            match self.format {
                Format::Table => {
                    if i > 0 {
                        say("")?;
                    }
                    report.print()?;
                }
                Format::Csv => {
                    let figures = report.figures();
                    if i == 0 {
                        let names: Vec<&str> = figures.iter().map(|f| f.0).collect();
                        say(&names.join(","))?;
                    }
                    let values: Vec<String> =
                        figures.iter().map(|f| output::csv_field(&f.1)).collect();
                    say(&values.join(","))?;
                }
                Format::Json => {
                    let line = serde_json::to_string(&report)
                        .map_err(|e| Error::internal(format!("a description: {e}")))?;
                    say(&line)?;
                }
            }
        }
        Ok(())
    }

    async fn describe(&self, input: &str) -> Result<Report> {
        let registry = Registry::default().with(DESCRIBE);
        let options = SessionOptions {
            partitions: thread_count(self.threads),
            registry: registry.clone(),
            ..Default::default()
        };
        let data = LabelledTable::open(input, &self.columns, &self.reading, options).await?;
        let declared = self.columns.declared(&data.schema)?;
        let query = format!(
            "SELECT train_labels('{}', {}, {}) AS model, count(*) AS rows FROM {}",
            DESCRIBE.name, data.labels, data.features, data.table
        );
        let bar = output::bar("describing", None);
        let query = data.query(&query).await?;
        let batches = run_to_end(query, output::watch(&bar, "describing")).await?;
        bar.finish_and_clear();
        let found = batches.iter().find(|b| b.num_rows() > 0).and_then(|batch| {
            let model = batch.column(0).as_binary_view_opt().filter(|m| m.is_valid(0))?;
            let rows = batch.column(1).as_primitive_opt::<Int64Type>()?;
            Some((model.value(0), rows.value(0)))
        });
        let Some((bytes, rows)) = found else {
            return Err(Error::data(format!(
                "`{input}` has no labelled row to describe: it is empty, or every label list is NULL"
            )));
        };
        let model = from_bytes(bytes, &registry)?;
        // Labels that are declared, and those that occur without having been.
        let others = model.space().labels.names().filter(|n| declared.get(n).is_none()).count();
        let description = Description::try_new(&model, declared.len() + others, self.most)?;
        let name = Path::new(input).file_stem().map_or(input.into(), |n| n.to_string_lossy());
        let unlabelled = rows as u64 - description.rows;
        Ok(Report { dataset: name.into_owned(), unlabelled, description })
    }
}

impl Report {
    /// Every figure with its name.
    fn figures(&self) -> Vec<(&'static str, String)> {
        let d = &self.description;
        let features: usize = d.features.values().sum();
        let number = |x: f64| format!("{x:.4}");
        let mut figures = vec![
            ("dataset", self.dataset.clone()),
            ("rows", d.rows.to_string()),
            ("unlabelled", self.unlabelled.to_string()),
            ("features", features.to_string()),
        ];
        figures.extend(d.features.iter().map(|(kind, n)| (*kind, n.to_string())));
        figures.extend([
            ("labels", d.labels.to_string()),
            ("labels_seen", d.labels_seen.to_string()),
            ("cardinality", number(d.cardinality)),
            ("density", number(d.density)),
            ("distinct_sets", d.distinct_sets.to_string()),
            ("empty_sets", d.empty_sets.to_string()),
            ("largest_set", d.largest_set.to_string()),
            ("mean_imbalance", number(d.mean_imbalance)),
            ("imbalance_variation", number(d.imbalance_variation)),
        ]);
        figures
    }

    fn print(&self) -> Result<()> {
        let figures = self.figures();
        let lines: Vec<Vec<String>> =
            figures.into_iter().map(|(name, value)| vec![name.to_string(), value]).collect();
        print_table(&lines)?;
        let d = &self.description;
        self.print_frequent("label", &d.most_labels, String::clone)?;
        self.print_frequent("pair", &d.pairs, |pair| pair.join(" + "))?;
        self.print_frequent("set", &d.sets, |set| match &set[..] {
            [] => "(none)".to_string(),
            set => set.join(" + "),
        })
    }

    /// The most frequent things of one kind, with their share of the rows.
    fn print_frequent<T>(
        &self,
        kind: &str,
        all: &[Frequent<T>],
        name: impl Fn(&T) -> String,
    ) -> Result<()> {
        if all.is_empty() {
            return Ok(());
        }
        say("")?;
        let mut lines = vec![vec![format!("most frequent {kind}"), "rows".into(), "share".into()]];
        for Frequent { of, rows } in all {
            let share = *rows as f64 / self.description.rows as f64;
            lines.push(vec![name(of), rows.to_string(), format!("{share:.4}")]);
        }
        print_table(&lines)
    }
}
