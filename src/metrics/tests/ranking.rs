//! Rankings against brute force over all orders of equal scores, values by hand, and states.

use super::super::ranking::Ranking;
use super::super::{Metric, RankMetrics};
use super::{Random, assert_close, ids, rank_metrics};
use crate::error::ErrorKind;
use crate::stats::StateWriter;

/// A row of labels: score and truth.
type Labels = Vec<(f64, bool)>;

/// All orders of the labels 0..n.
fn orders(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(n - 1);
    let with = |order: &Vec<usize>, at: usize| [&order[..at], &[n - 1], &order[at..]].concat();
    shorter.iter().flat_map(|order| (0..n).map(move |at| with(order, at))).collect()
}

/// Every measure by its definition. Those that average over ties look at every order of the labels
/// in which scores do not rise.
fn brute_force(metric: Metric, labels: &Labels) -> f64 {
    let n = labels.len();
    let relevant: Vec<usize> = (0..n).filter(|&y| labels[y].1).collect();
    let others: Vec<usize> = (0..n).filter(|&y| !labels[y].1).collect();
    // The place of a label, the first being 1, when it stands last among its equals.
    let last_place = |y: usize| labels.iter().filter(|l| l.0 >= labels[y].0).count();
    let mean_over_orders = |measure: &dyn Fn(&[usize]) -> f64| {
        let falls = |order: &Vec<usize>| order.is_sorted_by(|&a, &b| labels[a].0 >= labels[b].0);
        let values: Vec<f64> = orders(n).iter().filter(|o| falls(o)).map(|o| measure(o)).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    let hits = |k: usize| {
        move |order: &[usize]| order.iter().take(k).filter(|&&y| labels[y].1).count() as f64
    };
    let gain = |order: &[usize]| {
        let places = order.iter().take(5).enumerate().filter(|(_, y)| labels[**y].1);
        places.map(|(place, _)| 1.0 / (place as f64 + 2.0).log2()).sum::<f64>()
    };
    match metric {
        Metric::RankingLoss => {
            let pairs = relevant.iter().flat_map(|&y| others.iter().map(move |&z| (y, z)));
            let wrong = pairs.clone().filter(|&(y, z)| labels[y].0 <= labels[z].0).count();
            if pairs.clone().count() == 0 { 0.0 } else { wrong as f64 / pairs.count() as f64 }
        }
        Metric::Coverage => relevant.iter().map(|&y| last_place(y) - 1).max().unwrap_or(0) as f64,
        Metric::AveragePrecision if relevant.is_empty() => 1.0,
        Metric::AveragePrecision => {
            let down_to = |y: usize| relevant.iter().filter(move |&&z| labels[z].0 >= labels[y].0);
            let share = |y: &usize| down_to(*y).count() as f64 / last_place(*y) as f64;
            relevant.iter().map(share).sum::<f64>() / relevant.len() as f64
        }
        Metric::OneError => 1.0 - mean_over_orders(&hits(1)),
        Metric::PrecisionAt1 => mean_over_orders(&hits(1)),
        Metric::PrecisionAt3 => mean_over_orders(&hits(3)) / 3.0,
        Metric::PrecisionAt5 => mean_over_orders(&hits(5)) / 5.0,
        Metric::NdcgAt5 if relevant.is_empty() => 0.0,
        Metric::NdcgAt5 => mean_over_orders(&gain) / gain(&[relevant, others].concat()),
        other => panic!("{other} is no measure of scores"),
    }
}

/// Labels with few different scores, so that many are equal.
fn random_labels(random: &mut Random, labels: usize) -> Labels {
    let different = 1 + random.below(2 * labels as u64 + 1);
    let score = |n: u64| n as f64 / 8.0 - 0.5;
    (0..labels).map(|_| (score(random.below(different)), random.below(3) == 0)).collect()
}

#[test]
fn every_measure_equals_brute_force() {
    let mut random = Random(5);
    for labels in 0..=6 {
        for _ in 0..60 {
            let row = random_labels(&mut random, labels);
            let mut ranks = RankMetrics::default();
            ranks.observe_labels(&mut row.clone());
            for metric in rank_metrics() {
                let expected = brute_force(metric, &row);
                assert_close(ranks.value(metric), expected, format!("{metric} of {row:?}"));
            }
        }
    }
}

#[test]
fn values_by_hand() {
    // Places: 3 (true), 0, 4 (true), 1, 2 (true), 5.
    let mut ranks = RankMetrics::default();
    ranks.observe(&ids(&[2, 3, 4]), &[0.8, 0.4, 0.2, 0.9, 0.6, 0.1]);
    let of = |metric| ranks.value(metric);
    // Of nine pairs label 4 loses to 0, and 2 to 0 and 1.
    assert_close(of(Metric::RankingLoss), 3.0 / 9.0, "ranking loss");
    assert_close(of(Metric::OneError), 0.0, "one-error");
    assert_close(of(Metric::Coverage), 4.0, "coverage");
    assert_close(of(Metric::AveragePrecision), (1.0 + 2.0 / 3.0 + 3.0 / 5.0) / 3.0, "precision");
    assert_close(of(Metric::PrecisionAt1), 1.0, "precision at 1");
    assert_close(of(Metric::PrecisionAt3), 2.0 / 3.0, "precision at 3");
    assert_close(of(Metric::PrecisionAt5), 3.0 / 5.0, "precision at 5");
    let (second, third, fifth) = (1.0 / 3f64.log2(), 0.5, 1.0 / 6f64.log2());
    assert_close(of(Metric::NdcgAt5), (1.0 + third + fifth) / (1.0 + second + third), "ndcg");
}

#[test]
fn ties_and_missing_truth() {
    use Metric::*;
    let of = |truth: &[u32], scores: &[f64]| {
        let mut ranks = RankMetrics::default();
        ranks.observe(&ids(truth), scores);
        [RankingLoss, Coverage, AveragePrecision, OneError, PrecisionAt1]
            .map(|metric| ranks.value(metric).unwrap())
    };
    // Four equal labels, one of them true: the wrong order, the last place, one chance in four.
    assert_eq!(of(&[2], &[0.3; 4]), [1.0, 3.0, 0.25, 0.75, 0.25]);
    assert_eq!(of(&[0], &[-0.0, 0.0]), [1.0, 1.0, 0.5, 0.5, 0.5]);
    // Nothing true, everything true, nothing at all.
    assert_eq!(of(&[], &[0.9, 0.1]), [0.0, 0.0, 1.0, 1.0, 0.0]);
    assert_eq!(of(&[0, 1], &[0.9, 0.1]), [0.0, 1.0, 1.0, 0.0, 1.0]);
    assert_eq!(of(&[], &[]), [0.0, 0.0, 1.0, 1.0, 0.0]);
}

#[test]
fn labels_without_a_score_stand_last() {
    let value = |truth: &[u32], scores: &[f64]| {
        let mut ranks = RankMetrics::default();
        ranks.observe(&ids(truth), scores);
        rank_metrics().map(|metric| ranks.value(metric).unwrap()).collect::<Vec<_>>()
    };
    let last = value(&[1, 2], &[-5.0, 7.0, -1e300]);
    assert_eq!(value(&[1, 2], &[-5.0, 7.0, f64::NAN]), last);
    assert_eq!(value(&[1, 2], &[-5.0, 7.0, f64::NEG_INFINITY]), last);
    assert_eq!(value(&[1, 7], &[-5.0, 7.0]), last);
    assert_eq!(value(&[1, 7, 9], &[-5.0, 7.0]), value(&[1, 2, 3], &[-5.0, 7.0, -9.0, -9.0]));
}

/// Labels that are neither scored nor true are counted, not listed.
#[test]
fn unscored_labels_are_a_number() {
    let mut random = Random(7);
    for _ in 0..100 {
        let mut row = random_labels(&mut random, 6);
        for label in row.iter_mut().filter(|_| random.below(3) == 0) {
            label.0 = f64::NEG_INFINITY;
        }
        for others in [0, 1, 7] {
            let mut listed = row.clone();
            listed.extend(vec![(f64::NEG_INFINITY, false); others]);
            let expected = Ranking::of(&mut listed, 0);
            assert_eq!(Ranking::of(&mut row.clone(), others as u32), expected);
        }
    }
    let most = Ranking::of(&mut [(f64::NEG_INFINITY, true)], u32::MAX);
    assert_eq!((most.coverage, most.loss), (u64::from(u32::MAX), 1.0));
}

/// Only the order counts, not the numbers and not which label has them.
#[test]
fn order_is_all_that_counts() {
    let mut random = Random(6);
    for _ in 0..50 {
        let row = random_labels(&mut random, 6);
        let expected = Ranking::of(&mut row.clone(), 0);
        let mut turned: Labels = row.iter().rev().copied().collect();
        assert_eq!(Ranking::of(&mut turned, 0), expected);
        let mut curved: Labels = row.iter().map(|l| (l.0.exp() * 1e9, l.1)).collect();
        assert_eq!(Ranking::of(&mut curved, 0), expected);
    }
}

#[test]
fn impossible_states_are_corrupt() {
    let state = |rows: &[f64], loss: &[u32], coverage: &[u32]| {
        let mut writer = StateWriter::default();
        writer.f64s("rows", rows.iter().copied());
        writer.u32s("ranking_loss", loss.iter().copied());
        writer.u32s("coverage", coverage.iter().copied());
        for name in ["average_precision", "precision_at_1", "precision_at_3", "precision_at_5"] {
            writer.u32s(name, [0, 0, 0, 0]);
        }
        writer.u32s("ndcg_at_5", [0, 0, 0, 0]);
        RankMetrics::decode(&writer.finish())
    };
    let none = [0; 4];
    assert_eq!(state(&[2.0], &none, &[3, 0, 0, 0]).unwrap().value(Metric::Coverage), Some(1.5));
    let refused = [
        state(&[0.5], &none, &none),
        state(&[-1.0], &none, &none),
        state(&[1e300], &none, &none),
        state(&[], &none, &none),
        state(&[1.0], &[0; 3], &none),
        // More than one row can lose.
        state(&[1.0], &[0, 1 << 31, 0, 0], &none),
        state(&[1.0], &none, &[0, 2, 0, 0]),
        state(&[1.0], &none, &[0]),
    ];
    for (i, result) in refused.into_iter().enumerate() {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Corrupt, "{i}");
    }
    let mut other = StateWriter::default();
    other.f64s("rows", [1.0]);
    let error = RankMetrics::decode(&other.finish()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}
