//! Metrics against dense brute force, hand-computed values and scikit-learn.

mod laws;
mod ranking;
mod scikit_learn;

use super::{Goal, Metric, RankMetrics, SetMetrics};
use crate::data::{Id, LabelId, LabelSets};
use crate::error::ErrorKind;
use crate::stats::{Part, State, StateWriter};

type Pair = (Vec<LabelId>, Vec<LabelId>);

fn ids(set: &[u32]) -> Vec<LabelId> {
    set.iter().copied().map(LabelId).collect()
}

fn observed(pairs: &[Pair]) -> SetMetrics {
    let mut sets = SetMetrics::default();
    pairs.iter().for_each(|(t, p)| sets.observe(t, p));
    sets
}

fn pairs(rows: &[(&[u32], &[u32])]) -> Vec<Pair> {
    rows.iter().map(|(t, p)| (ids(t), ids(p))).collect()
}

fn set_metrics() -> impl Iterator<Item = Metric> {
    Metric::ALL.iter().copied().filter(|metric| !metric.of_scores())
}

fn rank_metrics() -> impl Iterator<Item = Metric> {
    Metric::ALL.iter().copied().filter(|metric| metric.of_scores())
}

#[track_caller]
fn assert_close(actual: Option<f64>, expected: f64, what: impl std::fmt::Display) {
    let actual = actual.unwrap();
    assert!((actual - expected).abs() <= 1e-12, "{what}: {actual}, expected {expected}");
}

/// A linear congruential generator (Knuth's MMIX constants), upper bits.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    /// Rows over `labels` labels: each is true, and is predicted wrongly, in one of `rarity` cases.
    fn pairs(&mut self, rows: usize, labels: u32, rarity: u64) -> Vec<Pair> {
        let labels = || (0..labels).map(LabelId);
        let mut set = || labels().filter(|_| self.below(rarity) == 0).collect::<Vec<_>>();
        (0..rows)
            .map(|_| {
                let truth = set();
                let flips = set();
                let predicted =
                    labels().filter(|y| truth.contains(y) != flips.contains(y)).collect();
                (truth, predicted)
            })
            .collect()
    }
}

/// Every metric from 0/1 matrices, by its definition.
fn brute_force(metric: Metric, pairs: &[Pair], labels: usize) -> f64 {
    let dense =
        |set: &[LabelId]| LabelId::all(labels).map(|y| set.contains(&y)).collect::<Vec<bool>>();
    let truth: Vec<_> = pairs.iter().map(|(t, _)| dense(t)).collect();
    let predicted: Vec<_> = pairs.iter().map(|(_, p)| dense(p)).collect();
    let cells = |row: usize| (0..labels).map(move |y| (row, y)).collect::<Vec<_>>();
    let column = |y: usize| (0..pairs.len()).map(move |row| (row, y)).collect::<Vec<_>>();
    let all: Vec<_> = (0..pairs.len()).flat_map(cells).collect();
    let count = |cells: &[(usize, usize)], t: bool, p: bool| {
        cells.iter().filter(|&&(r, y)| truth[r][y] == t && predicted[r][y] == p).count() as f64
    };
    let ratio = |part: f64, whole: f64| if whole == 0.0 { 0.0 } else { part / whole };
    let measure = |cells: &[(usize, usize)], name: &str, both_empty: f64| {
        let (tp, fp, missed) =
            (count(cells, true, true), count(cells, false, true), count(cells, true, false));
        if tp + fp + missed == 0.0 {
            return both_empty;
        }
        match name {
            "jaccard" => ratio(tp, tp + fp + missed),
            "precision" => ratio(tp, tp + fp),
            "recall" => ratio(tp, tp + missed),
            "f1" => ratio(2.0 * tp, 2.0 * tp + fp + missed),
            "exact_match" => f64::from(fp + missed == 0.0),
            other => panic!("no brute force for {other}"),
        }
    };
    let rows = pairs.len() as f64;
    match metric.name() {
        "hamming_score" => {
            (count(&all, true, true) + count(&all, false, false)) / (rows * labels as f64)
        }
        "label_cardinality" => (count(&all, true, true) + count(&all, false, true)) / rows,
        "empty_share" => predicted.iter().filter(|p| !p.contains(&true)).count() as f64 / rows,
        name => match name.split_once('_') {
            Some(("micro", measured)) => measure(&all, measured, 1.0),
            Some(("macro", measured)) => {
                let sum: f64 = (0..labels).map(|y| measure(&column(y), measured, 0.0)).sum();
                sum / labels as f64
            }
            _ => (0..pairs.len()).map(|r| measure(&cells(r), name, 1.0)).sum::<f64>() / rows,
        },
    }
}

#[test]
fn every_metric_equals_brute_force() {
    let mut random = Random(1);
    for labels in 1..=12 {
        for rarity in [2, 4, 9] {
            let pairs = random.pairs(40, labels, rarity);
            let sets = observed(&pairs);
            for metric in set_metrics() {
                let expected = brute_force(metric, &pairs, labels as usize);
                assert_close(sets.value(metric, Some(labels as usize)), expected, metric);
            }
        }
    }
}

#[test]
fn values_by_hand() {
    // TP, FP, FN by label: 0: 1 0 1, 1: 1 1 0, 2: 1 1 0, 3: 0 0 1, and 4 is never seen.
    let sets =
        observed(&pairs(&[(&[0, 2], &[0, 1, 2]), (&[1], &[1]), (&[0, 3], &[2]), (&[], &[])]));
    let of = |metric, label_count| sets.value(metric, label_count);
    assert_close(of(Metric::HammingScore, Some(5)), 1.0 - 4.0 / 20.0, "hamming, universe");
    assert_close(of(Metric::HammingScore, None), 1.0 - 4.0 / 16.0, "hamming, labels seen");
    assert_close(of(Metric::ExactMatch, None), 2.0 / 4.0, "exact match");
    assert_close(of(Metric::Jaccard, None), (2.0 / 3.0 + 1.0 + 0.0 + 1.0) / 4.0, "jaccard");
    assert_close(of(Metric::Precision, None), (2.0 / 3.0 + 1.0 + 0.0 + 1.0) / 4.0, "precision");
    assert_close(of(Metric::Recall, None), (1.0 + 1.0 + 0.0 + 1.0) / 4.0, "recall");
    assert_close(of(Metric::F1, None), (4.0 / 5.0 + 1.0 + 0.0 + 1.0) / 4.0, "f1");
    assert_close(of(Metric::MicroPrecision, None), 3.0 / 5.0, "micro precision");
    assert_close(of(Metric::MicroRecall, None), 3.0 / 5.0, "micro recall");
    assert_close(of(Metric::MicroF1, None), 6.0 / 10.0, "micro f1");
    assert_close(of(Metric::MacroPrecision, None), (1.0 + 0.5 + 0.5) / 4.0, "macro precision");
    assert_close(of(Metric::MacroRecall, Some(5)), (0.5 + 1.0 + 1.0) / 5.0, "macro recall");
    assert_close(of(Metric::MacroF1, Some(5)), 3.0 * (2.0 / 3.0) / 5.0, "macro f1");
    assert_close(of(Metric::LabelCardinality, None), 5.0 / 4.0, "label cardinality");
    assert_close(of(Metric::EmptyShare, None), 1.0 / 4.0, "empty share");
}

#[test]
fn zero_by_zero_in_a_row() {
    let example = [Metric::Jaccard, Metric::Precision, Metric::Recall, Metric::F1];
    let of = |t: &[u32], p: &[u32]| {
        let sets = observed(&pairs(&[(t, p)]));
        example.map(|metric| sets.value(metric, None).unwrap())
    };
    assert_eq!(of(&[], &[]), [1.0; 4]);
    assert_eq!(of(&[3], &[]), [0.0; 4]);
    assert_eq!(of(&[], &[3]), [0.0; 4]);
}

#[test]
fn zero_by_zero_over_all_rows() {
    use Metric::*;
    let micro = [MicroPrecision, MicroRecall, MicroF1];
    let macros = [MacroPrecision, MacroRecall, MacroF1];
    let of = |sets: &SetMetrics, metrics: [Metric; 3], label_count| {
        metrics.map(|metric| sets.value(metric, label_count).unwrap())
    };
    let nothing = observed(&pairs(&[(&[], &[]), (&[], &[])]));
    assert_eq!(of(&nothing, micro, None), [1.0; 3]);
    assert_eq!(of(&nothing, macros, Some(4)), [0.0; 3]);
    assert_eq!(of(&nothing, macros, None), [1.0; 3]);
    assert_eq!(nothing.value(HammingScore, None), Some(1.0));
    assert_eq!(nothing.value(HammingScore, Some(4)), Some(1.0));
    assert_eq!(nothing.value(EmptyShare, None), Some(1.0));
    assert_eq!(nothing.value(LabelCardinality, None), Some(0.0));

    let never_predicted = observed(&pairs(&[(&[1], &[]), (&[], &[])]));
    assert_eq!(of(&never_predicted, micro, None), [0.0; 3]);
    assert_eq!(of(&never_predicted, macros, None), [0.0; 3]);
    let never_true = observed(&pairs(&[(&[], &[1])]));
    assert_eq!(of(&never_true, micro, None), [0.0; 3]);
    assert_eq!(of(&never_true, macros, None), [0.0; 3]);
}

#[test]
fn label_count_is_at_least_the_labels_seen() {
    let sets = observed(&pairs(&[(&[0, 7], &[0, 9])]));
    assert_eq!(sets.labels_seen(), 3);
    for metric in set_metrics() {
        assert_eq!(sets.value(metric, Some(1)), sets.value(metric, None), "{metric}");
    }
    assert_close(sets.value(Metric::HammingScore, None), 1.0 / 3.0, "hamming");
    assert_close(sets.value(Metric::MacroF1, Some(10)), 1.0 / 10.0, "macro f1");
}

#[test]
fn without_rows_there_is_no_value() {
    for &metric in Metric::ALL {
        assert_eq!(SetMetrics::default().value(metric, Some(3)), None, "{metric}");
        assert_eq!(RankMetrics::default().value(metric), None, "{metric}");
    }
    assert_eq!(SetMetrics::default().label_report(), []);
}

#[test]
fn sums_lose_no_digits() {
    // 2^30 times the row {0, 1, 2} against {0}, by doubling.
    let mut sets = observed(&pairs(&[(&[0, 1, 2], &[0])]));
    for _ in 0..30 {
        sets.merge(&sets.clone());
    }
    assert_eq!(sets.rows(), 1 << 30);
    assert_eq!(sets.value(Metric::Jaccard, None), Some(1.0 / 3.0));
    assert_eq!(sets.value(Metric::Precision, None), Some(1.0));
    assert_eq!(sets.value(Metric::F1, None), Some(0.5));
}

#[test]
fn sets_are_observed_row_by_row() {
    let mut random = Random(3);
    let pairs = random.pairs(30, 6, 2);
    let (mut truth, mut predicted) = (LabelSets::default(), LabelSets::default());
    for (t, p) in &pairs {
        truth.push(t.iter().copied());
        predicted.push(p.iter().copied());
    }
    let mut sets = SetMetrics::default();
    sets.observe_sets(&truth, &predicted).unwrap();
    assert_eq!(sets, observed(&pairs));

    predicted.push([LabelId(1)]);
    let error = sets.observe_sets(&truth, &predicted).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert_eq!(error.to_string(), "30 true label sets cannot be compared with 31 predicted ones");
    assert_eq!(sets, observed(&pairs));
}

#[test]
fn report_lists_the_labels_seen() {
    let sets = observed(&pairs(&[(&[0, 2], &[2, 5]), (&[2], &[2]), (&[0], &[])]));
    let rows: Vec<_> = sets
        .label_report()
        .iter()
        .map(|o| (o.label.0, o.true_positive, o.false_positive, o.false_negative))
        .collect();
    assert_eq!(rows, [(0, 0, 0, 2), (2, 2, 0, 0), (5, 0, 1, 0)]);
    assert!(sets.heap_size() >= 6 * 24);
}

#[test]
fn remap_renumbers_labels() {
    let sets = observed(&pairs(&[(&[0, 2], &[2]), (&[4], &[0, 4])]));
    // Labels 1 and 3 were never seen: their new numbers leave no trace.
    let renamed = observed(&pairs(&[(&[1, 3], &[1]), (&[0], &[0, 3])]));
    assert_eq!(sets.remap(&ids(&[3, 9, 1, 8, 0])), renamed);
    assert_eq!(sets.remap(&ids(&[0, 1, 2, 3, 4])), sets);
}

#[test]
fn states_survive_arrow() {
    let mut random = Random(4);
    for rows in [0, 1, 200] {
        let sets = observed(&random.pairs(rows, 8, 3));
        assert_eq!(SetMetrics::decode(&sets.encode()).unwrap(), sets);
    }
    let mut large = observed(&random.pairs(1, 3, 1));
    for _ in 0..50 {
        large.merge(&large.clone());
    }
    assert_eq!(SetMetrics::decode(&large.encode()).unwrap(), large);
    assert_eq!(large.value(Metric::Recall, None).map(|r| r <= 1.0), Some(true));
}

/// The state with the numbers of field `name` replaced.
fn forged(sets: &SetMetrics, name: &str, values: &[f64]) -> State {
    let mut forged = State::default();
    for (part, content) in sets.encode().parts() {
        let values = Part::Numbers(values.to_vec().into());
        forged.push(part.clone(), if part == name { values } else { content.clone() });
    }
    forged
}

#[test]
fn impossible_states_are_corrupt() {
    let sets = observed(&pairs(&[(&[0, 1], &[0]), (&[1], &[])]));
    let forgeries: [(&str, &[f64]); 11] = [
        ("rows", &[2.0, 0.0]),
        ("rows", &[1.5, 0.0, 1.0]),
        ("rows", &[2.0, 3.0, 1.0]),
        ("rows", &[2.0, 0.0, -1.0]),
        ("rows", &[f64::NAN, 0.0, 1.0]),
        ("rows", &[1e300, 0.0, 1.0]),
        // One row cannot hold the two outcomes of label 1, nor the sum of ratios.
        ("rows", &[1.0, 0.0, 1.0]),
        ("false_negative", &[0.0]),
        ("false_negative", &[0.0, 3.0]),
        ("false_positive", &[0.0, f64::INFINITY]),
        // The last label was never seen.
        ("false_negative", &[0.0, 0.0]),
    ];
    for (name, values) in forgeries {
        let error = SetMetrics::decode(&forged(&sets, name, values)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{name} {values:?}");
    }
    assert_eq!(SetMetrics::decode(&forged(&sets, "false_negative", &[0.0, 2.0])).unwrap(), sets);

    let mut other = StateWriter::default();
    other.f64s("counts", [1.0]);
    let error = SetMetrics::decode(&other.finish()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn a_metric_is_of_sets_or_of_scores() {
    let sets = observed(&pairs(&[(&[0], &[0])]));
    let mut ranks = RankMetrics::default();
    ranks.observe(&ids(&[0]), &[1.0]);
    for &metric in Metric::ALL {
        assert_eq!(sets.value(metric, None).is_none(), metric.of_scores(), "{metric}");
        assert_eq!(ranks.value(metric).is_some(), metric.of_scores(), "{metric}");
    }
    assert_eq!((set_metrics().count(), rank_metrics().count()), (14, 8));
}

#[test]
fn names_are_the_ones_users_type() {
    let names: Vec<_> = Metric::ALL.iter().map(|m| m.name()).collect();
    let expected = "hamming_score, exact_match, jaccard, precision, recall, f1, micro_precision, \
                    micro_recall, micro_f1, macro_precision, macro_recall, macro_f1, \
                    label_cardinality, empty_share, ranking_loss, one_error, coverage, \
                    average_precision, precision_at_1, precision_at_3, precision_at_5, ndcg_at_5";
    assert_eq!(names.join(", "), expected);
    for &metric in Metric::ALL {
        assert_eq!(metric.name().parse::<Metric>().unwrap(), metric);
        assert_eq!(metric.to_string(), metric.name());
        assert!(!metric.help().is_empty() && !metric.help().ends_with('.'), "{metric}");
        let describes = matches!(metric, Metric::LabelCardinality | Metric::EmptyShare);
        assert_eq!(metric.goal() == Goal::Neutral, describes, "{metric}");
        use Metric::{Coverage, OneError, RankingLoss};
        let loss = matches!(metric, RankingLoss | OneError | Coverage);
        assert_eq!(metric.goal() == Goal::Lower, loss, "{metric}");
    }
    let error = "accuracy".parse::<Metric>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(error.to_string(), format!("unknown metric `accuracy`: use one of {expected}"));
}
