//! The design matrix that many binary problems share.

use super::loss::Loss;

/// Rows of numbers: dense columns first, then sparse ones, then an intercept that is always one.
///
/// A vector over the columns holds `LANES` problems side by side, so that every index and value of
/// the matrix is read once for all of them.
#[derive(Debug, Clone, Default)]
pub(in crate::models) struct Design {
    pub(super) rows: usize,
    /// Row by row.
    pub(super) dense: Vec<f64>,
    pub(super) dense_width: usize,
    pub(super) offsets: Vec<usize>,
    /// Numbered from 0 after the dense columns.
    pub(super) ids: Vec<u32>,
    pub(super) values: Vec<f64>,
    pub(super) sparse_width: usize,
    /// For each column (without the intercept), what the penalty of its weight is multiplied by.
    pub(super) ridge: Vec<f64>,
    /// Whether every sparse value is one, and their sum of squares.
    pub(super) ones: bool,
    pub(super) squares: f64,
}

/// What one problem asks of a pass over the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// Loss and gradient at the vector; the curvatures are kept.
    Gradient,
    /// The Hessian at the kept curvatures times the vector.
    Curvature,
}

/// The numbers of every row that a pass reads and writes, for `LANES` problems.
#[derive(Debug)]
pub(super) struct RowState<const LANES: usize> {
    /// The weight of the row, negative where the label is absent.
    pub(super) signed: Vec<[f64; LANES]>,
    pub(super) curvature: Vec<[f64; LANES]>,
}

impl Design {
    /// How many columns there are, the intercept included.
    pub(in crate::models) fn width(&self) -> usize {
        self.dense_width + self.sparse_width + 1
    }

    /// Adds entry `value` in column `id` (counted after the dense ones) to the open row.
    pub(super) fn push(&mut self, id: u32, value: f64) {
        self.ids.push(id);
        self.values.push(value);
    }

    /// Closes the open row.
    pub(super) fn end_row(&mut self) {
        self.rows += 1;
        self.offsets.push(self.ids.len());
    }

    /// Closes the matrix.
    pub(super) fn finish(mut self) -> Self {
        self.ones = self.values.iter().all(|v| *v == 1.0);
        self.squares = self.values.iter().map(|v| v * v).sum();
        self
    }

    /// The mean over sparse columns of their sums of squares.
    pub(super) fn mean_square(&self) -> f64 {
        self.squares / self.sparse_width.max(1) as f64
    }

    fn sparse_row(&self, row: usize) -> (&[u32], &[f64]) {
        let range = self.offsets[row]..self.offsets[row + 1];
        (&self.ids[range.clone()], &self.values[range])
    }

    /// For each problem, `sum_r x_r u_r` where `u_r` comes from `z_r = x_r v` as the problem asks;
    /// returns the losses of those that ask for a gradient.
    ///
    /// Sums run over rows in their order and columns in theirs, whatever `LANES` is.
    pub(super) fn pass<const LANES: usize, L: Loss>(
        &self,
        vector: &[[f64; LANES]],
        asks: &[Ask; LANES],
        state: &mut RowState<LANES>,
        out: &mut [[f64; LANES]],
    ) -> [f64; LANES] {
        out.fill([0.0; LANES]);
        let mut losses = [0.0; LANES];
        let curvature_only = asks.iter().all(|a| *a == Ask::Curvature);
        let intercept = vector.len() - 1;
        let (dense_in, sparse_in) = vector.split_at(self.dense_width);
        let (dense_out, sparse_out) = out.split_at_mut(self.dense_width);
        let sparse_intercept = intercept - self.dense_width;
        let ones = self.ones;
        for row in 0..self.rows {
            let dense = &self.dense[row * self.dense_width..(row + 1) * self.dense_width];
            let (ids, values) = self.sparse_row(row);
            let mut z = sparse_in[sparse_intercept];
            for (x, v) in dense.iter().zip(dense_in) {
                add(&mut z, *x, v);
            }
            if ones {
                ids.iter().for_each(|&id| add_one(&mut z, &sparse_in[id as usize]));
            } else {
                for (&id, &x) in ids.iter().zip(values) {
                    add(&mut z, x, &sparse_in[id as usize]);
                }
            }
            let curvature = &mut state.curvature[row];
            let mut u = [0.0; LANES];
            for k in 0..LANES {
                u[k] = curvature[k] * z[k];
            }
            if !curvature_only {
                for k in (0..LANES).filter(|&k| asks[k] == Ask::Gradient) {
                    let signed = state.signed[row][k];
                    let at = L::at(if signed < 0.0 { -z[k] } else { z[k] });
                    let weight = signed.abs();
                    losses[k] += weight * at.loss;
                    u[k] = signed * at.slope;
                    curvature[k] = weight * at.curvature;
                }
            }
            for (x, o) in dense.iter().zip(&mut *dense_out) {
                add(o, *x, &u);
            }
            if ones {
                ids.iter().for_each(|&id| add_one(&mut sparse_out[id as usize], &u));
            } else {
                for (&id, &x) in ids.iter().zip(values) {
                    add(&mut sparse_out[id as usize], x, &u);
                }
            }
            add_one(&mut sparse_out[sparse_intercept], &u);
        }
        losses
    }

    /// `x_r w` for every row.
    pub(super) fn times(&self, weights: &[f64]) -> Vec<f64> {
        let intercept = weights.last().copied().unwrap_or(0.0);
        let (dense_in, sparse_in) = weights.split_at(self.dense_width);
        let of_row = |row: usize| {
            let dense = &self.dense[row * self.dense_width..(row + 1) * self.dense_width];
            let (ids, values) = self.sparse_row(row);
            let dense: f64 = dense.iter().zip(dense_in).map(|(x, w)| x * w).sum();
            let sparse: f64 = ids.iter().zip(values).map(|(&i, x)| x * sparse_in[i as usize]).sum();
            intercept + dense + sparse
        };
        (0..self.rows).map(of_row).collect()
    }
}

#[inline(always)]
fn add<const LANES: usize>(sum: &mut [f64; LANES], x: f64, v: &[f64; LANES]) {
    for k in 0..LANES {
        sum[k] += x * v[k];
    }
}

#[inline(always)]
fn add_one<const LANES: usize>(sum: &mut [f64; LANES], v: &[f64; LANES]) {
    for k in 0..LANES {
        sum[k] += v[k];
    }
}
