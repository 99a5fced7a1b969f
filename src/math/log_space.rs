//! Probabilities in log space.

/// ln(exp(a) + exp(b)) without overflow; minus infinity is the identity.
pub fn log_add_exp(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if high == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// ln of the sum of exponentials of `values`; minus infinity for an empty slice.
///
/// # Examples
///
/// ```
/// use labelflow::math::log_sum_exp;
///
/// assert!((log_sum_exp(&[1000.0, 1000.0]) - (1000.0 + 2f64.ln())).abs() < 1e-12);
/// ```
pub fn log_sum_exp(values: &[f64]) -> f64 {
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !max.is_finite() {
        return max;
    }
    max + values.iter().map(|v| (v - max).exp()).sum::<f64>().ln()
}

/// The probability whose log-odds are `log_odds`.
pub fn sigmoid(log_odds: f64) -> f64 {
    if log_odds >= 0.0 {
        1.0 / (1.0 + (-log_odds).exp())
    } else {
        let e = log_odds.exp();
        e / (1.0 + e)
    }
}

/// The log-odds of a probability; infinite at 0 and 1.
pub fn logit(probability: f64) -> f64 {
    probability.ln() - (-probability).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_add_exp_has_an_identity_and_no_overflow() {
        assert_eq!(log_add_exp(f64::NEG_INFINITY, 3.0), 3.0);
        assert_eq!(log_add_exp(f64::NEG_INFINITY, f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert!((log_add_exp(800.0, 800.0) - (800.0 + 2f64.ln())).abs() < 1e-12);
    }

    #[test]
    fn sigmoid_and_logit_are_inverse() {
        for p in [1e-12, 0.1, 0.5, 0.9] {
            assert!((sigmoid(logit(p)) - p).abs() < 1e-15);
        }
        assert_eq!(sigmoid(f64::NEG_INFINITY), 0.0);
        assert_eq!(sigmoid(f64::INFINITY), 1.0);
    }
}
