//! Mean and sum of squared deviations of one variable.

use super::Cell;
use crate::error::{Error, Result};

/// The share of a sum of squares below which a subtraction has lost six digits.
const LOST: f64 = 1e-6;

/// Weight, mean and sum of squared deviations from the mean.
///
/// Merged by the formula of Chan, Golub and LeVeque (1983), which is Welford's update for a single
/// value. Overflow saturates: a sum of squares never becomes infinite or NaN.
///
/// # Examples
///
/// ```
/// use labelflow::stats::{Cell, Moment};
///
/// let mut m = Moment::default();
/// for x in [2.0, 4.0, 6.0] {
///     m.add(&Moment::of(x));
/// }
/// assert_eq!((m.n, m.mean, m.variance()), (3.0, 4.0, Some(4.0)));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moment {
    /// Total weight.
    pub n: f64,
    /// Mean.
    pub mean: f64,
    /// Sum of squared deviations from the mean.
    pub m2: f64,
}

impl Moment {
    /// One value.
    pub fn of(value: f64) -> Self {
        Moment { n: 1.0, mean: value, m2: 0.0 }
    }

    /// One value of a row that counts `weight`.
    #[inline]
    pub fn weighted(value: f64, weight: f64) -> Self {
        Moment { n: weight, mean: value, m2: 0.0 }
    }

    /// The unbiased variance; `None` for a weight of one or less.
    #[inline]
    pub fn variance(&self) -> Option<f64> {
        (self.n > 1.0).then(|| self.m2 / (self.n - 1.0))
    }

    /// Whether `mean`, what is left of this mean without `other` for the weight `n`, has lost more
    /// than six digits.
    fn lost_mean(&self, other: &Self, n: f64, mean: f64) -> bool {
        let (all, part) = (self.mean * self.n, other.mean * other.n);
        // Sums of whole numbers are exact: nothing is lost, even if nothing is left.
        let whole = |x: f64| x.fract() == 0.0 && x.abs() < 9e15;
        !(whole(all) && whole(part)) && mean.abs() * n < LOST * (all.abs() + part.abs())
    }

    /// This and `zeros` further values that are zero.
    #[must_use]
    pub fn with_zeros(mut self, zeros: f64) -> Self {
        if zeros > 0.0 {
            self.add(&Moment { n: zeros, mean: 0.0, m2: 0.0 });
        }
        self
    }
}

/// What is left of the weight `all` without `part`.
///
/// Whole numbers subtract exactly. Sums of other weights depend on their order in the last digits:
/// what is left of them within 1e-12 of the sum is nothing.
///
/// # Errors
///
/// When `part` is more than `all`.
pub(super) fn difference(all: f64, part: f64) -> Result<f64> {
    let left = all - part;
    let whole = all.fract() == 0.0 && part.fract() == 0.0;
    if !whole && left.abs() <= 1e-12 * all {
        return Ok(0.0);
    }
    if left < 0.0 {
        return Err(Error::incompatible(
            "more rows are taken away than were added: take away only what this model has learned",
        ));
    }
    Ok(left)
}

/// Keeps a number finite.
#[inline]
pub(super) fn saturate(value: f64) -> f64 {
    if value.is_nan() { f64::MAX } else { value.clamp(-f64::MAX, f64::MAX) }
}

impl Cell for Moment {
    #[inline]
    fn add(&mut self, other: &Self) {
        if other.n == 0.0 {
            return;
        }
        if self.n == 0.0 {
            *self = *other;
            return;
        }
        let n = self.n + other.n;
        let delta = saturate(other.mean - self.mean);
        self.mean = saturate(self.mean + delta * (other.n / n));
        self.m2 = saturate(self.m2 + other.m2 + delta * delta * (self.n * other.n / n));
        self.n = n;
    }

    fn subtract(&mut self, other: &Self) -> Result<()> {
        if other.n == 0.0 {
            return Ok(());
        }
        let n = difference(self.n, other.n)?;
        if n == 0.0 {
            *self = Moment::default();
            return Ok(());
        }
        let mean = saturate(self.mean - (other.mean - self.mean) * (other.n / n));
        let delta = other.mean - mean;
        let m2 = self.m2 - other.m2 - delta * delta * (n * other.n / self.n);
        if n == 1.0 {
            if self.m2 > 0.0 && self.lost_mean(other, n, mean) {
                return Err(Error::incompatible(
                    "taking these rows away would lose more than six digits of a mean: train anew \
                     on the rows that stay",
                ));
            }
            *self = Moment { n, mean, m2: 0.0 };
        } else if self.m2 > 0.0 && (m2.is_nan() || m2 < LOST * self.m2 || n < LOST * self.n) {
            return Err(Error::incompatible(
                "taking these rows away would lose more than six digits of a variance: train anew \
                 on the rows that stay",
            ));
        } else {
            *self = Moment { n, mean, m2: m2.max(0.0) };
        }
        Ok(())
    }

    fn scale(&mut self, factor: f64) {
        self.n *= factor;
        self.m2 *= factor;
    }

    fn is_zero(&self) -> bool {
        self.n == 0.0
    }

    const COLUMNS: &'static [&'static str] = &["n", "mean", "m2"];

    fn get(&self, column: usize) -> f64 {
        [self.n, self.mean, self.m2][column]
    }

    fn from_columns(get: impl Fn(usize) -> f64) -> Self {
        Moment { n: get(0), mean: get(1), m2: get(2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtracting_what_was_added_restores() {
        let mut a = Moment::default();
        [1.0, 2.5, -3.0, 7.0].iter().for_each(|&x| a.add(&Moment::of(x)));
        let before = a;
        let mut part = Moment::default();
        [4.0, 4.5].iter().for_each(|&x| part.add(&Moment::of(x)));
        a.add(&part);
        a.subtract(&part).unwrap();
        assert_eq!(a.n, before.n);
        assert!((a.mean - before.mean).abs() < 1e-12 && (a.m2 - before.m2).abs() < 1e-12);
    }

    #[test]
    fn an_outlier_cannot_be_taken_away() {
        let mut a = Moment::default();
        [1.0, 2.0, 1e10].iter().for_each(|&x| a.add(&Moment::of(x)));
        let before = a;
        let error = a.subtract(&Moment::of(1e10)).unwrap_err();
        assert!(error.to_string().contains("six digits"));
        assert_eq!(a, before);
        assert!(a.subtract(&Moment { n: 9.0, mean: 0.0, m2: 0.0 }).is_err());
    }

    #[test]
    fn the_last_row_keeps_its_mean() {
        let left = |kept: f64, taken: f64| {
            let mut a = Moment::of(kept);
            a.add(&Moment::of(taken));
            a.subtract(&Moment::of(taken)).map(|()| a.mean)
        };
        assert_eq!(left(0.0, 5.0).unwrap(), 0.0);
        assert!((left(0.1, 2000.0).unwrap() - 0.1).abs() < 1e-11);
        let error = left(1.0, 1e17).unwrap_err().to_string();
        assert!(error.contains("lose more than six digits of a mean"), "{error}");
    }

    #[test]
    fn huge_values_stay_finite() {
        let mut a = Moment::of(f64::MAX);
        a.add(&Moment::of(-f64::MAX));
        assert!(a.mean.is_finite() && a.m2.is_finite());
    }
}
