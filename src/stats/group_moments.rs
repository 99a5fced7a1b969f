//! Moments of dense features per group of rows.

use super::{Cell, Moment, State, StateReader, StateWriter, moment::saturate};
use crate::data::{Id, Rows};
use crate::error::{Error, Result};
use std::ops::Range;

/// The share of a sum of squares about a centre below which it is computed again about the mean:
/// above it, cancellation costs less than two digits.
const CANCELLED: f64 = 1e-2;
/// Sums of squares below this are far from overflow.
const HUGE: f64 = 1e200;
/// Features that are added at a time.
const PIECE: usize = 64;
/// How often a block is summed at most; twice is enough unless values are beyond 1e100.
const PASSES: usize = 4;

/// Weight, mean and sum of squared deviations of every dense feature in every group.
///
/// A block of rows is summed about the first row of each group (one pass, two additions per value
/// and group) and merged by the formula of Chan, Golub and LeVeque. Where that row is so far from
/// the mean that digits would cancel, the group is summed again about its mean.
///
/// # Nulls
///
/// A `NaN` is missing and adds nothing to its feature.
#[derive(Debug, Clone, Default)]
pub struct GroupMoments {
    width: usize,
    n: Vec<f64>,
    mean: Vec<f64>,
    m2: Vec<f64>,
}

/// Weights, means and sums of squared deviations of the features of a group.
pub(crate) type Moments<'a> = (&'a [f64], &'a [f64], &'a [f64]);

/// Sums of a block: one slot per group that occurs in it, each about its own centre.
#[derive(Default)]
struct Block {
    /// For each group its slot.
    slots: Vec<u32>,
    /// For each slot its group.
    groups: Vec<u32>,
    centre: Vec<f64>,
    n: Vec<f64>,
    sum: Vec<f64>,
    squares: Vec<f64>,
}

impl GroupMoments {
    /// Adds the dense features of `rows`; `groups(row)` are the groups row `row` belongs to.
    pub fn observe<'a, I: Id>(&mut self, rows: &Rows, groups: impl Fn(usize) -> &'a [I]) {
        let width = rows.dense_width;
        if width == 0 || rows.len == 0 {
            return;
        }
        self.width = width;
        if rows.len == 1 {
            for &group in groups(0) {
                self.add_row(group.index() as u32, rows.dense_row(0), rows.weight(0));
            }
            return;
        }
        let mut block = Block::new(rows, &groups);
        block.add_rows(rows, &groups, &vec![true; block.groups.len()]);
        for _ in 1..PASSES {
            let wanted = block.cancelled(width);
            if !wanted.contains(&true) {
                break;
            }
            block.recentre(&wanted, width);
            block.add_rows(rows, &groups, &wanted);
        }
        block.finish();
        for (slot, &group) in block.groups.iter().enumerate() {
            self.add_moments(group, block.moments(slot * width..(slot + 1) * width));
        }
    }

    /// Adds one row to a group: what a block of one row would add, without the block.
    fn add_row(&mut self, group: u32, row: &[f64], weight: f64) {
        self.ensure(group as usize + 1);
        for start in (0..self.width).step_by(PIECE) {
            let piece = start..(start + PIECE).min(self.width);
            if !self.add_alike(group, piece.clone(), weight, &row[piece.clone()], None) {
                for d in piece.filter(|&d| !row[d].is_nan()) {
                    self.add(group, d, &Moment::weighted(row[d], weight));
                }
            }
        }
    }

    /// Adds the moments of group `from` of `other` to a group.
    fn add_group(&mut self, group: u32, other: &Self, from: u32) {
        if let Some(moments) = other.group(from) {
            self.add_moments(group, moments);
        }
    }

    /// Adds weights, means and sums of squares of all features to a group.
    fn add_moments(&mut self, group: u32, (n, mean, m2): Moments<'_>) {
        self.ensure(group as usize + 1);
        for start in (0..self.width).step_by(PIECE) {
            let piece = start..(start + PIECE).min(self.width);
            let weight = n[start];
            let (means, m2s) = (&mean[piece.clone()], Some(&m2[piece.clone()]));
            let one = n[piece.clone()].iter().all(|n| *n == weight);
            if !(one && (weight == 0.0 || self.add_alike(group, piece.clone(), weight, means, m2s)))
            {
                let moment = |d: usize| Moment { n: n[d], mean: mean[d], m2: m2[d] };
                piece.for_each(|d| self.add(group, d, &moment(d)));
            }
        }
    }

    /// Adds moments of the same weight to a piece of the features of a group that have one weight
    /// too: then the formula of Chan has the same factors for all of them. Without `m2` they are
    /// single values. False, and nothing is done, where weights differ, or values are huge or
    /// missing.
    fn add_alike(
        &mut self,
        group: u32,
        piece: Range<usize>,
        weight: f64,
        mean: &[f64],
        m2: Option<&[f64]>,
    ) -> bool {
        let start = group as usize * self.width;
        let (cells, len) = (start + piece.start..start + piece.end, piece.len());
        let n = &mut self.n[cells.clone()][..len];
        let (my_mean, my_m2) = (&mut self.mean[cells.clone()][..len], &mut self.m2[cells][..len]);
        let mean = &mean[..len];
        let before = n[0];
        let total = before + weight;
        let (share, between) = (weight / total, before * weight / total);
        let mut sums = [0.0; PIECE];
        let sums = &mut sums[..len];
        match m2 {
            None => sums.copy_from_slice(my_m2),
            Some(m2) => {
                let m2 = &m2[..len];
                for d in 0..len {
                    sums[d] = my_m2[d] + m2[d];
                }
            }
        }
        let mut alike = true;
        for d in 0..len {
            let delta = mean[d] - my_mean[d];
            sums[d] += delta * delta * between;
            alike &= (n[d] == before) & (sums[d] < HUGE);
        }
        if !alike {
            return false;
        }
        for d in 0..len {
            my_mean[d] += (mean[d] - my_mean[d]) * share;
            my_m2[d] = sums[d];
            n[d] = total;
        }
        true
    }

    /// Makes `out` the moments of all groups together: one group, numbered 0.
    pub(crate) fn pool_into(&self, out: &mut Self) {
        out.width = self.width;
        [&mut out.n, &mut out.mean, &mut out.m2].into_iter().for_each(Vec::clear);
        (0..self.groups() as u32).for_each(|group| out.add_group(0, self, group));
    }

    fn ensure(&mut self, groups: usize) {
        let len = groups * self.width;
        if len > self.n.len() {
            self.n.resize(len, 0.0);
            self.mean.resize(len, 0.0);
            self.m2.resize(len, 0.0);
        }
    }

    fn add(&mut self, group: u32, feature: usize, moment: &Moment) {
        self.ensure(group as usize + 1);
        let mut mine = self.get(group, feature);
        mine.add(moment);
        self.set(group, feature, mine);
    }

    fn set(&mut self, group: u32, feature: usize, m: Moment) {
        let i = group as usize * self.width + feature;
        (self.n[i], self.mean[i], self.m2[i]) = (m.n, m.mean, m.m2);
    }

    /// The moments of dense feature `feature` in `group`.
    #[inline]
    pub fn get(&self, group: u32, feature: usize) -> Moment {
        let i = group as usize * self.width + feature;
        if feature >= self.width || i >= self.n.len() {
            return Moment::default();
        }
        Moment { n: self.n[i], mean: self.mean[i], m2: self.m2[i] }
    }

    /// Weights, means and sums of squares of the dense features in `group`, if it was seen.
    #[inline]
    pub(crate) fn group(&self, group: u32) -> Option<Moments<'_>> {
        let cells = group as usize * self.width..(group as usize + 1) * self.width;
        let seen = self.width > 0 && cells.end <= self.n.len();
        seen.then(|| (&self.n[cells.clone()], &self.mean[cells.clone()], &self.m2[cells]))
    }

    /// How many groups have been seen.
    pub fn groups(&self) -> usize {
        self.n.len().checked_div(self.width).unwrap_or(0)
    }

    /// How many dense features there are.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Adds the moments of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.width == 0 {
            return;
        }
        self.width = other.width;
        (0..other.groups() as u32).for_each(|group| self.add_group(group, other, group));
    }

    /// Takes the moments of `other` away; on an error nothing changes.
    ///
    /// # Errors
    ///
    /// When a moment cannot be subtracted safely.
    pub fn forget(&mut self, other: &Self) -> Result<()> {
        let mut left = self.clone();
        left.width = left.width.max(other.width);
        left.ensure(other.groups());
        for group in 0..other.groups() as u32 {
            for d in 0..other.width {
                let mut mine = left.get(group, d);
                mine.subtract(&other.get(group, d))?;
                left.set(group, d, mine);
            }
        }
        *self = left;
        Ok(())
    }

    /// Multiplies every weight by `factor`.
    pub fn decay(&mut self, factor: f64) {
        self.n.iter_mut().chain(&mut self.m2).for_each(|v| *v *= factor);
        // Where no weight is left, no mean is: new values are not added to an old one.
        for i in (0..self.n.len()).filter(|&i| self.n[i] == 0.0) {
            (self.mean[i], self.m2[i]) = (0.0, 0.0);
        }
    }

    /// The same moments with groups renumbered; dropped ones go.
    #[must_use]
    pub fn remap<I: Id>(&self, groups: &[I]) -> Self {
        let mut out = GroupMoments { width: self.width, ..GroupMoments::default() };
        let kept = groups.iter().enumerate().take(self.groups()).filter(|(_, to)| **to != I::NONE);
        kept.for_each(|(group, &to)| out.add_group(to.index() as u32, self, group as u32));
        out
    }

    /// The moments as a state, without the empty groups at the end.
    pub fn encode(&self) -> State {
        let len = self.used();
        let mut writer = StateWriter::default();
        writer.u32s("width", [self.width as u32]);
        for (name, values) in [("n", &self.n), ("mean", &self.mean), ("m2", &self.m2)] {
            writer.f64s(name, values[..len].iter().copied());
        }
        writer.finish()
    }

    /// The moments in a state.
    ///
    /// # Errors
    ///
    /// `Corrupt` when the lengths do not fit together.
    pub fn decode(state: &State) -> Result<Self> {
        let reader = StateReader::new(state);
        let width = reader.u32s("width")?.first().copied().unwrap_or(0) as usize;
        let (n, mean, m2) = (reader.f64s("n")?, reader.f64s("mean")?, reader.f64s("m2")?);
        let fits = if width == 0 { n.is_empty() } else { n.len() % width == 0 };
        if !fits || mean.len() != n.len() || m2.len() != n.len() {
            return Err(Error::corrupt("the moments of a model have different lengths"));
        }
        Ok(GroupMoments { width, n: n.to_vec(), mean: mean.to_vec(), m2: m2.to_vec() })
    }

    fn used(&self) -> usize {
        let last = self.n.iter().rposition(|&n| n != 0.0);
        last.map_or(0, |i| (i / self.width + 1) * self.width)
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        (self.n.capacity() + self.mean.capacity() + self.m2.capacity()) * 8
    }
}

impl PartialEq for GroupMoments {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (self.used(), other.used());
        self.n[..a] == other.n[..b]
            && self.mean[..a] == other.mean[..b]
            && self.m2[..a] == other.m2[..b]
    }
}

/// Adds a row without gaps, of weight 1, to the sums about `centre`: most of the time of learning
/// dense features is spent here.
#[inline]
fn add_plain(row: &[f64], centre: &[f64], sum: &mut [f64], squares: &mut [f64]) {
    let len = row.len();
    let (centre, sum, squares) = (&centre[..len], &mut sum[..len], &mut squares[..len]);
    for (i, x) in row.iter().enumerate() {
        let d = x - centre[i];
        sum[i] += d;
        squares[i] += d * d;
    }
}

impl Block {
    /// Empty sums for the groups that occur, each centred on its first row.
    fn new<'a, I: Id>(rows: &Rows, groups: &impl Fn(usize) -> &'a [I]) -> Self {
        let width = rows.dense_width;
        let top = (0..rows.len).flat_map(groups).copied().max().map_or(0, |g| g.index() + 1);
        let mut block = Block { slots: vec![u32::MAX; top], ..Block::default() };
        for (r, row) in rows.dense.chunks_exact(width).enumerate() {
            for &group in groups(r) {
                let slot = &mut block.slots[group.index()];
                if *slot == u32::MAX {
                    *slot = block.groups.len() as u32;
                    block.groups.push(group.index() as u32);
                    block.centre.extend_from_slice(row);
                } else if rows.dense_missing {
                    let start = *slot as usize * width;
                    for (c, x) in block.centre[start..start + width].iter_mut().zip(row) {
                        *c = if c.is_nan() { *x } else { *c };
                    }
                }
            }
        }
        let len = block.centre.len();
        (block.n, block.sum, block.squares) = (vec![0.0; len], vec![0.0; len], vec![0.0; len]);
        block
    }

    /// Adds all rows to the slots that are wanted, about the centre of each slot.
    fn add_rows<'a, I: Id>(
        &mut self,
        rows: &Rows,
        groups: &impl Fn(usize) -> &'a [I],
        wanted: &[bool],
    ) {
        let width = rows.dense_width;
        let plain = !rows.dense_missing && rows.weights.is_empty();
        for (r, row) in rows.dense.chunks_exact(width).enumerate() {
            let weight = rows.weight(r);
            for &group in groups(r) {
                let slot = self.slots[group.index()] as usize;
                if !wanted[slot] {
                    continue;
                }
                let range = slot * width..(slot + 1) * width;
                let centre = &self.centre[range.clone()];
                let (sum, squares) =
                    (&mut self.sum[range.clone()], &mut self.squares[range.clone()]);
                if plain {
                    add_plain(row, centre, sum, squares);
                    self.n[slot * width] += 1.0;
                } else {
                    let sums = sum.iter_mut().zip(squares).zip(&mut self.n[range]);
                    for (((sum, squares), n), (x, c)) in sums.zip(row.iter().zip(centre)) {
                        let d = x - c;
                        if !d.is_nan() {
                            *sum += weight * d;
                            *squares += weight * d * d;
                            *n += weight;
                        }
                    }
                }
            }
        }
        if plain {
            for n in self.n.chunks_exact_mut(width) {
                let first = n[0];
                n.fill(first);
            }
        }
    }

    /// Makes means and sums of squares about them of the sums; see [`Block::moments`].
    fn finish(&mut self) {
        let len = self.n.len();
        let (n, centre) = (&self.n[..len], &self.centre[..len]);
        let (sum, squares) = (&mut self.sum[..len], &mut self.squares[..len]);
        for i in 0..len {
            let seen = n[i] > 0.0;
            let offset = saturate(sum[i] / n[i]);
            let m2 = saturate(squares[i] - sum[i] * offset).max(0.0);
            squares[i] = if seen { m2 } else { 0.0 };
            sum[i] = if seen { saturate(centre[i] + offset) } else { 0.0 };
        }
    }

    /// The moments of the features of a slot, once the block is finished.
    fn moments(&self, cells: Range<usize>) -> Moments<'_> {
        (&self.n[cells.clone()], &self.sum[cells.clone()], &self.squares[cells])
    }

    /// The slots in which the centre is so far from the mean that digits are lost.
    fn cancelled(&self, width: usize) -> Vec<bool> {
        let slot = |slot: usize| {
            let cells = slot * width..(slot + 1) * width;
            let (n, squares) = (&self.n[cells.clone()], &self.squares[cells.clone()]);
            let sum = &self.sum[cells];
            let mut lost = false;
            for d in 0..width {
                let m2 = squares[d] - sum[d] * (sum[d] / n[d]);
                // A sum that overflowed is lost too: it is no number.
                let kept = m2 >= CANCELLED * squares[d];
                lost |= (n[d] > 0.0) & (squares[d] != 0.0) & !kept;
            }
            lost
        };
        (0..self.groups.len()).map(slot).collect()
    }

    /// Starts the slots that are wanted anew, about the mean found so far.
    fn recentre(&mut self, wanted: &[bool], width: usize) {
        for (slot, _) in wanted.iter().enumerate().filter(|(_, w)| **w) {
            for i in slot * width..(slot + 1) * width {
                if self.n[i] > 0.0 {
                    let offset = saturate(self.sum[i] / self.n[i]);
                    self.centre[i] = saturate(self.centre[i] + offset);
                }
                (self.n[i], self.sum[i], self.squares[i]) = (0.0, 0.0, 0.0);
            }
        }
    }
}
