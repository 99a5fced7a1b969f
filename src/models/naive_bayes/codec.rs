//! The state of NaiBX as an Arrow row.

use super::super::{CheckedSpec, Learner};
use super::fit::NaiveBayes;
use super::params::Params;
use crate::data::{Id, Space};
use crate::error::{Error, Result};
use crate::stats::{
    FeatureStats, LabelCounts, LabelPairs, SetSizes, SizeGivenLabel, State, StateReader,
    StateWriter, Statistic,
};
use std::sync::Arc;

pub(super) fn encode(learner: &NaiveBayes) -> State {
    let mut writer = StateWriter::default();
    writer.nested("label_counts", learner.labels.encode());
    writer.nested("set_sizes", learner.sizes.encode());
    writer.nested("label_pairs", learner.pairs.encode());
    writer.nested("size_given_label", learner.size_given_label.encode());
    writer.nested("features_by_label", learner.by_label.encode());
    writer.nested("features_by_size", learner.by_size.encode());
    writer.finish()
}

pub(super) fn resume(spec: &CheckedSpec, space: &Space, state: &State) -> Result<Box<dyn Learner>> {
    let reader = StateReader::new(state);
    let learner = NaiveBayes {
        params: Params::try_new(spec)?,
        labels: LabelCounts::decode(reader.nested("label_counts")?)?,
        sizes: SetSizes::decode(reader.nested("set_sizes")?)?,
        pairs: LabelPairs::decode(reader.nested("label_pairs")?)?,
        size_given_label: SizeGivenLabel::decode(reader.nested("size_given_label")?)?,
        by_label: Arc::new(FeatureStats::decode(reader.nested("features_by_label")?)?),
        by_size: Arc::new(FeatureStats::decode(reader.nested("features_by_size")?)?),
    };
    let (labels, sizes) = (space.labels.len(), space.labels.len() + 1);
    let fits = learner.labels.as_slice().len() <= labels
        && learner.sizes.as_slice().len() <= sizes
        && learner.pairs.entries().all(|(a, b, _)| a.max(b).index() < labels)
        && learner
            .size_given_label
            .entries()
            .all(|(y, m, _)| y.index() < labels && (m as usize) < sizes)
        && learner.by_label.fits(labels, &space.features)
        && learner.by_size.fits(sizes, &space.features);
    if !fits {
        return Err(Error::corrupt(
            "the model's statistics name labels or features it does not have",
        ));
    }
    Ok(Box::new(learner))
}
