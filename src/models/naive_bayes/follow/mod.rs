//! NaiBX row by row: after a row only its labels and its size have new parameters.
//!
//! # Definition
//!
//! The parameters are those that [`Cascade::fit`](super::predict::Cascade::fit) derives, in a form
//! that a row changes in few places; predictions are the same but for ties within rounding, as long
//! as values stay below 1e150 (beyond, sums of squares saturate).
//!
//! # Cost
//!
//! Learning a row: its features times its labels. Predicting: features times labels. A label or a
//! size that is new costs a pass over the evidence of all labels.

mod gaussian;
#[cfg(test)]
mod tests;

use super::super::Follower;
use super::cascade::LabelEvidence;
use super::fit::NaiveBayes;
use super::params::{Params, Rule, Size};
use super::predict::known_size;
use super::size::SizePosterior;
use crate::data::{Id, LabelId, LabelSets, Rows, Space};
use crate::error::Result;
use crate::models::{Learner, same_kind};
use gaussian::{AllRows, Gaussians};

/// The cascade with parameters that follow its learner.
#[derive(Debug)]
pub(super) struct Followed {
    params: Params,
    /// ln P(y) up to a constant; minus infinity for a label that was never seen.
    label_prior_ln: Vec<f64>,
    all: AllRows,
    of_labels: Gaussians,
    of_sizes: Gaussians,
    evidence: LabelEvidence,
    size: SizePosterior,
    /// Buffers of one row.
    row: Vec<f64>,
    label_scores: Vec<f64>,
    size_scores: Vec<f64>,
    weights: Vec<f64>,
    picked: Vec<LabelId>,
}

impl Followed {
    /// Starts to follow; `None` where rules or features are such that every row changes every
    /// parameter.
    pub(super) fn start(state: &NaiveBayes, space: &Space) -> Option<Self> {
        let features = &space.features;
        let cascade = state.params.rule == Rule::Cascade && state.params.sets == 1;
        let dense = features.sparse_len() + features.category_len() + features.open_len() == 0;
        (cascade && dense).then(|| Followed::fit(state, space))
    }

    fn fit(state: &NaiveBayes, space: &Space) -> Self {
        let labels = space.labels.len();
        let width = space.features.dense_len();
        let mut all = AllRows::default();
        all.pool(&state.by_size, width);
        let evidence = LabelEvidence::fit(state, labels);
        let sizes = state.params.allowed_sizes(&evidence.sizes);
        let top = sizes.iter().map(|&m| m as usize + 1).max().unwrap_or(0);
        let mut followed = Followed {
            params: state.params.clone(),
            label_prior_ln: vec![f64::NEG_INFINITY; labels],
            of_labels: Gaussians::fit(&state.by_label, labels, &[], width, &all),
            of_sizes: Gaussians::fit(&state.by_size, top, &sizes, width, &all),
            size: SizePosterior::fit(state, &evidence, sizes, space.features.len()),
            evidence,
            all,
            row: Vec::new(),
            label_scores: Vec::new(),
            size_scores: Vec::new(),
            weights: Vec::new(),
            picked: Vec::new(),
        };
        space.labels.ids().for_each(|y| followed.refresh_prior(state, y));
        followed
    }

    fn refresh_prior(&mut self, state: &NaiveBayes, y: LabelId) {
        let n = state.labels.get(y);
        let s = self.params.smoothing;
        self.label_prior_ln[y.index()] = if n > 0.0 { (n + s).ln() } else { f64::NEG_INFINITY };
    }

    /// Whether the set of a row brings no label and no size that was not there.
    fn knows(&self, labels: &[LabelId]) -> bool {
        let known = |y: &LabelId| {
            self.label_prior_ln.get(y.index()).is_some_and(|ln| *ln > f64::NEG_INFINITY)
        };
        labels.iter().all(known) && self.evidence.sizes.contains(&(labels.len() as u32))
    }

    /// Takes over a row none of whose groups takes anything from all rows, nor any other group: false
    /// where that is not so.
    fn learned_ordinary(&mut self, row: &Rows, state: &NaiveBayes) -> bool {
        if self.of_labels.leans() || self.of_sizes.leans() {
            return false;
        }
        let (set, size) = (row.labels.row(0), row.labels.row(0).len());
        self.all.add(row, &state.by_size);
        let (all, labels, sizes) = (&self.all, &mut self.of_labels, &mut self.of_sizes);
        set.iter().all(|y| labels.refresh_ordinary(&state.by_label, y.0, all))
            && (size >= sizes.groups() || sizes.refresh_ordinary(&state.by_size, size as u32, all))
            && !labels.moved(all)
            && !sizes.moved(all)
    }

    /// Takes over any row.
    fn learned_any(&mut self, row: &Rows, state: &NaiveBayes) {
        let set = row.labels.row(0);
        self.all.pool(&state.by_size, row.dense_width);
        set.iter().for_each(|y| self.of_labels.refresh(&state.by_label, y.0, &self.all));
        if set.len() < self.of_sizes.groups() {
            self.of_sizes.refresh(&state.by_size, set.len() as u32, &self.all);
        }
        self.of_labels.settle(&state.by_label, &self.all);
        self.of_sizes.settle(&state.by_size, &self.all);
    }

    /// The label scores of the row in `self.row` and the scores of the sizes to choose from.
    fn write_scores(&mut self, missing: bool) {
        if missing {
            self.of_labels.expect_missing();
            self.of_sizes.expect_missing();
        }
        let (all, row) = (&self.all, &self.row);
        self.label_scores.clear();
        self.label_scores.extend(self.label_prior_ln.iter().enumerate().map(|(y, prior)| {
            let known = *prior > f64::NEG_INFINITY;
            if known { prior + self.of_labels.ln(y, row, missing, all) } else { *prior }
        }));
        self.size_scores.clear();
        let sizes = self.size.sizes.iter();
        self.size_scores.extend(sizes.map(|&m| self.of_sizes.ln(m as usize, row, missing, all)));
    }
}

impl Follower for Followed {
    fn learned(&mut self, row: &Rows, learner: &dyn Learner, space: &Space) -> Result<()> {
        let state: &NaiveBayes = same_kind(learner)?;
        let set = row.labels.row(0);
        let known = self.knows(set);
        if known {
            self.evidence.add_row(state, set, row.weight(0));
            self.size.refresh_size(state, &self.evidence, set.len() as u32);
            if self.params.size == Size::Labels {
                self.size.refresh_labels(&self.evidence, set);
            }
        } else {
            // The number of labels or sizes is part of every label's evidence.
            let labels = space.labels.len();
            self.label_prior_ln.resize(labels, f64::NEG_INFINITY);
            self.evidence = LabelEvidence::fit(state, labels);
            let sizes = self.params.allowed_sizes(&self.evidence.sizes);
            let top = sizes.iter().map(|&m| m as usize + 1).max().unwrap_or(0);
            let before = self.of_sizes.groups();
            self.of_labels.grow(labels, &[]);
            self.of_sizes.grow(top.max(before), &sizes);
            self.size = SizePosterior::fit(state, &self.evidence, sizes, space.features.len());
            self.all.pool(&state.by_size, row.dense_width);
            (before..top).for_each(|m| self.of_sizes.refresh(&state.by_size, m as u32, &self.all));
        }
        set.iter().for_each(|&y| self.refresh_prior(state, y));
        if !(known && self.learned_ordinary(row, state)) {
            self.learned_any(row, state);
        }
        Ok(())
    }

    fn predict(
        &mut self,
        row: &Rows,
        learner: &dyn Learner,
        order: &[LabelId],
        out: &mut LabelSets,
    ) -> Result<()> {
        if self.evidence.sizes.is_empty() {
            out.push([]);
            return Ok(());
        }
        if self.all.needs_pool(row.dense_row(0)) {
            let state: &NaiveBayes = same_kind(learner)?;
            self.all.pool(&state.by_size, row.dense_width);
        }
        let known = known_size(&self.params, row, 0)?;
        self.all.limit(row.dense_row(0), &mut self.row);
        self.write_scores(row.dense_missing);
        let size = match known {
            Some(size) => size,
            None => {
                match self.params.size {
                    Size::Labels => {
                        let (labels, sizes) = (&self.label_scores, &mut self.size_scores);
                        self.size.by_labels(labels, sizes, &mut self.weights);
                    }
                    _ => self.size.by_features(&mut self.size_scores),
                }
                self.size.choose(&self.size_scores)
            }
        };
        let best = |scores: &[f64]| first_best(scores, order);
        self.evidence.greedy(&mut self.label_scores, size, best, &mut self.picked);
        out.push(self.picked.iter().copied());
        Ok(())
    }
}

/// The position of the largest score; on ties that which `order` puts first.
fn first_best(scores: &[f64], order: &[LabelId]) -> u32 {
    let mut best = 0;
    for (y, &score) in scores.iter().enumerate() {
        let tied = score == scores[best] && order[y] < order[best];
        if score > scores[best] || tied {
            best = y;
        }
    }
    best as u32
}
