//! How good predicted label sets are.
//!
//! A metric is derived from a statistic, so evaluation merges like training: every partition,
//! fold or window observes its own rows into a [`SetMetrics`], the states are merged in any order,
//! and the values are read at the end.
//!
//! | file | measures | reads |
//! |---|---|---|
//! | `examples` | one ratio per row, averaged over rows | label sets |
//! | `labels` | one contingency table per label, pooled (micro) or averaged over labels (macro) | label sets |
//!
//! [`Metric`] is the list of all of them: name, help and direction come from there. Measures of
//! rankings read scores and will be a family and a statistic of their own beside these.
//!
//! # Notation
//!
//! For one row T is the true set and P the predicted one. Over all rows TP, FP and FN count, for
//! one label, the rows where it is true and predicted, only predicted, and only true. n is the
//! number of rows and L the number of labels.
//!
//! # Conventions
//!
//! A ratio may be 0/0:
//!
//! - In a row where nothing is true and nothing predicted every example measure is 1. In any
//!   other row precision with nothing predicted and recall with nothing true are 0.
//! - Micro measures follow the same rule for all rows together: 1 when nothing is true and
//!   nothing predicted in any row, else 0/0 is 0.
//! - In macro measures 0/0 of a label is 0, so a label that is never true and never predicted
//!   counts 0.
//! - Without any label (L = 0) there is nothing to get wrong: Hamming and macro measures are 1.
//!
//! # Nulls
//!
//! A row whose true set is unknown is not observed at all; an empty set is a set.
//!
//! # References
//!
//! M.-L. Zhang and Z.-H. Zhou, "A Review on Multi-Label Learning Algorithms", IEEE Transactions on
//! Knowledge and Data Engineering 26(8), 2014, section 2.2.

mod examples;
mod labels;
mod metric;
mod set_metrics;
#[cfg(test)]
mod tests;

pub use labels::LabelOutcome;
pub use metric::{Goal, Metric};
pub use set_metrics::SetMetrics;
