//! The nearest so far, by distances that are nearly right.

use super::nearer;

/// Collects points that may be among the `k` nearest.
///
/// Distances come with an error of at most `margin`. A point is out of the question when `k` others
/// are nearer by twice that; the others are kept, to be compared by their exact distances.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    k: usize,
    margin: f64,
    /// Distances and points.
    found: Vec<(f64, u32)>,
    /// Points farther than this are out of the question.
    limit: f64,
    /// How many may be found before they are sifted again.
    full: usize,
}

impl Candidates {
    /// Starts anew; memory is kept.
    pub(super) fn start(&mut self, k: usize, margin: f64) {
        self.k = k;
        self.margin = margin;
        self.found.clear();
        self.limit = f64::INFINITY;
        self.full = 2 * k + 64;
    }

    /// Looks at consecutive points, of which the first is `first`.
    pub(super) fn look(&mut self, first: usize, distances: &[f64]) {
        for (chunk, block) in distances.chunks(8).enumerate() {
            // Nearly always no point of a chunk is near enough: one branch for eight of them.
            let near = block.iter().fold(false, |near, &d| near | (d <= self.limit));
            if !near {
                continue;
            }
            for (i, &d) in block.iter().enumerate() {
                if d <= self.limit {
                    self.found.push((d, (first + chunk * 8 + i) as u32));
                }
            }
            if self.found.len() >= self.full {
                self.sift();
            }
        }
    }

    fn sift(&mut self) {
        if self.found.len() > self.k && self.k > 0 {
            let (_, kth, _) =
                self.found.select_nth_unstable_by(self.k - 1, |a, b| a.0.total_cmp(&b.0));
            self.limit = kth.0 + 2.0 * self.margin;
            let limit = self.limit;
            self.found.retain(|c| c.0 <= limit);
        }
        // Where many are equally near, all of them stay: wait until there are twice as many.
        self.full = 2 * self.found.len() + 64;
    }

    /// The `k` nearest by their exact distances, nearest first; of equally near ones those with the
    /// lowest number.
    pub(super) fn finish(&mut self, exact: impl Fn(u32) -> f64) -> &[(f64, u32)] {
        self.sift();
        self.found.iter_mut().for_each(|c| c.0 = exact(c.1));
        if self.k > 0 && self.found.len() > self.k {
            self.found.select_nth_unstable_by(self.k - 1, nearer);
        }
        self.found.truncate(self.k);
        self.found.sort_unstable_by(nearer);
        &self.found
    }
}
