//! Which rows train and which rows test.

use crate::error::{Error, Result};
use crate::math::content_hash;
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
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Protocol {
    /// Every row tests once, in one of this many parts.
    Folds(usize),
    /// A share of the rows trains, the others test; so many times with different shares.
    HoldOut {
        /// The share that trains.
        train: f64,
        /// How many times.
        repeats: usize,
    },
}

impl Protocol {
    /// The rounds over `rows` rows, shuffled by `seed`.
    ///
    /// # Errors
    ///
    /// More folds than rows, or a share that leaves one side without rows.
    pub fn splits(&self, rows: usize, seed: u64) -> Result<Vec<Split>> {
        match *self {
            Protocol::Folds(folds) => {
                if folds < 2 || folds > rows {
                    return Err(Error::usage(format!(
                        "--folds is {folds}: give a number from 2 to the number of rows, {rows}"
                    )));
                }
                let order = shuffled(rows, seed);
                Ok((0..folds)
                    .map(|fold| {
                        let part = |i: usize| i % folds == fold;
                        let pick = |test: bool| {
                            let mut rows: Vec<u32> =
                                (0..rows).filter(|&i| part(i) == test).map(|i| order[i]).collect();
                            rows.sort_unstable();
                            rows
                        };
                        Split { train: pick(false), test: pick(true) }
                    })
                    .collect())
            }
            Protocol::HoldOut { train, repeats } => {
                let cut = (rows as f64 * train).round() as usize;
                if cut == 0 || cut >= rows {
                    return Err(Error::usage(format!(
                        "--split {train} of {rows} rows leaves no row to {}",
                        if cut == 0 { "learn from" } else { "test" }
                    )));
                }
                Ok((0..repeats as u64)
                    .map(|repeat| {
                        let mut order = shuffled(rows, seed.wrapping_add(repeat << 32));
                        let mut test = order.split_off(cut);
                        test.sort_unstable();
                        order.sort_unstable();
                        Split { train: order, test }
                    })
                    .collect())
            }
        }
    }
}

/// Row numbers in an order that is a function of the seed alone.
fn shuffled(rows: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..rows as u32).collect();
    order.sort_by_cached_key(|row| (content_hash(seed, &row.to_le_bytes()), *row));
    order
}

impl FromStr for Protocol {
    type Err = Error;

    /// A hold-out as typed: `0.66` or `0.66x10`.
    fn from_str(text: &str) -> Result<Self> {
        let (share, repeats) = text.split_once('x').unwrap_or((text, "1"));
        match (share.parse::<f64>(), repeats.parse::<usize>()) {
            (Ok(train), Ok(repeats)) if train > 0.0 && train < 1.0 && repeats > 0 => {
                Ok(Protocol::HoldOut { train, repeats })
            }
            _ => Err(Error::usage(format!(
                "`{text}` is no split: write the share that trains, such as 0.66, or 0.66x10 to \
                 repeat it"
            ))),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Protocol::Folds(folds) => write!(f, "{folds} folds"),
            Protocol::HoldOut { train, repeats } => write!(f, "hold-out {train} x {repeats}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_tests_once_and_never_trains_then() {
        let splits = Protocol::Folds(4).splits(10, 1).unwrap();
        let mut tested: Vec<u32> = splits.iter().flat_map(|s| s.test.clone()).collect();
        tested.sort_unstable();
        assert_eq!(tested, (0..10).collect::<Vec<u32>>());
        for split in &splits {
            assert_eq!(split.train.len() + split.test.len(), 10);
            assert!(split.test.iter().all(|r| !split.train.contains(r)));
        }
        assert_ne!(splits, Protocol::Folds(4).splits(10, 2).unwrap());
        assert!(Protocol::Folds(11).splits(10, 1).is_err());
    }

    #[test]
    fn hold_outs_are_typed_as_a_share() {
        let protocol: Protocol = "0.66x3".parse().unwrap();
        let splits = protocol.splits(100, 1).unwrap();
        assert_eq!(splits.len(), 3);
        assert!(splits.iter().all(|s| s.train.len() == 66 && s.test.len() == 34));
        assert_ne!(splits[0], splits[1]);
        assert!("1.5".parse::<Protocol>().is_err());
    }
}
