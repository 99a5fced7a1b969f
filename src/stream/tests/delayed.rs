//! Labels that come later.

use super::*;
use crate::error::ErrorKind;
use crate::stream::WhenFull;
use arrow::array::UInt64Array;
use arrow::datatypes::UInt64Type;

fn delayed(most: usize, when_full: WhenFull) -> Stage {
    stage(options(Mode::Delayed { key: "key".into(), most, when_full }))
}

/// Rows of (key, x, labels); a label row has no x.
fn rows(rows: &[(u64, Option<f64>, Option<&str>)]) -> RecordBatch {
    let keys = UInt64Array::from_iter_values(rows.iter().map(|r| r.0));
    let x: Float64Array = rows.iter().map(|r| r.1).collect();
    let labels = label_lists(rows.iter().map(|r| r.2.map(|l| vec![l.to_string()])));
    batch(vec![("key", Arc::new(keys)), ("x", Arc::new(x)), ("labels", labels)])
}

fn answers(batch: &RecordBatch) -> Vec<Option<Vec<String>>> {
    let lists = batch.column_by_name("predicted_labels").unwrap().as_list::<i32>();
    let names = named(lists);
    names.into_iter().enumerate().map(|(i, n)| lists.is_valid(i).then_some(n)).collect()
}

#[test]
fn labels_find_their_row_and_are_scored_against_the_answer_of_then() {
    let mut stage = delayed(100, WhenFull::DropOldest);
    // Questions, then their labels: nothing is known when the questions come.
    let out = stage.process(&rows(&[(1, Some(0.0), None), (2, Some(9.0), None)])).unwrap();
    assert_eq!(answers(&out), [Some(vec![]), Some(vec![])]);
    assert_eq!((stage.learned(), stage.waiting()), (0, (2, 0)));
    let out = stage.process(&rows(&[(2, None, Some("high")), (1, None, Some("low"))])).unwrap();
    assert_eq!(answers(&out), [Some(vec![]), Some(vec![])]);
    assert_eq!((stage.learned(), stage.waiting()), (2, (0, 0)));
    assert_eq!(stage.report().rows(), 2);
    // The same key in one batch: the label is learned before the next row is answered.
    let out = stage
        .process(&rows(&[
            (3, Some(0.5), None),
            (3, None, Some("low")),
            (4, Some(0.2), None),
            (9, None, Some("lost")),
        ]))
        .unwrap();
    let found = answers(&out);
    assert_eq!(found[0], found[1]);
    assert_eq!(found[2], Some(vec!["low".to_string()]));
    assert_eq!(found[3], None);
    let versions = out.column_by_name("model_version").unwrap().as_primitive::<UInt64Type>();
    assert_eq!((versions.value(0), versions.value(1), versions.value(2)), (2, 2, 3));
    assert_eq!((stage.counts().unmatched, stage.waiting()), (1, (1, 0)));
    assert_eq!(stage.learned(), 3);
}

#[test]
fn learning_late_is_learning() {
    let mut late = delayed(1000, WhenFull::DropOldest);
    let mut known = stage(options(Mode::TestThenTrain));
    let data: Vec<(u64, f64, &str)> =
        (0..300).map(|i| (i, (i % 7) as f64, ["a", "b", "c"][(i % 7 % 3) as usize])).collect();
    for part in data.chunks(50) {
        let asked: Vec<_> = part.iter().map(|r| (r.0, Some(r.1), None)).collect();
        late.process(&rows(&asked)).unwrap();
        let told: Vec<_> = part.iter().map(|r| (r.0, None, Some(r.2))).collect();
        late.process(&rows(&told)).unwrap();
        let whole: Vec<_> = part.iter().map(|r| (r.0, Some(r.1), Some(r.2))).collect();
        let with_x = rows(&whole).project(&[1, 2]).unwrap();
        known.process(&with_x).unwrap();
    }
    let bytes = |s: &Stage| crate::store::to_bytes(&s.model().unwrap()).unwrap();
    assert_eq!(bytes(&late), bytes(&known));
    assert_eq!(late.report().rows(), 300);
}

#[test]
fn the_store_is_bounded_and_says_what_it_gives_up() {
    let asked: Vec<_> = (0..10).map(|i| (i, Some(i as f64), None)).collect();
    let told: Vec<_> = (0..10).map(|i| (i, None, Some("x"))).collect();
    let mut oldest = delayed(4, WhenFull::DropOldest);
    oldest.process(&rows(&asked)).unwrap();
    assert_eq!(oldest.waiting(), (4, 6));
    let out = oldest.process(&rows(&told)).unwrap();
    let found: Vec<bool> = answers(&out).iter().map(Option::is_some).collect();
    assert_eq!(found, [[false; 6].as_slice(), &[true; 4]].concat());
    let mut newest = delayed(4, WhenFull::DropNewest);
    newest.process(&rows(&asked)).unwrap();
    let out = newest.process(&rows(&told)).unwrap();
    let found: Vec<bool> = answers(&out).iter().map(Option::is_some).collect();
    assert_eq!(found, [[true; 4].as_slice(), &[false; 6]].concat());
    assert_eq!(newest.waiting(), (0, 6));
    let mut stop = delayed(4, WhenFull::Stop);
    let error = stop.process(&rows(&asked)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(stop.waiting(), (0, 0));
    stop.process(&rows(&asked[..4])).unwrap();
    assert_eq!(stop.waiting(), (4, 0));
}

#[test]
fn a_row_asked_again_waits_once_and_memory_follows_what_waits() {
    let mut stage = delayed(1_000_000, WhenFull::DropOldest);
    for round in 0..200 {
        let asked: Vec<_> = (0..100).map(|i| (i, Some(f64::from(round)), None)).collect();
        stage.process(&rows(&asked)).unwrap();
    }
    assert_eq!(stage.waiting().0, 100);
    let pending = stage.pending.as_ref().unwrap();
    assert_eq!(pending.encode().unwrap().unwrap().num_rows(), 100);
    assert!(pending.stored().0 <= 100 + 100 + 8192, "{:?}", pending.stored());
    // The last question counts.
    let told: Vec<_> = (0..100).map(|i| (i, None, Some("x"))).collect();
    stage.process(&rows(&told)).unwrap();
    assert_eq!((stage.waiting().0, stage.learned()), (0, 100));
}

#[test]
fn a_row_without_key_is_named() {
    let keys: ArrayRef = Arc::new(UInt64Array::from(vec![Some(1), None]));
    let x: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0]));
    let labels = label_lists([None, None]);
    let mut stage = delayed(10, WhenFull::DropOldest);
    let error = stage.process(&batch(vec![("key", keys), ("x", x), ("labels", labels)]));
    assert!(error.unwrap_err().to_string().contains("row 1 has no key"));
}

#[test]
fn a_full_store_does_the_same_whatever_the_batches_are() {
    // Keys come again, labels come early, late and for rows that were given up.
    let mut dice = Dice(3);
    let mut told: Vec<(u64, Option<f64>, Option<&str>)> = Vec::new();
    for i in 0..600u64 {
        let key = (dice.uniform() * 40.0) as u64;
        match dice.uniform() < 0.55 {
            true => told.push((key, Some((i % 7) as f64), None)),
            false => told.push((key, None, Some(["a", "b", "c"][(i % 3) as usize]))),
        }
    }
    for when_full in [WhenFull::DropOldest, WhenFull::DropNewest] {
        let run = |size: usize| {
            let mut stage = delayed(9, when_full);
            let mut found = Vec::new();
            for part in told.chunks(size) {
                let out = stage.process(&rows(part)).unwrap();
                let versions = out.column_by_name("model_version").unwrap();
                let versions = versions.as_primitive::<UInt64Type>();
                found.extend(answers(&out).into_iter().zip(versions.iter()));
            }
            let counts = (stage.learned(), stage.waiting(), stage.counts().unmatched);
            (found, counts, stage.report_json())
        };
        let whole = run(600);
        assert!(whole.1.1.1 > 50 && whole.1.0 > 50 && whole.1.2 > 50, "{:?}", whole.1);
        for size in [1, 7] {
            assert_eq!(run(size), whole, "{when_full:?} {size}");
        }
    }
}

#[test]
fn scores_and_event_time_are_those_of_the_row_that_waited() {
    use crate::stream::{Forgetting, Span};
    let mode = Mode::Delayed { key: "key".into(), most: 10, when_full: WhenFull::DropOldest };
    let mut options = options(mode);
    options.time = Some("at".into());
    options.learning.scores = true;
    options.learning.update_every = Some(1);
    options.learning.forgetting = Forgetting::Decay { half_life: Span::Time(64) };
    let mut stage = stage(options);
    let rows = |told: &[(u64, Option<f64>, Option<&str>, i64)]| {
        let plain: Vec<_> = told.iter().map(|r| (r.0, r.1, r.2)).collect();
        let at: ArrayRef = Arc::new(Int64Array::from_iter_values(told.iter().map(|r| r.3)));
        let plain = rows(&plain);
        let columns =
            [("key", 0), ("x", 1), ("labels", 2)].map(|(n, i)| (n, plain.column(i).clone()));
        batch(columns.into_iter().chain([("at", at)]).collect())
    };
    stage.process(&rows(&[(1, Some(0.0), None, 0), (1, None, Some("low"), 0)])).unwrap();
    let asked = stage.process(&rows(&[(2, Some(1.0), None, 0), (3, Some(5.0), None, 64)])).unwrap();
    // Other labels are learned meanwhile; the labels of row 2 come late.
    stage.process(&rows(&[(3, None, Some("high"), 64)])).unwrap();
    let told = stage.process(&rows(&[(2, None, Some("low"), 999)])).unwrap();
    for column in ["predicted_labels", "label_scores", "model_version"] {
        let (then, now) =
            (asked.column_by_name(column).unwrap(), told.column_by_name(column).unwrap());
        assert_eq!(&then.slice(0, 1), now, "{column}");
    }
    // Rows 1 and 2 are one half-life older than row 3, whenever their labels came.
    let counts = stage.model().unwrap().insight(0).label_counts;
    assert_eq!(counts, [1.0, 1.0], "high, low: {counts:?}");
}

#[test]
fn many_small_batches_that_wait_are_copied_together() {
    let mut stage = delayed(100_000, WhenFull::DropOldest);
    for key in 0..2000 {
        stage.process(&rows(&[(key, Some(key as f64), None)])).unwrap();
    }
    let (kept, pieces) = stage.pending.as_ref().unwrap().stored();
    assert!(kept == 2000 && pieces <= 512, "{kept} rows in {pieces} pieces");
    let told: Vec<_> = (0..2000).map(|key| (key, None, Some("x"))).collect();
    stage.process(&rows(&told)).unwrap();
    assert_eq!((stage.learned(), stage.waiting()), (2000, (0, 0)));
}
