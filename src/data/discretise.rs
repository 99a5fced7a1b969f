//! Cutting numbers into bins.

use crate::error::{Error, Result};

/// Ascending cut points; a value falls into the bin of the number of cuts at or below it.
///
/// # Nulls
///
/// `NaN` has no bin.
///
/// # Examples
///
/// ```
/// use labelflow::data::Discretiser;
///
/// let quartiles = Discretiser::try_quantiles(&[4.0, 1.0, 3.0, 2.0], 4).unwrap();
/// assert_eq!(quartiles.cuts(), [1.75, 2.5, 3.25]);
/// assert_eq!(quartiles.bin(2.5), Some(2));
/// assert_eq!(quartiles.bin(f64::NAN), None);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Discretiser {
    cuts: Vec<f64>,
}

impl Discretiser {
    /// Cuts that leave equal shares of `values` in each of `bins` bins, by linear interpolation
    /// between order statistics; equal cuts become one.
    ///
    /// # Errors
    ///
    /// Fewer than two bins.
    pub fn try_quantiles(values: &[f64], bins: usize) -> Result<Self> {
        if bins < 2 {
            return Err(Error::usage(format!("a discretiser needs at least 2 bins, not {bins}")));
        }
        let mut sorted: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let mut cuts = Vec::new();
        if let Some(last) = sorted.len().checked_sub(1) {
            for i in 1..bins {
                let at = last as f64 * i as f64 / bins as f64;
                let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
                cuts.push(low + (high - low) * at.fract());
            }
        }
        cuts.dedup();
        Ok(Discretiser { cuts })
    }

    /// Cuts one standard deviation below and above the mean: three bins.
    pub fn mean_sd(mean: f64, sd: f64) -> Self {
        let mut cuts = vec![mean - sd, mean + sd];
        cuts.dedup();
        Discretiser { cuts }
    }

    /// The bin of `value`.
    pub fn bin(&self, value: f64) -> Option<u32> {
        (!value.is_nan()).then(|| self.cuts.partition_point(|c| *c <= value) as u32)
    }

    /// How many bins there are.
    pub fn bins(&self) -> usize {
        self.cuts.len() + 1
    }

    /// The cut points.
    pub fn cuts(&self) -> &[f64] {
        &self.cuts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_share_the_rows() {
        let values: Vec<f64> = (0..1000).map(|i| f64::from((i * 7919) % 1000)).collect();
        let d = Discretiser::try_quantiles(&values, 4).unwrap();
        let mut shares = [0; 4];
        values.iter().filter_map(|&v| d.bin(v)).for_each(|b| shares[b as usize] += 1);
        assert_eq!(shares, [250, 250, 250, 250]);
        assert!(Discretiser::try_quantiles(&values, 1).is_err());
        assert_eq!(Discretiser::try_quantiles(&[5.0; 9], 4).unwrap().bins(), 2);
        assert_eq!(Discretiser::try_quantiles(&[], 4).unwrap().bin(3.0), Some(0));
    }

    #[test]
    fn mean_sd_makes_three_bins() {
        let d = Discretiser::mean_sd(10.0, 2.0);
        assert_eq!([7.9, 8.0, 12.0].map(|v| d.bin(v)), [Some(0), Some(1), Some(2)]);
        assert_eq!(Discretiser::mean_sd(1.0, 0.0).bins(), 2);
    }
}
