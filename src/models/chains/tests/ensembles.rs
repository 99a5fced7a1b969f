//! Votes and bags.

use super::*;
use crate::data::{Id, LabelId, Rows};
use crate::math::sigmoid;
use crate::models::base::LogOdds;
use crate::models::chains::params::{ECC, Method, Params};
use crate::models::chains::predict::ChainScorer;
use crate::models::{CheckedSpec, Scorer, Spec, Value};
use std::ops::Range;

/// One chain of two labels: log-odds without parents, and what the first adds to the second.
#[derive(Debug)]
struct Fixed {
    log_odds: [f64; 2],
    order: [LabelId; 2],
    shift: f64,
}

impl LogOdds for Fixed {
    fn tasks(&self) -> usize {
        2
    }

    fn write(&self, _rows: &Rows, range: Range<usize>, out: &mut Vec<f64>) {
        out.clear();
        range.for_each(|_| out.extend(self.log_odds));
    }

    fn parents(&self, task: usize) -> Vec<(LabelId, f64)> {
        let last = self.order[1].index() == task;
        if last { vec![(self.order[0], self.shift)] } else { Vec::new() }
    }
}

fn votes(vote: &str) -> Vec<f64> {
    let vote = (Some("vote".to_string()), Value::Word(vote.to_string()));
    let spec = CheckedSpec::try_new(&Spec { name: "ecc".into(), args: vec![vote] }, ECC).unwrap();
    let params = Params::try_new(&spec, Method::Ensemble).unwrap();
    let chains = [
        Fixed { log_odds: [0.3, -0.5], order: [0, 1].map(LabelId), shift: 1.0 },
        Fixed { log_odds: [-0.2, -1.0], order: [1, 0].map(LabelId), shift: 5.0 },
        Fixed { log_odds: [0.4, 0.1], order: [1, 0].map(LabelId), shift: -2.0 },
    ];
    let orders = chains.iter().map(|c| c.order.to_vec()).collect();
    let scores = chains.into_iter().map(|c| Arc::new(c) as Arc<dyn LogOdds>).collect();
    let scorer = ChainScorer::new(params, 2, orders, scores, &[]);
    let mut out = Vec::new();
    scorer.score(&Rows { len: 1, ..Rows::default() }, &mut out).unwrap();
    out.into_iter().map(sigmoid).collect()
}

#[test]
fn an_ensemble_is_the_mean_of_its_chains() {
    // Along the chains: (0.3, -0.5 + 1), (-0.2, -1) and (0.4 - 2, 0.1).
    let mean = |z: [f64; 3]| z.into_iter().map(sigmoid).sum::<f64>() / 3.0;
    let expected = [mean([0.3, -0.2, -1.6]), mean([0.5, -1.0, 0.1])];
    for (found, expected) in votes("probability").iter().zip(expected) {
        assert!((found - expected).abs() < 1e-12, "{found} and {expected}");
    }
    for (found, expected) in votes("set").iter().zip([1.0 / 3.0, 2.0 / 3.0]) {
        assert!((found - expected).abs() < 1e-12, "{found} and {expected}");
    }
}

#[test]
fn seeds_and_chains_change_an_ensemble() {
    let (labels, features) = dependent(200, 5);
    let scores = |spec: &str| log_odds(&train(spec, &labels, &features), &features);
    let ten = scores("ecc");
    assert_ne!(scores("ecc(chains=1)"), ten);
    assert_ne!(scores("ecc(seed=2)"), ten);
}

/// The probability of the first label in a chain of each of thirty seeds.
fn by_seed(base: &str, labels: &ArrayRef, features: &ArrayRef) -> Vec<f64> {
    let of = |seed: u64| {
        let spec = format!("ecc(base={base}, chains=1, seed={seed})");
        sigmoid(log_odds(&train(&spec, labels, features), features)[0])
    };
    (0..30).map(of).collect()
}

#[test]
fn rows_with_equal_features_are_drawn_apart() {
    // Row r has the labels whose bits it has: 64 rows that differ in their labels alone.
    let names = ["a", "b", "c", "d", "e", "f"];
    let set = |r: usize| (0..6).filter(|y| r >> y & 1 == 1).map(|y| names[y]).collect();
    let labels = label_lists((0..64).map(set));
    let x = numbers(&[vec![1.0; 64]]);
    for base in ["naive_bayes", "logistic"] {
        let mut found = by_seed(base, &labels, &x);
        assert!(found.iter().all(|p| (0.05..0.95).contains(p)), "{base}: {found:?}");
        found.sort_by(f64::total_cmp);
        found.dedup();
        assert!(found.len() > 15, "{base}: {found:?}");
    }
}

#[test]
fn copies_of_a_row_are_drawn_one_by_one() {
    // 100 rows with the label, 100 without: a bag has about as many of each.
    let labels = label_lists((0..200).map(|r| if r % 2 == 0 { vec!["a"] } else { vec![] }));
    let found = by_seed("logistic", &labels, &numbers(&[vec![1.0; 200]]));
    assert!(found.iter().all(|p| (0.35..0.65).contains(p)), "{found:?}");
    assert!(found.iter().any(|p| *p != 0.5));
}

#[test]
fn a_bag_without_rows_has_all_of_them() {
    // The one row is in two of three bags.
    let (labels, x) = (label_lists([vec!["a"]]), numbers(&[vec![1.0]]));
    for base in ["naive_bayes", "logistic"] {
        let found = by_seed(base, &labels, &x);
        assert!(found.iter().all(|p| *p > 0.6), "{base}: {found:?}");
    }
}
