//! How good the answers of a stream are, and whether it changes.

use super::Adwin;
use crate::data::{Id, LabelId, LabelReader, LabelSets, Vocabulary};
use crate::error::{Error, Result};
use crate::metrics::{LabelOutcome, Metric, SetMetrics};
use crate::stats::{State, StateReader, StateWriter};
use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

/// Blocks of the window.
const BLOCKS: u64 = 16;
/// How often drift may be seen where there is none.
const DELTA: f64 = 0.002;
/// What is reported.
pub(super) const METRICS: [Metric; 7] = [
    Metric::HammingScore,
    Metric::ExactMatch,
    Metric::Jaccard,
    Metric::Precision,
    Metric::Recall,
    Metric::F1,
    Metric::MicroF1,
];

/// Running measures of a stream: of all rows, of the last ones, and fading.
///
/// Rows whose true labels are unknown do not count. Drift is looked for label by label with
/// [`Adwin`], over the rows in which the label was true or predicted: is it still predicted as
/// rightly as before? A label drifts when it is predicted worse.
///
/// # Cost
///
/// A row costs its labels. Memory follows the number of labels; where labels come and go,
/// [`RunningReport::keep`] bounds it.
#[derive(Debug)]
pub struct RunningReport {
    window: u64,
    /// In how many rows a label must be seen to keep its place.
    keep: Option<u64>,
    labels: Vocabulary<LabelId>,
    all: SetMetrics,
    /// The blocks of the window that are full, oldest first, and the one that is not.
    blocks: VecDeque<SetMetrics>,
    open: SetMetrics,
    /// Fading sums of each metric, and their weight.
    faded: Vec<f64>,
    faded_weight: f64,
    drift: Vec<Adwin>,
    /// By label, the number of the row at which it last drifted, plus one.
    drifted: Vec<u64>,
    /// By label, how many rows there were when it was last true or predicted.
    seen: Vec<u64>,
    /// What is known of labels that lost their place, and how many there were.
    departed: LabelOutcome,
    departed_labels: u64,
    truth: LabelSets,
    predicted: LabelSets,
}

impl RunningReport {
    /// A report whose window is the last `window` rows; fading measures halve in as many.
    pub fn new(window: u64) -> Self {
        RunningReport {
            window: window.max(BLOCKS),
            keep: None,
            labels: Vocabulary::default(),
            all: SetMetrics::default(),
            blocks: VecDeque::new(),
            open: SetMetrics::default(),
            faded: vec![0.0; METRICS.len()],
            faded_weight: 0.0,
            drift: Vec::new(),
            drifted: Vec::new(),
            seen: Vec::new(),
            departed: LabelOutcome::none(LabelId::NONE),
            departed_labels: 0,
            truth: LabelSets::default(),
            predicted: LabelSets::default(),
        }
    }

    /// The same report, in which a label that is neither true nor predicted in `rows` scored rows
    /// (at least two windows) loses its place: its counts stay in measures of all rows, and the
    /// report tells of such labels together ([`RunningReport::departed`]).
    #[must_use]
    pub fn keep(mut self, rows: u64) -> Self {
        // What is in a block of the window has a place.
        self.keep = Some(rows.max(self.window.saturating_mul(2)));
        self
    }

    /// Adds the rows whose true labels are known.
    ///
    /// # Errors
    ///
    /// Columns that hold no labels; the report is then as it was.
    pub fn observe(&mut self, truth: &ArrayRef, predicted: &ArrayRef) -> Result<()> {
        let Some(keep) = self.keep else { return self.observe_part(truth, predicted) };
        // Places are taken at fixed rows, whatever the batches are; so all is checked before.
        let mut checked = LabelSets::default();
        let (mut truth, mut predicted) = (Arc::clone(truth), Arc::clone(predicted));
        if let Some(rows) = LabelReader::read(&truth, &mut checked, |_| Ok(None))? {
            let rows = UInt32Array::from(rows);
            (truth, predicted) = (take(&truth, &rows, None)?, take(&predicted, &rows, None)?);
        }
        LabelReader::read(&predicted, &mut checked, |_| Ok(None))?;
        let step = keep / 8;
        let mut start = 0;
        while start < truth.len() {
            let left = usize::try_from(step - self.rows() % step).unwrap_or(usize::MAX);
            let len = left.min(truth.len() - start);
            self.observe_part(&truth.slice(start, len), &predicted.slice(start, len))?;
            if self.rows().is_multiple_of(step) {
                self.compact(keep);
            }
            start += len;
        }
        Ok(())
    }

    fn observe_part(&mut self, truth: &ArrayRef, predicted: &ArrayRef) -> Result<()> {
        let known = self.labels.len();
        let read = self.read(truth, predicted);
        if read.is_err() {
            self.labels.truncate(known);
            return read;
        }
        self.drift.resize(self.labels.len(), Adwin::new(DELTA));
        self.drifted.resize(self.labels.len(), 0);
        self.seen.resize(self.labels.len(), self.all.rows());
        for row in 0..self.truth.len() {
            self.observe_row(row);
        }
        Ok(())
    }

    /// Reads the sets of rows whose true labels are known.
    fn read(&mut self, truth: &ArrayRef, predicted: &ArrayRef) -> Result<()> {
        self.truth.clear();
        self.predicted.clear();
        let labels = &mut self.labels;
        let known = LabelReader::read(truth, &mut self.truth, |n| Ok(Some(labels.intern(n))))?;
        let predicted = match known {
            None => predicted.clone(),
            Some(rows) => take(predicted, &UInt32Array::from(rows), None)?,
        };
        LabelReader::read(&predicted, &mut self.predicted, |n| Ok(Some(labels.intern(n))))?;
        if self.truth.len() != self.predicted.len() {
            return Err(Error::internal("rows without an answer cannot be scored"));
        }
        Ok(())
    }

    /// Takes the places of labels that were not seen for long, when they are as many as the others.
    fn compact(&mut self, keep: u64) {
        let now = self.all.rows();
        let gone = |seen: u64| now - seen >= keep;
        let many = self.seen.iter().filter(|seen| gone(**seen)).count();
        if many == 0 || 2 * many < self.labels.len() {
            return;
        }
        let mut labels = Vocabulary::default();
        let new_ids: Vec<LabelId> = self
            .labels
            .ids()
            .map(|id| match gone(self.seen[id.index()]) {
                true => LabelId::NONE,
                false => labels.intern_of(&self.labels, id),
            })
            .collect();
        for outcome in self.all.label_report() {
            if new_ids[outcome.label.index()] == LabelId::NONE {
                self.departed.add(&outcome);
            }
        }
        self.departed_labels += many as u64;
        let kept = |id: &usize| new_ids[*id] != LabelId::NONE;
        let ids = || (0..new_ids.len()).filter(kept);
        self.drift = ids().map(|id| self.drift[id].clone()).collect();
        self.drifted = ids().map(|id| self.drifted[id]).collect();
        self.seen = ids().map(|id| self.seen[id]).collect();
        self.all = self.all.remap(&new_ids);
        self.open = self.open.remap(&new_ids);
        self.blocks.iter_mut().for_each(|block| *block = block.remap(&new_ids));
        self.labels = labels;
    }

    fn observe_row(&mut self, row: usize) {
        let (truth, predicted) = (self.truth.row(row), self.predicted.row(row));
        self.all.observe(truth, predicted);
        self.open.observe(truth, predicted);
        let now = self.all.rows();
        each_label(truth, predicted, |label, right| {
            self.seen[label.index()] = now;
            let change = self.drift[label.index()].observe(f64::from(!right));
            if change.is_some_and(|c| c.to > c.from) {
                self.drifted[label.index()] = now;
            }
        });
        let block = self.window / BLOCKS;
        if self.open.rows() >= block {
            let full = std::mem::take(&mut self.open);
            let fade = (-(block as f64) / self.window as f64).exp2();
            for (sum, metric) in self.faded.iter_mut().zip(METRICS) {
                let value = full.value(metric, Some(self.labels.len())).unwrap_or(0.0);
                *sum = *sum * fade + value * block as f64;
            }
            self.faded_weight = self.faded_weight * fade + block as f64;
            self.blocks.push_back(full);
            if self.blocks.len() as u64 > BLOCKS {
                self.blocks.pop_front();
            }
        }
    }

    /// How many rows were scored.
    pub fn rows(&self) -> u64 {
        self.all.rows()
    }

    /// The measures of all rows.
    pub fn cumulative(&self) -> Vec<(Metric, f64)> {
        let mut values = self.values(&self.all);
        if self.departed_labels > 0 {
            let mut total = self.departed;
            self.all.label_report().iter().for_each(|outcome| total.add(outcome));
            let cells =
                self.all.rows() as f64 * (self.labels.len() as f64 + self.departed_labels as f64);
            let wrong = (total.false_positive + total.false_negative) as f64;
            for (metric, value) in &mut values {
                match metric {
                    Metric::HammingScore => *value = 1.0 - wrong / cells,
                    Metric::MicroF1 => *value = total.f1(),
                    _ => {}
                }
            }
        }
        values
    }

    /// The measures of the last rows: as many as the window has, up to a sixteenth.
    pub fn windowed(&self) -> Vec<(Metric, f64)> {
        let mut last = self.open.clone();
        self.blocks.iter().for_each(|block| last.merge(block));
        self.values(&last)
    }

    /// Means of the measures of blocks (a sixteenth of the window each), older ones counting less.
    pub fn faded(&self) -> Vec<(Metric, f64)> {
        if self.faded_weight == 0.0 {
            return Vec::new();
        }
        METRICS.iter().zip(&self.faded).map(|(m, sum)| (*m, sum / self.faded_weight)).collect()
    }

    fn values(&self, sets: &SetMetrics) -> Vec<(Metric, f64)> {
        let value = |m: &Metric| Some((*m, sets.value(*m, Some(self.labels.len()))?));
        METRICS.iter().filter_map(value).collect()
    }

    /// What is known of each label, by name.
    pub fn labels(&self) -> Vec<LabelLine> {
        let mut lines: Vec<LabelLine> = self
            .all
            .label_report()
            .into_iter()
            .map(|outcome| {
                let at = outcome.label.index();
                LabelLine {
                    label: self.labels.name(outcome.label).to_string(),
                    actual: outcome.true_positive + outcome.false_negative,
                    predicted: outcome.true_positive + outcome.false_positive,
                    right: outcome.true_positive,
                    recent_error: self.drift.get(at).map_or(0.0, Adwin::mean),
                    drifted_at: self.drifted.get(at).copied().filter(|row| *row > 0),
                }
            })
            .collect();
        lines.sort_by(|a, b| a.label.as_bytes().cmp(b.label.as_bytes()));
        lines
    }

    /// How many labels lost their place ([`RunningReport::keep`]), and their outcomes together, which
    /// are those of no label. One that comes back and leaves again counts twice.
    pub fn departed(&self) -> (u64, LabelOutcome) {
        (self.departed_labels, self.departed)
    }

    /// The labels that are predicted worse than before, each with the number of rows that had been
    /// scored when that was seen; latest first.
    pub fn drifted(&self) -> Vec<(u64, String)> {
        let at = |line: LabelLine| Some((line.drifted_at?, line.label));
        let mut drifted: Vec<(u64, String)> = self.labels().into_iter().filter_map(at).collect();
        drifted.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        drifted
    }

    /// What was measured, as a state.
    pub(super) fn encode(&self) -> State {
        let mut writer = StateWriter::default();
        writer.nested("all", self.all.encode());
        writer.nested("open", self.open.encode());
        writer.u32s("blocks", [self.blocks.len() as u32]);
        for (i, block) in self.blocks.iter().enumerate() {
            writer.nested(format!("block{i}"), block.encode());
        }
        writer.f64s("faded", self.faded.iter().copied().chain([self.faded_weight]));
        writer.f64s("drifted", self.drifted.iter().map(|row| *row as f64));
        writer.f64s("seen", self.seen.iter().map(|row| *row as f64));
        let LabelOutcome { true_positive, false_positive, false_negative, .. } = self.departed;
        let departed = [self.departed_labels, true_positive, false_positive, false_negative];
        writer.f64s("departed", departed.map(|n| n as f64));
        let drift: Vec<Vec<f64>> = self.drift.iter().map(Adwin::numbers).collect();
        writer.u32s("drift_lengths", drift.iter().map(|d| d.len() as u32));
        writer.f64s("drift", drift.into_iter().flatten());
        let names: Vec<u32> = self.labels.names().map(|n| n.len() as u32).collect();
        writer.u32s("name_lengths", names);
        let bytes = self.labels.names().flat_map(str::bytes).map(u32::from);
        writer.u32s("names", bytes);
        writer.finish()
    }

    /// The report whose state [`RunningReport::encode`] gave.
    pub(super) fn decode(empty: RunningReport, state: &State) -> Result<Self> {
        let unfit = || Error::corrupt("the state of a report does not fit together");
        let reader = StateReader::new(state);
        let mut report = empty;
        report.all = SetMetrics::decode(reader.nested("all")?)?;
        report.open = SetMetrics::decode(reader.nested("open")?)?;
        for i in 0..reader.u32s("blocks")?.first().copied().unwrap_or(0) {
            report.blocks.push_back(SetMetrics::decode(reader.nested(&format!("block{i}"))?)?);
        }
        let faded = reader.f64s("faded")?;
        let (weight, sums) = faded.split_last().ok_or_else(unfit)?;
        if sums.len() != METRICS.len() {
            return Err(unfit());
        }
        (report.faded, report.faded_weight) = (sums.to_vec(), *weight);
        report.drifted = reader.f64s("drifted")?.iter().map(|row| *row as u64).collect();
        report.seen = reader.f64s("seen")?.iter().map(|row| *row as u64).collect();
        let &[departed, hits, extra, missed] = reader.f64s("departed")? else {
            return Err(unfit());
        };
        report.departed_labels = departed as u64;
        report.departed.true_positive = hits as u64;
        report.departed.false_positive = extra as u64;
        report.departed.false_negative = missed as u64;
        let mut numbers = reader.f64s("drift")?;
        for &len in reader.u32s("drift_lengths")? {
            let (one, rest) = numbers.split_at_checked(len as usize).ok_or_else(unfit)?;
            report.drift.push(Adwin::from_numbers(DELTA, one)?);
            numbers = rest;
        }
        let mut bytes = reader.u32s("names")?;
        for &len in reader.u32s("name_lengths")? {
            let (name, rest) = bytes.split_at_checked(len as usize).ok_or_else(unfit)?;
            let name: Vec<u8> = name.iter().map(|b| *b as u8).collect();
            report.labels.intern(std::str::from_utf8(&name).map_err(|_| unfit())?);
            bytes = rest;
        }
        let labels = report.labels.len();
        let lengths = [report.drift.len(), report.drifted.len(), report.seen.len()];
        if lengths.iter().any(|length| *length != labels) {
            return Err(unfit());
        }
        Ok(report)
    }
}

/// What a stream says about one label.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelLine {
    /// The label.
    pub label: String,
    /// Rows that have it.
    pub actual: u64,
    /// Rows it was predicted for.
    pub predicted: u64,
    /// Rows it was rightly predicted for.
    pub right: u64,
    /// The share of rows with a wrong answer, of those in which it was true or predicted, since
    /// the last change.
    pub recent_error: f64,
    /// How many rows had been scored when it was last seen to be predicted worse than before.
    pub drifted_at: Option<u64>,
}

/// Calls `found` for every label that is true or predicted, with whether it is both.
fn each_label(truth: &[LabelId], predicted: &[LabelId], mut found: impl FnMut(LabelId, bool)) {
    let (mut t, mut p) = (0, 0);
    loop {
        let next = match (truth.get(t), predicted.get(p)) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.cmp(b),
        };
        match next {
            Ordering::Less => found(truth[t], false),
            Ordering::Greater => found(predicted[p], false),
            Ordering::Equal => found(truth[t], true),
        }
        t += usize::from(next.is_le());
        p += usize::from(next.is_ge());
    }
}
