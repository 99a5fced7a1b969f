//! What NaiBX learns.

use super::super::algorithm::same_kind;
use super::super::{CheckedSpec, Follower, Insight, Learner, Scorer};
use super::follow::Followed;
use super::params::Params;
use super::predict::Cascade;
use super::{codec, insight};
use crate::data::{Remap, Rows, Space, Used};
use crate::error::Result;
use crate::stats::{
    ByLabel, BySize, FeatureStats, LabelCounts, LabelPairs, SetSizes, SizeGivenLabel, State,
    Statistic,
};
use std::any::Any;
use std::sync::Arc;

/// The counts of Table 2 of the paper.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NaiveBayes {
    pub(super) params: Params,
    /// N_y.
    pub(super) labels: LabelCounts,
    /// N_m.
    pub(super) sizes: SetSizes,
    /// N_yy'.
    pub(super) pairs: LabelPairs,
    /// N_ym, which Algorithm 1 as printed forgets to update.
    pub(super) size_given_label: SizeGivenLabel,
    /// Shared with the fitted parameters, which derive those of scores only when asked.
    pub(super) by_label: Arc<FeatureStats<ByLabel>>,
    pub(super) by_size: Arc<FeatureStats<BySize>>,
}

impl NaiveBayes {
    pub(super) fn new(params: Params) -> Self {
        NaiveBayes {
            params,
            labels: LabelCounts::default(),
            sizes: SetSizes::default(),
            pairs: LabelPairs::default(),
            size_given_label: SizeGivenLabel::default(),
            by_label: Arc::default(),
            by_size: Arc::default(),
        }
    }
}

pub(super) fn start(spec: &CheckedSpec) -> Result<Box<dyn Learner>> {
    let params = Params::try_new(spec)?;
    params.check(spec)?;
    Ok(Box::new(NaiveBayes::new(params)))
}

impl Learner for NaiveBayes {
    fn observe(&mut self, rows: &Rows, space: &Space) -> Result<()> {
        let features = &space.features;
        self.labels.observe(rows, features);
        self.sizes.observe(rows, features);
        self.pairs.observe(rows, features);
        self.size_given_label.observe(rows, features);
        Arc::make_mut(&mut self.by_label).observe(rows, features);
        Arc::make_mut(&mut self.by_size).observe(rows, features);
        Ok(())
    }

    fn merge(&mut self, other: &dyn Learner) -> Result<()> {
        let other: &NaiveBayes = same_kind(other)?;
        self.labels.merge(&other.labels);
        self.sizes.merge(&other.sizes);
        self.pairs.merge(&other.pairs);
        self.size_given_label.merge(&other.size_given_label);
        Arc::make_mut(&mut self.by_label).merge(&other.by_label);
        Arc::make_mut(&mut self.by_size).merge(&other.by_size);
        Ok(())
    }

    fn forget(&mut self, other: &dyn Learner) -> Result<()> {
        let other: &NaiveBayes = same_kind(other)?;
        let mut left = self.clone();
        left.labels.forget(&other.labels)?;
        left.sizes.forget(&other.sizes)?;
        left.pairs.forget(&other.pairs)?;
        left.size_given_label.forget(&other.size_given_label)?;
        Arc::make_mut(&mut left.by_label).forget(&other.by_label)?;
        Arc::make_mut(&mut left.by_size).forget(&other.by_size)?;
        *self = left;
        Ok(())
    }

    fn decay(&mut self, factor: f64) -> Result<()> {
        self.labels.decay(factor);
        self.sizes.decay(factor);
        self.pairs.decay(factor);
        self.size_given_label.decay(factor);
        Arc::make_mut(&mut self.by_label).decay(factor);
        Arc::make_mut(&mut self.by_size).decay(factor);
        Ok(())
    }

    fn takes_weights(&self) -> bool {
        true
    }

    fn used(&self, space: &Space) -> Used {
        let labels = space.labels.ids().map(|y| self.labels.get(y) > 0.0).collect();
        let mut used = Used { labels, ..Used::none(space) };
        self.by_size.mark_used(&mut used);
        used
    }

    fn remap(&self, ids: &Remap) -> Box<dyn Learner> {
        Box::new(NaiveBayes {
            params: self.params.clone(),
            labels: self.labels.remap(ids),
            sizes: self.sizes.remap(ids),
            pairs: self.pairs.remap(ids),
            size_given_label: self.size_given_label.remap(ids),
            by_label: Arc::new(self.by_label.remap(ids)),
            by_size: Arc::new(self.by_size.remap(ids)),
        })
    }

    fn encode(&self) -> Result<State> {
        Ok(codec::encode(self))
    }

    fn fit(&self, space: &Space) -> Result<Box<dyn Scorer>> {
        Ok(Box::new(Cascade::fit(self, space)))
    }

    fn follow(&self, space: &Space) -> Option<Box<dyn Follower>> {
        Followed::start(self, space).map(|f| Box::new(f) as Box<dyn Follower>)
    }

    fn insight(&self, space: &Space, most: usize) -> Insight {
        insight::insight(self, space, most)
    }

    fn heap_size(&self) -> usize {
        self.labels.heap_size()
            + self.sizes.heap_size()
            + self.pairs.heap_size()
            + self.size_given_label.heap_size()
            + self.by_label.heap_size()
            + self.by_size.heap_size()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
