//! The parameters `max_labels` and `max_features` of every learner.

use super::{Allowed, CheckedSpec, Parameter};
use crate::data::FeatureOptions;
use crate::error::Result;

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
