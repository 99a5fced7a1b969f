//! The size and shape of generated data.

use std::fmt::Display;

use crate::error::{Error, Result};

/// The most features.
const MAX_FEATURES: usize = 100_000;
/// The most labels.
const MAX_LABELS: usize = 1_000_000;

/// The size and shape of generated data.
///
/// The default is a small table for a first try: 1,000 rows, 20 features, 10 labels, 2 labels a row, seed 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeneratorOptions {
    /// The number of rows; 0 is allowed.
    pub rows: u64,
    /// The number of features, from 1 to 100,000.
    pub features: usize,
    /// The number of labels, from 1 to 1,000,000.
    pub labels: usize,
    /// The mean number of labels of a row: above 0, at most `labels`. Below 1, some rows have none.
    pub cardinality: f64,
    /// The seed; another seed gives other data of the same shape.
    pub seed: u64,
}

impl Default for GeneratorOptions {
    fn default() -> Self {
        GeneratorOptions { rows: 1_000, features: 20, labels: 10, cardinality: 2.0, seed: 1 }
    }
}

impl GeneratorOptions {
    /// Refuses the first option that is out of its range.
    pub(super) fn check(&self) -> Result<()> {
        check_range("rows", self.rows, 0, i64::MAX as u64)?;
        check_range("features", self.features, 1, MAX_FEATURES)?;
        check_range("labels", self.labels, 1, MAX_LABELS)?;
        let GeneratorOptions { labels, cardinality, .. } = *self;
        // NaN fails both comparisons.
        if cardinality > 0.0 && cardinality <= labels as f64 {
            return Ok(());
        }
        Err(Error::usage(format!(
            "parameter `cardinality` must be above 0 and at most the number of labels ({labels}), got {cardinality}"
        )))
    }
}

fn check_range<T: PartialOrd + Display>(name: &str, value: T, low: T, high: T) -> Result<()> {
    if value >= low && value <= high {
        return Ok(());
    }
    Err(Error::usage(format!("parameter `{name}` must be from {low} to {high}, got {value}")))
}
