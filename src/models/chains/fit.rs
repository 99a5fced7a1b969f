//! What binary relevance and chains learn from rows.

use super::super::algorithm::{closed, same_kind};
use super::super::base::{
    Base, LinearBase, LinearScores, LogOdds, Prepare, Purpose, Sample, Task, bag_weight, held_out,
};
use super::super::{Insight, Learner, Peer, Scorer};
use super::codec;
use super::params::{Method, Params, Threshold, parents};
use super::predict::ChainScorer;
use super::thresholds::HeldOut;
use crate::data::{Id, LabelId, Remap, Rows, Space, Used};
use crate::error::{Error, Result};
use crate::stats::{Keep, LabelCounts, RowStore, RowTable, State, Statistic};
use std::any::Any;
use std::sync::Arc;

/// Parts of which one is held out to tune thresholds.
const THRESHOLD_PARTS: u64 = 5;

/// Rows, and what was fitted from them once training has ended.
#[derive(Debug, Clone)]
pub(super) struct RowChains {
    pub(super) params: Params,
    pub(super) rows: RowStore,
    pub(super) labels: LabelCounts,
    pub(super) fitted: Option<Fitted>,
}

/// Everything that scoring needs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fitted {
    /// The tasks of chain after chain, label by label.
    pub(super) scores: Arc<LinearScores>,
    pub(super) orders: Vec<Vec<LabelId>>,
    /// The threshold of each label; empty when it is the same for all.
    pub(super) thresholds: Vec<f64>,
}

impl RowChains {
    pub(super) fn new(params: Params) -> Self {
        let (rows, labels) = (RowStore::new(Keep::All), LabelCounts::default());
        RowChains { params, rows, labels, fitted: None }
    }

    /// About how many bytes fitting takes.
    fn fit_size(&self, base: &LinearBase, space: &Space) -> usize {
        let rows = self.rows.stored();
        let labels = space.labels.len();
        let bags = if self.params.method == Method::Ensemble { self.params.chains } else { 1 };
        let tasks = labels * self.params.chains;
        let fit = base.fit_size(rows, space, tasks, self.params.chained(), bags);
        match self.params.threshold {
            Threshold::Fixed(_) => fit,
            // Held-out rows and their scores, and weights of two fits.
            Threshold::Tuned(_) | Threshold::Cardinality => {
                let held = rows.len / THRESHOLD_PARTS as usize;
                let weights =
                    8 * tasks * (space.features.len() + space.features.value_len() + labels);
                fit + weights + rows.heap_size() / THRESHOLD_PARTS as usize + 24 * held * labels
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.fitted.is_some() && !self.params.keep
    }

    fn fitted(&self, space: &Space) -> Result<Fitted> {
        match &self.fitted {
            Some(fitted) => Ok(fitted.clone()),
            None => Fitting { params: &self.params, space, labels: &self.labels }
                .fit(&self.rows.table()),
        }
    }
}

/// One fit of rows.
struct Fitting<'a> {
    params: &'a Params,
    space: &'a Space,
    labels: &'a LabelCounts,
}

impl Fitting<'_> {
    fn fit(&self, table: &RowTable) -> Result<Fitted> {
        let keys: Vec<u64> = table.keys.iter().map(|k| (k >> 64) as u64).collect();
        let counts: Vec<f64> = table.counts.iter().map(|&n| n as f64).collect();
        let orders = self.params.orders(&self.space.labels, |y| self.labels.get(y))?;
        let mut scores = self.scores(table, &keys, &counts, &orders)?;
        let mut thresholds = Vec::new();
        if !matches!(self.params.threshold, Threshold::Fixed(_)) {
            let part;
            (thresholds, part) = self.thresholds(table, &keys, &counts, &orders)?;
            scores.also_fitted(&part);
        }
        Ok(Fitted { scores: Arc::new(scores), orders, thresholds })
    }

    /// The threshold of each label, chosen on rows that the returned scores have not seen.
    fn thresholds(
        &self,
        table: &RowTable,
        keys: &[u64],
        counts: &[f64],
        orders: &[Vec<LabelId>],
    ) -> Result<(Vec<f64>, Arc<LinearScores>)> {
        let held =
            |key: &u64| held_out(self.params.seed, Purpose::Threshold, *key, THRESHOLD_PARTS) == 0;
        let train: Vec<f64> =
            keys.iter().zip(counts).map(|(k, n)| if held(k) { 0.0 } else { *n }).collect();
        let part = Arc::new(self.scores(table, keys, &train, orders)?);
        let labels = self.space.labels.len();
        let (scores, orders) = (Arc::clone(&part), orders.to_vec());
        let scorer = self.scorer(Fitted { scores, orders, thresholds: vec![0.5; labels] });
        let (mut rows, mut weights) = (Rows::default(), Vec::new());
        for row in (0..table.len()).filter(|&row| held(&keys[row])) {
            rows.push_row(&table.rows, row, None);
            weights.push(counts[row]);
        }
        let (scores, chain) = scorer.before_decisions(&rows)?;
        let held =
            HeldOut { scores: &scores, truth: &rows.labels, weights: &weights, labels, chain };
        let thresholds = match self.params.threshold {
            Threshold::Tuned(tuned) => tuned.thresholds(&held),
            Threshold::Fixed(p) => vec![p; labels],
            Threshold::Cardinality => vec![held.cardinality_threshold(); labels],
        };
        Ok((thresholds, part))
    }

    fn scores(
        &self,
        table: &RowTable,
        keys: &[u64],
        weights: &[f64],
        orders: &[Vec<LabelId>],
    ) -> Result<LinearScores> {
        let Base::Linear(base) = &self.params.base else {
            return Err(Error::internal("a base learner of counts came to learn from rows"));
        };
        let bags: Vec<Vec<f64>> = match self.params.method {
            Method::Ensemble => {
                (0..orders.len() as u32).map(|bag| self.bag(bag, table, weights)).collect()
            }
            _ => vec![weights.to_vec()],
        };
        let mut tasks = Vec::new();
        for (chain, order) in orders.iter().enumerate() {
            let parents = parents(order, self.params.chained());
            let bag = chain.min(bags.len() - 1);
            let task = |(label, parents)| Task { label, parents, bag };
            tasks.extend(self.space.labels.ids().zip(parents).map(task));
        }
        let sample = Sample {
            rows: &table.rows,
            keys,
            weights,
            bags: &bags,
            space: self.space,
            seed: self.params.seed,
        };
        Ok(base.fit(sample, self.params.prepare, &tasks))
    }

    /// How often each row is in bag `bag`: every copy of a row is drawn by itself. A bag that no row
    /// is in has all of them.
    fn bag(&self, bag: u32, table: &RowTable, weights: &[f64]) -> Vec<f64> {
        let drawn = |row: usize| {
            // The lower half of a key is of features and labels.
            let (key, copies) = (table.keys[row] as u64, table.counts[row]);
            if weights[row] > 0.0 { bag_weight(self.params.seed, bag, key, copies) } else { 0.0 }
        };
        let drawn: Vec<f64> = (0..table.len()).map(drawn).collect();
        if drawn.iter().any(|w| *w > 0.0) { drawn } else { weights.to_vec() }
    }

    fn scorer(&self, fitted: Fitted) -> ChainScorer {
        scorer(self.params, self.space, fitted)
    }
}

fn scorer(params: &Params, space: &Space, fitted: Fitted) -> ChainScorer {
    let Fitted { scores, orders, thresholds } = fitted;
    let labels = space.labels.len();
    let scores: Vec<Arc<dyn LogOdds>> = vec![scores];
    ChainScorer::new(params.clone(), labels, orders, scores, &thresholds)
}

/// A sentence about the tasks of which a fit did not converge.
fn notes(scores: &LinearScores, space: &Space) -> Vec<String> {
    let reports = scores.reports();
    let unfinished: Vec<usize> = (0..reports.len()).filter(|&t| !reports[t].reached).collect();
    let farthest = |a: &&usize, b: &&usize| reports[**a].gradient.total_cmp(&reports[**b].gradient);
    let Some(&worst) = unfinished.iter().max_by(farthest) else { return Vec::new() };
    vec![format!(
        "{} of {} classifiers stopped before they converged, farthest that of label `{}` after {} \
         steps (gradient {:.1e} of that at zero): raise max_steps, or lambda",
        unfinished.len(),
        reports.len(),
        space.labels.name(LabelId::new(worst % space.labels.len())),
        reports[worst].steps,
        reports[worst].gradient
    )]
}

impl Fitted {
    fn remap(&self, ids: &Remap) -> Self {
        let labels = ids.labels.len();
        let kept = ids.labels.iter().filter(|y| **y != LabelId::NONE).count();
        let place = |t: usize| match ids.labels[t % labels] {
            LabelId::NONE => u32::NONE,
            y => (t / labels * kept + y.index()) as u32,
        };
        let tasks: Vec<u32> = (0..self.orders.len() * labels).map(place).collect();
        let mut thresholds = vec![0.5; if self.thresholds.is_empty() { 0 } else { kept }];
        let tuned = self.thresholds.iter().zip(&ids.labels);
        for (&t, y) in tuned.filter(|(_, y)| **y != LabelId::NONE) {
            thresholds[y.index()] = t;
        }
        let order = |order: &Vec<LabelId>| {
            let order = order.iter().map(|y| ids.labels[y.index()]);
            order.filter(|y| *y != LabelId::NONE).collect()
        };
        Fitted {
            scores: Arc::new(self.scores.remap(ids, &tasks)),
            orders: self.orders.iter().map(order).collect(),
            thresholds,
        }
    }
}

impl Learner for RowChains {
    fn observe(&mut self, rows: &Rows, space: &Space) -> Result<()> {
        if self.is_closed() {
            return Err(closed());
        }
        self.rows.observe(rows, space)?;
        self.labels.observe(rows, &space.features);
        self.fitted = None;
        Ok(())
    }

    fn merge(&mut self, other: &dyn Learner) -> Result<()> {
        let other: &RowChains = same_kind(other)?;
        if self.is_closed() || other.is_closed() {
            return Err(closed());
        }
        if other.rows.is_empty() {
            return Ok(());
        }
        self.rows.merge(&other.rows)?;
        self.labels.merge(&other.labels);
        self.fitted = None;
        Ok(())
    }

    fn forget(&mut self, other: &dyn Learner) -> Result<()> {
        let other: &RowChains = same_kind(other)?;
        if self.is_closed() || other.is_closed() {
            return Err(closed());
        }
        let mut left = self.labels.clone();
        left.forget(&other.labels)?;
        self.rows.forget(&other.rows)?;
        self.labels = left;
        self.fitted = None;
        Ok(())
    }

    fn takes_weights(&self) -> bool {
        true
    }

    fn used(&self, space: &Space) -> Used {
        if self.is_closed() {
            return Used::all(space);
        }
        let mut used = Used::none(space);
        self.rows.mark_used(&mut used);
        used
    }

    fn remap(&self, ids: &Remap) -> Box<dyn Learner> {
        let fitted = match &self.fitted {
            // Into a wider space a learner goes only to be merged: what was fitted does not count
            // there, but a closed learner has to stay closed.
            Some(fitted) if ids.widens() => (!self.params.keep).then(|| fitted.clone()),
            Some(fitted) => Some(fitted.remap(ids)),
            None => None,
        };
        Box::new(RowChains {
            params: self.params.clone(),
            rows: self.rows.remap(ids),
            labels: self.labels.remap(ids),
            fitted,
        })
    }

    fn encode(&self) -> Result<State> {
        codec::encode_rows(self)
    }

    fn close(&self, space: &Space) -> Result<Option<Peer>> {
        if self.fitted.is_some() {
            return Ok(None);
        }
        let rows = if self.params.keep { self.rows.clone() } else { RowStore::new(Keep::All) };
        let fitted = self.fitted(space)?;
        let scorer = scorer(&self.params, space, fitted.clone());
        let (params, labels) = (self.params.clone(), self.labels.clone());
        let learner = RowChains { params, rows, labels, fitted: Some(fitted) };
        Ok(Some((Box::new(learner), Box::new(scorer))))
    }

    fn fit(&self, space: &Space) -> Result<Box<dyn Scorer>> {
        Ok(Box::new(scorer(&self.params, space, self.fitted(space)?)))
    }

    fn insight(&self, space: &Space, most: usize) -> Insight {
        let labels = space.labels.len();
        let telling = match &self.fitted {
            // Of an ensemble, the first chain speaks.
            Some(f) => (0..labels).map(|y| f.scores.telling(y, space, most)).collect(),
            None => vec![Vec::new(); labels],
        };
        let mut chosen = Vec::new();
        if let Some(fitted) = &self.fitted {
            if !fitted.thresholds.is_empty() {
                chosen.push(("threshold", fitted.thresholds.clone()));
            }
            if matches!(&self.params.base, Base::Linear(base) if base.has_grid()) {
                let reports = fitted.scores.reports().iter().take(labels);
                chosen.push(("lambda", reports.map(|r| r.lambda).collect()));
            }
        }
        let label_counts = space.labels.ids().map(|y| self.labels.get(y)).collect();
        Insight { label_counts, telling, chosen, pairs: Vec::new() }
    }

    fn notes(&self, space: &Space) -> Vec<String> {
        let mut notes =
            self.fitted.as_ref().map_or_else(Vec::new, |fitted| notes(&fitted.scores, space));
        notes.extend(self.params.order.note(&space.labels));
        if self.params.prepare == Prepare::Tfidf && space.features.sparse_len() == 0 {
            notes.push(
                "prepare=tfidf changes flags, map keys and tokens, and there are none: it does nothing"
                    .to_string(),
            );
        }
        notes
    }

    fn heap_size(&self) -> usize {
        let fitted = self.fitted.as_ref().map_or(0, |f| {
            let orders: usize = f.orders.iter().map(|o| 24 + 4 * o.capacity()).sum();
            f.scores.heap_size() + orders + 8 * f.thresholds.capacity()
        });
        self.rows.heap_size() + self.labels.heap_size() + fitted
    }

    fn ending_size(&self, space: &Space) -> usize {
        let copy = self.heap_size();
        let fit = match &self.params.base {
            Base::Linear(base) if self.fitted.is_none() => self.fit_size(base, space),
            _ => 0,
        };
        // The rows under other numbers; then they are fitted, or go on as a state and as bytes.
        copy + fit.max(2 * copy)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
