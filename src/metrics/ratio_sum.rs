//! Sums of ratios in fixed point: the same bits in any order of addition.

use crate::error::{Error, Result};

/// A sum of ratios between 0 and 1, in units of 2^-60.
///
/// A ratio is rounded to the 53 bits of an `f64` and added exactly. 2^64 rows fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RatioSum(u128);

const UNIT: u64 = 1 << 60;

impl RatioSum {
    /// Adds `ratio`, from 0 to 1.
    pub(super) fn add(&mut self, ratio: f64) {
        debug_assert!((0.0..=1.0).contains(&ratio), "{ratio} is no ratio");
        self.0 += u128::from((ratio * UNIT as f64) as u64);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.0 += other.0;
    }

    pub(super) fn mean(self, rows: u64) -> f64 {
        self.0 as f64 / UNIT as f64 / rows as f64
    }

    /// The sum as four words, lowest first.
    pub(super) fn words(self) -> [u32; 4] {
        [0, 32, 64, 96].map(|shift| (self.0 >> shift) as u32)
    }

    /// The sum of those words, unless it is more than `rows` ratios can add up to.
    pub(super) fn from_words(words: &[u32], rows: u64) -> Option<Self> {
        let words = <[u32; 4]>::try_from(words).ok()?;
        let sum = words.iter().rev().fold(0, |sum, &word| sum << 32 | u128::from(word));
        (sum <= u128::from(rows) * u128::from(UNIT)).then_some(RatioSum(sum))
    }
}

/// The largest count that a state may hold: whole numbers up to here are exact as `f64`.
pub(super) const MAX_COUNT: u64 = 1 << 53;

/// The count that `value` of field `name` stands for, from 0 to `max`.
pub(super) fn read_count(name: &str, value: f64, max: u64) -> Result<u64> {
    let count = value as u64;
    if count as f64 == value && count <= max { Ok(count) } else { Err(unfit(name)) }
}

pub(super) fn unfit(name: &str) -> Error {
    Error::corrupt(format!("the metric's field `{name}` does not hold counts of label sets"))
}
