//! Labels one by one, and what each says about those after it.

use super::fit::NaiveBayes;
use crate::data::{Id, LabelId};

/// What labels say about the labels picked with them, and about the size of the set.
#[derive(Debug)]
pub(super) struct LabelEvidence {
    smoothing: f64,
    labels: usize,
    /// How many of the labels were seen.
    known: usize,
    /// The sizes that were seen, ascending.
    pub(super) sizes: Vec<u32>,
    /// For each size seen and each label y, ln (N_ym + s): ln P(m | y) is this less the next.
    size_count_ln: Vec<f64>,
    /// For each label y, ln (N_y + s times the number of sizes).
    size_total_ln: Vec<f64>,
    /// ln P(y' | y) of a label y' that was never seen with y.
    unseen_pair_ln: Vec<f64>,
    /// By picked label y': the labels y seen with it, ascending.
    pairs: Vec<Vec<SeenPair>>,
    /// ln P(y' | y) by picked label y', where it is kept for all pairs.
    table: Vec<f64>,
}

/// Cells of the table of all pairs for each pair that was seen, at most.
const CELLS_PER_PAIR: usize = 4;

/// A label seen with another one.
#[derive(Debug, Clone, Copy)]
struct SeenPair {
    label: LabelId,
    /// The weight of the rows with both.
    n: f64,
    /// What having been seen adds to the term of an unseen pair.
    more: f64,
}

impl SeenPair {
    fn new(label: LabelId, n: f64, s: f64) -> Self {
        SeenPair { label, n, more: ((n + s) / s).ln() }
    }
}

impl LabelEvidence {
    pub(super) fn fit(state: &NaiveBayes, labels: usize) -> Self {
        let s = state.params.smoothing;
        let counts = state.sizes.as_slice().iter().enumerate();
        let sizes: Vec<u32> = counts.filter(|(_, n)| **n > 0.0).map(|(m, _)| m as u32).collect();
        let mut pairs = vec![Vec::new(); labels];
        for (a, b, n) in state.pairs.entries() {
            pairs[a.index()].push(SeenPair::new(b, n, s));
            pairs[b.index()].push(SeenPair::new(a, n, s));
        }
        pairs.iter_mut().for_each(|seen| seen.sort_unstable_by_key(|p| p.label));
        let mut evidence = LabelEvidence {
            smoothing: s,
            labels,
            known: LabelId::all(labels).filter(|&y| state.labels.get(y) > 0.0).count(),
            size_count_ln: vec![0.0; sizes.len() * labels],
            sizes,
            size_total_ln: vec![0.0; labels],
            unseen_pair_ln: vec![0.0; labels],
            pairs,
            table: Vec::new(),
        };
        for y in LabelId::all(labels) {
            (0..evidence.sizes.len()).for_each(|i| evidence.refresh_count(state, y, i));
            evidence.refresh_totals(state, y);
        }
        evidence
    }

    /// The same for a model that learns no more: pairs as a table, unless most of them were never
    /// seen.
    pub(super) fn settled(mut self) -> Self {
        let seen: usize = self.pairs.iter().map(Vec::len).sum();
        if self.labels * self.labels <= CELLS_PER_PAIR * seen {
            for seen in &self.pairs {
                let start = self.table.len();
                self.table.extend_from_slice(&self.unseen_pair_ln);
                let row = &mut self.table[start..];
                seen.iter().for_each(|pair| row[pair.label.index()] += pair.more);
            }
        }
        self
    }

    /// How many labels there are.
    pub(super) fn labels(&self) -> usize {
        self.labels
    }

    fn refresh_count(&mut self, state: &NaiveBayes, y: LabelId, size_at: usize) {
        let n = state.size_given_label.get(y, self.sizes[size_at]);
        self.size_count_ln[size_at * self.labels + y.index()] = (n + self.smoothing).ln();
    }

    fn refresh_totals(&mut self, state: &NaiveBayes, y: LabelId) {
        let (s, n) = (self.smoothing, state.labels.get(y));
        self.size_total_ln[y.index()] = (n + s * self.sizes.len() as f64).ln();
        let others = (self.known as f64 - 1.0).max(1.0);
        self.unseen_pair_ln[y.index()] = (s / (n + s * others)).ln();
    }

    /// Takes over a row with all `labels`, known ones in a size that was seen, which counts `weight`
    /// and is in `state`.
    pub(super) fn add_row(&mut self, state: &NaiveBayes, labels: &[LabelId], weight: f64) {
        let size_at = self.sizes.binary_search(&(labels.len() as u32));
        for (i, &y) in labels.iter().enumerate() {
            if let Ok(size_at) = size_at {
                self.refresh_count(state, y, size_at);
            }
            self.refresh_totals(state, y);
            labels[..i].iter().for_each(|&other| self.add_pair(other, y, weight));
        }
    }

    fn add_pair(&mut self, a: LabelId, b: LabelId, weight: f64) {
        let find =
            |seen: &[SeenPair], label: LabelId| seen.binary_search_by_key(&label, |p| p.label);
        let (of_a, of_b) = (find(&self.pairs[a.index()], b), find(&self.pairs[b.index()], a));
        let n = of_a.map_or(0.0, |i| self.pairs[a.index()][i].n) + weight;
        let pair = SeenPair::new(b, n, self.smoothing);
        for (label, found, pair) in [(a, of_a, pair), (b, of_b, SeenPair { label: a, ..pair })] {
            let seen = &mut self.pairs[label.index()];
            match found {
                Ok(i) => seen[i] = pair,
                Err(i) => seen.insert(i, pair),
            }
        }
    }

    /// ln P(m | y).
    pub(super) fn size_ln(&self, size: u32, y: LabelId) -> f64 {
        let count_ln = match self.sizes.binary_search(&size) {
            Ok(i) => self.size_count_ln[i * self.labels + y.index()],
            Err(_) => self.smoothing.ln(),
        };
        count_ln - self.size_total_ln[y.index()]
    }

    /// Adds ln P(m | y) for every label, up to a constant.
    pub(super) fn add_size(&self, size: u32, scores: &mut [f64]) {
        if let Ok(i) = self.sizes.binary_search(&size) {
            add(scores, &self.size_count_ln[i * self.labels..(i + 1) * self.labels]);
        }
        scores.iter_mut().zip(&self.size_total_ln).for_each(|(score, total)| *score -= total);
    }

    /// Adds ln P(picked | y) for every label y and makes `picked` impossible.
    pub(super) fn pick(&self, picked: LabelId, scores: &mut [f64]) {
        let start = picked.index() * self.labels;
        if let Some(row) = self.table.get(start..start + self.labels) {
            add(scores, row);
        } else {
            add(scores, &self.unseen_pair_ln);
            for pair in &self.pairs[picked.index()] {
                scores[pair.label.index()] += pair.more;
            }
        }
        scores[picked.index()] = f64::NEG_INFINITY;
    }

    /// The cascade of Eq. 9: the best label, then the best given that one, until there are `size`.
    ///
    /// `scores` holds ln P(y) + ln p(x | y) and is used up; `best` gives the position of the largest.
    pub(super) fn greedy(
        &self,
        scores: &mut [f64],
        size: u32,
        best: impl Fn(&[f64]) -> u32,
        picked: &mut Vec<LabelId>,
    ) {
        picked.clear();
        self.add_size(size, scores);
        for _ in 0..(size as usize).min(self.known) {
            let best = LabelId(best(scores));
            picked.push(best);
            if picked.len() < size as usize {
                self.pick(best, scores);
            }
        }
    }
}

fn add(scores: &mut [f64], more: &[f64]) {
    let len = scores.len().min(more.len());
    let (scores, more) = (&mut scores[..len], &more[..len]);
    for y in 0..len {
        scores[y] += more[y];
    }
}

/// The position of the largest score, the lower one on ties.
pub(super) fn best(scores: &[f64]) -> u32 {
    // Eight running maxima, none of which waits for another; then the eight with the largest, and
    // its place among them.
    let larger = |a: f64, b: f64| if b > a { b } else { a };
    let mut most = [f64::NEG_INFINITY; 8];
    let chunks = scores.chunks_exact(most.len());
    let rest = chunks.remainder();
    for chunk in chunks {
        most.iter_mut().zip(chunk).for_each(|(m, s)| *m = larger(*m, *s));
    }
    let most = most.iter().chain(rest).fold(f64::NEG_INFINITY, |m, s| larger(m, *s));
    let has = |eight: &[f64]| eight.iter().fold(false, |has, s| has | (*s == most));
    let from = 8 * scores.chunks(8).position(has).unwrap_or(0);
    (from + scores[from..].iter().position(|s| *s == most).unwrap_or(0)) as u32
}

#[cfg(test)]
mod tests {
    use super::best;

    #[test]
    fn the_best_is_the_first_of_the_largest() {
        for len in 1..40 {
            for at in 0..len {
                let mut scores = vec![-3.0; len];
                scores[at] = -1.0;
                scores[len - 1] = -1.0;
                assert_eq!(best(&scores), at as u32, "{len}");
            }
            assert_eq!(best(&vec![f64::NEG_INFINITY; len]), 0);
        }
    }
}
