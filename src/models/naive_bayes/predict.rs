//! Predicting with NaiBX.

use super::super::likelihood::{GroupInput, Likelihood};
use super::super::{RankedSet, Scorer};
use super::cascade::{LabelEvidence, best};
use super::fit::NaiveBayes;
use super::params::{Params, Rule, Size};
use super::size::SizePosterior;
use crate::data::{FeatureSpace, Id, LabelId, LabelSets, Rows, Space};
use crate::decide::Decision;
use crate::error::{Error, Result};
use crate::math::{log_sum_exp, top_k};
use crate::stats::{ByLabel, FeatureStats, OneGroup};
use std::ops::Range;
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
    by_label: Arc<FeatureStats<ByLabel>>,
    pooled: FeatureStats<OneGroup>,
    features: FeatureSpace,
    outside_labels: OnceLock<Likelihood>,
}

impl Cascade {
    pub(super) fn fit(state: &NaiveBayes, space: &Space) -> Self {
        let params = state.params.clone();
        let s = params.smoothing;
        let labels = space.labels.len();
        let total = state.sizes.total();
        let evidence = LabelEvidence::fit(state, labels).settled();
        let sizes = params.allowed_sizes(&evidence.sizes);
        let ids: Vec<LabelId> = space.labels.ids().collect();
        let features = space.features.clone();
        let pooled = state.by_size.pooled();
        let fit = |input: GroupInput| Likelihood::fit(&input, &pooled, &features, s);
        Cascade {
            of_labels: fit(GroupInput::of(&state.by_label, &ids, &features)),
            of_sizes: fit(GroupInput::of(&state.by_size, &sizes, &features)),
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
            let ids: Vec<LabelId> = LabelId::all(self.labels).collect();
            let input = GroupInput::of(&self.by_label, &ids, &self.features)
                .outside(&self.pooled, &self.features);
            Likelihood::fit(&input, &self.pooled, &self.features, self.params.smoothing)
        })
    }

    /// ln P(y) + ln p(x | y) for some rows and every label.
    pub(super) fn label_scores(&self, rows: &Rows, range: Range<usize>, scores: &mut Vec<f64>) {
        self.of_labels.write(rows, range, scores);
        self.add_prior(scores);
    }

    /// As [`Cascade::label_scores`], and ln P(m | x) up to a constant for every size that may be
    /// predicted.
    pub(super) fn label_and_size_scores(
        &self,
        rows: &Rows,
        range: Range<usize>,
        labels: &mut Vec<f64>,
        sizes: &mut Vec<f64>,
    ) {
        let each = &mut [(&self.of_labels, &mut *labels), (&self.of_sizes, &mut *sizes)];
        Likelihood::write_each(rows, range, each);
        self.add_prior(labels);
        let width = self.of_sizes.groups().max(1);
        let mut weights = Vec::new();
        for (row, scores) in sizes.chunks_exact_mut(width).enumerate() {
            match self.params.size {
                Size::Labels => {
                    let labels = &labels[row * self.labels..(row + 1) * self.labels];
                    self.size.by_labels(labels, scores, &mut weights);
                }
                _ => self.size.by_features(scores),
            }
        }
    }

    fn add_prior(&self, scores: &mut [f64]) {
        for row in scores.chunks_exact_mut(self.labels.max(1)) {
            row.iter_mut().zip(&self.label_prior_ln).for_each(|(s, p)| *s += p);
        }
    }

    /// The size of the set of every row: given, or the most probable.
    fn sizes(&self, rows: &Rows) -> Result<Vec<u32>> {
        let width = self.of_sizes.groups().max(1);
        let (mut labels, mut scores) = (Vec::new(), Vec::new());
        let mut sizes = Vec::with_capacity(rows.len);
        for range in blocks(rows.len) {
            self.label_and_size_scores(rows, range.clone(), &mut labels, &mut scores);
            for (i, row) in range.enumerate() {
                let of_row = scores.get(i * width..(i + 1) * width).unwrap_or(&[]);
                let known = known_size(&self.params, rows, row)?;
                sizes.push(known.unwrap_or_else(|| self.size.choose(of_row)));
            }
        }
        Ok(sizes)
    }

    /// The cascade of the paper for every row.
    fn cascade(&self, rows: &Rows, out: &mut LabelSets) -> Result<()> {
        let predicted = known_size(&self.params, rows, 0)?.is_none();
        let width = self.of_sizes.groups().max(1);
        let (mut labels, mut sizes, mut picked) = (Vec::new(), Vec::new(), Vec::new());
        for range in blocks(rows.len) {
            if predicted {
                self.label_and_size_scores(rows, range.clone(), &mut labels, &mut sizes);
            } else {
                self.label_scores(rows, range.clone(), &mut labels);
            }
            for (i, row) in range.enumerate() {
                let size = match known_size(&self.params, rows, row)? {
                    Some(size) => size,
                    None => self.size.choose(sizes.get(i * width..(i + 1) * width).unwrap_or(&[])),
                };
                let scores = &mut labels[i * self.labels..(i + 1) * self.labels];
                self.evidence.greedy(scores, size, best, &mut picked);
                out.push(picked.iter().copied());
            }
        }
        Ok(())
    }
}

/// The size of the set of a row when it is known without looking at features.
pub(super) fn known_size(params: &Params, rows: &Rows, row: usize) -> Result<Option<u32>> {
    match &params.size {
        Size::Fixed(size) => Ok(Some(*size)),
        Size::Given(_) if rows.given_size.len() == rows.len => {
            Ok(rows.given_size.get(row).copied())
        }
        Size::Given(column) => Err(Error::data(match column {
            Some(name) => format!("column `{name}`, which gives the size of the set, is missing"),
            None => "size=given needs a column: write size=given(column)".to_string(),
        })),
        Size::Predicted | Size::Labels => Ok(None),
    }
}

/// Partial sets that a search keeps at least.
const LEAST_WIDTH: usize = 20;
/// Rows that are scored at a time: their scores stay in the cache.
const BLOCK: usize = 1024;

fn blocks(rows: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows).step_by(BLOCK).map(move |start| start..(start + BLOCK).min(rows))
}

impl Scorer for Cascade {
    fn score(&self, rows: &Rows, out: &mut Vec<f64>) -> Result<()> {
        out.clear();
        out.reserve(rows.len * self.labels);
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        let outside_labels = self.outside_labels();
        for range in blocks(rows.len) {
            let each = &mut [(&self.of_labels, &mut inside), (outside_labels, &mut outside)];
            Likelihood::write_each(rows, range, each);
            let pairs = inside.iter().zip(&outside).zip(self.prior_log_odds.iter().cycle());
            out.extend(pairs.map(|((i, o), p)| i - o + p));
        }
        Ok(())
    }

    fn predict(&self, rows: &Rows, out: &mut LabelSets) -> Result<()> {
        let sizes;
        let rule = match self.params.rule {
            Rule::Cascade if self.params.sets > 1 => {
                for sets in self.rank_sets(rows, 1)? {
                    out.push(sets.into_iter().next().map_or_else(Vec::new, |best| best.labels));
                }
                return Ok(());
            }
            Rule::Cascade => return self.cascade(rows, out),
            Rule::Size => {
                sizes = self.sizes(rows)?;
                Decision::Sizes(&sizes)
            }
            Rule::Threshold(p) if self.params.allow_empty == Some(false) => {
                Decision::ThresholdOrBest(p)
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
        let groups = self.of_sizes.groups();
        // However few sets are asked for, so that the best of them are the same.
        let width = most.max(self.params.sets).max(LEAST_WIDTH);
        let (mut labels, mut sizes, mut order) = (Vec::new(), Vec::new(), Vec::new());
        let mut ranked = Vec::with_capacity(rows.len);
        for range in blocks(rows.len) {
            self.label_and_size_scores(rows, range.clone(), &mut labels, &mut sizes);
            for (i, row) in range.enumerate() {
                let candidates: Vec<(u32, f64)> = match known_size(&self.params, rows, row)? {
                    Some(size) => vec![(size, 0.0)],
                    None => {
                        let scores = &sizes[i * groups..(i + 1) * groups];
                        let total = log_sum_exp(scores);
                        top_k(scores, width, &mut order);
                        let candidate =
                            |&at: &u32| (self.size.sizes[at as usize], scores[at as usize] - total);
                        order.iter().map(candidate).collect()
                    }
                };
                let scores = &labels[i * self.labels..(i + 1) * self.labels];
                ranked.push(self.evidence.best_sets(scores, &candidates, width, most));
            }
        }
        Ok(ranked)
    }
}
