//! The nearest stored rows.
//!
//! # Definition
//!
//! Numbers are scaled by the stored rows (after all merging): `scale=minmax` to a range of 1,
//! `standard` to a standard deviation of 1. A number that is the same in every stored row says
//! nothing. Sparse features are scaled but not shifted: an absent entry is zero and stays zero.
//! Scaled values beyond 1e100 count as 1e100.
//!
//! | distance | of rows `x` and `z` |
//! |---|---|
//! | euclidean | root of the sum of `(x_i - z_i)^2`; categories that differ add 1 to the sum |
//! | manhattan | the sum of `abs(x_i - z_i)`; categories that differ add 1 |
//! | cosine | `1 - x.z / (norm(x) norm(z))`; each category is a coordinate of 1; 1 when a norm is zero |
//!
//! # Nulls
//!
//! A missing number stands at the mean of the stored ones. A category that is missing, or was never
//! seen, is half as far from every value as two values are from each other, and next to another
//! missing one. A NULL map or list of tokens is an empty one.
//!
//! # How
//!
//! Distances of many rows at once are matrix products (dense features) and sums over an inverted
//! index (sparse features and categories). Those are quick and nearly right, and only rule rows out,
//! with a margin for their error; what is left is ordered by distances computed feature by feature,
//! so that equal distances are equal. Ties go to the row that is first in the order of content.
//!
//! # Cost
//!
//! Per query, one row of a matrix product with the stored rows, or the lengths of the lists of its
//! entries. Memory is that of a scaled copy of the stored rows, and of one block of queries per
//! thread, never of all pairs. `index=hnsw` asks a graph of near neighbours instead: a few hundred
//! distances per query, nearly all of the true neighbours, and a graph to build when the model is
//! finished or opened (one thread, minutes for a hundred thousand rows).

mod candidates;
mod exact;
mod hnsw;
mod points;
mod postings;
mod scaling;

pub(super) use exact::Blocks;

use crate::data::{FeatureSpace, Rows};
use crate::error::Result;
use crate::stats::RowTable;
use exact::Exact;
use hnsw::Hnsw;
use points::Points;
use scaling::Scaling;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// How numbers are made comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    MinMax,
    Standard,
    None,
}

/// How far rows are apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Distance {
    Euclidean,
    Cosine,
    Manhattan,
}

/// How neighbours are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexKind {
    Exact,
    Hnsw,
}

/// Everything that decides which rows are near, and how they are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Metric {
    pub(super) scale: Scale,
    pub(super) distance: Distance,
    pub(super) index: IndexKind,
    pub(super) blocks: Blocks,
}

impl Metric {
    /// What searches must have in common, besides the metric, to find the same: a graph is searched
    /// the wider the more neighbours are wanted.
    pub(super) fn breadth(&self, k: usize) -> usize {
        match self.index {
            IndexKind::Exact => 0,
            IndexKind::Hnsw => hnsw::breadth(k),
        }
    }
}

/// The nearest stored rows of consecutive queries, nearest first; a row that was seen several times
/// stands as often.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    ends: Vec<usize>,
    rows: Vec<u32>,
    distances: Vec<f64>,
}

impl Neighbours {
    /// How many queries there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// At most `k` stored rows nearest to query `query`, and their distances.
    pub(super) fn of(&self, query: usize, k: usize) -> (&[u32], &[f64]) {
        let start = if query == 0 { 0 } else { self.ends[query - 1] };
        let end = self.ends[query].min(start + k);
        (&self.rows[start..end], &self.distances[start..end])
    }

    /// Bytes on the heap.
    pub(super) fn heap_size(&self) -> usize {
        8 * (self.ends.capacity() + self.distances.capacity()) + 4 * self.rows.capacity()
    }

    /// The answers to consecutive parts of the queries as one.
    fn joined(parts: Vec<Neighbours>) -> Neighbours {
        let found = parts.iter().map(|part| part.rows.len()).sum();
        let mut all = Neighbours {
            ends: Vec::with_capacity(parts.iter().map(Neighbours::len).sum()),
            rows: Vec::with_capacity(found),
            distances: Vec::with_capacity(found),
        };
        for part in parts {
            let before = all.rows.len();
            all.ends.extend(part.ends.iter().map(|end| before + end));
            all.rows.extend(&part.rows);
            all.distances.extend(&part.distances);
        }
        all
    }
}

/// The order of points by their distances; of equally near ones that with the lower number is first.
fn nearer(a: &(f64, u32), b: &(f64, u32)) -> Ordering {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
}

/// How the nearest points are found.
#[derive(Debug)]
enum Index {
    Exact(Exact),
    Hnsw(Hnsw),
}

/// The stored rows, laid out to be searched.
#[derive(Debug)]
pub(super) struct Search {
    table: Arc<RowTable>,
    scaling: Scaling,
    points: Arc<Points>,
    distance: Distance,
    index: Index,
}

impl Search {
    /// Makes the rows of `table` ready for searches of at most `k` neighbours.
    ///
    /// # Errors
    ///
    /// A graph cannot be built because there is no thread for it.
    pub(super) fn try_new(
        table: Arc<RowTable>,
        features: &FeatureSpace,
        metric: Metric,
        k: usize,
    ) -> Result<Self> {
        let scaling = Scaling::fit(&table, features, metric.scale);
        let points = Arc::new(scaling.place(&table.rows, 0..table.len()));
        let terms = (features.sparse_len(), features.value_len());
        let distance = metric.distance;
        let index = match metric.index {
            IndexKind::Exact => {
                Index::Exact(Exact::new(Arc::clone(&points), terms, distance, metric.blocks))
            }
            IndexKind::Hnsw => Index::Hnsw(Hnsw::try_new(&points, distance, k)?),
        };
        Ok(Search { table, scaling, points, distance, index })
    }

    /// The stored rows.
    pub(super) fn table(&self) -> &RowTable {
        &self.table
    }

    /// Bytes on the heap, about.
    pub(super) fn heap_size(&self) -> usize {
        self.points.heap_size()
    }

    /// The `k` stored rows nearest to each of some `rows`.
    pub(super) fn neighbours(&self, rows: &Rows, range: Range<usize>, k: usize) -> Neighbours {
        let queries = Arc::new(self.scaling.place(rows, range.clone()));
        self.nearest(&queries, 0..range.len(), k, |query, found, out| {
            let distance = |far: f64| queries.distance(query, far, self.distance);
            self.expand(found, k, None, distance, out);
        })
    }

    /// The `k` stored rows nearest to each of some stored rows, itself left out: of a row that was
    /// seen several times, the others are its neighbours.
    pub(super) fn own_neighbours(&self, range: Range<usize>, k: usize) -> Neighbours {
        self.nearest(&self.points, range, k + 1, |query, found, out| {
            let distance = |far: f64| self.points.distance(query, far, self.distance);
            self.expand(found, k, Some(query as u32), distance, out);
        })
    }

    fn nearest(
        &self,
        queries: &Arc<Points>,
        range: Range<usize>,
        k: usize,
        take: impl Fn(usize, &[(f64, u32)], &mut Neighbours) + Sync,
    ) -> Neighbours {
        match &self.index {
            Index::Exact(exact) => exact.nearest(queries, range, k, take),
            Index::Hnsw(hnsw) => hnsw.nearest(queries, range, k, take),
        }
    }

    /// Appends the neighbours of one query: each distinct row as often as it was seen.
    fn expand(
        &self,
        found: &[(f64, u32)],
        k: usize,
        own: Option<u32>,
        distance: impl Fn(f64) -> f64,
        out: &mut Neighbours,
    ) {
        let mut left = k;
        for &(far, row) in found {
            let seen = self.table.counts[row as usize] - u64::from(own == Some(row));
            let times = left.min(usize::try_from(seen).unwrap_or(usize::MAX));
            out.rows.extend(std::iter::repeat_n(row, times));
            out.distances.extend(std::iter::repeat_n(distance(far), times));
            left -= times;
        }
        out.ends.push(out.rows.len());
    }
}
