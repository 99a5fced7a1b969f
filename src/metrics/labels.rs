//! Contingency tables of labels, pooled over labels (micro) or averaged (macro).

use super::SetMetrics;
use super::ratio_sum::{read_count, unfit};
use crate::data::{Id, LabelId};
use crate::error::Result;
use crate::stats::{StateReader, StateWriter};
use std::cmp::Ordering;

/// How often one label was predicted rightly and wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LabelOutcome {
    /// The label's number.
    pub label: LabelId,
    /// Rows where it is true and predicted.
    pub true_positive: u64,
    /// Rows where it is predicted but not true.
    pub false_positive: u64,
    /// Rows where it is true but not predicted.
    pub false_negative: u64,
}

impl LabelOutcome {
    /// The outcome of a label that is never true and never predicted.
    pub fn none(label: LabelId) -> Self {
        LabelOutcome { label, true_positive: 0, false_positive: 0, false_negative: 0 }
    }

    /// Adds the rows of `other`.
    pub fn add(&mut self, other: &Self) {
        self.true_positive += other.true_positive;
        self.false_positive += other.false_positive;
        self.false_negative += other.false_negative;
    }

    /// Rows where the label is true.
    pub fn support(&self) -> u64 {
        self.true_positive + self.false_negative
    }

    /// TP / (TP + FP); 0/0 is 0.
    pub fn precision(&self) -> f64 {
        ratio_or_zero(self.of_predicted())
    }

    /// TP / (TP + FN); 0/0 is 0.
    pub fn recall(&self) -> f64 {
        ratio_or_zero(self.of_true())
    }

    /// 2 TP / (2 TP + FP + FN); 0/0 is 0.
    pub fn f1(&self) -> f64 {
        ratio_or_zero(self.of_both())
    }

    /// Whether it is never true and never predicted.
    fn is_empty(&self) -> bool {
        self.of_both().1 == 0
    }

    /// TP / (TP + FP), the part and the whole.
    fn of_predicted(&self) -> (u64, u64) {
        (self.true_positive, self.true_positive + self.false_positive)
    }

    /// TP / (TP + FN), the part and the whole.
    fn of_true(&self) -> (u64, u64) {
        (self.true_positive, self.support())
    }

    /// 2 TP / (2 TP + FP + FN), the part and the whole.
    fn of_both(&self) -> (u64, u64) {
        let twice = 2 * self.true_positive;
        (twice, twice + self.false_positive + self.false_negative)
    }
}

/// The fields of a state.
const FIELDS: [&str; 3] = ["true_positive", "false_positive", "false_negative"];

/// The contingency table of every label, by id; the last one is not empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LabelTables(Vec<LabelOutcome>);

impl LabelTables {
    /// Adds a row of two ascending sets and returns how many labels they share.
    pub(super) fn observe(&mut self, truth: &[LabelId], predicted: &[LabelId]) -> usize {
        let (mut t, mut p, mut common) = (0, 0, 0);
        while let (Some(&of_truth), Some(&of_predicted)) = (truth.get(t), predicted.get(p)) {
            match of_truth.cmp(&of_predicted) {
                Ordering::Less => {
                    self.table(of_truth).false_negative += 1;
                    t += 1;
                }
                Ordering::Greater => {
                    self.table(of_predicted).false_positive += 1;
                    p += 1;
                }
                Ordering::Equal => {
                    self.table(of_truth).true_positive += 1;
                    (t, p, common) = (t + 1, p + 1, common + 1);
                }
            }
        }
        truth[t..].iter().for_each(|&label| self.table(label).false_negative += 1);
        predicted[p..].iter().for_each(|&label| self.table(label).false_positive += 1);
        common
    }

    /// The table of `label`, made when it is new; the caller counts something in it.
    fn table(&mut self, label: LabelId) -> &mut LabelOutcome {
        self.grow(label.index() + 1);
        &mut self.0[label.index()]
    }

    fn grow(&mut self, labels: usize) {
        let new = self.0.len()..labels;
        self.0.extend(new.map(|label| LabelOutcome::none(LabelId::new(label))));
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.grow(other.0.len());
        self.0.iter_mut().zip(&other.0).for_each(|(own, more)| own.add(more));
    }

    pub(super) fn remap(&self, new_ids: &[LabelId]) -> Self {
        debug_assert!(new_ids.len() >= self.0.len(), "every label needs a new number");
        let mut out = LabelTables::default();
        let kept =
            self.0.iter().zip(new_ids).filter(|(t, id)| !t.is_empty() && **id != LabelId::NONE);
        for (table, &id) in kept {
            out.table(id).add(table);
        }
        out
    }

    /// The labels that are true or predicted in some row.
    pub(super) fn seen(&self) -> usize {
        self.0.iter().filter(|table| !table.is_empty()).count()
    }

    pub(super) fn outcomes(&self) -> impl Iterator<Item = LabelOutcome> {
        self.0.iter().filter(|table| !table.is_empty()).copied()
    }

    pub(super) fn heap_size(&self) -> usize {
        self.0.capacity() * size_of::<LabelOutcome>()
    }

    pub(super) fn write(&self, writer: &mut StateWriter) {
        let tables = self.0.iter();
        writer.f64s(FIELDS[0], tables.clone().map(|table| table.true_positive as f64));
        writer.f64s(FIELDS[1], tables.clone().map(|table| table.false_positive as f64));
        writer.f64s(FIELDS[2], tables.map(|table| table.false_negative as f64));
    }

    /// The tables of a state of `rows` rows.
    pub(super) fn read(reader: StateReader<'_>, rows: u64) -> Result<Self> {
        let [hits, extra, missed] = FIELDS.map(|name| reader.f64s(name));
        let (hits, extra, missed) = (hits?, extra?, missed?);
        if hits.len() != extra.len() || hits.len() != missed.len() {
            return Err(unfit(FIELDS[0]));
        }
        let mut tables = Vec::with_capacity(hits.len());
        for ((&hits, &extra), &missed) in hits.iter().zip(extra).zip(missed) {
            let table = LabelOutcome {
                label: LabelId::new(tables.len()),
                true_positive: read_count(FIELDS[0], hits, rows)?,
                false_positive: read_count(FIELDS[1], extra, rows)?,
                false_negative: read_count(FIELDS[2], missed, rows)?,
            };
            // A label has at most one outcome in a row.
            if table.true_positive + table.false_positive + table.false_negative > rows {
                return Err(unfit(FIELDS[0]));
            }
            tables.push(table);
        }
        if tables.last().is_some_and(LabelOutcome::is_empty) {
            return Err(unfit(FIELDS[0]));
        }
        Ok(LabelTables(tables))
    }

    /// The outcomes of all labels together.
    fn total(&self) -> LabelOutcome {
        self.0.iter().fold(LabelOutcome::none(LabelId::NONE), |mut total, table| {
            total.add(table);
            total
        })
    }

    /// The ratio of the pooled table; 0/0 is 1 when the table is empty, else 0.
    fn micro(&self, ratio: fn(&LabelOutcome) -> (u64, u64)) -> f64 {
        let total = self.total();
        if total.is_empty() { 1.0 } else { ratio_or_zero(ratio(&total)) }
    }

    /// The mean ratio of `label_count` labels; 0/0 is 0, and labels without a table count 0.
    fn mean(&self, ratio: fn(&LabelOutcome) -> (u64, u64), label_count: usize) -> f64 {
        if label_count == 0 {
            return 1.0;
        }
        let sum: f64 = self.0.iter().map(|table| ratio_or_zero(ratio(table))).sum();
        sum / label_count as f64
    }
}

fn ratio_or_zero((part, whole): (u64, u64)) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// 1 - (FP + FN of all labels) / (n L).
pub(super) fn hamming_score(sets: &SetMetrics, label_count: usize) -> f64 {
    let total = sets.labels.total();
    let wrong = total.false_positive + total.false_negative;
    if wrong == 0 { 1.0 } else { 1.0 - wrong as f64 / (sets.rows() as f64 * label_count as f64) }
}

/// Precision of the pooled table.
pub(super) fn micro_precision(sets: &SetMetrics, _: usize) -> f64 {
    sets.labels.micro(LabelOutcome::of_predicted)
}

/// Recall of the pooled table.
pub(super) fn micro_recall(sets: &SetMetrics, _: usize) -> f64 {
    sets.labels.micro(LabelOutcome::of_true)
}

/// F1 of the pooled table.
pub(super) fn micro_f1(sets: &SetMetrics, _: usize) -> f64 {
    sets.labels.micro(LabelOutcome::of_both)
}

/// Precision of a label, mean of labels.
pub(super) fn macro_precision(sets: &SetMetrics, label_count: usize) -> f64 {
    sets.labels.mean(LabelOutcome::of_predicted, label_count)
}

/// Recall of a label, mean of labels.
pub(super) fn macro_recall(sets: &SetMetrics, label_count: usize) -> f64 {
    sets.labels.mean(LabelOutcome::of_true, label_count)
}

/// F1 of a label, mean of labels; not the harmonic mean of the two means.
pub(super) fn macro_f1(sets: &SetMetrics, label_count: usize) -> f64 {
    sets.labels.mean(LabelOutcome::of_both, label_count)
}

/// Predicted labels of all rows, over n.
pub(super) fn label_cardinality(sets: &SetMetrics, _: usize) -> f64 {
    let (_, predicted) = sets.labels.total().of_predicted();
    predicted as f64 / sets.rows() as f64
}
