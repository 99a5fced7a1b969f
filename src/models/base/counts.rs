//! Naive Bayes of labels against their absence, from counts alone.

use super::super::likelihood::{GroupInput, Likelihood, telling};
use super::LogOdds;
use crate::data::{FeatureSpace, Id, LabelId, Remap, Rows, Space, Used};
use crate::error::{Error, Result};
use crate::stats::{
    ByLabel, FeatureStats, LabelCounts, LabelPairs, OneGroup, State, StateReader, StateWriter,
    Statistic,
};
use std::ops::Range;

/// The counts from which every label is told from features and other labels.
///
/// A parent is one more binary feature: what it says about a label follows from how often both occur.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::models) struct BinaryCounts {
    labels: LabelCounts,
    pairs: LabelPairs,
    by_label: FeatureStats<ByLabel>,
    all: FeatureStats<OneGroup>,
}

impl BinaryCounts {
    pub(in crate::models) fn new() -> Self {
        BinaryCounts {
            labels: LabelCounts::default(),
            pairs: LabelPairs::default(),
            by_label: FeatureStats::default(),
            all: FeatureStats::default(),
        }
    }

    pub(in crate::models) fn observe(&mut self, rows: &Rows, features: &FeatureSpace) {
        self.labels.observe(rows, features);
        self.pairs.observe(rows, features);
        self.by_label.observe(rows, features);
        self.all.observe(rows, features);
    }

    pub(in crate::models) fn merge(&mut self, other: &Self) {
        self.labels.merge(&other.labels);
        self.pairs.merge(&other.pairs);
        self.by_label.merge(&other.by_label);
        self.all.merge(&other.all);
    }

    /// Takes `other` away; after an error this is not to be used.
    pub(in crate::models) fn forget(&mut self, other: &Self) -> Result<()> {
        self.labels.forget(&other.labels)?;
        self.pairs.forget(&other.pairs)?;
        self.by_label.forget(&other.by_label)?;
        self.all.forget(&other.all)
    }

    pub(in crate::models) fn decay(&mut self, factor: f64) {
        self.labels.decay(factor);
        self.pairs.decay(factor);
        self.by_label.decay(factor);
        self.all.decay(factor);
    }

    pub(in crate::models) fn mark_used(&self, used: &mut Used) {
        for (y, slot) in LabelId::all(used.labels.len()).zip(&mut used.labels) {
            *slot |= self.labels.get(y) > 0.0;
        }
        self.all.mark_used(used);
    }

    pub(in crate::models) fn remap(&self, ids: &Remap) -> Self {
        BinaryCounts {
            labels: self.labels.remap(ids),
            pairs: self.pairs.remap(ids),
            by_label: self.by_label.remap(ids),
            all: self.all.remap(ids),
        }
    }

    /// The weight of the rows with `label`.
    pub(in crate::models) fn label(&self, label: LabelId) -> f64 {
        self.labels.get(label)
    }

    /// The weight of all rows.
    pub(in crate::models) fn rows(&self) -> f64 {
        self.all.rows(0)
    }

    /// Pairs of labels that occur together, most frequent first.
    pub(in crate::models) fn pairs(&self, most: usize) -> Vec<(LabelId, LabelId, f64)> {
        let mut pairs: Vec<(LabelId, LabelId, f64)> = self.pairs.entries().collect();
        pairs.sort_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
        pairs.truncate(most);
        pairs
    }

    /// For each label the features that tell most.
    pub(in crate::models) fn telling(&self, space: &Space, most: usize) -> Vec<Vec<(String, f64)>> {
        telling(&self.by_label, &self.all, space.labels.len(), &space.features, most)
    }

    /// Log-odds of every label, told from features and from the labels `parents(label)`.
    pub(in crate::models) fn fit(
        &self,
        space: &Space,
        smoothing: f64,
        parents: impl Fn(LabelId) -> Vec<LabelId>,
    ) -> CountScores {
        let features = &space.features;
        let labels: Vec<LabelId> = space.labels.ids().collect();
        let inside = GroupInput::of(&self.by_label, &labels, features);
        let outside =
            GroupInput::of(&self.by_label, &labels, features).outside(&self.all, features);
        let fit = |input: &GroupInput| Likelihood::fit(input, &self.all, features, smoothing);
        let (inside, outside) = (fit(&inside), fit(&outside));
        let (gains, outside) = match inside.minus(&outside) {
            Some(gains) => (gains, None),
            None => (inside, Some(outside)),
        };
        let mut scores = CountScores { gains, outside, constant: Vec::new(), parents: Vec::new() };
        let (s, total) = (smoothing, self.all.rows(0));
        for &y in &labels {
            let on = self.labels.get(y);
            let off = (total - on).max(0.0);
            let mut constant = ((on + s) / (off + s)).ln();
            let link = |j: LabelId| {
                let both = self.pairs.get(y, j);
                let alone = (self.labels.get(j) - both).max(0.0);
                let p = ((both + s) / (on + 2.0 * s)).min(1.0);
                let q = ((alone + s) / (off + 2.0 * s)).min(1.0);
                let absent =
                    ((1.0 - p).max(s / (on + 2.0 * s)) / (1.0 - q).max(s / (off + 2.0 * s))).ln();
                (absent, (p / q).ln() - absent)
            };
            let links: Vec<(LabelId, (f64, f64))> =
                parents(y).into_iter().map(|j| (j, link(j))).collect();
            constant += links.iter().map(|l| l.1.0).sum::<f64>();
            scores.constant.push(constant);
            scores.parents.push(links.into_iter().map(|(j, (_, shift))| (j, shift)).collect());
        }
        scores
    }

    /// The counts as a state.
    pub(in crate::models) fn encode(&self) -> State {
        let mut writer = StateWriter::default();
        writer.nested("label_counts", self.labels.encode());
        writer.nested("label_pairs", self.pairs.encode());
        writer.nested("features_by_label", self.by_label.encode());
        writer.nested("features", self.all.encode());
        writer.finish()
    }

    /// The counts in a state.
    ///
    /// # Errors
    ///
    /// `Corrupt` when they name labels or features that `space` does not have.
    pub(in crate::models) fn decode(space: &Space, state: &State) -> Result<Self> {
        let reader = StateReader::new(state);
        let state = BinaryCounts {
            labels: LabelCounts::decode(reader.nested("label_counts")?)?,
            pairs: LabelPairs::decode(reader.nested("label_pairs")?)?,
            by_label: FeatureStats::decode(reader.nested("features_by_label")?)?,
            all: FeatureStats::decode(reader.nested("features")?)?,
        };
        let labels = space.labels.len();
        let fits = state.labels.as_slice().len() <= labels
            && state.pairs.entries().all(|(a, b, _)| a.max(b).index() < labels)
            && state.by_label.fits(labels, &space.features)
            && state.all.fits(1, &space.features);
        if !fits {
            return Err(Error::corrupt(
                "the model's counts name labels or features it does not have",
            ));
        }
        Ok(state)
    }

    pub(in crate::models) fn heap_size(&self) -> usize {
        self.labels.heap_size()
            + self.pairs.heap_size()
            + self.by_label.heap_size()
            + self.all.heap_size()
    }
}

/// Fitted naive Bayes of every label.
#[derive(Debug)]
pub(in crate::models) struct CountScores {
    /// What features say of the rows with a label, less what they say of the others.
    gains: Likelihood,
    /// What is still to be taken from `gains`, where the two are not one table.
    outside: Option<Likelihood>,
    constant: Vec<f64>,
    parents: Vec<Vec<(LabelId, f64)>>,
}

impl LogOdds for CountScores {
    fn tasks(&self) -> usize {
        self.constant.len()
    }

    fn write(&self, rows: &Rows, range: Range<usize>, out: &mut Vec<f64>) {
        self.gains.write(rows, range.clone(), out);
        if let Some(outside) = &self.outside {
            let mut taken = Vec::new();
            outside.write(rows, range, &mut taken);
            out.iter_mut().zip(taken).for_each(|(o, t)| *o -= t);
        }
        out.iter_mut().zip(self.constant.iter().cycle()).for_each(|(o, c)| *o += c);
    }

    fn parents(&self, task: usize) -> Vec<(LabelId, f64)> {
        self.parents[task].clone()
    }
}
