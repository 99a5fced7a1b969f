//! Approximate search in a graph of near neighbours, for millions of rows.
//!
//! The graph (Malkov and Yashunin's HNSW) gives candidates; their order is decided by exact
//! distances, as in the exact search. It is built by one thread from rows in the order of content,
//! with a fixed seed, so that equal rows give equal answers.

use super::points::Points;
use super::{Distance, Neighbours, nearer};
use crate::error::{Error, Result};
use instant_distance::{Builder, Point, Search};
use rayon::prelude::*;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// How many candidates a search keeps at least; more find more of the true neighbours.
const BREADTH: usize = 200;
/// The same while the graph is built.
const BUILD_BREADTH: usize = 100;

/// How many candidates a search for `k` neighbours keeps.
pub(super) fn breadth(k: usize) -> usize {
    BREADTH.max(2 * k + 2)
}

/// A point in the graph, or a query.
#[derive(Clone)]
struct Place {
    points: Arc<Points>,
    i: u32,
    distance: Distance,
}

impl Point for Place {
    fn distance(&self, other: &Self) -> f32 {
        let i = self.i as usize;
        let far = self.points.far(i, &other.points, other.i as usize, self.distance);
        match self.distance {
            // What orders the neighbours of one point does not compare those of two.
            Distance::Cosine => self.points.distance(i, far, self.distance) as f32,
            Distance::Euclidean | Distance::Manhattan => far as f32,
        }
    }
}

/// The graph over the stored points.
pub(super) struct Hnsw {
    graph: instant_distance::Hnsw<Place>,
    distance: Distance,
}

impl fmt::Debug for Hnsw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hnsw").field("distance", &self.distance).finish_non_exhaustive()
    }
}

impl Hnsw {
    /// The graph over `points`, for searches of at most `k` neighbours.
    pub(super) fn try_new(points: &Arc<Points>, distance: Distance, k: usize) -> Result<Self> {
        let places: Vec<Place> = (0..points.len as u32)
            .map(|i| Place { points: Arc::clone(points), i, distance })
            .collect();
        let builder = Builder::default()
            .seed(1)
            .ef_construction(BUILD_BREADTH)
            .ef_search(breadth(k))
            // The nearest are linked. Choosing links in all directions takes up to fourteen times as
            // long and finds hardly more.
            .select_heuristic(None);
        // Threads would insert points in an order that is not the same in every run.
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let one = one.map_err(|e| Error::internal(format!("a thread for the index: {e}")))?;
        let (graph, _) = one.install(|| builder.build_hnsw(places));
        Ok(Hnsw { graph, distance })
    }

    /// The `k` nearest points of some `queries` that the graph leads to; `take` appends those of
    /// one query to its answer.
    pub(super) fn nearest(
        &self,
        queries: &Arc<Points>,
        range: Range<usize>,
        k: usize,
        take: impl Fn(usize, &[(f64, u32)], &mut Neighbours) + Sync,
    ) -> Neighbours {
        let parts: Vec<Neighbours> = range
            .into_par_iter()
            .map_init(
                || (Search::default(), Vec::new()),
                |(search, found), i| {
                    let query =
                        Place { points: Arc::clone(queries), i: i as u32, distance: self.distance };
                    found.clear();
                    found.extend(self.graph.search(&query, search).map(|item| {
                        let there = item.point;
                        let far = queries.far(i, &there.points, there.i as usize, self.distance);
                        (far, there.i)
                    }));
                    found.sort_unstable_by(nearer);
                    found.truncate(k);
                    let mut out = Neighbours::default();
                    take(i, found, &mut out);
                    out
                },
            )
            .collect();
        Neighbours::joined(parts)
    }
}
