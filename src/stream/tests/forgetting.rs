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
    let (_, learner) = table.slice(0, 45).run("naibx", options, 7, None);
    assert_eq!(learner.model().unwrap().space().labels.len(), 2);
    let (_, learner) = table.run("naibx", options, 7, None);
    let model = learner.model().unwrap();
    assert_eq!(model.space().labels.names().collect::<Vec<_>>(), ["here"]);
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
