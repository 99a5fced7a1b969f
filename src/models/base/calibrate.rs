//! Platt's probabilities: a sigmoid over margins.

use crate::math::{logit, sigmoid};

/// `log-odds = slope * margin + offset`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sigmoid {
    pub(super) slope: f64,
    pub(super) offset: f64,
}

impl Sigmoid {
    /// The margin itself.
    pub(super) const IDENTITY: Sigmoid = Sigmoid { slope: 1.0, offset: 0.0 };

    /// The sigmoid that fits (margin, has the label, weight) best, with targets drawn in by one row
    /// of each class so that separable margins keep finite slopes. It never falls: margins of few
    /// rows that say the contrary of their labels say nothing.
    ///
    /// # References
    ///
    /// H. Lin, C. Lin, R. Weng: A note on Platt's probabilistic outputs for support vector machines.
    pub(super) fn fit(points: &[(f64, bool, f64)]) -> Self {
        let weight = |on: bool| points.iter().filter(|p| p.1 == on).map(|p| p.2).sum::<f64>();
        let (on, off) = (weight(true), weight(false));
        let (high, low) = ((on + 1.0) / (on + 2.0), 1.0 / (off + 2.0));
        let target = |is_on: bool| if is_on { high } else { low };
        let loss = |s: Sigmoid| -> f64 {
            let of = |&(m, is_on, w): &(f64, bool, f64)| {
                let z = s.slope * m + s.offset;
                // -t ln p - (1 - t) ln (1 - p)
                w * ((-z.abs()).exp().ln_1p() + z.max(0.0) - target(is_on) * z)
            };
            points.iter().map(of).sum()
        };
        let mut best = Sigmoid { slope: 0.0, offset: ((on + 1.0) / (off + 1.0)).ln() };
        let mut value = loss(best);
        for _ in 0..100 {
            // Gradient and Hessian, with a little ridge so that equal margins can be solved for.
            let (mut gs, mut go, mut ss, mut so, mut oo) = (0.0, 0.0, 1e-12, 0.0, 1e-12);
            for &(m, is_on, w) in points {
                let p = sigmoid(best.slope * m + best.offset);
                let (error, curve) = (w * (p - target(is_on)), w * p * (1.0 - p));
                gs += error * m;
                go += error;
                ss += curve * m * m;
                so += curve * m;
                oo += curve;
            }
            if gs.abs() < 1e-9 && go.abs() < 1e-9 {
                break;
            }
            let determinant = ss * oo - so * so;
            let step = ((oo * gs - so * go) / determinant, (ss * go - so * gs) / determinant);
            let mut share = 1.0;
            let moved = loop {
                let next = Sigmoid {
                    slope: best.slope - share * step.0,
                    offset: best.offset - share * step.1,
                };
                let there = loss(next);
                if there < value {
                    (best, value) = (next, there);
                    break true;
                }
                share *= 0.5;
                if share < 1e-10 {
                    break false;
                }
            };
            if !moved {
                break;
            }
        }
        if best.slope < 0.0 {
            // The best of those that do not fall, since the loss is convex: one probability for all.
            let share = (on * high + off * low) / (on + off);
            best = Sigmoid { slope: 0.0, offset: logit(share) };
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sigmoid_is_found_again() {
        // Each margin stands with the share of positives that the sigmoid 1.5 m - 0.5 gives it.
        let (slope, offset) = (1.5, -0.5);
        let mut points = Vec::new();
        for i in -40..=40 {
            let m = f64::from(i) / 10.0;
            let p = sigmoid(slope * m + offset);
            points.push((m, true, 1e6 * p));
            points.push((m, false, 1e6 * (1.0 - p)));
        }
        let found = Sigmoid::fit(&points);
        assert!((found.slope - slope).abs() < 1e-4, "{found:?}");
        assert!((found.offset - offset).abs() < 1e-4, "{found:?}");
    }

    #[test]
    fn a_sigmoid_does_not_turn_labels_round() {
        let contrary = [(2.0, false, 3.0), (1.0, false, 1.0), (-1.0, true, 1.0), (-2.0, true, 1.0)];
        let found = Sigmoid::fit(&contrary);
        assert_eq!(found.slope, 0.0);
        // Two rows with a target of 3/4, four with one of 1/6.
        let p = (2.0 * 0.75 + 4.0 / 6.0) / 6.0;
        assert!((sigmoid(found.offset) - p).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn separable_and_equal_margins_stay_finite() {
        let separable: Vec<_> = (0..20).map(|i| (f64::from(i) - 9.5, i >= 10, 1.0)).collect();
        let found = Sigmoid::fit(&separable);
        assert!(found.slope > 0.3 && found.slope < 1.0, "{found:?}");
        let equal = [(1.0, true, 1.0), (1.0, false, 3.0)];
        let found = Sigmoid::fit(&equal);
        let p = sigmoid(found.slope + found.offset);
        assert!((p - (2.0 / 3.0 + 3.0 / 5.0) / 4.0).abs() < 1e-6, "{p}");
    }
}
