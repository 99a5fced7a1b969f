//! An inverted index: for each sparse feature and category value, the points that have it.

use super::Distance;
use super::points::Points;
use crate::data::MISSING_CATEGORY;

/// Points by feature, in blocks of consecutive points.
#[derive(Debug)]
pub(super) struct Postings {
    /// For each block and term, where its points begin.
    offsets: Vec<u32>,
    /// Points, counted from the first of their block.
    points: Vec<u32>,
    values: Vec<f64>,
    /// Sparse features, then category values.
    terms: usize,
    sparse: usize,
    block: usize,
}

/// The coordinate of a category: two that differ are 1 apart.
fn category_value(distance: Distance) -> f64 {
    match distance {
        Distance::Euclidean => std::f64::consts::FRAC_1_SQRT_2,
        Distance::Manhattan => 0.5,
        Distance::Cosine => 1.0,
    }
}

impl Postings {
    /// The index of `points`, which have `sparse` features and `values` category values, in blocks
    /// of `block` points. The values of a point are multiplied by its `scale`.
    pub(super) fn new(
        points: &Points,
        (sparse, values): (usize, usize),
        distance: Distance,
        block: usize,
        scale: impl Fn(usize) -> f64,
    ) -> Self {
        let terms = sparse + values;
        let blocks = points.len.div_ceil(block.max(1));
        let mut index = Postings {
            offsets: vec![0; blocks * terms + 1],
            points: Vec::new(),
            values: Vec::new(),
            terms,
            sparse,
            block,
        };
        let each = |visit: &mut dyn FnMut(usize, usize, f64)| {
            for i in 0..points.len {
                let first = i / block * terms;
                entries(points, i, sparse, distance, |term, value| visit(first + term, i, value));
            }
        };
        each(&mut |slot, _, _| index.offsets[slot + 1] += 1);
        for slot in 1..index.offsets.len() {
            index.offsets[slot] += index.offsets[slot - 1];
        }
        let entries = index.offsets.last().map_or(0, |&n| n as usize);
        index.points = vec![0; entries];
        index.values = vec![0.0; entries];
        let mut next = index.offsets.clone();
        each(&mut |slot, i, value| {
            let at = next[slot] as usize;
            next[slot] += 1;
            index.points[at] = (i % block) as u32;
            index.values[at] = value * scale(i);
        });
        index
    }

    /// Adds to `near`, for the points of block number `block`, what the features that they share
    /// with `query` change in their distance.
    pub(super) fn add(
        &self,
        queries: &Points,
        query: usize,
        block: usize,
        distance: Distance,
        near: &mut [f64],
    ) {
        entries(queries, query, self.sparse, distance, |term, x| {
            let slot = block * self.terms + term;
            let range = self.offsets[slot] as usize..self.offsets[slot + 1] as usize;
            let shared = self.points[range.clone()].iter().zip(&self.values[range]);
            match distance {
                Distance::Euclidean => {
                    shared.for_each(|(&i, y)| near[i as usize] -= 2.0 * x * y);
                }
                Distance::Cosine => shared.for_each(|(&i, y)| near[i as usize] -= x * y),
                Distance::Manhattan => shared.for_each(|(&i, y)| {
                    near[i as usize] += (x - y).abs() - x.abs() - y.abs();
                }),
            }
        });
    }

    /// How many points are in a block.
    pub(super) fn block(&self) -> usize {
        self.block
    }
}

/// The terms of point `i` and their values.
fn entries(
    points: &Points,
    i: usize,
    sparse: usize,
    distance: Distance,
    mut visit: impl FnMut(usize, f64),
) {
    let (ids, values) = points.sparse.row(i);
    ids.iter().zip(values).for_each(|(&id, &x)| visit(id as usize, x));
    for &value in points.category(i).iter().filter(|v| **v != MISSING_CATEGORY) {
        visit(sparse + value as usize, category_value(distance));
    }
}
