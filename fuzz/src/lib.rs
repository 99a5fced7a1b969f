//! What is tried with hostile inputs. A target returns, whatever the bytes: an error of labelflow is
//! an answer, a panic, a hang or a huge allocation is a bug.

use arrow::array::{ArrayRef, Float64Array, ListBuilder, RecordBatch, StringBuilder, StructArray};
use labelflow::formats::{ArffReader, SvmlightReader};
use labelflow::math::content_hash;
use labelflow::models::{Model, Registry, Spec, Trainer};
use labelflow::store;
use std::sync::Arc;

/// A target: its name (also of its corpus) and what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] =
    &[("model", model), ("arff", arff), ("svmlight", svmlight), ("spec", spec)];

/// Runs `target` and ends the process when it panics. libFuzzer ends it at any panic, also at those
/// that labelflow catches where it hands bytes to Arrow's reader.
pub fn escaping(target: fn(&[u8]), data: &[u8]) {
    static QUIET: std::sync::Once = std::sync::Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    if std::panic::catch_unwind(|| target(data)).is_err() {
        std::process::abort();
    }
}

/// Decodes model bytes, as they are and with their digest put right; uses what can be decoded.
pub fn model(data: &[u8]) {
    let registry = Registry::default();
    use_model(data, &registry);
    if let Some(bytes) = resealed(data) {
        use_model(&bytes, &registry);
    }
}

fn use_model(bytes: &[u8], registry: &Registry) {
    let Ok(model) = store::from_bytes(bytes, registry) else { return };
    // What was decoded can be scored, merged, reopened and written.
    let features = table(&model);
    let _ = model.score(&features);
    let _ = model.predict(&features);
    let _ = model.insight(3);
    let _ = store::to_bytes(&model);
    if let Ok(mut trainer) = model.reopen() {
        let _ = trainer.merge(&model);
        let _ = trainer.finish();
        let _ = trainer.forget(&model);
        let _ = trainer.decay(0.5);
        let _ = trainer.finish();
    }
}

/// Two rows with the columns that the model wants.
fn table(model: &Model) -> ArrayRef {
    let columns: Vec<(String, ArrayRef)> = model
        .space()
        .features
        .features()
        .into_iter()
        .filter(|f| f.column)
        .take(64)
        .map(|f| (f.name, Arc::new(Float64Array::from(vec![Some(1.5), None])) as ArrayRef))
        .collect();
    match StructArray::try_from(
        columns.iter().map(|(n, a)| (n.as_str(), Arc::clone(a))).collect::<Vec<_>>(),
    ) {
        Ok(table) => Arc::new(table),
        Err(_) => {
            let mut tokens = ListBuilder::new(StringBuilder::new());
            tokens.append_value([Some("a"), Some("rust")]);
            Arc::new(tokens.finish())
        }
    }
}

/// `data` with the digest that fits it, if it has a place for one.
fn resealed(data: &[u8]) -> Option<Vec<u8>> {
    let digest = store::digest_of(data).ok()?;
    let at = digest.as_ptr() as usize - data.as_ptr() as usize;
    let mut bytes = data.to_vec();
    bytes[at..at + digest.len()].fill(b'0');
    let right = format!("{:032x}", content_hash(0, &bytes));
    bytes[at..at + digest.len()].copy_from_slice(right.as_bytes());
    Some(bytes)
}

/// Reads ARFF, with the labels that the header names and with given ones, and learns from it.
pub fn arff(data: &[u8]) {
    let reader = |labels: Option<&[String]>| {
        ArffReader::try_new("fuzz.arff", std::io::Cursor::new(data.to_vec()), labels)
    };
    if let Ok(reader) = reader(None) {
        learn(reader.with_batch_size(3));
    }
    if let Ok(reader) = reader(Some(&["y".to_string(), "z".to_string()])) {
        learn(reader.with_batch_size(100));
    }
}

/// Reads svmlight text and learns from it.
pub fn svmlight(data: &[u8]) {
    let reader = SvmlightReader::new("fuzz.svm", std::io::Cursor::new(data.to_vec()));
    learn(reader.with_batch_size(3));
}

fn learn(batches: impl Iterator<Item = labelflow::Result<RecordBatch>>) {
    let Ok(mut trainer) = Trainer::try_new(&Registry::default(), "naibx") else { return };
    for batch in batches {
        let Ok(batch) = batch else { break };
        assert!(batch.num_rows() > 0, "an empty batch");
        let _ = trainer.observe_batch(&batch, "labels");
    }
    if let Ok(model) = trainer.finish() {
        let bytes = store::to_bytes(&model).expect("a model has bytes");
        let again = store::from_bytes(&bytes, &Registry::default()).expect("bytes are a model");
        assert_eq!(store::to_bytes(&again).expect("a model has bytes"), bytes);
    }
}

/// Parses a spec; what is accepted prints as something that is accepted and prints the same.
pub fn spec(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(spec) = text.parse::<Spec>() else { return };
    let printed = spec.to_string();
    let again: Spec = printed.parse().unwrap_or_else(|e| panic!("`{printed}`: {e}"));
    assert_eq!(again.to_string(), printed);
    if let Ok((_, checked)) = Registry::default().resolve(text) {
        let canonical = checked.to_string();
        let (_, again) =
            Registry::default().resolve(&canonical).expect("a canonical spec is valid");
        assert_eq!(again.to_string(), canonical);
        let _ = Trainer::try_new(&Registry::default(), &canonical);
    }
}
