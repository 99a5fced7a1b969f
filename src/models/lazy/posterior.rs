//! ML-kNN: how often a label is there, given how many neighbours have it.

use super::search::Neighbours;
use super::votes::Votes;
use crate::data::{Id, LabelId, Remap};
use crate::error::{Error, Result};
use crate::stats::{RowTable, State, StateReader, StateWriter};

/// Counts over the stored rows, each asked for its own neighbours.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PosteriorCounts {
    k: usize,
    /// N, and N_y by label.
    rows: f64,
    with: Vec<f64>,
    /// By label and number of neighbours with it, from 1: rows that have the label, that have not.
    /// Only what was seen, by number.
    seen: Vec<Vec<(u32, [f64; 2])>>,
}

/// What the number of neighbours that have a label says about it: log-odds.
#[derive(Debug)]
pub(super) struct LogOdds {
    none: f64,
    /// By number of neighbours, from 1.
    seen: Vec<(u32, f64)>,
    /// Of numbers that were not seen.
    unseen: f64,
}

impl LogOdds {
    /// `ln P(y given j) - ln P(not y given j)` where `j` neighbours have the label.
    pub(super) fn given(&self, j: usize) -> f64 {
        if j == 0 {
            return self.none;
        }
        match self.seen.binary_search_by_key(&j, |s| s.0 as usize) {
            Ok(at) => self.seen[at].1,
            Err(_) => self.unseen,
        }
    }
}

impl PosteriorCounts {
    /// Nothing counted yet; `k` is at most the number of rows.
    pub(super) fn new(table: &RowTable, labels: usize, k: usize) -> Self {
        let mut with = vec![0.0; labels];
        for (set, &n) in table.rows.labels.iter().zip(&table.counts) {
            set.iter().for_each(|y| with[y.index()] += n as f64);
        }
        PosteriorCounts { k, rows: table.total() as f64, with, seen: vec![Vec::new(); labels] }
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
                    self.place(y.index(), having)[without] += n;
                }
            }
        }
    }

    /// What is counted where `having` neighbours have label `y`.
    fn place(&mut self, y: usize, having: usize) -> &mut [f64; 2] {
        let seen = &mut self.seen[y];
        let at = seen.binary_search_by_key(&having, |s| s.0 as usize).unwrap_or_else(|at| {
            seen.insert(at, (having as u32, [0.0; 2]));
            at
        });
        &mut seen[at].1
    }

    /// What the number of neighbours that have it says about each label.
    pub(super) fn log_odds(&self, smoothing: f64) -> Vec<LogOdds> {
        let (s, all) = (smoothing, smoothing * (self.k + 1) as f64);
        let of_label = |y: usize| {
            let (with, without) = (self.with[y], self.rows - self.with[y]);
            // One quotient of products: of whole numbers it is exact, so that equal odds are equal.
            let log_odds = |c: [f64; 2]| {
                let on = (s + with) * (s + c[0]) * (all + without);
                let off = (s + without) * (s + c[1]) * (all + with);
                (on / off).ln()
            };
            LogOdds {
                none: log_odds(self.none(y)),
                seen: self.seen[y].iter().map(|&(j, c)| (j, log_odds(c))).collect(),
                unseen: log_odds([0.0; 2]),
            }
        };
        (0..self.with.len()).map(of_label).collect()
    }

    /// Rows none of whose neighbours have label `y`: those that are left.
    fn none(&self, y: usize) -> [f64; 2] {
        let all = [self.with[y], self.rows - self.with[y]];
        self.seen[y].iter().fold(all, |[a, b], (_, c)| [a - c[0], b - c[1]])
    }

    /// The same counts with labels renumbered; labels that are dropped are in no row.
    pub(super) fn remap(&self, ids: &Remap) -> Self {
        let kept = ids.labels.iter().filter(|y| **y != LabelId::NONE).count();
        let mut out = PosteriorCounts {
            k: self.k,
            rows: self.rows,
            with: vec![0.0; kept],
            seen: vec![Vec::new(); kept],
        };
        let new_ids = ids.labels.iter().enumerate();
        for (old, new) in new_ids.filter(|(_, y)| **y != LabelId::NONE) {
            out.with[new.index()] = self.with[old];
            out.seen[new.index()] = self.seen[old].clone();
        }
        out
    }

    /// What was counted as a state, zeros left out; that of nothing where nothing was.
    pub(super) fn encode(counts: Option<&Self>) -> State {
        let mut writer = StateWriter::default();
        let seen = counts.map_or(&[][..], |c| &c.seen);
        let seen = || seen.iter().zip(0..).flat_map(|(seen, y)| seen.iter().map(move |s| (y, s)));
        writer.u32s("counted", [u32::from(counts.is_some())]);
        writer.u32s("label", seen().map(|(y, _)| y));
        writer.u32s("neighbours", seen().map(|(_, s)| s.0));
        writer.f64s("with", seen().map(|(_, s)| s.1[0]));
        writer.f64s("without", seen().map(|(_, s)| s.1[1]));
        writer.finish()
    }

    /// The counts in a state for the rows of `table`.
    ///
    /// # Errors
    ///
    /// `Corrupt` when there are more rows in them than in the table.
    pub(super) fn decode(
        table: &RowTable,
        labels: usize,
        k: usize,
        state: &State,
    ) -> Result<Option<Self>> {
        let odd = || Error::corrupt("the model's counts of neighbours do not fit its rows");
        let reader = StateReader::new(state);
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
            // In order, so that none comes twice.
            if i > 0 && (ids[i - 1], having[i - 1]) >= (ids[i], having[i]) {
                return Err(odd());
            }
            counts.seen[y].push((having[i], c));
        }
        if (0..labels).any(|y| counts.none(y).into_iter().any(|n| n < 0.0)) {
            return Err(odd());
        }
        Ok(Some(counts))
    }

    pub(super) fn heap_size(&self) -> usize {
        let seen: usize = self.seen.iter().map(Vec::capacity).sum();
        32 * self.with.capacity() + 24 * seen
    }
}
