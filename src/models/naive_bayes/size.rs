//! How many labels a row gets.

use super::cascade::{LabelEvidence, best};
use super::fit::NaiveBayes;

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
        let width = evidence.size_ln(0).len() + 1;
        let mut posterior = SizePosterior {
            prior_ln: vec![0.0; sizes.len()],
            temper: 1.0,
            none_ln: f64::NEG_INFINITY,
            given: vec![0.0; sizes.len() * width],
            sizes,
        };
        posterior.refresh_sizes(state, evidence, features);
        let labels: Vec<u32> = (0..width as u32 - 1).collect();
        posterior.refresh_labels(evidence, &labels);
        posterior
    }

    /// Takes what depends on the sizes alone from `state` anew.
    pub(super) fn refresh_sizes(
        &mut self,
        state: &NaiveBayes,
        evidence: &LabelEvidence,
        features: usize,
    ) {
        let s = state.params.smoothing;
        let empty = state.sizes.get(0);
        let denominator = empty + s * evidence.sizes.len() as f64;
        let width = evidence.size_ln(0).len() + 1;
        for (i, &m) in self.sizes.iter().enumerate() {
            self.prior_ln[i] = (state.sizes.get(m) + s).ln();
            self.given[(i + 1) * width - 1] = (if m == 0 { empty + s } else { s }) / denominator;
        }
        self.temper = (features.max(1) as f64).powf(-TEMPER);
        self.none_ln = if empty > 0.0 { (empty + s).ln() } else { f64::NEG_INFINITY };
    }

    /// Takes what the `labels` say about sizes from `evidence` anew.
    pub(super) fn refresh_labels(&mut self, evidence: &LabelEvidence, labels: &[u32]) {
        for (i, &m) in self.sizes.iter().enumerate() {
            let ln = evidence.size_ln(m);
            for &y in labels {
                self.given[i * (ln.len() + 1) + y as usize] = ln[y as usize].exp();
            }
        }
    }

    /// Turns ln p(x | m) into ln P(m | x) up to a constant: naive Bayes over sizes (the paper's).
    pub(super) fn by_features(&self, scores: &mut [f64]) {
        scores.iter_mut().zip(&self.prior_ln).for_each(|(s, p)| *s += p);
    }

    /// Turns ln p(x | m) into the score of `size=labels`:
    /// `ln sum_y P(y | x) P(m | y)`, where no label counts as a label, plus the tempered evidence
    /// of features. `labels` holds ln P(y) + ln p(x | y).
    pub(super) fn by_labels(&self, labels: &[f64], scores: &mut [f64]) {
        let none = match self.sizes.first() {
            Some(0) => self.none_ln + scores[0],
            _ => f64::NEG_INFINITY,
        };
        let max = labels.iter().copied().fold(none, f64::max);
        let weight = |ln: f64| (ln - max).exp();
        let width = labels.len() + 1;
        for (score, given) in scores.iter_mut().zip(self.given.chunks_exact(width)) {
            let of_labels = labels.iter().zip(given).map(|(&ln, p)| weight(ln) * p).sum::<f64>();
            let share = of_labels + weight(none) * given[width - 1];
            *score = *score * self.temper + share.ln();
        }
    }

    /// The size with the best score.
    pub(super) fn choose(&self, scores: &[f64]) -> u32 {
        if self.sizes.is_empty() { 0 } else { self.sizes[best(scores) as usize] }
    }
}
