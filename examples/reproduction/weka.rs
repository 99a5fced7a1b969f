//! Naive Bayes of Weka, as far as it differs from `naive_bayes`: its Gaussian of a number.
//!
//! Values are rounded to a precision, the mean gap between the values that occur. The probability
//! of a value is that of the interval of this width around it, and at least 1e-75. The deviation is
//! at least a sixth of the precision, which for binary words is a sixth: without it a word that no
//! row of a label has would rule the label out.

use crate::values::each_value;
use arrow::record_batch::RecordBatch;
use labelflow::Result;
use labelflow::data::{FeatureId, Id, Vocabulary};
use std::f64::consts::{PI, SQRT_2};

/// Features as numbers, column by column; flags are 0 and 1.
pub struct Table {
    pub columns: Vec<Vec<f64>>,
    pub rows: usize,
    /// The rows with 1 of each column that has nothing but 0 and 1.
    ones: Vec<Option<Vec<u32>>>,
}

/// A label before this one in a chain: the truth of training rows and what was predicted for others.
pub struct Parent {
    pub name: String,
    pub train: Vec<bool>,
    pub test: Vec<bool>,
}

impl Table {
    /// The features of two batches, in the same columns.
    pub fn pair(train: &RecordBatch, test: &RecordBatch) -> Result<(Table, Table)> {
        let mut names = Vocabulary::default();
        let mut both = (Table::read(train, &mut names)?, Table::read(test, &mut names)?);
        for table in [&mut both.0, &mut both.1] {
            table.columns.resize(names.len(), vec![0.0; table.rows]);
            table.ones = table.columns.iter().map(|column| ones(column)).collect();
        }
        Ok(both)
    }

    fn read(batch: &RecordBatch, names: &mut Vocabulary<FeatureId>) -> Result<Table> {
        let mut table = Table { columns: Vec::new(), rows: batch.num_rows(), ones: Vec::new() };
        each_value(batch, names, |row, feature, value| table.column(feature)[row] = value)?;
        Ok(table)
    }

    fn column(&mut self, id: FeatureId) -> &mut Vec<f64> {
        let id = id.index();
        if self.columns.len() <= id {
            self.columns.resize(id + 1, vec![0.0; self.rows]);
        }
        &mut self.columns[id]
    }
}

/// The rows with 1, when there is nothing but 0 and 1.
fn ones(column: &[f64]) -> Option<Vec<u32>> {
    let binary = column.iter().all(|x| *x == 0.0 || *x == 1.0);
    binary.then(|| (0..).zip(column).filter(|(_, x)| **x == 1.0).map(|(r, _)| r).collect())
}

/// Which rows of `test` have a label, that the rows `sample` of `train` have as `target` says.
pub fn predict(
    (train, test): &(Table, Table),
    parents: &[Parent],
    target: &[bool],
    sample: &[u32],
) -> Vec<bool> {
    let mut rows = [0.0f64; 2];
    sample.iter().for_each(|&r| rows[usize::from(target[r as usize])] += 1.0);
    let mut log_odds = vec![((rows[1] + 1.0) / (rows[0] + 1.0)).ln(); test.rows];
    let mut times = vec![0.0f64; train.rows];
    sample.iter().for_each(|&r| times[r as usize] += 1.0);
    let columns = train.columns.iter().zip(&test.columns);
    for ((learn, ask), ones) in columns.zip(train.ones.iter().zip(&test.ones)) {
        if let (Some(learn), Some(ask)) = ones {
            let mut on = [0.0f64; 2];
            for &r in learn {
                on[usize::from(target[r as usize])] += times[r as usize];
            }
            let [without, with] = Normal::of_words(on, rows);
            let evidence = |x: f64| with.probability(x).ln() - without.probability(x).ln();
            let (none, one) = (evidence(0.0), evidence(1.0));
            log_odds.iter_mut().for_each(|log_odds| *log_odds += none);
            ask.iter().for_each(|&r| log_odds[r as usize] += one - none);
            continue;
        }
        let [without, with] = Normal::of_both(learn, target, sample);
        for (log_odds, &x) in log_odds.iter_mut().zip(ask) {
            *log_odds += with.probability(x).ln() - without.probability(x).ln();
        }
    }
    for parent in parents {
        // For rows without and with the label, how many have the parent; one more of each.
        let mut on = [1.0f64; 2];
        for &r in sample.iter().filter(|r| parent.train[**r as usize]) {
            on[usize::from(target[r as usize])] += 1.0;
        }
        let share = [on[0] / (rows[0] + 2.0), on[1] / (rows[1] + 2.0)];
        for (log_odds, &on) in log_odds.iter_mut().zip(&parent.test) {
            let of = |share: f64| if on { share.ln() } else { (1.0 - share).ln() };
            *log_odds += of(share[1]) - of(share[0]);
        }
    }
    log_odds.into_iter().map(|l| l > 0.0).collect()
}

struct Normal {
    mean: f64,
    deviation: f64,
    precision: f64,
}

impl Normal {
    /// Of the rows without the label and of those with it, `on` have the word.
    fn of_words(on: [f64; 2], rows: [f64; 2]) -> [Normal; 2] {
        let sum = on[0] + on[1];
        let precision = if sum > 0.0 && sum < rows[0] + rows[1] { 1.0 } else { 0.01 };
        [0, 1].map(|y| Normal::new([rows[y], on[y], on[y]], precision))
    }

    /// The values of the rows without the label and of those with it.
    fn of_both(values: &[f64], target: &[bool], sample: &[u32]) -> [Normal; 2] {
        let mut sorted: Vec<f64> = sample.iter().map(|&r| values[r as usize]).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.dedup();
        let range = sorted.last().unwrap_or(&0.0) - sorted.first().unwrap_or(&0.0);
        let precision = if sorted.len() > 1 { range / (sorted.len() - 1) as f64 } else { 0.01 };
        let mut sums = [[0.0f64; 3]; 2];
        for &r in sample {
            let x = round(values[r as usize], precision);
            let sum = &mut sums[usize::from(target[r as usize])];
            [1.0, x, x * x].into_iter().zip(sum).for_each(|(x, sum)| *sum += x);
        }
        sums.map(|sums| Normal::new(sums, precision))
    }

    /// From the number of values, their sum and that of their squares.
    fn new([n, sum, squares]: [f64; 3], precision: f64) -> Normal {
        let mean = if n > 0.0 { sum / n } else { 0.0 };
        let variance = if n > 0.0 { (squares - mean * sum).abs() / n } else { 0.0 };
        Normal { mean, deviation: variance.sqrt().max(precision / 6.0), precision }
    }

    fn probability(&self, x: f64) -> f64 {
        let at = |x: f64| below((x - self.mean) / self.deviation);
        let (x, half) = (round(x, self.precision), self.precision / 2.0);
        (at(x + half) - at(x - half)).max(1e-75)
    }
}

fn round(x: f64, precision: f64) -> f64 {
    (x / precision).round_ties_even() * precision
}

/// The share of the standard normal distribution below `z`.
fn below(z: f64) -> f64 {
    let x = z.abs() / SQRT_2;
    let tail = if x < 2.0 {
        // The series of the error function.
        let mut term = x;
        let mut sum = x;
        for n in 1..60 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        0.5 - sum / PI.sqrt()
    } else {
        // The continued fraction of its complement.
        let fraction = (1..60).rev().fold(x, |rest, n| x + f64::from(n) / 2.0 / rest);
        (-x * x).exp() / PI.sqrt() / fraction / 2.0
    };
    if z > 0.0 { 1.0 - tail } else { tail }
}
