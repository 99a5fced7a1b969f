//! Learning and scoring without an end: models over streams of record batches.
//!
//! | type | what it does |
//! |---|---|
//! | [`OnlineLearner`] | test-then-train: predicts each row with what was known before it, then learns it |
//! | [`Forgetting`] | what of the past is kept: everything, a fading share, or a window |
//!
//! Nothing here knows DataFusion.

mod forgetting;
mod memory;
mod online;
#[cfg(test)]
mod tests;

pub use forgetting::{Forgetting, Span};
pub use online::{Answers, OnlineLearner, OnlineOptions};
