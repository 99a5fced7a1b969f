//! Predicting with binary relevance and chains.

use super::super::base::LogOdds;
use super::super::{RankedSet, Scorer};
use super::decode::Chain;
use super::params::{Method, Params, Threshold};
use crate::data::{Id, LabelId, LabelSets, Rows};
use crate::error::Result;
use crate::math::{logit, sigmoid};
use std::ops::Range;
use std::sync::Arc;

/// Rows that are scored at a time: their scores stay in the cache.
const BLOCK: usize = 256;
/// Probabilities of 0 and 1 have no log-odds: these stand in.
const SURE: (f64, f64) = (1e-15, 1.0 - 1e-15);

/// Fitted tasks, decoded.
#[derive(Debug)]
pub(super) struct ChainScorer {
    params: Params,
    labels: usize,
    /// The tasks of all chains, or of one chain each.
    scores: Vec<Arc<dyn LogOdds>>,
    chains: Vec<Chain>,
    /// Log-odds from which each label is predicted.
    cuts: Vec<f64>,
}

impl ChainScorer {
    /// Decodes `scores`: either one whose tasks are those of chain after chain, or one per chain.
    pub(super) fn new(
        params: Params,
        labels: usize,
        orders: Vec<Vec<LabelId>>,
        scores: Vec<Arc<dyn LogOdds>>,
        thresholds: &[f64],
    ) -> Self {
        let chains = orders.into_iter().enumerate().filter_map(|(c, order)| {
            let (of, first) = if scores.len() == 1 { (0, c * labels) } else { (c, 0) };
            scores.get(of).map(|s| Chain::new(order, &**s, first))
        });
        let chains = chains.collect();
        let cuts = match params.threshold {
            Threshold::Fixed(p) => vec![cut(p); labels],
            Threshold::Tuned(_) | Threshold::Cardinality => {
                thresholds.iter().map(|&p| cut(p)).collect()
            }
        };
        ChainScorer { params, labels, scores, chains, cuts }
    }

    /// The log-odds of every row without parents, and the chain that decides along them, where there
    /// is one: what thresholds are chosen from.
    pub(super) fn before_decisions(&self, rows: &Rows) -> Result<(Vec<f64>, Option<&Chain>)> {
        let mut scores = Vec::new();
        if self.params.method == Method::Chain {
            self.each_row(rows, |row| scores.extend_from_slice(row));
            return Ok((scores, self.chains.first()));
        }
        self.score(rows, &mut scores)?;
        Ok((scores, None))
    }

    /// Log-odds of every chain, row by row within a chain's block of `labels` values, without parents.
    fn write(&self, rows: &Rows, range: Range<usize>, out: &mut Vec<f64>) {
        match self.scores.as_slice() {
            [one] => one.write(rows, range, out),
            each => {
                // Row by row, the values of chain after chain.
                let width = self.labels * each.len();
                out.clear();
                out.resize(range.len() * width, 0.0);
                let mut part = Vec::new();
                for (c, scores) in each.iter().enumerate() {
                    scores.write(rows, range.clone(), &mut part);
                    for (row, values) in part.chunks_exact(self.labels.max(1)).enumerate() {
                        let at = row * width + c * self.labels;
                        out[at..at + self.labels].copy_from_slice(values);
                    }
                }
            }
        }
    }

    /// Calls `visit` with the log-odds of every row: those of chain after chain.
    fn each_row(&self, rows: &Rows, mut visit: impl FnMut(&mut [f64])) {
        if self.labels == 0 {
            (0..rows.len).for_each(|_| visit(&mut []));
            return;
        }
        let width = self.labels * self.chains.len();
        let mut block = Vec::new();
        for start in (0..rows.len).step_by(BLOCK) {
            self.write(rows, start..(start + BLOCK).min(rows.len), &mut block);
            block.chunks_exact_mut(width).for_each(&mut visit);
        }
    }

    /// The mean over chains, as log-odds.
    fn vote(&self, row: &mut [f64], even: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (chain, z) in self.chains.iter().zip(row.chunks_exact_mut(self.labels.max(1))) {
            // The threshold is one of votes: each chain decides by what is more probable.
            chain.greedy(z, even);
            for (sum, z) in out.iter_mut().zip(z) {
                *sum += match self.params.vote_sets {
                    true => f64::from(u8::from(*z >= 0.0)),
                    false => sigmoid(*z),
                };
            }
        }
        let n = self.chains.len().max(1) as f64;
        out.iter_mut().for_each(|p| *p = log_odds(*p / n));
    }
}

/// The log-odds from which a label is predicted whose threshold is `p`: a sure label reaches 1.
pub(super) fn cut(p: f64) -> f64 {
    logit(p).min(logit(SURE.1))
}

fn log_odds(p: f64) -> f64 {
    logit(p.clamp(SURE.0, SURE.1))
}

impl Scorer for ChainScorer {
    fn score(&self, rows: &Rows, out: &mut Vec<f64>) -> Result<()> {
        out.clear();
        out.reserve(rows.len * self.labels);
        let (mut buffer, even) = (vec![0.0; self.labels], vec![0.0; self.labels]);
        self.each_row(rows, |row| match (self.params.method, self.chains.first()) {
            (Method::Relevance, _) | (_, None) => out.extend_from_slice(row),
            (Method::Chain, Some(chain)) => {
                chain.greedy(row, &self.cuts);
                out.extend_from_slice(row);
            }
            (Method::Ensemble, _) => {
                self.vote(row, &even, &mut buffer);
                out.extend_from_slice(&buffer);
            }
            (Method::Probabilistic, Some(chain)) => {
                chain.marginals(row, self.params.beam, &mut buffer);
                out.extend(buffer.iter().map(|&p| log_odds(p)));
            }
        });
        Ok(())
    }

    fn predict(&self, rows: &Rows, out: &mut LabelSets) -> Result<()> {
        if self.params.joint {
            self.each_row(rows, |row| {
                let best = self.chains.first().map(|c| c.best_sets(row, 1, self.params.beam));
                out.push(best.into_iter().flatten().next().map_or_else(Vec::new, |s| s.labels));
            });
            return Ok(());
        }
        let mut scores = Vec::new();
        self.score(rows, &mut scores)?;
        for row in 0..rows.len {
            let scores = &scores[row * self.labels..(row + 1) * self.labels];
            let on = |y: &LabelId| scores[y.index()] >= self.cuts[y.index()];
            out.push(LabelId::all(self.labels).filter(on));
        }
        Ok(())
    }

    fn rank_sets(&self, rows: &Rows, most: usize) -> Result<Vec<Vec<RankedSet>>> {
        if self.params.method != Method::Probabilistic {
            return Err(crate::error::Error::unsupported(
                "this algorithm does not rank label sets: use pcc",
            ));
        }
        let mut ranked = Vec::with_capacity(rows.len);
        self.each_row(rows, |row| {
            let sets = self.chains.first().map(|c| c.best_sets(row, most, self.params.beam));
            ranked.push(sets.unwrap_or_default());
        });
        Ok(ranked)
    }
}
