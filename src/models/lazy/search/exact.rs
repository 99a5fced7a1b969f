//! Exact search: quick distances rule out, exact ones decide.

use super::candidates::Candidates;
use super::points::{Points, manhattan};
use super::postings::Postings;
use super::{Distance, Neighbours};
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Stored points per matrix product: with the queries of a block, they stay in the cache.
const DENSE_BLOCK: usize = 1024;
/// Stored points per pass over the inverted index: their distances stay in the nearest cache.
const SPARSE_BLOCK: usize = 4096;
/// The most queries of a block.
const QUERIES: usize = 128;

/// The stored points.
#[derive(Debug)]
pub(super) struct Exact {
    distance: Distance,
    points: Arc<Points>,
    /// Row by row what is multiplied with a query; empty when distances are no products.
    matrix: Vec<f64>,
    columns: usize,
    /// Of each point, what its distance to any query has in common; empty when in the matrix.
    base: Vec<f64>,
    postings: Option<Postings>,
    /// The largest norm of a point, and the most terms its distance adds up.
    largest: f64,
    terms: usize,
}

impl Exact {
    pub(super) fn new(points: Arc<Points>, terms: (usize, usize), distance: Distance) -> Self {
        let sparse = points.sparse.entries() > 0 || points.category_width > 0;
        let entries = (0..points.len).map(|i| points.sparse.row(i).0.len()).max().unwrap_or(0);
        let norms = (0..points.len).map(|i| norm(&points, i, distance));
        let mut exact = Exact {
            distance,
            matrix: Vec::new(),
            columns: 0,
            base: Vec::new(),
            postings: None,
            largest: norms.fold(0.0, f64::max),
            terms: points.width + entries + points.category_width + 8,
            points,
        };
        exact.lay_out();
        if sparse {
            let scale = |i: usize| match distance {
                Distance::Cosine => inverse(exact.points.norm(i)),
                _ => 1.0,
            };
            let block = SPARSE_BLOCK.min(exact.points.len.max(1));
            exact.postings = Some(Postings::new(&exact.points, terms, distance, block, scale));
        }
        exact
    }

    /// Lays out the dense part of each distance.
    ///
    /// Euclidean: `[z, |z|^2] . [-2 x, 1]` is the squared distance less `|x|^2`, which all points
    /// have in common. Cosine: `-x . z / |z|`, a multiple of the distance less 1.
    fn lay_out(&mut self) {
        let points = &self.points;
        let width = points.width;
        let whole = |i: usize| points.squares[i] + 0.5 * points.known[i];
        match self.distance {
            Distance::Euclidean if width > 0 => {
                self.columns = width + 1;
                self.matrix.reserve_exact(points.len * self.columns);
                for i in 0..points.len {
                    self.matrix.extend_from_slice(points.dense(i));
                    self.matrix.push(whole(i));
                }
            }
            Distance::Euclidean => self.base = (0..points.len).map(whole).collect(),
            Distance::Cosine if width > 0 => {
                self.columns = width;
                self.matrix.reserve_exact(points.len * self.columns);
                for i in 0..points.len {
                    let scale = inverse(points.norm(i));
                    self.matrix.extend(points.dense(i).iter().map(|x| x * scale));
                }
            }
            Distance::Cosine => self.base = vec![0.0; points.len],
            Distance::Manhattan => {
                let size = |i: usize| {
                    let entries = points.sparse.row(i).1.iter().map(|x| x.abs()).sum::<f64>();
                    entries + 0.5 * points.known[i]
                };
                self.base = (0..points.len).map(size).collect();
            }
        }
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
        let size = range.len().div_ceil(2 * threads).clamp(1, QUERIES);
        let starts: Vec<usize> = range.clone().step_by(size).collect();
        let parts: Vec<Neighbours> = starts
            .par_iter()
            .map_init(Scratch::default, |scratch, &start| {
                let block = start..range.end.min(start + size);
                self.nearest_of_block(queries, block, k, &take, scratch)
            })
            .collect();
        Neighbours::joined(&parts)
    }

    fn nearest_of_block(
        &self,
        queries: &Points,
        range: Range<usize>,
        k: usize,
        take: &impl Fn(usize, &[(f64, u32)], &mut Neighbours),
        scratch: &mut Scratch,
    ) -> Neighbours {
        scratch.candidates.resize_with(range.len(), Candidates::default);
        for (candidates, query) in scratch.candidates.iter_mut().zip(range.clone()) {
            candidates.start(k, self.margin(queries, query));
        }
        self.lay_out_queries(queries, range.clone(), &mut scratch.queries);
        let step = self.postings.as_ref().map_or(DENSE_BLOCK, Postings::block);
        for (block, first) in (0..self.points.len).step_by(step).enumerate() {
            let last = self.points.len.min(first + step);
            if self.columns > 0 {
                self.products(range.len(), first..last, scratch);
            }
            for (i, query) in range.clone().enumerate() {
                let near = if self.columns > 0 {
                    &mut scratch.near[i * (last - first)..(i + 1) * (last - first)]
                } else {
                    scratch.near.clear();
                    scratch.near.extend_from_slice(&self.base[first..last]);
                    if self.distance == Distance::Manhattan && self.points.width > 0 {
                        let x = queries.dense(query);
                        let rows = scratch.near.iter_mut().zip(first..last);
                        rows.for_each(|(n, j)| *n += manhattan(x, self.points.dense(j)));
                    }
                    &mut scratch.near[..]
                };
                if let Some(postings) = &self.postings {
                    postings.add(queries, query, block, self.distance, near);
                }
                scratch.candidates[i].look(first, near);
            }
        }
        let mut out = Neighbours::default();
        for (candidates, query) in scratch.candidates.iter_mut().zip(range) {
            let far = |j: u32| queries.far(query, &self.points, j as usize, self.distance);
            take(query, candidates.finish(far), &mut out);
        }
        out
    }

    /// The left side of the product: one row per query.
    fn lay_out_queries(&self, queries: &Points, range: Range<usize>, out: &mut Vec<f64>) {
        out.clear();
        for query in range {
            match self.distance {
                Distance::Euclidean if self.columns > 0 => {
                    out.extend(queries.dense(query).iter().map(|x| -2.0 * x));
                    out.push(1.0);
                }
                Distance::Cosine if self.columns > 0 => {
                    out.extend(queries.dense(query).iter().map(|x| -x));
                }
                _ => {}
            }
        }
    }

    /// The distances of all queries of a block to the points of `range`.
    fn products(&self, queries: usize, range: Range<usize>, scratch: &mut Scratch) {
        let (points, columns) = (range.len(), self.columns);
        scratch.near.resize(queries * points, 0.0);
        let rows = &self.matrix[range.start * columns..range.end * columns];
        let left = ArrayView2::from_shape((queries, columns), &scratch.queries[..]);
        let right = ArrayView2::from_shape((points, columns), rows);
        let out = ArrayViewMut2::from_shape((queries, points), &mut scratch.near[..]);
        // The shapes are those of the slices.
        if let (Ok(left), Ok(right), Ok(mut out)) = (left, right, out) {
            general_mat_mul(1.0, &left, &right.t(), 0.0, &mut out);
        }
    }

    /// A bound on the difference between quick and exact distances of `query`.
    ///
    /// A sum of `n` products in any order is off by at most `n eps` of the sum of their absolute
    /// values; both ways of computing a distance add up at most the terms of both points, and the
    /// quick one those of terms that most points have: their squares add up to at most twice those
    /// of the largest point.
    fn margin(&self, queries: &Points, query: usize) -> f64 {
        let size = norm(queries, query, self.distance);
        let scale = match self.distance {
            Distance::Euclidean => (size + self.largest) * (size + self.largest),
            Distance::Manhattan => size + self.largest,
            Distance::Cosine => size,
        };
        let terms = self.terms + queries.sparse.row(query).0.len();
        8.0 * terms as f64 * f64::EPSILON * scale
    }
}

/// Buffers of one thread.
#[derive(Default)]
struct Scratch {
    queries: Vec<f64>,
    near: Vec<f64>,
    candidates: Vec<Candidates>,
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
