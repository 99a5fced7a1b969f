//! Going on from a checkpoint gives what an undisturbed run gives.

use super::*;
use crate::error::ErrorKind;
use crate::stream::{Checkpoint, CheckpointDir, Forgetting, Span, WhenFull};

/// Every batch of answers, with a restart from a checkpoint before each batch in `restarts`.
fn run(
    options: &StageOptions,
    batches: &[RecordBatch],
    restarts: &[usize],
) -> (Vec<RecordBatch>, Stage) {
    let mut stage = stage(options.clone());
    let mut out = Vec::new();
    for (i, batch) in batches.iter().enumerate() {
        if restarts.contains(&i) {
            let bytes = stage.save().unwrap().to_bytes().unwrap();
            stage = super::stage(options.clone());
            let checkpoint = Checkpoint::from_bytes(&bytes).unwrap();
            stage.restore(&checkpoint, &Registry::default()).unwrap();
            assert_eq!(stage.save().unwrap().to_bytes().unwrap(), bytes);
        }
        out.push(stage.process(batch).unwrap());
    }
    (out, stage)
}

fn learning(forgetting: Forgetting, update_every: Option<u64>) -> StageOptions {
    let mut options = options(Mode::TestThenTrain);
    options.learning.forgetting = forgetting;
    options.learning.update_every = update_every;
    options.learning.drop_after = Some(400);
    options
}

#[test]
fn restarts_change_no_bit_of_answers_models_and_reports() {
    let batches = generated(3000, 64, true);
    let rows = Span::Rows;
    for options in [
        learning(Forgetting::Never, None),
        learning(Forgetting::Never, Some(100)),
        learning(Forgetting::Decay { half_life: rows(500) }, None),
        learning(Forgetting::Window { length: rows(700) }, None),
        learning(Forgetting::Window { length: rows(700) }, Some(50)),
    ] {
        let (undisturbed, whole) = run(&options, &batches, &[]);
        let (restarted, other) = run(&options, &batches, &[1, 7, 8, 20, 40]);
        assert_eq!(undisturbed, restarted, "{options:?}");
        let bytes = |s: &Stage| crate::store::to_bytes(&s.model().unwrap()).unwrap();
        assert_eq!(bytes(&whole), bytes(&other));
        assert_eq!(whole.report_json(), other.report_json());
    }
}

#[test]
fn features_of_every_kind_survive_a_restart() {
    let subject = crate::conformance::Subject::try_new(&Registry::default(), "naibx").unwrap();
    for table in subject.tables() {
        let mut columns = vec![("labels", Arc::clone(&table.labels))];
        columns.push(("features", Arc::clone(&table.features)));
        let whole = batch(columns);
        let batches: Vec<RecordBatch> =
            (0..whole.num_rows()).step_by(20).map(|i| whole.slice(i, 20)).collect();
        let options = StageOptions { mode: Mode::TestThenTrain, ..StageOptions::default() };
        let (undisturbed, _) = run(&options, &batches, &[]);
        let (restarted, _) = run(&options, &batches, &[1, 2, 5, 7]);
        assert_eq!(undisturbed, restarted, "{}", table.name);
    }
}

#[test]
fn rows_that_wait_survive_a_restart() {
    let mode = Mode::Delayed { key: "id".into(), most: 500, when_full: WhenFull::DropOldest };
    let options = StageOptions { mode, ..StageOptions::default() };
    // Every row is asked, and its labels come 300 rows later.
    let data = generated(1500, 1500, false).remove(0);
    let asked = |from: usize| {
        let mut columns = data.slice(from, 100).columns().to_vec();
        let last = columns.len() - 1;
        columns[last] = arrow::array::new_null_array(columns[last].data_type(), 100);
        let fields: Vec<_> =
            data.schema().fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
    };
    let mut batches = Vec::new();
    for i in 0..15 {
        batches.push(asked(i * 100));
        if i >= 3 {
            let told = data.slice((i - 3) * 100, 100);
            batches
                .push(RecordBatch::try_new(batches[0].schema(), told.columns().to_vec()).unwrap());
        }
    }
    let (undisturbed, whole) = run(&options, &batches, &[]);
    let (restarted, other) = run(&options, &batches, &[3, 4, 9, 15, 20]);
    assert_eq!(undisturbed, restarted);
    assert_eq!(whole.report_json(), other.report_json());
    assert_eq!((whole.learned(), whole.waiting().0), (1200, 300));
}

#[test]
fn a_changed_option_is_refused_and_named() {
    let first = stage(learning(Forgetting::Never, None)).save().unwrap();
    let mut other = stage(learning(Forgetting::Decay { half_life: Span::Rows(9) }, None));
    let error = other.restore(&first, &Registry::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible);
    assert!(error.to_string().contains("`forgetting` \"Never\""), "{error}");
    let options = learning(Forgetting::Never, None);
    let mut other = Stage::try_new(&Registry::default(), "naibx(smoothing=2)", options).unwrap();
    let error = other.restore(&first, &Registry::default()).unwrap_err();
    assert!(error.to_string().contains("`algorithm`"), "{error}");
}

#[test]
fn damage_falls_back_to_the_checkpoint_before_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let checkpoints = CheckpointDir::try_new(dir.path(), 3).unwrap();
    for number in 1..=5 {
        let mut checkpoint = Checkpoint::default();
        checkpoint.put_json("number", &number.into());
        checkpoints.write(number, &checkpoint).unwrap();
    }
    let names = super::files(dir.path());
    assert_eq!(names.len(), 3);
    let newest = |notes: &mut Vec<String>| checkpoints.newest(|text| notes.push(text));
    let mut notes = Vec::new();
    assert_eq!(newest(&mut notes).unwrap().unwrap().0, 5);
    // Cut short, then one bit turned.
    let bytes = std::fs::read(&names[2]).unwrap();
    std::fs::write(&names[2], &bytes[..bytes.len() / 2]).unwrap();
    let mut turned = std::fs::read(&names[1]).unwrap();
    let middle = turned.len() / 2;
    turned[middle] ^= 1;
    std::fs::write(&names[1], turned).unwrap();
    let (number, checkpoint) = newest(&mut notes).unwrap().unwrap();
    assert_eq!((number, checkpoint.json("number").unwrap()), (3, 3.into()));
    assert_eq!(notes.len(), 2);
    assert!(notes[0].contains("falling back"), "{notes:?}");
    std::fs::write(&names[0], b"").unwrap();
    let error = newest(&mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("no checkpoint is whole"), "{error}");
}

#[test]
fn a_directory_belongs_to_one_stream_and_is_tidied_up() {
    let dir = tempfile::tempdir().unwrap();
    let first = CheckpointDir::try_new(dir.path(), 3).unwrap();
    let error = CheckpointDir::try_new(dir.path(), 3).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("in use by another stream"), "{error}");
    drop(first);
    // What a run that was killed left behind.
    std::fs::write(
        dir.path().join(".0123456789abcdef.part-checkpoint-00000000000000000007.arrow"),
        b"x",
    )
    .unwrap();
    CheckpointDir::try_new(dir.path(), 3).unwrap();
    assert_eq!(super::files(dir.path()), Vec::<std::path::PathBuf>::new());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_batch_refused_by_the_report_leaves_a_stage_that_can_be_saved() {
    let batches = generated(200, 100, false);
    let mut learning = stage(options(Mode::Learn));
    learning.process(&batches[0]).unwrap();
    let scoring = || Stage::from_model(learning.model().unwrap(), options(Mode::Score)).unwrap();
    let mut first = scoring();
    // New names, then a NULL inside a list.
    let mut labels = ListBuilder::new(StringBuilder::new());
    (0..99).for_each(|_| labels.append_value([Some("never seen")]));
    labels.append_value([Some("a"), None]);
    let at = batches[1].schema().index_of("labels").unwrap();
    let names: Vec<String> =
        batches[1].schema().fields().iter().map(|f| f.name().clone()).collect();
    let mut columns: Vec<(&str, ArrayRef)> =
        names.iter().map(String::as_str).zip(batches[1].columns().iter().cloned()).collect();
    columns[at].1 = Arc::new(labels.finish());
    let error = first.process(&batch(columns)).unwrap_err();
    assert!(error.to_string().contains("row 99 holds a NULL"), "{error}");
    first.process(&batches[1]).unwrap();
    let saved = first.save().unwrap();
    let mut second = scoring();
    second.restore(&saved, &Registry::default()).unwrap();
    assert_eq!(second.report_json(), first.report_json());
    assert_eq!((second.report().rows(), second.report().labels().len()), (100, 10));
}
