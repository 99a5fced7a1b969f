//! Predicting with NaiBX.

use super::super::{RankedSet, Scorer};
use super::cascade::LabelEvidence;
use super::complement::GroupInput;
use super::fit::NaiveBayes;
use super::likelihood::Likelihood;
use super::params::{Params, Rule, Size};
use super::size::SizePosterior;
use crate::data::{FeatureSpace, LabelSets, Rows, Space};
use crate::decide::Decision;
use crate::error::{Error, Result};
use crate::math::{log_sum_exp, top_k};
use crate::stats::FeatureStats;
use std::sync::{Arc, OnceLock};

/// The fitted cascade.
#[derive(Debug)]
pub(super) struct Cascade {
    params: Params,
    labels: usize,
    /// ln P(y) up to a constant.
    label_prior_ln: Vec<f64>,
    /// ln P(y) - ln P(not y).
    prior_log_odds: Vec<f64>,
    of_labels: Likelihood,
    of_sizes: Likelihood,
    size: SizePosterior,
    evidence: LabelEvidence,
    /// What the parameters of scores are derived from when they are first asked for.
    by_label: Arc<FeatureStats>,
    pooled: FeatureStats,
    features: FeatureSpace,
    outside_labels: OnceLock<Likelihood>,
}

impl Cascade {
    pub(super) fn fit(state: &NaiveBayes, space: &Space) -> Self {
        let params = state.params.clone();
        let s = params.smoothing;
        let labels = space.labels.len();
        let total = state.sizes.total();
        let evidence = LabelEvidence::fit(state, labels);
        let allowed = match params.allow_empty {
            Some(false) => 1,
            _ => 0,
        };
        let mut sizes: Vec<u32> =
            evidence.sizes.iter().copied().filter(|&m| m >= allowed).collect();
        if params.allow_empty == Some(true) && sizes.first() != Some(&0) {
            sizes.insert(0, 0);
        }
        let ids: Vec<u32> = (0..labels as u32).collect();
        let features = space.features.clone();
        let pooled = state.by_size.pooled();
        let fit = |stats: &FeatureStats, groups: &[u32]| {
            Likelihood::fit(&GroupInput::of(stats, groups, &features), &pooled, &features, s)
        };
        Cascade {
            of_labels: fit(&state.by_label, &ids),
            of_sizes: fit(&state.by_size, &sizes),
            label_prior_ln: ids.iter().map(|&y| (state.labels.get(y) + s).ln()).collect(),
            prior_log_odds: ids
                .iter()
                .map(|&y| {
                    let n = state.labels.get(y);
                    ((n + s) / ((total - n).max(0.0) + s)).ln()
                })
                .collect(),
            size: SizePosterior::fit(state, &evidence, sizes, space.features.len()),
            by_label: Arc::clone(&state.by_label),
            outside_labels: OnceLock::new(),
            params,
            labels,
            evidence,
            pooled,
            features,
        }
    }

    /// Likelihoods of the rows without each label.
    fn outside_labels(&self) -> &Likelihood {
        self.outside_labels.get_or_init(|| {
            let ids: Vec<u32> = (0..self.labels as u32).collect();
            let input = GroupInput::of(&self.by_label, &ids, &self.features)
                .outside(&self.pooled, &self.features);
            Likelihood::fit(&input, &self.pooled, &self.features, self.params.smoothing)
        })
    }

    /// ln P(y) + ln p(x | y) for every row and label.
    fn label_scores(&self, rows: &Rows) -> Vec<f64> {
        let mut scores = Vec::new();
        self.of_labels.write(rows, &mut scores);
        for row in scores.chunks_exact_mut(self.labels.max(1)) {
            row.iter_mut().zip(&self.label_prior_ln).for_each(|(s, p)| *s += p);
        }
        scores
    }

    /// ln P(m | x) up to a constant for every row and size that may be predicted.
    fn size_scores(&self, rows: &Rows, label_scores: &[f64]) -> Vec<f64> {
        let mut scores = Vec::new();
        self.of_sizes.write(rows, &mut scores);
        let width = self.of_sizes.groups().max(1);
        for (row, scores) in scores.chunks_exact_mut(width).enumerate() {
            match self.params.size {
                Size::Labels => {
                    let labels = &label_scores[row * self.labels..(row + 1) * self.labels];
                    self.size.by_labels(labels, scores);
                }
                _ => self.size.by_features(scores),
            }
        }
        scores
    }

    /// The size of the set of every row.
    fn sizes(&self, rows: &Rows, label_scores: &[f64]) -> Result<Vec<u32>> {
        match &self.params.size {
            Size::Fixed(size) => Ok(vec![*size; rows.len]),
            Size::Given(column) => {
                if rows.given_size.len() == rows.len {
                    return Ok(rows.given_size.clone());
                }
                Err(Error::data(match column {
                    Some(name) => {
                        format!("column `{name}`, which gives the size of the set, is missing")
                    }
                    None => "size=given needs a column: write size=given(column)".to_string(),
                }))
            }
            Size::Predicted | Size::Labels => {
                let scores = self.size_scores(rows, label_scores);
                let width = self.of_sizes.groups().max(1);
                let mut sizes: Vec<u32> =
                    scores.chunks_exact(width).map(|row| self.size.choose(row)).collect();
                sizes.resize(rows.len, 0);
                Ok(sizes)
            }
        }
    }
}

impl Scorer for Cascade {
    fn score(&self, rows: &Rows, out: &mut Vec<f64>) -> Result<()> {
        self.of_labels.write(rows, out);
        let mut outside = Vec::new();
        self.outside_labels().write(rows, &mut outside);
        for (row, outside) in
            out.chunks_exact_mut(self.labels.max(1)).zip(outside.chunks_exact(self.labels.max(1)))
        {
            let others = outside.iter().zip(&self.prior_log_odds);
            row.iter_mut().zip(others).for_each(|(s, (o, p))| *s += p - o);
        }
        Ok(())
    }

    fn predict(&self, rows: &Rows, out: &mut LabelSets) -> Result<()> {
        let rule = match self.params.rule {
            Rule::Cascade if self.params.sets > 1 => {
                for mut sets in self.rank_sets(rows, self.params.sets)? {
                    out.push(if sets.is_empty() { Vec::new() } else { sets.swap_remove(0).labels });
                }
                return Ok(());
            }
            Rule::Cascade => {
                let mut scores = self.label_scores(rows);
                let sizes = self.sizes(rows, &scores)?;
                let mut picked = Vec::new();
                for (row, &size) in sizes.iter().enumerate() {
                    let scores = &mut scores[row * self.labels..(row + 1) * self.labels];
                    self.evidence.greedy(scores, size, &mut picked);
                    out.push(picked.iter().copied());
                }
                return Ok(());
            }
            Rule::Threshold(p) => Decision::Threshold(p),
            Rule::Top(k) => Decision::Top(k),
        };
        let mut scores = Vec::new();
        self.score(rows, &mut scores)?;
        rule.decide(&scores, rows.len, out);
        Ok(())
    }

    fn rank_sets(&self, rows: &Rows, most: usize) -> Result<Vec<Vec<RankedSet>>> {
        let label_scores = self.label_scores(rows);
        let size_scores = self.size_scores(rows, &label_scores);
        let width = self.of_sizes.groups();
        let fixed = match self.params.size {
            Size::Predicted | Size::Labels => None,
            _ => Some(self.sizes(rows, &label_scores)?),
        };
        let mut order = Vec::new();
        (0..rows.len)
            .map(|row| {
                let sizes: Vec<(u32, f64)> = match &fixed {
                    Some(sizes) => vec![(sizes[row], 0.0)],
                    None => {
                        let scores = &size_scores[row * width..(row + 1) * width];
                        let total = log_sum_exp(scores);
                        top_k(scores, most, &mut order);
                        order
                            .iter()
                            .map(|&i| (self.size.sizes[i as usize], scores[i as usize] - total))
                            .collect()
                    }
                };
                let scores = &label_scores[row * self.labels..(row + 1) * self.labels];
                Ok(self.evidence.beam(scores, &sizes, most))
            })
            .collect()
    }
}
