//! How good predicted label sets and scores are.
//!
//! A metric is derived from a statistic, so evaluation merges like training: every partition,
//! fold or window observes its own rows into a [`SetMetrics`] (label sets) or a [`RankMetrics`]
//! (scores), the states are merged in any order, and the values are read at the end.
//!
//! | file | measures | reads |
//! |---|---|---|
//! | `examples` | one ratio per row, averaged over rows | label sets |
//! | `labels` | one contingency table per label, pooled (micro) or averaged over labels (macro) | label sets |
//! | `ranking` | the order of all labels by score, averaged over rows | scores |
//!
//! [`Metric`] is the list of all of them: name, help and direction come from there.
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
//! In rankings labels may have equal scores, and a row may have no true label:
//!
//! | measure | a tie | no label is true |
//! |---|---|---|
//! | ranking loss | is the wrong order | 0 |
//! | coverage, average precision | the label stands last among its equals | 0 and 1 |
//! | precision at k, one-error, NDCG at k | the mean over all orders of the equals | 0, 1 and 0 |
//!
//! These are the conventions of scikit-learn where it has the measure (`label_ranking_loss`,
//! `coverage_error`, `label_ranking_average_precision_score`, `ndcg_score`), but that coverage counts
//! steps from the first place: it is `coverage_error` less 1 in every row with a true label.
//! Precision at k divides by k, however few labels there are; one-error is 1 less precision at 1.
//! A label without a score stands below all that have one.
//!
//! # Nulls
//!
//! A row whose true set is unknown is not observed at all; an empty set is a set.
//!
//! # References
//!
//! M.-L. Zhang and Z.-H. Zhou, "A Review on Multi-Label Learning Algorithms", IEEE Transactions on
//! Knowledge and Data Engineering 26(8), 2014, section 2.2. K. Jarvelin and J.
//! Kekalainen, "Cumulated gain-based evaluation of IR techniques", ACM Transactions on Information
//! Systems 20(4), 2002. F. McSherry and M. Najork, "Computing Information Retrieval Performance
//! Measures Efficiently in the Presence of Tied Scores", ECIR 2008.

mod examples;
mod labels;
mod metric;
mod rank_metrics;
mod ranking;
mod ratio_sum;
mod set_metrics;
#[cfg(test)]
mod tests;

pub use labels::LabelOutcome;
pub use metric::{Goal, Metric};
pub use rank_metrics::RankMetrics;
pub use set_metrics::SetMetrics;
