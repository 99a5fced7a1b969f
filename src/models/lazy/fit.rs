//! What lazy learners learn: the rows.

use super::super::algorithm::same_kind;
use super::super::{CheckedSpec, Insight, Learner, Peer, Scorer};
use super::params::{Method, Params};
use super::posterior::PosteriorCounts;
use super::predict::{CHUNK, Neighbourhood, Voting};
use super::search::Search;
use super::{codec, insight};
use crate::data::{Remap, Rows, Space, Used};
use crate::error::Result;
use crate::stats::{Keep, RowStore};
use arrow::array::StructArray;
use std::any::Any;
use std::sync::Arc;

/// The rows seen, and what to do with them.
#[derive(Debug, Clone)]
pub(super) struct Lazy {
    pub(super) params: Params,
    pub(super) store: RowStore,
}

pub(super) fn start(spec: &CheckedSpec, method: Method) -> Result<Box<dyn Learner>> {
    let params = Params::try_new(spec, method)?;
    Ok(Box::new(Lazy { params, store: RowStore::new(params.keep) }))
}

/// The fitted parameters of learners that know the same rows: one search for those that measure
/// distances alike, and one pass over the stored rows for all that count them.
fn fit_together(store: &RowStore, learners: &[Params], space: &Space) -> Result<Vec<Voting>> {
    let table = store.table();
    let labels = space.labels.len();
    let rows = usize::try_from(table.total()).unwrap_or(usize::MAX);
    let mut fitted: Vec<(usize, Voting)> = Vec::new();
    let mut left: Vec<(usize, Params)> = learners.iter().copied().enumerate().collect();
    while let Some(&(_, first)) = left.first() {
        let (alike, others): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|(_, p)| p.metric == first.metric);
        left = others;
        let k = |p: &Params| p.k.min(rows);
        let most = alike.iter().map(|(_, p)| k(p)).max().unwrap_or(0);
        let search = Search::try_new(Arc::clone(&table), &space.features, first.metric, most)?;
        let bayes = |p: &Params| matches!(p.method, Method::Bayes { .. });
        let mut counts: Vec<(usize, PosteriorCounts)> = alike
            .iter()
            .filter(|(_, p)| bayes(p))
            .map(|(i, p)| (*i, PosteriorCounts::new(&table, labels, k(p), p.by_distance)))
            .collect();
        let deepest = alike.iter().filter(|(_, p)| bayes(p)).map(|(_, p)| k(p)).max();
        for start in (0..table.len()).step_by(CHUNK) {
            let Some(deepest) = deepest else { break };
            let range = start..table.len().min(start + CHUNK);
            let neighbours = search.own_neighbours(range, deepest);
            counts.iter_mut().for_each(|(_, c)| c.observe(&table, start, &neighbours));
        }
        let near = Arc::new(Neighbourhood::new(search, most, alike.len() > 1));
        for (i, params) in alike {
            let counts = counts.iter().find(|c| c.0 == i).map(|c| &c.1);
            fitted.push((i, Voting::new(params, labels, Arc::clone(&near), counts)));
        }
    }
    fitted.sort_by_key(|f| f.0);
    Ok(fitted.into_iter().map(|f| f.1).collect())
}

impl Learner for Lazy {
    fn observe(&mut self, rows: &Rows, space: &Space) -> Result<()> {
        self.store.observe(rows, space)
    }

    fn merge(&mut self, other: &dyn Learner) -> Result<()> {
        self.store.merge(&same_kind::<Lazy>(other)?.store)
    }

    fn forget(&mut self, other: &dyn Learner) -> Result<()> {
        self.store.forget(&same_kind::<Lazy>(other)?.store)
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
        Box::new(Lazy { params: self.params, store: self.store.remap(ids) })
    }

    fn encode(&self) -> Result<StructArray> {
        codec::encode(self)
    }

    fn fit(&self, space: &Space) -> Result<Box<dyn Scorer>> {
        let fitted = fit_together(&self.store, &[self.params], space)?.into_iter().next();
        fitted.map(|f| Box::new(f) as Box<dyn Scorer>).ok_or_else(codec::nothing)
    }

    fn needs_order(&self) -> bool {
        matches!(self.params.keep, Keep::Last(_))
    }

    fn state_kind(&self) -> Option<String> {
        Some(self.params.state_kind())
    }

    fn fit_peers(&self, peers: &[Box<dyn Learner>], space: &Space) -> Result<Vec<Peer>> {
        let params = peers.iter().map(|p| same_kind::<Lazy>(&**p).map(|p| p.params));
        let params = params.collect::<Result<Vec<Params>>>()?;
        let fitted = fit_together(&self.store, &params, space)?;
        let peer = |(params, voting): (Params, Voting)| -> Peer {
            (Box::new(Lazy { params, store: self.store.clone() }), Box::new(voting))
        };
        Ok(params.into_iter().zip(fitted).map(peer).collect())
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
        self.store.heap_size()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
