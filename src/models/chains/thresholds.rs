//! From which probability a label is predicted, chosen on held-out rows.

use super::decode::Chain;
use super::predict::cut;
use crate::data::{Id, LabelId, LabelSets};
use crate::math::sigmoid;

/// The measure that thresholds are chosen by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tuned {
    MacroF1,
    MicroF1,
    HammingScore,
}

impl Tuned {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "macro_f1" => Some(Tuned::MacroF1),
            "micro_f1" => Some(Tuned::MicroF1),
            "hamming_score" => Some(Tuned::HammingScore),
            _ => None,
        }
    }

    /// The best threshold of each label on `held`. A label that no row has keeps 0.5.
    ///
    /// Labels of a chain are taken in its order, each with the log-odds that follow from the
    /// thresholds of those before it.
    ///
    /// Micro F1 does not fall apart into labels. But the largest `F` with
    /// `max sum_y (2 TP_y - F (predicted_y + true_y)) >= 0` is its maximum (Dinkelbach), and that
    /// sum does.
    pub(super) fn thresholds(self, held: &HeldOut) -> Vec<f64> {
        match self {
            Tuned::HammingScore => held.best(|tp, k, _| 2.0 * tp - k).0,
            Tuned::MacroF1 => {
                let f1 = |tp: f64, k: f64, p: f64| if tp > 0.0 { 2.0 * tp / (k + p) } else { 0.0 };
                held.best(f1).0
            }
            Tuned::MicroF1 => {
                let mut best = (held.best(|tp, _, _| tp), 0.0);
                loop {
                    let (tp, all) = best.0.1;
                    let f = if all > 0.0 { 2.0 * tp / all } else { 0.0 };
                    // It rises until it is the maximum.
                    if f <= best.1 {
                        return best.0.0;
                    }
                    best = (held.best(|tp, k, p| 2.0 * tp - f * (k + p)), f);
                }
            }
        }
    }
}

/// Rows that thresholds are chosen on.
pub(super) struct HeldOut<'a> {
    /// The log-odds of every label, row by row; those without parents where there is a chain.
    pub(super) scores: &'a [f64],
    pub(super) truth: &'a LabelSets,
    pub(super) weights: &'a [f64],
    pub(super) labels: usize,
    /// The chain whose decisions change the log-odds of labels after them.
    pub(super) chain: Option<&'a Chain>,
}

impl HeldOut<'_> {
    /// For each label the threshold with the largest `value(true positives, predicted, positives)`;
    /// and over all labels the true positives, and the sum of predicted and positives.
    fn best(&self, value: impl Fn(f64, f64, f64) -> f64 + Copy) -> (Vec<f64>, (f64, f64)) {
        let mut scores = self.scores.to_vec();
        let (mut thresholds, mut sums) = (vec![0.5; self.labels], (0.0, 0.0));
        let mut decide = |y: LabelId| {
            let curve = Curve::new(&scores, self.truth, self.weights, y, self.labels);
            let (threshold, at) = curve.best(value);
            let (tp, k, p) = curve.at(at);
            sums = (sums.0 + tp, sums.1 + k + p);
            thresholds[y.index()] = threshold;
            if let Some(chain) = self.chain {
                for row in scores.chunks_exact_mut(self.labels) {
                    if row[y.index()] >= cut(threshold) {
                        chain.turn_on(y, row);
                    }
                }
            }
        };
        match self.chain {
            Some(chain) => chain.order().iter().for_each(|&y| decide(y)),
            None => LabelId::all(self.labels).for_each(decide),
        }
        (thresholds, sums)
    }

    /// The one threshold with which the rows get as many labels as they have; 0.5 without rows.
    ///
    /// Decisions of a chain depend on it, and it on them: it is looked for a few times.
    pub(super) fn cardinality_threshold(&self) -> f64 {
        let size = |(set, weight): (&[LabelId], &f64)| weight * set.len() as f64;
        let wanted: f64 = self.truth.iter().zip(self.weights).map(size).sum();
        let mut threshold = 0.5;
        for _ in 0..if self.chain.is_some() { ROUNDS } else { 1 } {
            let mut scores = self.scores.to_vec();
            if let Some(chain) = self.chain {
                let cuts = vec![cut(threshold); self.labels];
                scores.chunks_exact_mut(self.labels).for_each(|row| chain.greedy(row, &cuts));
            }
            let next = at_weight(&scores, self.weights, self.labels, wanted);
            if next == threshold {
                break;
            }
            threshold = next;
        }
        threshold
    }
}

/// How often a threshold and the decisions of a chain are fitted to each other.
const ROUNDS: usize = 10;

/// The threshold that scores of a weight nearest to `wanted` reach, half way to the next score.
fn at_weight(scores: &[f64], weights: &[f64], labels: usize, wanted: f64) -> f64 {
    let row = |(scores, weight): (&[f64], &f64)| scores.iter().map(|z| (*z, *weight)).collect();
    let mut scores: Vec<(f64, f64)> =
        scores.chunks_exact(labels.max(1)).zip(weights).flat_map::<Vec<_>, _>(row).collect();
    scores.sort_by(|a, b| b.0.total_cmp(&a.0));
    if scores.is_empty() {
        return 0.5;
    }
    // (distance from what is wanted, threshold) of every cut between different scores.
    let (mut best, mut above, mut weight) = ((wanted, 1.0), 1.0, 0.0);
    for group in scores.chunk_by(|a, b| a.0 == b.0) {
        let p = sigmoid(group[0].0);
        if (weight - wanted).abs() < best.0 {
            best = ((weight - wanted).abs(), 0.5 * (above + p));
        }
        weight += group.iter().map(|s| s.1).sum::<f64>();
        above = p;
    }
    if (weight - wanted).abs() < best.0 { 0.0 } else { best.1 }
}

/// What each threshold of one label gives on the held-out rows.
struct Curve {
    /// Probabilities at which something changes, descending, with the weight of the rows from there
    /// up and of those among them that have the label.
    steps: Vec<(f64, f64, f64)>,
    positive: f64,
}

impl Curve {
    fn new(scores: &[f64], truth: &LabelSets, weights: &[f64], y: LabelId, labels: usize) -> Self {
        let row = |(r, set): (usize, &[LabelId])| {
            let on = set.binary_search(&y).is_ok();
            (sigmoid(scores[r * labels + y.index()]), on, weights[r])
        };
        let mut rows: Vec<(f64, bool, f64)> = truth.iter().enumerate().map(row).collect();
        rows.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (mut steps, mut k, mut tp): (Vec<(f64, f64, f64)>, f64, f64) = (Vec::new(), 0.0, 0.0);
        for (p, on, w) in rows {
            k += w;
            tp += if on { w } else { 0.0 };
            match steps.last_mut() {
                Some(last) if last.0 == p => (last.1, last.2) = (k, tp),
                _ => steps.push((p, k, tp)),
            }
        }
        Curve { steps, positive: tp }
    }

    /// (true positives, predicted, positives) when the first `cut` steps are predicted.
    fn at(&self, cut: usize) -> (f64, f64, f64) {
        let (k, tp) = cut.checked_sub(1).map_or((0.0, 0.0), |i| (self.steps[i].1, self.steps[i].2));
        (tp, k, self.positive)
    }

    /// The threshold with the largest `value(true positives, predicted, positives)`, and its cut; of
    /// equally good ones the nearest to 0.5.
    fn best(&self, value: impl Fn(f64, f64, f64) -> f64) -> (f64, usize) {
        // Without a positive row nothing can be said.
        let plain = self.steps.iter().take_while(|s| s.0 >= 0.5).count();
        if self.positive == 0.0 {
            return (0.5, plain);
        }
        let mut best = (f64::NEG_INFINITY, 0.5, 0);
        for cut in 0..=self.steps.len() {
            let (tp, k, p) = self.at(cut);
            let value = value(tp, k, p);
            let above = cut.checked_sub(1).map_or(1.0, |i| self.steps[i].0);
            let below = self.steps.get(cut).map_or(0.0, |s| s.0);
            // Half way between the last that is predicted and the first that is not.
            let threshold = if cut == plain && below < 0.5 { 0.5 } else { 0.5 * (above + below) };
            let nearer = (threshold - 0.5).abs() < (best.1 - 0.5f64).abs();
            if value > best.0 || (value == best.0 && nearer) {
                best = (value, threshold, cut);
            }
        }
        (best.1, best.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::logit;

    /// Scores of 3 labels in 8 rows, and the sets.
    fn example() -> (Vec<f64>, LabelSets) {
        let p: [[f64; 3]; 8] = [
            [0.9, 0.2, 0.4],
            [0.8, 0.3, 0.1],
            [0.7, 0.25, 0.3],
            [0.6, 0.1, 0.35],
            [0.4, 0.05, 0.2],
            [0.3, 0.02, 0.6],
            [0.2, 0.6, 0.7],
            [0.1, 0.01, 0.15],
        ];
        let sets: [&[u32]; 8] = [&[0], &[0, 1], &[1], &[0, 2], &[], &[0], &[2], &[1]];
        let mut truth = LabelSets::default();
        sets.iter().for_each(|s| truth.push(s.iter().copied().map(LabelId)));
        (p.iter().flatten().map(|&p| logit(p)).collect(), truth)
    }

    fn counts(scores: &[f64], truth: &LabelSets, t: &[f64]) -> Vec<(f64, f64, f64)> {
        (0..3)
            .map(|y| {
                let (mut tp, mut k, mut p) = (0.0, 0.0, 0.0);
                for (r, set) in truth.iter().enumerate() {
                    let predicted = scores[r * 3 + y] >= logit(t[y]);
                    let on = set.contains(&LabelId::new(y));
                    k += f64::from(u8::from(predicted));
                    p += f64::from(u8::from(on));
                    tp += f64::from(u8::from(predicted && on));
                }
                (tp, k, p)
            })
            .collect()
    }

    fn value(tuned: Tuned, c: &[(f64, f64, f64)]) -> f64 {
        match tuned {
            Tuned::HammingScore => c.iter().map(|(tp, k, p)| 2.0 * tp - k - p).sum(),
            Tuned::MacroF1 => c.iter().map(|(tp, k, p)| 2.0 * tp / (k + p)).sum(),
            Tuned::MicroF1 => {
                let sum = |of: fn(&(f64, f64, f64)) -> f64| c.iter().map(of).sum::<f64>();
                2.0 * sum(|c| c.0) / sum(|c| c.1 + c.2)
            }
        }
    }

    #[test]
    fn thresholds_are_the_best_of_all() {
        let (scores, truth) = example();
        let grid: Vec<f64> = (0..=40).map(|i| f64::from(i) / 40.0).collect();
        for tuned in [Tuned::HammingScore, Tuned::MacroF1, Tuned::MicroF1] {
            let weights = [1.0; 8];
            let held = HeldOut {
                scores: &scores,
                truth: &truth,
                weights: &weights,
                labels: 3,
                chain: None,
            };
            let found = tuned.thresholds(&held);
            let reached = value(tuned, &counts(&scores, &truth, &found));
            for a in &grid {
                for b in &grid {
                    for c in &grid {
                        let other = value(tuned, &counts(&scores, &truth, &[*a, *b, *c]));
                        assert!(other <= reached + 1e-12, "{tuned:?}: {a} {b} {c} beats {found:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn labels_without_rows_keep_one_half() {
        let mut truth = LabelSets::default();
        truth.push([]);
        let one =
            HeldOut { scores: &[3.0], truth: &truth, weights: &[1.0], labels: 1, chain: None };
        let none = LabelSets::default();
        let none = HeldOut { scores: &[], truth: &none, weights: &[], labels: 0, chain: None };
        for tuned in [Tuned::HammingScore, Tuned::MacroF1, Tuned::MicroF1] {
            assert_eq!(tuned.thresholds(&one), [0.5]);
            assert!(tuned.thresholds(&none).is_empty());
        }
        assert_eq!(none.cardinality_threshold(), 0.5);
    }

    #[test]
    fn cardinality_is_that_of_the_rows() {
        let (scores, truth) = example();
        let held = |weights: &[f64]| {
            let held = HeldOut { scores: &scores, truth: &truth, weights, labels: 3, chain: None };
            held.cardinality_threshold()
        };
        // Nine labels in all: the ninth of the scores is 0.4, the tenth 0.35.
        assert!((held(&[1.0; 8]) - 0.375).abs() < 1e-12, "{}", held(&[1.0; 8]));
        // Of the first row alone one label: 0.9 is the highest, 0.4 the next.
        let first = held(&[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert!((0.4..0.9).contains(&first), "{first}");
    }
}
