//! From which probability labels are predicted.

use super::*;
use crate::math::sigmoid;

#[test]
fn a_chain_goes_on_from_the_labels_it_predicts() {
    let (labels, features) = dependent(300, 2);
    let scores = |spec: &str| log_odds(&train(spec, &labels, &features), &features);
    let (even, low) = (scores("cc(order=given)"), scores("cc(order=given, threshold=0.3)"));
    let (mut shifts, mut same) = (Vec::new(), 0);
    for (even, low) in even.chunks(2).zip(low.chunks(2)) {
        assert_eq!(even[0], low[0]);
        // Only the threshold turns the first label on: what it says is added to the second.
        if (0.3..0.5).contains(&sigmoid(even[0])) {
            shifts.push(low[1] - even[1]);
        } else {
            assert_eq!(even[1], low[1]);
            same += 1;
        }
    }
    assert!(shifts.len() > 10 && same > 10, "{} and {same}", shifts.len());
    assert!(shifts[0].abs() > 0.5, "{shifts:?}");
    assert!(shifts.iter().all(|s| (s - shifts[0]).abs() < 1e-9), "{shifts:?}");
}

#[test]
fn a_label_that_all_chains_vote_for_reaches_one() {
    let (labels, features) = dependent(150, 3);
    let votes = log_odds(&train("ecc(vote=set)", &labels, &features), &features);
    let all: usize = votes.iter().filter(|z| sigmoid(**z) > 0.99).count();
    let found = predicted(&train("ecc(vote=set, threshold=1)", &labels, &features), &features);
    assert!(all > 20, "{all}");
    assert_eq!(found.iter().map(Vec::len).sum::<usize>(), all);
    let none = predicted(&train("ecc(vote=set, threshold=0)", &labels, &features), &features);
    assert!(none.iter().all(|set| set.len() == 3));
}

/// A label on three rows in ten, and 400 columns that say nothing about it; rows from `first` on.
fn chance(first: u64, rows: u64) -> (ArrayRef, ArrayRef) {
    let column = |d: u64| (first..first + rows).map(|r| noise(r * 400 + d) - 0.5).collect();
    let columns: Vec<Vec<f64>> = (0..400).map(column).collect();
    let on = |r: u64| noise(r + 50_000_000) < 0.3;
    let set = |r: u64| if on(r) { vec!["a"] } else { vec![] };
    (label_lists((first..first + rows).map(set)), numbers(&columns))
}

#[test]
fn thresholds_are_chosen_on_rows_that_were_not_learned() {
    // The rows that are learned can be told apart: on them 0.5 is perfect, and would predict three
    // of ten new rows. On others F1 is best when most rows have the label.
    let (labels, features) = chance(0, 250);
    let (_, new) = chance(1_000, 200);
    let share = |spec: &str| {
        let sets = predicted(&train(spec, &labels, &features), &new);
        sets.iter().filter(|set| !set.is_empty()).count() as f64 / 200.0
    };
    let (even, tuned) = (share("br"), share("br(threshold=tuned(macro_f1))"));
    assert!(even < 0.4, "{even}");
    assert!(tuned > even + 0.15, "{even} and {tuned}");
}

#[test]
fn cardinality_gives_new_rows_as_many_labels_as_they_have() {
    let (labels, features) = dependent(1_200, 6);
    let train_rows = |array: &ArrayRef| slice(array, 0..800);
    let test = |array: &ArrayRef| slice(array, 800..1_200);
    let lists = test(&labels);
    let truth: usize = {
        let lists = lists.as_any().downcast_ref::<arrow::array::ListArray>().unwrap();
        (0..lists.len()).map(|r| lists.value(r).len()).sum()
    };
    for method in ["br", "cc", "ecc"] {
        let size = |threshold: &str| -> f64 {
            let spec = format!("{method}(threshold={threshold})");
            let model = train(&spec, &train_rows(&labels), &train_rows(&features));
            let sets = predicted(&model, &test(&features));
            sets.iter().map(Vec::len).sum::<usize>() as f64 / truth as f64
        };
        let found = size("cardinality");
        assert!((0.9..1.1).contains(&found), "{method}: {found}");
        assert!(size("0.9") < 0.8, "{method}");
    }
}

#[test]
fn probabilities_of_margins_are_those_of_the_rows() {
    // The label has probability sigmoid(2 x).
    let rows = 3_000;
    let x: Vec<f64> = (0..rows).map(|r| 4.0 * noise(r) - 2.0).collect();
    let on = |r: u64| noise(r + 700_000) < sigmoid(2.0 * x[r as usize]);
    let labels = label_lists((0..rows).map(|r| if on(r) { vec!["a"] } else { vec![] }));
    let model = train("br(base=svm)", &labels, &numbers(std::slice::from_ref(&x)));
    let asked: Vec<f64> = (-8..=8).map(|i| f64::from(i) / 4.0).collect();
    let found = log_odds(&model, &numbers(std::slice::from_ref(&asked)));
    for (x, z) in asked.iter().zip(found) {
        assert!((sigmoid(z) - sigmoid(2.0 * x)).abs() < 0.05, "{x}: {}", sigmoid(z));
    }
}
