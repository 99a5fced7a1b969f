//! Columns, modes, refusals and swaps of a stage.

use super::*;
use crate::metrics::Metric;
use crate::stream::{Forgetting, OnError, Span};
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
