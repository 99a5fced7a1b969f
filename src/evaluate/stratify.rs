//! Which part a row goes to.

use super::Protocol;
use crate::data::{Id, LabelId, LabelSets};
use crate::error::{Error, Result};
use crate::math::content_hash;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::str::FromStr;

/// How rows are dealt out to the parts of an experiment.
///
/// Only the label sets of the rows are looked at, never their features.
///
/// # Examples
///
/// ```
/// use labelflow::data::{LabelId, LabelSets};
/// use labelflow::evaluate::{Protocol, Stratify};
///
/// // Label 0 is in two of ten rows: with strata each half has one of them, whatever the seed.
/// let mut truth = LabelSets::default();
/// let set = |row| if row < 2 { vec![LabelId(0), LabelId(1)] } else { vec![LabelId(1)] };
/// (0..10).for_each(|row| truth.push(set(row)));
/// for seed in 0..20 {
///     let halves = Protocol::folds(2).splits(&truth, Stratify::Iterative, seed)?;
///     assert_eq!(halves[0].test.iter().filter(|row| **row < 2).count(), 1);
/// }
/// # Ok::<(), labelflow::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stratify {
    /// By chance alone.
    #[default]
    None,
    /// Every part gets its share of every label as nearly as can be: iterative stratification.
    /// Parts may differ in size by a few rows.
    ///
    /// K. Sechidis, G. Tsoumakas and I. Vlahavas, "On the Stratification of Multi-label Data",
    /// ECML PKDD 2011, Algorithm 1.
    Iterative,
    /// Every part gets its share of the rows of each rarest label: rows are put in strata by the
    /// rarest of their labels (rows without labels are a stratum too), and every stratum is dealt
    /// out evenly. Cheaper than iterative and exact in size, but frequent labels are balanced only
    /// as far as rare ones are.
    Rarest,
}

impl Stratify {
    /// The part of every row: its fold, or 0 to train and 1 to test in a hold-out.
    pub(super) fn deal(self, truth: &LabelSets, protocol: Protocol, seed: u64) -> Vec<u32> {
        let rows = truth.len();
        let mut order = shuffled(rows, seed);
        match self {
            Stratify::None => parts(&order, |i| match protocol {
                Protocol::Folds { folds, .. } => i % folds,
                Protocol::HoldOut { train, .. } => usize::from(i >= cut(rows, train)),
            }),
            Stratify::Rarest => {
                let counts = label_counts(truth);
                order.sort_by_key(|&row| {
                    let labels = truth.row(row as usize).iter();
                    labels.map(|&label| (counts[label.index()], label)).min()
                });
                parts(&order, |i| match protocol {
                    Protocol::Folds { folds, .. } => i % folds,
                    // Spread evenly: any run of rows has its share of those that train.
                    Protocol::HoldOut { train, .. } => {
                        let trained = |i: usize| i * cut(rows, train) / rows;
                        usize::from(trained(i + 1) == trained(i))
                    }
                })
            }
            Stratify::Iterative => match protocol {
                Protocol::Folds { folds, .. } => {
                    iterative(truth, &order, &vec![1.0 / folds as f64; folds], seed)
                }
                Protocol::HoldOut { train, .. } => {
                    iterative(truth, &order, &[train, 1.0 - train], seed)
                }
            },
        }
    }
}

/// How many of `rows` rows train in a hold-out.
fn cut(rows: usize, train: f64) -> usize {
    (rows as f64 * train).round() as usize
}

/// The part of every row, given the part of each place in an order of the rows.
fn parts(order: &[u32], part: impl Fn(usize) -> usize) -> Vec<u32> {
    let mut parts = vec![0; order.len()];
    order.iter().enumerate().for_each(|(i, &row)| parts[row as usize] = part(i) as u32);
    parts
}

/// Row numbers in an order that is a function of the seed alone.
fn shuffled(rows: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..rows as u32).collect();
    order.sort_by_cached_key(|row| (content_hash(seed, &row.to_le_bytes()), *row));
    order
}

/// Rows with each label.
fn label_counts(truth: &LabelSets) -> Vec<u32> {
    let labels = truth.ids().iter().max().map_or(0, |label| label.index() + 1);
    let mut counts = vec![0; labels];
    truth.ids().iter().for_each(|label| counts[label.index()] += 1);
    counts
}

/// Algorithm 1 of Sechidis et al.: the label with fewest rows left is dealt out first, each row to
/// the part that wants most rows of that label, then most rows; ties by chance.
fn iterative(truth: &LabelSets, order: &[u32], shares: &[f64], seed: u64) -> Vec<u32> {
    let mut left = label_counts(truth);
    let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); left.len()];
    for &row in order {
        truth.row(row as usize).iter().for_each(|y| rows_of[y.index()].push(row));
    }
    let mut parts = Parts::new(&left, truth.len(), shares, seed);
    let queued = |(y, n): (LabelId, &u32)| Reverse((*n, y));
    let labels = LabelId::all(left.len()).zip(&left);
    let mut rarest: BinaryHeap<_> = labels.filter(|l| *l.1 > 0).map(queued).collect();
    while let Some(Reverse((n, label))) = rarest.pop() {
        if n != left[label.index()] {
            // Rows of the label were placed meanwhile; it stands in the queue again.
            continue;
        }
        for &row in &rows_of[label.index()] {
            if parts.of_row[row as usize].is_some() {
                continue;
            }
            parts.place(row, Some(label), truth.row(row as usize));
            for &y in truth.row(row as usize) {
                left[y.index()] -= 1;
                rarest.push(Reverse((left[y.index()], y)));
            }
        }
    }
    for &row in order {
        if parts.of_row[row as usize].is_none() {
            parts.place(row, None, &[]);
        }
    }
    parts.of_row.into_iter().map(Option::unwrap_or_default).collect()
}

/// What every part of an iterative stratification still wants.
struct Parts {
    seed: u64,
    rows: Vec<f64>,
    /// By part, then by label.
    labels: Vec<Vec<f64>>,
    of_row: Vec<Option<u32>>,
}

impl Parts {
    fn new(label_counts: &[u32], rows: usize, shares: &[f64], seed: u64) -> Self {
        let of_labels = |share: &f64| label_counts.iter().map(|&n| share * f64::from(n)).collect();
        Parts {
            seed,
            rows: shares.iter().map(|share| share * rows as f64).collect(),
            labels: shares.iter().map(of_labels).collect(),
            of_row: vec![None; rows],
        }
    }

    /// Gives a row with these `labels` to the part that wants it most for its `label`.
    fn place(&mut self, row: u32, label: Option<LabelId>, labels: &[LabelId]) {
        let wish = |part: usize| {
            let of_label = label.map_or(0.0, |y| self.labels[part][y.index()]);
            (of_label, self.rows[part])
        };
        let chance = |part: usize| {
            let key = (u64::from(row) << 32) | part as u64;
            content_hash(self.seed, &key.to_le_bytes())
        };
        let best = (0..self.rows.len()).max_by(|&a, &b| {
            let (first, second) = (wish(a), wish(b));
            let order = first.0.total_cmp(&second.0).then(first.1.total_cmp(&second.1));
            order.then_with(|| chance(a).cmp(&chance(b)))
        });
        let Some(best) = best else { return };
        self.of_row[row as usize] = Some(best as u32);
        self.rows[best] -= 1.0;
        labels.iter().for_each(|y| self.labels[best][y.index()] -= 1.0);
    }
}

impl FromStr for Stratify {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "none" => Ok(Stratify::None),
            "iterative" => Ok(Stratify::Iterative),
            "rarest" => Ok(Stratify::Rarest),
            _ => Err(Error::usage(format!(
                "there is no stratification `{text}`; there are: none, iterative, rarest"
            ))),
        }
    }
}

impl fmt::Display for Stratify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stratify::None => "none",
            Stratify::Iterative => "iterative",
            Stratify::Rarest => "rarest",
        })
    }
}
