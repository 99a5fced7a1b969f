//! Exact search: quick distances rule out, exact ones decide.

use super::candidates::Candidates;
use super::points::{Points, dot, manhattan};
use super::postings::Postings;
use super::{Distance, Neighbours};
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// How many points are looked at at a time. Answers do not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Blocks {
    /// The most queries of a block.
    pub(in super::super) queries: usize,
    /// Stored points per matrix product.
    pub(in super::super) dense: usize,
    /// Stored points per pass over the inverted index, at least.
    pub(in super::super) sparse: usize,
}

/// Queries and stored points of a block stay in the cache, and distances of one query in the nearest.
impl Default for Blocks {
    fn default() -> Self {
        Blocks { queries: 128, dense: 1024, sparse: 4096 }
    }
}

/// So few queries are compared with each stored row, without a matrix product.
const FEW: usize = 2;

/// The stored points.
#[derive(Debug)]
pub(super) struct Exact {
    distance: Distance,
    blocks: Blocks,
    points: Arc<Points>,
    /// Of each point, what its distance to any query has in common.
    base: Vec<f64>,
    /// Cosine: one over the norm of each point.
    inverse: Vec<f64>,
    postings: Option<Postings>,
    /// The largest norm of a point, and the most terms its distance adds up.
    largest: f64,
    terms: usize,
    /// Whether all coordinates are whole.
    whole: bool,
}

impl Exact {
    pub(super) fn new(
        points: Arc<Points>,
        terms: (usize, usize),
        distance: Distance,
        blocks: Blocks,
    ) -> Self {
        let all = 0..points.len;
        let sparse = points.sparse.entries() > 0 || points.category_width > 0;
        let postings = sparse.then(|| Postings::new(&points, terms, distance, blocks.sparse));
        let entries = all.clone().map(|i| points.sparse.row(i).0.len()).max().unwrap_or(0);
        let base = all.clone().map(|i| base(&points, i, distance)).collect();
        let inverse = match distance {
            Distance::Cosine => all.clone().map(|i| inverse(points.norm(i))).collect(),
            Distance::Euclidean | Distance::Manhattan => Vec::new(),
        };
        let largest = all.clone().map(|i| norm(&points, i, distance)).fold(0.0, f64::max);
        let whole = distance != Distance::Cosine && all.clone().all(|i| points.is_whole(i));
        let terms = points.width + entries + points.category_width + 8;
        Exact { distance, blocks, points, base, inverse, postings, largest, terms, whole }
    }

    /// The `k` nearest points of some `queries`; `take` appends those of one query to its answer.
    pub(super) fn nearest(
        &self,
        queries: &Points,
        range: Range<usize>,
        k: usize,
        take: impl Fn(usize, &[(f64, u32)], &mut Neighbours) + Sync,
    ) -> Neighbours {
        let threads = rayon::current_num_threads();
        let size = range.len().div_ceil(2 * threads).clamp(1, self.blocks.queries);
        let starts: Vec<usize> = range.clone().step_by(size).collect();
        let parts: Vec<Neighbours> = starts
            .par_iter()
            .map_init(Scratch::default, |scratch, &start| {
                let block = start..range.end.min(start + size);
                self.nearest_of_block(queries, block, k, &take, scratch)
            })
            .collect();
        Neighbours::joined(parts)
    }

    fn nearest_of_block(
        &self,
        queries: &Points,
        range: Range<usize>,
        k: usize,
        take: &impl Fn(usize, &[(f64, u32)], &mut Neighbours),
        scratch: &mut Scratch,
    ) -> Neighbours {
        let Scratch { near, candidates } = scratch;
        candidates.resize_with(range.len(), Candidates::default);
        for (candidates, query) in candidates.iter_mut().zip(range.clone()) {
            candidates.start(k, self.margin(queries, query));
        }
        let products = self.points.width > 0 && self.distance != Distance::Manhattan;
        let step = self.postings.as_ref().map_or(self.blocks.dense, Postings::block);
        for (block, first) in (0..self.points.len).step_by(step).enumerate() {
            let points = first..self.points.len.min(first + step);
            if products {
                self.products(queries, range.clone(), points.clone(), near);
            }
            for (i, query) in range.clone().enumerate() {
                let candidates = &mut candidates[i];
                let far = |j: u32| queries.far(query, &self.points, j as usize, self.distance);
                let near = if products {
                    &mut near[i * points.len()..(i + 1) * points.len()]
                } else {
                    near.clear();
                    near.extend_from_slice(&self.base[points.clone()]);
                    &mut near[..]
                };
                self.finish_quick(queries, query, block, points.clone(), near);
                candidates.look(first, near, far);
            }
        }
        let mut out = Neighbours::default();
        for (candidates, query) in candidates.iter_mut().zip(range) {
            let far = |j: u32| queries.far(query, &self.points, j as usize, self.distance);
            let own = base(queries, query, self.distance);
            take(query, candidates.finish(own, far), &mut out);
        }
        out
    }

    /// Begins the distances of some queries to some points with what dense features add: one matrix
    /// product.
    ///
    /// Euclidean: `|z|^2 - 2 x . z` is the squared distance less `|x|^2`, which all points have in
    /// common. Cosine: `-x . z`.
    fn products(
        &self,
        queries: &Points,
        range: Range<usize>,
        points: Range<usize>,
        near: &mut Vec<f64>,
    ) {
        let width = self.points.width;
        let factor = if self.distance == Distance::Euclidean { -2.0 } else { -1.0 };
        near.clear();
        range.clone().for_each(|_| near.extend_from_slice(&self.base[points.clone()]));
        if range.len() <= FEW {
            for (near, query) in near.chunks_exact_mut(points.len()).zip(range) {
                let x = queries.dense(query);
                let rows = near.iter_mut().zip(points.clone());
                rows.for_each(|(near, j)| *near += factor * dot(x, self.points.dense(j)));
            }
            return;
        }
        let shape = (range.len(), points.len());
        let left = &queries.dense[range.start * width..range.end * width];
        let right = &self.points.dense[points.start * width..points.end * width];
        let left = ArrayView2::from_shape((shape.0, width), left);
        let right = ArrayView2::from_shape((shape.1, width), right);
        let out = ArrayViewMut2::from_shape(shape, &mut near[..]);
        // The shapes are those of the slices.
        if let (Ok(left), Ok(right), Ok(mut out)) = (left, right, out) {
            general_mat_mul(factor, &left, &right.t(), 1.0, &mut out);
        }
    }

    /// Adds to the distances of `query` to the points of a block what is no product.
    fn finish_quick(
        &self,
        queries: &Points,
        query: usize,
        block: usize,
        points: Range<usize>,
        near: &mut [f64],
    ) {
        if self.distance == Distance::Manhattan && self.points.width > 0 {
            let x = queries.dense(query);
            let rows = near.iter_mut().zip(points.clone());
            rows.for_each(|(near, j)| *near += manhattan(x, self.points.dense(j)));
        }
        if let Some(postings) = &self.postings {
            postings.add(queries, query, block, self.distance, near);
        }
        if self.distance == Distance::Cosine {
            let inverse = &self.inverse[points];
            near.iter_mut().zip(inverse).for_each(|(near, inverse)| *near *= inverse);
        }
    }

    /// A bound on the difference between quick and exact distances of `query`; `None` when there is
    /// none because all coordinates are whole.
    ///
    /// A sum of `n` products in any order is off by at most `n eps` of the sum of their absolute
    /// values; both ways of computing a distance add up at most the terms of both points, and the
    /// quick one those of terms that most points have: their squares add up to at most twice those
    /// of the largest point.
    fn margin(&self, queries: &Points, query: usize) -> Option<f64> {
        if self.whole && queries.is_whole(query) {
            return None;
        }
        let size = norm(queries, query, self.distance);
        let scale = match self.distance {
            Distance::Euclidean => (size + self.largest) * (size + self.largest),
            Distance::Manhattan => size + self.largest,
            Distance::Cosine => size,
        };
        let terms = self.terms + queries.sparse.row(query).0.len();
        Some(8.0 * terms as f64 * f64::EPSILON * scale)
    }
}

/// Buffers of one thread.
#[derive(Default)]
struct Scratch {
    near: Vec<f64>,
    candidates: Vec<Candidates>,
}

/// What point `i` adds to its distance to any other, whatever they share.
fn base(points: &Points, i: usize, distance: Distance) -> f64 {
    match distance {
        Distance::Euclidean => points.squares[i] + 0.5 * points.known[i],
        Distance::Manhattan => {
            let entries = points.sparse.row(i).1.iter().map(|x| x.abs()).sum::<f64>();
            entries + 0.5 * points.known[i]
        }
        Distance::Cosine => 0.0,
    }
}

/// The norm in which errors of distances are measured.
fn norm(points: &Points, i: usize, distance: Distance) -> f64 {
    match distance {
        Distance::Euclidean | Distance::Cosine => points.norm(i),
        Distance::Manhattan => {
            let dense: f64 = points.dense(i).iter().map(|x| x.abs()).sum();
            let sparse: f64 = points.sparse.row(i).1.iter().map(|x| x.abs()).sum();
            dense + sparse + points.known[i]
        }
    }
}

/// One over `norm`; zero for the norm of nothing, which is as far from everything.
fn inverse(norm: f64) -> f64 {
    if norm > 0.0 { 1.0 / norm } else { 0.0 }
}
