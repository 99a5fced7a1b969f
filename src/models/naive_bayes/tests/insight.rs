//! The features that tell most, against values computed by hand.

use super::*;
use std::collections::BTreeMap;

/// Both count features in the same way.
const SPECS: [&str; 2] = ["naibx", "br(base=naive_bayes)"];

/// The weights of all features that tell something about label `y`.
fn told(spec: &str, labels: &ArrayRef, features: &ArrayRef, y: usize) -> BTreeMap<String, f64> {
    learn(spec, labels, features).insight(100).telling[y].iter().cloned().collect()
}

#[track_caller]
fn assert_told(found: &BTreeMap<String, f64>, expected: &[(&str, f64)]) {
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (name, weight) in expected {
        let near = found.get(*name).is_some_and(|w| (w - weight).abs() < 1e-12);
        assert!(near, "{name} {weight}: {found:?}");
    }
}

/// The weight of a feature with these shares inside and outside.
fn root(inside: f64, outside: f64) -> f64 {
    2.0 * (inside.sqrt() - outside.sqrt())
}

fn flags(values: &[Option<bool>]) -> ArrayRef {
    Arc::new(values.iter().copied().collect::<BooleanArray>())
}

fn cities(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(values.iter().copied().collect::<StringArray>())
}

/// Label 0 is on odd rows, label 1 on even ones.
fn odd_and_even() -> ArrayRef {
    label_lists((0..8).map(|row| [1 - row % 2]))
}

#[test]
fn what_never_occurs_with_a_label_tells() {
    let even: Vec<Option<bool>> = (0..8).map(|row| Some(row % 2 == 0)).collect();
    let alike: Vec<Option<bool>> = (0..8).map(|row| Some(row % 4 < 2)).collect();
    let never = [Some(false); 8];
    let city = |row: usize| Some(if row.is_multiple_of(2) { "paris" } else { "oslo" });
    let places: Vec<Option<&str>> = (0..8).map(city).collect();
    let x = columns(vec![
        ("alike", flags(&alike)),
        ("city", cities(&places)),
        ("even", flags(&even)),
        ("never", flags(&never)),
    ]);
    // None of 4 rows inside, all of 4 outside, and one more row on each side that is half of it.
    let weight = root(0.1, 0.9);
    assert!((weight + 1.264_911_064_067_351_7).abs() < 1e-12);
    for spec in SPECS {
        let odd = told(spec, &odd_and_even(), &x, 0);
        assert_told(&odd, &[("even", weight), ("city=paris", weight), ("city=oslo", -weight)]);
        let even = told(spec, &odd_and_even(), &x, 1);
        assert_told(&even, &[("even", -weight), ("city=paris", -weight), ("city=oslo", weight)]);
    }
}

#[test]
fn tokens_that_never_occur_with_a_label_tell() {
    let word = |row: usize| if row.is_multiple_of(2) { "ant" } else { "bee" };
    let words = token_lists((0..8).map(|row| Some(vec![word(row), "cat"])));
    // Of 8 words inside none, of 8 outside 4; of all 16 a quarter.
    let weight = root(0.25 / 9.0, 4.25 / 9.0);
    for spec in SPECS {
        assert_told(&told(spec, &odd_and_even(), &words, 0), &[("ant", weight), ("bee", -weight)]);
    }
    // Strongest first, then in the order of features.
    let best = learn("naibx", &odd_and_even(), &words).insight(1).telling;
    assert_eq!((best[0][0].0.as_str(), best[0].len()), ("ant", 1));
    assert!(best[0][0].1 < 0.0 && best[1][0].1 > 0.0, "{best:?}");
}

#[test]
fn absence_never_speaks_for_a_label_of_one_row() {
    let words = token_lists((0..10).map(|row| {
        Some(match row {
            0 => vec!["ant"],
            1 => vec!["bee", "cat"],
            _ => vec!["bee"],
        })
    }));
    let labels = label_lists((0..10).map(|row| [usize::from(row > 0)]));
    for event in ["multinomial", "bernoulli"] {
        let found = told(&format!("naibx(event={event})"), &labels, &words, 0);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["ant", "bee", "cat"]);
        assert!(found["ant"] > 0.0 && found["bee"] < found["cat"] && found["cat"] < 0.0);
    }
}

#[test]
fn shares_are_of_the_rows_where_a_feature_is_known() {
    let labels = label_lists((0..8).map(|row| [usize::from(row >= 4)]));
    let (yes, no) = (Some(true), Some(false));
    let flag = flags(&[yes, yes, None, None, no, no, no, yes]);
    let (oslo, paris) = (Some("oslo"), Some("paris"));
    let city = cities(&[oslo, oslo, None, None, paris, paris, paris, oslo]);
    let x = columns(vec![("city", city), ("flag", flag)]);
    // Half of the six rows that are known have it: 2 of 2 inside, 1 of 4 outside.
    let (here, there) = (root(2.5 / 3.0, 1.5 / 5.0), root(0.5 / 3.0, 3.5 / 5.0));
    assert!((here - 0.730_296_743_340_221_5).abs() < 1e-12, "{here}");
    for spec in SPECS {
        assert_told(
            &told(spec, &labels, &x, 0),
            &[("flag", here), ("city=oslo", here), ("city=paris", there)],
        );
        assert_told(
            &told(spec, &labels, &x, 1),
            &[("flag", -here), ("city=oslo", -here), ("city=paris", -there)],
        );
    }
}

#[test]
fn nothing_tells_about_a_label_that_all_rows_have() {
    let labels = label_lists((0..40).map(|row| if row < 3 { vec![0, 1] } else { vec![0] }));
    for words in [Words::Tokens, Words::Flags, Words::Numbers] {
        let x = features(&random_rows(&mut Dice(5), 40, 3, 0.2, words), words);
        for spec in SPECS {
            let telling = learn(spec, &labels, &x).insight(100).telling;
            assert!(telling[0].is_empty(), "{spec} {words:?}: {:?}", telling[0]);
            assert!(!telling[1].is_empty(), "{spec} {words:?}");
        }
    }
}
