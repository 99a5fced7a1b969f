//! Searches over label sets against enumeration.

use super::*;
use crate::data::{Id, LabelId, Rows};
use crate::math::sigmoid;
use crate::models::base::LogOdds;
use crate::models::chains::decode::Chain;
use std::ops::Range;

/// A chain with random weights.
#[derive(Debug)]
struct Random {
    order: Vec<LabelId>,
    shift: Vec<f64>,
}

impl Random {
    fn new(labels: usize, seed: u64) -> Self {
        let mut order: Vec<LabelId> = LabelId::all(labels).collect();
        order.sort_by_key(|y| (noise(seed * 7919 + y.index() as u64) * 1e9) as u64);
        let shift = (0..labels * labels).map(|i| 5.0 * noise(seed * 104_729 + i as u64) - 2.5);
        Random { shift: shift.collect(), order }
    }

    /// P(set | x), straight from the definition.
    fn probability(&self, log_odds: &[f64], set: u32) -> f64 {
        let labels = self.order.len();
        let on = |y: LabelId| set >> y.0 & 1 == 1;
        let mut p = 1.0;
        for (i, &y) in self.order.iter().enumerate() {
            let before = self.order[..i].iter().filter(|j| on(**j));
            let shift: f64 = before.map(|j| self.shift[j.index() * labels + y.index()]).sum();
            let z = log_odds[y.index()] + shift;
            p *= if on(y) { sigmoid(z) } else { sigmoid(-z) };
        }
        p
    }
}

impl LogOdds for Random {
    fn tasks(&self) -> usize {
        self.order.len()
    }

    fn write(&self, _rows: &Rows, _range: Range<usize>, _out: &mut Vec<f64>) {}

    fn parents(&self, task: usize) -> Vec<(LabelId, f64)> {
        let labels = self.order.len();
        let place = self.order.iter().position(|y| y.index() == task).unwrap();
        let weight = |&j: &LabelId| (j, self.shift[j.index() * labels + task]);
        self.order[..place].iter().map(weight).collect()
    }
}

fn example(labels: usize, seed: u64) -> (Random, Chain, Vec<f64>) {
    let random = Random::new(labels, seed);
    let chain = Chain::new(random.order.clone(), &random, 0);
    let log_odds = (0..labels as u64).map(|y| 4.0 * noise(seed * 31 + y + 500) - 2.5).collect();
    (random, chain, log_odds)
}

fn set_of(labels: &[LabelId]) -> u32 {
    labels.iter().fold(0, |set, y| set | 1 << y.0)
}

#[test]
fn up_to_twelve_labels_search_equals_enumeration() {
    for labels in 1..=12 {
        for seed in 0..6 {
            let (random, chain, log_odds) = example(labels, seed);
            let mut all: Vec<(f64, u32)> =
                (0..1u32 << labels).map(|set| (random.probability(&log_odds, set), set)).collect();
            all.sort_by(|a, b| b.0.total_cmp(&a.0));
            let most = all.len().min(5);
            let found = chain.best_sets(&log_odds, most, 1);
            assert_eq!(found.len(), most);
            for (f, e) in found.iter().zip(&all) {
                assert_eq!(set_of(&f.labels), e.1, "{labels} labels, seed {seed}");
                assert!((f.probability - e.0).abs() < 1e-12);
            }
            let mut marginals = vec![0.0; labels];
            chain.marginals(&log_odds, 1, &mut marginals);
            for (y, found) in marginals.iter().enumerate() {
                let expected: f64 = all.iter().filter(|s| s.1 >> y & 1 == 1).map(|s| s.0).sum();
                assert!((found - expected).abs() < 1e-12, "{labels} labels, label {y}");
            }
        }
    }
}

#[test]
fn beyond_fifteen_labels_a_beam_finds_the_best_set_of_most_rows() {
    let labels = 16;
    let (mut same, mut near, rows) = (0, 0, 20);
    for seed in 0..rows {
        let (random, chain, log_odds) = example(labels, seed);
        let best = (0..1u32 << labels)
            .map(|set| (random.probability(&log_odds, set), set))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap();
        let found = chain.best_sets(&log_odds, 1, 50).remove(0);
        let p = random.probability(&log_odds, set_of(&found.labels));
        assert!((p - found.probability).abs() < 1e-12);
        same += usize::from(set_of(&found.labels) == best.1);
        // A narrow beam is no better than a wide one.
        let narrow = chain.best_sets(&log_odds, 1, 1).remove(0);
        assert!(narrow.probability <= found.probability + 1e-12);

        let mut marginals = vec![0.0; labels];
        chain.marginals(&log_odds, 50, &mut marginals);
        let exact = |y: usize| -> f64 {
            let with = (0..1u32 << labels).filter(|set| set >> y & 1 == 1);
            with.map(|set| random.probability(&log_odds, set)).sum()
        };
        near += (0..labels).filter(|&y| (marginals[y] - exact(y)).abs() < 0.05).count();
    }
    assert!(same >= 18, "{same} of {rows}");
    assert!(near >= rows as usize * labels * 8 / 10, "{near}");
}

#[test]
fn the_model_predicts_the_best_set() {
    let (labels, features) = dependent(200, 6);
    let joint = train("pcc", &labels, &features);
    let ranked = joint.rank_sets(&features, 64).unwrap();
    let marginal = log_odds(&train("pcc(decide=marginal)", &labels, &features), &features);
    let mut unlike = 0;
    for (row, (set, sets)) in predicted(&joint, &features).iter().zip(&ranked).enumerate() {
        assert_eq!(sets.len(), 64);
        let total: f64 = sets.iter().map(|s| s.probability).sum();
        assert!((total - 1.0).abs() < 1e-9, "all sets together have {total}");
        let best: Vec<String> = sets[0].labels.iter().map(|y| format!("l{:02}", y.0)).collect();
        assert_eq!(*set, best);
        for y in LabelId::all(6) {
            let with = sets.iter().filter(|s| s.labels.contains(&y)).map(|s| s.probability);
            let p = sigmoid(marginal[row * 6 + y.index()]);
            assert!((with.sum::<f64>() - p).abs() < 1e-9);
        }
        let on = |y: &LabelId| marginal[row * 6 + y.index()] >= 0.0;
        let each: Vec<LabelId> = LabelId::all(6).filter(on).collect();
        unlike += usize::from(each != sets[0].labels);
    }
    assert!(
        unlike > 0,
        "labels that depend on each other have joint and marginal sets that differ"
    );
}
