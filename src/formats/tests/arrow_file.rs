//! Arrow files and streams.

use crate::error::ErrorKind;
use crate::formats::{FileReader, LabelSource};
use arrow::array::{Int64Array, RecordBatch};
use arrow::ipc::writer::{FileWriter, StreamWriter};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

fn rows(count: i64) -> RecordBatch {
    RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from_iter_values(0..count)) as _)])
        .unwrap()
}

fn write(path: &Path, batches: &[RecordBatch]) {
    let (file, schema) = (File::create(path).unwrap(), rows(0).schema());
    if path.extension().is_some_and(|e| e == "arrow") {
        let mut writer = FileWriter::try_new(file, &schema).unwrap();
        batches.iter().for_each(|b| writer.write(b).unwrap());
        writer.finish().unwrap();
    } else {
        let mut writer = StreamWriter::try_new(file, &schema).unwrap();
        batches.iter().for_each(|b| writer.write(b).unwrap());
        writer.finish().unwrap();
    }
}

fn open(path: &Path) -> crate::Result<FileReader> {
    FileReader::try_open(path, &LabelSource::default())
}

#[test]
fn both_forms_are_read_in_batches_of_the_asked_size() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a.arrow", "a.arrows"] {
        let path = dir.path().join(name);
        write(&path, &[rows(5), rows(0), rows(2)]);
        let reader = open(&path).unwrap();
        assert_eq!(reader.schema(), rows(0).schema());
        let all: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
        assert_eq!(all, [rows(5), rows(0), rows(2)], "{name}");
        let cut = open(&path).unwrap().with_batch_size(2).map(Result::unwrap);
        let cut: Vec<RecordBatch> = cut.collect();
        let five = rows(5);
        assert_eq!(cut[..3], [five.slice(0, 2), five.slice(2, 2), five.slice(4, 1)], "{name}");
        write(&path, &[]);
        let reader = open(&path).unwrap();
        assert_eq!((reader.schema(), reader.count()), (rows(0).schema(), 0), "{name}");
    }
}

#[test]
fn damaged_files_are_errors_and_nothing_worse() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a.arrow", "a.arrows"] {
        let path = dir.path().join(name);
        write(&path, &[rows(20), rows(20)]);
        let whole = std::fs::read(&path).unwrap();
        let mut refused = 0;
        for place in 0..whole.len() {
            for value in [whole[place] ^ 0x80, !whole[place]] {
                let mut bytes = whole.clone();
                bytes[place] = value;
                std::fs::write(&path, bytes).unwrap();
                let read = open(&path).and_then(|r| r.collect::<crate::Result<Vec<_>>>());
                refused += usize::from(read.is_err());
            }
        }
        assert!(refused > whole.len() / 10, "{name}: {refused} of {}", 2 * whole.len());
    }
}

#[test]
fn a_second_stream_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.arrows");
    write(&path, &[rows(5)]);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&bytes[..], &bytes[..]].concat()).unwrap();
    let mut reader = open(&path).unwrap();
    assert_eq!(reader.next().unwrap().unwrap(), rows(5));
    let error = reader.next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(reader.next().is_none());
}

#[test]
fn files_that_are_cut_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a.arrow", "a.arrows"] {
        let path = dir.path().join(name);
        write(&path, &[rows(500), rows(500)]);
        let whole = std::fs::read(&path).unwrap();
        for length in [1, 7, 100, whole.len() / 2, whole.len() - 9] {
            std::fs::write(&path, &whole[..length]).unwrap();
            let read = open(&path).and_then(|r| r.collect::<crate::Result<Vec<_>>>());
            let error = read.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Data), "{error:?}");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
    let error = open(&dir.path().join("b.arrow")).unwrap_err();
    assert!(error.to_string().contains("b.arrow"), "{error}");
}
