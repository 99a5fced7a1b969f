//! What is shown, reported and reloaded while a stream runs.

use crate::cli::output::{self, tell};
use crate::error::{Error, Result};
use crate::metrics::Metric;
use crate::models::Registry;
use crate::store::{digest_of, from_bytes};
use crate::stream::{Divert, RunningReport, Stage, Watcher};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::StreamWriter;
use indicatif::{HumanCount, ProgressBar};
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How often the model file is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// The most labels whose drift is named in the live view.
const NAMED: usize = 4;
/// How often the terminal is written to.
const SHOW: Duration = Duration::from_millis(250);

/// Reports to a file, to standard error, or alive on a terminal.
pub(super) struct Watch {
    start: Instant,
    file: Option<File>,
    /// Whether reports are asked for on standard error.
    lines: bool,
    bar: Option<ProgressBar>,
    /// When something was last shown, and the rows there were then.
    shown: Duration,
    shown_rows: u64,
    reload: Option<(PathBuf, Option<Stamp>)>,
    looked: Option<Duration>,
    /// What is said of the columns once they are known.
    of_columns: Option<OfColumns>,
}

/// When a file was written, and how long it is.
type Stamp = (SystemTime, u64);
/// A sentence about columns, if there is one.
type OfColumns = Box<dyn Fn(&SchemaRef) -> Option<String>>;

impl Watch {
    pub(super) fn try_new(
        report: Option<&Path>,
        lines: bool,
        reload: Option<&Path>,
        of_columns: OfColumns,
    ) -> Result<Self> {
        let file = match report {
            None => None,
            Some(path) => {
                let opened = File::options().create(true).append(true).open(path);
                Some(opened.map_err(|e| Error::io(format!("report `{}`", path.display()), e))?)
            }
        };
        let alive = std::io::stderr().is_terminal() && (file.is_some() || !lines);
        Ok(Watch {
            start: Instant::now(),
            file,
            lines,
            bar: alive.then(|| output::lines("waiting for rows")),
            shown: Duration::ZERO,
            shown_rows: 0,
            reload: reload.map(|path| (path.to_path_buf(), None)),
            looked: None,
            of_columns: Some(of_columns),
        })
    }

    /// Hands the model file over when it is another one than the stage took last. At the beginning
    /// that is one that changed while nothing ran, or that was taken just before a crash.
    fn take_model(&mut self, stage: &Stage) {
        let now = self.start.elapsed();
        let Some((path, known)) = &mut self.reload else { return };
        if self.looked.is_some_and(|looked| now < looked + LOOK) {
            return;
        }
        self.looked = Some(now);
        let at = changed(path);
        if at.is_none() || at == *known {
            return;
        }
        *known = at;
        let read = std::fs::read(&*path).map_err(|e| Error::io("it cannot be read", e));
        let model = read.and_then(|bytes| match digest_of(&bytes)? {
            same if stage.model_digest() == Some(same) => Ok(None),
            _ => from_bytes(&bytes, &Registry::default()).map(Some),
        });
        match model {
            Ok(None) => {}
            Ok(Some(model)) => stage.handle().swap(Arc::new(model)),
            // It may be in the middle of being written: the old one stays until it is whole.
            Err(error) => {
                let text = format!("the model stays as it is: `{}`: {error}", path.display());
                self.note(&text);
            }
        }
    }

    fn show(&mut self, stage: &Stage) {
        let now = self.start.elapsed();
        let Some(bar) = &self.bar else { return };
        if now < self.shown + SHOW {
            return;
        }
        let (rows, before) = (stage.counts().rows, self.shown_rows);
        let speed = (rows - before.min(rows)) as f64 / (now - self.shown).as_secs_f64();
        (self.shown, self.shown_rows) = (now, rows);
        bar.set_message(view(stage, speed));
    }

    /// Takes the live view away.
    pub(super) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Says what was done.
    pub(super) fn finish(&mut self, stage: &Stage, aloud: bool, every: Option<u64>) {
        if !aloud {
            return;
        }
        let counts = stage.counts();
        let seconds = output::seconds(self.start.elapsed());
        let mut text = format!("{} rows in {seconds}, {} learned", counts.rows, stage.learned());
        if let Some(every) = every.filter(|every| *every > 1) {
            text.push_str(&format!(", parameters derived every {every} rows"));
        }
        if counts.refused_batches > 0 {
            text.push_str(&format!(
                ", {} batches ({} rows) refused",
                counts.refused_batches, counts.refused_rows
            ));
        }
        tell(&text);
    }
}

/// The live view: what was done, how good the answers are, which labels drift.
fn view(stage: &Stage, speed: f64) -> String {
    let (report, counts, (waiting, given_up)) = (stage.report(), stage.counts(), stage.waiting());
    let mut text = format!(
        "{} rows ({} a second), {} learned",
        HumanCount(counts.rows),
        HumanCount(speed as u64),
        HumanCount(stage.learned())
    );
    if waiting > 0 || given_up > 0 {
        text.push_str(&format!(
            ", {} wait for labels, {given_up} given up",
            HumanCount(waiting as u64)
        ));
    }
    if counts.refused_batches > 0 {
        text.push_str(&format!(", {} batches refused", counts.refused_batches));
    }
    if report.rows() == 0 {
        return text;
    }
    let line = |name: &str, values: Vec<(Metric, f64)>| {
        let value = |m: Metric| values.iter().find(|v| v.0 == m).map_or(f64::NAN, |v| v.1);
        format!(
            "\n{name:<12} jaccard {:.3}  f1 {:.3}  exact match {:.3}  hamming {:.3}",
            value(Metric::Jaccard),
            value(Metric::F1),
            value(Metric::ExactMatch),
            value(Metric::HammingScore)
        )
    };
    text.push_str(&line("last rows", report.windowed()));
    text.push_str(&line("all rows", report.cumulative()));
    let drifted = report.drifted();
    if !drifted.is_empty() {
        let named =
            drifted.iter().take(NAMED).map(|(at, l)| format!("{l} (row {})", HumanCount(*at)));
        text.push_str(&format!("\ndrifted      {}", named.collect::<Vec<_>>().join(", ")));
        if drifted.len() > NAMED {
            text.push_str(&format!(" and {} more", drifted.len() - NAMED));
        }
    }
    text
}

fn changed(path: &Path) -> Option<Stamp> {
    let known = std::fs::metadata(path).ok()?;
    Some((known.modified().ok()?, known.len()))
}

impl Watcher for Watch {
    fn now(&mut self) -> Duration {
        self.start.elapsed()
    }

    fn between(&mut self, stage: &mut Stage) -> Result<()> {
        self.take_model(stage);
        if let Some(columns) = stage.columns()
            && let Some(of_columns) = self.of_columns.take()
            && let Some(text) = of_columns(columns)
        {
            self.note(&text);
        }
        self.show(stage);
        Ok(())
    }

    fn report(&mut self, stage: &Stage, _report: &RunningReport) -> Result<()> {
        let line = stage.report_json();
        match &mut self.file {
            Some(file) => writeln!(file, "{line}").map_err(|e| Error::io("the report", e)),
            None => {
                if self.lines {
                    tell(&line.to_string());
                }
                Ok(())
            }
        }
    }

    fn note(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| tell(&format!("note: {text}"))),
            None => tell(&format!("note: {text}")),
        }
    }
}

/// Writes refused batches to `path` as an Arrow IPC stream. What is there already stays: an earlier
/// run may have diverted it, and then, or when columns change, the next file is `NAME-2.EXTENSION`.
pub(super) fn divert(path: &Path) -> Result<Divert> {
    let path = path.to_path_buf();
    // Whether it can be written is found out before the first batch is refused.
    open(&path)?;
    let mut number = 1;
    let mut writer: Option<(SchemaRef, StreamWriter<BufWriter<File>>)> = None;
    Ok(Box::new(move |batch: &RecordBatch, _: &Error| {
        let schema = batch.schema();
        if writer.as_ref().is_none_or(|(known, _)| *known != schema) {
            let mut file = open(&numbered(&path, number))?;
            while file.metadata().is_ok_and(|m| m.len() > 0) {
                number += 1;
                file = open(&numbered(&path, number))?;
            }
            let started = StreamWriter::try_new(BufWriter::new(file), &schema)?;
            writer = Some((schema, started));
        }
        if let Some((_, writer)) = &mut writer {
            writer.write(batch)?;
            writer.flush()?;
        }
        Ok(())
    }))
}

fn open(path: &Path) -> Result<File> {
    let opened = File::options().create(true).append(true).open(path);
    opened.map_err(|e| Error::io(format!("diverted batches `{}`", path.display()), e))
}

/// `bad.arrows`, `bad-2.arrows`, ...
fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return path.to_path_buf();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|e| format!(".{}", e.to_string_lossy()));
    path.with_file_name(format!("{stem}-{number}{}", extension.unwrap_or_default()))
}
