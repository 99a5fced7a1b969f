//! `labelflow evaluate`: algorithms side by side.

use super::columns::{ColumnOptions, LearnOptions, quoted};
use super::labelled::LabelledTable;
use super::output::Format;
use super::{block_on, output, report};
use crate::error::{Error, Result};
use crate::evaluate::{Dataset, Experiment, Protocol};
use crate::models::{Registry, Spec};
use crate::sql::{SessionOptions, run_to_end};
use clap::Args;
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
    /// Cross-validation with this many folds: 10, or 10x5 to do it five times.
    #[arg(long, default_value = "10", value_name = "K")]
    pub(super) folds: String,
    /// A hold-out instead: the share that trains, 0.66 or 0.66x10 to repeat it.
    #[arg(long, value_name = "SHARE", conflicts_with_all = ["folds", "test"])]
    pub(super) split: Option<String>,
    /// Test on this file instead; the data trains.
    #[arg(long, value_name = "DATA", conflicts_with = "folds")]
    pub(super) test: Option<String>,
    /// How rows are dealt out to folds and hold-outs: none is by chance, iterative gives each part
    /// its share of every label, rarest its share of the rows of each rarest label.
    #[arg(
        long,
        default_value = "none",
        value_name = "none|iterative|rarest",
        conflicts_with = "test"
    )]
    pub(super) stratify: String,
    /// The seed of the shuffle.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(super) seed: u64,
    #[command(flatten)]
    pub(super) columns: ColumnOptions,
    #[command(flatten)]
    pub(super) learn: LearnOptions,
    /// Print, instead of metrics, what became of each label: support, outcomes, precision, recall
    /// and F1 over all rounds.
    #[arg(long)]
    pub(super) report: bool,
    /// How results are printed.
    #[arg(long, value_enum, default_value = "table")]
    pub(super) format: Format,
}

impl Evaluate {
    pub(super) fn run(&self) -> Result<()> {
        let protocol = self.protocol()?;
        let stratify = self.stratify.parse()?;
        let registry = Registry::default();
        let specs =
            self.algorithm.iter().map(|a| self.learn.spec(a)).collect::<Result<Vec<_>>>()?;
        let start = Instant::now();
        let clock = || start.elapsed().as_secs_f64();
        let test = self.test.as_ref().map(|path| self.read(path)).transpose()?;
        let rounds = if test.is_some() { 1 } else { protocol.rounds() };
        for input in &self.inputs {
            let data = self.read(input)?;
            let steps = rounds * values(&specs)?;
            let bar = output::steps(&format!("evaluating {}", data.name()), steps as u64);
            let watch = || bar.inc(1);
            let experiment = Experiment {
                registry: &registry,
                protocol,
                stratify,
                seed: self.seed,
                clock: &clock,
                watch: &watch,
            };
            let mut outcomes = match &test {
                Some(test) => experiment.run_on(&data, test, &specs)?,
                None => experiment.run(&data, &specs)?,
            };
            bar.finish_and_clear();
            for outcome in &mut outcomes {
                outcome.spec = self.learn.typed(&outcome.spec, &self.algorithm)?;
            }
            for outcome in outcomes.iter().filter(|o| self.algorithm.contains(&o.spec)) {
                for note in &outcome.notes {
                    output::tell(&format!("note: {}: {note}", outcome.spec));
                }
            }
            let labels = match &test {
                Some(test) => format!("{} labels, test {}", data.universe().len(), test.name()),
                None => format!("{} labels, {protocol}", data.universe().len()),
            };
            let title =
                format!("{}: {} rows, {labels}, seed {}", data.name(), data.len(), self.seed);
            match (self.report, self.format) {
                (false, Format::Table) => report::print_metrics(&title, &outcomes)?,
                (false, format) => {
                    report::print_records(data.name(), self.seed, &outcomes, format)?
                }
                (true, Format::Table) => report::print_labels(&title, &outcomes)?,
                (true, format) => report::print_label_records(data.name(), &outcomes, format)?,
            }
        }
        Ok(())
    }

    fn protocol(&self) -> Result<Protocol> {
        if let Some(split) = &self.split {
            return match split.parse() {
                Ok(hold_out @ Protocol::HoldOut { .. }) => Ok(hold_out),
                _ => Err(Error::usage(format!(
                    "`{split}` is no split: write the share that trains, such as 0.66, or 0.66x10 \
                     to repeat it"
                ))),
            };
        }
        match self.folds.parse() {
            Ok(folds @ Protocol::Folds { .. }) => Ok(folds),
            _ => Err(Error::usage(format!(
                "--folds is `{}`: write how many, from 2 on, such as 10, or 10x5 to do it five times",
                self.folds
            ))),
        }
    }

    fn read(&self, input: &str) -> Result<Dataset> {
        let batches = block_on(0, async {
            // One partition: the rows are in the order of the file, so that folds can be repeated.
            let options = SessionOptions { partitions: 1, ..Default::default() };
            let data =
                LabelledTable::open(input, &self.columns, &self.learn.labels, options).await?;
            let LabelledTable { features, labels, table, .. } = &data;
            let query = format!("SELECT {features}, {labels} AS {} FROM {table}", quoted(LABELS));
            let query = data.query(&query).await?;
            let bar = output::bar("reading", None);
            let batches = run_to_end(query, output::watch(&bar, "reading")).await?;
            bar.finish_and_clear();
            Ok(batches)
        })?;
        let name = Path::new(input).file_stem().map_or(input.into(), |n| n.to_string_lossy());
        Dataset::try_new(&name, &batches, LABELS)
    }
}

/// How many models a round has: one for each value of a range.
fn values(specs: &[String]) -> Result<usize> {
    specs.iter().map(|spec| Ok(spec.parse::<Spec>()?.expand().len())).sum()
}
