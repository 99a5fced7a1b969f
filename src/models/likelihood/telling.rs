//! What naive Bayes can tell people about features.

use super::groups::SeenCell;
use super::{GroupInput, group_variance, numeric_scales};
use crate::data::{FeatureId, FeatureKind, FeatureSpace, Id, LabelId, ValueId};
use crate::stats::{ByLabel, FeatureStats, Moment, OneGroup};
use std::cmp::Ordering;

/// For each of `labels` labels, the features that tell most about it, at most `most`: positive where
/// they speak for the label. Features that tell nothing are left out.
///
/// Features that were never seen with a label count too: their absence may tell everything.
///
/// # Cost
///
/// O(features) for each label, and memory for the weights of one label.
pub(in crate::models) fn telling(
    by_label: &FeatureStats<ByLabel>,
    pooled: &FeatureStats<OneGroup>,
    labels: usize,
    features: &FeatureSpace,
    most: usize,
) -> Vec<Vec<(String, f64)>> {
    let ids: Vec<LabelId> = LabelId::all(labels).collect();
    let sides = Sides {
        inside: GroupInput::of(by_label, &ids, features),
        outside: GroupInput::of(by_label, &ids, features).outside(pooled, features),
        all: GroupInput::of(pooled, &[0], features),
        deviations: numeric_scales(pooled, features).into_iter().map(|s| s.sd).collect(),
        features,
    };
    let mut cells = Cells::new(sides.inside.seen.iter().map(|c| (c.0, c.1)).collect());
    let mut values = Cells::new(sides.inside.values.iter().map(|c| (c.0, c.1)).collect());
    let (dense, sparse) = (features.dense_len(), features.sparse_len());
    let mut weights = Vec::new();
    (0..labels)
        .map(|y| {
            weights.clear();
            weights.extend((0..dense).map(|d| sides.dense(y, d, pooled)));
            weights.extend(FeatureId::all(sparse).map(|f| sides.sparse(y, f, cells.next(y, f))));
            let values_of = ValueId::all(features.value_len());
            weights.extend(values_of.map(|v| sides.value(y, v, values.next(y, v))));
            let name = |i: usize| match i {
                d if d < dense => Some(features.dense_name(d as u32).to_string()),
                f if f < dense + sparse => {
                    Some(features.sparse_name(FeatureId::new(f - dense)).to_string())
                }
                v => features
                    .value(ValueId::new(v - dense - sparse))
                    .map(|(column, value)| format!("{column}={value}")),
            };
            largest(&weights, most)
                .into_iter()
                .filter_map(|i| Some((name(i)?, weights[i])))
                .collect()
        })
        .collect()
}

/// The places of the `most` weights that are furthest from zero, which itself is none of them.
fn largest(weights: &[f64], most: usize) -> Vec<usize> {
    let by_weight = |a: &usize, b: &usize| -> Ordering {
        weights[*b].abs().total_cmp(&weights[*a].abs()).then(a.cmp(b))
    };
    let mut places: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] != 0.0).collect();
    if most < places.len() {
        places.select_nth_unstable_by(most, by_weight);
        places.truncate(most);
    }
    places.sort_unstable_by(by_weight);
    places
}

/// Pairs of label and feature (or value) that occur, to be asked for in order.
struct Cells<I> {
    pairs: Vec<(u32, I)>,
    /// The places of the pairs, by label and then by feature.
    order: Vec<usize>,
    at: usize,
}

impl<I: Id> Cells<I> {
    fn new(pairs: Vec<(u32, I)>) -> Self {
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        order.sort_by_key(|&i| pairs[i]);
        Cells { pairs, order, at: 0 }
    }

    /// The place of a pair, if it occurs.
    fn next(&mut self, label: usize, feature: I) -> Option<usize> {
        let place = *self.order.get(self.at)?;
        if self.pairs[place] != (label as u32, feature) {
            return None;
        }
        self.at += 1;
        Some(place)
    }
}

/// The statistics of the rows with each label, of those without it, and of all.
struct Sides<'a> {
    inside: GroupInput,
    outside: GroupInput,
    all: GroupInput,
    /// The standard deviation of every sparse number over all rows.
    deviations: Vec<f64>,
    features: &'a FeatureSpace,
}

impl Sides<'_> {
    fn dense(&self, y: usize, d: usize, pooled: &FeatureStats<OneGroup>) -> f64 {
        let variance = pooled.dense().get(0, d).variance().unwrap_or(0.0);
        separation(&self.inside.dense(y, d), &self.outside.dense(y, d), variance)
    }

    /// The weight of sparse feature `f`, which is at `cell` if it was seen with label `y`.
    fn sparse(&self, y: usize, f: FeatureId, cell: Option<usize>) -> f64 {
        let (open, at) = (self.features.sparse_open(f), f.index());
        // Nothing was seen inside: all that was seen is outside.
        let never = (SeenCell::default(), self.all_of(at));
        let (mine, other) = cell.map_or(never, |i| (self.inside.seen[i].2, self.outside.seen[i].2));
        let observed = |input: &GroupInput, g: usize, cell: &SeenCell| {
            input.observed(g, open, cell.missing, self.features)
        };
        match self.features.sparse_kind(f) {
            FeatureKind::Numeric => {
                // Rows without the key have a zero there.
                let all = |input: &GroupInput, cell: &SeenCell| {
                    cell.moment.with_zeros(observed(input, y, cell) - cell.moment.n)
                };
                let sd = self.deviations[at];
                separation(&all(&self.inside, &mine), &all(&self.outside, &other), sd * sd)
            }
            FeatureKind::Count => root_ratio(
                (mine.count, self.inside.count_totals[y]),
                (other.count, self.outside.count_totals[y]),
                (self.outside.default_count[at], self.all.count_totals[0]),
            ),
            _ => root_ratio(
                (mine.count, observed(&self.inside, y, &mine)),
                (other.count, observed(&self.outside, y, &other)),
                (self.outside.default_count[at], observed(&self.all, 0, &self.all_of(at))),
            ),
        }
    }

    /// What was seen of sparse feature `f` in all rows.
    fn all_of(&self, f: usize) -> SeenCell {
        SeenCell {
            count: self.outside.default_count[f],
            missing: self.outside.default_missing[f],
            moment: self.outside.default_moment[f],
        }
    }

    /// The weight of category value `v`, which is at `cell` if it was seen with label `y`.
    fn value(&self, y: usize, v: ValueId, cell: Option<usize>) -> f64 {
        let Some(column) = self.features.value_category(v) else {
            return 0.0;
        };
        let all = self.outside.default_value[v.index()];
        let (mine, other) =
            cell.map_or((0.0, all), |i| (self.inside.values[i].2, self.outside.values[i].2));
        // The rows in which the column has a value.
        let total = |input: &GroupInput, g: usize| {
            input.value_totals[g * self.features.category_len() + column as usize]
        };
        root_ratio(
            (mine, total(&self.inside, y)),
            (other, total(&self.outside, y)),
            (all, total(&self.all, 0)),
        )
    }
}

/// The distance of two means in units of their standard deviations.
fn separation(a: &Moment, b: &Moment, pooled: f64) -> f64 {
    if a.n == 0.0 || b.n == 0.0 {
        return 0.0;
    }
    let spread = 0.5 * (group_variance(a, pooled) + group_variance(b, pooled));
    if spread > 0.0 { (a.mean - b.mean) / spread.sqrt() } else { 0.0 }
}

/// How far the shares inside and outside, each `(part, total)`, are apart: a signed root divergence,
/// so that rare features do not win by ratio alone.
///
/// Each side counts as if it had one more row with the share of all rows. So a label of a few rows
/// tells little, and a feature never seen with a label does not speak for it.
fn root_ratio(inside: (f64, f64), outside: (f64, f64), all: (f64, f64)) -> f64 {
    if inside.1 <= 0.0 || outside.1 <= 0.0 {
        return 0.0;
    }
    let prior = (all.0 / all.1).min(1.0);
    let share = |(part, total): (f64, f64)| ((part + prior) / (total + 1.0)).min(1.0);
    2.0 * (share(inside).sqrt() - share(outside).sqrt())
}
