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
        assert_eq!(all, [rows(5), rows(2)], "{name}");
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
