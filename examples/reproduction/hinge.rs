//! A support vector machine with the plain hinge, as that of Weka: `svm` has its square.
//!
//! It minimises `|w|^2 / 2 + sum_r max(0, 1 - y_r x_r w)`, numbers scaled to the range from 0 to 1 and
//! a column of ones for the intercept, by descent along the coordinates of the dual (Hsieh and
//! others: A Dual Coordinate Descent Method for Large-scale Linear SVM, 2008).

use crate::weka::{Parent, Table};
use labelflow::math::content_hash;

/// How far the conditions of the minimum may be violated.
const TOLERANCE: f64 = 0.1;
/// Passes over the rows after which the machine is taken as it is.
const PASSES: u64 = 300;

/// The numbers of a row that are not 0, and their columns.
type Row = Vec<(usize, f64)>;

/// Which rows of `test` have a label, that the rows `sample` of `train` have as `target` says.
pub fn predict(
    (train, test): &(Table, Table),
    parents: &[Parent],
    target: &[bool],
    sample: &[u32],
) -> Vec<bool> {
    let mut learn: Vec<Row> = vec![Vec::new(); sample.len()];
    let mut ask: Vec<Row> = vec![Vec::new(); test.rows];
    for (c, (train, test)) in train.columns.iter().zip(&test.columns).enumerate() {
        let values = || sample.iter().map(|&r| train[r as usize]);
        let low = values().fold(f64::INFINITY, f64::min);
        let range = values().fold(f64::NEG_INFINITY, f64::max) - low;
        if range > 0.0 {
            put(&mut learn, c, values().map(|x| (x - low) / range));
            put(&mut ask, c, test.iter().map(|x| (x - low) / range));
        }
    }
    for (c, parent) in (train.columns.len()..).zip(parents) {
        put(&mut learn, c, sample.iter().map(|&r| f64::from(parent.train[r as usize])));
        put(&mut ask, c, parent.test.iter().map(|&on| f64::from(on)));
    }
    let sign = |&r: &u32| if target[r as usize] { 1.0 } else { -1.0 };
    let signs: Vec<f64> = sample.iter().map(sign).collect();
    let ones = train.columns.len() + parents.len();
    put(&mut learn, ones, std::iter::repeat(1.0));
    put(&mut ask, ones, std::iter::repeat(1.0));
    let weights = fit(&learn, &signs, ones + 1);
    ask.iter().map(|row| dot(row, &weights) > 0.0).collect()
}

fn put(rows: &mut [Row], column: usize, values: impl Iterator<Item = f64>) {
    let some = rows.iter_mut().zip(values).filter(|(_, x)| *x != 0.0);
    some.for_each(|(row, x)| row.push((column, x)));
}

fn dot(row: &Row, weights: &[f64]) -> f64 {
    row.iter().map(|&(c, x)| x * weights[c]).sum()
}

/// The weights of the columns.
fn fit(rows: &[Row], signs: &[f64], columns: usize) -> Vec<f64> {
    let mut weights = vec![0.0; columns];
    let mut alpha = vec![0.0f64; rows.len()];
    let squares: Vec<f64> =
        rows.iter().map(|row| row.iter().map(|(_, x)| x * x).sum::<f64>()).collect();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    for pass in 0..PASSES {
        order.sort_by_cached_key(|r| content_hash(pass, &r.to_le_bytes()));
        let mut violated = 0.0f64;
        for &r in &order {
            let gradient = signs[r] * dot(&rows[r], &weights) - 1.0;
            let new = (alpha[r] - gradient / squares[r]).clamp(0.0, 1.0);
            let step = new - alpha[r];
            if step != 0.0 {
                violated = violated.max(gradient.abs());
                alpha[r] = new;
                rows[r].iter().for_each(|&(c, x)| weights[c] += step * signs[r] * x);
            }
        }
        if violated < TOLERANCE {
            break;
        }
    }
    weights
}
