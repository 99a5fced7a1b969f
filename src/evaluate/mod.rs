//! Honest experiments: folds, hold-outs, and several algorithms side by side.
//!
//! Everything that is fitted is fitted on training rows alone; a test row meets a finished model.

mod dataset;
mod experiment;
mod protocol;

pub use dataset::Dataset;
pub use experiment::{Experiment, Outcome, Summary};
pub use protocol::{Protocol, Split};
