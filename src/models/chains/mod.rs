//! Binary relevance and chains: one binary classifier per label.
//!
//! # When to use which
//!
//! | name | a label is told from | predicts | use it |
//! |---|---|---|---|
//! | `br` | features | every label by itself | first; labels that hardly depend on each other |
//! | `cc` | features and the labels before it in one order | labels in that order, each from those predicted | labels that depend on each other |
//! | `ecc` | as `cc`, in ten orders and bags | the mean over chains | when the best sets matter more than time |
//! | `pcc` | as `cc` | the most probable set, or the probability of each label | when the whole set must be right |
//!
//! With `base=naive_bayes` a model is counts: it merges, forgets, decays and goes on learning. The
//! other base learners collect rows and fit them when training ends; the model keeps the fitted
//! weights, and with `keep=all` the rows too, so that it can be learned on.
//!
//! # Definition
//!
//! Log-odds of label `y` are sums over features and over the parents that are on:
//!
//! ```text
//! logit P(y | x, pa) = b_y + w_y x + sum_(j in pa, j on) v_yj
//! ```
//!
//! Chains are trained on true labels (Read et al.) and predict on predicted ones: a label is on for
//! those after it from the threshold of `cc` on, and in `ecc`, whose threshold is one of votes, from one
//! half on. `pcc` multiplies
//! the conditional probabilities along the order: `P(Y | x) = prod_y P(y | x, labels before y)`. Up to
//! 15 labels it looks at every set that can still win; beyond, a beam search keeps `beam` candidates,
//! and the probability of a label is its mean over them.
//!
//! # Cost
//!
//! Fitting: passes over the rows, shared by eight labels at a time; memory follows the rows. Scoring
//! all labels of a batch is one matrix product; a chain then adds one row of its table for each label
//! that is on. `pcc` looks at up to `2^L` sets of a row for its scores while there are at most 15
//! labels (the most probable set needs few of them), and beyond at `beam L`. Chains hold `L^2` links
//! each, of which there may be 2^28.
//!
//! # References
//!
//! - J. Read, B. Pfahringer, G. Holmes, E. Frank: Classifier chains for multi-label classification.
//! - K. Dembczynski, W. Cheng, E. Huellermeier: Bayes optimal multilabel classification via
//!   probabilistic classifier chains.
//! - L. Sun, M. Kudo: Multi-label classification by polytree-augmented classifier chains with
//!   label-dependent features (PACC-LDF), for Eq. 16.

mod codec;
mod counts;
mod decode;
mod fit;
mod params;
mod predict;
#[cfg(test)]
mod tests;
mod thresholds;

use super::{Algorithm, CheckedSpec, Learner};
use crate::data::Space;
use crate::error::Result;
use crate::stats::State;
use params::{Method, Params};

/// Binary relevance for the registry, and what all of them have in common.
pub(super) const BR: Algorithm = Algorithm {
    name: "br",
    summary: "binary relevance: every label by itself",
    parameters: params::BR,
    capabilities: |spec| params::capabilities(spec, Method::Relevance),
    reference: "Boutell et al.: Learning multi-label scene classification",
    features: params::features,
    start: |spec| start(spec, Method::Relevance),
    resume: |spec, space, state| resume(spec, Method::Relevance, space, state),
};

/// Classifier chains for the registry.
pub(super) const CC: Algorithm = Algorithm {
    name: "cc",
    summary: "classifier chain: each label from features and the labels before it",
    parameters: params::CC,
    capabilities: |spec| params::capabilities(spec, Method::Chain),
    reference: "Read et al.: Classifier chains for multi-label classification",
    start: |spec| start(spec, Method::Chain),
    resume: |spec, space, state| resume(spec, Method::Chain, space, state),
    ..BR
};

/// Ensembles of classifier chains for the registry.
pub(super) const ECC: Algorithm = Algorithm {
    name: "ecc",
    summary: "ensemble of classifier chains: ten orders and bags, mean vote",
    parameters: params::ECC,
    capabilities: |spec| params::capabilities(spec, Method::Ensemble),
    start: |spec| start(spec, Method::Ensemble),
    resume: |spec, space, state| resume(spec, Method::Ensemble, space, state),
    ..CC
};

/// Probabilistic classifier chains for the registry.
pub(super) const PCC: Algorithm = Algorithm {
    name: "pcc",
    summary: "probabilistic classifier chain: the most probable set, or each label's probability",
    parameters: params::PCC,
    capabilities: |spec| params::capabilities(spec, Method::Probabilistic),
    reference: "Dembczynski et al.: Bayes optimal multilabel classification via probabilistic classifier chains",
    start: |spec| start(spec, Method::Probabilistic),
    resume: |spec, space, state| resume(spec, Method::Probabilistic, space, state),
    ..BR
};

fn start(spec: &CheckedSpec, method: Method) -> Result<Box<dyn Learner>> {
    let params = Params::try_new(spec, method)?;
    params.check(spec)?;
    Ok(if params.counts() {
        Box::new(counts::CountChains::new(params))
    } else {
        Box::new(fit::RowChains::new(params))
    })
}

fn resume(
    spec: &CheckedSpec,
    method: Method,
    space: &Space,
    state: &State,
) -> Result<Box<dyn Learner>> {
    let params = Params::try_new(spec, method)?;
    if params.counts() {
        codec::resume_counts(params, space, state)
    } else {
        codec::resume_rows(params, space, state)
    }
}
