//! Fitted linear tasks.

use super::LogOdds;
use super::calibrate::Sigmoid;
use super::prepare::{Preparation, Prepare};
use crate::data::{FeatureId, Id, LabelId, Remap, Rows, Space, ValueId};
use crate::error::{Error, Result};
use crate::stats::{State, StateReader, StateWriter};
use ndarray::{ArrayView2, ArrayViewMut2, linalg::general_mat_mul};
use std::ops::Range;

/// How a task was solved: its last fit, or of all its fits (those on a part of the rows too) the one
/// that stopped farthest from its minimum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::models) struct Report {
    /// The weight of the penalty; 0 for a constant.
    pub(in crate::models) lambda: f64,
    /// Newton steps.
    pub(in crate::models) steps: usize,
    /// The norm of the gradient as a share of that at zero.
    pub(in crate::models) gradient: f64,
    /// Whether it converged before the limit of steps.
    pub(in crate::models) reached: bool,
}

impl Default for Report {
    fn default() -> Self {
        Report { lambda: 0.0, steps: 0, gradient: 0.0, reached: true }
    }
}

impl Report {
    /// This report, or `other` where that stopped farther from its minimum.
    pub(super) fn farther(self, other: Self) -> Self {
        let farther = !other.reached && (self.reached || other.gradient > self.gradient);
        if farther { Report { lambda: self.lambda, ..other } } else { self }
    }
}

/// Weights of all tasks for all columns: scoring is one matrix product.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::models) struct LinearScores {
    preparation: Preparation,
    values: usize,
    /// Column by column, one for each task.
    weights: Vec<f64>,
    intercept: Vec<f64>,
    parents: Vec<Vec<(LabelId, f64)>>,
    reports: Vec<Report>,
}

impl LinearScores {
    pub(super) fn new(preparation: Preparation, values: usize, tasks: usize) -> Self {
        let width = preparation.width(values);
        LinearScores {
            preparation,
            values,
            weights: vec![0.0; width * tasks],
            intercept: vec![0.0; tasks],
            parents: vec![Vec::new(); tasks],
            reports: vec![Report::default(); tasks],
        }
    }

    /// No tasks at all.
    pub(in crate::models) fn none() -> Self {
        LinearScores::new(Preparation::none(), 0, 0)
    }

    /// Task `task` has the same log-odds everywhere.
    pub(super) fn set_constant(&mut self, task: usize, log_odds: f64) {
        self.intercept[task] = log_odds;
    }

    /// Takes over the weights of a solution, in which label columns start at `first_label`.
    pub(super) fn set(
        &mut self,
        task: usize,
        weights: &[f64],
        first_label: u32,
        parents: &[LabelId],
        sigmoid: Sigmoid,
        report: Report,
    ) {
        let tasks = self.tasks();
        for (column, w) in self.weights.chunks_exact_mut(tasks).zip(weights) {
            column[task] = sigmoid.slope * w;
        }
        let last = weights.last().copied().unwrap_or(0.0);
        self.intercept[task] = sigmoid.slope * last + sigmoid.offset;
        let weight = |y: &LabelId| sigmoid.slope * weights[(first_label + y.0) as usize];
        self.parents[task] = parents.iter().map(|y| (*y, weight(y))).collect();
        self.reports[task] = report;
    }

    /// Takes over the reports of fits of the same tasks to a part of the rows.
    pub(in crate::models) fn also_fitted(&mut self, part: &Self) {
        self.reports
            .iter_mut()
            .zip(&part.reports)
            .for_each(|(mine, its)| *mine = mine.farther(*its));
    }

    /// How each task was solved.
    pub(in crate::models) fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// The features with the largest weights in task `task`, with their weights.
    pub(in crate::models) fn telling(
        &self,
        task: usize,
        space: &Space,
        most: usize,
    ) -> Vec<(String, f64)> {
        let features = &space.features;
        let (dense, sparse) = (features.dense_len(), features.sparse_len());
        let mut order: Vec<(usize, f64)> =
            self.of_task(task).enumerate().filter(|w| w.1 != 0.0).collect();
        order.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
        order.truncate(most);
        let name = |c: usize| match c {
            c if c < dense => features.dense_name(c as u32).to_string(),
            c if c < dense + sparse => features.sparse_name(FeatureId::new(c - dense)).to_string(),
            c => features
                .value(ValueId::new(c - dense - sparse))
                .map_or_else(String::new, |(column, value)| format!("{column}={value}")),
        };
        order.into_iter().map(|(c, w)| (name(c), w)).collect()
    }

    /// The same tasks with features and parents renumbered; tasks move to `tasks` (their new places).
    pub(in crate::models) fn remap(&self, ids: &Remap, tasks: &[u32]) -> Self {
        let (dense, sparse) = (self.dense_width(), ids.sparse.len());
        let (new_sparse, new_values) = (kept(&ids.sparse), kept(&ids.values));
        let column = |c: usize| match c {
            c if c < dense => Some(c),
            c if c < dense + sparse => {
                let id = ids.sparse[c - dense];
                (id != FeatureId::NONE).then_some(dense + id.index())
            }
            c => {
                let id = ids.values.get(c - dense - sparse).copied().unwrap_or(ValueId::NONE);
                (id != ValueId::NONE).then_some(dense + new_sparse + id.index())
            }
        };
        let preparation = self.preparation.remap(ids);
        let mut out = LinearScores::new(preparation, new_values, kept(tasks));
        for (old, &task) in tasks.iter().enumerate().filter(|(_, t)| **t != u32::NONE) {
            let task = task as usize;
            let tasks = out.tasks();
            for (c, w) in self.of_task(old).enumerate() {
                if let Some(c) = column(c) {
                    out.weights[c * tasks + task] = w;
                }
            }
            out.intercept[task] = self.intercept[old];
            out.reports[task] = self.reports[old];
            let parents = self.parents[old].iter().map(|&(y, w)| (ids.labels[y.index()], w));
            out.parents[task] = parents.filter(|p| p.0 != LabelId::NONE).collect();
            out.parents[task].sort_by_key(|p| p.0);
        }
        out
    }

    /// The weights of task `task`, column by column.
    fn of_task(&self, task: usize) -> impl Iterator<Item = f64> {
        self.weights.iter().skip(task).step_by(self.tasks().max(1)).copied()
    }

    fn dense_width(&self) -> usize {
        self.preparation.width(0) - self.preparation.sparse_len()
    }

    /// The tasks as a state.
    pub(in crate::models) fn encode(&self) -> State {
        let mut writer = StateWriter::default();
        writer.nested("preparation", self.preparation.encode());
        writer.f64s("weights", self.weights.iter().copied());
        writer.f64s("intercept", self.intercept.iter().copied());
        writer.u32s("parent_counts", self.parents.iter().map(|p| p.len() as u32));
        writer.u32s("parents", self.parents.iter().flatten().map(|p| p.0.0));
        writer.f64s("parent_weights", self.parents.iter().flatten().map(|p| p.1));
        writer.f64s("lambda", self.reports.iter().map(|r| r.lambda));
        writer.u32s("steps", self.reports.iter().map(|r| r.steps as u32));
        writer.f64s("gradient", self.reports.iter().map(|r| r.gradient));
        writer.u32s("reached", self.reports.iter().map(|r| u32::from(r.reached)));
        writer.finish()
    }

    /// The tasks in a state.
    ///
    /// # Errors
    ///
    /// `Corrupt` when it does not fit `space` and the number of tasks.
    pub(in crate::models) fn decode(
        prepare: Prepare,
        space: &Space,
        tasks: usize,
        state: &State,
    ) -> Result<Self> {
        let odd = || Error::corrupt("the model's weights do not fit its labels and features");
        let reader = StateReader::new(state);
        let preparation =
            Preparation::decode(prepare, &space.features, reader.nested("preparation")?)?;
        let values = space.features.value_len();
        let mut scores = LinearScores::new(preparation, values, tasks);
        let weights = reader.f64s("weights")?;
        let counts = reader.u32s("parent_counts")?;
        let (ids, links) = (reader.u32s("parents")?, reader.f64s("parent_weights")?);
        let (intercept, lambda) = (reader.f64s("intercept")?, reader.f64s("lambda")?);
        let (steps, gradient) = (reader.u32s("steps")?, reader.f64s("gradient")?);
        let reached = reader.u32s("reached")?;
        let finite = |v: &[f64]| v.iter().all(|x| x.is_finite());
        let lengths = [intercept.len(), counts.len(), lambda.len(), steps.len()];
        let fits = weights.len() == scores.weights.len()
            && lengths.iter().chain(&[gradient.len(), reached.len()]).all(|n| *n == tasks)
            && ids.len() == links.len()
            && counts.iter().map(|&n| u64::from(n)).sum::<u64>() == ids.len() as u64
            && ids.iter().all(|&y| (y as usize) < space.labels.len())
            && [weights, links, intercept, lambda, gradient].into_iter().all(finite);
        if !fits {
            return Err(odd());
        }
        scores.weights = weights.to_vec();
        scores.intercept = intercept.to_vec();
        let mut at = 0;
        for (t, &n) in counts.iter().enumerate() {
            let range = at..at + n as usize;
            at = range.end;
            let pairs =
                ids[range.clone()].iter().copied().map(LabelId).zip(links[range].iter().copied());
            scores.parents[t] = pairs.collect();
            scores.reports[t] = Report {
                lambda: lambda[t],
                steps: steps[t] as usize,
                gradient: gradient[t],
                reached: reached[t] == 1,
            };
        }
        Ok(scores)
    }

    /// Bytes on the heap.
    pub(in crate::models) fn heap_size(&self) -> usize {
        let parents: usize = self.parents.iter().map(|p| 24 + 16 * p.capacity()).sum();
        8 * self.weights.len() + 48 * self.intercept.len() + parents + self.preparation.heap_size()
    }
}

impl LogOdds for LinearScores {
    fn tasks(&self) -> usize {
        self.intercept.len()
    }

    fn write(&self, rows: &Rows, range: Range<usize>, out: &mut Vec<f64>) {
        out.clear();
        let tasks = self.tasks();
        if tasks == 0 {
            return;
        }
        range.clone().for_each(|_| out.extend_from_slice(&self.intercept));
        let dense = self.dense_width();
        if dense > 0 {
            let mut z = Vec::new();
            self.preparation.dense(rows, range.clone(), &mut z);
            let shapes = (
                ArrayView2::from_shape((range.len(), dense), &z),
                ArrayView2::from_shape((dense, tasks), &self.weights[..dense * tasks]),
                ArrayViewMut2::from_shape((range.len(), tasks), &mut *out),
            );
            if let (Ok(z), Ok(weights), Ok(mut out)) = shapes {
                general_mat_mul(1.0, &z, &weights, 1.0, &mut out);
            }
        }
        let sparse = &self.weights[dense * tasks..];
        for (row, out) in range.zip(out.chunks_exact_mut(tasks)) {
            self.preparation.sparse(rows, row, |id, x| {
                let weights = &sparse[id as usize * tasks..(id as usize + 1) * tasks];
                out.iter_mut().zip(weights).for_each(|(o, w)| *o += x * w);
            });
        }
    }

    fn parents(&self, task: usize) -> Vec<(LabelId, f64)> {
        self.parents[task].clone()
    }
}

/// How many of `ids` are not dropped.
fn kept<I: Id>(ids: &[I]) -> usize {
    ids.iter().filter(|id| **id != I::NONE).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fit_that_stopped_farthest_is_reported() {
        let last = Report { lambda: 0.1, steps: 5, gradient: 1e-9, reached: true };
        let near = Report { lambda: 1.0, steps: 9, gradient: 1e-3, reached: false };
        let far = Report { lambda: 10.0, steps: 8, gradient: 1e-2, reached: false };
        let there = Report { gradient: 0.5, ..last };
        assert_eq!(last.farther(there), last);
        assert_eq!(last.farther(near), Report { lambda: 0.1, ..near });
        assert_eq!(near.farther(far), Report { lambda: 1.0, ..far });
        assert_eq!(far.farther(near), far);
    }
}
