//! `labelflow evaluate`: algorithms side by side.

use super::columns::{ColumnOptions, LearnOptions, list, literal, quoted};
use super::output::{Format, csv_field, finish, print_table};
use super::{block_on, output};
use crate::error::{Error, Result};
use crate::evaluate::{Dataset, Experiment, Outcome, Protocol};
use crate::models::Registry;
use crate::sql::{SessionOptions, from_datafusion, run_to_end, session};
use clap::Args;
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// The name of the label sets beside the features; no feature is called like that.
const LABELS: &str = "labelflow labels";

/// Arguments of `evaluate`.
#[derive(Debug, Args)]
pub(super) struct Evaluate {
    /// The data sets.
    #[arg(value_name = "DATA", required = true)]
    pub(super) inputs: Vec<String>,
    /// An algorithm; may be given several times. A range of values (k=1..30) is evaluated value by
    /// value and as their mean.
    #[arg(long, value_name = "SPEC", default_value = "naibx")]
    pub(super) algorithm: Vec<String>,
    /// Cross-validation with this many folds.
    #[arg(long, default_value_t = 10, value_name = "K")]
    pub(super) folds: usize,
    /// A hold-out instead: the share that trains, 0.66 or 0.66x10 to repeat it.
    #[arg(long, value_name = "SHARE", conflicts_with_all = ["folds", "test"])]
    pub(super) split: Option<String>,
    /// Test on this file instead; the data trains.
    #[arg(long, value_name = "DATA", conflicts_with = "folds")]
    pub(super) test: Option<String>,
    /// The seed of the shuffle.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(super) seed: u64,
    #[command(flatten)]
    pub(super) columns: ColumnOptions,
    #[command(flatten)]
    pub(super) learn: LearnOptions,
    /// How results are printed.
    #[arg(long, value_enum, default_value = "table")]
    pub(super) format: Format,
}

impl Evaluate {
    pub(super) fn run(&self) -> Result<()> {
        let protocol = match &self.split {
            Some(split) => split.parse()?,
            None => Protocol::Folds(self.folds),
        };
        let registry = Registry::default();
        let specs =
            self.algorithm.iter().map(|a| self.learn.spec(a)).collect::<Result<Vec<_>>>()?;
        let start = Instant::now();
        let clock = || start.elapsed().as_secs_f64();
        let test = self.test.as_ref().map(|path| self.read(path)).transpose()?;
        for input in &self.inputs {
            let data = self.read(input)?;
            let bar = output::bar(&format!("evaluating {}", data.name()), None);
            let watch = || bar.inc(1);
            let experiment = Experiment {
                registry: &registry,
                protocol,
                seed: self.seed,
                clock: &clock,
                watch: &watch,
            };
            let outcomes = match &test {
                Some(test) => experiment.run_on(&data, test, &specs)?,
                None => experiment.run(&data, &specs)?,
            };
            bar.finish_and_clear();
            match self.format {
                Format::Table => self.print_lines(&data, protocol, &outcomes)?,
                format => self.print_records(&data, &outcomes, format)?,
            }
        }
        Ok(())
    }

    fn read(&self, input: &str) -> Result<Dataset> {
        let batches = block_on(0, async {
            // One partition: the rows are in the order of the file, so that folds can be repeated.
            let files = self.columns.files();
            let options = SessionOptions { partitions: 1, files, ..Default::default() };
            let ctx = session(&options)?;
            let table = literal(input);
            let data = ctx.sql(&format!("SELECT * FROM {table}")).await.map_err(from_datafusion)?;
            let schema = data.schema().inner();
            let labels = self.columns.label_sets(schema, input, &self.learn)?;
            if let Some(note) = self.columns.note(schema) {
                eprintln!("note: {note}");
            }
            let features = list(&self.columns.features(schema)?);
            let query = format!("SELECT {features}, {labels} AS {} FROM {table}", quoted(LABELS));
            let query = ctx.sql(&query).await.map_err(from_datafusion)?;
            let bar = output::bar("reading", None);
            let batches = run_to_end(query, |p| output::show(&bar, p)).await?;
            bar.finish_and_clear();
            Ok(batches)
        })?;
        let name = Path::new(input).file_stem().map_or(input.into(), |n| n.to_string_lossy());
        Dataset::try_new(&name, &batches, LABELS)
    }

    fn print_records(&self, data: &Dataset, outcomes: &[Outcome], format: Format) -> Result<()> {
        let mut out = std::io::stdout().lock();
        if format == Format::Csv {
            finish(writeln!(out, "dataset,algorithm,metric,mean,std,folds,seed"))?;
        }
        for outcome in outcomes {
            for (metric, value) in &outcome.metrics {
                let record = Record {
                    dataset: data.name(),
                    algorithm: &outcome.spec,
                    metric,
                    mean: value.mean,
                    std: value.std,
                    folds: value.rounds,
                    seed: self.seed,
                };
                let written = writeln!(out, "{}", record.line(format)?);
                if written.is_err() {
                    return finish(written);
                }
            }
        }
        Ok(())
    }

    fn print_lines(&self, data: &Dataset, protocol: Protocol, outcomes: &[Outcome]) -> Result<()> {
        let protocol = self.test.as_ref().map_or(protocol.to_string(), |t| format!("test {t}"));
        println!(
            "{}: {} rows, {} labels, {protocol}, seed {}",
            data.name(),
            data.len(),
            data.universe().len(),
            self.seed
        );
        let Some(first) = outcomes.first() else { return Ok(()) };
        let mut head = vec!["metric".to_string()];
        head.extend(outcomes.iter().map(|o| o.spec.clone()));
        let mut lines = vec![head];
        for (i, (metric, _)) in first.metrics.iter().enumerate() {
            let mut line = vec![(*metric).to_string()];
            line.extend(outcomes.iter().map(|o| {
                let value = o.metrics[i].1;
                format!("{:.4} ± {:.4}", value.mean, value.std)
            }));
            lines.push(line);
        }
        print_table(&lines)
    }
}

/// One number of a report.
#[derive(Debug, Serialize)]
struct Record<'a> {
    dataset: &'a str,
    algorithm: &'a str,
    metric: &'a str,
    mean: f64,
    std: f64,
    folds: usize,
    seed: u64,
}

impl Record<'_> {
    fn line(&self, format: Format) -> Result<String> {
        if format == Format::Csv {
            let Record { dataset, algorithm, metric, mean, std, folds, seed } = self;
            let (dataset, algorithm) = (csv_field(dataset), csv_field(algorithm));
            return Ok(format!("{dataset},{algorithm},{metric},{mean},{std},{folds},{seed}"));
        }
        serde_json::to_string(self).map_err(|e| Error::internal(format!("a report line: {e}")))
    }
}
