//! `labelflow stream`: a model around a stream that may have no end.

mod files;
mod parquet;
mod watch;

use super::columns::{ColumnOptions, EmptyLabels, LabelOptions};
use super::signals;
use crate::error::{Error, Result};
use crate::models::Registry;
use crate::store::{read_model, write_model};
use crate::stream::{
    CheckpointDir, Ended, Forgetting, Interval, IpcPart, IpcSink, IpcSource, Mode, NoSink, OnError,
    OnlineOptions, PartSink, Pipeline, Source, Span, Stage, StageOptions, WhenFull,
};
use clap::{Args, ValueEnum};
use files::Files;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use watch::Watch;

/// Arguments of `stream`.
#[derive(Debug, Args)]
pub(super) struct Stream {
    /// Files or directories to read, one after the other, files of a directory in name order;
    /// without any, an Arrow IPC stream on standard input.
    #[arg(value_name = "DATA")]
    inputs: Vec<String>,
    /// The model to start with.
    #[arg(long, value_name = "FILE", required_unless_present = "algorithm")]
    model: Option<PathBuf>,
    /// The algorithm to learn from nothing.
    #[arg(long, value_name = "SPEC", conflicts_with = "model")]
    algorithm: Option<String>,
    /// Predict each row with what was known before it, then learn it.
    #[arg(long)]
    learn: bool,
    /// Learn and predict nothing; no rows are written.
    #[arg(long, conflicts_with = "learn")]
    learn_only: bool,
    /// Labels come later: rows without labels wait under this column for a row with labels.
    #[arg(long, value_name = "COLUMN", conflicts_with = "learn_only")]
    key: Option<String>,
    /// How many rows may wait for labels.
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    pending: usize,
    /// What happens when more rows would wait.
    #[arg(long, value_enum, default_value = "oldest")]
    when_full: Full,
    /// Derive parameters anew after N learned rows: quicker, but rows are not predicted with all
    /// that was known. By default after every row where the algorithm can, else every 1000.
    #[arg(long, value_name = "N")]
    update_every: Option<u64>,
    /// Weights halve in this many rows, or in this much time (90s, 15m, 6h, 7d) with --time.
    #[arg(long, value_name = "SPAN", conflicts_with = "window")]
    half_life: Option<String>,
    /// Only the last rows count: this many, or of this much time with --time.
    #[arg(long, value_name = "SPAN")]
    window: Option<String>,
    /// The column of event times.
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,
    /// Forget labels that were not seen in N learned rows.
    #[arg(long, value_name = "N")]
    drop_after: Option<u64>,
    /// Add a column `label_scores` with the probability of every label.
    #[arg(long)]
    scores: bool,
    /// Write checkpoints to this directory, and go on from the newest when started again.
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,
    /// Write a checkpoint every so many rows, or after so much time (10s, 5m).
    #[arg(long, default_value = "100000", value_name = "N|TIME")]
    checkpoint_every: String,
    /// How many checkpoints are kept.
    #[arg(long, default_value_t = 3, value_name = "N")]
    keep: usize,
    /// Write part files to this directory, each row exactly once; needs --checkpoint. Standard
    /// output, the default, may get rows again after a restart.
    #[arg(short, long, value_name = "DIR", requires = "checkpoint")]
    output: Option<PathBuf>,
    /// The format of part files.
    #[arg(long, value_enum, default_value = "parquet")]
    parts: PartFormat,
    /// Write the model to this file at the end.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Report every so many rows, or after so much time, and at the end.
    #[arg(long, value_name = "N|TIME")]
    report_every: Option<String>,
    /// Write reports to this file, one JSON object a line, instead of standard error.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The rows that windowed measures look back on.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    report_window: u64,
    /// Wait for new files in the directories.
    #[arg(long, requires = "inputs")]
    watch: bool,
    /// Take the model file anew when it changes.
    #[arg(long, requires = "model")]
    reload: bool,
    /// What to do with a batch that cannot be read or learned: stop, skip, or divert FILE (an Arrow
    /// IPC stream; divert=FILE is the same).
    #[arg(long, default_value = "stop", value_name = "ACTION")]
    on_error: String,
    #[command(flatten)]
    columns: ColumnOptions,
    #[command(flatten)]
    labels: LabelOptions,
}

/// `--when-full`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Full {
    /// Give up the row that has waited longest.
    Oldest,
    /// Do not let the new row wait.
    Newest,
    /// Stop with an error.
    Stop,
}

/// `--parts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PartFormat {
    /// Parquet.
    Parquet,
    /// Arrow IPC files.
    Arrow,
}

impl Stream {
    pub(super) fn run(&self) -> Result<()> {
        let registry = Registry::default();
        let stop = Arc::new(AtomicBool::new(false));
        signals::stop_in_order(&stop)?;
        let source = self.source(&stop)?;
        let stage = self.stage(&registry)?;
        let digest = stage.model_digest().map(str::to_string);
        let interval = parse_interval(&self.checkpoint_every)?;
        let checkpoints = match &self.checkpoint {
            Some(dir) => Some((CheckpointDir::try_new(dir, self.keep)?, interval)),
            None => None,
        };
        let mut pipeline = Pipeline {
            stage,
            on_error: self.on_error()?,
            checkpoints,
            settings: self.settings(digest.as_deref()),
            report_every: self.report_every.as_deref().map(parse_interval).transpose()?,
            stop,
        };
        let reload = self.model.as_deref().filter(|_| self.reload);
        let columns = self.columns.clone();
        let is_key = self.key.as_deref() == Some(super::columns::ID);
        let of_columns = move |schema: &_| columns.note(schema).filter(|_| !is_key);
        let lines = self.report_every.is_some();
        let of_columns = Box::new(of_columns);
        let mut watch = Watch::try_new(self.report.as_deref(), lines, reload, of_columns)?;
        let ended = match &self.output {
            _ if self.learn_only => pipeline.run(&registry, source, NoSink, &mut watch),
            Some(dir) => {
                let sink = match self.parts {
                    PartFormat::Parquet => PartSink::try_new(dir, "parquet", parquet::start),
                    PartFormat::Arrow => PartSink::try_new(dir, "arrow", IpcPart::start),
                };
                pipeline.run(&registry, source, sink?, &mut watch)
            }
            None => {
                let sink = IpcSink::new(BufWriter::with_capacity(1 << 16, std::io::stdout()));
                pipeline.run(&registry, source, sink, &mut watch)
            }
        };
        watch.clear();
        let ended = ended?;
        if let Some(path) = &self.save {
            write_model(path, &*pipeline.stage.model()?)?;
        }
        watch.finish(&pipeline.stage, ended != Ended::OutputClosed, pipeline.stage.update_every());
        Ok(())
    }

    /// What a checkpoint depends on besides the stage. What is done with batches that are refused may
    /// change: it is the way on after one that stops the work.
    fn settings(&self, digest: Option<&str>) -> Value {
        // A model that only answers must be the same, unless it is to be taken anew.
        let learns = self.learn || self.learn_only || self.key.is_some();
        json!({
            "inputs": self.inputs,
            "model": self.model,
            "model digest": digest.filter(|_| !learns && !self.reload),
            "output": self.output,
            "parts": format!("{:?}", self.parts),
            "empty-labels": format!("{:?}", self.labels.empty_labels),
            "labels-xml": self.columns.labels_xml,
        })
    }

    fn source(&self, stop: &Arc<AtomicBool>) -> Result<Box<dyn Source>> {
        if self.inputs.is_empty() || self.inputs == ["-"] {
            return Ok(Box::new(IpcSource::new(std::io::stdin())));
        }
        // With a key, an empty field of a CSV file is a row whose labels come later.
        let empty = self.labels.empty_labels == EmptyLabels::None && self.key.is_none();
        Ok(Box::new(Files::try_new(
            &self.inputs,
            self.columns.files(),
            self.columns.single().filter(|_| empty),
            self.watch,
            Arc::clone(stop),
        )?))
    }

    fn stage(&self, registry: &Registry) -> Result<Stage> {
        let options = self.options()?;
        match (&self.model, &self.algorithm) {
            (Some(path), _) => Stage::from_model(Arc::new(read_model(path, registry)?), options),
            (None, Some(spec)) => Stage::try_new(registry, spec, options),
            (None, None) => Err(Error::usage("give --model or --algorithm")),
        }
    }

    fn options(&self) -> Result<StageOptions> {
        let mode = match &self.key {
            Some(key) => Mode::Delayed {
                key: key.clone(),
                most: self.pending,
                when_full: match self.when_full {
                    Full::Oldest => WhenFull::DropOldest,
                    Full::Newest => WhenFull::DropNewest,
                    Full::Stop => WhenFull::Stop,
                },
            },
            None if self.learn => Mode::TestThenTrain,
            None if self.learn_only => Mode::Learn,
            None => Mode::Score,
        };
        let span = |text: &String| parse_span(text, self.time.is_some());
        let forgetting = match (&self.half_life, &self.window) {
            (Some(text), _) => Forgetting::Decay { half_life: span(text)? },
            (None, Some(text)) => Forgetting::Window { length: span(text)? },
            (None, None) => Forgetting::Never,
        };
        let mut exclude = self.columns.exclude.clone();
        if self.columns.features.is_empty() {
            exclude.push(super::columns::ID.to_string());
        }
        Ok(StageOptions {
            mode,
            labels: self.columns.labels.clone(),
            separator: self.labels.separator.clone(),
            features: self.columns.features.clone(),
            exclude,
            time: self.time.clone(),
            learning: OnlineOptions {
                update_every: self.update_every,
                forgetting,
                scores: self.scores,
                drop_after: self.drop_after,
            },
            report_window: self.report_window,
        })
    }

    fn on_error(&self) -> Result<OnError> {
        match self.on_error.as_str() {
            "stop" => Ok(OnError::Stop),
            "skip" => Ok(OnError::Skip),
            other => match other.strip_prefix("divert=") {
                Some(path) if !path.is_empty() => {
                    Ok(OnError::Divert(watch::divert(Path::new(path))?))
                }
                _ => Err(Error::usage(format!(
                    "`--on-error {other}`: write stop, skip or divert FILE"
                ))),
            },
        }
    }
}

/// Arguments in which `--on-error divert FILE` is one value.
pub(super) fn joined(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::new();
    for arg in args {
        match &mut out[..] {
            [.., option, action] if option == "--on-error" && action == "divert" => {
                action.push("=");
                action.push(arg);
            }
            _ => out.push(arg),
        }
    }
    out
}

/// A number and the unit of time after it, in seconds; no unit is no time.
fn parse_time(text: &str) -> Option<(f64, Option<f64>)> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: f64 = digits.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0)?;
    let unit = match &text[digits.len()..] {
        "" => None,
        "ms" => Some(1e-3),
        "s" => Some(1.0),
        "m" => Some(60.0),
        "h" => Some(3600.0),
        "d" => Some(86_400.0),
        _ => return None,
    };
    Some((number, unit))
}

fn parse_interval(text: &str) -> Result<Interval> {
    match parse_time(text) {
        Some((number, Some(unit))) => Ok(Interval::Time(Duration::from_secs_f64(number * unit))),
        Some((number, None)) if number.fract() == 0.0 => Ok(Interval::Rows(number as u64)),
        _ => Err(Error::usage(format!(
            "`{text}` is no number of rows (100000) and no time (10s, 5m)"
        ))),
    }
}

/// A number of rows; with a time column a time in microseconds, or a number in the column's unit.
fn parse_span(text: &str, with_time: bool) -> Result<Span> {
    match (parse_time(text), with_time) {
        (Some((number, Some(unit))), true) => Ok(Span::Time((number * unit * 1e6) as i64)),
        (Some((number, None)), true) => Ok(Span::Time(number as i64)),
        (Some((number, None)), false) if number.fract() == 0.0 => Ok(Span::Rows(number as u64)),
        (Some((_, Some(_))), false) => Err(Error::usage(format!(
            "`{text}` is a time: name the column of event times with --time"
        ))),
        _ => Err(Error::usage(format!(
            "`{text}` is no number of rows (10000) and no time (90s, 6h, 7d)"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_diverted_batches_belongs_to_its_option() {
        let joined = |line: &str| joined(line.split(' ').map(OsString::from)).join(" ".as_ref());
        assert_eq!(joined("stream --on-error divert a b"), "stream --on-error divert=a b");
        for same in ["stream --on-error skip a b", "stream --on-error divert=a b", "sql divert a"] {
            assert_eq!(joined(same), same);
        }
    }

    #[test]
    fn spans_are_rows_or_time() {
        assert_eq!(parse_span("10000", false).ok(), Some(Span::Rows(10_000)));
        assert_eq!(parse_span("90s", true).ok(), Some(Span::Time(90_000_000)));
        assert_eq!(parse_span("7d", true).ok(), Some(Span::Time(604_800_000_000)));
        assert_eq!(parse_span("300", true).ok(), Some(Span::Time(300)));
        assert!(parse_span("6h", false).unwrap_err().to_string().contains("--time"));
        assert!(parse_span("six", false).is_err() && parse_span("-1", false).is_err());
        assert_eq!(parse_interval("5m").ok(), Some(Interval::Time(Duration::from_secs(300))));
        assert_eq!(parse_interval("100").ok(), Some(Interval::Rows(100)));
        assert!(parse_interval("1.5").is_err());
    }
}
