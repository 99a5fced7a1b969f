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
    assert!(pending.stored_rows() <= 100 + 100 + 8192, "{}", pending.stored_rows());
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
