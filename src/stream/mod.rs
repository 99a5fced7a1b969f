//! Learning and scoring without an end: models over streams of record batches.
//!
//! | type | what it does |
//! |---|---|
//! | [`OnlineLearner`] | test-then-train: predicts each row with what was known before it, then learns it |
//! | [`Forgetting`] | what of the past is kept: everything, a fading share, or a window |
//! | [`Stage`] | a model around record batches: score, learn, test-then-train, delayed labels |
//! | [`StageStream`] | a stage as a stream over any stream of record batches |
//! | [`RunningReport`] | measures of all rows, of the last ones, and fading; drift by label |
//! | [`Checkpoint`] | all of that at one moment, in one file |
//! | [`Pipeline`] | source, stage and sink on threads of their own, with checkpoints |
//!
//! Nothing here knows DataFusion, a clock or a runtime.

mod adwin;
mod answers;
mod batches;
mod checkpoint;
mod delayed;
mod forgetting;
mod framed;
mod layout;
mod memory;
mod online;
mod pending;
mod pipeline;
mod report;
mod report_form;
mod sink;
mod source;
mod stage;
mod state;
#[cfg(test)]
mod tests;

pub use adwin::{Adwin, Change};
pub use answers::Answers;
pub use batches::{Divert, OnError, StageStream};
pub use checkpoint::{Checkpoint, CheckpointDir};
pub use forgetting::{Forgetting, Span};
pub(crate) use framed::Framed;
pub use online::{OnlineLearner, OnlineOptions};
pub use pending::WhenFull;
pub use pipeline::{Ended, Interval, Pipeline, Watcher};
pub use report::{LabelLine, RunningReport};
pub use sink::{IpcPart, IpcSink, NoSink, PartSink, PartWriter, Sink};
pub use source::{IpcSource, Source, Sourced};
pub use stage::{Counts, Mode, ModelHandle, PREDICTED, SCORES, Stage, StageOptions, VERSION};
pub use state::check_settings;
