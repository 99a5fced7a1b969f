//! `sum_i ln p(x_i | g)` for all groups at once.
//!
//! Terms that are the same in every group are left out: they cancel wherever likelihoods are used.

mod groups;
mod sparse_weights;
mod telling;

pub(super) use groups::GroupInput;
pub(super) use telling::telling;

use crate::data::{FeatureId, FeatureKind, FeatureSpace, Id, MISSING_CATEGORY, Rows, ValueId};
use crate::math::FixedState;
use crate::stats::{FeatureStats, Moment, OneGroup};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, linalg::general_mat_mul};
use sparse_weights::{SparseWeights, Terms};
use std::collections::HashMap;
use std::ops::Range;

/// The share of the variance over all rows below which no group's variance may fall.
pub(super) const FLOOR: f64 = 1e-6;
/// The share below which a group's variance is rounding noise and counts as none.
pub(super) const NOISE: f64 = 1e-12;
/// Values further from the mean than this many standard deviations are taken to be this far.
pub(super) const FAR: f64 = 1e4;
/// Counts above this are taken to be this.
const MANY: f64 = 1e12;
/// Rows of one matrix product.
const BLOCK: usize = 256;

/// Log-likelihoods of rows under a fixed list of groups.
#[derive(Debug)]
pub(in crate::models) struct Likelihood {
    groups: usize,
    constant: Vec<f64>,
    dense: Option<Dense>,
    sparse: SparseWeights,
    scales: Vec<Scale>,
    values_at: u32,
}

/// The unit of a sparse feature: numbers are centred and scaled, counts are taken as they are.
#[derive(Debug, Clone, Copy)]
struct Scale {
    centre: f64,
    /// The standard deviation over all rows.
    sd: f64,
    limit: f64,
}

impl Scale {
    fn of(self, x: f64) -> f64 {
        ((x - self.centre) / self.sd).clamp(-self.limit, self.limit)
    }
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
fn group_variance(moment: &Moment, pooled: f64) -> f64 {
    match moment.variance() {
        Some(own) if moment.n >= 2.0 && own > NOISE * pooled => own.max(FLOOR * pooled),
        _ => pooled,
    }
}

impl Likelihood {
    /// Parameters from the statistics of the groups and of all rows.
    pub(in crate::models) fn fit(
        input: &GroupInput,
        pooled: &FeatureStats<OneGroup>,
        space: &FeatureSpace,
        smoothing: f64,
    ) -> Self {
        let mut constant = vec![0.0; input.groups];
        let dense = (space.dense_len() > 0).then(|| Dense::fit(input, pooled, &mut constant));
        let scales = numeric_scales(pooled, space);
        let sparse = fit_sparse(input, space, &scales, smoothing);
        constant.iter_mut().zip(sparse.all_zero()).for_each(|(c, z)| *c += z);
        let values_at = space.sparse_len() as u32;
        Likelihood { groups: input.groups, constant, dense, sparse, scales, values_at }
    }

    /// What this says of each group less what `other` says of it, as one product; `None` where that
    /// would take more memory than both. Both have the same groups, features and pooled statistics.
    pub(in crate::models) fn minus(&self, other: &Self) -> Option<Self> {
        let dense = match (&self.dense, &other.dense) {
            (Some(a), Some(b)) => Some(Dense {
                centre: a.centre.clone(),
                inverse_sd: a.inverse_sd.clone(),
                weights: &a.weights - &b.weights,
                constants: &a.constants - &b.constants,
            }),
            _ => None,
        };
        let constant = self.constant.iter().zip(&other.constant).map(|(a, b)| a - b).collect();
        let sparse = self.sparse.minus(&other.sparse)?;
        let (scales, values_at) = (self.scales.clone(), self.values_at);
        Some(Likelihood { groups: self.groups, constant, dense, sparse, scales, values_at })
    }

    /// How many groups there are.
    pub(in crate::models) fn groups(&self) -> usize {
        self.groups
    }

    /// Writes the log-likelihood of some rows under every group into `out`, row by row.
    pub(in crate::models) fn write(&self, rows: &Rows, range: Range<usize>, out: &mut Vec<f64>) {
        Self::write_each(rows, range, &mut [(self, out)]);
    }

    /// As [`Likelihood::write`] for several that have the same features and pooled statistics:
    /// numbers are centred and scaled once for all of them.
    pub(in crate::models) fn write_each(
        rows: &Rows,
        range: Range<usize>,
        each: &mut [(&Self, &mut Vec<f64>)],
    ) {
        for (likelihood, out) in each.iter_mut() {
            out.clear();
            for _ in range.clone() {
                out.extend_from_slice(&likelihood.constant);
            }
        }
        Dense::add_each(rows, range.clone(), each);
        if rows.sparse.entries() == 0 && rows.category_width == 0 && rows.open_present.is_empty() {
            return;
        }
        for (likelihood, out) in each {
            likelihood.add_sparse(rows, range.clone(), out);
        }
    }

    /// Adds what flags, counts, words and categories say of each row to `out`.
    fn add_sparse(&self, rows: &Rows, range: Range<usize>, out: &mut [f64]) {
        for (r, out) in range.zip(out.chunks_exact_mut(self.groups.max(1))) {
            for open in (0..rows.open_width as u32).filter(|&o| !rows.has_open(r, o)) {
                self.sparse.remove_open(open, out);
            }
            let (ids, values) = rows.sparse.row(r);
            for (&id, &x) in ids.iter().zip(values) {
                if x.is_nan() {
                    self.sparse.remove_zero(id.0, out);
                } else {
                    self.sparse.add(id.0, self.scales[id.index()].of(x), out);
                }
            }
            for &value in rows.category_row(r).iter().filter(|v| **v != MISSING_CATEGORY) {
                self.sparse.add(self.values_at + value.0, 1.0, out);
            }
        }
    }
}

impl Dense {
    fn fit(input: &GroupInput, pooled: &FeatureStats<OneGroup>, constant: &mut [f64]) -> Self {
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
            for (g, constant) in constant.iter_mut().enumerate() {
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
                *constant += c;
            }
        }
        dense
    }

    /// Adds what numbers say of each row to the place of each likelihood.
    fn add_each(rows: &Rows, range: Range<usize>, each: &mut [(&Likelihood, &mut Vec<f64>)]) {
        let Some(Some(first)) = each.first().map(|(likelihood, _)| &likelihood.dense) else {
            return;
        };
        let width = first.centre.len();
        let mut z = vec![0.0; BLOCK.min(range.len()) * 2 * width];
        for start in range.clone().step_by(BLOCK) {
            let len = BLOCK.min(range.end - start);
            let values = &rows.dense[start * width..][..len * width];
            let z = &mut z[..len * 2 * width];
            first.standardise(values, z);
            for (likelihood, out) in each.iter_mut() {
                let groups = likelihood.groups;
                let Some(dense) = likelihood.dense.as_ref().filter(|_| groups > 0) else {
                    continue;
                };
                let out = &mut out[(start - range.start) * groups..][..len * groups];
                if rows.dense_missing {
                    dense.take_back(values, out);
                }
                dense.add(z, out);
            }
        }
    }

    /// Writes `z` and `z^2` of each row.
    fn standardise(&self, values: &[f64], z: &mut [f64]) {
        let width = self.centre.len();
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
    }

    /// Adds `z W_1 + z^2 W_2` to `out`.
    fn add(&self, z: &[f64], out: &mut [f64]) {
        let (width, groups) = self.weights.dim();
        let z = ArrayView2::from_shape((z.len() / width, width), z);
        let out = ArrayViewMut2::from_shape((out.len() / groups, groups), out);
        if let (Ok(z), Ok(mut out)) = (z, out) {
            general_mat_mul(1.0, &z, &self.weights, 1.0, &mut out);
        }
    }

    /// Takes the constants of missing values away.
    fn take_back(&self, values: &[f64], out: &mut [f64]) {
        let (width, groups) = self.constants.dim();
        for (x, out) in values.chunks_exact(width).zip(out.chunks_exact_mut(groups)) {
            for d in (0..width).filter(|&d| x[d].is_nan()) {
                let taken = self.constants.row(d);
                out.iter_mut().zip(taken).for_each(|(o, c)| *o -= c);
            }
        }
    }
}

/// The mean and standard deviation of every sparse number over all rows, zeros included.
fn numeric_scales(pooled: &FeatureStats<OneGroup>, space: &FeatureSpace) -> Vec<Scale> {
    let mut scales = vec![Scale { centre: 0.0, sd: 1.0, limit: MANY }; space.sparse_len()];
    let missing: HashMap<FeatureId, f64, FixedState> =
        pooled.missing().into_iter().map(|(_, f, n)| (f, n.0)).collect();
    for (_, f, moment) in pooled.moments() {
        let rows = match space.sparse_open(f) {
            Some(open) => pooled.open_rows(0, open),
            None => pooled.rows(0),
        };
        let n = rows - missing.get(&f).copied().unwrap_or(0.0);
        let all = moment.with_zeros(n - moment.n);
        let sd = all.variance().filter(|v| *v > 0.0).unwrap_or(1.0).sqrt();
        scales[f.index()] = Scale { centre: all.mean, sd, limit: FAR };
    }
    scales
}

/// What distinguishes features that say the same in every group that never saw them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Class {
    Binary {
        open: Option<u32>,
        count: u64,
        missing: u64,
    },
    Count {
        count: u64,
    },
    /// A number never seen in a group whose rows are there: zero in all of them.
    Zero,
    Number {
        feature: FeatureId,
    },
    Value {
        column: u32,
        count: u64,
    },
}

/// The terms of sparse features and category values from their statistics.
struct TermsOf<'a> {
    input: &'a GroupInput,
    space: &'a FeatureSpace,
    scales: &'a [Scale],
    smoothing: f64,
    count_features: f64,
}

impl TermsOf<'_> {
    /// The rows of group `g` in which a feature was observed.
    fn observed(&self, g: usize, open: Option<u32>, missing: f64) -> f64 {
        self.input.observed(g, open, missing, self.space)
    }

    fn binary(&self, g: usize, open: Option<u32>, count: f64, missing: f64) -> Terms {
        let n = self.observed(g, open, missing);
        let (present, absent) = (count + self.smoothing, (n - count).max(0.0) + self.smoothing);
        Terms {
            at_zero: (absent / (present + absent)).ln(),
            linear: (present / absent).ln(),
            ..Terms::default()
        }
    }

    fn count(&self, g: usize, count: f64) -> Terms {
        let total = self.input.count_totals[g] + self.smoothing * self.count_features;
        Terms { linear: ((count + self.smoothing) / total).ln(), ..Terms::default() }
    }

    /// A Gaussian over `t`; what a group of zeros with the variance of all rows would say is taken
    /// away, so that a group that never saw the feature has no terms.
    fn number(&self, g: usize, f: FeatureId, moment: Moment, missing: f64) -> Terms {
        let scale = self.scales[f.index()];
        let n = self.observed(g, self.space.sparse_open(f), missing);
        let moment = moment.with_zeros(n - moment.n);
        let variance = scale.sd * scale.sd;
        let zero = scale.of(0.0);
        let (mean, var) = if moment.n > 0.0 {
            (scale.of(moment.mean), group_variance(&moment, variance) / variance)
        } else {
            (0.0, 1.0)
        };
        let at = |t: f64| -0.5 * (var.ln() + (t - mean) * (t - mean) / var);
        Terms {
            at_zero: at(zero),
            present: at(0.0) - at(zero) + 0.5 * zero * zero,
            linear: mean / var - zero,
            square: 0.5 - 0.5 / var,
        }
    }

    fn value(&self, g: usize, column: u32, count: f64) -> Terms {
        let choices = self.space.values_of(column).len() as f64;
        let total = self.input.value_totals[g * self.space.category_len() + column as usize];
        let share = (count + self.smoothing) / (total + self.smoothing * choices);
        Terms { linear: share.ln(), ..Terms::default() }
    }

    fn of_class(&self, class: Class, g: usize) -> Terms {
        match class {
            Class::Binary { open, count, missing } => {
                self.binary(g, open, f64::from_bits(count), f64::from_bits(missing))
            }
            Class::Count { count } => self.count(g, f64::from_bits(count)),
            Class::Zero => Terms::default(),
            Class::Number { feature } => {
                let f = feature.index();
                self.number(g, feature, self.input.default_moment[f], self.input.default_missing[f])
            }
            Class::Value { column, count } => self.value(g, column, f64::from_bits(count)),
        }
    }

    /// The class of sparse feature `f`.
    fn class(&self, f: FeatureId, all_observed: &[bool]) -> Class {
        let input = self.input;
        let open = self.space.sparse_open(f);
        let (count, missing) = (input.default_count[f.index()], input.default_missing[f.index()]);
        match self.space.sparse_kind(f) {
            FeatureKind::Numeric => {
                let unseen = input.default_moment[f.index()].n == 0.0 && missing == 0.0;
                let observed = open.is_none_or(|o| all_observed[o as usize]);
                if unseen && observed { Class::Zero } else { Class::Number { feature: f } }
            }
            FeatureKind::Count => Class::Count { count: count.to_bits() },
            _ => Class::Binary { open, count: count.to_bits(), missing: missing.to_bits() },
        }
    }
}

fn fit_sparse(
    input: &GroupInput,
    space: &FeatureSpace,
    scales: &[Scale],
    smoothing: f64,
) -> SparseWeights {
    let is_count = |f: &FeatureId| space.sparse_kind(*f) == FeatureKind::Count;
    let count_features = space.sparse.ids().filter(is_count).count() as f64;
    let terms = TermsOf { input, space, scales, smoothing, count_features };
    // Whether every group has rows of an open column: then what it never saw was zero.
    let all_observed: Vec<bool> = (0..space.open_len() as u32)
        .map(|o| (0..input.groups).all(|g| terms.observed(g, Some(o), 0.0) > 0.0))
        .collect();

    let mut class_ids: HashMap<Class, u32, FixedState> = HashMap::default();
    let mut classes = Vec::new();
    let mut class_of = Vec::with_capacity(space.sparse_len() + space.value_len());
    let mut open = Vec::with_capacity(space.sparse_len() + space.value_len());
    let mut classify = |class: Class, from: Option<u32>| {
        let id = *class_ids.entry(class).or_insert_with(|| {
            classes.push(class);
            classes.len() as u32 - 1
        });
        class_of.push(id);
        open.push(from);
    };
    for f in space.sparse.ids() {
        classify(terms.class(f, &all_observed), space.sparse_open(f));
    }
    for v in ValueId::all(space.value_len()) {
        let column = space.value_category(v).unwrap_or(0);
        classify(Class::Value { column, count: input.default_value[v.index()].to_bits() }, None);
    }

    let mut seen = Vec::with_capacity(input.seen.len() + input.values.len());
    for &(group, f, ref cell) in &input.seen {
        let g = group as usize;
        let of_cell = match space.sparse_kind(f) {
            FeatureKind::Numeric => terms.number(g, f, cell.moment, cell.missing),
            FeatureKind::Count => terms.count(g, cell.count),
            _ => terms.binary(g, space.sparse_open(f), cell.count, cell.missing),
        };
        seen.push((group, f.0, of_cell));
    }
    let values_at = space.sparse_len() as u32;
    for &(group, v, n) in &input.values {
        let column = space.value_category(v).unwrap_or(0);
        seen.push((group, values_at + v.0, terms.value(group as usize, column, n)));
    }
    let class_terms = |class: usize, g: usize| terms.of_class(classes[class], g);
    SparseWeights::new(input.groups, class_of, &open, class_terms, seen)
}
