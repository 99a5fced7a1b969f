//! Forgetting against learning anew from what should be left.

use super::*;
use crate::error::ErrorKind;
use crate::models::Trainer;
use crate::store::to_bytes;
use crate::stream::{Forgetting, Span};

fn forgetting(forgetting: Forgetting) -> OnlineOptions {
    OnlineOptions { forgetting, ..OnlineOptions::default() }
}

/// Rows that all have labels.
fn labelled(seed: u64, rows: usize) -> Table {
    let table = numbers(seed, rows, 6, 0.0);
    let names = |row: usize| vec![format!("l{}", row % 3), format!("l{}", row % 2)];
    let sets = (0..rows).map(|row| Some(names(row)));
    Table { labels: label_lists(sets), features: table.features }
}

/// The answer of a model of rows `from..to` to row `to`.
fn model_of(table: &Table, from: usize, to: usize) -> Vec<String> {
    let mut trainer = Trainer::try_new(&Registry::default(), "naibx").unwrap();
    for row in from..to {
        let one = table.slice(row, 1);
        trainer.observe(&one.labels, &one.features).unwrap();
    }
    match trainer.finish() {
        Ok(model) => named(&model.predict(&table.slice(to, 1).features).unwrap()).remove(0),
        Err(_) => Vec::new(),
    }
}

#[test]
fn a_window_knows_its_rows_and_no_others() {
    let table = labelled(1, 400);
    for (length, step) in [(20, 1), (33, 1), (96, 3), (100, 3)] {
        let options = forgetting(Forgetting::Window { length: Span::Rows(length) });
        let answers = table.answers("naibx", options, 37);
        for (row, answer) in answers.iter().enumerate() {
            // Before row r is learned, the block of row r - 1 is open.
            let open = row.saturating_sub(1) / step;
            let from = (open + 1).saturating_sub(length as usize / step) * step;
            assert_eq!(*answer, model_of(&table, from, row), "window {length}, row {row}");
        }
        assert_eq!(answers, table.answers("naibx", options, 1));
    }
}

#[test]
fn a_window_never_knows_more_rows_than_it_says() {
    let table = labelled(6, 300);
    for length in [1, 2, 31, 33, 63, 65, 100] {
        let options = forgetting(Forgetting::Window { length: Span::Rows(length) });
        let mut learner = OnlineLearner::try_new(&Registry::default(), "naibx", options).unwrap();
        let mut most = 0;
        for row in 0..300 {
            let one = table.slice(row, 1);
            learner.learn(&one.labels, &one.features, None).unwrap();
            most = most.max(learner.model().unwrap().rows());
        }
        let step = (length / 32).max(1);
        assert_eq!(most, length / step * step, "window {length}");
    }
    assert_eq!(Forgetting::Window { length: Span::Rows(9999) }.step(), 312);
}

#[test]
fn an_algorithm_that_is_fitted_anew_answers_from_its_window_alone() {
    // Each row has a label of its own: an answer tells from which rows it comes.
    let sets = (0..300).map(|i| Some(vec![format!("row{i:03}")]));
    let x: ArrayRef = Arc::new(Float64Array::from_iter_values((0..300).map(f64::from)));
    let table = Table { labels: label_lists(sets), features: columns(vec![("x".into(), x)]) };
    for (length, step) in [(5, 1), (64, 2), (100, 3)] {
        let options = forgetting(Forgetting::Window { length: Span::Rows(length) });
        for (row, answer) in table.answers("brknn_a(k=1)", options, 41).iter().enumerate() {
            assert_eq!(answer.len(), row.min(1), "{length}: row {row}");
            for name in answer {
                // The nearest row is the last that is known.
                let from: usize = name[3..].parse().unwrap();
                assert!(from < row && row - from <= step, "{length}: row {row} answers {from}");
            }
        }
        let (_, learner) = table.run("brknn_a(k=1)", options, 41, None);
        assert_eq!(learner.update_every(), Some(step as u64));
    }
    // Labels are as far as can be told: all rows in the window are neighbours.
    for length in [5, 64, 100] {
        let options = forgetting(Forgetting::Window { length: Span::Rows(length) });
        let answers = table.answers("brknn_b(k=300)", options, 41);
        for (row, answer) in answers.iter().enumerate() {
            for name in answer {
                let from: u64 = name[3..].parse().unwrap();
                assert!(row as u64 - from <= length, "{length}: row {row} knows {from}");
            }
        }
    }
}

#[test]
fn an_outlier_that_leaves_a_window_leaves_no_trace() {
    let clean = labelled(2, 300);
    let mut x: Vec<f64> = (0..300).map(|i| f64::from(i % 7)).collect();
    let with = |x: Vec<f64>| {
        let mut all = vec![("x".to_string(), Arc::new(Float64Array::from(x)) as ArrayRef)];
        all.push(("f2".into(), Arc::clone(clean.features.as_struct().column(2))));
        Table { labels: Arc::clone(&clean.labels), features: columns(all) }
    };
    let options = forgetting(Forgetting::Window { length: Span::Rows(64) });
    let (_, calm) = with(x.clone()).run("naibx", options, 50, None);
    x[100] = 1e10;
    let (_, wild) = with(x).run("naibx", options, 50, None);
    assert_eq!(wild.model().unwrap().rows(), calm.model().unwrap().rows());
    assert_eq!(
        to_bytes(&wild.model().unwrap()).unwrap(),
        to_bytes(&calm.model().unwrap()).unwrap()
    );
}

#[test]
fn a_window_of_time_keeps_what_is_recent() {
    let table = labelled(3, 100);
    // Ten rows at each time, then a long pause.
    let times = Int64Array::from_iter_values(
        (0..100).map(|i| i / 10 * 100 + if i >= 90 { 100_000 } else { 0 }),
    );
    let options = forgetting(Forgetting::Window { length: Span::Time(320) });
    let (_, learner) = table.run("naibx", options, 9, Some(&times));
    assert_eq!(learner.model().unwrap().rows(), 10);
    let (_, learner) = table.slice(0, 90).run("naibx", options, 9, Some(&times.slice(0, 90)));
    // Times 500, 600, 700 and 800: a block is 10 long and the window reaches back to 490.
    assert_eq!(learner.model().unwrap().rows(), 40);
}

#[test]
fn weights_halve_with_every_half_life() {
    let rows = 256;
    let sets = (0..rows).map(|i| Some(vec![if i < 128 { "old" } else { "new" }.to_string()]));
    let x: ArrayRef = Arc::new(Float64Array::from_iter_values((0..rows).map(|i| (i % 5) as f64)));
    let table = Table { labels: label_lists(sets), features: columns(vec![("x".into(), x)]) };
    let options = forgetting(Forgetting::Decay { half_life: Span::Rows(64) });
    let (_, learner) = table.run("naibx", options, 100, None);
    let counts = learner.model().unwrap().insight(0).label_counts;
    let weight = |range: std::ops::Range<i32>| -> f64 {
        range.map(|i| (-f64::from(255 - i) / 64.0).exp2()).sum()
    };
    // Labels in name order: new, old.
    assert!((counts[0] - weight(128..256)).abs() < 1e-9, "{counts:?}");
    assert!((counts[1] - weight(0..128)).abs() < 1e-9, "{counts:?}");
}

#[test]
fn decay_by_time_does_not_depend_on_the_order_of_rows() {
    let table = labelled(4, 60);
    let times: Vec<i64> = (0..60).map(|i| i * 17).collect();
    let options = forgetting(Forgetting::Decay { half_life: Span::Time(640) });
    let (_, in_time) = table.run("naibx", options, 7, Some(&Int64Array::from(times.clone())));
    // Every other row comes late.
    let order: Vec<u32> = (0..60).step_by(2).chain((1..60).step_by(2)).collect();
    let take = |a: &ArrayRef| {
        arrow::compute::take(a, &arrow::array::UInt32Array::from(order.clone()), None).unwrap()
    };
    let late = Table { labels: take(&table.labels), features: take(&table.features) };
    let late_times = Int64Array::from_iter_values(order.iter().map(|&i| times[i as usize]));
    let (_, late) = late.run("naibx", options, 7, Some(&late_times));
    let (a, b) = (in_time.model().unwrap().insight(0), late.model().unwrap().insight(0));
    for (a, b) in a.label_counts.iter().zip(&b.label_counts) {
        assert!((a - b).abs() < 1e-9 * a.abs(), "{a} {b}");
    }
}

#[test]
fn merged_learners_agree_on_the_later_time() {
    let table = labelled(5, 80);
    let times = Int64Array::from_iter_values((0..80).map(|i| i * 10));
    let options = forgetting(Forgetting::Decay { half_life: Span::Time(640) });
    let (_, whole) = table.run("naibx", options, 80, Some(&times));
    let (_, mut first) = table.slice(0, 50).run("naibx", options, 80, Some(&times.slice(0, 50)));
    let (_, mut second) = table.slice(50, 30).run("naibx", options, 80, Some(&times.slice(50, 30)));
    let counts = |l: &OnlineLearner| l.model().unwrap().insight(0).label_counts;
    let (_, early) = table.slice(0, 50).run("naibx", options, 80, Some(&times.slice(0, 50)));
    first.merge(&second).unwrap();
    second.merge(&early).unwrap();
    for merged in [first, second] {
        for (a, b) in counts(&merged).iter().zip(&counts(&whole)) {
            assert!((a - b).abs() < 1e-9 * b.abs(), "{a} {b}");
        }
    }
    let by_row = forgetting(Forgetting::Decay { half_life: Span::Rows(10) });
    let (_, mut a) = table.run("naibx", by_row, 80, None);
    let (_, b) = table.run("naibx", by_row, 80, None);
    let error = a.merge(&b).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible);
}

#[test]
fn labels_that_are_not_seen_for_long_are_dropped() {
    let sets = (0..100).map(|i| Some(vec![if i < 10 { "gone" } else { "here" }.to_string()]));
    let x: ArrayRef = Arc::new(Float64Array::from_iter_values((0..100).map(|i| f64::from(i % 3))));
    let table = Table { labels: label_lists(sets), features: columns(vec![("x".into(), x)]) };
    let options = OnlineOptions { drop_after: Some(40), ..OnlineOptions::default() };
    for spec in ["naibx", "brknn(k=1)", "mlknn(k=2)", "brknn(k=1, keep=last(95))", "br"] {
        let (_, learner) = table.slice(0, 45).run(spec, options, 7, None);
        assert_eq!(learner.model().unwrap().space().labels.len(), 2, "{spec}");
        let (_, learner) = table.run(spec, options, 7, None);
        let model = learner.model().unwrap();
        assert_eq!(model.space().labels.names().collect::<Vec<_>>(), ["here"], "{spec}");
        // A label that comes again is learned again.
        let mut again = learner;
        again.learn(&table.slice(0, 5).labels, &table.slice(0, 5).features, None).unwrap();
        assert_eq!(again.model().unwrap().space().labels.len(), 2, "{spec}");
    }
}

#[test]
fn rows_without_a_dropped_label_are_rows_that_never_had_it() {
    // Two labels at each place, one of which is not seen again: its rows stay, without it.
    let set = |i: usize| {
        if i < 30 { vec!["gone".to_string(), "here".into()] } else { vec!["here".into()] }
    };
    let x: ArrayRef = Arc::new(Float64Array::from_iter_values((0..100).map(|i| f64::from(i % 3))));
    let features = columns(vec![("x".into(), x)]);
    let table = Table { labels: label_lists((0..100).map(|i| Some(set(i)))), features };
    let never = Table {
        labels: label_lists((0..100).map(|_| Some(vec!["here".to_string()]))),
        features: Arc::clone(&table.features),
    };
    for spec in ["mlknn(k=3)", "brknn(k=1, keep=sample(9))"] {
        for forgetting in [Forgetting::Never, Forgetting::Window { length: Span::Rows(99) }] {
            let options =
                OnlineOptions { drop_after: Some(40), forgetting, ..OnlineOptions::default() };
            let bytes = |table: &Table| {
                let model = table.run(spec, options, 7, None).1.model().unwrap();
                to_bytes(&model).unwrap()
            };
            assert!(bytes(&table) == bytes(&never), "{spec} {forgetting:?}");
        }
    }
}

#[test]
fn the_last_rows_have_flat_memory_while_names_are_new_for_ever() {
    let names = |i: usize| Some(vec![format!("label{i}")]);
    let words = |i: usize| Some((0..5).map(|w| format!("word{i}x{w}")).collect());
    let options = OnlineOptions { update_every: Some(10_000), ..OnlineOptions::default() };
    for spec in ["brknn(k=1, keep=last(200))", "mlknn(k=1, keep=sample(200))"] {
        let mut learner = OnlineLearner::try_new(&Registry::default(), spec, options).unwrap();
        let mut sizes = Vec::new();
        for start in (0..24_000).step_by(100) {
            let labels = label_lists((start..start + 100).map(names));
            let tokens = label_lists((start..start + 100).map(words));
            learner.learn(&labels, &columns(vec![("t".into(), tokens)]), None).unwrap();
            sizes.push(learner.heap_size());
        }
        // As much after the last half of the rows as before it.
        let (early, late) = sizes.split_at(120);
        let most = |sizes: &[usize]| sizes.iter().max().copied().unwrap_or(0);
        assert!(most(late) <= most(early) + most(early) / 10, "{spec}: {sizes:?}");
    }
}

#[test]
fn the_last_rows_and_a_window_are_two_ways_to_forget() {
    let options = forgetting(Forgetting::Window { length: Span::Rows(10) });
    let error = OnlineLearner::try_new(&Registry::default(), "brknn(keep=last(9))", options);
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("a window would do so too: use one of them"), "{error}");
}

#[test]
fn names_that_left_a_window_give_their_memory_back() {
    let sets = (0..20_000).map(|i| Some(vec![format!("label{}", i / 10)]));
    let x: ArrayRef =
        Arc::new(Float64Array::from_iter_values((0..20_000).map(|i| f64::from(i % 3))));
    let table = Table { labels: label_lists(sets), features: columns(vec![("x".into(), x)]) };
    let options = OnlineOptions {
        forgetting: Forgetting::Window { length: Span::Rows(320) },
        update_every: Some(5000),
        ..OnlineOptions::default()
    };
    let (_, learner) = table.run("naibx", options, 100, None);
    assert!(learner.trainer.space().labels.len() < 5000);
    assert_eq!(learner.model().unwrap().space().labels.len(), 32);
}

#[test]
fn labels_of_the_model_it_starts_with_are_dropped_too() {
    let sets = (0..100).map(|i| Some(vec![if i < 10 { "gone" } else { "here" }.to_string()]));
    let x: ArrayRef = Arc::new(Float64Array::from_iter_values((0..100).map(|i| f64::from(i % 3))));
    let table = Table { labels: label_lists(sets), features: columns(vec![("x".into(), x)]) };
    let mut trainer = Trainer::try_new(&Registry::default(), "naibx").unwrap();
    let start = table.slice(0, 20);
    trainer.observe(&start.labels, &start.features).unwrap();
    let options = OnlineOptions { drop_after: Some(40), ..OnlineOptions::default() };
    let mut learner = OnlineLearner::from_model(&trainer.finish().unwrap(), options).unwrap();
    for (from, labels) in [(20, 2), (60, 1)] {
        let part = table.slice(from, 40);
        learner.learn(&part.labels, &part.features, None).unwrap();
        let known = learner.model().unwrap().space().labels.len();
        assert!(known <= labels.max(1), "{known} labels after row {}", from + 40);
    }
    assert_eq!(learner.model().unwrap().space().labels.names().collect::<Vec<_>>(), ["here"]);
}

#[test]
fn a_learner_that_forgets_by_time_predicts_without_times() {
    let table = labelled(6, 60);
    let times = Int64Array::from_iter_values(0..60);
    let options = forgetting(Forgetting::Decay { half_life: Span::Time(640) });
    let (_, mut learner) = table.run("naibx", options, 60, Some(&times));
    let found = learner.predict(&table.slice(0, 5).features).unwrap();
    assert_eq!(named(&found.predicted).len(), 5);
    let one = table.slice(0, 1);
    let error = learner.learn_and_predict(&one.labels, &one.features, None).unwrap_err();
    assert!(error.to_string().contains("event time"), "{error}");
    assert_eq!(learner.learned(), 60);
}

#[test]
fn saved_models_know_how_they_forgot() {
    let registry = Registry::default();
    let table = labelled(5, 80);
    let times = Int64Array::from_iter_values((0..80).map(|i| i * 10));
    let saved = |options: OnlineOptions, from: usize, len: usize| {
        let part = table.slice(from, len);
        let (_, learner) = part.run("naibx", options, 80, Some(&times.slice(from, len)));
        let bytes = to_bytes(&learner.model().unwrap()).unwrap();
        crate::store::from_bytes(&bytes, &registry).unwrap()
    };
    let by_time = forgetting(Forgetting::Decay { half_life: Span::Time(640) });
    let counts = |t: &Trainer| t.finish().unwrap().insight(0).label_counts;
    let whole = saved(by_time, 0, 80).insight(0).label_counts;
    let (early, late) = (saved(by_time, 0, 50), saved(by_time, 50, 30));
    for (first, second) in [(&early, &late), (&late, &early)] {
        let mut merged = first.reopen().unwrap();
        merged.merge(second).unwrap();
        for (a, b) in counts(&merged).iter().zip(&whole) {
            assert!((a - b).abs() < 1e-9 * b, "{a} {b}");
        }
        assert_eq!(merged.finish().unwrap().decay(), saved(by_time, 0, 80).decay());
        // And what was added can be taken away again.
        merged.forget(second).unwrap();
        assert_eq!(merged.rows(), first.rows());
    }
    let by_row = saved(forgetting(Forgetting::Decay { half_life: Span::Rows(10) }), 0, 50);
    let other = saved(forgetting(Forgetting::Decay { half_life: Span::Time(64) }), 0, 50);
    let never = saved(OnlineOptions::default(), 0, 50);
    assert_eq!(never.decay(), None);
    for (a, b) in [(&by_row, &by_row), (&by_row, &never), (&early, &never), (&early, &other)] {
        for (a, b) in [(a, b), (b, a)] {
            let mut trainer = a.reopen().unwrap();
            let before = counts(&trainer);
            assert_eq!(trainer.merge(b).unwrap_err().kind(), ErrorKind::Incompatible);
            assert_eq!(counts(&trainer), before);
        }
    }
    // Going on with the same half-life goes on from the same time; with another way, only here.
    let going_on = OnlineLearner::from_model(&early, by_time).unwrap();
    assert_eq!(going_on.model().unwrap().decay(), early.decay());
    let otherwise = OnlineLearner::from_model(&early, OnlineOptions::default()).unwrap();
    assert_eq!(otherwise.model().unwrap().decay(), Some(crate::models::Decay::Stream));
}
