//! What neighbours say about labels.

use crate::data::{Id, LabelId, LabelSets};

/// The votes of the neighbours of one row; buffers are used again.
#[derive(Debug, Default)]
pub(super) struct Votes {
    /// For each label, the weight of the neighbours that have it.
    of: Vec<f64>,
    /// The labels that have votes, ascending.
    labels: Vec<LabelId>,
    weights: Vec<f64>,
    /// The weight of all neighbours.
    total: f64,
    /// How many neighbours there are.
    count: usize,
}

impl Votes {
    /// Counts the votes of `neighbours`, which are rows of `sets`. By distance, each counts by the
    /// inverse of its distance, and those at distance zero, if any, alone.
    pub(super) fn count(
        &mut self,
        labels: usize,
        sets: &LabelSets,
        (rows, distances): (&[u32], &[f64]),
        by_distance: bool,
    ) {
        self.labels.iter().for_each(|y| self.of[y.index()] = 0.0);
        self.labels.clear();
        self.of.resize(labels, 0.0);
        self.weights.clear();
        match distances.first() {
            Some(&nearest) if by_distance => self.weights.extend(distances.iter().map(|&d| {
                if nearest == 0.0 { f64::from(u8::from(d == 0.0)) } else { nearest / d }
            })),
            _ => self.weights.resize(rows.len(), 1.0),
        }
        self.total = self.weights.iter().sum();
        self.count = rows.len();
        for (&row, &weight) in rows.iter().zip(&self.weights) {
            for &y in sets.row(row as usize) {
                let votes = &mut self.of[y.index()];
                if *votes == 0.0 && weight > 0.0 {
                    self.labels.push(y);
                }
                *votes += weight;
            }
        }
        self.labels.sort_unstable();
    }

    /// The labels with votes and their votes, in the order of labels.
    pub(super) fn iter(&self) -> impl Iterator<Item = (LabelId, f64)> + '_ {
        self.labels.iter().map(|&y| (y, self.of[y.index()]))
    }

    /// The votes for label `y`.
    pub(super) fn of(&self, y: LabelId) -> f64 {
        self.of[y.index()]
    }

    /// The share of the neighbours that have label `y`; 0 without neighbours.
    pub(super) fn share(&self, y: LabelId) -> f64 {
        if self.total > 0.0 { self.of[y.index()] / self.total } else { 0.0 }
    }

    /// Whether more than half of the neighbours have it.
    pub(super) fn has_majority(&self, votes: f64) -> bool {
        2.0 * votes > self.total
    }

    /// The mean number of labels of the neighbours, rounded half up.
    pub(super) fn mean_size(&self) -> usize {
        let sum: f64 = self.iter().map(|(_, votes)| votes).sum();
        if self.total > 0.0 { (sum / self.total + 0.5).floor() as usize } else { 0 }
    }

    /// How many neighbours have a label with these votes; by distance, their share of them.
    pub(super) fn having(&self, votes: f64) -> usize {
        if self.total == self.count as f64 {
            return votes as usize;
        }
        (votes / self.total * self.count as f64 + 0.5).floor() as usize
    }

    /// The weight of each neighbour.
    pub(super) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The weight of all neighbours.
    pub(super) fn total(&self) -> f64 {
        self.total
    }
}
