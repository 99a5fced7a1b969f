//! Values, columns and rows at the edge: huge, constant, missing, NULL, never seen.

use super::*;
use arrow::buffer::NullBuffer;

fn numbers(values: Vec<Option<f64>>) -> ArrayRef {
    columns(vec![("x", Arc::new(Float64Array::from(values)) as ArrayRef)])
}

fn some(values: &[f64]) -> Vec<Option<f64>> {
    values.iter().map(|v| Some(*v)).collect()
}

/// Labels 0 and 1 by turns, 2 on every row.
fn turns(len: usize) -> ArrayRef {
    label_lists((0..len).map(|i| [i % 2, 2]))
}

#[test]
fn huge_values_give_finite_scores() {
    let train_x = some(&[1e300, -1e300, 1e300, 1.0, 0.0, -1.0]);
    let test = numbers(some(&[1e300, -1e300, 1e-300, 0.0, f64::MAX, f64::MIN]));
    assert_sane(&learn("naibx", &turns(6), &numbers(train_x)), &test);
    let plain = learn("naibx", &turns(6), &numbers(some(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])));
    assert_sane(&plain, &test);
    let constant = learn("naibx", &turns(6), &numbers(some(&[1e300; 6])));
    assert_sane(&constant, &test);
}

#[test]
fn huge_counts_give_finite_scores() {
    let row = |a: f64, b: f64| Some(vec![("a", Some(a)), ("b", Some(b))]);
    let train_x = number_maps([row(1e300, 1.0), row(1.0, 2.0), row(1e300, 1e300), row(0.0, 1.0)]);
    let test = number_maps([row(1e300, 1e300), row(1e300, 0.0), row(0.0, 1.0)]);
    for event in ["multinomial", "bernoulli"] {
        assert_sane(&learn(&format!("naibx(event={event})"), &turns(4), &train_x), &test);
    }
}

#[test]
fn huge_values_of_a_map_give_finite_scores() {
    let row = |a: f64| Some(vec![("a", Some(a))]);
    let modest = number_maps([row(1.0), row(2.0), row(3.0), row(5.0)]);
    let huge = number_maps([row(1e300), row(2.0), row(-1e300), row(5.0), None, Some(vec![])]);
    let test = number_maps([row(1e300), row(-1e300), row(0.0), row(1.0), row(1e160)]);
    assert_sane(&learn("naibx", &turns(4), &modest), &test);
    assert_sane(&learn("naibx", &turns(6), &huge), &test);
    let seen_by_one = number_maps([row(1e300), Some(vec![]), row(-1e300), Some(vec![])]);
    assert_sane(&learn("naibx", &turns(4), &seen_by_one), &test);
}

#[test]
fn a_map_value_far_from_zero_tells_as_much_as_a_column() {
    // A number of 1e9 with a standard deviation of 100, as times have.
    let values: Vec<f64> = (0..20).map(|i| 1e9 + 100.0 * f64::from(i % 2) + f64::from(i)).collect();
    let maps = |v: &[f64]| number_maps(v.iter().map(|v| Some(vec![("x", Some(*v))])));
    let by_turns = label_lists((0..20).map(|i| [i % 2]));
    let column = learn("naibx", &by_turns, &numbers(some(&values)));
    let map = learn("naibx", &by_turns, &maps(&values));
    let test = [1e9 + 5.0, 1e9 + 110.0];
    let expected = predicted(&column, &numbers(some(&test)));
    assert_eq!(expected, [["l0"], ["l1"]]);
    assert_eq!(predicted(&map, &maps(&test)), expected);
}

#[test]
fn constant_and_missing_features_say_nothing() {
    let varied = some(&[0.0, 3.0, 0.5, 3.5, 0.2, 3.2]);
    let flags = |v: Option<bool>| Arc::new(BooleanArray::from(vec![v; 6])) as ArrayRef;
    let with = |constant: Option<f64>, flag: Option<bool>, city: Option<&str>, count: usize| {
        let more: Vec<(&str, ArrayRef)> = vec![
            ("x", Arc::new(Float64Array::from(varied.clone()))),
            ("c", Arc::new(Float64Array::from(vec![constant; 6]))),
            ("city", Arc::new(StringArray::from(vec![city; 6]))),
            ("flag", flags(flag)),
        ];
        columns(more.into_iter().take(count).collect())
    };
    let plain = with(None, None, None, 1);
    let expected = log_odds(&learn("naibx", &turns(6), &plain), &plain);
    for (constant, city) in [(None, None), (Some(0.1), None), (Some(1e300), Some("rome"))] {
        let all = with(constant, None, city, 4);
        let model = learn("naibx", &turns(6), &all);
        assert_sane(&model, &all);
        for (a, b) in log_odds(&model, &all).iter().flatten().zip(expected.iter().flatten()) {
            assert!((a - b).abs() < 1e-9, "{a} for {b}");
        }
        // Values where training had none say nothing either.
        let filled = with(Some(7.0), Some(true), Some("oslo"), 4);
        assert_sane(&model, &filled);
        if constant.is_none() {
            let found = log_odds(&model, &filled);
            for (a, b) in found.iter().flatten().zip(expected.iter().flatten()) {
                assert!((a - b).abs() < 1e-9, "{a} for {b}");
            }
        }
    }
}

#[test]
fn all_features_missing_leaves_the_prior() {
    let lists = label_lists([vec![0], vec![0], vec![0], vec![1]]);
    let nothing = numbers(vec![None; 4]);
    let odds = log_odds(&learn("naibx", &lists, &nothing), &nothing);
    // (N_y + s) / (N - N_y + s).
    assert!((odds[0][0] - (4.0f64 / 2.0).ln()).abs() < 1e-12);
    assert!((odds[0][1] - (2.0f64 / 4.0).ln()).abs() < 1e-12);
}

#[test]
fn always_on_single_and_absent_labels() {
    let x = numbers(some(&[1.0, 2.0, 3.0, 4.0]));
    for lists in [
        label_lists([[0], [0], [0], [0]]),
        label_lists([vec![0], vec![], vec![], vec![]]),
        label_lists([vec![0, 1, 2], vec![0, 1, 2], vec![0, 1, 2], vec![0, 1, 2]]),
        label_lists([vec![0], vec![0, 1], vec![0, 2], vec![0, 1, 2]]),
    ] {
        assert_sane(&learn("naibx", &lists, &x), &x);
    }
    let always = learn("naibx", &label_lists([vec![0], vec![0, 1], vec![0], vec![0, 1]]), &x);
    assert!(predicted(&always, &x).iter().all(|set| set.contains(&"l0".to_string())));
    let one = learn("naibx", &label_lists([[0]]), &numbers(some(&[1.0])));
    assert_sane(&one, &x);
    let none = learn("naibx", &label_lists(vec![Vec::<usize>::new(); 4]), &x);
    assert_eq!(predicted(&none, &x), vec![Vec::<String>::new(); 4]);
    assert_eq!(scored(&none, &x), vec![Vec::new(); 4]);
    let forced = learn("naibx(allow_empty=false)", &label_lists(vec![Vec::<usize>::new(); 4]), &x);
    assert_eq!(predicted(&forced, &x), vec![Vec::<String>::new(); 4]);
}

#[test]
fn zero_rows_are_scored_and_no_rows_are_no_model() {
    let x = numbers(some(&[1.0, 2.0]));
    let model = learn("naibx", &turns(2), &x);
    let empty = numbers(Vec::new());
    assert!(predicted(&model, &empty).is_empty() && scored(&model, &empty).is_empty());
    let mut trainer = Trainer::try_new(&Registry::default(), "naibx").unwrap();
    trainer.observe(&label_lists(Vec::<[usize; 0]>::new()), &empty).unwrap();
    assert!(trainer.finish().unwrap_err().to_string().contains("no labelled row"));
}

#[test]
fn null_tokens_and_maps_say_nothing() {
    let lists = label_lists([vec![0], vec![1], vec![0], vec![1], vec![0], vec![0]]);
    let words = token_lists([
        Some(vec!["a", "b"]),
        Some(vec!["b", "c"]),
        Some(vec!["a"]),
        Some(vec![]),
        None,
        None,
    ]);
    let maps = number_maps([
        Some(vec![("a", Some(1.0)), ("b", Some(2.0))]),
        Some(vec![("b", Some(3.0)), ("c", Some(1.5))]),
        Some(vec![("a", Some(0.5))]),
        Some(vec![]),
        None,
        None,
    ]);
    for (event, x) in [
        ("multinomial", &words),
        ("bernoulli", &words),
        ("gaussian", &maps),
        ("bernoulli", &maps),
        ("multinomial", &maps),
    ] {
        let model = learn(&format!("naibx(event={event})"), &lists, x);
        // A NULL row is scored by the prior alone: 4 rows have l0, 2 have l1.
        let odds = &log_odds(&model, x)[4];
        assert!((odds[0] - (5.0f64 / 3.0).ln()).abs() < 1e-12, "{event}: {odds:?}");
        assert!((odds[1] - (3.0f64 / 5.0).ln()).abs() < 1e-12, "{event}: {odds:?}");
        // And teaches nothing but the prior: the likelihood part is that of the first four rows.
        let short = learn(&format!("naibx(event={event})"), &lists.slice(0, 4), &x.slice(0, 4));
        let prior = [(5.0f64 / 3.0).ln(), (3.0f64 / 5.0).ln()];
        for (long, short) in log_odds(&model, x)[..4].iter().zip(log_odds(&short, x)) {
            for y in 0..2 {
                assert!(
                    (long[y] - prior[y] - short[y]).abs() < 1e-9,
                    "{event}: {long:?} {short:?}"
                );
            }
        }
    }
}

#[test]
fn entries_under_a_null_say_nothing() {
    // Arrow allows a NULL list to cover values; they are not there.
    let lists = label_lists([[0], [1], [0], [1]]);
    let full =
        token_lists([Some(vec!["a"]), Some(vec!["b"]), Some(vec!["a", "b"]), Some(vec!["z"])]);
    let full = full.as_list::<i32>();
    let nulls = Some(NullBuffer::from(vec![true, true, true, false]));
    let (field, offsets, values, _) = full.clone().into_parts();
    let covered: ArrayRef = Arc::new(ListArray::new(field, offsets, values, nulls));
    let clean = token_lists([Some(vec!["a"]), Some(vec!["b"]), Some(vec!["a", "b"]), None]);
    let (a, b) = (learn("naibx", &lists, &covered), learn("naibx", &lists, &clean));
    assert_eq!(a.space(), b.space());
    assert_eq!(state(&a), state(&b));
    assert_eq!(log_odds(&a, &covered), log_odds(&b, &clean));
}

#[test]
fn a_null_struct_covers_its_map() {
    let lists = label_lists([[0], [1], [0]]);
    let entries =
        |last| number_maps([Some(vec![("a", Some(1.0))]), Some(vec![("b", Some(2.0))]), last]);
    let wrap = |map: ArrayRef, nulls| {
        let field = Arc::new(Field::new("m", map.data_type().clone(), true));
        Arc::new(StructArray::new(vec![field].into(), vec![map], nulls)) as ArrayRef
    };
    let nulls = Some(NullBuffer::from(vec![true, true, false]));
    let covered = wrap(entries(Some(vec![("a", Some(9.0))])), nulls);
    let clean = wrap(entries(None), None);
    let (a, b) = (learn("naibx", &lists, &covered), learn("naibx", &lists, &clean));
    assert_eq!(state(&a), state(&b));
    assert_eq!(log_odds(&a, &covered), log_odds(&b, &clean));
}

#[test]
fn a_slice_teaches_what_a_copy_of_it_teaches() {
    let lists = label_lists([[0], [1], [0], [1]]);
    let rows = [Some(vec!["a"]), Some(vec!["b"]), Some(vec!["c"]), Some(vec!["d", "e"])];
    let (words, copy) = (token_lists(rows.clone()), token_lists(rows[..3].to_vec()));
    let slice = learn("naibx", &lists.slice(0, 3), &words.slice(0, 3));
    let copied = learn("naibx", &lists.slice(0, 3), &copy);
    let (found, expected) = (log_odds(&slice, &copy), log_odds(&copied, &copy));
    for (a, b) in found.iter().flatten().zip(expected.iter().flatten()) {
        assert!((a - b).abs() < 1e-12, "{a} for {b}");
    }
    assert_eq!(slice.space(), copied.space());
}

#[test]
fn one_null_of_two_token_columns_says_nothing() {
    let lists = label_lists([[0], [1], [0], [1]]);
    let body = token_lists([Some(vec!["a"]), Some(vec!["b"]), Some(vec!["a"]), Some(vec!["b"])]);
    let title = |last| token_lists([Some(vec!["s"]), Some(vec!["s"]), Some(vec!["s"]), last]);
    let two = |last| columns(vec![("body", Arc::clone(&body)), ("title", title(last))]);
    let spec = "naibx(event=bernoulli)";
    let model = learn(spec, &lists, &two(None));
    let alone = columns(vec![("body", Arc::clone(&body))]);
    let expected = log_odds(&learn(spec, &lists, &alone), &alone)[3][1];
    // It teaches nothing: `s` stands in the one title seen of l1 and in both of l0.
    let more = (2.0f64 / 3.0).ln() - (3.0f64 / 4.0).ln();
    let found = log_odds(&model, &two(Some(vec!["s"])))[3][1];
    assert!((found - expected - more).abs() < 1e-12, "{found} for {}", expected + more);
    // And says nothing when it is scored.
    let found = log_odds(&model, &two(None))[3][1];
    assert!((found - expected).abs() < 1e-12, "{found} for {expected}");
}

#[test]
fn a_group_that_never_observed_a_number_of_a_map_goes_by_all_rows() {
    // As for a column: a label whose rows all lack the value says what all rows say.
    let values = [Some(5.0), Some(6.0), Some(7.0), None];
    let lists = label_lists([[0], [0], [0], [1]]);
    let maps = number_maps(values.map(|v| Some(vec![("x", v)])));
    let column = numbers(values.to_vec());
    let found = log_odds(&learn("naibx", &lists, &maps), &maps);
    let expected = log_odds(&learn("naibx", &lists, &column), &column);
    for (a, b) in found.iter().flatten().zip(expected.iter().flatten()) {
        assert!((a - b).abs() < 1e-9, "{a} for {b}");
    }
}

#[test]
fn equal_numbers_outside_a_label_keep_their_own_variance() {
    // Rows without l0 all hold 1 or nothing; those with it vary.
    let row = |v: f64| Some(if v == 0.0 { vec![] } else { vec![("x", Some(v))] });
    let values = [4.0, 9.0, 2.0, 1.0, 1.0, 0.0, 0.0];
    let lists = label_lists([[0], [0], [0], [1], [1], [1], [1]]);
    let maps = number_maps(values.map(row));
    let found = log_odds(&learn("naibx", &lists, &maps), &maps);
    let column = numbers(some(&values));
    let expected = log_odds(&learn("naibx", &lists, &column), &column);
    for (a, b) in found.iter().flatten().zip(expected.iter().flatten()) {
        assert!((a - b).abs() < 1e-9, "{a} for {b}");
    }
}

#[test]
fn unknown_words_and_cities_are_passed_over() {
    let rows = random_rows(&mut Dice(21), 20, 3, 0.0, Words::Tokens);
    let model = train("naibx", &rows, Words::Tokens);
    let one = features(&rows[..1], Words::Tokens);
    let with = |words: Vec<&str>, city: Option<&str>| {
        let one = one.as_struct();
        columns(vec![
            ("x0", Arc::clone(one.column(0))),
            ("x1", Arc::clone(one.column(4))),
            ("flag", Arc::clone(one.column(3))),
            ("city", Arc::new(StringArray::from(vec![city]))),
            ("words", token_lists([Some(words)])),
        ])
    };
    let known = log_odds(&model, &with(vec!["ant"], None));
    assert_eq!(log_odds(&model, &with(vec!["yak", "ant", "yak"], Some("atlantis"))), known);
}

#[test]
fn a_forgotten_label_is_gone() {
    let x = |v: &[f64]| numbers(some(v));
    let lists = label_lists([[0], [1], [0], [1]]);
    let kept = learn("naibx", &lists, &x(&[1.0, 2.0, 1.5, 2.5]));
    let other = learn("naibx", &label_lists([[2], [0], [1]]), &x(&[9.0, 1.2, 2.2]));
    let mut trainer = kept.reopen().unwrap();
    trainer.merge(&other).unwrap();
    trainer.forget(&other).unwrap();
    let restored = trainer.finish().unwrap();
    let test = x(&[1.0, 2.0, 9.0, -9.0]);
    assert_eq!(predicted(&restored, &test), predicted(&kept, &test));
    assert_eq!(restored.space().labels, kept.space().labels);
}

#[test]
fn a_refused_batch_leaves_no_label_behind() {
    let mut trainer = Trainer::try_new(&Registry::default(), "naibx(max_labels=2)").unwrap();
    let x = numbers(some(&[1.0, 2.0, 3.0]));
    assert!(trainer.observe(&label_lists([[0], [1], [2]]), &x).is_err());
    trainer.observe(&label_lists([[0], [0], [0]]), &x).unwrap();
    assert_eq!(trainer.finish().unwrap().space().labels.len(), 1);
}
