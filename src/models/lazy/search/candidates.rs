//! The nearest so far, by quick distances.

use super::nearer;

/// Collects points that may be among the `k` nearest.
///
/// Quick distances come with an error of at most `margin`. A point is out of the question when `k`
/// others are nearer by twice that; the others are kept, to be compared by their exact distances.
/// Where very many are nearly equally near, they are compared at once, so that no more than a few
/// times `k` are ever kept.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    k: usize,
    /// `None` when quick distances are exact: points are then looked at in the order of numbers.
    margin: Option<f64>,
    /// Quick distances and points.
    found: Vec<(f64, u32)>,
    /// Points farther than this are out of the question.
    limit: f64,
    /// How many may be found before they are sifted again.
    full: usize,
}

impl Candidates {
    /// Starts anew; memory is kept.
    pub(super) fn start(&mut self, k: usize, margin: Option<f64>) {
        self.k = k;
        self.margin = margin;
        self.found.clear();
        self.limit = if k == 0 { f64::NEG_INFINITY } else { f64::INFINITY };
        self.full = 2 * k + 64;
    }

    /// Looks at consecutive points, of which the first is `first`; `exact` is the exact distance of
    /// a point.
    pub(super) fn look(&mut self, first: usize, distances: &[f64], exact: impl Fn(u32) -> f64) {
        let (chunks, rest) = distances.as_chunks::<8>();
        let mut at = first;
        for chunk in chunks {
            // Nearly always no point of a chunk is near enough: one branch for all of them.
            if chunk.iter().fold(false, |near, d| near | (*d <= self.limit)) {
                self.take(at, chunk);
                if self.found.len() >= self.full {
                    self.sift(&exact);
                }
            }
            at += chunk.len();
        }
        self.take(at, rest);
    }

    fn take(&mut self, first: usize, distances: &[f64]) {
        let near = distances.iter().zip(first..).filter(|(d, _)| **d <= self.limit);
        self.found.extend(near.map(|(&d, i)| (d, i as u32)));
    }

    fn sift(&mut self, exact: &impl Fn(u32) -> f64) {
        let k = self.k;
        if k > 0 && self.found.len() > k {
            match self.margin {
                None => {
                    let (_, last, _) = self.found.select_nth_unstable_by(k - 1, nearer);
                    // Of equally near points the first ones stay.
                    self.limit = last.0.next_down();
                    self.found.truncate(k);
                }
                Some(margin) => {
                    let (_, last, _) =
                        self.found.select_nth_unstable_by(k - 1, |a, b| a.0.total_cmp(&b.0));
                    self.limit = self.limit.min(last.0 + 2.0 * margin);
                    let limit = self.limit;
                    self.found.retain(|c| c.0 <= limit);
                    if self.found.len() > 4 * k + 64 {
                        self.decide(exact);
                    }
                }
            }
        }
        self.full = 2 * self.found.len() + 64;
    }

    /// Keeps the `k` nearest of those found, by their exact distances.
    fn decide(&mut self, exact: &impl Fn(u32) -> f64) {
        let mut found: Vec<_> = self.found.iter().map(|&(d, i)| ((exact(i), i), d)).collect();
        found.select_nth_unstable_by(self.k - 1, |a, b| nearer(&a.0, &b.0));
        self.found.clear();
        self.found.extend(found[..self.k].iter().map(|&((_, i), d)| (d, i)));
    }

    /// The `k` nearest by their exact distances, nearest first; of equally near ones those with the
    /// lowest number. Quick distances are less than exact ones by `own`.
    pub(super) fn finish(&mut self, own: f64, exact: impl Fn(u32) -> f64) -> &[(f64, u32)] {
        self.sift(&exact);
        match self.margin {
            None => self.found.iter_mut().for_each(|c| c.0 += own),
            Some(_) => self.found.iter_mut().for_each(|c| c.0 = exact(c.1)),
        }
        if self.k > 0 && self.found.len() > self.k {
            self.found.select_nth_unstable_by(self.k - 1, nearer);
        }
        self.found.truncate(self.k);
        self.found.sort_unstable_by(nearer);
        &self.found
    }
}
