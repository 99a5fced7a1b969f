//! Lazy learners: the labels of the nearest rows.
//!
//! # When to use them
//!
//! Few assumptions, good results on numbers that are comparable (images, sound, measurements), new
//! rows and labels at any time, exact merging and unlearning row by row. The model is the data: its
//! size and the cost of scoring grow with the stored rows. With very many rows, keep a sample
//! (`keep=sample(100000)`), or the last ones of a stream (`keep=last(10000)`). In high dimensions
//! with many irrelevant features, distances say little.
//!
//! # Definition
//!
//! All ask the `k` nearest stored rows ([`search`] says which those are).
//!
//! | name | predicts |
//! |---|---|
//! | `brknn` | labels that more than half of the neighbours have |
//! | `brknn_a` | the same; if there is none, the most frequent label among the neighbours |
//! | `brknn_b` | the most frequent labels, as many as neighbours have on average (rounded half up) |
//! | `lpknn` | the most frequent label set; of equally frequent ones that of the nearest neighbour |
//! | `mlknn` | labels with `P(y) P(j given y) > P(not y) P(j given not y)`, where `j` neighbours have y |
//!
//! Equally frequent labels go in name order. With `weight=distance`, neighbours count by the inverse
//! of their distance; neighbours at distance zero, if there are any, count alone.
//!
//! ML-kNN estimates, with `s = smoothing`, `P(y) = (s + N_y) / (2 s + N)` and
//! `P(j given y) = (s + c_yj) / (s (k + 1) + N_y)`: of the stored rows that have `y`, `c_yj` have `j`
//! neighbours with it. A row is never its own neighbour; of equal rows the others are. The counts
//! are derived from all rows when training ends and kept with the model, so that they are exact after
//! any merge; in a stream they are as new as the model that scores.
//!
//! Scores are the share of the neighbours that have a label, or ML-kNN's posterior.
//!
//! # Cost
//!
//! Learning keeps the rows. Scoring a row costs one row of a matrix product with the stored rows.
//! ML-kNN searches the neighbours of all stored rows once, when training ends.
//!
//! # References
//!
//! E. Spyromitros, G. Tsoumakas, I. Vlahavas: An Empirical Study of Lazy Multilabel Classification
//! Algorithms. M.-L. Zhang, Z.-H. Zhou: ML-kNN: A Lazy Learning Approach to Multi-Label Learning.

mod codec;
mod fit;
mod insight;
mod params;
mod posterior;
mod predict;
mod search;
#[cfg(test)]
mod tests;
mod votes;

use super::{Algorithm, Capabilities};
use params::Method;

const PAPER: &str = "Spyromitros, Tsoumakas, Vlahavas: An Empirical Study of Lazy Multilabel Classification Algorithms";

/// What all but one of them can do.
const CAN: Capabilities =
    Capabilities { forgets: true, decays: false, ranks_sets: false, reopens: true };

/// What all of them have in common.
const VOTING: Algorithm = Algorithm {
    name: "brknn",
    summary: "labels that more than half of the nearest rows have",
    parameters: params::VOTING,
    capabilities: |_| CAN,
    reference: PAPER,
    features: params::features,
    start: |spec| fit::start(spec, Method::Majority),
    resume: |spec, space, state| codec::resume(spec, Method::Majority, space, state),
};

/// BRkNN for the registry.
pub(super) const BRKNN: Algorithm = VOTING;

/// BRkNN-a for the registry.
pub(super) const BRKNN_A: Algorithm = Algorithm {
    name: "brknn_a",
    summary: "as brknn; never empty where a neighbour has a label",
    start: |spec| fit::start(spec, Method::MajorityOrBest),
    resume: |spec, space, state| codec::resume(spec, Method::MajorityOrBest, space, state),
    ..VOTING
};

/// BRkNN-b for the registry.
pub(super) const BRKNN_B: Algorithm = Algorithm {
    name: "brknn_b",
    summary: "the most frequent labels of the nearest rows, as many as those have on average",
    start: |spec| fit::start(spec, Method::MeanSize),
    resume: |spec, space, state| codec::resume(spec, Method::MeanSize, space, state),
    ..VOTING
};

/// LPkNN for the registry.
pub(super) const LPKNN: Algorithm = Algorithm {
    name: "lpknn",
    summary: "the most frequent label set of the nearest rows",
    capabilities: |_| Capabilities { ranks_sets: true, ..CAN },
    start: |spec| fit::start(spec, Method::Powerset),
    resume: |spec, space, state| codec::resume(spec, Method::Powerset, space, state),
    ..VOTING
};

/// ML-kNN for the registry.
pub(super) const MLKNN: Algorithm = Algorithm {
    name: "mlknn",
    summary: "Bayesian inference from how many of the nearest rows have a label",
    parameters: params::BAYES,
    reference: "Zhang, Zhou: ML-kNN: A Lazy Learning Approach to Multi-Label Learning",
    start: |spec| fit::start(spec, params::bayes(spec)?),
    resume: |spec, space, state| codec::resume(spec, params::bayes(spec)?, space, state),
    ..VOTING
};
