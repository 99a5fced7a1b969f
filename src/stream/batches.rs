//! A stage as a stream.

use super::Stage;
use crate::error::{Error, Result};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::Stream;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Takes batches that were refused, with the reason.
pub type Divert = Box<dyn FnMut(&RecordBatch, &Error) -> Result<()> + Send>;

/// What to do with a batch that is refused.
#[derive(Default)]
pub enum OnError {
    /// End with the error.
    #[default]
    Stop,
    /// Leave it out; [`Counts`](super::Counts) tell how many were.
    Skip,
    /// Leave it out and hand it over.
    Divert(Divert),
}

impl fmt::Debug for OnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OnError::Stop => "Stop",
            OnError::Skip => "Skip",
            OnError::Divert(_) => "Divert",
        })
    }
}

impl OnError {
    /// What is said of a batch that was refused.
    pub(super) fn done(&self) -> &'static str {
        match self {
            OnError::Divert(_) => "diverted",
            _ => "passed over",
        }
    }

    /// Does with `batch`, which a stage refused with `error`, what is to be done.
    ///
    /// # Errors
    ///
    /// `error`, if that is to stop or is no fault of the batch; a failed write.
    pub fn refuse(&mut self, batch: &RecordBatch, error: Error) -> Result<()> {
        match self {
            _ if !error.kind().is_user_error() => Err(error),
            OnError::Stop => Err(error),
            OnError::Skip => Ok(()),
            OnError::Divert(divert) => divert(batch, &error),
        }
    }
}

/// A stream of record batches with the answers of a stage.
///
/// Batches are worked on where the stream is polled; in a service, poll it on a task of its own.
/// An error ends the stream.
///
/// # Examples
///
/// ```
/// use futures::{FutureExt, StreamExt, stream};
/// use labelflow::data::generate::{Generator, GeneratorOptions};
/// use labelflow::models::Registry;
/// use labelflow::stream::{Mode, Stage, StageOptions, StageStream};
///
/// let rows = Generator::try_new(GeneratorOptions { rows: 300, ..Default::default() })?;
/// let options = StageOptions { mode: Mode::TestThenTrain, ..StageOptions::default() };
/// let stage = Stage::try_new(&Registry::default(), "naibx", options)?;
/// let mut answers = StageStream::new(stage, stream::iter(rows.batches(100)));
/// let mut rows = 0;
/// while let Some(batch) = answers.next().now_or_never().flatten() {
///     rows += batch?.num_rows();
/// }
/// assert_eq!(rows, 300);
/// assert_eq!(answers.stage().learned(), 300);
/// # Ok::<(), labelflow::Error>(())
/// ```
#[derive(Debug)]
pub struct StageStream<S> {
    stage: Stage,
    input: S,
    on_error: OnError,
    ended: bool,
    schema: Option<SchemaRef>,
}

impl<S> StageStream<S> {
    /// The answers of `stage` to `input`; ends with the first batch that is refused.
    pub fn new(stage: Stage, input: S) -> Self {
        StageStream { stage, input, on_error: OnError::Stop, ended: false, schema: None }
    }

    /// The same for batches that have `columns`: the columns of the answers are then known before the
    /// first batch, as a plan of a query needs them.
    ///
    /// # Errors
    ///
    /// Columns that the stage would refuse.
    pub fn with_columns(stage: Stage, columns: &SchemaRef, input: S) -> Result<Self> {
        let schema = Some(stage.schema(columns)?);
        Ok(StageStream { schema, ..StageStream::new(stage, input) })
    }

    /// The columns of the answers: from the beginning when those of the batches were told, else
    /// after the first batch.
    pub fn schema(&self) -> Option<SchemaRef> {
        let known = || self.stage.columns().and_then(|columns| self.stage.schema(columns).ok());
        self.schema.clone().or_else(known)
    }

    /// The same stream with another way to treat batches that are refused.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// The stage, for its report, its model and its checkpoint between batches.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// The stage, when the stream is no longer needed.
    pub fn into_stage(self) -> Stage {
        self.stage
    }
}

impl<S: Stream<Item = Result<RecordBatch>> + Unpin> Stream for StageStream<S> {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        while !this.ended {
            let done = match ready!(Pin::new(&mut this.input).poll_next(cx)) {
                None => break,
                Some(batch) => batch.and_then(|batch| match this.stage.process(&batch) {
                    Ok(out) => Ok(Some(out)),
                    Err(error) => this.on_error.refuse(&batch, error).map(|()| None),
                }),
            };
            match done {
                Ok(Some(out)) => return Poll::Ready(Some(Ok(out))),
                Ok(None) => {}
                Err(error) => {
                    this.ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        this.ended = true;
        Poll::Ready(None)
    }
}
