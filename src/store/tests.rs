use super::*;
use crate::data::generate::{Generator, GeneratorOptions};
use crate::error::ErrorKind;
use crate::models::Trainer;

fn model(rows: u64) -> Model {
    let options = GeneratorOptions { rows, features: 3, labels: 4, cardinality: 1.5, seed: 7 };
    let batch = Generator::try_new(options).unwrap().batch(0, rows as usize).unwrap();
    let batch = batch.project(&[1, 2, 3, 4]).unwrap();
    let mut trainer = Trainer::try_new(&Registry::default(), "naibx(smoothing=0.5)").unwrap();
    trainer.observe_batch(&batch, "labels").unwrap();
    trainer.finish().unwrap()
}

#[test]
fn bytes_and_back_are_the_same_bytes() {
    let bytes = to_bytes(&model(50)).unwrap();
    let back = from_bytes(&bytes, &Registry::default()).unwrap();
    assert_eq!(back.spec().to_string(), "naibx(smoothing=0.5)");
    assert_eq!(back.rows(), 50);
    assert_eq!(to_bytes(&back).unwrap(), bytes);
    assert_eq!(digest_of(&bytes).unwrap().len(), 32);
}

#[test]
fn every_flipped_byte_is_refused() {
    let bytes = to_bytes(&model(5)).unwrap();
    let registry = Registry::default();
    for i in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[i] ^= 1 << (i % 8);
        let error = from_bytes(&damaged, &registry).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {i}: {error}");
    }
}

#[test]
fn every_truncation_is_refused() {
    let bytes = to_bytes(&model(5)).unwrap();
    let registry = Registry::default();
    for i in 0..bytes.len() {
        let error = from_bytes(&bytes[..i], &registry).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{i} bytes: {error}");
    }
}

#[test]
fn the_old_file_stays_when_the_new_one_is_not_committed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.labelflow");
    write_atomically(&path, b"old").unwrap();
    let half = AtomicFile::try_new(&path).unwrap();
    std::fs::write(half.temporary(), b"ne").unwrap();
    drop(half);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    let error = AtomicFile::try_new(&dir.path().join("none/m.labelflow")).unwrap_err();
    assert!(error.to_string().contains("does not exist: create it first"), "{error}");
}
