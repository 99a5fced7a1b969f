//! What is shown, reported and reloaded while a stream runs.

use crate::error::{Error, Result};
use crate::models::Registry;
use crate::store::read_model;
use crate::stream::{Divert, RunningReport, Stage, Watcher};
use arrow::array::RecordBatch;
use arrow::ipc::writer::StreamWriter;
use indicatif::ProgressBar;
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How often the model file is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How often the terminal is written to.
const SHOW: Duration = Duration::from_millis(250);

/// Reports to a file, to standard error, or alive on a terminal.
pub(super) struct Watch {
    start: Instant,
    file: Option<File>,
    /// Whether reports are asked for on standard error.
    lines: bool,
    bar: Option<ProgressBar>,
    shown: Duration,
    reload: Option<(PathBuf, Option<SystemTime>)>,
    looked: Duration,
}

impl Watch {
    pub(super) fn try_new(
        report: Option<&Path>,
        lines: bool,
        reload: Option<&Path>,
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
            bar: alive.then(|| super::super::output::bar("streaming", None)),
            shown: Duration::ZERO,
            reload: reload.map(|path| (path.to_path_buf(), changed(path))),
            looked: Duration::ZERO,
        })
    }

    fn take_model(&mut self, stage: &Stage) -> Result<()> {
        let now = self.start.elapsed();
        let Some((path, known)) = &mut self.reload else { return Ok(()) };
        if now < self.looked + LOOK {
            return Ok(());
        }
        self.looked = now;
        let at = changed(path);
        if at.is_none() || at == *known {
            return Ok(());
        }
        match read_model(path, &Registry::default()) {
            Ok(model) => {
                stage.handle().swap(Arc::new(model));
                *known = at;
                let path = path.display().to_string();
                self.note(&format!("took the new model `{path}`"));
            }
            // It may be in the middle of being written: the old one stays until it is whole.
            Err(error) => {
                *known = at;
                self.note(&format!("the model stays as it is: {error}"));
            }
        }
        Ok(())
    }

    fn show(&mut self, stage: &Stage) {
        let now = self.start.elapsed();
        let Some(bar) = &self.bar else { return };
        if now < self.shown + SHOW {
            return;
        }
        self.shown = now;
        bar.set_position(stage.counts().rows);
        let value = |values: Vec<(crate::metrics::Metric, f64)>| {
            let jaccard = values.into_iter().find(|v| v.0 == crate::metrics::Metric::Jaccard);
            jaccard.map_or("-".to_string(), |v| format!("{:.3}", v.1))
        };
        let report = stage.report();
        let drifted = report.labels().iter().filter(|l| l.drifted_at.is_some()).count();
        bar.set_message(format!(
            "learned {}, jaccard {} (all {}), labels drifted {drifted}, rows",
            stage.learned(),
            value(report.windowed()),
            value(report.cumulative()),
        ));
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
        let seconds = super::super::output::seconds(self.start.elapsed());
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
        eprintln!("{text}");
    }
}

fn changed(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|m| m.modified()).ok()
}

impl Watcher for Watch {
    fn now(&mut self) -> Duration {
        self.start.elapsed()
    }

    fn between(&mut self, stage: &mut Stage) -> Result<()> {
        self.take_model(stage)?;
        self.show(stage);
        Ok(())
    }

    fn report(&mut self, stage: &Stage, _report: &RunningReport) -> Result<()> {
        let line = stage.report_json();
        match &mut self.file {
            Some(file) => writeln!(file, "{line}").map_err(|e| Error::io("the report", e)),
            None => {
                if self.lines {
                    eprintln!("{line}");
                }
                Ok(())
            }
        }
    }

    fn note(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("note: {text}")),
            None => eprintln!("note: {text}"),
        }
    }
}

/// Writes refused batches to `path` as an Arrow IPC stream, with the reason on standard error.
pub(super) fn divert(path: &Path) -> Result<Divert> {
    let name = format!("diverted batches `{}`", path.display());
    let file = File::create(path).map_err(|e| Error::io(&name, e))?;
    let mut file = Some(file);
    let mut schema = None;
    let mut writer: Option<StreamWriter<BufWriter<File>>> = None;
    Ok(Box::new(move |batch: &RecordBatch, error: &Error| {
        eprintln!("note: diverted: {error}");
        if let Some(file) = file.take() {
            writer = Some(StreamWriter::try_new(BufWriter::new(file), &batch.schema())?);
            schema = Some(batch.schema());
        }
        match &mut writer {
            Some(writer) if schema.as_ref() == Some(&batch.schema()) => {
                writer.write(batch)?;
                Ok(writer.flush()?)
            }
            // A stream of batches has one schema.
            _ => {
                eprintln!(
                    "note: the batch has other columns than those diverted before: not written"
                );
                Ok(())
            }
        }
    }))
}
