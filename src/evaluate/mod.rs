//! Honest experiments: folds, hold-outs, and several algorithms side by side; and what a data set is
//! like.
//!
//! Everything that is fitted is fitted on training rows alone; a test row meets a finished model.

mod dataset;
mod description;
mod experiment;
mod protocol;
mod stratify;

pub use dataset::Dataset;
pub use description::{DESCRIBE, Description, Frequent};
pub use experiment::{Experiment, Outcome, Summary};
pub use protocol::{Protocol, Split};
pub use stratify::Stratify;
