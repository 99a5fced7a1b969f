//! Weights against an independent solution: the same objectives minimised with SciPy (BFGS, then
//! L-BFGS-B, gradients below 1e-7), the numbers copied here.

use super::*;

const ROWS: usize = 60;

fn x(r: usize, d: usize) -> f64 {
    ((r * (7 + 3 * d) + d * d) % 17) as f64 / 4.0 - 2.0
}

fn s(r: usize, d: usize) -> f64 {
    if (r + d).is_multiple_of(3) { ((r * (5 + d) + 3 * d) % 4) as f64 } else { 0.0 }
}

fn blur(r: usize) -> f64 {
    ((r * 11 % 7) as f64 - 3.0) / 2.0
}

/// Labels `a` and `b` of row `r`.
fn labels_of(r: usize) -> Vec<&'static str> {
    let a = x(r, 0) - 0.5 * x(r, 1) + blur(r) > 0.0;
    let b = x(r, 2) + 0.7 * s(r, 0) - s(r, 1) + blur(r) > 0.5;
    [(a, "a"), (b, "b")].into_iter().filter(|l| l.0).map(|l| l.1).collect()
}

/// Dense columns and a map.
fn features(dense: &[Vec<f64>], sparse: &[Vec<f64>]) -> ArrayRef {
    let columns = numbers(dense);
    let columns = columns.as_any().downcast_ref::<StructArray>().unwrap();
    let mut named: Vec<(&str, ArrayRef)> =
        columns.column_names().into_iter().zip(columns.columns().to_vec()).collect();
    named.push(("s", maps(sparse)));
    Arc::new(StructArray::try_from(named).unwrap())
}

fn example(repeat: impl Fn(usize) -> usize) -> (ArrayRef, ArrayRef) {
    let rows: Vec<usize> = (0..ROWS).flat_map(|r| std::iter::repeat_n(r, repeat(r))).collect();
    let dense: Vec<Vec<f64>> = (0..3).map(|d| rows.iter().map(|&r| x(r, d)).collect()).collect();
    let sparse: Vec<Vec<f64>> = rows.iter().map(|&r| (0..4).map(|d| s(r, d)).collect()).collect();
    (label_lists(rows.iter().map(|&r| labels_of(r))), features(&dense, &sparse))
}

/// Weights of the raw features and the intercept of each label: scores of unit rows less that of 0.
fn weights(model: &Model) -> Vec<Vec<f64>> {
    let unit = |i: usize, d: usize| f64::from(u8::from(i == d));
    // Rows 0 to 6 are unit vectors, row 7 is zero.
    let dense: Vec<Vec<f64>> = (0..3).map(|d| (0..8).map(|i| unit(i, d)).collect()).collect();
    let sparse: Vec<Vec<f64>> = (0..8).map(|i| (0..4).map(|d| unit(i, d + 3)).collect()).collect();
    let scores = log_odds(model, &features(&dense, &sparse));
    let labels = model.space().labels.len();
    let at = |row: usize, y: usize| scores[row * labels + y];
    let of = |y: usize| (0..7).map(|i| at(i, y) - at(7, y)).chain([at(7, y)]).collect();
    (0..labels).map(of).collect()
}

fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() < 1e-4, "{found:?} and {expected:?}");
    }
}

const LOGISTIC_A: [f64; 8] = [
    1.799469173,
    -0.831116528,
    -0.075202917,
    -0.865290247,
    0.308588339,
    0.346883453,
    1.101208472,
    -0.442267686,
];
const LOGISTIC_B: [f64; 8] = [
    0.754965528,
    0.216755562,
    3.078967802,
    0.662294189,
    -2.499820077,
    -0.044188047,
    3.363644549,
    -3.665502974,
];

#[test]
fn logistic_weights_are_those_of_an_independent_solver() {
    let (labels, features) = example(|_| 1);
    let found = weights(&train("br", &labels, &features));
    close(&found[0], &LOGISTIC_A);
    close(&found[1], &LOGISTIC_B);
}

#[test]
fn svm_weights_are_those_of_an_independent_solver() {
    let (labels, features) = example(|_| 1);
    let found = weights(&train("br(base=svm(calibrate=none))", &labels, &features));
    close(
        &found[0],
        &[
            0.583488492,
            -0.252244794,
            -0.032179604,
            -0.303079983,
            0.147177144,
            0.179443654,
            0.546404928,
            -0.297051821,
        ],
    );
    close(
        &found[1],
        &[
            0.186624034,
            -0.055218755,
            1.465236218,
            0.214853246,
            -1.210058282,
            -0.014882728,
            1.768650832,
            -1.655899662,
        ],
    );
}

#[test]
fn a_row_three_times_has_three_times_the_weight() {
    let (labels, features) = example(|r| if r.is_multiple_of(5) { 3 } else { 1 });
    let found = weights(&train("br", &labels, &features));
    close(
        &found[0],
        &[
            1.887874215,
            -1.327439636,
            0.204803777,
            -0.539201018,
            0.321977605,
            0.510740199,
            0.475923197,
            0.014038877,
        ],
    );
}

#[test]
fn standardised_weights_are_those_of_an_independent_solver() {
    let dense: Vec<Vec<f64>> = (0..3).map(|d| (0..ROWS).map(|r| x(r, d)).collect()).collect();
    let labels = label_lists((0..ROWS).map(labels_of));
    let model = train("br(prepare=standard)", &labels, &numbers(&dense));
    let unit = |i: usize, d: usize| f64::from(u8::from(i == d));
    let rows: Vec<Vec<f64>> = (0..3).map(|d| (0..4).map(|i| unit(i, d)).collect()).collect();
    let scores = log_odds(&model, &numbers(&rows));
    let found: Vec<f64> = (0..3).map(|i| scores[2 * i] - scores[6]).chain([scores[6]]).collect();
    close(&found, &[1.934867934, -0.889425100, -0.068957854, -0.049726842]);
}

#[test]
fn a_chain_learns_its_parents_like_features() {
    let (labels, features) = example(|_| 1);
    let model = train("cc(order=given(a, b))", &labels, &features);
    // The first label has no parents: it is that of binary relevance.
    let expected = [
        0.368449055,
        0.462763441,
        2.814102431,
        0.666049573,
        -2.338438038,
        -0.062825019,
        3.196029657,
        -4.280918409,
    ];
    let parent = 1.791498497;
    let scores = log_odds(&model, &features);
    for r in 0..ROWS {
        let columns: Vec<f64> =
            (0..3).map(|d| x(r, d)).chain((0..4).map(|d| s(r, d))).chain([1.0]).collect();
        let dot = |w: &[f64]| columns.iter().zip(w).map(|(x, w)| x * w).sum::<f64>();
        assert!((scores[2 * r] - dot(&LOGISTIC_A)).abs() < 1e-3, "row {r}");
        let shift = if scores[2 * r] >= 0.0 { parent } else { 0.0 };
        assert!((scores[2 * r + 1] - dot(&expected) - shift).abs() < 1e-3, "row {r}");
    }
}
