//! What binary relevance and chains learn from counts.

use super::super::algorithm::same_kind;
use super::super::base::{Base, BinaryCounts, LogOdds, bag_weight};
use super::super::{Insight, Learner, Scorer};
use super::codec;
use super::params::{Method, Params, parents};
use super::predict::ChainScorer;
use crate::data::{Id, Remap, Rows, Space, Used};
use crate::error::Result;
use crate::stats::{NameHashes, State};
use std::any::Any;
use std::sync::Arc;

/// Counts of all rows, and for an ensemble those of each bag.
#[derive(Debug, Clone)]
pub(super) struct CountChains {
    pub(super) params: Params,
    pub(super) all: BinaryCounts,
    pub(super) bags: Vec<BinaryCounts>,
    names: NameHashes,
}

impl CountChains {
    pub(super) fn new(params: Params) -> Self {
        let bags = if params.method == Method::Ensemble { params.chains } else { 0 };
        let bags = (0..bags).map(|_| BinaryCounts::new()).collect();
        CountChains { params, all: BinaryCounts::new(), bags, names: NameHashes::default() }
    }

    pub(super) fn from_parts(params: Params, all: BinaryCounts, bags: Vec<BinaryCounts>) -> Self {
        CountChains { params, all, bags, names: NameHashes::default() }
    }
}

impl Learner for CountChains {
    fn observe(&mut self, rows: &Rows, space: &Space) -> Result<()> {
        self.params.check_links(space.labels.len())?;
        self.all.observe(rows, &space.features);
        if self.bags.is_empty() {
            return Ok(());
        }
        self.names.extend(space);
        let names = &mut self.names;
        // The lower half of a key is of features and labels.
        let keys: Vec<u64> = (0..rows.len).map(|row| names.key(rows, row) as u64).collect();
        for (bag, counts) in (0..).zip(&mut self.bags) {
            let mut drawn = Rows::default();
            for (row, &key) in keys.iter().enumerate() {
                // Counts cannot tell copies of a row apart: they share their draw.
                let weight = bag_weight(self.params.seed, bag, key, 1);
                if weight > 0.0 {
                    drawn.push_row(rows, row, None);
                    drawn.weights.push(weight * rows.weight(row));
                }
            }
            if drawn.len > 0 {
                counts.observe(&drawn, &space.features);
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: &dyn Learner) -> Result<()> {
        let other: &CountChains = same_kind(other)?;
        self.all.merge(&other.all);
        self.bags.iter_mut().zip(&other.bags).for_each(|(a, b)| a.merge(b));
        Ok(())
    }

    fn forget(&mut self, other: &dyn Learner) -> Result<()> {
        let other: &CountChains = same_kind(other)?;
        let (mut all, mut bags) = (self.all.clone(), self.bags.clone());
        all.forget(&other.all)?;
        for (mine, theirs) in bags.iter_mut().zip(&other.bags) {
            mine.forget(theirs)?;
        }
        (self.all, self.bags) = (all, bags);
        Ok(())
    }

    fn decay(&mut self, factor: f64) -> Result<()> {
        self.all.decay(factor);
        self.bags.iter_mut().for_each(|b| b.decay(factor));
        Ok(())
    }

    fn takes_weights(&self) -> bool {
        true
    }

    fn used(&self, space: &Space) -> Used {
        let mut used = Used::none(space);
        self.all.mark_used(&mut used);
        used
    }

    fn remap(&self, ids: &Remap) -> Box<dyn Learner> {
        let bags = self.bags.iter().map(|b| b.remap(ids)).collect();
        Box::new(CountChains::from_parts(self.params.clone(), self.all.remap(ids), bags))
    }

    fn encode(&self) -> Result<State> {
        codec::encode_counts(self)
    }

    fn fit(&self, space: &Space) -> Result<Box<dyn Scorer>> {
        let orders = self.params.orders(&space.labels, |y| self.all.label(y))?;
        let smoothing = match self.params.base {
            Base::NaiveBayes { smoothing } => smoothing,
            Base::Linear(_) => 1.0,
        };
        let chained = self.params.chained();
        let scores: Vec<Arc<dyn LogOdds>> = orders
            .iter()
            .enumerate()
            .map(|(chain, order)| {
                let parents = parents(order, chained);
                // A bag that no row is in says nothing.
                let bag = self.bags.get(chain).filter(|bag| bag.rows() > 0.0);
                let counts = bag.unwrap_or(&self.all);
                let scores = counts.fit(space, smoothing, |y| parents[y.index()].clone());
                Arc::new(scores) as Arc<dyn LogOdds>
            })
            .collect();
        let labels = space.labels.len();
        Ok(Box::new(ChainScorer::new(self.params.clone(), labels, orders, scores, &[])))
    }

    fn insight(&self, space: &Space, most: usize) -> Insight {
        Insight {
            label_counts: space.labels.ids().map(|y| self.all.label(y)).collect(),
            telling: self.all.telling(space, most),
            pairs: self.all.pairs(most),
            ..Insight::default()
        }
    }

    fn notes(&self, space: &Space) -> Vec<String> {
        self.params.order.note(&space.labels).into_iter().collect()
    }

    fn heap_size(&self) -> usize {
        let bags: usize = self.bags.iter().map(BinaryCounts::heap_size).sum();
        self.all.heap_size() + bags + self.names.heap_size()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
