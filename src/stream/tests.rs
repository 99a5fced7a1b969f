//! Test-then-train against a model refitted after every row; forgetting against learning anew.

mod checkpoints;
mod delayed;
mod faults;
mod forgetting;
mod pipeline;
mod rows;
mod stage;

use super::{Mode, OnlineLearner, OnlineOptions, Stage, StageOptions};
use crate::data::generate::{Generator, GeneratorOptions};
use crate::math::Sequence as Dice;
use crate::models::Registry;
use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, ListArray, ListBuilder, RecordBatch,
    StringBuilder, StructArray,
};
use arrow::datatypes::{Field, Schema};
use std::sync::Arc;

/// Label sets and features of the same rows.
struct Table {
    labels: ArrayRef,
    features: ArrayRef,
}

impl Table {
    fn len(&self) -> usize {
        self.labels.len()
    }

    fn slice(&self, start: usize, len: usize) -> Table {
        Table { labels: self.labels.slice(start, len), features: self.features.slice(start, len) }
    }

    /// Answers of a new learner that gets the table in batches of `size` rows.
    fn answers(&self, spec: &str, options: OnlineOptions, size: usize) -> Vec<Vec<String>> {
        self.run(spec, options, size, None).0
    }

    fn run(
        &self,
        spec: &str,
        options: OnlineOptions,
        size: usize,
        times: Option<&Int64Array>,
    ) -> (Vec<Vec<String>>, OnlineLearner) {
        let mut learner = OnlineLearner::try_new(&Registry::default(), spec, options).unwrap();
        let mut answers = Vec::new();
        for start in (0..self.len()).step_by(size) {
            let part = self.slice(start, size.min(self.len() - start));
            let times = times.map(|t| t.slice(start, part.len()));
            let found =
                learner.learn_and_predict(&part.labels, &part.features, times.as_ref()).unwrap();
            answers.extend(named(&found.predicted));
        }
        (answers, learner)
    }
}

fn named(lists: &ListArray) -> Vec<Vec<String>> {
    let names = |list: ArrayRef| {
        list.as_string::<i32>().iter().flatten().map(str::to_string).collect::<Vec<_>>()
    };
    (0..lists.len()).map(|i| names(lists.value(i))).collect()
}

fn label_lists(rows: impl IntoIterator<Item = Option<Vec<String>>>) -> ArrayRef {
    let mut b = ListBuilder::new(StringBuilder::new());
    for row in rows {
        b.append_option(row.map(|r| r.into_iter().map(Some)));
    }
    Arc::new(b.finish())
}

fn columns(columns: Vec<(String, ArrayRef)>) -> ArrayRef {
    let named = columns
        .into_iter()
        .map(|(n, a)| (Arc::new(Field::new(n, a.data_type().clone(), true)), a))
        .collect::<Vec<_>>();
    Arc::new(StructArray::from(named))
}

/// A batch of columns.
fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<Field> =
        columns.iter().map(|(n, a)| Field::new(*n, a.data_type().clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    RecordBatch::try_new(schema, columns.into_iter().map(|c| c.1).collect()).unwrap()
}

/// The files of a directory that are not hidden, in name order.
fn files(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let paths = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    let hidden = |p: &std::path::Path| p.file_name().unwrap().to_str().unwrap().starts_with('.');
    let mut paths: Vec<_> = paths.filter(|p| !hidden(p)).collect();
    paths.sort();
    paths
}

/// Generated rows in batches of `size`.
fn generated(rows: u64, size: usize, drift: bool) -> Vec<RecordBatch> {
    let shape = GeneratorOptions { rows, features: 8, labels: 10, cardinality: 2.0, seed: 5 };
    let mut generator = Generator::try_new(shape).unwrap();
    if drift {
        generator = generator.with_drift();
    }
    generator.batches(size).collect::<Result<_, _>>().unwrap()
}

fn options(mode: Mode) -> StageOptions {
    StageOptions { mode, exclude: vec!["id".into()], ..StageOptions::default() }
}

fn stage(options: StageOptions) -> Stage {
    Stage::try_new(&Registry::default(), "naibx", options).unwrap()
}

/// Rows whose numbers depend on their labels; labels appear one after the other, some rows have no
/// labels known, some values are missing, one column is constant in most groups.
fn numbers(seed: u64, rows: usize, labels: usize, missing: f64) -> Table {
    let mut dice = Dice(seed);
    let (mut sets, mut values) = (Vec::new(), vec![Vec::new(); 5]);
    for row in 0..rows {
        let known = (2 + row / 20).min(labels);
        let set: Vec<usize> = (0..known).filter(|_| dice.uniform() < 0.3).collect();
        for (d, column) in values.iter_mut().enumerate() {
            let shift: f64 = set.iter().map(|&y| ((y * 7 + d * 3) % 5) as f64 - 2.0).sum();
            let x = match d {
                0 => f64::from(set.contains(&1) && dice.uniform() < 0.5),
                1 => (shift + dice.uniform()).round(),
                _ => shift + 4.0 * (dice.uniform() - 0.5),
            };
            column.push((dice.uniform() >= missing).then_some(x));
        }
        let names = set.iter().map(|y| format!("l{}", (y * 5) % 11)).collect();
        sets.push((dice.uniform() >= 0.1).then_some(names));
    }
    let named = values.into_iter().enumerate();
    let features =
        named.map(|(d, v)| (format!("f{d}"), Arc::new(Float64Array::from(v)) as ArrayRef));
    Table { labels: label_lists(sets), features: columns(features.collect()) }
}
