//! What a model says about rows, in a form that can be compared.

use super::subject::{ensure, text};
use crate::error::Result;
use crate::models::Model;
use arrow::array::{Array, ArrayRef, AsArray, ListArray};
use arrow::datatypes::Float64Type;

/// How far scores may be apart that are equal but for the order of additions.
pub const TOLERANCE: f64 = 1e-9;

/// Label sets and scores of consecutive rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    /// The predicted labels of each row.
    pub sets: Vec<Vec<String>>,
    /// Labels and scores of each row, best first.
    pub scores: Vec<Vec<(String, f64)>>,
}

impl Answers {
    /// What `model` says about `features`; answers that are not well formed are failures.
    pub fn of(model: &Model, features: &ArrayRef) -> Result<Self, String> {
        let sets = name_lists(&model.predict(features).map_err(text)?);
        let scores = scored(&model.score(features).map_err(text)?)?;
        let answers = Answers { sets, scores };
        answers.check(model, features.len())?;
        Ok(answers)
    }

    /// One answer per row, every label scored once, best first, with a probability.
    fn check(&self, model: &Model, rows: usize) -> Result<(), String> {
        let (sets, scores) = (self.sets.len(), self.scores.len());
        ensure(sets == rows && scores == rows, || {
            format!("{rows} rows get {sets} predictions and {scores} lists of scores")
        })?;
        let names: Vec<&str> = model.space().labels.names().collect();
        for (row, (set, scores)) in self.sets.iter().zip(&self.scores).enumerate() {
            ensure(set.is_sorted_by(|a, b| a < b), || {
                format!("row {row}: the labels {set:?} are not in name order, or stand twice")
            })?;
            if let Some(label) = set.iter().find(|l| !names.contains(&l.as_str())) {
                return Err(format!("row {row}: the predicted label `{label}` was never seen"));
            }
            if let Some((label, score)) = scores.iter().find(|s| !(0.0..=1.0).contains(&s.1)) {
                return Err(format!("row {row}: label `{label}` has score {score}"));
            }
            ensure(scores.is_sorted_by(|a, b| a.1 >= b.1), || {
                format!("row {row}: the scores {scores:?} are not ranked best first")
            })?;
            let mut scored: Vec<&str> = scores.iter().map(|s| s.0.as_str()).collect();
            scored.sort_unstable();
            ensure(scored == names, || {
                format!("row {row}: the labels {scored:?} are scored, expected {names:?}")
            })?;
        }
        Ok(())
    }

    /// The score of every label in every row, in name order.
    fn by_name(&self) -> Vec<Vec<(&str, f64)>> {
        let mut rows: Vec<Vec<(&str, f64)>> = Vec::new();
        for row in &self.scores {
            let mut row: Vec<(&str, f64)> = row.iter().map(|(l, s)| (l.as_str(), *s)).collect();
            row.sort_by(|a, b| a.0.cmp(b.0));
            rows.push(row);
        }
        rows
    }

    /// Whether `other` says the same: equal sets, scores at most `tolerance` apart.
    pub fn agree(&self, other: &Answers, tolerance: f64) -> Result<(), String> {
        ensure(self.sets.len() == other.sets.len(), || {
            format!("{} rows against {}", self.sets.len(), other.sets.len())
        })?;
        for (row, (a, b)) in self.by_name().iter().zip(other.by_name()).enumerate() {
            ensure(a.iter().map(|s| s.0).eq(b.iter().map(|s| s.0)), || {
                format!("row {row}: scored are {a:?} against {b:?}")
            })?;
            if let Some((a, b)) = a.iter().zip(&b).find(|(a, b)| (a.1 - b.1).abs() > tolerance) {
                return Err(format!("row {row}: label `{}` scores {} against {}", a.0, a.1, b.1));
            }
        }
        for (row, (a, b)) in self.sets.iter().zip(&other.sets).enumerate() {
            ensure(a == b, || format!("row {row}: predicted are {a:?} against {b:?}"))?;
        }
        Ok(())
    }

    /// The answers for the rows `order`, in that order.
    #[must_use]
    pub fn take(&self, order: &[u32]) -> Answers {
        Answers {
            sets: order.iter().map(|&r| self.sets[r as usize].clone()).collect(),
            scores: order.iter().map(|&r| self.scores[r as usize].clone()).collect(),
        }
    }
}

/// Whether two models know the same and say the same about `features`.
pub(super) fn same_models(
    a: &Model,
    b: &Model,
    features: &ArrayRef,
    tolerance: f64,
) -> Result<(), String> {
    ensure(a.rows() == b.rows(), || format!("{} rows seen against {}", a.rows(), b.rows()))?;
    let (here, there) = (a.space(), b.space());
    let names = |m: &Model| m.space().labels.names().map(str::to_string).collect::<Vec<_>>();
    ensure(here.labels == there.labels, || {
        format!("the labels are {:?} against {:?}", names(a), names(b))
    })?;
    let features_of = |m: &Model| {
        let all = m.space().features.features();
        all.into_iter().map(|f| f.name).collect::<Vec<_>>()
    };
    ensure(here.features == there.features, || {
        format!("the features are {:?} against {:?}", features_of(a), features_of(b))
    })?;
    Answers::of(a, features)?.agree(&Answers::of(b, features)?, tolerance)
}

/// The texts of a list column; NULL lists are empty.
pub(super) fn name_lists(lists: &ListArray) -> Vec<Vec<String>> {
    let texts = |row: Option<ArrayRef>| {
        let row = row.as_ref().and_then(|r| r.as_string_opt::<i32>());
        row.into_iter().flatten().flatten().map(str::to_string).collect()
    };
    lists.iter().map(texts).collect()
}

fn scored(lists: &ListArray) -> Result<Vec<Vec<(String, f64)>>, String> {
    let row = |row: Option<ArrayRef>| {
        let row = row?;
        let entries = row.as_struct_opt()?;
        let labels = entries.column_by_name("label")?.as_string_opt::<i32>()?;
        let scores = entries.column_by_name("score")?.as_primitive_opt::<Float64Type>()?;
        let text = |l: Option<&str>| l.unwrap_or_default().to_string();
        Some(labels.iter().map(text).zip(scores.values().iter().copied()).collect())
    };
    let rows: Option<Vec<_>> = lists.iter().map(row).collect();
    rows.ok_or_else(|| format!("scores are of type {}", lists.data_type()))
}
