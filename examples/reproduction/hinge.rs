//! A support vector machine with the plain hinge, as that of Weka: `svm` has its square.
//!
//! It minimises `|w|^2 / 2 + sum_r max(0, 1 - y_r (x_r w + b))`, numbers scaled to the range from 0
//! to 1. The dual is solved two rows at a time, those that violate its conditions the most (Keerthi
//! and others: Improvements to Platt's SMO Algorithm for SVM Classifier Design, 2001).

use crate::weka::{Parent, Table};

/// How far conditions may be violated.
const TOLERANCE: f64 = 1e-3;
/// Steps per row after which the machine is taken as it is.
const STEPS: usize = 200;

/// The numbers of a row that are not 0, and their columns.
type Row = Vec<(usize, f64)>;

/// Which rows of `test` have a label, that the rows `sample` of `train` have as `target` says.
pub fn predict(
    (train, test): &(Table, Table),
    parents: &[Parent],
    target: &[bool],
    sample: &[u32],
) -> Vec<bool> {
    let columns = train.columns.len() + parents.len();
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
    let (weights, intercept) = fit(&learn, &signs, columns);
    ask.iter().map(|row| dot(row, &weights) + intercept > 0.0).collect()
}

fn put(rows: &mut [Row], column: usize, values: impl Iterator<Item = f64>) {
    let some = rows.iter_mut().zip(values).filter(|(_, x)| *x != 0.0);
    some.for_each(|(row, x)| row.push((column, x)));
}

fn dot(row: &Row, weights: &[f64]) -> f64 {
    row.iter().map(|&(c, x)| x * weights[c]).sum()
}

/// Weights and intercept.
fn fit(rows: &[Row], signs: &[f64], columns: usize) -> (Vec<f64>, f64) {
    let mut alpha = vec![0.0f64; rows.len()];
    // What the intercept would have to be for each row to lie on the margin.
    let mut level = signs.to_vec();
    let mut weights = vec![0.0; columns];
    let mut intercept = 0.0;
    for _ in 0..STEPS * rows.len() {
        // Rows that want a higher and a lower intercept.
        let (mut up, mut down) = (None, None);
        for (r, (&level, &sign)) in level.iter().zip(signs).enumerate() {
            let more = if sign > 0.0 { alpha[r] < 1.0 } else { alpha[r] > 0.0 };
            let less = if sign > 0.0 { alpha[r] > 0.0 } else { alpha[r] < 1.0 };
            if more && up.is_none_or(|(_, best)| level > best) {
                up = Some((r, level));
            }
            if less && down.is_none_or(|(_, best)| level < best) {
                down = Some((r, level));
            }
        }
        let (Some((i, high)), Some((j, low))) = (up, down) else {
            // All rows are of one side.
            return (weights, signs.first().copied().unwrap_or(-1.0));
        };
        intercept = (high + low) / 2.0;
        if high - low < 2.0 * TOLERANCE {
            break;
        }
        let mut change = vec![0.0; columns];
        rows[i].iter().for_each(|&(c, x)| change[c] += x);
        rows[j].iter().for_each(|&(c, x)| change[c] -= x);
        let curvature: f64 = change.iter().map(|x| x * x).sum();
        let room = |r: usize, side: f64| if side > 0.0 { 1.0 - alpha[r] } else { alpha[r] };
        let most = room(i, signs[i]).min(room(j, -signs[j]));
        let step = ((high - low) / curvature.max(1e-12)).min(most);
        alpha[i] = (alpha[i] + signs[i] * step).clamp(0.0, 1.0);
        alpha[j] = (alpha[j] - signs[j] * step).clamp(0.0, 1.0);
        change.iter_mut().for_each(|x| *x *= step);
        weights.iter_mut().zip(&change).for_each(|(w, x)| *w += x);
        level.iter_mut().zip(rows).for_each(|(level, row)| *level -= dot(row, &change));
    }
    (weights, intercept)
}
