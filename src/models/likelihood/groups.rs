//! The statistics likelihoods are fitted from: those of groups, or those of the rows outside them.

use crate::data::{FeatureId, FeatureKind, FeatureSpace, Id, ValueId};
use crate::stats::{Cell, FeatureStats, Grouping, Moment, OneGroup};

/// What was seen of a sparse feature in a group.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SeenCell {
    pub(super) count: f64,
    pub(super) missing: f64,
    pub(super) moment: Moment,
}

/// Statistics of groups, with defaults for the pairs of group and feature that are not listed.
#[derive(Debug)]
pub(in crate::models) struct GroupInput {
    pub(super) groups: usize,
    pub(super) dense_width: usize,
    dense: Vec<Moment>,
    pub(super) rows: Vec<f64>,
    /// For each group and open column, the rows in which it is there.
    pub(super) open_rows: Vec<f64>,
    pub(super) count_totals: Vec<f64>,
    /// For each group and category column, the rows with a value.
    pub(super) value_totals: Vec<f64>,
    pub(super) seen: Vec<(u32, FeatureId, SeenCell)>,
    pub(super) values: Vec<(u32, ValueId, f64)>,
    pub(super) default_count: Vec<f64>,
    pub(super) default_missing: Vec<f64>,
    pub(super) default_moment: Vec<Moment>,
    pub(super) default_value: Vec<f64>,
}

impl GroupInput {
    /// The groups numbered `wanted`, in that order.
    pub(in crate::models) fn of<G: Grouping>(
        stats: &FeatureStats<G>,
        wanted: &[G::Group],
        space: &FeatureSpace,
    ) -> Self {
        let top = wanted.iter().map(|g| g.index() + 1).max().unwrap_or(0);
        let mut place = vec![u32::NONE; top];
        for (to, group) in wanted.iter().enumerate() {
            place[group.index()] = to as u32;
        }
        let at = |g: u32| place.get(g.index()).copied().filter(|p| *p != u32::NONE);
        let wanted = wanted.iter().map(|group| group.index() as u32);
        let (groups, dense_width) = (wanted.len(), space.dense_len());
        let mut input = GroupInput {
            groups,
            dense_width,
            dense: wanted
                .clone()
                .flat_map(|g| (0..dense_width).map(move |d| stats.dense().get(g, d)))
                .collect(),
            rows: wanted.clone().map(|g| stats.rows(g)).collect(),
            open_rows: wanted
                .flat_map(|g| (0..space.open_len() as u32).map(move |o| stats.open_rows(g, o)))
                .collect(),
            count_totals: vec![0.0; groups],
            value_totals: vec![0.0; groups * space.category_len()],
            seen: seen_cells(stats)
                .into_iter()
                .filter_map(|(g, f, c)| Some((at(g)?, f, c)))
                .collect(),
            values: stats
                .values()
                .into_iter()
                .filter_map(|(g, v, n)| Some((at(g)?, v, n.0)))
                .collect(),
            default_count: vec![0.0; space.sparse_len()],
            default_missing: vec![0.0; space.sparse_len()],
            default_moment: vec![Moment::default(); space.sparse_len()],
            default_value: vec![0.0; space.value_len()],
        };
        for &(g, f, ref cell) in &input.seen {
            if space.sparse_kind(f) == FeatureKind::Count {
                let total = &mut input.count_totals[g as usize];
                *total = (*total + cell.count).min(f64::MAX);
            }
        }
        for &(g, v, n) in &input.values {
            if let Some(column) = space.value_category(v) {
                input.value_totals[g as usize * space.category_len() + column as usize] += n;
            }
        }
        input
    }

    /// For each group, the rows that are not in it; `pooled` is the statistic of all rows.
    pub(in crate::models) fn outside(
        mut self,
        pooled: &FeatureStats<OneGroup>,
        space: &FeatureSpace,
    ) -> Self {
        let all = GroupInput::of(pooled, &[0], space);
        for (i, moment) in self.dense.iter_mut().enumerate() {
            *moment = moment_outside(&all.dense[i % self.dense_width], moment);
        }
        let flip = |mine: &mut Vec<f64>, all: &[f64]| {
            let width = all.len().max(1);
            mine.iter_mut().enumerate().for_each(|(i, n)| *n = (all[i % width] - *n).max(0.0));
        };
        flip(&mut self.rows, &all.rows);
        flip(&mut self.open_rows, &all.open_rows);
        flip(&mut self.count_totals, &all.count_totals);
        flip(&mut self.value_totals, &all.value_totals);
        for (_, f, cell) in all.seen {
            let f = f.index();
            self.default_count[f] = cell.count;
            self.default_missing[f] = cell.missing;
            self.default_moment[f] = cell.moment;
        }
        for (_, v, n) in all.values {
            self.default_value[v.index()] = n;
        }
        for (_, f, cell) in &mut self.seen {
            let f = f.index();
            *cell = SeenCell {
                count: (self.default_count[f] - cell.count).max(0.0),
                missing: (self.default_missing[f] - cell.missing).max(0.0),
                moment: non_zeros_outside(&self.default_moment[f], &cell.moment),
            };
        }
        for (_, v, n) in &mut self.values {
            *n = (self.default_value[v.index()] - *n).max(0.0);
        }
        self
    }

    /// The rows of group `g` in which a feature of the open column `open`, or one that is a column
    /// itself, was observed: all but those in which it is `missing`.
    pub(super) fn observed(
        &self,
        g: usize,
        open: Option<u32>,
        missing: f64,
        space: &FeatureSpace,
    ) -> f64 {
        let rows = match open {
            Some(open) => self.open_rows[g * space.open_len() + open as usize],
            None => self.rows[g],
        };
        (rows - missing).max(0.0)
    }

    pub(super) fn dense(&self, group: usize, feature: usize) -> Moment {
        self.dense[group * self.dense_width + feature]
    }
}

/// Counts, missing weights and moments of all pairs of group and sparse feature that occur.
fn seen_cells<G: Grouping>(stats: &FeatureStats<G>) -> Vec<(u32, FeatureId, SeenCell)> {
    let mut cells: Vec<(u32, FeatureId, SeenCell)> = Vec::new();
    let empty = SeenCell::default();
    cells.extend(
        stats.counts().into_iter().map(|(g, f, n)| (g, f, SeenCell { count: n.0, ..empty })),
    );
    cells.extend(
        stats.moments().into_iter().map(|(g, f, m)| (g, f, SeenCell { moment: m, ..empty })),
    );
    let missing = stats.missing();
    if !missing.is_empty() {
        cells.extend(
            missing.into_iter().map(|(g, f, n)| (g, f, SeenCell { missing: n.0, ..empty })),
        );
        cells.sort_by_key(|c| (c.0, c.1));
        cells.dedup_by(|later, first| {
            let same = (later.0, later.1) == (first.0, first.1);
            if same {
                first.2.count += later.2.count;
                first.2.missing += later.2.missing;
                first.2.moment.add(&later.2.moment);
            }
            same
        });
    }
    cells
}

/// The moments of the non-zero values outside a group. Their own variance may vanish: what counts is
/// that of all values, zeros included.
fn non_zeros_outside(all: &Moment, group: &Moment) -> Moment {
    outside(all, group, |n, mean| {
        let between = (group.mean - mean) * (group.mean - mean) * (n * group.n / all.n);
        (all.m2 - group.m2 - between).max(0.0)
    })
}

/// The moments of the rows outside a group. Where subtracting would lose the variance, that of all
/// rows stands in.
fn moment_outside(all: &Moment, group: &Moment) -> Moment {
    outside(all, group, |n, _| all.variance().unwrap_or(0.0) * (n - 1.0).max(0.0))
}

/// `all` less `group`; where that is refused, with the sum of squares `m2(weight, mean)`.
fn outside(all: &Moment, group: &Moment, m2: impl Fn(f64, f64) -> f64) -> Moment {
    let mut left = *all;
    if left.subtract(group).is_ok() {
        return left;
    }
    let n = (all.n - group.n).max(0.0);
    if n == 0.0 {
        return Moment::default();
    }
    let mean = all.mean - (group.mean - all.mean) * (group.n / n);
    Moment { n, mean, m2: m2(n, mean) }
}
