//! The statistic that every measure of label sets is derived from.

use super::examples::ExampleSums;
use super::labels::LabelTables;
use super::{LabelOutcome, Metric};
use crate::data::{LabelId, LabelSets};
use crate::error::{Error, Result};
use crate::stats::{State, StateReader, StateWriter};

/// What is known about pairs of true and predicted label sets.
///
/// Every sum is a sum of whole numbers: any cut of the rows and any order of merging give the same
/// bits. Truth and prediction, and states that are merged, share one numbering of the labels;
/// [`remap`](Self::remap) changes it.
///
/// # Cost
///
/// A row costs a walk along its two sets and allocates nothing once all labels were seen. Memory
/// is 24 bytes per label. Micro and macro values walk along the labels.
///
/// # Examples
///
/// ```
/// use labelflow::data::LabelId;
/// use labelflow::metrics::{Metric, SetMetrics};
///
/// let mut monday = SetMetrics::default();
/// monday.observe(&[0, 2].map(LabelId), &[0, 1, 2].map(LabelId));
/// let mut tuesday = SetMetrics::default();
/// tuesday.observe(&[LabelId(1)], &[LabelId(1)]);
///
/// monday.merge(&tuesday);
/// assert_eq!(monday.rows(), 2);
/// assert_eq!(monday.value(Metric::ExactMatch, None), Some(0.5));
/// assert_eq!(monday.value(Metric::HammingScore, Some(5)), Some(0.9));
/// assert_eq!(SetMetrics::default().value(Metric::ExactMatch, None), None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetMetrics {
    pub(super) examples: ExampleSums,
    pub(super) labels: LabelTables,
}

impl SetMetrics {
    /// Adds a row: its true and its predicted labels, each distinct and ascending.
    pub fn observe(&mut self, truth: &[LabelId], predicted: &[LabelId]) {
        debug_assert!(truth.is_sorted_by(|a, b| a < b), "true labels must ascend");
        debug_assert!(predicted.is_sorted_by(|a, b| a < b), "predicted labels must ascend");
        let common = self.labels.observe(truth, predicted);
        self.examples.observe(truth.len(), predicted.len(), common);
    }

    /// Adds rows, one by one.
    ///
    /// # Errors
    ///
    /// `Internal` when there are not as many true as predicted sets; nothing is added then.
    pub fn observe_sets(&mut self, truth: &LabelSets, predicted: &LabelSets) -> Result<()> {
        if truth.len() != predicted.len() {
            return Err(Error::internal(format!(
                "{} true label sets cannot be compared with {} predicted ones",
                truth.len(),
                predicted.len()
            )));
        }
        truth.iter().zip(predicted.iter()).for_each(|(t, p)| self.observe(t, p));
        Ok(())
    }

    /// Adds what `other` has seen.
    pub fn merge(&mut self, other: &Self) {
        self.examples.merge(&other.examples);
        self.labels.merge(&other.labels);
    }

    /// The same statistic under new label numbers: label i becomes `new_ids[i]`.
    ///
    /// `new_ids` are distinct and cover every label seen. The counts of a label whose number is
    /// [`NONE`](crate::data::Id::NONE) are left out; what is known of rows stays.
    #[must_use]
    pub fn remap(&self, new_ids: &[LabelId]) -> Self {
        SetMetrics { examples: self.examples.clone(), labels: self.labels.remap(new_ids) }
    }

    /// The value of `metric`, or `None` when no row was seen or it measures scores.
    ///
    /// Hamming and macro measures are over `label_count` labels, the universe of the data set;
    /// without it over the [labels seen](Self::labels_seen). A count below the labels seen cannot
    /// be right and is raised to them, so that values stay between 0 and 1.
    ///
    /// What 0/0 is in each metric is fixed in the [module](crate::metrics#conventions).
    pub fn value(&self, metric: Metric, label_count: Option<usize>) -> Option<f64> {
        let labels = label_count.unwrap_or(0).max(self.labels_seen());
        if self.rows() > 0 { metric.of_sets(self, labels) } else { None }
    }

    /// How many rows were seen.
    pub fn rows(&self) -> u64 {
        self.examples.rows()
    }

    /// How many labels are true or predicted in some row.
    pub fn labels_seen(&self) -> usize {
        self.labels.seen()
    }

    /// The outcomes of every label seen, by ascending number.
    pub fn label_report(&self) -> Vec<LabelOutcome> {
        self.labels.outcomes().collect()
    }

    /// What was observed, as a state.
    ///
    /// Counts are exact up to 2^53.
    pub fn encode(&self) -> State {
        let mut writer = StateWriter::default();
        self.examples.write(&mut writer);
        self.labels.write(&mut writer);
        writer.finish()
    }

    /// The measures in a state.
    ///
    /// # Errors
    ///
    /// `Corrupt` when the row is not such a state.
    pub fn decode(state: &State) -> Result<Self> {
        let reader = StateReader::new(state);
        let examples = ExampleSums::read(reader)?;
        let labels = LabelTables::read(reader, examples.rows())?;
        Ok(SetMetrics { examples, labels })
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        self.labels.heap_size()
    }
}
