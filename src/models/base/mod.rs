//! Base learners: binary problems that every reduction to them shares.
//!
//! | base | what it is | learns from |
//! |---|---|---|
//! | `logistic` | logistic regression with an L2 penalty | rows |
//! | `svm` | linear support vector machine: squared hinge, L2 penalty, Platt's probabilities | rows |
//! | `naive_bayes` | naive Bayes of a label against its absence | counts |
//!
//! # How they fit together
//!
//! A [`Task`] is one label to be told from features and from other labels (its parents). All tasks
//! of a model share rows and columns. What comes out is the same for every base: log-odds that are
//! sums over features and parents ([`LogOdds`]). So scoring all tasks of a batch is one matrix
//! product, and a parent only shifts a sum.

mod calibrate;
mod counts;
mod design;
mod linear;
mod loss;
mod newton;
mod params;
mod prepare;
mod scores;
mod split;

pub(super) use counts::BinaryCounts;
pub(super) use linear::{LinearBase, Sample, Task};
pub(super) use params::{BASES, Base};
pub(super) use prepare::Prepare;
pub(super) use scores::LinearScores;
pub(super) use split::{Purpose, bag_weight, held_out};

use crate::data::{LabelId, Rows};
use std::fmt;
use std::ops::Range;

/// Fitted tasks over the same features.
pub(super) trait LogOdds: fmt::Debug + Send + Sync {
    /// How many tasks there are.
    fn tasks(&self) -> usize;

    /// Writes the log-odds of every task for some rows into `out`, row by row, as if no parent were
    /// on.
    fn write(&self, rows: &Rows, range: Range<usize>, out: &mut Vec<f64>);

    /// The parents of `task` and how much each, when it is on, adds to the log-odds.
    fn parents(&self, task: usize) -> Vec<(LabelId, f64)>;
}
