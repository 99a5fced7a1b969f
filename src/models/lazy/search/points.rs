//! Points, and how far they are apart.

use super::Distance;
use crate::data::{Csr, FeatureId, Id, MISSING_CATEGORY, ValueId};

/// The squares of points whose sums of products are exact.
const WHOLE: f64 = (1u64 << 48) as f64;

/// Scaled rows: dense and sparse coordinates, and category values.
#[derive(Debug)]
pub(super) struct Points {
    pub(super) len: usize,
    pub(super) dense: Vec<f64>,
    pub(super) width: usize,
    pub(super) sparse: Csr,
    pub(super) categories: Vec<ValueId>,
    pub(super) category_width: usize,
    /// For each point, the sum of the squares of its coordinates.
    pub(super) squares: Vec<f64>,
    /// For each point, how many of its categories are known.
    pub(super) known: Vec<f64>,
}

impl Points {
    pub(super) fn new(
        len: usize,
        (dense, width): (Vec<f64>, usize),
        sparse: Csr,
        (categories, category_width): (Vec<ValueId>, usize),
    ) -> Self {
        let (squares, known) = (Vec::new(), Vec::new());
        let mut points =
            Points { len, dense, width, sparse, categories, category_width, squares, known };
        // Summed as the product of two rows is, so that equal rows have a cosine of one.
        let square = |i: usize| {
            let values = points.sparse.row(i).1;
            dot(points.dense(i), points.dense(i)) + values.iter().map(|x| x * x).sum::<f64>()
        };
        points.squares = (0..len).map(square).collect();
        let known =
            |i: usize| points.category(i).iter().filter(|v| **v != MISSING_CATEGORY).count() as f64;
        points.known = (0..len).map(known).collect();
        points
    }

    pub(super) fn dense(&self, i: usize) -> &[f64] {
        &self.dense[i * self.width..(i + 1) * self.width]
    }

    pub(super) fn category(&self, i: usize) -> &[ValueId] {
        &self.categories[i * self.category_width..(i + 1) * self.category_width]
    }

    /// Bytes on the heap.
    pub(super) fn heap_size(&self) -> usize {
        8 * (self.dense.capacity() + self.squares.capacity() + self.known.capacity())
            + self.sparse.heap_size()
            + 4 * self.categories.capacity()
    }

    /// The square of the length of point `i` as a vector in which each category is one coordinate
    /// of 1.
    pub(super) fn square(&self, i: usize) -> f64 {
        self.squares[i] + self.known[i]
    }

    /// Its root.
    pub(super) fn norm(&self, i: usize) -> f64 {
        self.square(i).sqrt()
    }

    /// Whether all coordinates of point `i` are whole numbers, and so small that sums of products
    /// of two such points are exact.
    pub(super) fn is_whole(&self, i: usize) -> bool {
        let whole = |x: &f64| x.fract() == 0.0;
        self.square(i) < WHOLE
            && self.dense(i).iter().all(whole)
            && self.sparse.row(i).1.iter().all(whole)
    }

    /// How far point `i` is from point `j` of `other`: what orders the neighbours `j` of one `i`.
    ///
    /// Computed coordinate by coordinate in the order of features, so that equal distances are
    /// equal in every bit. Of Euclidean distances it is the square. Of cosines it is the square
    /// times `|x|^2`, negative for nearer ones: of counts that is exact, and roots are not.
    pub(super) fn far(&self, i: usize, other: &Points, j: usize, distance: Distance) -> f64 {
        let (a, b) = (self.dense(i), other.dense(j));
        match distance {
            Distance::Euclidean => {
                sum(a, b, |x, y| (x - y) * (x - y))
                    + self.sparse_sum(i, other, j, |x, y| (x - y) * (x - y))
                    + self.categories_apart(i, other, j)
            }
            Distance::Manhattan => {
                sum(a, b, |x, y| (x - y).abs())
                    + self.sparse_sum(i, other, j, |x, y| (x - y).abs())
                    + self.categories_apart(i, other, j)
            }
            Distance::Cosine => {
                let common = self.category(i).iter().zip(other.category(j));
                let common = common.filter(|(x, y)| x == y && **x != MISSING_CATEGORY).count();
                let dot = dot(a, b) + self.sparse_sum(i, other, j, |x, y| x * y) + common as f64;
                match other.square(j) {
                    0.0 => 0.0,
                    // Whose square is infinite: nothing is exact there.
                    square if dot.abs() > 1e150 => -dot / square * dot.abs(),
                    square => -dot * dot.abs() / square,
                }
            }
        }
    }

    /// The distance of a point that is `far` from point `i`.
    pub(super) fn distance(&self, i: usize, far: f64, distance: Distance) -> f64 {
        match distance {
            Distance::Euclidean => far.sqrt(),
            Distance::Manhattan => far,
            Distance::Cosine if self.square(i) == 0.0 => 1.0,
            Distance::Cosine => {
                let apart = 1.0 + (far.abs() / self.square(i)).sqrt().copysign(far);
                // Of points in one direction nothing is left but what was rounded.
                if apart < 1e-15 { 0.0 } else { apart }
            }
        }
    }

    /// The sum of `f` over the features that either has.
    fn sparse_sum(&self, i: usize, other: &Points, j: usize, f: fn(f64, f64) -> f64) -> f64 {
        let ((a, x), (b, y)) = (self.sparse.row(i), other.sparse.row(j));
        let (mut p, mut q, mut sum) = (0, 0, 0.0);
        while p < a.len() || q < b.len() {
            let here = a.get(p).copied().unwrap_or(FeatureId::NONE);
            let there = b.get(q).copied().unwrap_or(FeatureId::NONE);
            sum +=
                f(if here <= there { x[p] } else { 0.0 }, if there <= here { y[q] } else { 0.0 });
            p += usize::from(here <= there);
            q += usize::from(there <= here);
        }
        sum
    }

    /// Categories that differ count one; one that is missing here or there counts one half.
    fn categories_apart(&self, i: usize, other: &Points, j: usize) -> f64 {
        let missing = |v: &ValueId| *v == MISSING_CATEGORY;
        let apart = |(x, y): (&ValueId, &ValueId)| match (missing(x), missing(y)) {
            (true, true) => 0.0,
            (false, false) if x == y => 0.0,
            (false, false) => 1.0,
            _ => 0.5,
        };
        self.category(i).iter().zip(other.category(j)).map(apart).sum()
    }
}

/// The sum of `f` over two slices, in eight lanes, so that it needs no order to be fast.
#[inline(always)]
fn sum(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> f64 {
    let mut lanes = [0.0; 8];
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    for (a, b) in a8.iter().zip(b8) {
        lanes.iter_mut().zip(a.iter().zip(b)).for_each(|(lane, (&x, &y))| *lane += f(x, y));
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(&x, &y)| f(x, y)).sum();
    lanes.iter().sum::<f64>() + rest
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    sum(a, b, |x, y| x * y)
}

/// The distance in the dense coordinates only, for points where it is not a product.
pub(super) fn manhattan(a: &[f64], b: &[f64]) -> f64 {
    sum(a, b, |x, y| (x - y).abs())
}
