//! Figures of scikit-learn 1.9.1, `zero_division=0`, on two tables of 24 rows and 7 labels.
//!
//! `hamming_score` is 1 - `hamming_loss`, `exact_match` is `accuracy_score`, the measures of a row are
//! `average="samples"`, `coverage` is `coverage_error`, `ndcg_at_5` is `ndcg_score(k=5)`. Every other row
//! has many equal scores.
//!
//! What scikit-learn has not is counted by hand: `precision_at_k` and `one_error` as the mean over all
//! orders of labels with equal scores, each of which was ranked.

use super::super::{Metric, RankMetrics, SetMetrics};
use super::assert_close;
use crate::data::LabelId;

/// True labels, predicted labels, scores.
type Row = (&'static str, &'static str, &'static [f64]);

/// No set is empty and none is full, so that no convention is needed.
#[rustfmt::skip]
const PLAIN: &[Row] = &[
    ("0101100", "0110101", &[0.163, 0.648, 0.604, 0.392, 0.846, 0.367, 0.565]),
    ("0000101", "0011101", &[0.1, 0.1, 0.7, 0.7, 0.6, 0.4, 0.8]),
    ("1000000", "1010000", &[0.973, 0.008, 0.596, 0.107, 0.458, 0.304, 0.363]),
    ("0011001", "0001000", &[0.4, 0.5, 0.5, 0.6, 0.3, 0.5, 0.3]),
    ("1000000", "0011101", &[0.363, 0.509, 0.556, 0.634, 0.584, 0.44, 0.713]),
    ("1010001", "1000101", &[0.9, 0.2, 0.4, 0.4, 0.7, 0.0, 0.9]),
    ("1001101", "1010000", &[0.613, 0.001, 0.655, 0.483, 0.329, 0.026, 0.524]),
    ("0100001", "0000101", &[0.5, 0.4, 0.0, 0.1, 0.6, 0.5, 0.7]),
    ("0100001", "1000010", &[0.703, 0.325, 0.418, 0.073, 0.095, 0.7, 0.434]),
    ("0011101", "1010100", &[0.7, 0.1, 0.7, 0.4, 0.9, 0.1, 0.4]),
    ("0100000", "0100000", &[0.316, 0.742, 0.173, 0.301, 0.007, 0.133, 0.024]),
    ("0111000", "1000100", &[0.6, 0.3, 0.4, 0.5, 0.6, 0.1, 0.2]),
    ("0001001", "0000111", &[0.006, 0.459, 0.149, 0.412, 0.733, 0.591, 0.74]),
    ("0110000", "0110001", &[0.4, 0.9, 0.7, 0.1, 0.2, 0.4, 0.7]),
    ("0101001", "0011100", &[0.404, 0.274, 0.677, 0.658, 0.61, 0.16, 0.51]),
    ("1001011", "0001010", &[0.5, 0.4, 0.5, 1.0, 0.4, 0.8, 0.3]),
    ("0000011", "0000101", &[0.098, 0.258, 0.303, 0.42, 0.675, 0.304, 0.942]),
    ("0100100", "0110100", &[0.4, 0.9, 0.6, 0.2, 0.8, 0.1, 0.3]),
    ("0000001", "0101000", &[0.362, 0.693, 0.051, 0.675, 0.02, 0.526, 0.281]),
    ("1101110", "1000010", &[0.7, 0.4, 0.5, 0.5, 0.3, 0.9, 0.5]),
    ("0001001", "0010000", &[0.044, 0.177, 0.62, 0.392, 0.053, 0.003, 0.475]),
    ("0001001", "0001010", &[0.0, 0.5, 0.2, 0.9, 0.5, 0.7, 0.4]),
    ("0001000", "0010100", &[0.286, 0.12, 0.598, 0.445, 0.701, 0.291, 0.413]),
    ("1000001", "0000001", &[0.4, 0.1, 0.4, 0.1, 0.1, 0.4, 0.8]),
];

const PLAIN_FIGURES: &[(&str, f64)] = &[
    ("hamming_score", 0.6369047619047619),
    ("exact_match", 0.041666666666666664),
    ("jaccard", 0.33402777777777776),
    ("precision", 0.4930555555555555),
    ("recall", 0.46458333333333335),
    ("f1", 0.4464285714285714),
    ("micro_precision", 0.4642857142857143),
    ("micro_recall", 0.45614035087719296),
    ("micro_f1", 0.46017699115044247),
    ("macro_precision", 0.5035250463821892),
    ("macro_recall", 0.4975056689342403),
    ("macro_f1", 0.4654791741257907),
    ("ranking_loss", 0.31875),
    ("coverage", 4.541666666666667),
    ("average_precision", 0.6785780423280423),
    ("ndcg_at_5", 0.7611316862799414),
    ("precision_at_1", 0.6666666666666666),
    ("precision_at_3", 0.46064814814814814),
    ("precision_at_5", 0.425),
    ("one_error", 0.3333333333333333),
    ("label_cardinality", 2.3333333333333335),
    ("empty_share", 0.0),
];

/// Precision, recall, F1 and support of each label.
const PLAIN_LABELS: [[f64; 4]; 7] = [
    [0.5714285714285714, 0.5714285714285714, 0.5714285714285714, 7.0],
    [0.8, 0.4444444444444444, 0.5714285714285714, 9.0],
    [0.18181818181818182, 0.4, 0.25, 5.0],
    [0.5714285714285714, 0.3333333333333333, 0.42105263157894735, 12.0],
    [0.3333333333333333, 0.6666666666666666, 0.4444444444444444, 6.0],
    [0.4, 0.6666666666666666, 0.5, 3.0],
    [0.6666666666666666, 0.4, 0.5, 15.0],
];

/// Rows without true or predicted labels, with all but one label true, with equal scores throughout;
/// the last label is never true and never predicted.
#[rustfmt::skip]
const EDGES: &[Row] = &[
    ("0000000", "0000000", &[0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]),
    ("1111110", "0010010", &[0.2, 0.0, 0.6, 0.4, 0.0, 0.6, 0.0]),
    ("0000000", "0000000", &[0.559, 0.218, 0.677, 0.352, 0.654, 0.2, 0.456]),
    ("1010000", "0000000", &[0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]),
    ("1001010", "0000000", &[0.951, 0.099, 0.092, 0.472, 0.33, 0.99, 0.001]),
    ("1110010", "1001010", &[0.9, 0.3, 0.4, 0.6, 0.2, 0.9, 0.3]),
    ("0011010", "0011100", &[0.028, 0.287, 0.662, 0.914, 0.653, 0.511, 0.597]),
    ("0010010", "0010110", &[0.1, 0.3, 0.9, 0.3, 0.7, 0.6, 0.1]),
    ("1001000", "1001010", &[0.56, 0.351, 0.192, 0.801, 0.307, 0.721, 0.048]),
    ("1000000", "1011000", &[0.7, 0.0, 0.6, 0.6, 0.0, 0.4, 0.4]),
    ("1001000", "0001100", &[0.511, 0.534, 0.172, 0.682, 0.714, 0.533, 0.664]),
    ("1000010", "1000010", &[0.8, 0.4, 0.5, 0.0, 0.4, 1.0, 0.5]),
    ("0100000", "0000000", &[0.274, 0.395, 0.102, 0.444, 0.545, 0.178, 0.724]),
    ("1000000", "1010000", &[0.8, 0.2, 0.7, 0.5, 0.2, 0.3, 0.6]),
    ("0000000", "0101000", &[0.465, 0.737, 0.259, 0.613, 0.039, 0.316, 0.142]),
    ("0011000", "1000000", &[0.7, 0.5, 0.5, 0.3, 0.5, 0.3, 0.6]),
    ("0100010", "0010000", &[0.517, 0.423, 0.596, 0.147, 0.247, 0.279, 0.278]),
    ("0000000", "1010000", &[0.7, 0.1, 0.7, 0.3, 0.5, 0.0, 0.7]),
    ("0101100", "0001000", &[0.456, 0.517, 0.405, 0.725, 0.335, 0.533, 0.26]),
    ("0000010", "0100000", &[0.5, 0.7, 0.3, 0.3, 0.3, 0.4, 0.4]),
    ("0000010", "1001000", &[0.719, 0.433, 0.39, 0.554, 0.179, 0.457, 0.525]),
    ("1000000", "0000000", &[0.3, 0.0, 0.5, 0.3, 0.1, 0.1, 0.6]),
    ("0110000", "0110000", &[0.328, 0.897, 0.798, 0.342, 0.328, 0.36, 0.145]),
    ("0001110", "0001100", &[0.4, 0.1, 0.3, 0.8, 0.7, 0.4, 0.1]),
];

const EDGES_FIGURES: &[(&str, f64)] = &[
    ("hamming_score", 0.7559523809523809),
    ("exact_match", 0.16666666666666666),
    ("jaccard", 0.2805555555555555),
    ("precision", 0.375),
    ("recall", 0.375),
    ("f1", 0.34603174603174597),
    ("micro_precision", 0.5405405405405406),
    ("micro_recall", 0.45454545454545453),
    ("micro_f1", 0.49382716049382713),
    ("macro_precision", 0.43769841269841275),
    ("macro_recall", 0.3709183673469388),
    ("macro_f1", 0.38834200346805386),
    ("ranking_loss", 0.2569444444444444),
    ("coverage", 3.4583333333333335),
    ("average_precision", 0.7225281084656084),
    ("ndcg_at_5", 0.618579600407821),
    ("precision_at_1", 0.5119047619047619),
    ("precision_at_3", 0.398478835978836),
    ("precision_at_5", 0.32162698412698415),
    ("one_error", 0.4880952380952381),
    ("label_cardinality", 1.5416666666666667),
    ("empty_share", 0.25),
];

/// Precision, recall, F1 and support of each label.
const EDGES_LABELS: [[f64; 4]; 7] = [
    [0.625, 0.5, 0.5555555555555556, 10.0],
    [0.3333333333333333, 0.16666666666666666, 0.2222222222222222, 6.0],
    [0.5, 0.5714285714285714, 0.5333333333333333, 7.0],
    [0.5555555555555556, 0.625, 0.5882352941176471, 8.0],
    [0.25, 0.3333333333333333, 0.2857142857142857, 3.0],
    [0.8, 0.4, 0.5333333333333333, 10.0],
    [0.0, 0.0, 0.0, 0.0],
];

fn ids(bits: &str) -> Vec<LabelId> {
    (0..).zip(bits.chars()).filter(|(_, bit)| *bit == '1').map(|(id, _)| LabelId(id)).collect()
}

fn observed(rows: &[Row]) -> (SetMetrics, RankMetrics) {
    let (mut sets, mut ranks) = (SetMetrics::default(), RankMetrics::default());
    for (truth, predicted, scores) in rows {
        sets.observe(&ids(truth), &ids(predicted));
        ranks.observe(&ids(truth), scores);
    }
    (sets, ranks)
}

/// Checks `figures`, each plus what our conventions add to it.
fn check(rows: &[Row], figures: &[(&str, f64)], more: impl Fn(&str) -> f64) {
    let (sets, ranks) = observed(rows);
    for (name, figure) in figures {
        let metric: Metric = name.parse().unwrap();
        let value = sets.value(metric, Some(7)).or_else(|| ranks.value(metric));
        assert_close(value, figure + more(name), name);
    }
}

#[test]
fn figures_without_empty_sets() {
    // Their coverage counts places from 1.
    check(PLAIN, PLAIN_FIGURES, |name| if name == "coverage" { -1.0 } else { 0.0 });
}

#[test]
fn figures_with_empty_sets() {
    check(EDGES, EDGES_FIGURES, |name| match name {
        // Two rows of 24 are empty and predicted so: 1 here, 0 there.
        "jaccard" | "precision" | "recall" | "f1" => 2.0 / 24.0,
        // Four rows have no true label: 0 here and there.
        "coverage" => -20.0 / 24.0,
        _ => 0.0,
    });
}

#[test]
fn no_metric_is_left_out() {
    for figures in [PLAIN_FIGURES, EDGES_FIGURES] {
        let mut names: Vec<&str> = figures.iter().map(|figure| figure.0).collect();
        let mut all: Vec<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        names.sort_unstable();
        all.sort_unstable();
        assert_eq!(names, all);
    }
}

#[test]
fn figures_of_labels() {
    for (rows, figures) in [(PLAIN, PLAIN_LABELS), (EDGES, EDGES_LABELS)] {
        let report = observed(rows).0.label_report();
        for (label, [precision, recall, f1, support]) in (0..).zip(figures) {
            let Some(found) = report.iter().find(|outcome| outcome.label == LabelId(label)) else {
                assert_eq!([precision, recall, f1, support], [0.0; 4]);
                continue;
            };
            assert_close(Some(found.precision()), precision, label);
            assert_close(Some(found.recall()), recall, label);
            assert_close(Some(found.f1()), f1, label);
            assert_eq!(found.support() as f64, support);
        }
    }
}
