//! ML-kNN: how often a label is there, given how many neighbours have it.

use super::search::Neighbours;
use super::votes::Votes;
use crate::stats::RowTable;

/// Counts over the stored rows, each asked for its own neighbours.
#[derive(Debug)]
pub(super) struct PosteriorCounts {
    k: usize,
    by_distance: bool,
    labels: usize,
    /// N, and N_y by label.
    rows: f64,
    with: Vec<f64>,
    /// By label and number of neighbours with it, from 1: rows that have the label, that have not.
    seen: Vec<[f64; 2]>,
    votes: Votes,
}

impl PosteriorCounts {
    /// Nothing counted yet; `k` is at most the number of rows.
    pub(super) fn new(table: &RowTable, labels: usize, k: usize, by_distance: bool) -> Self {
        let mut with = vec![0.0; labels];
        for (set, &n) in table.rows.labels.iter().zip(&table.counts) {
            set.iter().for_each(|&y| with[y as usize] += n as f64);
        }
        PosteriorCounts {
            k,
            by_distance,
            labels,
            rows: table.total() as f64,
            with,
            seen: vec![[0.0; 2]; labels * k],
            votes: Votes::default(),
        }
    }

    /// Counts the rows of `table` from `first` on, whose neighbours are `neighbours`.
    pub(super) fn observe(&mut self, table: &RowTable, first: usize, neighbours: &Neighbours) {
        let sets = &table.rows.labels;
        for i in 0..neighbours.len() {
            let found = neighbours.of(i, self.k);
            self.votes.count(self.labels, sets, found, self.by_distance);
            let (set, n) = (sets.row(first + i), table.counts[first + i] as f64);
            for (y, votes) in self.votes.iter() {
                let having = self.votes.having(votes);
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
        let mut out = Vec::with_capacity(self.labels * (k + 1));
        for y in 0..self.labels {
            let (with, without) = (self.with[y], self.rows - self.with[y]);
            let seen = &self.seen[y * k..(y + 1) * k];
            // Rows none of whose neighbours have the label are those that are left.
            let none = seen.iter().fold([with, without], |[a, b], c| [a - c[0], b - c[1]]);
            let all = s * (k + 1) as f64;
            // One quotient of products: of whole numbers it is exact, so that equal odds are equal.
            let log_odds = |c: &[f64; 2]| {
                let on = (s + with) * (s + c[0]) * (all + without);
                let off = (s + without) * (s + c[1]) * (all + with);
                (on / off).ln()
            };
            out.extend(std::iter::once(&none).chain(seen).map(log_odds));
        }
        out
    }
}
