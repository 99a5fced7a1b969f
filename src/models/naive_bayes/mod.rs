//! NaiBX: naive Bayes for label sets.
//!
//! # When to use it
//!
//! One pass over any amount of data, exact merging and forgetting, scoring at the speed of a matrix
//! product, many labels that occur together. It assumes that features are independent given a
//! label; where they are not, its probabilities are too sure of themselves, and a discriminative
//! method ranks better.
//!
//! # Definition
//!
//! Size first (naive Bayes over sizes), then labels one by one; label `y` number `k` maximises
//!
//! ```text
//! ln P(y) + ln P(m | y) + sum_i ln p(x_i | y) + sum_(j<k) ln P(y_j | y)            (Eq. 9)
//! ```
//!
//! with `P(y_j | y) = (N_yyj + s) / (N_y + s (L - 1))` (Eq. 11) and sizes smoothed over the sizes
//! seen. Event models by the kind of feature:
//!
//! | kind | `ln p(x given g)` |
//! |---|---|
//! | numeric | Gaussian; a group seen once or without variance uses the variance over all rows |
//! | binary | Bernoulli, absent features count too |
//! | count | multinomial, normalised by the total count in the group |
//! | category | `(N_gv + s) / (N_g + s K)` |
//!
//! # Nulls
//!
//! A missing value (NULL or `NaN`) says nothing: the terms of its feature are left out for that row,
//! and the statistics of the feature do not count it. A row with no value at all is decided by the
//! priors. Features and categories that were never seen are left out too.
//!
//! # Edges
//!
//! A value that is more than ten thousand standard deviations away counts as that far, so scores
//! stay finite. Ties go to the label that is first in name order, and to the smaller size.
//!
//! # Scores
//!
//! Eq. 9 normalises over labels and is no probability of a label. Scores are the two-class
//! posterior `P(y | x)`, with the statistics of the rows without `y` (all rows less those with it).
//!
//! # Cost
//!
//! Learning: the features of a row times its labels. Predicting: one matrix product (dense) or the
//! entries of the row times the groups that know them (sparse), then O(m L) for the cascade. The most
//! probable sets (`predict_sets`, `sets` above 1) are looked for with a beam of width `b`, the larger of
//! `sets`, what is asked for and 20: O(b m L) for each size that may still win, O(b L sum_m m) at worst.
//!
//! On streams of numeric columns its parameters follow every row (`follow`).
//!
//! # References
//!
//! L. Mossina, E. Rachelson: Naive Bayes Classification for Subset Selection.

mod beam;
mod cascade;
mod codec;
mod fit;
mod follow;
mod insight;
mod params;
mod predict;
mod size;
#[cfg(test)]
mod tests;

use super::{Algorithm, Capabilities};

/// NaiBX for the registry.
pub(super) const ALGORITHM: Algorithm = Algorithm {
    name: "naibx",
    summary: "naive Bayes for label sets: size first, then labels one by one",
    parameters: params::PARAMETERS,
    capabilities: |_| Capabilities { forgets: true, decays: true, ranks_sets: true, reopens: true },
    reference: "Mossina, Rachelson: Naive Bayes Classification for Subset Selection",
    features: params::features,
    start: fit::start,
    resume: codec::resume,
};
