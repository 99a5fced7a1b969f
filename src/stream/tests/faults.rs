//! What breaks is said, and nothing is lost by it.

use super::pipeline::{Memory, Still, parts, pipeline};
use super::*;
use crate::error::{Error, ErrorKind, Result};
use crate::stream::{
    Ended, IpcPart, IpcSink, IpcSource, NoSink, OnError, PartSink, Source, Sourced,
};
use arrow::array::StringArray;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use serde_json::Value;
use std::io::Cursor;

/// A source whose second batch is `fault`.
struct Faulty<F>(Memory, F);

impl<F: FnMut() -> Result<()> + Send> Source for Faulty<F> {
    fn next(&mut self) -> Result<Option<Sourced>> {
        let next = self.0.next()?;
        if self.0.next == 2 {
            (self.1)()?;
        }
        Ok(next)
    }

    fn resume(&mut self, position: &Value) -> Result<()> {
        self.0.resume(position)
    }
}

fn run(
    fault: impl FnMut() -> Result<()> + Send + 'static,
    on_error: OnError,
) -> (Result<Ended>, u64) {
    let memory = Memory { batches: generated(500, 100, false), next: 0, fails_at: None };
    let mut pipeline = pipeline(None);
    pipeline.on_error = on_error;
    let ended =
        pipeline.run(&Registry::default(), Faulty(memory, fault), NoSink, &mut Still::default());
    (ended, pipeline.stage.learned())
}

#[test]
fn a_panic_in_the_reading_thread_is_an_error() {
    let (ended, learned) = run(|| panic!("a bug in a reader"), OnError::Skip);
    assert!(ended.unwrap_err().to_string().contains("the thread that reads has failed"));
    assert_eq!(learned, 100);
}

#[test]
fn faults_of_the_data_are_skipped_and_faults_of_the_machine_are_not() {
    let (ended, learned) = run(|| Err(Error::data("a bad batch")), OnError::Skip);
    assert_eq!((ended.unwrap(), learned), (Ended::Exhausted, 400));
    let io = || Err(Error::io("the disk", std::io::Error::other("is broken")));
    let (ended, learned) = run(io, OnError::Skip);
    assert_eq!((ended.unwrap_err().kind(), learned), (ErrorKind::Io, 100));
}

#[test]
fn answers_of_another_run_are_not_removed() {
    let out = tempfile::tempdir().unwrap();
    let run = |checkpoints: &std::path::Path| {
        let source = Memory { batches: generated(1000, 100, false), next: 0, fails_at: None };
        let sink = PartSink::try_new(out.path(), "arrow", IpcPart::start).unwrap();
        let mut watcher = Still::default();
        pipeline(Some(checkpoints)).run(&Registry::default(), source, sink, &mut watcher)
    };
    let (monday, tuesday) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run(monday.path()).unwrap();
    let before = parts(out.path());
    let error = run(tuesday.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("of another run"), "{error}");
    assert_eq!(parts(out.path()), before);
    // With its own checkpoint it goes on, unless what it prepared is gone.
    run(monday.path()).unwrap();
    assert_eq!(parts(out.path()), before);
    std::fs::remove_file(files(out.path()).last().unwrap()).unwrap();
    let error = run(monday.path()).unwrap_err();
    assert!(error.to_string().contains("the last part of the checkpoint, is gone"), "{error}");
}

fn stream_of(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|b| writer.write(b).unwrap());
    writer.into_inner().unwrap()
}

/// Batches of 10 rows with a text column.
fn with_texts(texts: &[&str]) -> Vec<RecordBatch> {
    let x: ArrayRef = Arc::new(Float64Array::from_iter_values((0..10).map(f64::from)));
    let labels = label_lists((0..10).map(|i| Some(vec![format!("l{}", i % 2)])));
    let named = |text: &&str| {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![*text; 10]));
        batch(vec![("x", Arc::clone(&x)), ("text", texts), ("labels", Arc::clone(&labels))])
    };
    texts.iter().map(named).collect()
}

fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    let at = bytes.windows(from.len()).position(|w| w == from).unwrap();
    bytes[at..at + to.len()].copy_from_slice(to);
}

fn piped(bytes: Vec<u8>, on_error: OnError) -> (Result<Ended>, u64, Vec<String>) {
    let mut pipeline = pipeline(None);
    pipeline.on_error = on_error;
    let mut watcher = Still::default();
    let source = IpcSource::new(Cursor::new(bytes));
    let ended = pipeline.run(&Registry::default(), source, NoSink, &mut watcher);
    (ended, pipeline.stage.learned(), watcher.notes)
}

#[test]
fn a_batch_of_a_pipe_that_cannot_be_decoded_is_one_batch() {
    let mut bytes = stream_of(&with_texts(&["first", "brokn", "third"]));
    // No UTF-8, in a message that is otherwise whole.
    replace(&mut bytes, b"brokn", b"\xff\xfe");
    let (ended, learned, _) = piped(bytes.clone(), OnError::Stop);
    assert!(ended.is_err() && learned == 10);
    let (ended, learned, notes) = piped(bytes, OnError::Skip);
    assert_eq!((ended.unwrap(), learned), (Ended::Exhausted, 20));
    let notes = notes.join("\n");
    assert!(notes.contains("the batch after row 10 of the Arrow stream"), "{notes}");
}

#[test]
fn a_pipe_that_is_cut_or_garbled_is_an_error_whatever_is_skipped() {
    let whole = stream_of(&with_texts(&["first", "secnd", "third"]));
    for cut in [whole.len() - 9, whole.len() - 30, whole.len() / 2] {
        let (ended, _, _) = piped(whole[..cut].to_vec(), OnError::Skip);
        let error = ended.unwrap_err();
        assert!(error.to_string().contains("the Arrow stream cannot be read after"), "{error}");
    }
    let (ended, learned, _) = piped(b"id,x,labels\n1,2,a\n".to_vec(), OnError::Skip);
    assert_eq!((ended.unwrap_err().kind(), learned), (ErrorKind::Data, 0));
}

#[test]
fn streams_one_after_the_other_are_one() {
    let (first, second) = (with_texts(&["a", "b"]), with_texts(&["c"]));
    let bytes = [stream_of(&first), stream_of(&second)].concat();
    let (ended, learned, _) = piped(bytes, OnError::Stop);
    assert_eq!((ended.unwrap(), learned), (Ended::Exhausted, 30));
}

#[test]
fn a_replay_that_is_too_short_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let run = |batches: &[RecordBatch]| {
        let source = IpcSource::new(Cursor::new(stream_of(batches)));
        pipeline(Some(dir.path())).run(&Registry::default(), source, NoSink, &mut Still::default())
    };
    let batches = generated(700, 100, false);
    run(&batches).unwrap();
    let error = run(&batches[..3]).unwrap_err().to_string();
    assert!(error.contains("ended after 300 rows") && error.contains("at row 700"), "{error}");
}

/// A buffer that outlives its writer.
#[derive(Clone, Default)]
struct Shared(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_stream_without_rows_has_columns() {
    let mut writer = StreamWriter::try_new(Vec::new(), &with_texts(&["a"])[0].schema()).unwrap();
    writer.finish().unwrap();
    let source = IpcSource::new(Cursor::new(writer.into_inner().unwrap()));
    let (out, mut pipeline) = (Shared::default(), pipeline(None));
    let sink = IpcSink::new(out.clone());
    pipeline.run(&Registry::default(), source, sink, &mut Still::default()).unwrap();
    let bytes = out.0.lock().unwrap().clone();
    let reader = StreamReader::try_new(Cursor::new(bytes), None).unwrap();
    let schema = reader.schema();
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(names, ["x", "text", "labels", "predicted_labels", "model_version"]);
    assert_eq!(reader.count(), 0);
}
