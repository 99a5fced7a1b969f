//! Source, stage and sink on threads of their own.
//!
//! Batches are handed over through channels that hold one: when the sink is slow, the stage waits,
//! and then the source. Memory does not depend on the length of the stream.

use super::batches::OnError;
use super::checkpoint::CheckpointDir;
use super::{RunningReport, Sink, Source, Sourced, Stage};
use crate::error::{Error, ErrorKind, Result};
use crate::models::Registry;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Batches that may wait between two threads.
const DEPTH: usize = 1;
/// How long the stage waits for a batch before it looks whether it should stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// How often something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interval {
    /// After so many rows.
    Rows(u64),
    /// After so much time.
    Time(Duration),
}

/// Why a pipeline ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The source has no more batches.
    Exhausted,
    /// It was asked to stop.
    Stopped,
    /// Nobody reads the output any more.
    OutputClosed,
}

/// What goes on beside the work, on the thread of the stage.
pub trait Watcher {
    /// The time since some beginning.
    fn now(&mut self) -> Duration;

    /// Called between batches, and now and then while there are none.
    ///
    /// # Errors
    ///
    /// Ends the pipeline.
    fn between(&mut self, _stage: &mut Stage) -> Result<()> {
        Ok(())
    }

    /// Called when a report is due, and at the end.
    ///
    /// # Errors
    ///
    /// Ends the pipeline.
    fn report(&mut self, _stage: &Stage, _report: &RunningReport) -> Result<()> {
        Ok(())
    }

    /// Something worth saying.
    fn note(&mut self, _text: &str) {}
}

/// A stage between a source and a sink.
pub struct Pipeline {
    /// What works.
    pub stage: Stage,
    /// What to do with a batch that is refused.
    pub on_error: OnError,
    /// Where checkpoints are kept, and how often one is written.
    pub checkpoints: Option<(CheckpointDir, Interval)>,
    /// What else a checkpoint depends on: the source and the sink, by name.
    pub settings: Value,
    /// How often a report is due.
    pub report_every: Option<Interval>,
    /// Set from elsewhere to stop after the batch at hand.
    pub stop: Arc<AtomicBool>,
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipeline").field("stage", &self.stage).finish_non_exhaustive()
    }
}

/// Something that is due every so often.
struct Due {
    every: Option<Interval>,
    rows: u64,
    time: Duration,
}

impl Due {
    fn new(every: Option<Interval>, rows: u64, time: Duration) -> Self {
        Due { every, rows, time }
    }

    /// Whether it is due; the next time is counted from here.
    fn is(&mut self, rows: u64, time: Duration) -> bool {
        let due = match self.every {
            None => false,
            Some(Interval::Rows(every)) => rows / every.max(1) > self.rows / every.max(1),
            Some(Interval::Time(every)) => time >= self.time + every,
        };
        if due {
            (self.rows, self.time) = (rows, time);
        }
        due
    }
}

/// What the stage tells the thread of the sink.
enum Order {
    Write(RecordBatch),
    /// Answer with what [`Sink::prepare`] returns.
    Prepare(SyncSender<u64>),
    Commit,
    /// The stream ended without a row.
    NoRows(SchemaRef),
}

/// What the thread of the source tells the stage.
enum Read {
    Batch(Sourced),
    /// What cannot be read, and whether something comes after it.
    Failed(Error, bool),
    Note(String),
    /// The end, with the columns if they are known.
    End(Option<SchemaRef>),
}

/// The thread of the sink, and the way to it.
struct Output {
    orders: Option<SyncSender<Order>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Pipeline {
    /// Goes on from the newest checkpoint that is whole, if there is one, until the source ends,
    /// the output is closed or it is asked to stop; then writes a last checkpoint.
    ///
    /// # Errors
    ///
    /// What ends the work. The last checkpoint is whole, and a new run goes on from it.
    pub fn run(
        &mut self,
        registry: &Registry,
        mut source: impl Source + 'static,
        mut sink: impl Sink + 'static,
        watcher: &mut dyn Watcher,
    ) -> Result<Ended> {
        let mut number = 0;
        let mut position = Value::Null;
        if let Some((dir, _)) = &self.checkpoints {
            let newest = dir.newest(|text| watcher.note(&text))?;
            if let Some((found, checkpoint)) = newest {
                super::check_settings(&checkpoint.json("pipeline")?, &self.settings)?;
                self.stage.restore(&checkpoint, registry)?;
                position = checkpoint.json("position")?;
                if !position.is_null() {
                    source.resume(&position)?;
                }
                sink.resume(checkpoint.json("sink")?.as_u64().unwrap_or(0))?;
                number = found;
                let rows = self.stage.counts().rows;
                watcher.note(&format!("going on from checkpoint {found}, after {rows} rows"));
            } else {
                sink.start()?;
            }
        }
        let batches = read_ahead(source);
        let mut output = Output::start(sink);
        let ended = self.work(&batches, &mut output, &mut number, &mut position, watcher);
        let closed = match ended {
            Ok(ended) => output.finish().map(|()| ended),
            Err(error) => match output.finish() {
                // The reason why the stage could not hand over its answers.
                Err(cause) if error.kind() == ErrorKind::Internal => Err(cause),
                _ => Err(error),
            },
        };
        if closed.is_ok() {
            self.stage.model_notes().iter().for_each(|note| watcher.note(note));
        }
        match closed {
            Err(error) if is_closed(&error) => Ok(Ended::OutputClosed),
            other => other,
        }
    }

    fn work(
        &mut self,
        batches: &Receiver<Read>,
        output: &mut Output,
        number: &mut u64,
        position: &mut Value,
        watcher: &mut dyn Watcher,
    ) -> Result<Ended> {
        let (rows, now) = (self.rows(), watcher.now());
        let every = self.checkpoints.as_ref().map(|c| c.1);
        let mut checkpoint_due = Due::new(every, rows, now);
        let mut report_due = Due::new(self.report_every, rows, now);
        let mut saved = rows;
        let ended = loop {
            if self.stop.load(Ordering::Relaxed) {
                break Ended::Stopped;
            }
            watcher.between(&mut self.stage)?;
            match batches.recv_timeout(PATIENCE) {
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::internal("the thread that reads has failed"));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Read::Note(text)) => watcher.note(&text),
                Ok(Read::End(columns)) => {
                    if let Some(columns) = columns.filter(|_| self.rows() == 0) {
                        output.send(Order::NoRows(self.stage.schema(&columns)?))?;
                    }
                    break Ended::Exhausted;
                }
                Ok(Read::Failed(error, goes_on)) => {
                    if !goes_on || matches!(self.on_error, OnError::Stop) {
                        return Err(error);
                    }
                    self.stage.counts.refused_batches += 1;
                    watcher.note(&format!("{}: {error}", OnError::Skip.done()));
                }
                Ok(Read::Batch(sourced)) => {
                    let done = self.stage.process(&sourced.batch);
                    self.stage.notes().iter().for_each(|text| watcher.note(text));
                    let out = match done {
                        Ok(out) => Some(out),
                        Err(error) => {
                            let reason = error.to_string();
                            self.on_error.refuse(&sourced.batch, error)?;
                            watcher.note(&format!("{}: {reason}", self.on_error.done()));
                            None
                        }
                    };
                    *position = sourced.position;
                    if let Some(out) = out {
                        output.send(Order::Write(out))?;
                    }
                }
            }
            let (rows, now) = (self.rows(), watcher.now());
            if rows > saved && checkpoint_due.is(rows, now) {
                self.checkpoint(output, number, position)?;
                saved = rows;
            }
            if report_due.is(rows, now) {
                watcher.report(&self.stage, self.stage.report())?;
            }
        };
        if self.rows() > saved {
            self.checkpoint(output, number, position)?;
        }
        watcher.report(&self.stage, self.stage.report())?;
        Ok(ended)
    }

    /// Rows read, refused ones too.
    fn rows(&self) -> u64 {
        self.stage.counts().rows + self.stage.counts().refused_rows
    }

    /// Makes the output durable, writes a checkpoint that says so, makes the output visible.
    fn checkpoint(&self, output: &Output, number: &mut u64, position: &Value) -> Result<()> {
        let Some((dir, _)) = &self.checkpoints else { return Ok(()) };
        let (answer, prepared) = sync_channel(1);
        output.send(Order::Prepare(answer))?;
        let prepared = prepared.recv().map_err(|_| gone())?;
        let mut checkpoint = self.stage.save()?;
        checkpoint.put_json("pipeline", &self.settings);
        checkpoint.put_json("position", position);
        checkpoint.put_json("sink", &prepared.into());
        *number += 1;
        dir.write(*number, &checkpoint)?;
        output.send(Order::Commit)
    }
}

/// Reads on a thread of its own, which ends with the source or when nobody takes its batches.
///
/// It says when the source has ended: a channel that closes without that is a thread that failed.
fn read_ahead(mut source: impl Source + 'static) -> Receiver<Read> {
    let (sender, receiver) = sync_channel(DEPTH);
    std::thread::spawn(move || {
        loop {
            let next = source.next();
            let notes = source.notes();
            let (message, last) = match next {
                Ok(Some(sourced)) => (Read::Batch(sourced), false),
                Ok(None) => (Read::End(source.schema()), true),
                Err(error) => {
                    let goes_on = error.kind().is_user_error() && !source.is_lost();
                    (Read::Failed(error, goes_on), !goes_on)
                }
            };
            let mut messages = notes.into_iter().map(Read::Note).chain([message]);
            if messages.any(|message| sender.send(message).is_err()) || last {
                break;
            }
        }
    });
    receiver
}

impl Output {
    fn start(mut sink: impl Sink + 'static) -> Self {
        let (sender, orders) = sync_channel(DEPTH);
        let thread = std::thread::spawn(move || {
            for order in orders {
                match order {
                    Order::Write(batch) => sink.write(&batch)?,
                    Order::Prepare(answer) => {
                        let prepared = sink.prepare()?;
                        // Nobody waits for the answer when the stage has failed.
                        let _ = answer.send(prepared);
                    }
                    Order::Commit => sink.commit()?,
                    Order::NoRows(columns) => sink.no_rows(&columns)?,
                }
            }
            sink.finish()
        });
        Output { orders: Some(sender), thread: Some(thread) }
    }

    fn send(&self, order: Order) -> Result<()> {
        match &self.orders {
            Some(orders) => orders.send(order).map_err(|_| gone()),
            None => Err(gone()),
        }
    }

    /// Waits until everything is written.
    fn finish(&mut self) -> Result<()> {
        self.orders = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(done)) => done,
            Some(Err(_)) => Err(Error::internal("the thread that writes has failed")),
            None => Ok(()),
        }
    }
}

fn gone() -> Error {
    Error::internal("the output has ended")
}

/// Whether an error says that nobody reads the output.
fn is_closed(error: &Error) -> bool {
    std::error::Error::source(error)
        .and_then(|e| e.downcast_ref::<std::io::Error>())
        .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}
