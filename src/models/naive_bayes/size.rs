//! How many labels a row gets.

use super::cascade::{LabelEvidence, best};
use super::fit::NaiveBayes;
use crate::data::{Id, LabelId};

/// The power of the number of features by which `size=labels` divides the evidence of features.
///
/// Naive Bayes takes correlated features for independent ones and is too sure of sizes, which are
/// hard to tell; between a half and three quarters every value gains over the paper's predictor on
/// the data sets of `docs/reproduction.md`.
const TEMPER: f64 = 2.0 / 3.0;

/// Scores of the sizes that may be predicted.
#[derive(Debug)]
pub(super) struct SizePosterior {
    /// The sizes, ascending.
    pub(super) sizes: Vec<u32>,
    /// ln P(m).
    prior_ln: Vec<f64>,
    /// What the likelihood of features is multiplied by in `size=labels`.
    temper: f64,
    /// ln P(no label) up to the constant of the label priors.
    none_ln: f64,
    /// P(m | y) for each size and label, then P(m | no label).
    given: Vec<f64>,
}

impl SizePosterior {
    pub(super) fn fit(
        state: &NaiveBayes,
        evidence: &LabelEvidence,
        sizes: Vec<u32>,
        features: usize,
    ) -> Self {
        let width = evidence.labels() + 1;
        let mut posterior = SizePosterior {
            prior_ln: vec![0.0; sizes.len()],
            temper: (features.max(1) as f64).powf(-TEMPER),
            none_ln: f64::NEG_INFINITY,
            given: vec![0.0; sizes.len() * width],
            sizes,
        };
        (0..posterior.sizes.len()).for_each(|i| posterior.refresh_prior(state, i));
        posterior.refresh_none(state, evidence);
        let labels: Vec<LabelId> = LabelId::all(width - 1).collect();
        posterior.refresh_labels(evidence, &labels);
        posterior
    }

    fn refresh_prior(&mut self, state: &NaiveBayes, at: usize) {
        self.prior_ln[at] = (state.sizes.get(self.sizes[at]) + state.params.smoothing).ln();
    }

    fn refresh_none(&mut self, state: &NaiveBayes, evidence: &LabelEvidence) {
        let (s, empty) = (state.params.smoothing, state.sizes.get(0));
        let denominator = empty + s * evidence.sizes.len() as f64;
        let width = evidence.labels() + 1;
        for (i, &m) in self.sizes.iter().enumerate() {
            self.given[(i + 1) * width - 1] = (if m == 0 { empty + s } else { s }) / denominator;
        }
        self.none_ln = if empty > 0.0 { (empty + s).ln() } else { f64::NEG_INFINITY };
    }

    /// Takes what depends on the number of rows of `size` alone from `state` anew.
    pub(super) fn refresh_size(&mut self, state: &NaiveBayes, evidence: &LabelEvidence, size: u32) {
        if let Ok(at) = self.sizes.binary_search(&size) {
            self.refresh_prior(state, at);
        }
        if size == 0 {
            self.refresh_none(state, evidence);
        }
    }

    /// Takes what the `labels` say about sizes from `evidence` anew.
    pub(super) fn refresh_labels(&mut self, evidence: &LabelEvidence, labels: &[LabelId]) {
        for (i, &m) in self.sizes.iter().enumerate() {
            for &y in labels {
                let at = i * (evidence.labels() + 1) + y.index();
                self.given[at] = evidence.size_ln(m, y).exp();
            }
        }
    }

    /// Turns ln p(x | m) into ln P(m | x) up to a constant: naive Bayes over sizes (the paper's).
    pub(super) fn by_features(&self, scores: &mut [f64]) {
        scores.iter_mut().zip(&self.prior_ln).for_each(|(s, p)| *s += p);
    }

    /// Turns ln p(x | m) into the score of `size=labels`:
    /// `ln sum_y P(y | x) P(m | y)`, where no label counts as a label, plus the tempered evidence
    /// of features. `labels` holds ln P(y) + ln p(x | y); `weights` is a buffer.
    pub(super) fn by_labels(&self, labels: &[f64], scores: &mut [f64], weights: &mut Vec<f64>) {
        let none = match self.sizes.first() {
            Some(0) => self.none_ln + scores[0],
            _ => f64::NEG_INFINITY,
        };
        let max = labels.iter().copied().fold(none, f64::max);
        weights.clear();
        weights.extend(labels.iter().chain([&none]).map(|ln| (ln - max).exp()));
        for (score, given) in scores.iter_mut().zip(self.given.chunks_exact(weights.len())) {
            let share: f64 = weights.iter().zip(given).map(|(weight, p)| weight * p).sum();
            *score = *score * self.temper + share.ln();
        }
    }

    /// The size with the best score.
    pub(super) fn choose(&self, scores: &[f64]) -> u32 {
        if self.sizes.is_empty() { 0 } else { self.sizes[best(scores) as usize] }
    }
}
