//! A running report as record batches and as JSON.

use super::{RunningReport, Stage};
use crate::error::Result;
use crate::metrics::Metric;
use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The most labels whose drift is named in one line of JSON.
const NAMED: usize = 20;
/// The most labels whose counts stand in one line of JSON.
const COUNTED: usize = 100;

impl RunningReport {
    fn scopes(&self) -> [(&'static str, Vec<(Metric, f64)>); 3] {
        [("cumulative", self.cumulative()), ("window", self.windowed()), ("faded", self.faded())]
    }

    /// The measures, one per row: `rows` scored, `scope` (cumulative, window or faded), `metric`
    /// and `value`.
    ///
    /// # Errors
    ///
    /// Only when Arrow refuses the batch.
    pub fn metric_batch(&self) -> Result<RecordBatch> {
        let lines: Vec<(&str, Metric, f64)> = self
            .scopes()
            .into_iter()
            .flat_map(|(scope, values)| values.into_iter().map(move |(m, v)| (scope, m, v)))
            .collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("rows", Arc::new(UInt64Array::from(vec![self.rows(); lines.len()]))),
            ("scope", Arc::new(StringArray::from_iter_values(lines.iter().map(|l| l.0)))),
            ("metric", Arc::new(StringArray::from_iter_values(lines.iter().map(|l| l.1.name())))),
            ("value", Arc::new(Float64Array::from_iter_values(lines.iter().map(|l| l.2)))),
        ];
        Ok(RecordBatch::try_from_iter(columns)?)
    }

    /// What is known of each label, one per row, in name order.
    ///
    /// # Errors
    ///
    /// Only when Arrow refuses the batch.
    pub fn label_batch(&self) -> Result<RecordBatch> {
        let lines = self.labels();
        let whole = |value: fn(&super::LabelLine) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(lines.iter().map(value)))
        };
        let errors = lines.iter().map(|l| l.recent_error);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("label", Arc::new(StringArray::from_iter_values(lines.iter().map(|l| &l.label)))),
            ("actual", whole(|l| l.actual)),
            ("predicted", whole(|l| l.predicted)),
            ("right", whole(|l| l.right)),
            ("recent_error", Arc::new(Float64Array::from_iter_values(errors))),
            ("drifted_at", Arc::new(lines.iter().map(|l| l.drifted_at).collect::<UInt64Array>())),
        ];
        let nullable = columns.into_iter().map(|(n, a)| (n, a, n == "drifted_at"));
        Ok(RecordBatch::try_from_iter_with_nullable(nullable)?)
    }
}

impl Stage {
    /// The report as one JSON object: what was done, the measures, the labels that drifted, latest
    /// first, at most 20, and counts of the most frequent labels, at most 100; the others, and those
    /// that lost their place, are counted together.
    pub fn report_json(&self) -> Value {
        let (report, counts, (waiting, given_up)) = (self.report(), self.counts(), self.waiting());
        let mut out = json!({
            "rows": counts.rows,
            "learned": self.learned(),
            "update_every": self.update_every(),
            "scores_every": self.scores_every(),
            "scored": report.rows(),
            "refused_batches": counts.refused_batches,
            "refused_rows": counts.refused_rows,
            "waiting": waiting,
            "given_up": given_up,
            "unmatched": counts.unmatched,
        });
        for (scope, values) in report.scopes() {
            let values: Map<String, Value> =
                values.into_iter().map(|(m, v)| (m.name().to_string(), json!(v))).collect();
            out[scope] = Value::Object(values);
        }
        let drifted = report.drifted().into_iter().take(NAMED);
        out["drifted"] = drifted.map(|(at, label)| json!({ "label": label, "at": at })).collect();
        let mut lines = report.labels();
        // Stable: labels that are as frequent stay in name order.
        lines.sort_by_key(|line| std::cmp::Reverse(line.actual.max(line.predicted)));
        let others = lines.split_off(lines.len().min(COUNTED));
        out["labels"] = lines
            .iter()
            .map(|l| {
                let (label, error) = (&l.label, l.recent_error);
                let (actual, predicted, right) = (l.actual, l.predicted, l.right);
                json!({ "label": label, "actual": actual, "predicted": predicted, "right": right,
                        "recent_error": error })
            })
            .collect();
        let (departed, outcome) = report.departed();
        let sum = |value: fn(&super::LabelLine) -> u64| others.iter().map(value).sum::<u64>();
        let right = outcome.true_positive;
        out["other_labels"] = json!({
            "labels": departed + others.len() as u64,
            "actual": outcome.support() + sum(|l| l.actual),
            "predicted": right + outcome.false_positive + sum(|l| l.predicted),
            "right": right + sum(|l| l.right),
        });
        out
    }
}
