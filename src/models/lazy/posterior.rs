//! ML-kNN: how often a label is there, given how many neighbours have it.

use super::search::Neighbours;
use super::votes::Votes;
use crate::data::{DROPPED, Remap};
use crate::error::{Error, Result};
use crate::stats::{RowTable, StateReader, StateWriter};
use arrow::array::StructArray;

/// Counts over the stored rows, each asked for its own neighbours.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PosteriorCounts {
    k: usize,
    /// N, and N_y by label.
    rows: f64,
    with: Vec<f64>,
    /// By label and number of neighbours with it, from 1: rows that have the label, that have not.
    seen: Vec<[f64; 2]>,
}

impl PosteriorCounts {
    /// Nothing counted yet; `k` is at most the number of rows.
    pub(super) fn new(table: &RowTable, labels: usize, k: usize) -> Self {
        let mut with = vec![0.0; labels];
        for (set, &n) in table.rows.labels.iter().zip(&table.counts) {
            set.iter().for_each(|&y| with[y as usize] += n as f64);
        }
        PosteriorCounts { k, rows: table.total() as f64, with, seen: vec![[0.0; 2]; labels * k] }
    }

    /// Whether these are counts of so many labels and neighbours.
    pub(super) fn fits(&self, labels: usize, k: usize) -> bool {
        self.with.len() == labels && self.k == k
    }

    /// Counts the rows of `table` from `first` on, whose neighbours are `neighbours`.
    pub(super) fn observe(
        &mut self,
        table: &RowTable,
        first: usize,
        neighbours: &Neighbours,
        by_distance: bool,
    ) {
        let sets = &table.rows.labels;
        let mut votes = Votes::default();
        for i in 0..neighbours.len() {
            votes.count(self.with.len(), sets, neighbours.of(i, self.k), by_distance);
            let (set, n) = (sets.row(first + i), table.counts[first + i] as f64);
            for (y, weight) in votes.iter() {
                let having = votes.having(weight);
                if having > 0 {
                    let without = usize::from(set.binary_search(&y).is_err());
                    self.seen[y as usize * self.k + having - 1][without] += n;
                }
            }
        }
    }

    /// `ln P(y given j) - ln P(not y given j)` for each label y and each number j of neighbours that
    /// have it, from 0 to k.
    pub(super) fn log_odds(&self, smoothing: f64) -> Vec<f64> {
        let (s, k) = (smoothing, self.k);
        let mut out = Vec::with_capacity(self.with.len() * (k + 1));
        for y in 0..self.with.len() {
            let (with, without) = (self.with[y], self.rows - self.with[y]);
            let all = s * (k + 1) as f64;
            // One quotient of products: of whole numbers it is exact, so that equal odds are equal.
            let log_odds = |c: &[f64; 2]| {
                let on = (s + with) * (s + c[0]) * (all + without);
                let off = (s + without) * (s + c[1]) * (all + with);
                (on / off).ln()
            };
            let none = self.none(y);
            let seen = &self.seen[y * k..(y + 1) * k];
            out.extend(std::iter::once(&none).chain(seen).map(log_odds));
        }
        out
    }

    /// Rows none of whose neighbours have label `y`: those that are left.
    fn none(&self, y: usize) -> [f64; 2] {
        let all = [self.with[y], self.rows - self.with[y]];
        let seen = &self.seen[y * self.k..(y + 1) * self.k];
        seen.iter().fold(all, |[a, b], c| [a - c[0], b - c[1]])
    }

    /// The same counts with labels renumbered; labels that are dropped are in no row.
    pub(super) fn remap(&self, ids: &Remap) -> Self {
        let kept = ids.labels.iter().filter(|y| **y != DROPPED).count();
        let mut out = PosteriorCounts {
            k: self.k,
            rows: self.rows,
            with: vec![0.0; kept],
            seen: vec![[0.0; 2]; kept * self.k],
        };
        for (old, &new) in ids.labels.iter().enumerate().filter(|(_, y)| **y != DROPPED) {
            let (new, k) = (new as usize, self.k);
            out.with[new] = self.with[old];
            out.seen[new * k..(new + 1) * k].copy_from_slice(&self.seen[old * k..(old + 1) * k]);
        }
        out
    }

    /// What was counted as one Arrow row, zeros left out; that of nothing where nothing was.
    pub(super) fn encode(counts: Option<&Self>) -> Result<StructArray> {
        let mut writer = StateWriter::default();
        let k = counts.map_or(1, |c| c.k.max(1));
        let seen = counts.map_or(&[][..], |c| &c.seen);
        let seen = || seen.iter().enumerate().filter(|(_, c)| **c != [0.0; 2]);
        writer.u32s("counted", [u32::from(counts.is_some())]);
        writer.u32s("label", seen().map(|(at, _)| (at / k) as u32));
        writer.u32s("neighbours", seen().map(|(at, _)| (at % k + 1) as u32));
        writer.f64s("with", seen().map(|(_, c)| c[0]));
        writer.f64s("without", seen().map(|(_, c)| c[1]));
        writer.finish()
    }

    /// The counts of one Arrow row for the rows of `table`.
    ///
    /// # Errors
    ///
    /// `Corrupt` when there are more rows in them than in the table.
    pub(super) fn decode(
        table: &RowTable,
        labels: usize,
        k: usize,
        row: &StructArray,
    ) -> Result<Option<Self>> {
        let odd = || Error::corrupt("the model's counts of neighbours do not fit its rows");
        let reader = StateReader::new(row);
        let (ids, having) = (reader.u32s("label")?, reader.u32s("neighbours")?);
        let (with, without) = (reader.f64s("with")?, reader.f64s("without")?);
        match reader.u32s("counted")? {
            [0] if ids.is_empty() => return Ok(None),
            [1] => {}
            _ => return Err(odd()),
        }
        if [having.len(), with.len(), without.len()] != [ids.len(); 3] {
            return Err(odd());
        }
        let mut counts = PosteriorCounts::new(table, labels, k);
        for (i, (&y, &j)) in ids.iter().zip(having).enumerate() {
            let (y, j, c) = (y as usize, j as usize, [with[i], without[i]]);
            let whole = |n: f64| n >= 0.0 && n.fract() == 0.0;
            if y >= labels || j == 0 || j > k || c == [0.0; 2] || !c.into_iter().all(whole) {
                return Err(odd());
            }
            let place = &mut counts.seen[y * k + j - 1];
            if *place != [0.0; 2] {
                return Err(odd());
            }
            *place = c;
        }
        if (0..labels).any(|y| counts.none(y).into_iter().any(|n| n < 0.0)) {
            return Err(odd());
        }
        Ok(Some(counts))
    }

    pub(super) fn heap_size(&self) -> usize {
        8 * self.with.capacity() + 16 * self.seen.capacity()
    }
}
