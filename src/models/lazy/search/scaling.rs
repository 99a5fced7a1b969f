//! From raw rows to points whose coordinates can be compared.

use super::Scale;
use super::points::Points;
use crate::data::{Csr, FeatureSpace, Id, Rows};
use crate::stats::RowTable;
use std::ops::Range;

/// Coordinates beyond this count as this, so that squares and sums stay finite.
const FAR: f64 = 1e100;

/// How one feature is scaled.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Column {
    /// What is taken away first; zero for sparse features, whose zeros stay zeros.
    shift: f64,
    /// Zero for a feature that says nothing because it is the same in every stored row.
    factor: f64,
    /// The coordinate that stands for a missing value: the mean of the stored ones.
    missing: f64,
}

impl Column {
    #[inline]
    fn place(&self, x: f64) -> f64 {
        if x.is_nan() {
            self.missing
        } else if self.factor == 0.0 {
            0.0
        } else {
            let apart = x - self.shift;
            let place = if apart.is_finite() {
                apart * self.factor
            } else {
                // Halves, because finite numbers may be infinitely far apart.
                (0.5 * x - 0.5 * self.shift) * self.factor * 2.0
            };
            place.clamp(-FAR, FAR)
        }
    }
}

/// How features are scaled: derived from the stored rows, so that stores merge before it.
#[derive(Debug)]
pub(super) struct Scaling {
    dense: Vec<Column>,
    sparse: Vec<Column>,
}

/// What is gathered of one feature: extremes in the first pass, the mean in the second, the variance
/// in the third.
#[derive(Debug, Clone, Copy)]
struct Gathered {
    low: f64,
    high: f64,
    /// Known values, weighted.
    n: f64,
    /// Missing values, weighted.
    unknown: f64,
    /// The sum of values in units of the largest.
    sum: f64,
    /// The sum of the squares of their distances from the mean.
    squares: f64,
}

const NOTHING: Gathered = Gathered {
    low: f64::INFINITY,
    high: f64::NEG_INFINITY,
    n: 0.0,
    unknown: 0.0,
    sum: 0.0,
    squares: 0.0,
};

impl Gathered {
    #[inline]
    fn extreme(&mut self, x: f64, weight: f64) {
        if x.is_nan() {
            self.unknown += weight;
        } else {
            self.low = self.low.min(x);
            self.high = self.high.max(x);
            self.n += weight;
        }
    }

    /// The largest absolute value, which keeps squares finite.
    fn unit(&self) -> f64 {
        let unit = self.low.abs().max(self.high.abs());
        if unit > 0.0 && unit.is_finite() { unit } else { 1.0 }
    }

    #[inline]
    fn value(&mut self, x: f64, weight: f64) {
        if !x.is_nan() {
            self.sum += weight * (x / self.unit());
        }
    }

    #[inline]
    fn deviation(&mut self, x: f64, weight: f64) {
        if !x.is_nan() {
            let z = x / self.unit() - self.sum / self.n;
            self.squares += weight * z * z;
        }
    }

    fn column(&self, scale: Scale, shifted: bool) -> Column {
        if self.n <= 0.0 {
            return Column { shift: 0.0, factor: 0.0, missing: 0.0 };
        }
        let (unit, mean) = (self.unit(), self.sum / self.n);
        let constant = self.low == self.high;
        let (shift, factor) = match scale {
            Scale::None => (0.0, 1.0),
            // Halves, because the range of finite numbers may be infinite.
            Scale::MinMax => (self.low, 0.5 / (0.5 * self.high - 0.5 * self.low)),
            Scale::Standard => (mean * unit, 1.0 / ((self.squares / self.n).sqrt() * unit)),
        };
        let factor = match scale {
            Scale::None => factor,
            _ if constant || !factor.is_finite() => 0.0,
            _ => factor,
        };
        let shift = if shifted { shift } else { 0.0 };
        let mut column = Column { shift, factor, missing: 0.0 };
        column.missing = column.place(mean * unit);
        column
    }
}

impl Scaling {
    /// The scaling that makes the features of `table` comparable.
    pub(super) fn fit(table: &RowTable, features: &FeatureSpace, scale: Scale) -> Self {
        let rows = &table.rows;
        let mut dense = vec![NOTHING; rows.dense_width];
        let mut sparse = vec![NOTHING; features.sparse_len()];
        let mut gather = |pass: fn(&mut Gathered, f64, f64)| {
            // The zeros that are not stored: of all rows, those with no entry.
            let mut zeros = vec![table.total() as f64; sparse.len()];
            for (row, weight) in table.counts.iter().map(|&n| n as f64).enumerate() {
                let values = dense.iter_mut().zip(rows.dense_row(row));
                values.for_each(|(g, &x)| pass(g, x, weight));
                let (ids, values) = rows.sparse.row(row);
                for (&id, &x) in ids.iter().zip(values) {
                    pass(&mut sparse[id.index()], x, weight);
                    zeros[id.index()] -= weight;
                }
            }
            let absent = sparse.iter_mut().zip(zeros).filter(|(_, zeros)| *zeros > 0.0);
            absent.for_each(|(g, zeros)| pass(g, 0.0, zeros));
        };
        gather(Gathered::extreme);
        gather(Gathered::value);
        if scale == Scale::Standard {
            gather(Gathered::deviation);
        }
        let columns = |all: &[Gathered], shifted: bool| -> Vec<Column> {
            all.iter().map(|g| g.column(scale, shifted)).collect()
        };
        Scaling { dense: columns(&dense, true), sparse: columns(&sparse, false) }
    }

    /// Some of `rows` as points.
    pub(super) fn place(&self, rows: &Rows, range: Range<usize>) -> Points {
        let mut dense = Vec::with_capacity(range.len() * self.dense.len());
        let mut sparse = Csr::default();
        let mut categories = Vec::with_capacity(range.len() * rows.category_width);
        for row in range.clone() {
            let values = self.dense.iter().zip(rows.dense_row(row));
            dense.extend(values.map(|(column, &x)| column.place(x)));
            if row < rows.sparse.len() {
                let (ids, values) = rows.sparse.row(row);
                for (&id, &x) in ids.iter().zip(values) {
                    let place = self.sparse.get(id.index()).map_or(0.0, |c| c.place(x));
                    if place != 0.0 {
                        sparse.push(id, place);
                    }
                }
            }
            sparse.end_row();
            categories.extend_from_slice(rows.category_row(row));
        }
        Points::new(
            range.len(),
            (dense, self.dense.len()),
            sparse,
            (categories, rows.category_width),
        )
    }
}
