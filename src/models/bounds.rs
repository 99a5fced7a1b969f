//! The parameters `max_labels` and `max_features` of every learner.

use super::{Allowed, CheckedSpec, Parameter};
use crate::data::{FeatureOptions, Id, LabelId, Space};
use crate::error::{Error, Result};

pub(super) const MAX_LABELS: Parameter = Parameter {
    name: "max_labels",
    default: "1000000",
    allowed: Allowed::Int(1, u32::MAX as i64),
    help: "the most labels that may appear",
};
pub(super) const MAX_FEATURES: Parameter = Parameter {
    name: "max_features",
    default: "10000000",
    allowed: Allowed::Int(1, u32::MAX as i64),
    help: "the most features that may appear",
};

/// Features read as their types say, within the bounds of a spec that declares both.
pub(super) fn bounded(spec: &CheckedSpec) -> Result<FeatureOptions> {
    Ok(FeatureOptions {
        max_labels: Some(spec.whole(MAX_LABELS.name)?),
        max_features: Some(spec.whole(MAX_FEATURES.name)?),
        ..FeatureOptions::default()
    })
}

/// Whether `space` is within the bounds: checked where rows were read and where models were merged,
/// so that how rows are cut does not matter.
pub(super) fn check_bounds(space: &Space, options: &FeatureOptions) -> Result<()> {
    let over = |len: usize, max: Option<usize>| max.filter(|max| len > *max);
    if let Some(max) = over(space.labels.len(), options.max_labels) {
        return Err(Error::limit(format!(
            "label `{}` is one more than max_labels={max} allows: raise it",
            space.labels.name(LabelId::new(max))
        )));
    }
    let features = space.features.len();
    if let Some(max) = over(features, options.max_features) {
        return Err(Error::limit(format!(
            "there are {features} features, more than max_features={max} allows: raise it or use \
             fewer features"
        )));
    }
    Ok(())
}
