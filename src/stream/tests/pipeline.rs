//! Source, stage and sink together.

use super::*;
use crate::error::{Error, Result};
use crate::stream::{
    CheckpointDir, Ended, Interval, IpcPart, IpcSink, IpcSource, NoSink, OnError, PartSink,
    Pipeline, Sink, Source, Sourced, Watcher,
};
use arrow::ipc::reader::FileReader;
use arrow::ipc::writer::StreamWriter;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Time stands still.
#[derive(Default)]
pub(super) struct Still {
    pub(super) notes: Vec<String>,
    reports: usize,
}

impl Watcher for Still {
    fn now(&mut self) -> Duration {
        Duration::ZERO
    }

    fn report(&mut self, _: &Stage, _: &crate::stream::RunningReport) -> Result<()> {
        self.reports += 1;
        Ok(())
    }

    fn note(&mut self, text: &str) {
        self.notes.push(text.to_string());
    }
}

/// Batches in memory; fails before batch `fails_at`.
pub(super) struct Memory {
    pub(super) batches: Vec<RecordBatch>,
    pub(super) next: usize,
    pub(super) fails_at: Option<usize>,
}

impl Source for Memory {
    fn next(&mut self) -> Result<Option<Sourced>> {
        if self.fails_at == Some(self.next) {
            return Err(Error::internal("the power is gone"));
        }
        let batch = self.batches.get(self.next).cloned();
        self.next += 1;
        Ok(batch.map(|batch| Sourced { batch, position: json!(self.next) }))
    }

    fn resume(&mut self, position: &Value) -> Result<()> {
        self.next = position.as_u64().unwrap() as usize;
        Ok(())
    }
}

pub(super) fn pipeline(checkpoints: Option<&Path>) -> Pipeline {
    Pipeline {
        stage: stage(options(Mode::TestThenTrain)),
        on_error: OnError::Stop,
        checkpoints: checkpoints
            .map(|dir| (CheckpointDir::try_new(dir, 2).unwrap(), Interval::Rows(300))),
        settings: json!({ "input": "memory" }),
        report_every: Some(Interval::Rows(500)),
        stop: Arc::new(AtomicBool::new(false)),
    }
}

/// All rows in the parts of a directory, in order.
pub(super) fn parts(dir: &Path) -> Vec<RecordBatch> {
    let names = files(dir);
    let read = |path| FileReader::try_new(std::fs::File::open(path).unwrap(), None).unwrap();
    names.into_iter().flat_map(read).collect::<Result<_, _>>().unwrap()
}

fn whole(batches: &[RecordBatch]) -> RecordBatch {
    arrow::compute::concat_batches(&batches[0].schema(), batches).unwrap()
}

#[test]
fn a_run_that_fails_again_and_again_ends_as_one_that_does_not() {
    let batches = generated(2000, 100, false);
    let run = |fails: &[usize]| {
        let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut last = None;
        for fails_at in fails.iter().copied().map(Some).chain([None]) {
            let source = Memory { batches: batches.clone(), next: 0, fails_at };
            let sink = PartSink::try_new(out.path(), "arrow", IpcPart::start).unwrap();
            let mut pipeline = pipeline(Some(dir.path()));
            let ended = pipeline.run(&Registry::default(), source, sink, &mut Still::default());
            assert_eq!(ended.is_err(), fails_at.is_some(), "{ended:?}");
            last = Some(pipeline.stage);
        }
        let model = crate::store::to_bytes(&last.as_ref().unwrap().model().unwrap()).unwrap();
        (whole(&parts(out.path())), model, last.unwrap().report_json())
    };
    let undisturbed = run(&[]);
    assert_eq!(undisturbed.0.num_rows(), 2000);
    assert_eq!(run(&[5, 5, 6, 9, 17, 19]), undisturbed);
}

#[test]
fn what_is_worth_knowing_about_the_model_is_said_at_the_end() {
    let out = tempfile::tempdir().unwrap();
    let source = Memory { batches: generated(200, 50, false), next: 0, fails_at: None };
    let sink = PartSink::try_new(out.path(), "arrow", IpcPart::start).unwrap();
    let mut pipeline = pipeline(None);
    let learning = options(Mode::Learn);
    pipeline.stage = Stage::try_new(&Registry::default(), "brknn(k=201)", learning).unwrap();
    let mut watcher = Still::default();
    pipeline.run(&Registry::default(), source, sink, &mut watcher).unwrap();
    let note = "k=201 is more than the 200 rows there are: all of them are asked";
    assert_eq!(watcher.notes, [note]);
}

#[test]
fn parts_of_a_checkpoint_that_is_lost_are_taken_back() {
    let batches = generated(1000, 100, false);
    let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let run = |fails_at| {
        let source = Memory { batches: batches.clone(), next: 0, fails_at };
        let sink = PartSink::try_new(out.path(), "arrow", IpcPart::start).unwrap();
        let mut watcher = Still::default();
        let _ = pipeline(Some(dir.path())).run(&Registry::default(), source, sink, &mut watcher);
        watcher.notes
    };
    run(Some(8));
    let before = parts(out.path()).len();
    // The newest checkpoint is cut short: its part must not stay.
    std::fs::write(files(dir.path()).last().unwrap(), b"cut").unwrap();
    let notes = run(None);
    assert!(before > 0 && notes[0].contains("falling back"), "{notes:?}");
    let rows = whole(&parts(out.path()));
    let ids = rows.column(0).as_primitive::<arrow::datatypes::Int64Type>();
    assert_eq!(ids.values().to_vec(), (0..1000).collect::<Vec<i64>>());
}

#[test]
fn pipes_carry_arrow_and_a_replay_is_passed_over() {
    let batches = generated(700, 100, false);
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &batches[0].schema()).unwrap();
    batches.iter().for_each(|b| writer.write(b).unwrap());
    writer.finish().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut first = pipeline(Some(dir.path()));
    let source = IpcSource::new(std::io::Cursor::new(bytes.clone()));
    let mut watcher = Still::default();
    let ended = first.run(&Registry::default(), source, NoSink, &mut watcher).unwrap();
    assert_eq!((ended, first.stage.learned(), watcher.reports), (Ended::Exhausted, 700, 2));
    drop(first);
    // All rows come again, and are known.
    let mut again = pipeline(Some(dir.path()));
    let source = IpcSource::new(std::io::Cursor::new(bytes.clone()));
    again.run(&Registry::default(), source, NoSink, &mut Still::default()).unwrap();
    assert_eq!(again.stage.learned(), 700);
    // Damage in the middle is an error that says where.
    bytes.truncate(bytes.len() / 2);
    let mut cut = pipeline(None);
    let source = IpcSource::new(std::io::Cursor::new(bytes));
    let error = cut.run(&Registry::default(), source, NoSink, &mut Still::default()).unwrap_err();
    assert!(error.to_string().contains("cannot be read after"), "{error}");
}

/// Takes one batch, then nobody reads any more.
struct Closed(usize);

impl std::io::Write for Closed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        if self.0 > 10_000 {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_output_ends_quietly_and_a_stop_ends_soon() {
    let batches = generated(5000, 100, false);
    let memory = || Memory { batches: batches.clone(), next: 0, fails_at: None };
    let mut closed = pipeline(None);
    let sink = IpcSink::new(Closed(0));
    let ended = closed.run(&Registry::default(), memory(), sink, &mut Still::default()).unwrap();
    assert_eq!(ended, Ended::OutputClosed);
    assert!(closed.stage.learned() < 5000);
    let mut stopped = pipeline(None);
    stopped.stop.store(true, Ordering::Relaxed);
    let ended = stopped.run(&Registry::default(), memory(), NoSink, &mut Still::default()).unwrap();
    assert_eq!((ended, stopped.stage.learned()), (Ended::Stopped, 0));
}

/// Counts how far the source is ahead of a slow sink.
struct Ahead(Arc<AtomicUsize>, Arc<AtomicUsize>);

impl Sink for Ahead {
    fn write(&mut self, _: &RecordBatch) -> Result<()> {
        std::thread::sleep(Duration::from_millis(5));
        let read = self.0.load(Ordering::SeqCst);
        let ahead = read - self.1.load(Ordering::SeqCst).min(read);
        self.1.fetch_add(1, Ordering::SeqCst);
        // Two between source and stage, two between stage and sink, and one in each hand.
        assert!(ahead <= 8, "{ahead}");
        Ok(())
    }
}

struct Counting(Memory, Arc<AtomicUsize>);

impl Source for Counting {
    fn next(&mut self) -> Result<Option<Sourced>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.next()
    }

    fn resume(&mut self, position: &Value) -> Result<()> {
        self.0.resume(position)
    }
}

#[test]
fn a_slow_sink_slows_the_source() {
    let batches = generated(600, 10, false);
    let (read, written) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let source = Counting(Memory { batches, next: 0, fails_at: None }, Arc::clone(&read));
    let sink = Ahead(read, Arc::clone(&written));
    pipeline(None).run(&Registry::default(), source, sink, &mut Still::default()).unwrap();
    assert_eq!(written.load(Ordering::SeqCst), 60);
}

#[test]
fn a_write_that_fails_is_the_error_and_the_last_checkpoint_is_whole() {
    /// Has room for a few batches.
    struct Full(usize);
    impl Sink for Full {
        fn write(&mut self, batch: &RecordBatch) -> Result<()> {
            self.0 += batch.num_rows();
            match self.0 > 700 {
                true => Err(Error::io("a part file", std::io::ErrorKind::StorageFull.into())),
                false => Ok(()),
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let batches = generated(2000, 100, false);
    let memory = || Memory { batches: batches.clone(), next: 0, fails_at: None };
    let error = pipeline(Some(dir.path()))
        .run(&Registry::default(), memory(), Full(0), &mut Still::default())
        .unwrap_err();
    assert!(error.to_string().starts_with("a part file: "), "{error}");
    let mut again = pipeline(Some(dir.path()));
    again.run(&Registry::default(), memory(), NoSink, &mut Still::default()).unwrap();
    assert_eq!(again.stage.learned(), 2000);
}
