//! Which rows train and which rows test.

use super::Stratify;
use crate::data::LabelSets;
use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// Row numbers of one round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Rows to learn from.
    pub train: Vec<u32>,
    /// Rows to predict.
    pub test: Vec<u32>,
}

/// How rows are divided.
///
/// # Examples
///
/// ```
/// use labelflow::evaluate::Protocol;
///
/// assert_eq!("10x5".parse::<Protocol>()?, Protocol::Folds { folds: 10, repeats: 5 });
/// assert_eq!("0.66".parse::<Protocol>()?, Protocol::HoldOut { train: 0.66, repeats: 1 });
/// # Ok::<(), labelflow::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Protocol {
    /// Every row tests once, in one of this many parts; so many times with different parts.
    Folds {
        /// How many parts.
        folds: usize,
        /// How many times.
        repeats: usize,
    },
    /// A share of the rows trains, the others test; so many times with different shares.
    HoldOut {
        /// The share that trains.
        train: f64,
        /// How many times.
        repeats: usize,
    },
}

impl Protocol {
    /// Cross-validation with `folds` parts, once.
    pub const fn folds(folds: usize) -> Self {
        Protocol::Folds { folds, repeats: 1 }
    }

    /// How many times models are trained and tested.
    pub const fn rounds(&self) -> usize {
        match *self {
            Protocol::Folds { folds, repeats } => folds * repeats,
            Protocol::HoldOut { repeats, .. } => repeats,
        }
    }

    /// The rounds over the rows of `truth`, shuffled by `seed`.
    ///
    /// They depend on the seed, the number of rows and, with [`Stratify`], on the label sets.
    ///
    /// # Errors
    ///
    /// More folds than rows, or a share that leaves one side without rows.
    pub fn splits(&self, truth: &LabelSets, stratify: Stratify, seed: u64) -> Result<Vec<Split>> {
        let rows = truth.len();
        let (parts, repeats) = match *self {
            Protocol::Folds { folds, .. } if folds < 2 || folds > rows => {
                return Err(Error::usage(format!(
                    "--folds is {folds}: give a number from 2 to the number of rows, {rows}"
                )));
            }
            Protocol::Folds { folds, repeats } => (folds, repeats),
            Protocol::HoldOut { repeats, .. } => (2, repeats),
        };
        let mut splits = Vec::new();
        for repeat in 0..repeats as u64 {
            let of_row = stratify.deal(truth, *self, seed.wrapping_add(repeat << 32));
            if let Some(empty) = (0..parts as u32).find(|part| !of_row.contains(part)) {
                return Err(self.no_rows(empty, rows));
            }
            let split = |test: u32| {
                let (mut train, mut tested) = (Vec::new(), Vec::new());
                for (row, &part) in (0..).zip(&of_row) {
                    if part == test { tested.push(row) } else { train.push(row) }
                }
                Split { train, test: tested }
            };
            match self {
                Protocol::Folds { .. } => splits.extend((0..parts as u32).map(split)),
                Protocol::HoldOut { .. } => splits.push(split(1)),
            }
        }
        Ok(splits)
    }

    fn no_rows(&self, part: u32, rows: usize) -> Error {
        Error::usage(match self {
            Protocol::Folds { folds, .. } => format!(
                "--folds {folds} of {rows} rows leaves a fold without rows: give fewer folds"
            ),
            Protocol::HoldOut { train, .. } => format!(
                "--split {train} of {rows} rows leaves no row to {}",
                if part == 0 { "learn from" } else { "test" }
            ),
        })
    }
}

impl FromStr for Protocol {
    type Err = Error;

    /// Folds as typed, `10` or `10x5`, or a hold-out, `0.66` or `0.66x10`.
    fn from_str(text: &str) -> Result<Self> {
        let (first, repeats) = text.split_once('x').unwrap_or((text, "1"));
        let repeats = repeats.parse::<usize>().unwrap_or(0);
        match (first.parse::<usize>(), first.parse::<f64>()) {
            (Ok(folds), _) if folds > 1 && repeats > 0 => Ok(Protocol::Folds { folds, repeats }),
            (Err(_), Ok(train)) if train > 0.0 && train < 1.0 && repeats > 0 => {
                Ok(Protocol::HoldOut { train, repeats })
            }
            _ => Err(Error::usage(format!(
                "`{text}` is no protocol: write the number of folds, such as 10, or the share that \
                 trains, such as 0.66; with x5 behind it to do it five times"
            ))),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let repeats = match self {
            Protocol::Folds { folds, repeats } => {
                write!(f, "{folds} folds")?;
                repeats
            }
            Protocol::HoldOut { train, repeats } => {
                write!(f, "hold-out {train}")?;
                repeats
            }
        };
        if *repeats > 1 { write!(f, " x {repeats}") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
