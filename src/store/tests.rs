use super::*;
use crate::data::generate::{Generator, GeneratorOptions};
use crate::error::ErrorKind;
use crate::models::Trainer;
use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Float64Builder, ListBuilder, MapBuilder, RecordBatch,
    StringArray, StringBuilder,
};
use std::sync::Arc;

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
fn a_writer_of_many_models_writes_the_same_bytes() {
    let mut writer = ModelWriter::default();
    let mut reader = ModelReader::default();
    for model in [model(50), model(3), mixed_model("naibx"), model(500), model(50)] {
        let bytes = writer.to_bytes(&model).unwrap();
        assert_eq!(bytes, to_bytes(&model).unwrap());
        let back = from_bytes(&bytes, &Registry::default()).unwrap();
        assert_eq!(back.digest(), Some(digest_of(&bytes).unwrap()));
        assert_eq!(digest(&model).unwrap(), digest(&back).unwrap());
        let quick = reader.read(&bytes, &Registry::default()).unwrap();
        assert_eq!(to_bytes(&quick).unwrap(), bytes);
        for cut in [10, 700, bytes.len() - 20] {
            assert!(reader.read(&bytes[..cut], &Registry::default()).is_err());
        }
    }
}

#[test]
fn a_reader_shares_only_names_that_are_the_same() {
    let named = |label: &str| {
        let mut labels = ListBuilder::new(StringBuilder::new());
        (0..6).for_each(|i| labels.append_value([Some(if i % 2 == 0 { label } else { "z" })]));
        let x: ArrayRef = Arc::new(Float64Array::from_iter_values((0..6).map(f64::from)));
        let labels: ArrayRef = Arc::new(labels.finish());
        model_of("naibx", &RecordBatch::try_from_iter([("x", x), ("labels", labels)]).unwrap())
    };
    let models = ["a", "a", "a", "b", "b", "b", "a", "long", "a"].map(named);
    let (mut writer, mut reader) = (ModelWriter::default(), ModelReader::default());
    for (i, model) in models.iter().enumerate() {
        let bytes = writer.to_bytes(model).unwrap();
        assert_eq!(bytes, to_bytes(model).unwrap(), "{i}");
        let read = reader.read(&bytes, &Registry::default()).unwrap();
        assert_eq!((read.space(), read.rows()), (model.space(), model.rows()), "{i}");
        assert_eq!(to_bytes(&read).unwrap(), bytes, "{i}");
    }
    let mut all = vec![1, 2, 3];
    models.iter().for_each(|model| writer.write(model, &mut all).unwrap());
    let one_by_one = models.iter().flat_map(|model| to_bytes(model).unwrap());
    assert!(all[3..].iter().copied().eq(one_by_one));
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

#[test]
fn writers_of_one_file_do_not_share_a_temporary_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.labelflow");
    let names: std::collections::BTreeSet<_> =
        (0..100).map(|_| AtomicFile::try_new(&path).unwrap().temporary().to_path_buf()).collect();
    assert_eq!(names.len(), 100);
    let (first, second) =
        (AtomicFile::try_new(&path).unwrap(), AtomicFile::try_new(&path).unwrap());
    std::fs::write(first.temporary(), b"first").unwrap();
    std::fs::write(second.temporary(), b"second").unwrap();
    first.commit().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"first");
    second.commit().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"second");
}

/// A file of the repository.
fn repository(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Whether files kept in the repository are to be written anew (`LABELFLOW_UPDATE=1`).
fn update() -> bool {
    std::env::var_os("LABELFLOW_UPDATE").is_some()
}

/// Names of kept files and the specs of their models: every algorithm, and states of other shapes.
fn kept() -> impl Iterator<Item = (&'static str, &'static str)> {
    let algorithms: Vec<&str> = Registry::default().algorithms().iter().map(|a| a.name).collect();
    let counts = [("br_naive_bayes", "br(base=naive_bayes)")];
    algorithms.into_iter().map(|name| (name, name)).chain(counts)
}

#[test]
fn schemas_are_those_in_the_repository() {
    for (name, spec) in kept() {
        let path = repository(&format!("schemas/{name}.json"));
        let schema = schema_json(&full_model(spec)).unwrap();
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if update() {
            std::fs::write(&path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, kept, "{} differs: raise FORMAT_VERSION", path.display());
    }
}

#[test]
fn released_models_stay_readable() {
    for ((name, spec), version) in
        kept().flat_map(|kept| (1..=FORMAT_VERSION).map(move |v| (kept, v)))
    {
        let path = repository(&format!("tests/golden/{name}-v{version}.labelflow"));
        if update() && version == FORMAT_VERSION {
            write_model(&path, &mixed_model(spec)).unwrap();
        }
        let model = read_model(&path, &Registry::default()).unwrap();
        let fresh = mixed_model(spec);
        let digest = digest_of(&std::fs::read(&path).unwrap()).unwrap().to_string();
        let bytes = std::fs::metadata(&path).unwrap().len() as usize;
        let origin = Origin { digest: digest.into(), version, bytes };
        assert_eq!((model.origin(), fresh.origin()), (Some(&origin), None));
        assert_eq!((super::version(&model), super::version(&fresh)), (version, FORMAT_VERSION));
        assert_eq!(model.rows(), 40);
        assert_eq!(model.space(), fresh.space());
        let features = crate::models::root(&mixed_batch().project(&[0, 1, 2, 3]).unwrap());
        assert_eq!(model.predict(&features).unwrap(), fresh.predict(&features).unwrap());
        // Fitted weights depend on the last bit of `exp`, which differs between platforms.
        if !(model.algorithm().capabilities)(model.spec()).reopens {
            continue;
        }
        let now = to_bytes(&fresh).unwrap();
        let same = if version == FORMAT_VERSION {
            std::fs::read(&path).unwrap() == now
        } else {
            to_bytes(&model).unwrap() == now
        };
        assert!(
            same,
            "{}: the same rows give other bytes than when it was released",
            path.display()
        );
    }
}

#[test]
fn what_a_model_has_no_features_for_takes_no_columns() {
    let names = |model: &Model| schema_json(model).unwrap().to_string();
    for left_out in ["open_rows", "counts", "moments", "missing", "values", "sparse", "categories"]
    {
        let name = format!("\"{left_out}\"");
        assert!(!names(&model(50)).contains(&name), "{left_out}");
        assert!(names(&full_model("naibx")).contains(&name), "{left_out}");
    }
    let small = to_bytes(&model(50)).unwrap().len();
    assert!(small < 12_000, "{small} bytes");
}

/// Numbers, flags, categories and tokens with missing values; whole numbers, so that every sum is
/// exact.
fn mixed_batch() -> RecordBatch {
    let number = |i: i64| (i % 7 != 3).then_some((i * i % 11) as f64);
    let x: ArrayRef = Arc::new(Float64Array::from_iter((0..40).map(number)));
    let flag: ArrayRef =
        Arc::new(BooleanArray::from_iter((0..40).map(|i| (i % 5 != 2).then_some(i % 3 == 0))));
    let city = |i: i64| (i % 9 != 4).then_some(["rome", "oslo", "lima"][i as usize % 3]);
    let city: ArrayRef = Arc::new(StringArray::from_iter((0..40).map(city)));
    let list = |of: &dyn Fn(i64) -> Vec<String>| -> ArrayRef {
        let mut builder = ListBuilder::new(StringBuilder::new());
        (0..40).for_each(|i| builder.append_value(of(i).into_iter().map(Some)));
        Arc::new(builder.finish())
    };
    let words = list(&|i| (0..i % 4).map(|w| format!("w{}", (i + w) % 6)).collect());
    let labels =
        list(&|i| (0..3).filter(|y| (i + y) % (y + 2) == 0).map(|y| format!("l{y}")).collect());
    let columns = [("x", x), ("flag", flag), ("city", city), ("words", words), ("labels", labels)];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn mixed_model(spec: &str) -> Model {
    model_of(spec, &mixed_batch())
}

/// A model with features of every family, so that no column is left out.
fn full_model(spec: &str) -> Model {
    let batch = mixed_batch();
    let mut map = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
    for i in 0..batch.num_rows() {
        map.keys().append_value(format!("k{}", i % 3));
        map.values().append_value((i % 5) as f64 + 1.0);
        map.append(true).unwrap();
    }
    let map: ArrayRef = Arc::new(map.finish());
    let columns = batch.columns().iter().map(Arc::clone).chain([map]);
    let names = ["x", "flag", "city", "words", "labels", "map"];
    model_of(spec, &RecordBatch::try_from_iter(names.into_iter().zip(columns)).unwrap())
}

fn model_of(spec: &str, batch: &RecordBatch) -> Model {
    let mut trainer = Trainer::try_new(&Registry::default(), spec).unwrap();
    trainer.observe_batch(batch, "labels").unwrap();
    trainer.finish().unwrap()
}
