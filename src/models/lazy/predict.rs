//! From neighbours to scores and label sets.

use super::super::{RankedSet, Scorer};
use super::params::{Method, Params};
use super::posterior::{LogOdds, PosteriorCounts};
use super::search::{Neighbours, Search};
use super::votes::Votes;
use crate::data::{Id, LabelId, LabelSets, Rows};
use crate::error::{Error, Result};
use crate::math::{FixedState, logit};
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The most bytes of neighbours that are in memory at a time.
const ROOM: usize = 32 << 20;
/// The bytes that answers of any search may take.
const LITTLE: usize = 1 << 20;

/// How many queries are searched at a time when each has `k` neighbours, a number and a distance
/// for each.
pub(super) fn chunk(k: usize) -> usize {
    (ROOM / (12 * k.max(1))).clamp(1, 8192)
}

/// Neighbours, and a hash of the rows that asked for them.
type Answer = (u64, Arc<Neighbours>);

/// A search, and the most neighbours that anybody asks it for.
#[derive(Debug)]
pub(super) struct Neighbourhood {
    pub(super) search: Search,
    pub(super) k: usize,
    /// The answers given last, for learners that ask about the same rows in turn, and for one that
    /// predicts rows and scores them.
    answers: Mutex<Vec<Answer>>,
    /// How many bytes of answers are remembered: of a search that one learner asks, no more than
    /// the search itself takes.
    room: usize,
}

impl Neighbourhood {
    /// The neighbourhood that so many `learners` share.
    pub(super) fn new(search: Search, k: usize, learners: usize) -> Self {
        let room = if learners > 1 { ROOM } else { search.heap_size().clamp(LITTLE, ROOM) };
        Neighbourhood { search, k, answers: Mutex::default(), room }
    }

    /// The neighbours of the rows of `range`.
    pub(super) fn of(&self, rows: &Rows, range: Range<usize>) -> Arc<Neighbours> {
        let hash = fingerprint(rows, range.clone());
        let list = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, answer)) = list.iter().find(|a| a.0 == hash) {
            return Arc::clone(answer);
        }
        // Searching spreads over threads, which might come here: not under the lock.
        drop(list);
        let answer = Arc::new(self.search.neighbours(rows, range, self.k));
        let mut list = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        list.push((hash, Arc::clone(&answer)));
        let mut bytes: usize = list.iter().map(|a| a.1.heap_size()).sum();
        while bytes > self.room {
            bytes -= list.remove(0).1.heap_size();
        }
        answer
    }
}

/// A hash of the features of the rows of `range`.
fn fingerprint(rows: &Rows, range: Range<usize>) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    hasher.write_usize(range.len());
    for row in range {
        rows.dense_row(row).iter().for_each(|x| hasher.write_u64(x.to_bits()));
        if row < rows.sparse.len() {
            let (ids, values) = rows.sparse.row(row);
            hasher.write_usize(ids.len());
            ids.iter().for_each(|id| hasher.write_u32(id.0));
            values.iter().for_each(|x| hasher.write_u64(x.to_bits()));
        }
        rows.category_row(row).iter().for_each(|v| hasher.write_u32(v.0));
    }
    hasher.finish()
}

/// The fitted parameters of a lazy learner.
#[derive(Debug)]
pub(super) struct Voting {
    params: Params,
    /// How many neighbours are asked.
    k: usize,
    labels: usize,
    pub(super) near: Arc<Neighbourhood>,
    /// ML-kNN: by label, what the number of neighbours that have it says.
    odds: Vec<LogOdds>,
}

impl Voting {
    pub(super) fn new(
        params: Params,
        labels: usize,
        near: Arc<Neighbourhood>,
        counts: Option<&PosteriorCounts>,
    ) -> Self {
        let odds = match (params.method, counts) {
            (Method::Bayes { smoothing }, Some(counts)) => counts.log_odds(smoothing),
            _ => Vec::new(),
        };
        let k = params.asked(near.search.table());
        Voting { params, k, labels, near, odds }
    }

    /// Counts the votes for each row in turn.
    fn each(&self, rows: &Rows, mut visit: impl FnMut(&Votes, &[u32])) {
        let sets = &self.near.search.table().rows.labels;
        let mut votes = Votes::default();
        let chunk = chunk(self.near.k);
        for first in (0..rows.len).step_by(chunk) {
            let neighbours = self.near.of(rows, first..rows.len.min(first + chunk));
            for i in 0..neighbours.len() {
                let found = neighbours.of(i, self.k);
                votes.count(self.labels, sets, found, self.params.by_distance);
                visit(&votes, found.0);
            }
        }
    }

    /// The label sets of neighbours with their weights; heaviest first, then nearest first.
    fn sets<'a>(&'a self, votes: &Votes, neighbours: &[u32]) -> Vec<(&'a [LabelId], f64)> {
        let sets = &self.near.search.table().rows.labels;
        let weighed = neighbours.iter().zip(votes.weights()).enumerate();
        let mut found: Vec<(&[LabelId], usize, f64)> =
            weighed.map(|(place, (&row, &w))| (sets.row(row as usize), place, w)).collect();
        found.sort_unstable_by_key(|f| (f.0, f.1));
        found.dedup_by(|next, first| {
            let same = next.0 == first.0;
            first.2 += if same { next.2 } else { 0.0 };
            same
        });
        found.sort_unstable_by(|a, b| b.2.total_cmp(&a.2).then(a.1.cmp(&b.1)));
        found.into_iter().map(|(set, _, weight)| (set, weight)).collect()
    }

    fn decide(&self, votes: &Votes, neighbours: &[u32], best: &mut Vec<(LabelId, f64)>) {
        best.clear();
        // Most votes first; ties go to the lower label.
        let order =
            |a: &(LabelId, f64), b: &(LabelId, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        match self.params.method {
            Method::Majority | Method::MajorityOrBest => {
                best.extend(votes.iter().filter(|(_, v)| votes.has_majority(*v)));
                if best.is_empty() && self.params.method == Method::MajorityOrBest {
                    best.extend(votes.iter().min_by(order));
                }
            }
            Method::MeanSize => {
                best.extend(votes.iter());
                best.sort_unstable_by(order);
                best.truncate(votes.mean_size());
            }
            Method::Powerset => {
                let sets = self.sets(votes, neighbours);
                best.extend(sets.first().iter().flat_map(|s| s.0).map(|&y| (y, 0.0)));
            }
            Method::Bayes { .. } => {
                let all = LabelId::all(self.labels).map(|y| (y, self.bayes(votes, y)));
                best.extend(all.filter(|(_, log_odds)| *log_odds > 0.0));
            }
        }
    }

    fn bayes(&self, votes: &Votes, y: LabelId) -> f64 {
        self.odds[y.index()].given(votes.having(votes.of(y)))
    }
}

impl Scorer for Voting {
    fn score(&self, rows: &Rows, out: &mut Vec<f64>) -> Result<()> {
        out.clear();
        out.reserve(rows.len * self.labels);
        self.each(rows, |votes, _| {
            let all = LabelId::all(self.labels);
            match self.params.method {
                Method::Bayes { .. } => out.extend(all.map(|y| self.bayes(votes, y))),
                // Finite: a share of 0 or 1 is the nearest number to it.
                _ => out.extend(all.map(|y| logit(votes.share(y)).clamp(-SURE, SURE))),
            }
        });
        Ok(())
    }

    fn predict(&self, rows: &Rows, out: &mut LabelSets) -> Result<()> {
        let mut best = Vec::new();
        self.each(rows, |votes, neighbours| {
            self.decide(votes, neighbours, &mut best);
            out.push(best.iter().map(|b| b.0));
        });
        Ok(())
    }

    fn rank_sets(&self, rows: &Rows, most: usize) -> Result<Vec<Vec<RankedSet>>> {
        if self.params.method != Method::Powerset {
            return Err(Error::unsupported("this algorithm does not rank label sets"));
        }
        let mut out = Vec::with_capacity(rows.len);
        self.each(rows, |votes, neighbours| {
            let ranked = self.sets(votes, neighbours).into_iter().take(most);
            let ranked = ranked.map(|(set, weight)| RankedSet {
                labels: set.to_vec(),
                probability: weight / votes.total(),
            });
            out.push(ranked.collect());
        });
        Ok(out)
    }
}

/// The log-odds of what all neighbours say: its probability rounds to 1.
const SURE: f64 = 40.0;
