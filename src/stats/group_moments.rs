//! Moments of dense features per group of rows.

use super::{Cell, Moment, StateReader, StateWriter, moment::saturate};
use crate::data::Rows;
use crate::error::{Error, Result};
use arrow::array::StructArray;

/// The share of a sum of squares about the block's centre below which it is computed again about
/// the group's own mean: above it, cancellation costs less than two digits.
const CANCELLED: f64 = 1e-2;

/// Weight, mean and sum of squared deviations of every dense feature in every group.
///
/// A block of rows is summed about the mean of the block (one pass, two additions per value and
/// group) and merged by the formula of Chan, Golub and LeVeque. Where the mean of a group is so far
/// from that of the block that digits would cancel, the group is summed again about its own mean.
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

/// Sums of a block: one slot per group that occurs in it.
struct Block {
    groups: Vec<u32>,
    /// Per slot and feature, or per slot alone when nothing is missing.
    n: Vec<f64>,
    sum: Vec<f64>,
    squares: Vec<f64>,
}

impl GroupMoments {
    /// Adds the dense features of `rows`; `groups(row)` are the groups row `row` belongs to.
    pub fn observe<'a>(&mut self, rows: &Rows, groups: impl Fn(usize) -> &'a [u32]) {
        let width = rows.dense_width;
        if width == 0 || rows.len == 0 {
            return;
        }
        self.width = width;
        let (slots, block_groups) = slots(rows.len, &groups);
        let centre = column_means(rows);
        let mut block = Block {
            n: vec![0.0; block_groups.len() * width],
            sum: vec![0.0; block_groups.len() * width],
            squares: vec![0.0; block_groups.len() * width],
            groups: block_groups,
        };
        let none: Vec<bool> = vec![true; block.groups.len()];
        block.add_rows(rows, &groups, &slots, |_| &centre, &none);
        let (means, again) = block.means(&centre, width);
        if again.iter().any(|a| *a) {
            block.clear(&again, width);
            let own = |slot: usize| &means[slot * width..(slot + 1) * width];
            block.add_rows(rows, &groups, &slots, own, &again);
        }
        for slot in 0..block.groups.len() {
            let group = block.groups[slot];
            for d in 0..width {
                let i = slot * width + d;
                let n = block.n[i];
                if n == 0.0 {
                    continue;
                }
                let from = if again[slot] { means[i] } else { centre[d] };
                let offset = saturate(block.sum[i] / n);
                let m2 = saturate(block.squares[i] - block.sum[i] * offset).max(0.0);
                let m2 = if n == 1.0 { 0.0 } else { m2 };
                self.add(group, d, &Moment { n, mean: saturate(from + offset), m2 });
            }
        }
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
    pub fn get(&self, group: u32, feature: usize) -> Moment {
        let i = group as usize * self.width + feature;
        if feature >= self.width || i >= self.n.len() {
            return Moment::default();
        }
        Moment { n: self.n[i], mean: self.mean[i], m2: self.m2[i] }
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
        for group in 0..other.groups() as u32 {
            for d in 0..other.width {
                self.add(group, d, &other.get(group, d));
            }
        }
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
    }

    /// The same moments with groups renumbered.
    #[must_use]
    pub fn remap(&self, groups: &[u32]) -> Self {
        let mut out = GroupMoments { width: self.width, ..GroupMoments::default() };
        for (group, &to) in groups.iter().enumerate().take(self.groups()) {
            for d in 0..self.width {
                let m = self.get(group as u32, d);
                if m.n != 0.0 {
                    out.add(to, d, &m);
                }
            }
        }
        out
    }

    /// The moments as one Arrow row, without the empty groups at the end.
    pub fn encode(&self) -> Result<StructArray> {
        let len = self.used();
        let mut writer = StateWriter::default();
        writer.u32s("width", [self.width as u32]);
        for (name, values) in [("n", &self.n), ("mean", &self.mean), ("m2", &self.m2)] {
            writer.f64s(name, values[..len].iter().copied());
        }
        writer.finish()
    }

    /// The moments of one Arrow row.
    ///
    /// # Errors
    ///
    /// `Corrupt` when the lengths do not fit together.
    pub fn decode(row: &StructArray) -> Result<Self> {
        let reader = StateReader::new(row);
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

/// For each group of the block its slot, and the groups by slot.
fn slots<'a>(rows: usize, groups: &impl Fn(usize) -> &'a [u32]) -> (Vec<u32>, Vec<u32>) {
    let top = (0..rows).flat_map(groups).copied().max().map_or(0, |g| g as usize + 1);
    let mut slot_of = vec![u32::MAX; top];
    let mut by_slot = Vec::new();
    for &group in (0..rows).flat_map(groups) {
        let slot = &mut slot_of[group as usize];
        if *slot == u32::MAX {
            *slot = by_slot.len() as u32;
            by_slot.push(group);
        }
    }
    (slot_of, by_slot)
}

/// The mean of every column of the block; zero where all values are missing.
fn column_means(rows: &Rows) -> Vec<f64> {
    let width = rows.dense_width;
    let scale = 1.0 / rows.len as f64;
    let mut sum = vec![0.0; width];
    if rows.dense_missing {
        let mut n = vec![0.0; width];
        for row in rows.dense.chunks_exact(width) {
            for (d, &x) in row.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
                sum[d] += x * scale;
                n[d] += scale;
            }
        }
        sum.iter_mut().zip(n).for_each(|(s, n)| *s = if n > 0.0 { saturate(*s / n) } else { 0.0 });
    } else {
        for row in rows.dense.chunks_exact(width) {
            sum.iter_mut().zip(row).for_each(|(s, x)| *s += x * scale);
        }
        sum.iter_mut().for_each(|s| *s = saturate(*s));
    }
    sum
}

impl Block {
    /// Adds all rows to the slots that are wanted, about the centre of each slot.
    fn add_rows<'a, 'c>(
        &mut self,
        rows: &Rows,
        groups: &impl Fn(usize) -> &'a [u32],
        slots: &[u32],
        centre: impl Fn(usize) -> &'c [f64],
        wanted: &[bool],
    ) {
        let width = rows.dense_width;
        for (r, row) in rows.dense.chunks_exact(width).enumerate() {
            for &group in groups(r) {
                let slot = slots[group as usize] as usize;
                if !wanted[slot] {
                    continue;
                }
                let range = slot * width..(slot + 1) * width;
                let sums = self.sum[range.clone()].iter_mut().zip(&mut self.squares[range.clone()]);
                let values = row.iter().zip(centre(slot));
                if rows.dense_missing {
                    let sums = sums.zip(&mut self.n[range]);
                    for (((sum, squares), n), (x, c)) in sums.zip(values) {
                        let d = x - c;
                        if !d.is_nan() {
                            *sum += d;
                            *squares += d * d;
                            *n += 1.0;
                        }
                    }
                } else {
                    for ((sum, squares), (x, c)) in sums.zip(values) {
                        let d = x - c;
                        *sum += d;
                        *squares += d * d;
                    }
                    self.n[slot * width] += 1.0;
                }
            }
        }
        if !rows.dense_missing {
            for n in self.n.chunks_exact_mut(width) {
                let first = n[0];
                n.fill(first);
            }
        }
    }

    /// The mean of every slot, and the slots that must be summed again about it.
    fn means(&self, centre: &[f64], width: usize) -> (Vec<f64>, Vec<bool>) {
        let mut means = vec![0.0; self.sum.len()];
        let mut again = vec![false; self.groups.len()];
        for (slot, again) in again.iter_mut().enumerate() {
            for d in 0..width {
                let i = slot * width + d;
                if self.n[i] == 0.0 {
                    continue;
                }
                let offset = saturate(self.sum[i] / self.n[i]);
                means[i] = saturate(centre[d] + offset);
                let m2 = self.squares[i] - self.sum[i] * offset;
                *again |= self.n[i] > 1.0 && m2 < CANCELLED * self.squares[i];
            }
        }
        (means, again)
    }

    fn clear(&mut self, wanted: &[bool], width: usize) {
        for (slot, _) in wanted.iter().enumerate().filter(|(_, w)| **w) {
            let range = slot * width..(slot + 1) * width;
            self.n[range.clone()].fill(0.0);
            self.sum[range.clone()].fill(0.0);
            self.squares[range].fill(0.0);
        }
    }
}
