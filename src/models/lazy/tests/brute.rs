//! The lazy learners as their definition says, row by row, without any search.

use crate::data::{Id, LabelId, MISSING_CATEGORY, Rows, ValueId};
use crate::models::lazy::params::{Method, Params};
use crate::models::lazy::search::{Distance, Scale};

/// Stored rows in the order of content, equal ones repeated.
pub(super) struct Brute<'a> {
    pub(super) rows: &'a Rows,
    pub(super) params: Params,
    pub(super) labels: usize,
    pub(super) sparse: usize,
}

/// One row: dense numbers, sparse numbers, categories.
type Point = (Vec<f64>, Vec<f64>, Vec<ValueId>);

impl Brute<'_> {
    fn raw(&self, rows: &Rows, row: usize) -> Point {
        let mut sparse = vec![0.0; self.sparse];
        let (ids, values) = rows.sparse.row(row);
        ids.iter().zip(values).for_each(|(id, &x)| sparse[id.index()] = x);
        (rows.dense_row(row).to_vec(), sparse, rows.category_row(row).to_vec())
    }

    /// Scales one feature, given all its stored values, and fills in what is missing.
    fn scaled(&self, stored: &[f64], x: f64, shifted: bool) -> f64 {
        let known: Vec<f64> = stored.iter().copied().filter(|x| !x.is_nan()).collect();
        let n = known.len() as f64;
        if known.is_empty() {
            return 0.0;
        }
        let mean = known.iter().sum::<f64>() / n;
        let low = known.iter().copied().fold(f64::INFINITY, f64::min);
        let high = known.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let x = if x.is_nan() { mean } else { x };
        let (shift, factor) = match self.params.metric.scale {
            Scale::None => return x,
            _ if low == high => return 0.0,
            Scale::MinMax => (low, 1.0 / (high - low)),
            Scale::Standard => {
                let variance = known.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
                (mean, 1.0 / variance.sqrt())
            }
        };
        (x - if shifted { shift } else { 0.0 }) * factor
    }

    fn place(&self, stored: &[Point], (dense, sparse, categories): &Point) -> Point {
        let column = |get: &dyn Fn(&Point) -> f64| stored.iter().map(get).collect::<Vec<f64>>();
        let dense =
            (0..dense.len()).map(|i| self.scaled(&column(&|p| p.0[i]), dense[i], true)).collect();
        let sparse = (0..sparse.len())
            .map(|i| self.scaled(&column(&|p| p.1[i]), sparse[i], false))
            .collect();
        (dense, sparse, categories.clone())
    }

    /// How far `b` is from `a`: what orders the neighbours of `a`, and the distance.
    fn distance(&self, a: &Point, b: &Point) -> (f64, f64) {
        let sum = |f: &dyn Fn(f64, f64) -> f64| {
            let part = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(&x, &y)| f(x, y)).sum::<f64>();
            part(&a.0, &b.0) + part(&a.1, &b.1)
        };
        let missing = |v: ValueId| v == MISSING_CATEGORY;
        let apart: f64 =
            a.2.iter()
                .zip(&b.2)
                .map(|(&x, &y)| match (missing(x), missing(y)) {
                    (true, true) => 0.0,
                    (false, false) => f64::from(u8::from(x != y)),
                    _ => 0.5,
                })
                .sum();
        match self.params.metric.distance {
            Distance::Euclidean => {
                let square = sum(&|x, y| (x - y) * (x - y)) + apart;
                (square, square.sqrt())
            }
            Distance::Manhattan => {
                let far = sum(&|x, y| (x - y).abs()) + apart;
                (far, far)
            }
            Distance::Cosine => {
                let known = |p: &Point| p.2.iter().filter(|v| !missing(**v)).count() as f64;
                let part = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
                let square = |p: &Point| part(&p.0) + part(&p.1) + known(p);
                let common = a.2.iter().zip(&b.2).filter(|(x, y)| x == y && !missing(**x)).count();
                let dot = sum(&|x, y| x * y) + common as f64;
                if square(a) == 0.0 || square(b) == 0.0 {
                    return (0.0, 1.0);
                }
                let cosine = dot / (square(a).sqrt() * square(b).sqrt());
                (
                    -dot * dot.abs() / square(b),
                    if cosine > 1.0 - 1e-15 { 0.0 } else { 1.0 - cosine },
                )
            }
        }
    }

    /// The `k` nearest rows of `query`, without row `own`, and the weight of each.
    fn nearest(&self, stored: &[Point], query: &Point, own: Option<usize>) -> Vec<(usize, f64)> {
        let mut all: Vec<((f64, f64), usize)> = (0..stored.len())
            .filter(|&i| Some(i) != own)
            .map(|i| (self.distance(query, &stored[i]), i))
            .collect();
        let order = |a: &((f64, f64), usize), b: &((f64, f64), usize)| {
            a.0.0.total_cmp(&b.0.0).then(a.1.cmp(&b.1))
        };
        if all.len() > self.params.k {
            all.select_nth_unstable_by(self.params.k, order);
            all.truncate(self.params.k);
        }
        all.sort_by(order);
        let exact = all.iter().any(|n| n.0.1 == 0.0);
        let weight = |d: f64| match (self.params.by_distance, exact) {
            (false, _) => 1.0,
            (true, true) => f64::from(u8::from(d == 0.0)),
            (true, false) => 1.0 / d,
        };
        all.into_iter().map(|((_, d), i)| (i, weight(d))).collect()
    }

    /// The share of the neighbours that have each label, and how many that is.
    fn shares(&self, neighbours: &[(usize, f64)]) -> Vec<(f64, usize)> {
        let total: f64 = neighbours.iter().map(|n| n.1).sum();
        LabelId::all(self.labels)
            .map(|y| {
                let has = |n: &&(usize, f64)| self.rows.labels.row(n.0).contains(&y);
                let votes: f64 = neighbours.iter().filter(has).map(|n| n.1).sum();
                let share = votes / total;
                (share, (share * neighbours.len() as f64 + 0.5).floor() as usize)
            })
            .collect()
    }

    /// For each query, its label set and the probability of each label.
    pub(super) fn answers(&self, queries: &Rows) -> Vec<(Vec<LabelId>, Vec<f64>)> {
        let raw: Vec<Point> = (0..self.rows.len).map(|i| self.raw(self.rows, i)).collect();
        let stored: Vec<Point> = raw.iter().map(|p| self.place(&raw, p)).collect();
        let posterior = self.posterior(&stored);
        (0..queries.len)
            .map(|q| {
                let query = self.place(&raw, &self.raw(queries, q));
                let neighbours = self.nearest(&stored, &query, None);
                self.decide(&neighbours, &posterior)
            })
            .collect()
    }

    fn decide(
        &self,
        neighbours: &[(usize, f64)],
        posterior: &[Vec<f64>],
    ) -> (Vec<LabelId>, Vec<f64>) {
        let shares = self.shares(neighbours);
        let all = LabelId::all(self.labels);
        let mut ranked: Vec<LabelId> = all.clone().filter(|y| shares[y.index()].0 > 0.0).collect();
        ranked.sort_by(|a, b| shares[b.index()].0.total_cmp(&shares[a.index()].0));
        let most: Vec<LabelId> = all.clone().filter(|y| shares[y.index()].0 > 0.5).collect();
        let mut scores: Vec<f64> = shares.iter().map(|s| s.0).collect();
        let mut set = match self.params.method {
            Method::Majority => most,
            Method::MajorityOrBest if most.is_empty() => ranked.into_iter().take(1).collect(),
            Method::MajorityOrBest => most,
            Method::MeanSize => {
                let size = (scores.iter().sum::<f64>() + 0.5 + 1e-12).floor() as usize;
                ranked.into_iter().take(size).collect()
            }
            Method::Powerset => {
                let weight = |set: &[LabelId]| -> f64 {
                    let same = |n: &&(usize, f64)| self.rows.labels.row(n.0) == set;
                    neighbours.iter().filter(same).map(|n| n.1).sum()
                };
                let mut best: Option<(&[LabelId], f64)> = None;
                for (row, _) in neighbours {
                    let set = self.rows.labels.row(*row);
                    if best.is_none_or(|b| weight(set) > b.1) {
                        best = Some((set, weight(set)));
                    }
                }
                best.map(|b| b.0.to_vec()).unwrap_or_default()
            }
            Method::Bayes { .. } => {
                scores = all.clone().map(|y| posterior[y.index()][shares[y.index()].1]).collect();
                all.filter(|y| scores[y.index()] > 0.5).collect()
            }
        };
        set.sort_unstable();
        (set, scores)
    }

    /// ML-kNN: the probability of each label given how many neighbours have it.
    fn posterior(&self, stored: &[Point]) -> Vec<Vec<f64>> {
        let Method::Bayes { smoothing: s } = self.params.method else { return Vec::new() };
        let n = stored.len();
        let k = self.params.k.min(n);
        let having: Vec<Vec<usize>> = (0..n)
            .map(|i| {
                let neighbours = self.nearest(stored, &stored[i], Some(i));
                self.shares(&neighbours).into_iter().map(|s| s.1).collect()
            })
            .collect();
        let odds = |y: usize, j: usize| {
            let has = |i: &usize| self.rows.labels.row(*i).contains(&LabelId::new(y));
            let with = (0..n).filter(has).count() as f64;
            let without = n as f64 - with;
            let seen =
                |on: bool| (0..n).filter(|i| has(i) == on && having[*i][y] == j).count() as f64;
            let all = s * (k as f64 + 1.0);
            let on = (s + with) * (s + seen(true)) * (all + without);
            let off = (s + without) * (s + seen(false)) * (all + with);
            on / (on + off)
        };
        (0..self.labels).map(|y| (0..=k).map(|j| odds(y, j)).collect()).collect()
    }
}
