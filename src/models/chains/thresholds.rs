//! From which probability a label is predicted, chosen on held-out rows.

use crate::data::LabelSets;
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

    /// The best threshold of each label for rows with log-odds `scores`, label sets `truth` and
    /// `weights`. A label that no row has keeps 0.5.
    ///
    /// Micro F1 does not fall apart into labels. But the largest `F` with
    /// `max sum_y (2 TP_y - F (predicted_y + true_y)) >= 0` is its maximum (Dinkelbach), and that
    /// sum does.
    pub(super) fn thresholds(
        self,
        scores: &[f64],
        truth: &LabelSets,
        weights: &[f64],
        labels: usize,
    ) -> Vec<f64> {
        let curves: Vec<Curve> =
            (0..labels).map(|y| Curve::new(scores, truth, weights, y, labels)).collect();
        match self {
            Tuned::HammingScore => {
                curves.iter().map(|c| c.best(|tp, k, _| 2.0 * tp - k).0).collect()
            }
            Tuned::MacroF1 => {
                let f1 = |tp: f64, k: f64, p: f64| if tp > 0.0 { 2.0 * tp / (k + p) } else { 0.0 };
                curves.iter().map(|c| c.best(f1).0).collect()
            }
            Tuned::MicroF1 => {
                let mut f = 0.0;
                loop {
                    let cuts: Vec<(f64, usize)> =
                        curves.iter().map(|c| c.best(|tp, k, p| 2.0 * tp - f * (k + p))).collect();
                    let sums = curves.iter().zip(&cuts).map(|(c, cut)| c.at(cut.1));
                    let (tp, all) = sums.fold((0.0, 0.0), |s, (tp, k, p)| (s.0 + tp, s.1 + k + p));
                    let next = if all > 0.0 { 2.0 * tp / all } else { 0.0 };
                    // It rises until it is the maximum.
                    if next <= f {
                        return cuts.into_iter().map(|c| c.0).collect();
                    }
                    f = next;
                }
            }
        }
    }
}

/// What each threshold of one label gives on the held-out rows.
struct Curve {
    /// Probabilities at which something changes, descending, with the weight of the rows from there
    /// up and of those among them that have the label.
    steps: Vec<(f64, f64, f64)>,
    positive: f64,
}

impl Curve {
    fn new(scores: &[f64], truth: &LabelSets, weights: &[f64], y: usize, labels: usize) -> Self {
        let row = |(r, set): (usize, &[u32])| {
            let on = set.binary_search(&(y as u32)).is_ok();
            (sigmoid(scores[r * labels + y]), on, weights[r])
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
        sets.iter().for_each(|s| truth.push(s.iter().copied()));
        (p.iter().flatten().map(|&p| logit(p)).collect(), truth)
    }

    fn counts(scores: &[f64], truth: &LabelSets, t: &[f64]) -> Vec<(f64, f64, f64)> {
        (0..3)
            .map(|y| {
                let (mut tp, mut k, mut p) = (0.0, 0.0, 0.0);
                for (r, set) in truth.iter().enumerate() {
                    let predicted = scores[r * 3 + y] >= logit(t[y]);
                    let on = set.contains(&(y as u32));
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
            let found = tuned.thresholds(&scores, &truth, &[1.0; 8], 3);
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
        for tuned in [Tuned::HammingScore, Tuned::MacroF1, Tuned::MicroF1] {
            assert_eq!(tuned.thresholds(&[3.0], &truth, &[1.0], 1), [0.5]);
        }
        assert!(Tuned::HammingScore.thresholds(&[], &LabelSets::default(), &[], 0).is_empty());
    }
}
