//! NaiBX straight from its formulas: no tables, no matrix products, rows counted anew each time.

/// The event model of a feature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Gaussian,
    Bernoulli,
    Multinomial,
    Categorical,
    /// Never met in training.
    Unknown,
}

/// Training rows as a full matrix, `None` for missing.
#[derive(Debug)]
pub(super) struct Brute {
    pub(super) kinds: Vec<Kind>,
    pub(super) x: Vec<Vec<Option<f64>>>,
    pub(super) sets: Vec<Vec<usize>>,
    pub(super) labels: usize,
    pub(super) s: f64,
}

/// Mean and unbiased variance; the variance of fewer than two values is `None`.
fn mean_variance(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / n };
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (mean, (values.len() > 1).then(|| squares / (n - 1.0)))
}

pub(super) fn log_total(values: &[f64]) -> f64 {
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    max + values.iter().map(|v| (v - max).exp()).sum::<f64>().ln()
}

/// The place of the largest value, or `None` when a tie within 1e-9 leaves it open.
fn clear_best(values: &[(usize, f64)]) -> Option<usize> {
    let best = values.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    values.iter().all(|v| v.0 == best.0 || v.1 < best.1 - 1e-9).then_some(best.0)
}

impl Brute {
    fn rows(&self, keep: impl Fn(&[usize]) -> bool) -> Vec<usize> {
        (0..self.sets.len()).filter(|&r| keep(&self.sets[r])).collect()
    }

    fn count(&self, keep: impl Fn(&[usize]) -> bool) -> f64 {
        self.rows(keep).len() as f64
    }

    fn column(&self, rows: &[usize], f: usize) -> Vec<f64> {
        rows.iter().filter_map(|&r| self.x[r][f]).collect()
    }

    /// sum_i ln p(x_i | g), where g is `group`, up to what is the same in all groups.
    fn features_ln(&self, group: &[usize], x: &[Option<f64>]) -> f64 {
        let known = (0..x.len()).filter_map(|f| Some((f, x[f]?)));
        known.map(|(f, x)| self.feature_ln(group, f, x)).sum()
    }

    fn feature_ln(&self, group: &[usize], f: usize, x: f64) -> f64 {
        let s = self.s;
        let values = self.column(group, f);
        let everyone: Vec<usize> = (0..self.x.len()).collect();
        let all = self.column(&everyone, f);
        match self.kinds[f] {
            Kind::Unknown => 0.0,
            Kind::Gaussian => {
                let (all_mean, all_variance) = mean_variance(&all);
                let pooled = all_variance.filter(|v| *v > 0.0).unwrap_or(1.0);
                let (mean, own) = mean_variance(&values);
                let mean = if values.is_empty() { all_mean } else { mean };
                let variance = match own {
                    Some(own) if own > 1e-12 * pooled => own.max(1e-6 * pooled),
                    _ => pooled,
                };
                -0.5 * (variance.ln() + (x - mean) * (x - mean) / variance)
            }
            Kind::Bernoulli => {
                let present: f64 = values.iter().sum();
                let p = (present + s) / (values.len() as f64 + 2.0 * s);
                if x != 0.0 { p.ln() } else { (1.0 - p).ln() }
            }
            Kind::Multinomial => {
                let counts = (0..self.kinds.len()).filter(|&w| self.kinds[w] == Kind::Multinomial);
                let choices = counts.clone().count() as f64;
                let total: f64 = counts.flat_map(|w| self.column(group, w)).sum();
                x * ((values.iter().sum::<f64>() + s) / (total + s * choices)).ln()
            }
            Kind::Categorical => {
                let mut choices: Vec<u64> = all.iter().map(|v| v.to_bits()).collect();
                choices.sort_unstable();
                choices.dedup();
                let n = values.iter().filter(|v| **v == x).count() as f64;
                ((n + s) / (values.len() as f64 + s * choices.len() as f64)).ln()
            }
        }
    }

    /// ln P(y | x) - ln P(not y | x) for every label.
    pub(super) fn log_odds(&self, x: &[Option<f64>]) -> Vec<f64> {
        let of = |y: usize| {
            let with = self.rows(|set| set.contains(&y));
            let without = self.rows(|set| !set.contains(&y));
            let prior = ((with.len() as f64 + self.s) / (without.len() as f64 + self.s)).ln();
            prior + self.features_ln(&with, x) - self.features_ln(&without, x)
        };
        (0..self.labels).map(of).collect()
    }

    /// The sizes that occur, ascending.
    pub(super) fn sizes_seen(&self) -> Vec<usize> {
        (0..=self.labels).filter(|&m| self.count(|set| set.len() == m) > 0.0).collect()
    }

    /// ln P(m) + ln p(x | m).
    pub(super) fn size_ln(&self, m: usize, x: &[Option<f64>]) -> f64 {
        let rows = self.rows(|set| set.len() == m);
        (rows.len() as f64 + self.s).ln() + self.features_ln(&rows, x)
    }

    /// ln P(y) + ln P(m | y) + ln p(x | y) + sum_j ln P(y_j | y): Eq. 9.
    pub(super) fn label_ln(&self, y: usize, m: usize, picked: &[usize], x: &[Option<f64>]) -> f64 {
        let s = self.s;
        let rows = self.rows(|set| set.contains(&y));
        let n = rows.len() as f64;
        let with_size = self.count(|set| set.contains(&y) && set.len() == m);
        let size = ((with_size + s) / (n + s * self.sizes_seen().len() as f64)).ln();
        let pair = |j: &usize| {
            let both = self.count(|set| set.contains(&y) && set.contains(j));
            ((both + s) / (n + s * (self.labels as f64 - 1.0))).ln()
        };
        (n + s).ln() + size + self.features_ln(&rows, x) + picked.iter().map(pair).sum::<f64>()
    }

    /// The set of the greedy cascade with one of `sizes`; `None` when a tie leaves it open.
    pub(super) fn predict(&self, x: &[Option<f64>], sizes: &[usize]) -> Option<Vec<usize>> {
        let ranked: Vec<(usize, f64)> = sizes.iter().map(|&m| (m, self.size_ln(m, x))).collect();
        let m = clear_best(&ranked)?;
        let mut picked = Vec::new();
        while picked.len() < m.min(self.labels) {
            let open = (0..self.labels).filter(|y| !picked.contains(y));
            let scores: Vec<_> = open.map(|y| (y, self.label_ln(y, m, &picked, x))).collect();
            picked.push(clear_best(&scores)?);
        }
        picked.sort_unstable();
        Some(picked)
    }

    /// Every set of a size that occurs with the ln of its probability: P(m | x) times the best
    /// product of P(y_k | x, m, y_1 .. y_(k-1)) over all orders, by trying all of them.
    pub(super) fn all_sets(&self, x: &[Option<f64>]) -> Vec<(Vec<usize>, f64)> {
        let sizes = self.sizes_seen();
        let size_ln: Vec<f64> = sizes.iter().map(|&m| self.size_ln(m, x)).collect();
        let total = log_total(&size_ln);
        // What Eq. 9 adds up, computed once per label, size and pair.
        let alone = |m: usize| -> Vec<f64> {
            (0..self.labels).map(|y| self.label_ln(y, m, &[], x)).collect()
        };
        let pair = |y: usize, j: usize| self.label_ln(y, 0, &[j], x) - self.label_ln(y, 0, &[], x);
        let pairs: Vec<Vec<f64>> =
            (0..self.labels).map(|y| (0..self.labels).map(|j| pair(y, j)).collect()).collect();
        let mut found = Vec::new();
        for (&m, ln) in sizes.iter().zip(&size_ln) {
            let mut best = std::collections::BTreeMap::new();
            self.orders(&alone(m), &pairs, m, ln - total, &mut Vec::new(), &mut best);
            found.extend(best);
        }
        found
    }

    fn orders(
        &self,
        alone: &[f64],
        pairs: &[Vec<f64>],
        m: usize,
        ln: f64,
        picked: &mut Vec<usize>,
        best: &mut std::collections::BTreeMap<Vec<usize>, f64>,
    ) {
        if picked.len() == m {
            let mut set = picked.clone();
            set.sort_unstable();
            let known = best.entry(set).or_insert(f64::NEG_INFINITY);
            *known = known.max(ln);
            return;
        }
        let open: Vec<usize> = (0..self.labels).filter(|y| !picked.contains(y)).collect();
        let score = |&y: &usize| alone[y] + picked.iter().map(|&j| pairs[y][j]).sum::<f64>();
        let scores: Vec<f64> = open.iter().map(score).collect();
        let total = log_total(&scores);
        for (y, score) in open.into_iter().zip(scores) {
            picked.push(y);
            self.orders(alone, pairs, m, ln + score - total, picked, best);
            picked.pop();
        }
    }
}
