//! Columns, modes, refusals and swaps of a stage.

use super::*;
use crate::metrics::Metric;
use crate::stream::{Forgetting, OnError, RunningReport, Span};
use arrow::compute::concat_batches;

fn value(values: &[(Metric, f64)], metric: Metric) -> f64 {
    values.iter().find(|v| v.0 == metric).unwrap().1
}

#[test]
fn columns_are_added_and_rows_keep_their_order() {
    let batches = generated(500, 64, false);
    let mut stage = stage(options(Mode::TestThenTrain));
    let out: Vec<RecordBatch> = batches.iter().map(|b| stage.process(b).unwrap()).collect();
    let whole = concat_batches(&batches[0].schema(), &batches).unwrap();
    let out = concat_batches(&out[0].schema(), &out).unwrap();
    let names: Vec<&str> = out.schema_ref().fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(names[10..], ["predicted_labels", "model_version"]);
    assert_eq!(out.columns()[..10], *whole.columns());
    let versions = out.column(11).as_primitive::<arrow::datatypes::UInt64Type>();
    assert!((0..500).all(|i| versions.value(i) == i as u64));
    // As good as a learner asked directly.
    let (labels, features) = crate::models::split_columns(
        &whole.project(&(1..10).collect::<Vec<_>>()).unwrap(),
        "labels",
    )
    .unwrap();
    let mut learner =
        OnlineLearner::try_new(&Registry::default(), "naibx", OnlineOptions::default()).unwrap();
    let direct = learner.learn_and_predict(&labels, &features, None).unwrap();
    assert_eq!(named(out.column(10).as_list()), named(&direct.predicted));
    assert_eq!(stage.report().rows(), 500);
}

#[test]
fn scoring_answers_as_the_model_and_takes_a_new_one_between_batches() {
    let batches = generated(400, 100, false);
    let mut learning = stage(options(Mode::Learn));
    learning.process(&batches[0]).unwrap();
    let first = learning.model().unwrap();
    learning.process(&batches[1]).unwrap();
    let second = learning.model().unwrap();
    let mut scoring = Stage::from_model(Arc::clone(&first), options(Mode::Score)).unwrap();
    let versions = |b: &RecordBatch| {
        b.column_by_name("model_version")
            .unwrap()
            .as_primitive::<arrow::datatypes::UInt64Type>()
            .value(0)
    };
    assert_eq!(versions(&scoring.process(&batches[2]).unwrap()), 100);
    scoring.handle().swap(second);
    let out = scoring.process(&batches[3]).unwrap();
    assert_eq!((versions(&out), out.num_rows()), (200, 100));
    assert_eq!(scoring.report().rows(), 200);
}

#[test]
fn a_stream_of_other_columns_is_refused_and_named() {
    let batches = generated(200, 100, false);
    let mut stage = stage(options(Mode::TestThenTrain));
    stage.process(&batches[0]).unwrap();
    let before = crate::store::to_bytes(&stage.model().unwrap()).unwrap();
    // Without f3.
    let all: Vec<usize> = (0..batches[1].num_columns()).collect();
    let less: Vec<usize> = all.iter().copied().filter(|i| *i != 4).collect();
    let error = stage.process(&batches[1].project(&less).unwrap()).unwrap_err().to_string();
    assert!(error.contains("rows 100 to 200") && error.contains("`f3`"), "{error}");
    // f3 as texts.
    let mut columns: Vec<(&str, ArrayRef)> = Vec::new();
    let schema = batches[1].schema();
    for (field, column) in schema.fields().iter().zip(batches[1].columns()) {
        let text = arrow::compute::cast(column, &arrow::datatypes::DataType::Utf8);
        let column = if field.name() == "f3" { text.unwrap() } else { Arc::clone(column) };
        columns.push((field.name(), column));
    }
    let error = stage.process(&batch(columns)).unwrap_err().to_string();
    assert!(error.contains("`f3` is Utf8 now and was Float64 before"), "{error}");
    assert_eq!(crate::store::to_bytes(&stage.model().unwrap()).unwrap(), before);
    assert_eq!((stage.counts().refused_batches, stage.counts().refused_rows), (2, 200));
    // One more column, and another order: left out.
    let mut more: Vec<(&str, ArrayRef)> = vec![("new", Arc::clone(batches[1].column(1)))];
    let fields = schema.fields().iter().zip(batches[1].columns()).rev();
    more.extend(fields.map(|(f, c)| (f.name().as_str(), Arc::clone(c))));
    let out = stage.process(&batch(more)).unwrap();
    assert_eq!(out.schema_ref().field(0).name(), "id");
    assert!(out.column_by_name("new").is_none());
    assert_eq!(stage.learned(), 200);
}

#[test]
fn bad_batches_stop_are_skipped_or_diverted() {
    let mut batches = generated(300, 100, false);
    let bad: ArrayRef = Arc::new(Float64Array::from(vec![f64::INFINITY; 100]));
    let mut columns = batches[1].columns().to_vec();
    columns[1] = bad;
    batches[1] = RecordBatch::try_new(batches[1].schema(), columns).unwrap();
    let run = |mut on_error: OnError| {
        let mut stage = stage(options(Mode::TestThenTrain));
        let out: Result<Vec<_>, _> = batches
            .iter()
            .map(|b| match stage.process(b) {
                Ok(out) => Ok(Some(out)),
                Err(error) => on_error.refuse(b, error).map(|()| None),
            })
            .collect();
        (out, stage)
    };
    let (out, _) = run(OnError::Stop);
    assert!(out.unwrap_err().to_string().contains("`f0` holds an infinite value"));
    let (out, skipped) = run(OnError::Skip);
    assert_eq!(out.unwrap().iter().flatten().count(), 2);
    assert_eq!((skipped.learned(), skipped.counts().refused_rows), (200, 100));
    let diverted = Arc::new(std::sync::Mutex::new(0));
    let count = Arc::clone(&diverted);
    let (_, stage) = run(OnError::Divert(Box::new(move |batch, _| {
        *count.lock().unwrap() += batch.num_rows();
        Ok(())
    })));
    assert_eq!((stage.learned(), *diverted.lock().unwrap()), (200, 100));
}

#[test]
fn a_half_life_recovers_from_drift_and_the_report_names_the_labels() {
    let batches = generated(24_000, 500, true);
    let forget = |forgetting| {
        let mut options = options(Mode::TestThenTrain);
        options.learning.forgetting = forgetting;
        options.report_window = 2000;
        let mut stage = stage(options);
        let mut jaccard = Vec::new();
        for batch in &batches {
            stage.process(batch).unwrap();
            jaccard.push(value(&stage.report().windowed(), Metric::Jaccard));
        }
        (jaccard, stage)
    };
    let (fading, with) = forget(Forgetting::Decay { half_life: Span::Rows(1000) });
    let (steady, without) = forget(Forgetting::Never);
    // Before the switch (batch 23), soon after it, and at the end.
    let (before, at_the_end) = (fading[23], fading[47]);
    let worst = fading[24..36].iter().copied().fold(1.0, f64::min);
    assert!(worst < before - 0.05, "{worst} {before}");
    assert!(at_the_end > before - 0.03, "{at_the_end} {before}");
    assert!(steady[47] < steady[23] - 0.05, "{} {}", steady[47], steady[23]);
    let shape = GeneratorOptions { rows: 1, features: 8, labels: 10, cardinality: 2.0, seed: 5 };
    let switching = Generator::try_new(shape).unwrap().switching_labels();
    assert_eq!(switching, ["label_00", "label_01", "label_05", "label_06"]);
    for stage in [with, without] {
        let labels = stage.report().labels();
        let drifted = |name: &String| {
            labels.iter().any(|l| l.label == *name && l.drifted_at.is_some_and(|at| at > 12_000))
        };
        assert!(switching.iter().all(drifted), "{:?}", stage.report_json()["drifted"]);
        let early = labels.iter().filter(|l| l.drifted_at.is_some_and(|at| at <= 12_000)).count();
        assert!(early <= 1, "{:?}", stage.report_json()["drifted"]);
    }
}

#[test]
fn reports_are_record_batches_and_json() {
    let mut stage = stage(options(Mode::TestThenTrain));
    for batch in generated(3000, 1000, false) {
        stage.process(&batch).unwrap();
    }
    let metrics = stage.report().metric_batch().unwrap();
    assert_eq!(metrics.num_rows(), 3 * 7);
    let labels = stage.report().label_batch().unwrap();
    assert_eq!(labels.num_rows(), 10);
    let line = stage.report_json();
    assert_eq!(line["rows"], 3000);
    assert_eq!(line["learned"], 3000);
    let cumulative = value(&stage.report().cumulative(), Metric::Jaccard);
    assert_eq!(line["cumulative"]["jaccard"], cumulative);
    assert!(cumulative > 0.3, "{cumulative}");
}

#[test]
fn a_model_that_cannot_be_taken_is_left_and_no_batch_is_lost() {
    let batches = generated(300, 100, false);
    let model_of = |batch: &RecordBatch| {
        let mut learning = stage(options(Mode::Learn));
        learning.process(batch).unwrap();
        let bytes = crate::store::to_bytes(&learning.model().unwrap()).unwrap();
        Arc::new(crate::store::from_bytes(&bytes, &Registry::default()).unwrap())
    };
    let first = model_of(&batches[0]);
    let x: ArrayRef = Arc::new(Float64Array::from(vec![1.0; 100]));
    let labels = batches[0].column_by_name("labels").unwrap();
    let other = model_of(&batch(vec![("elsewhere", x), ("labels", Arc::clone(labels))]));
    for mode in [Mode::Score, Mode::TestThenTrain] {
        let mut stage = Stage::from_model(Arc::clone(&first), options(mode)).unwrap();
        stage.handle().swap(Arc::clone(&other));
        assert_eq!(stage.process(&batches[1]).unwrap().num_rows(), 100);
        let notes = stage.notes().join(" ");
        assert!(
            notes.contains("the model stays as it is") && notes.contains("elsewhere"),
            "{notes}"
        );
        assert_eq!(stage.model_digest(), first.digest());
        let second = model_of(&batches[2]);
        stage.handle().swap(Arc::clone(&second));
        stage.process(&batches[2]).unwrap();
        assert_eq!(stage.notes(), ["took the new model of 100 rows"]);
        assert_eq!(stage.model_digest(), second.digest());
        // A checkpoint knows which model was taken last.
        let saved = stage.save().unwrap();
        assert_eq!(saved.json("model").unwrap().as_str(), second.digest());
    }
}

#[test]
fn the_columns_of_answers_are_known_before_the_first_batch() {
    use crate::stream::StageStream;
    use futures::{FutureExt, StreamExt};
    let batches = generated(200, 100, false);
    let model = {
        let mut learning = stage(options(Mode::Learn));
        learning.process(&batches[0]).unwrap();
        learning.model().unwrap()
    };
    for mode in [Mode::Score, Mode::Learn, Mode::TestThenTrain] {
        for scores in [false, true] {
            let mut options = options(mode.clone());
            options.learning.scores = scores;
            let stage = Stage::from_model(Arc::clone(&model), options).unwrap();
            let input = futures::stream::iter(batches.clone().into_iter().map(Ok));
            let mut stream = StageStream::with_columns(stage, &batches[0].schema(), input).unwrap();
            let known = stream.schema().unwrap();
            while let Some(out) = stream.next().now_or_never().flatten() {
                assert_eq!(out.unwrap().schema(), known, "{mode:?} {scores}");
            }
        }
    }
}

#[test]
fn numbers_are_cast_to_the_type_the_stream_began_with() {
    let table = |x: ArrayRef| {
        let labels = label_lists((0..x.len()).map(|i| Some(vec![format!("l{}", i % 2)])));
        batch(vec![("x", x), ("labels", labels)])
    };
    let whole = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    let parts = |values: Vec<f64>| -> ArrayRef { Arc::new(Float64Array::from(values)) };
    let mut stage = stage(options(Mode::TestThenTrain));
    stage.process(&table(parts(vec![1.5, 2.5]))).unwrap();
    let out = stage.process(&table(whole(vec![3, 4]))).unwrap();
    assert_eq!(out.column(0), &parts(vec![3.0, 4.0]));
    let nothing = arrow::array::new_null_array(&arrow::datatypes::DataType::Utf8, 2);
    assert_eq!(stage.process(&table(nothing)).unwrap().column(0).null_count(), 2);
    let mut stage = super::stage(options(Mode::TestThenTrain));
    stage.process(&table(whole(vec![1, 2]))).unwrap();
    stage.process(&table(parts(vec![3.0, 4.0]))).unwrap();
    let error = stage.process(&table(parts(vec![3.0, 4.5]))).unwrap_err().to_string();
    assert!(error.contains("`x` is Float64 now and was Int64 before"), "{error}");
    assert_eq!(stage.learned(), 4);
}

#[test]
fn labels_that_come_and_go_leave_the_report_too() {
    let mut options = options(Mode::TestThenTrain);
    options.report_window = 64;
    options.learning.drop_after = Some(200);
    options.learning.update_every = Some(500);
    let x: ArrayRef = Arc::new(Float64Array::from_iter_values((0..6000).map(|i| f64::from(i % 3))));
    let labels = label_lists(
        (0..6000).map(|i| Some(vec![format!("label{}", i / 10), "always".to_string()])),
    );
    let whole = batch(vec![("x", x), ("labels", labels)]);
    let run = |size: usize| {
        let mut stage = stage(options.clone());
        for start in (0..6000).step_by(size) {
            stage.process(&whole.slice(start, size)).unwrap();
        }
        stage
    };
    let stage = run(100);
    let (report, (departed, outcome)) = (stage.report(), stage.report().departed());
    let labels = report.labels();
    assert!(labels.len() < 100 && departed as usize + labels.len() == 601, "{}", labels.len());
    // No row is lost from the counts.
    let actual: u64 = labels.iter().map(|l| l.actual).sum();
    assert_eq!(actual + outcome.support(), 12_000);
    let always = labels.iter().find(|l| l.label == "always").unwrap();
    assert_eq!(always.actual, 6000);
    // Neither batches nor a report that keeps everything give other measures.
    assert_eq!(run(1000).report_json(), stage.report_json());
    let mut all = RunningReport::new(64);
    let mut some = RunningReport::new(64).keep(200);
    let truth = whole.column(1);
    let guesses = label_lists((0..6000).map(|i| Some(vec![format!("label{}", (i + 5) / 10)])));
    for report in [&mut all, &mut some] {
        report.observe(truth, &guesses).unwrap();
    }
    assert!(some.labels().len() < all.labels().len());
    let near = |a: &[(Metric, f64)], b: &[(Metric, f64)]| {
        a.iter().zip(b).all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-12)
    };
    assert!(
        near(&all.cumulative(), &some.cumulative()),
        "{:?} {:?}",
        all.cumulative(),
        some.cumulative()
    );
}
