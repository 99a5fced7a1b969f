//! Gaussian likelihoods that are kept up to date group by group.
//!
//! [`Likelihood`](super::super::super::likelihood::Likelihood) centres and scales every feature by the
//! moments over all rows, which change with every row. Here terms are those of the plain formula
//! `-1/2 (ln v + (x - mean)^2 / v)`, which differ from those by the same amount in every group; so
//! a row changes only its own groups. What does depend on all rows (groups without a variance of
//! their own, floors, limits of far values) is taken from [`AllRows`] when a row is scored.

use super::super::super::likelihood::{FAR, FLOOR, NOISE};
use crate::stats::{Cell, FeatureStats, Moment};

/// How near to a limit a number counts as beyond it, so that rounding decides nothing.
const NEAR: f64 = 1e-9;
/// Independent sums, so that the processor adds several numbers at a time.
const LANES: usize = 8;

/// What all rows together say about each dense feature.
#[derive(Debug, Default)]
pub(super) struct AllRows {
    mean: Vec<f64>,
    variance: Vec<f64>,
    variance_ln: Vec<f64>,
    sd: Vec<f64>,
    /// How far from the mean values are told apart.
    reach: Vec<f64>,
    moments: Vec<Moment>,
}

impl AllRows {
    /// Takes the moments of all rows from those of rows by size.
    pub(super) fn refresh(&mut self, by_size: &FeatureStats, width: usize) {
        let dense = by_size.dense();
        self.moments.clear();
        self.moments.resize(width, Moment::default());
        for size in 0..dense.groups() as u32 {
            for (d, all) in self.moments.iter_mut().enumerate() {
                all.add(&dense.get(size, d));
            }
        }
        let variance = |m: &Moment| m.variance().filter(|v| *v > 0.0).unwrap_or(1.0);
        self.mean.clear();
        self.mean.extend(self.moments.iter().map(|m| m.mean));
        self.variance.clear();
        self.variance.extend(self.moments.iter().map(variance));
        self.variance_ln.clear();
        self.variance_ln.extend(self.variance.iter().map(|v| v.ln()));
        self.sd.clear();
        self.sd.extend(self.variance.iter().map(|v| v.sqrt()));
        self.reach.clear();
        self.reach.extend(self.sd.iter().map(|sd| FAR * sd));
    }

    /// Writes the dense features of a row into `out`, far values moved to where they are told apart.
    pub(super) fn limit(&self, row: &[f64], out: &mut Vec<f64>) {
        out.clear();
        let limits = self.mean.iter().zip(&self.reach);
        out.extend(row.iter().zip(limits).map(|(x, (m, r))| x.clamp(m - r, m + r)));
    }
}

/// The Gaussian terms of every dense feature in every group.
#[derive(Debug, Default)]
pub(super) struct Gaussians {
    width: usize,
    /// By group and feature.
    mean: Vec<f64>,
    /// 1 / sqrt v where the variance is the group's own, else zero.
    inverse_sd: Vec<f64>,
    /// sqrt(v of all rows / v) where the variance is taken from all rows, else zero.
    borrowed: Vec<f64>,
    /// -1/2 ln v, of which the part of all rows is left out where it is borrowed.
    constant: Vec<f64>,
    /// By group, the sum of its constants.
    sum: Vec<f64>,
    /// By group, whether it borrows a variance.
    borrows: Vec<bool>,
    /// Cells without values: their mean is that of all rows.
    empty: Vec<usize>,
    /// By feature: the variances of all rows between which no cell changes its kind.
    low: Vec<f64>,
    high: Vec<f64>,
    /// By feature: the least and the greatest mean.
    least: Vec<f64>,
    greatest: Vec<f64>,
}

impl Gaussians {
    /// The terms of the first `groups` groups.
    pub(super) fn fit(stats: &FeatureStats, groups: usize, width: usize, all: &AllRows) -> Self {
        let mut gaussians = Gaussians { width, ..Gaussians::default() };
        gaussians.grow(groups);
        gaussians.refresh_all(stats, all);
        gaussians
    }

    /// How many groups there are.
    pub(super) fn groups(&self) -> usize {
        self.sum.len()
    }

    /// Makes room for `groups` groups, whose terms are still to be taken.
    pub(super) fn grow(&mut self, groups: usize) {
        for cells in [&mut self.mean, &mut self.inverse_sd, &mut self.borrowed, &mut self.constant]
        {
            cells.resize(groups * self.width, 0.0);
        }
        self.sum.resize(groups, 0.0);
        self.borrows.resize(groups, false);
    }

    fn refresh_all(&mut self, stats: &FeatureStats, all: &AllRows) {
        self.empty.clear();
        self.low = vec![0.0; self.width];
        self.high = vec![f64::INFINITY; self.width];
        self.least = vec![f64::INFINITY; self.width];
        self.greatest = vec![f64::NEG_INFINITY; self.width];
        (0..self.groups() as u32).for_each(|group| self.refresh(stats, group, all));
    }

    /// Takes the terms of `group` from its moments.
    pub(super) fn refresh(&mut self, stats: &FeatureStats, group: u32, all: &AllRows) {
        let start = group as usize * self.width;
        self.empty.retain(|i| !(start..start + self.width).contains(i));
        self.borrows[group as usize] = false;
        for d in 0..self.width {
            let i = start + d;
            let moment = stats.dense().get(group, d);
            if moment.n > 0.0 {
                let reach = all.reach[d];
                self.mean[i] = moment.mean.clamp(all.mean[d] - reach, all.mean[d] + reach);
                self.least[d] = self.least[d].min(moment.mean);
                self.greatest[d] = self.greatest[d].max(moment.mean);
            } else {
                self.empty.push(i);
            }
            let own = moment.variance().filter(|_| moment.n >= 2.0).unwrap_or(0.0);
            let whole = all.variance[d];
            if own >= FLOOR * whole && own > NOISE * whole {
                (self.inverse_sd[i], self.borrowed[i]) = (1.0 / own.sqrt(), 0.0);
                self.constant[i] = -0.5 * own.ln();
                self.high[d] = self.high[d].min(own / FLOOR);
                continue;
            }
            self.borrows[group as usize] = true;
            self.inverse_sd[i] = 0.0;
            if own > NOISE * whole {
                (self.borrowed[i], self.constant[i]) = (1.0 / FLOOR.sqrt(), -0.5 * FLOOR.ln());
                self.low[d] = self.low[d].max(own / FLOOR);
                self.high[d] = self.high[d].min(own / NOISE);
            } else {
                (self.borrowed[i], self.constant[i]) = (1.0, 0.0);
                self.low[d] = self.low[d].max(own / NOISE);
            }
        }
        self.sum[group as usize] = self.constant[start..start + self.width].iter().sum();
    }

    /// Takes all terms anew if the moments of all rows have changed the kind of some cell.
    pub(super) fn settle(&mut self, stats: &FeatureStats, all: &AllRows) {
        let moved = |d: usize| {
            let (variance, mean, reach) = (all.variance[d], all.mean[d], all.reach[d]);
            variance >= self.high[d] * (1.0 - NEAR)
                || variance <= self.low[d] * (1.0 + NEAR)
                || self.greatest[d] - mean >= reach * (1.0 - NEAR)
                || mean - self.least[d] >= reach * (1.0 - NEAR)
        };
        if (0..self.width).any(moved) {
            self.refresh_all(stats, all);
        }
        for &i in &self.empty {
            self.mean[i] = all.mean[i % self.width];
        }
    }

    /// The log-likelihood of a row, up to a constant, in `group`; `row` is limited by `all`.
    pub(super) fn ln(&self, group: usize, row: &[f64], missing: bool, all: &AllRows) -> f64 {
        let cells = group * self.width..(group + 1) * self.width;
        let (mean, inverse_sd) = (&self.mean[cells.clone()], &self.inverse_sd[cells.clone()]);
        let mut ln = self.sum[group];
        if missing {
            let constant = &self.constant[cells.clone()];
            for d in 0..self.width {
                let t = (row[d] - mean[d]) * inverse_sd[d];
                ln -= if t.is_nan() { constant[d] } else { 0.5 * t * t };
            }
        } else {
            ln -= 0.5 * distance(row, mean, inverse_sd);
        }
        if self.borrows[group] {
            let borrowed = &self.borrowed[cells];
            for d in (0..self.width).filter(|&d| borrowed[d] > 0.0 && !row[d].is_nan()) {
                let t = (row[d] - mean[d]) * borrowed[d] / all.sd[d];
                ln -= 0.5 * (all.variance_ln[d] + t * t);
            }
        }
        ln
    }
}

/// `sum_i ((x_i - mean_i) / sd_i)^2`.
fn distance(row: &[f64], mean: &[f64], inverse_sd: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let mut rows = row.chunks_exact(LANES);
    let (mut means, mut inverses) = (mean.chunks_exact(LANES), inverse_sd.chunks_exact(LANES));
    for ((x, m), s) in rows.by_ref().zip(means.by_ref()).zip(inverses.by_ref()) {
        for lane in 0..LANES {
            let t = (x[lane] - m[lane]) * s[lane];
            sums[lane] += t * t;
        }
    }
    let rest = rows.remainder().iter().zip(means.remainder()).zip(inverses.remainder());
    let rest: f64 = rest.map(|((x, m), s)| ((x - m) * s) * ((x - m) * s)).sum();
    sums.iter().sum::<f64>() + rest
}
