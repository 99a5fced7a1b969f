//! Gaussian likelihoods that are kept up to date group by group.
//!
//! [`Likelihood`](super::super::super::likelihood::Likelihood) centres and scales every feature by the
//! moments over all rows, which change with every row. Here terms are those of the plain formula
//! `-1/2 (ln v + (x - mean)^2 / v)`, which differ from those by the same amount in every group; so
//! a row changes only its own groups. What does depend on all rows (groups without a variance of
//! their own, floors, limits of far values) is taken from [`AllRows`] when a row is scored.

use super::super::super::likelihood::{FAR, FLOOR, NOISE};
use crate::data::Rows;
use crate::stats::{BySize, FeatureStats, GroupMoments, Grouping};

/// How near to a limit a number counts as beyond it, so that rounding decides nothing.
const NEAR: f64 = 1e-9;
/// The square of how far from the mean a number is surely told apart, in variances.
const NEAR_REACH: f64 = FAR * FAR * (1.0 - NEAR);
/// Rows after which the moments of all rows are pooled anew, so that rounding stays far below
/// [`NEAR`].
const POOL_EVERY: u32 = 1024;
/// Independent sums, so that the processor adds several numbers at a time.
const LANES: usize = 8;
/// Numbers whose product is far from the ends of the scale if none is beyond 1e12 or below 1e-12.
const FACTORS: usize = 24;

/// What all rows together say about each dense feature.
///
/// Answers depend on it only where a group has no variance of its own or a value is far; elsewhere
/// it is enough to know that this is not so. So rows are added one by one, which is not exact to the
/// last digit, and the groups are pooled where digits count.
#[derive(Debug, Default)]
pub(super) struct AllRows {
    mean: Vec<f64>,
    variance: Vec<f64>,
    pooled: GroupMoments,
    /// Rows added since groups were pooled.
    added: u32,
}

impl AllRows {
    /// Takes the moments of all rows from those of rows by size.
    pub(super) fn pool(&mut self, by_size: &FeatureStats<BySize>, width: usize) {
        by_size.dense().pool_into(&mut self.pooled);
        self.added = 0;
        self.derive(width);
    }

    /// Adds one row, or pools when that was long ago.
    pub(super) fn add(&mut self, row: &Rows, by_size: &FeatureStats<BySize>) {
        if self.added >= POOL_EVERY {
            return self.pool(by_size, row.dense_width);
        }
        self.pooled.observe(row, |_| &[0]);
        self.added += 1;
        self.derive(row.dense_width);
    }

    fn derive(&mut self, width: usize) {
        for values in [&mut self.mean, &mut self.variance] {
            values.resize(width, 0.0);
        }
        let (mean, variance) = (&mut self.mean[..width], &mut self.variance[..width]);
        match self.pooled.group(0).filter(|cells| cells.0.len() == width) {
            None => {
                mean.fill(0.0);
                variance.fill(1.0);
            }
            Some((n, means, m2)) => {
                mean.copy_from_slice(means);
                for d in 0..width {
                    let v = m2[d] / (n[d] - 1.0);
                    variance[d] = if (n[d] > 1.0) & (v > 0.0) { v } else { 1.0 };
                }
            }
        }
    }

    /// How far from the mean values of a feature are told apart.
    fn reach(&self, d: usize) -> f64 {
        FAR * self.variance[d].sqrt()
    }

    /// Whether some value of the row may be so far that it is limited.
    fn is_far(&self, row: &[f64]) -> bool {
        let (mean, variance) = (&self.mean[..row.len()], &self.variance[..row.len()]);
        let mut far = false;
        for d in 0..row.len() {
            far |= (row[d] - mean[d]) * (row[d] - mean[d]) > variance[d] * NEAR_REACH;
        }
        far
    }

    /// Whether some value of the row may be so far that groups are to be pooled.
    pub(super) fn needs_pool(&self, row: &[f64]) -> bool {
        self.added > 0 && self.is_far(row)
    }

    /// Whether rows were added since groups were pooled.
    #[cfg(test)]
    pub(super) fn was_added_to(&self) -> bool {
        self.added > 0
    }

    /// Writes the dense features of a row into `out`, far values moved to where they are told apart.
    pub(super) fn limit(&self, row: &[f64], out: &mut Vec<f64>) {
        out.clear();
        out.extend_from_slice(row);
        if self.is_far(row) {
            for (d, x) in out.iter_mut().enumerate() {
                let reach = self.reach(d);
                *x = x.clamp(self.mean[d] - reach, self.mean[d] + reach);
            }
        }
    }
}

/// The Gaussian terms of every dense feature in every group.
#[derive(Debug, Default)]
pub(super) struct Gaussians {
    width: usize,
    /// By group and feature.
    mean: Vec<f64>,
    /// 1 / v where the variance is the group's own, else zero.
    inverse: Vec<f64>,
    /// v of all rows / v where the variance is taken from all rows, else zero.
    borrowed: Vec<f64>,
    /// -1/2 ln v, of which the part of all rows is left out where it is borrowed: half the
    /// logarithm of one of the two above. Kept only once a value was missing.
    constant: Vec<f64>,
    /// By group, the sum of its constants.
    sum: Vec<f64>,
    /// Groups that are asked for even if they were never seen.
    asked: Vec<u32>,
    /// By group, whether it is asked for and borrows a variance.
    borrows: Vec<bool>,
    /// Cells without values in groups that are asked for: their mean is that of all rows.
    empty: Vec<usize>,
    /// By feature: between these variances of all rows (one over it, for the upper one) no cell
    /// changes its kind.
    low: Vec<f64>,
    high_inverse: Vec<f64>,
    /// By feature: the least and the greatest mean.
    least: Vec<f64>,
    greatest: Vec<f64>,
}

impl Gaussians {
    /// The terms of the first `groups` groups, of which `asked` are asked for even if never seen.
    pub(super) fn fit<G: Grouping>(
        stats: &FeatureStats<G>,
        groups: usize,
        asked: &[u32],
        width: usize,
        all: &AllRows,
    ) -> Self {
        let mut gaussians = Gaussians { width, ..Gaussians::default() };
        gaussians.grow(groups, asked);
        gaussians.refresh_all(stats, all);
        gaussians
    }

    /// How many groups there are.
    pub(super) fn groups(&self) -> usize {
        self.sum.len()
    }

    /// Makes room for `groups` groups, whose terms are still to be taken.
    pub(super) fn grow(&mut self, groups: usize, asked: &[u32]) {
        self.asked = asked.to_vec();
        for cells in [&mut self.mean, &mut self.inverse, &mut self.borrowed] {
            cells.resize(groups * self.width, 0.0);
        }
        if !self.constant.is_empty() {
            self.constant.resize(groups * self.width, 0.0);
        }
        self.sum.resize(groups, 0.0);
        self.borrows.resize(groups, false);
    }

    fn refresh_all<G: Grouping>(&mut self, stats: &FeatureStats<G>, all: &AllRows) {
        self.empty.clear();
        self.low = vec![0.0; self.width];
        self.high_inverse = vec![0.0; self.width];
        self.least = vec![f64::INFINITY; self.width];
        self.greatest = vec![f64::NEG_INFINITY; self.width];
        (0..self.groups() as u32).for_each(|group| self.refresh(stats, group, all));
    }

    /// Whether some group takes a mean or a variance from all rows.
    pub(super) fn leans(&self) -> bool {
        !self.empty.is_empty() || self.borrows.contains(&true)
    }

    /// Takes the terms of `group` from its moments; `all` was pooled.
    pub(super) fn refresh<G: Grouping>(
        &mut self,
        stats: &FeatureStats<G>,
        group: u32,
        all: &AllRows,
    ) {
        let start = group as usize * self.width;
        let cells = start..start + self.width;
        self.empty.retain(|i| !cells.contains(i));
        self.borrows[group as usize] = false;
        if self.refresh_ordinary(stats, group, all)
            || (stats.rows(group) == 0.0 && !self.asked.contains(&group))
        {
            return;
        }
        (0..self.width).for_each(|d| self.refresh_cell(stats, group, d, all));
        self.sum_up(group);
    }

    /// Takes the terms of a group in which every feature has a variance of its own and a mean that
    /// is not far: false where that is not so. The group did not lean on all rows before.
    pub(super) fn refresh_ordinary<G: Grouping>(
        &mut self,
        stats: &FeatureStats<G>,
        group: u32,
        all: &AllRows,
    ) -> bool {
        let width = self.width;
        let Some((n, mean, m2)) = stats.dense().group(group).filter(|g| g.0.len() == width) else {
            return false;
        };
        let cells = group as usize * width..(group as usize + 1) * width;
        let inverse = &mut self.inverse[cells.clone()];
        let (whole, centre) = (&all.variance[..width], &all.mean[..width]);
        let mut ordinary = true;
        for d in 0..width {
            inverse[d] = (n[d] - 1.0) / m2[d];
            let far = mean[d] - centre[d];
            ordinary &= (n[d] >= 2.0)
                & (inverse[d] * (FLOOR * whole[d]) < 1.0 - NEAR)
                & (far * far < whole[d] * NEAR_REACH);
        }
        if !ordinary {
            return false;
        }
        let high = &mut self.high_inverse[..width];
        let (least, greatest) = (&mut self.least[..width], &mut self.greatest[..width]);
        for d in 0..width {
            let limit = inverse[d] * FLOOR;
            high[d] = if limit > high[d] { limit } else { high[d] };
            least[d] = if mean[d] < least[d] { mean[d] } else { least[d] };
            greatest[d] = if mean[d] > greatest[d] { mean[d] } else { greatest[d] };
        }
        self.mean[cells.clone()].copy_from_slice(mean);
        self.borrowed[cells].fill(0.0);
        self.sum_up(group);
        true
    }

    fn sum_up(&mut self, group: u32) {
        let cells = group as usize * self.width..(group as usize + 1) * self.width;
        let (inverse, borrowed) = (&self.inverse[cells.clone()], &self.borrowed[cells.clone()]);
        self.sum[group as usize] = 0.5 * sum_ln(inverse, borrowed);
        if !self.constant.is_empty() {
            let scales = inverse.iter().zip(borrowed);
            let constants = self.constant[cells].iter_mut();
            constants.zip(scales).for_each(|(c, (own, borrowed))| *c = 0.5 * (own + borrowed).ln());
        }
    }

    fn refresh_cell<G: Grouping>(
        &mut self,
        stats: &FeatureStats<G>,
        group: u32,
        d: usize,
        all: &AllRows,
    ) {
        let i = group as usize * self.width + d;
        let moment = stats.dense().get(group, d);
        if moment.n > 0.0 {
            let reach = all.reach(d);
            self.mean[i] = moment.mean.clamp(all.mean[d] - reach, all.mean[d] + reach);
            self.least[d] = self.least[d].min(moment.mean);
            self.greatest[d] = self.greatest[d].max(moment.mean);
        } else {
            self.empty.push(i);
        }
        let own = moment.variance().filter(|_| moment.n >= 2.0).unwrap_or(0.0);
        let whole = all.variance[d];
        if own >= FLOOR * whole && own > NOISE * whole {
            (self.inverse[i], self.borrowed[i]) = ((moment.n - 1.0) / moment.m2, 0.0);
            self.high_inverse[d] = self.high_inverse[d].max(self.inverse[i] * FLOOR);
            return;
        }
        self.borrows[group as usize] = true;
        self.inverse[i] = 0.0;
        if own > NOISE * whole {
            self.borrowed[i] = 1.0 / FLOOR;
            self.low[d] = self.low[d].max(own / FLOOR);
            self.high_inverse[d] = self.high_inverse[d].max(NOISE / own);
        } else {
            self.borrowed[i] = 1.0;
            self.low[d] = self.low[d].max(own / NOISE);
        }
    }

    /// Whether the moments of all rows may have changed the kind of some cell.
    pub(super) fn moved(&self, all: &AllRows) -> bool {
        let width = self.width;
        let (low, high) = (&self.low[..width], &self.high_inverse[..width]);
        let (least, greatest) = (&self.least[..width], &self.greatest[..width]);
        let (variance, mean) = (&all.variance[..width], &all.mean[..width]);
        let mut moved = false;
        for d in 0..width {
            let (above, below) = (greatest[d] - mean[d], mean[d] - least[d]);
            let near = variance[d] * NEAR_REACH;
            moved |= (variance[d] * high[d] >= 1.0 - NEAR)
                | (variance[d] <= low[d] * (1.0 + NEAR))
                | ((above > 0.0) & (above * above >= near))
                | ((below > 0.0) & (below * below >= near));
        }
        moved
    }

    /// Takes all terms anew if some cell may have changed its kind; `all` was pooled.
    pub(super) fn settle<G: Grouping>(&mut self, stats: &FeatureStats<G>, all: &AllRows) {
        if self.moved(all) {
            self.refresh_all(stats, all);
        }
        for &i in &self.empty {
            self.mean[i] = all.mean[i % self.width];
        }
    }

    /// Keeps the constant of each cell from now on: rows with missing values take them back.
    pub(super) fn expect_missing(&mut self) {
        if self.constant.is_empty() {
            let scales = self.inverse.iter().zip(&self.borrowed);
            self.constant = scales.map(|(own, borrowed)| 0.5 * (own + borrowed).ln()).collect();
        }
    }

    /// The log-likelihood of a row, up to a constant, in `group`; `row` is limited by `all`.
    pub(super) fn ln(&self, group: usize, row: &[f64], missing: bool, all: &AllRows) -> f64 {
        let cells = group * self.width..(group + 1) * self.width;
        let (mean, inverse) = (&self.mean[cells.clone()], &self.inverse[cells.clone()]);
        let mut ln = self.sum[group];
        if missing {
            let constant = &self.constant[cells.clone()];
            for d in 0..self.width {
                let t = row[d] - mean[d];
                ln -= if t.is_nan() { constant[d] } else { 0.5 * t * t * inverse[d] };
            }
        } else {
            ln -= 0.5 * distance(row, mean, inverse);
        }
        if self.borrows[group] {
            let borrowed = &self.borrowed[cells];
            for d in (0..self.width).filter(|&d| borrowed[d] > 0.0 && !row[d].is_nan()) {
                let t = (row[d] - mean[d]) / all.variance[d].sqrt();
                ln -= 0.5 * (all.variance[d].ln() + t * t * borrowed[d]);
            }
        }
        ln
    }
}

/// `sum_i (x_i - mean_i)^2 / v_i`.
fn distance(row: &[f64], mean: &[f64], inverse: &[f64]) -> f64 {
    let len = row.len();
    let (mean, inverse) = (&mean[..len], &inverse[..len]);
    let mut sums = [0.0; LANES];
    let mut start = 0;
    // Slices and sums in pairs rather than iterators: a third quicker.
    while start + LANES <= len {
        let lanes = start..start + LANES;
        let (x, m, s) = (&row[lanes.clone()], &mean[lanes.clone()], &inverse[lanes]);
        for lane in 0..LANES {
            let t = x[lane] - m[lane];
            sums[lane] += t * t * s[lane];
        }
        start += LANES;
    }
    let mut rest = 0.0;
    for d in start..len {
        rest += (row[d] - mean[d]) * (row[d] - mean[d]) * inverse[d];
    }
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + e) + (c + g)) + ((b + f) + (d + h)) + rest
}

/// The sum of the logarithms of `a_i + b_i`, which are positive; one logarithm for several of them
/// where their product is far from the ends of the scale.
fn sum_ln(a: &[f64], b: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (a, b) in a.chunks(FACTORS).zip(b.chunks(FACTORS)) {
        // Several products side by side: one would wait for each of its factors.
        let (mut products, mut inside) = ([1.0; LANES], true);
        for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
            for (product, (a, b)) in products.iter_mut().zip(a.iter().zip(b)) {
                let value = a + b;
                *product *= value;
                inside &= (value > 1e-12) & (value < 1e12);
            }
        }
        sum += match inside {
            true => f64::ln(products.iter().product()),
            false => a.iter().zip(b).map(|(a, b)| (a + b).ln()).sum(),
        };
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::sum_ln;

    #[test]
    fn one_logarithm_of_a_product_is_the_sum_of_logarithms() {
        for values in [
            vec![],
            vec![2.0, 0.5, 3.0],
            vec![1e29; 100],
            vec![9e11; 100],
            vec![2e-12; 100],
            vec![1e-300, 1e300, 1e308, 5e-324, 1.0],
            (1..500).map(|i| f64::from(i) * 0.37).collect(),
        ] {
            let expected: f64 = values.iter().map(|v: &f64| v.ln()).sum();
            let found = sum_ln(&values, &vec![0.0; values.len()]);
            assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{values:?}");
        }
    }
}
