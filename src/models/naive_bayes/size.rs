//! How many labels a row gets.

use super::cascade::best;

/// ln P(m | x) up to a constant for the sizes that may be predicted.
#[derive(Debug)]
pub(super) struct SizePosterior {
    /// The sizes, ascending.
    pub(super) sizes: Vec<u32>,
    /// ln P(m).
    pub(super) prior_ln: Vec<f64>,
}

impl SizePosterior {
    /// Adds the prior to likelihoods and returns the most probable size (the paper's predictor).
    pub(super) fn predict(&self, likelihood_ln: &mut [f64]) -> u32 {
        if self.sizes.is_empty() {
            return 0;
        }
        likelihood_ln.iter_mut().zip(&self.prior_ln).for_each(|(l, p)| *l += p);
        self.sizes[best(likelihood_ln) as usize]
    }
}
