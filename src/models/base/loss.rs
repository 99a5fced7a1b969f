//! What being wrong costs.

/// A loss and its derivatives at one margin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct At {
    pub(super) loss: f64,
    /// The first derivative, for the margin.
    pub(super) slope: f64,
    /// The second derivative.
    pub(super) curvature: f64,
}

/// A convex loss of the margin `y z`, where `y` is 1 or -1 and `z` the score.
pub(super) trait Loss: Send + Sync {
    /// The loss at margin `m`.
    fn at(m: f64) -> At;
}

/// `ln(1 + exp(-m))`.
#[derive(Debug)]
pub(super) struct Logistic;

impl Loss for Logistic {
    #[inline]
    fn at(m: f64) -> At {
        let e = (-m.abs()).exp();
        let q = 1.0 / (1.0 + e);
        // P(the other class): sigmoid(-m).
        let wrong = if m >= 0.0 { e * q } else { q };
        At { loss: e.ln_1p() + (-m).max(0.0), slope: -wrong, curvature: e * q * q }
    }
}

/// `max(0, 1 - m)^2`: the hinge whose square has a derivative everywhere.
#[derive(Debug)]
pub(super) struct SquaredHinge;

impl Loss for SquaredHinge {
    #[inline]
    fn at(m: f64) -> At {
        let gap = 1.0 - m;
        if gap > 0.0 {
            At { loss: gap * gap, slope: -2.0 * gap, curvature: 2.0 }
        } else {
            At { loss: 0.0, slope: 0.0, curvature: 0.0 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn derivatives_fit<L: Loss>() {
        let h = 1e-5;
        for m in [-30.0, -3.0, -0.2, 0.0, 0.4, 0.999, 2.0, 30.0] {
            let (low, here, high) = (L::at(m - h), L::at(m), L::at(m + h));
            let slope = (high.loss - low.loss) / (2.0 * h);
            assert!((slope - here.slope).abs() < 1e-6, "{m}: {slope} and {}", here.slope);
            let curvature = (high.slope - low.slope) / (2.0 * h);
            assert!((curvature - here.curvature).abs() < 1e-5, "{m}: {curvature}");
        }
    }

    #[test]
    fn slopes_are_derivatives() {
        derivatives_fit::<Logistic>();
        derivatives_fit::<SquaredHinge>();
        assert_eq!(Logistic::at(0.0).loss, 2f64.ln());
        assert_eq!(SquaredHinge::at(-1.0).loss, 4.0);
    }

    #[test]
    fn far_margins_stay_finite() {
        for m in [-1e300, 1e300] {
            let at = Logistic::at(m);
            assert!(at.loss.is_finite() && at.slope.is_finite() && at.curvature == 0.0);
        }
    }
}
