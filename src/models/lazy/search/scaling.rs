//! From raw rows to points whose coordinates can be compared.

use super::Scale;
use super::points::Points;
use crate::data::{Csr, FeatureSpace, Rows};
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
            ((x - self.shift) * self.factor).clamp(-FAR, FAR)
        }
    }
}

/// How features are scaled: derived from the stored rows, so that stores merge before it.
#[derive(Debug)]
pub(super) struct Scaling {
    dense: Vec<Column>,
    sparse: Vec<Column>,
}

/// What is gathered of one feature: extremes in the first pass, moments in the second.
#[derive(Debug, Clone, Copy)]
struct Gathered {
    low: f64,
    high: f64,
    /// Known values, weighted.
    n: f64,
    /// Missing values, weighted.
    unknown: f64,
    /// Sum, and sum of squares, of values in units of the largest.
    sum: f64,
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

    /// Adds the zeros that are not stored: of `total` rows, those with no entry.
    fn zeros(&mut self, total: f64) {
        let zeros = total - self.n - self.unknown;
        if zeros > 0.0 {
            self.extreme(0.0, zeros);
        }
    }

    /// The largest absolute value, which keeps squares finite.
    fn unit(&self) -> f64 {
        let unit = self.low.abs().max(self.high.abs());
        if unit > 0.0 && unit.is_finite() { unit } else { 1.0 }
    }

    #[inline]
    fn moment(&mut self, x: f64, weight: f64) {
        if !x.is_nan() {
            let z = x / self.unit();
            self.sum += weight * z;
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
            Scale::Standard => {
                let variance = (self.squares / self.n - mean * mean).max(0.0);
                (mean * unit, 1.0 / (variance.sqrt() * unit))
            }
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
        let weights = || table.counts.iter().map(|&n| n as f64).enumerate();
        let mut dense = vec![NOTHING; rows.dense_width];
        let mut sparse = vec![NOTHING; features.sparse_len()];
        for (row, weight) in weights() {
            let values = dense.iter_mut().zip(rows.dense_row(row));
            values.for_each(|(g, &x)| g.extreme(x, weight));
            let (ids, values) = rows.sparse.row(row);
            let entries = ids.iter().zip(values);
            entries.for_each(|(&id, &x)| sparse[id as usize].extreme(x, weight));
        }
        let total = table.total() as f64;
        sparse.iter_mut().for_each(|g| g.zeros(total));
        for (row, weight) in weights() {
            let values = dense.iter_mut().zip(rows.dense_row(row));
            values.for_each(|(g, &x)| g.moment(x, weight));
            let (ids, values) = rows.sparse.row(row);
            let entries = ids.iter().zip(values);
            entries.for_each(|(&id, &x)| sparse[id as usize].moment(x, weight));
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
                    let place = self.sparse.get(id as usize).map_or(0.0, |c| c.place(x));
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
