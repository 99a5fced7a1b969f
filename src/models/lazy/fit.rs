//! What lazy learners learn: the rows.

use super::super::algorithm::same_kind;
use super::super::{CheckedSpec, Insight, Learner, Peer, Scorer};
use super::params::{Method, Params};
use super::posterior::PosteriorCounts;
use super::predict::{Neighbourhood, Voting, chunk};
use super::search::Search;
use super::{codec, insight};
use crate::data::{Remap, Rows, Space, Used};
use crate::error::{Error, Result};
use crate::stats::{Keep, RowStore, State};
use std::any::Any;
use std::sync::Arc;

/// The rows seen, and what to do with them.
#[derive(Debug, Clone)]
pub(super) struct Lazy {
    pub(super) params: Params,
    pub(super) store: RowStore,
    /// How many neighbours of the rows have each label; of a finished model only.
    pub(super) counts: Option<Arc<PosteriorCounts>>,
}

pub(super) fn start(spec: &CheckedSpec, method: Method) -> Result<Box<dyn Learner>> {
    let params = Params::try_new(spec, method)?;
    Ok(Box::new(Lazy { params, store: RowStore::new(params.keep), counts: None }))
}

/// The fitted parameters of learners that know the same rows, and what was counted for them: one
/// search for those that measure distances alike, and one pass over the stored rows for all that
/// count them and have no counts yet.
pub(super) fn fit_together(
    store: &RowStore,
    learners: Vec<(Params, Option<Arc<PosteriorCounts>>)>,
    space: &Space,
) -> Result<Vec<(Lazy, Voting)>> {
    let table = store.table();
    let labels = space.labels.len();
    let mut fitted: Vec<(usize, (Lazy, Voting))> = Vec::new();
    let mut left: Vec<_> = learners.into_iter().enumerate().collect();
    let kind = |p: &Params| (p.metric, p.metric.breadth(p.asked(&table)));
    while let Some((_, (first, _))) = left.first() {
        let (metric, first) = (first.metric, kind(first));
        let (alike, others): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|(_, (p, _))| kind(p) == first);
        left = others;
        let most = alike.iter().map(|(_, (p, _))| p.asked(&table)).max().unwrap_or(0);
        let search = Search::try_new(Arc::clone(&table), &space.features, metric, most)?;
        let mut known = Vec::new();
        let mut counting = Vec::new();
        for (i, (params, counts)) in alike {
            let k = params.asked(&table);
            match counts.filter(|c| c.fits(labels, k)) {
                None if params.counts() => {
                    counting.push((i, params, PosteriorCounts::new(&table, labels, k)));
                }
                counts => known.push((i, params, counts)),
            }
        }
        if let Some(deepest) = counting.iter().map(|(_, p, _)| p.asked(&table)).max() {
            let chunk = chunk(deepest);
            for start in (0..table.len()).step_by(chunk) {
                let range = start..table.len().min(start + chunk);
                let neighbours = search.own_neighbours(range, deepest);
                for (_, params, counts) in &mut counting {
                    counts.observe(&table, start, &neighbours, params.by_distance);
                }
            }
        }
        known.extend(counting.into_iter().map(|(i, p, c)| (i, p, Some(Arc::new(c)))));
        let near = Arc::new(Neighbourhood::new(search, most, known.len()));
        for (i, params, counts) in known {
            let voting = Voting::new(params, labels, Arc::clone(&near), counts.as_deref());
            fitted.push((i, (Lazy { params, store: store.clone(), counts }, voting)));
        }
    }
    fitted.sort_by_key(|f| f.0);
    Ok(fitted.into_iter().map(|f| f.1).collect())
}

impl Lazy {
    /// This learner with its counts, and its fitted parameters.
    fn fitted(&self, space: &Space) -> Result<(Lazy, Voting)> {
        let alone = vec![(self.params, self.counts.clone())];
        let fitted = fit_together(&self.store, alone, space)?.into_iter().next();
        fitted.ok_or_else(|| Error::internal("fitting a lazy learner gave nothing"))
    }
}

impl Learner for Lazy {
    fn observe(&mut self, rows: &Rows, space: &Space) -> Result<()> {
        self.store.observe(rows, space)?;
        self.counts = None;
        Ok(())
    }

    fn merge(&mut self, other: &dyn Learner) -> Result<()> {
        self.store.merge(&same_kind::<Lazy>(other)?.store)?;
        self.counts = None;
        Ok(())
    }

    fn forget(&mut self, other: &dyn Learner) -> Result<()> {
        self.store.forget(&same_kind::<Lazy>(other)?.store)?;
        self.counts = None;
        Ok(())
    }

    fn takes_weights(&self) -> bool {
        true
    }

    fn used(&self, space: &Space) -> Used {
        let mut used = Used::none(space);
        self.store.mark_used(&mut used);
        used
    }

    fn remap(&self, ids: &Remap) -> Box<dyn Learner> {
        // Into a wider space a learner goes only to be merged: it is counted anew after that, and
        // so it is where rows lose labels.
        let same = !ids.widens() && !self.store.loses_labels(ids);
        let counts = self.counts.as_ref().filter(|_| same);
        let counts = counts.map(|counts| Arc::new(counts.remap(ids)));
        Box::new(Lazy { params: self.params, store: self.store.remap(ids), counts })
    }

    fn encode(&self) -> Result<State> {
        codec::encode(self)
    }

    fn close(&self, space: &Space) -> Result<Option<Peer>> {
        if !self.params.counts() || self.counts.is_some() {
            return Ok(None);
        }
        let (learner, voting) = self.fitted(space)?;
        Ok(Some((Box::new(learner), Box::new(voting))))
    }

    fn fit(&self, space: &Space) -> Result<Box<dyn Scorer>> {
        Ok(Box::new(self.fitted(space)?.1))
    }

    fn needs_order(&self) -> bool {
        matches!(self.params.keep, Keep::Last(_))
    }

    fn state_kind(&self) -> Option<String> {
        Some(self.params.state_kind())
    }

    fn fit_peers(&self, peers: &[Box<dyn Learner>], space: &Space) -> Result<Vec<Peer>> {
        let params = peers.iter().map(|p| same_kind::<Lazy>(&**p).map(|p| (p.params, None)));
        let fitted = fit_together(&self.store, params.collect::<Result<Vec<_>>>()?, space)?;
        let peer = |(learner, voting)| -> Peer { (Box::new(learner), Box::new(voting)) };
        Ok(fitted.into_iter().map(peer).collect())
    }

    fn insight(&self, space: &Space, most: usize) -> Insight {
        insight::insight(&self.store.table(), space.labels.len(), most)
    }

    fn notes(&self, _space: &Space) -> Vec<String> {
        let (k, rows) = (self.params.k, self.store.rows());
        if k as u64 <= rows {
            return Vec::new();
        }
        vec![format!("k={k} is more than the {rows} rows there are: all of them are asked")]
    }

    fn heap_size(&self) -> usize {
        self.store.heap_size() + self.counts.as_ref().map_or(0, |c| c.heap_size())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
