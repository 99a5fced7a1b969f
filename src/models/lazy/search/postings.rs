//! An inverted index: for each sparse feature and category value, the points that have it.

use super::Distance;
use super::points::Points;
use crate::data::{Id, MISSING_CATEGORY};

/// The most points of a block: their numbers have 16 bits.
const MOST: usize = 1 << 16;

/// Points by feature, in blocks of consecutive points.
#[derive(Debug)]
pub(super) struct Postings {
    /// For each block and term, where its points begin.
    offsets: Vec<u32>,
    /// Points, counted from the first of their block.
    points: Vec<u16>,
    /// The value of each of them; empty when every term says it for all.
    values: Vec<f64>,
    /// Sparse features, then category values.
    terms: Vec<Term>,
    sparse: usize,
    block: usize,
}

/// What the points listed under a term have there.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Term {
    /// Each its own value.
    Own,
    /// All the same: flags, tokens, categories.
    Alike(f64),
    /// Nothing: all points but the listed ones have this value. For what most points have.
    Others(f64),
}

impl Postings {
    /// The index of `points`, which have `sparse` features and `values` category values, in blocks
    /// of at least `block` points.
    pub(super) fn new(
        points: &Points,
        (sparse, values): (usize, usize),
        distance: Distance,
        block: usize,
    ) -> Self {
        let each = |visit: &mut dyn FnMut(usize, usize, f64)| {
            for i in 0..points.len {
                entries(points, i, sparse, stored_category(distance), |t, x| visit(i, t, x));
            }
        };
        let (terms, count) = kinds(sparse + values, points.len, each);
        // Where lists are short, larger blocks: else most of the index would be where lists begin.
        let fewest = points.len.div_ceil((count / (4 * terms.len().max(1))).max(1));
        let block = block.max(fewest).clamp(1, MOST);
        let others = |t: usize| matches!(terms[t], Term::Others(_));
        let frequent: Vec<usize> = (0..terms.len()).filter(|&t| others(t)).collect();
        // The points that have a term, or for those that most points have, the others.
        let listed = |visit: &mut dyn FnMut(usize, usize, f64)| {
            let mut last = vec![usize::MAX; if frequent.is_empty() { 0 } else { terms.len() }];
            for i in 0..points.len {
                entries(points, i, sparse, stored_category(distance), |t, x| match others(t) {
                    true => last[t] = i,
                    false => visit(i, t, x),
                });
                frequent.iter().filter(|&&t| last[t] != i).for_each(|&t| visit(i, t, 0.0));
            }
        };
        let blocks = points.len.div_ceil(block);
        let slot = |i: usize, t: usize| i / block * terms.len() + t;
        let mut offsets = vec![0u32; blocks * terms.len() + 1];
        listed(&mut |i, t, _| offsets[slot(i, t) + 1] += 1);
        for slot in 1..offsets.len() {
            offsets[slot] += offsets[slot - 1];
        }
        let entries = offsets.last().map_or(0, |&n| n as usize);
        let own = terms.contains(&Term::Own);
        let mut index = (vec![0u16; entries], vec![0.0; if own { entries } else { 0 }]);
        let mut next = offsets.clone();
        listed(&mut |i, t, value| {
            let at = next[slot(i, t)] as usize;
            next[slot(i, t)] += 1;
            index.0[at] = (i % block) as u16;
            if own {
                index.1[at] = value;
            }
        });
        Postings { offsets, points: index.0, values: index.1, terms, sparse, block }
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
        let mut all = 0.0;
        entries(queries, query, self.sparse, asked_category(distance), |term, x| {
            let slot = block * self.terms.len() + term;
            let range = self.offsets[slot] as usize..self.offsets[slot + 1] as usize;
            let points = &self.points[range.clone()];
            match self.terms[term] {
                Term::Own => points
                    .iter()
                    .zip(&self.values[range])
                    .for_each(|(&i, &y)| near[i as usize] += change(distance, x, y)),
                Term::Alike(y) => add_to_each(near, points, change(distance, x, y)),
                Term::Others(y) => {
                    let change = change(distance, x, y);
                    all += change;
                    add_to_each(near, points, -change);
                }
            }
        });
        if all != 0.0 {
            near.iter_mut().for_each(|near| *near += all);
        }
    }

    /// How many points are in a block.
    pub(super) fn block(&self) -> usize {
        self.block
    }
}

/// Adds `change` to the distances of some points: most of the work of a search.
fn add_to_each(near: &mut [f64], points: &[u16], change: f64) {
    // In eights, which takes fewer steps for each.
    let (eights, rest) = points.as_chunks::<8>();
    eights.iter().for_each(|eight| eight.iter().for_each(|&i| near[i as usize] += change));
    rest.iter().for_each(|&i| near[i as usize] += change);
}

/// How each of so many terms is listed, and how many entries there are; `each` visits points, terms
/// and values.
fn kinds(
    terms: usize,
    points: usize,
    each: impl Fn(&mut dyn FnMut(usize, usize, f64)),
) -> (Vec<Term>, usize) {
    // How many have it, and the value of all of them where that is one.
    let mut seen = vec![(0, 0.0); terms];
    each(&mut |_, t, value| {
        let (count, first) = &mut seen[t];
        if *count == 0 {
            *first = value;
        } else if *first != value {
            *first = f64::NAN;
        }
        *count += 1;
    });
    let entries = seen.iter().map(|(count, _)| count).sum();
    let kind = |(count, value): (usize, f64)| match value {
        value if value.is_nan() => Term::Own,
        value if 2 * count > points => Term::Others(value),
        value => Term::Alike(value),
    };
    (seen.into_iter().map(kind).collect(), entries)
}

/// What a feature that both have changes in the distance of points with `x` and `y` there.
#[inline(always)]
fn change(distance: Distance, x: f64, y: f64) -> f64 {
    match distance {
        Distance::Euclidean => -2.0 * x * y,
        Distance::Cosine => -x * y,
        Distance::Manhattan => (x - y).abs() - x.abs() - y.abs(),
    }
}

/// The coordinate of a category in a stored point, and that in a query: two categories that differ
/// are 1 apart, exactly.
fn stored_category(distance: Distance) -> f64 {
    match distance {
        Distance::Euclidean | Distance::Manhattan => 0.5,
        Distance::Cosine => 1.0,
    }
}

fn asked_category(distance: Distance) -> f64 {
    match distance {
        Distance::Manhattan => 0.5,
        Distance::Euclidean | Distance::Cosine => 1.0,
    }
}

/// The terms of point `i` and their values, `category` for each category.
#[inline(always)]
fn entries(
    points: &Points,
    i: usize,
    sparse: usize,
    category: f64,
    mut visit: impl FnMut(usize, f64),
) {
    let (ids, values) = points.sparse.row(i);
    ids.iter().zip(values).for_each(|(id, &x)| visit(id.index(), x));
    for value in points.category(i).iter().filter(|v| **v != MISSING_CATEGORY) {
        visit(sparse + value.index(), category);
    }
}
