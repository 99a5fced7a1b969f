//! Features as linear methods want them: scaled, without gaps, categories as columns.

use super::design::Design;
use crate::data::{FeatureId, FeatureSpace, Id, MISSING_CATEGORY, Remap, Rows};
use crate::error::{Error, Result};
use crate::stats::{State, StateReader, StateWriter};
use std::ops::Range;

/// Numbers further from the mean than this many standard deviations are taken to be this far, and
/// sparse values larger than this many times the largest that was learned as that large.
const FAR: f64 = 1e4;
/// The factors by which a penalty may differ from column to column.
const RIDGE: (f64, f64) = (1e-12, 1e12);
/// The smallest unit: its inverse is finite.
const TINY: f64 = 1e-300;

/// What is done to features before they are learned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::models) enum Prepare {
    /// Nothing that can be seen: the objective is that of the features as they are.
    None,
    /// Unit variance; dense features are centred too.
    Standard,
    /// Sparse features by how few rows have them (`tf * idf`), rows of them to unit length.
    Tfidf,
}

/// The preparation of the features of one model, fitted on its training rows.
///
/// Columns are always scaled inside, and penalties with them, so that the solver sees numbers of one
/// size: with [`Prepare::None`] the minimum is that of the raw features.
///
/// # Nulls
///
/// A missing number or flag is taken to be the mean over the training rows, a missing category
/// value to be none of those that are known, a missing map or token list to be empty.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::models) struct Preparation {
    prepare: Prepare,
    /// For each dense feature `z = (x * unit - mean) * factor`.
    unit: Vec<f64>,
    mean: Vec<f64>,
    factor: Vec<f64>,
    /// For each sparse feature what its value is multiplied by.
    sparse_factor: Vec<f64>,
    /// For each sparse feature its mean, where a value may be missing.
    sparse_mean: Vec<f64>,
}

impl Preparation {
    /// The preparation fitted on `rows`, which count `weights`, and the ridge of each column.
    pub(super) fn fit(
        prepare: Prepare,
        rows: &Rows,
        weights: &[f64],
        space: &FeatureSpace,
    ) -> (Self, Vec<f64>) {
        let width = space.dense_len();
        let mut it = Preparation {
            prepare,
            unit: vec![1.0; width],
            mean: vec![0.0; width],
            factor: vec![0.0; width],
            sparse_factor: Vec::new(),
            sparse_mean: Vec::new(),
        };
        let mut ridge = Vec::with_capacity(width + space.sparse_len() + space.value_len());
        for d in 0..width {
            let column = || (0..rows.len).map(|r| rows.dense[r * rows.dense_width + d]);
            let seen = || column().zip(weights).filter(|(x, w)| !x.is_nan() && **w > 0.0);
            let unit = 1.0 / seen().map(|(x, _)| x.abs()).fold(TINY, f64::max);
            let total: f64 = seen().map(|(_, w)| w).sum();
            let mean = seen().map(|(x, w)| x * unit * w).sum::<f64>() / total.max(TINY);
            let square = |(x, w): (f64, &f64)| w * (x * unit - mean) * (x * unit - mean);
            let sd = (seen().map(square).sum::<f64>() / total.max(TINY)).sqrt();
            // In units of the largest value, a smaller deviation is rounding.
            let factor = if sd > 1e-12 { 1.0 / sd } else { 0.0 };
            (it.unit[d], it.mean[d], it.factor[d]) = (unit, mean, factor);
            ridge.push(if prepare == Prepare::Standard { 1.0 } else { square_of(unit * factor) });
        }
        it.fit_sparse(rows, weights, space, &mut ridge);
        ridge.extend(std::iter::repeat_n(1.0, space.value_len()));
        (it, ridge)
    }

    /// The preparation of no features.
    pub(super) fn none() -> Self {
        Preparation {
            prepare: Prepare::None,
            unit: Vec::new(),
            mean: Vec::new(),
            factor: Vec::new(),
            sparse_factor: Vec::new(),
            sparse_mean: Vec::new(),
        }
    }

    fn fit_sparse(
        &mut self,
        rows: &Rows,
        weights: &[f64],
        space: &FeatureSpace,
        ridge: &mut Vec<f64>,
    ) {
        let n = space.sparse_len();
        let total: f64 = weights.iter().sum();
        let mut largest = vec![0.0f64; n];
        // In units of the largest value: sums, squares, rows with an entry, rows without a value.
        let (mut sum, mut squares) = (vec![0.0; n], vec![0.0; n]);
        let (mut entries, mut missing) = (vec![0.0; n], vec![0.0; n]);
        let each = |visit: &mut dyn FnMut(usize, f64, f64)| {
            for row in (0..rows.sparse.len()).filter(|&r| weights[r] > 0.0) {
                let (ids, values) = rows.sparse.row(row);
                ids.iter().zip(values).for_each(|(f, &x)| visit(f.index(), x, weights[row]));
            }
        };
        each(&mut |f, x, _| largest[f] = largest[f].max(if x.is_nan() { 0.0 } else { x.abs() }));
        each(&mut |f, x, w| {
            if x.is_nan() {
                missing[f] += w;
            } else {
                let t = x / largest[f].max(TINY);
                sum[f] += w * t;
                squares[f] += w * t * t;
                entries[f] += w;
            }
        });
        self.sparse_mean = vec![0.0; n];
        self.sparse_factor = vec![0.0; n];
        for f in 0..n {
            let (unit, seen) = (1.0 / largest[f].max(TINY), total - missing[f]);
            let mean = if seen > 0.0 { sum[f] / seen } else { 0.0 };
            self.sparse_mean[f] = mean / unit;
            let (factor, penalty) = match self.prepare {
                Prepare::None => (unit, square_of(unit)),
                Prepare::Standard => {
                    let sd = (squares[f] / seen.max(TINY) - mean * mean).max(0.0).sqrt();
                    (if sd > 1e-6 { unit / sd } else { 0.0 }, 1.0)
                }
                Prepare::Tfidf => (((1.0 + total) / (1.0 + entries[f])).ln() + 1.0, 1.0),
            };
            self.sparse_factor[f] = if largest[f] > 0.0 { factor } else { 0.0 };
            ridge.push(penalty);
        }
    }

    /// How many sparse features there are.
    pub(super) fn sparse_len(&self) -> usize {
        self.sparse_factor.len()
    }

    /// How many columns features make.
    pub(super) fn width(&self, values: usize) -> usize {
        self.unit.len() + self.sparse_factor.len() + values
    }

    /// The dense features of some rows, prepared, row by row.
    pub(super) fn dense(&self, rows: &Rows, range: Range<usize>, out: &mut Vec<f64>) {
        out.clear();
        for row in range {
            for (d, &x) in rows.dense_row(row).iter().enumerate() {
                let z = (x * self.unit[d] - self.mean[d]) * self.factor[d];
                out.push(if x.is_nan() { 0.0 } else { z.clamp(-FAR, FAR) });
            }
        }
    }

    /// Calls `visit` with column (counted after the dense ones) and value of every sparse entry of
    /// row `row`, category values after the features.
    pub(super) fn sparse(&self, rows: &Rows, row: usize, mut visit: impl FnMut(u32, f64)) {
        if row < rows.sparse.len() {
            let (ids, values) = rows.sparse.row(row);
            let value = |f: FeatureId, x: f64| {
                let x = if x.is_nan() { self.sparse_mean[f.index()] } else { x };
                x * self.sparse_factor[f.index()]
            };
            let length = match self.prepare {
                Prepare::Tfidf => length(ids.iter().zip(values).map(|(&f, &x)| value(f, x))),
                Prepare::None | Prepare::Standard => 1.0,
            };
            for (&f, &x) in ids.iter().zip(values) {
                let t = value(f, x) / length;
                if t != 0.0 {
                    visit(f.0, t.clamp(-FAR, FAR));
                }
            }
        }
        let values_at = self.sparse_factor.len() as u32;
        for &value in rows.category_row(row).iter().filter(|v| **v != MISSING_CATEGORY) {
            visit(values_at + value.0, 1.0);
        }
    }

    /// All rows as a design; with `labels` labels, those of each row are columns after the others.
    pub(super) fn design(
        &self,
        rows: &Rows,
        ridge: &[f64],
        values: usize,
        labels: usize,
    ) -> Design {
        let dense_width = self.unit.len();
        let sparse_width = self.sparse_factor.len() + values;
        let mut design = Design {
            dense_width,
            sparse_width: sparse_width + labels,
            offsets: vec![0],
            ridge: ridge.iter().copied().chain(std::iter::repeat_n(1.0, labels)).collect(),
            ..Design::default()
        };
        self.dense(rows, 0..rows.len, &mut design.dense);
        for row in 0..rows.len {
            self.sparse(rows, row, |id, x| design.push(id, x));
            if labels > 0 {
                let set = rows.labels.row(row);
                set.iter().for_each(|y| design.push(sparse_width as u32 + y.0, 1.0));
            }
            design.end_row();
        }
        design.finish()
    }

    /// The same preparation under new numbers of features.
    pub(super) fn remap(&self, ids: &Remap) -> Self {
        let move_to = |values: &[f64]| {
            let len = ids.sparse.iter().filter(|i| **i != FeatureId::NONE).count();
            let mut out = vec![0.0; len];
            for (&v, &id) in values.iter().zip(&ids.sparse) {
                if let Some(slot) = out.get_mut(id.index()) {
                    *slot = v;
                }
            }
            out
        };
        Preparation {
            sparse_factor: move_to(&self.sparse_factor),
            sparse_mean: move_to(&self.sparse_mean),
            ..self.clone()
        }
    }

    pub(super) fn encode(&self) -> State {
        let mut writer = StateWriter::default();
        writer.f64s("unit", self.unit.iter().copied());
        writer.f64s("mean", self.mean.iter().copied());
        writer.f64s("factor", self.factor.iter().copied());
        writer.f64s("sparse_factor", self.sparse_factor.iter().copied());
        writer.f64s("sparse_mean", self.sparse_mean.iter().copied());
        writer.finish()
    }

    pub(super) fn decode(prepare: Prepare, space: &FeatureSpace, state: &State) -> Result<Self> {
        let reader = StateReader::new(state);
        let read = |name: &str, len: usize| -> Result<Vec<f64>> {
            let values = reader.f64s(name)?;
            if values.len() != len || values.iter().any(|v| !v.is_finite()) {
                return Err(Error::corrupt(format!(
                    "the model's field `{name}` does not fit its features"
                )));
            }
            Ok(values.to_vec())
        };
        let (dense, sparse) = (space.dense_len(), space.sparse_len());
        Ok(Preparation {
            prepare,
            unit: read("unit", dense)?,
            mean: read("mean", dense)?,
            factor: read("factor", dense)?,
            sparse_factor: read("sparse_factor", sparse)?,
            sparse_mean: read("sparse_mean", sparse)?,
        })
    }

    pub(super) fn heap_size(&self) -> usize {
        24 * self.unit.capacity() + 16 * self.sparse_factor.capacity()
    }
}

/// The ridge of a column that was multiplied by `factor`; 1 for a column without variance.
fn square_of(factor: f64) -> f64 {
    if factor == 0.0 { 1.0 } else { (factor * factor).clamp(RIDGE.0, RIDGE.1) }
}

/// The Euclidean length of `values`, or 1 where that is 0.
fn length(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = values.clone().map(f64::abs).fold(0.0, f64::max);
    if largest == 0.0 || !largest.is_finite() {
        return 1.0;
    }
    let squares: f64 = values.map(|v| (v / largest) * (v / largest)).sum();
    squares.sqrt() * largest
}
