//! Labels that come later than their rows.

use super::layout::Layout;
use super::pending::{Origin, Role};
use super::stage::{Stage, added, half_learned, learner};
use crate::error::{Error, Result};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{Field, Int64Type, Schema};
use std::sync::Arc;

/// What is kept of a row that waits, by column.
const FEATURES: &str = "features";
const PREDICTED: &str = "predicted";
const VERSION: &str = "version";
const SCORES: &str = "scores";
const TIME: &str = "time";

impl Stage {
    /// Answers the rows without labels and learns those whose labels have come, with the features
    /// and the time they came with; gives the answers of then.
    pub(super) fn delayed(&mut self, batch: &RecordBatch, layout: &Layout) -> Result<RecordBatch> {
        let features = layout.features(batch)?;
        let (labels, times) = (layout.labels(batch)?, layout.times(batch)?);
        let keys = layout.keys(batch)?;
        let pending =
            self.pending.as_mut().ok_or_else(|| Error::internal("nothing waits for labels"))?;
        let roles = pending.roles(&keys, &labels)?;
        let asked: Vec<Option<Origin>> = roles.iter().enumerate().map(origin).collect();
        // A label without a row is not learned: its own features stand in, and are not looked at.
        let or_own = |(row, place): (usize, &Option<Origin>)| place.or(Some(Origin::Batch(row)));
        let places: Vec<_> = asked.iter().enumerate().map(or_own).collect();
        let joined = pending.gather(&features, &places, FEATURES)?;
        let times = times.map(|times| Arc::new(times) as ArrayRef);
        let joined_times = match &times {
            Some(times) => Some(pending.gather(times, &places, TIME)?),
            None => None,
        };
        let joined_times = joined_times.as_ref().map(|t| t.as_primitive::<Int64Type>().clone());
        let matched = |(row, role): (usize, &Role)| {
            matches!(role, Role::Answer { .. } | Role::AnswerTo(_)).then_some(row as u32)
        };
        let rows: UInt32Array = roles.iter().enumerate().map(matched).collect();
        let truth = take(&labels, &rows, None)?;
        let answers =
            learner(&mut self.brain)?.learn_and_predict(&truth, &joined, joined_times.as_ref())?;

        let versions: ArrayRef = Arc::new(UInt64Array::from(answers.versions));
        let mut own: Vec<(&str, ArrayRef)> = vec![
            (FEATURES, features),
            (PREDICTED, Arc::new(answers.predicted)),
            (VERSION, versions),
        ];
        own.extend(answers.scores.map(|scores| (SCORES, Arc::new(scores) as ArrayRef)));
        own.extend(times.map(|times| (TIME, times)));
        let told = Told { batch, keys, roles, asked, truth };
        record(own).and_then(|own| self.settle(&told, &own)).map_err(half_learned)
    }

    /// Lets rows wait or go, and gives what was answered when they came: now, or when they began to
    /// wait.
    fn settle(&mut self, told: &Told<'_>, own: &RecordBatch) -> Result<RecordBatch> {
        let pending =
            self.pending.as_mut().ok_or_else(|| Error::internal("nothing waits for labels"))?;
        let of_then = |name: &str| match own.column_by_name(name) {
            Some(own) => pending.gather(own, &told.asked, name).map(Some),
            None => Ok(None),
        };
        let missing = || Error::internal("rows without an answer");
        let predicted = of_then(PREDICTED)?.ok_or_else(missing)?;
        let versions = of_then(VERSION)?.ok_or_else(missing)?;
        let scores = of_then(SCORES)?;
        pending.settle(&told.keys, &told.roles, own)?;
        let unmatched = told.roles.iter().filter(|role| **role == Role::Unmatched).count();
        self.counts.unmatched += unmatched as u64;
        self.report.observe(&told.truth, &predicted)?;
        added(told.batch, Some(predicted), scores, versions.as_primitive().clone())
    }
}

/// A batch whose labels belong to rows that came before.
struct Told<'a> {
    batch: &'a RecordBatch,
    keys: StringArray,
    roles: Vec<Role>,
    /// For each row, the one that was asked.
    asked: Vec<Option<Origin>>,
    truth: ArrayRef,
}

/// The row that was asked, for a question itself and for its labels.
fn origin((row, role): (usize, &Role)) -> Option<Origin> {
    match *role {
        Role::Unmatched => None,
        Role::Question => Some(Origin::Batch(row)),
        Role::AnswerTo(asked) => Some(Origin::Batch(asked)),
        Role::Answer { segment, row } => Some(Origin::Store(segment, row)),
    }
}

/// Columns as a batch.
fn record(columns: Vec<(&str, ArrayRef)>) -> Result<RecordBatch> {
    let field =
        |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let columns = columns.into_iter().map(|c| c.1).collect();
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}
