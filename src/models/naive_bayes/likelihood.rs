//! `sum_i ln p(x_i | g)` for all groups at once.
//!
//! Terms that are the same in every group are left out: they cancel wherever likelihoods are used.

use super::complement::GroupInput;
use super::sparse_weights::{SparseWeights, Terms};
use crate::data::{FeatureKind, FeatureSpace, MISSING_CATEGORY, Rows};
use crate::math::FixedState;
use crate::stats::{FeatureStats, Moment};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, linalg::general_mat_mul};
use std::collections::HashMap;

/// The share of the variance over all rows below which no group's variance may fall.
const FLOOR: f64 = 1e-6;
/// The share below which a group's variance is rounding noise and counts as none.
const NOISE: f64 = 1e-12;
/// Values further from the mean than this many standard deviations are taken to be this far.
const FAR: f64 = 1e6;
/// Rows of one matrix product.
const BLOCK: usize = 256;

/// Log-likelihoods of rows under a fixed list of groups.
#[derive(Debug)]
pub(super) struct Likelihood {
    groups: usize,
    constant: Vec<f64>,
    dense: Option<Dense>,
    sparse: SparseWeights,
    /// For each sparse feature, the largest absolute value taken at its word.
    limits: Vec<f64>,
    values_at: u32,
}

/// Gaussian features: `z` and `z^2` times one matrix.
#[derive(Debug)]
struct Dense {
    centre: Vec<f64>,
    inverse_sd: Vec<f64>,
    /// Rows: for each feature the weight of `z`, then for each the weight of `z^2`.
    weights: Array2<f64>,
    /// For each feature and group the part of the constant it contributed.
    constants: Array2<f64>,
}

/// The variance to use for a group: its own, or that over all rows where it has none.
pub(super) fn group_variance(moment: &Moment, pooled: f64) -> f64 {
    match moment.variance() {
        Some(own) if moment.n >= 2.0 && own > NOISE * pooled => own.max(FLOOR * pooled),
        _ => pooled,
    }
}

impl Likelihood {
    /// Parameters from the statistics of the groups and of all rows.
    pub(super) fn fit(
        input: &GroupInput,
        pooled: &FeatureStats,
        space: &FeatureSpace,
        smoothing: f64,
    ) -> Self {
        let mut constant = vec![0.0; input.groups];
        let dense = (space.dense_len() > 0).then(|| Dense::fit(input, pooled, &mut constant));
        let scales = numeric_scales(pooled, space);
        let sparse = fit_sparse(input, space, &scales, smoothing);
        for (c, (a, b)) in constant.iter_mut().zip(sparse.column_zero.iter().zip(&sparse.open_zero))
        {
            *c += a + b;
        }
        let limits = scales.iter().map(|s| FAR * s).collect();
        let values_at = space.sparse_len() as u32;
        Likelihood { groups: input.groups, constant, dense, sparse, limits, values_at }
    }

    /// How many groups there are.
    pub(super) fn groups(&self) -> usize {
        self.groups
    }

    /// Writes the log-likelihood of every row under every group into `out`, row by row.
    pub(super) fn write(&self, rows: &Rows, out: &mut Vec<f64>) {
        out.clear();
        if self.groups == 0 {
            return;
        }
        out.reserve(rows.len * self.groups);
        for _ in 0..rows.len {
            out.extend_from_slice(&self.constant);
        }
        if let Some(dense) = &self.dense {
            dense.add(rows, self.groups, out);
        }
        if rows.sparse.entries() == 0 && rows.category_width == 0 && rows.open_present.is_empty() {
            return;
        }
        for (r, out) in out.chunks_exact_mut(self.groups).enumerate() {
            if !rows.has_open(r) {
                out.iter_mut().zip(&self.sparse.open_zero).for_each(|(o, z)| *o -= z);
            }
            let (ids, values) = rows.sparse.row(r);
            for (&id, &x) in ids.iter().zip(values) {
                if x.is_nan() {
                    self.sparse.remove_zero(id, out);
                } else {
                    let limit = self.limits[id as usize];
                    self.sparse.add(id, x.clamp(-limit, limit), out);
                }
            }
            for &value in rows.category_row(r).iter().filter(|v| **v != MISSING_CATEGORY) {
                self.sparse.add(self.values_at + value, 1.0, out);
            }
        }
    }
}

impl Dense {
    fn fit(input: &GroupInput, pooled: &FeatureStats, constant: &mut [f64]) -> Self {
        let width = input.dense_width;
        let mut dense = Dense {
            centre: vec![0.0; width],
            inverse_sd: vec![1.0; width],
            weights: Array2::zeros((2 * width, input.groups)),
            constants: Array2::zeros((width, input.groups)),
        };
        for d in 0..width {
            let all = pooled.dense().get(0, d);
            let variance = all.variance().filter(|v| *v > 0.0).unwrap_or(1.0);
            let sd = variance.sqrt();
            dense.centre[d] = all.mean;
            dense.inverse_sd[d] = 1.0 / sd;
            for g in 0..input.groups {
                let moment = input.dense(g, d);
                let (mean, var) = if moment.n > 0.0 {
                    let mean = ((moment.mean - all.mean) / sd).clamp(-FAR, FAR);
                    (mean, group_variance(&moment, variance) / variance)
                } else {
                    (0.0, 1.0)
                };
                dense.weights[[d, g]] = mean / var;
                dense.weights[[width + d, g]] = -0.5 / var;
                let c = -0.5 * (var.ln() + mean * mean / var);
                dense.constants[[d, g]] = c;
                constant[g] += c;
            }
        }
        dense
    }

    /// Adds `z W_1 + z^2 W_2` to `out`; a missing value takes its constant back.
    fn add(&self, rows: &Rows, groups: usize, out: &mut [f64]) {
        let width = self.centre.len();
        let mut z = vec![0.0; BLOCK.min(rows.len) * 2 * width];
        for (block, out) in out.chunks_mut(BLOCK * groups).enumerate() {
            let len = out.len() / groups;
            let values = &rows.dense[block * BLOCK * width..][..len * width];
            for (x, z) in values.chunks_exact(width).zip(z.chunks_exact_mut(2 * width)) {
                let (linear, square) = z.split_at_mut(width);
                let scales = self.centre.iter().zip(&self.inverse_sd);
                for (((l, q), x), (c, s)) in linear.iter_mut().zip(square).zip(x).zip(scales) {
                    let value = (x - c) * s;
                    let value = if value.is_nan() { 0.0 } else { value.clamp(-FAR, FAR) };
                    *l = value;
                    *q = value * value;
                }
            }
            if rows.dense_missing {
                for (x, out) in values.chunks_exact(width).zip(out.chunks_exact_mut(groups)) {
                    for d in (0..width).filter(|&d| x[d].is_nan()) {
                        let taken = self.constants.row(d);
                        out.iter_mut().zip(taken).for_each(|(o, c)| *o -= c);
                    }
                }
            }
            let z = ArrayView2::from_shape((len, 2 * width), &z[..len * 2 * width]);
            let out = ArrayViewMut2::from_shape((len, groups), out);
            if let (Ok(z), Ok(mut out)) = (z, out) {
                general_mat_mul(1.0, &z, &self.weights, 1.0, &mut out);
            }
        }
    }
}

/// The standard deviation of every sparse numeric feature over all rows, 1 for other kinds.
fn numeric_scales(pooled: &FeatureStats, space: &FeatureSpace) -> Vec<f64> {
    let mut scales = vec![1.0; space.sparse_len()];
    for (id, scale) in scales.iter_mut().enumerate() {
        if space.sparse_kind(id as u32) != FeatureKind::Numeric {
            *scale = f64::MAX / FAR;
        }
    }
    let missing: HashMap<u32, f64, FixedState> =
        pooled.missing().into_iter().map(|(_, f, n)| (f, n.0)).collect();
    for (_, f, moment) in pooled.moments() {
        let rows = if space.sparse_is_column(f) { pooled.rows(0) } else { pooled.open_rows(0) };
        let n = rows - missing.get(&f).copied().unwrap_or(0.0);
        let all = moment.with_zeros(n - moment.n);
        scales[f as usize] = all.variance().filter(|v| *v > 0.0).unwrap_or(1.0).sqrt();
    }
    scales
}

/// What distinguishes features that say the same in every group that never saw them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Class {
    Binary { column: bool, count: u64, missing: u64 },
    Count { count: u64 },
    Numeric,
    OwnNumeric { feature: u32 },
    Value { column: u32, count: u64 },
}

fn fit_sparse(
    input: &GroupInput,
    space: &FeatureSpace,
    scales: &[f64],
    smoothing: f64,
) -> SparseWeights {
    let features = space.sparse_len();
    let count_features =
        (0..features as u32).filter(|&f| space.sparse_kind(f) == FeatureKind::Count).count() as f64;
    let observed = |g: usize, column: bool, missing: f64| {
        (if column { input.rows[g] } else { input.open_rows[g] }) - missing
    };
    let binary = |g: usize, column: bool, count: f64, missing: f64| {
        let n = observed(g, column, missing);
        let (present, absent) = (count + smoothing, (n - count).max(0.0) + smoothing);
        let total = present + absent;
        Terms { at_zero: (absent / total).ln(), linear: (present / absent).ln(), square: 0.0 }
    };
    let count = |g: usize, count: f64| Terms {
        linear: ((count + smoothing) / (input.count_totals[g] + smoothing * count_features)).ln(),
        ..Terms::default()
    };
    let numeric = |g: usize, f: u32, moment: Moment, missing: f64| {
        let scale = scales[f as usize];
        let n = observed(g, space.sparse_is_column(f), missing);
        let moment = moment.with_zeros(n - moment.n);
        let mean = (moment.mean / scale).clamp(-FAR, FAR);
        let var = group_variance(&moment, scale * scale) / (scale * scale);
        Terms {
            at_zero: -0.5 * (var.ln() + mean * mean / var),
            linear: mean / var / scale,
            // The same for all groups that never saw the feature, where it is left out.
            square: (0.5 - 0.5 / var) / (scale * scale),
        }
    };
    let value = |g: usize, column: u32, count: f64| {
        let choices = space.values_of(column).len() as f64;
        let total = input.value_totals[g * space.category_len() + column as usize];
        Terms {
            linear: ((count + smoothing) / (total + smoothing * choices)).ln(),
            ..Terms::default()
        }
    };

    let mut class_ids: HashMap<Class, u32, FixedState> = HashMap::default();
    let mut classes = Vec::new();
    let mut class_of = Vec::with_capacity(features + space.value_len());
    let mut open = Vec::with_capacity(features + space.value_len());
    let mut classify = |class: Class, is_open: bool| {
        let id = *class_ids.entry(class).or_insert_with(|| {
            classes.push(class);
            classes.len() as u32 - 1
        });
        class_of.push(id);
        open.push(is_open);
    };
    for f in 0..features as u32 {
        let column = space.sparse_is_column(f);
        let (default, missing) =
            (input.default_count[f as usize], input.default_missing[f as usize]);
        let class = match space.sparse_kind(f) {
            FeatureKind::Numeric if input.default_moment[f as usize].n == 0.0 => Class::Numeric,
            FeatureKind::Numeric => Class::OwnNumeric { feature: f },
            FeatureKind::Count => Class::Count { count: default.to_bits() },
            _ => Class::Binary { column, count: default.to_bits(), missing: missing.to_bits() },
        };
        classify(class, !column);
    }
    for v in 0..space.value_len() as u32 {
        let column = space.value_category(v).unwrap_or(0);
        classify(Class::Value { column, count: input.default_value[v as usize].to_bits() }, false);
    }

    let class_terms = |class: usize, g: usize| match classes[class] {
        Class::Binary { column, count, missing } => {
            binary(g, column, f64::from_bits(count), f64::from_bits(missing))
        }
        Class::Count { count: n } => count(g, f64::from_bits(n)),
        Class::Numeric => Terms::default(),
        Class::OwnNumeric { feature } => {
            let f = feature as usize;
            numeric(g, feature, input.default_moment[f], input.default_missing[f])
        }
        Class::Value { column, count } => value(g, column, f64::from_bits(count)),
    };
    let mut seen = Vec::with_capacity(input.seen.len() + input.values.len());
    for &(group, f, ref cell) in &input.seen {
        let (g, column) = (group as usize, space.sparse_is_column(f));
        let terms = match space.sparse_kind(f) {
            FeatureKind::Numeric => numeric(g, f, cell.moment, cell.missing),
            FeatureKind::Count => count(g, cell.count),
            _ => binary(g, column, cell.count, cell.missing),
        };
        seen.push((group, f, terms));
    }
    for &(group, v, n) in &input.values {
        let column = space.value_category(v).unwrap_or(0);
        seen.push((group, features as u32 + v, value(group as usize, column, n)));
    }
    SparseWeights::new(input.groups, class_of, &open, class_terms, seen)
}
