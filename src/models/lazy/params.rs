//! Parameters of the lazy learners.

use super::super::bounds::{MAX_FEATURES, MAX_LABELS, bounded};
use super::super::keep::{KEEP, keep};
use super::super::{Allowed, CheckedSpec, Parameter};
use super::search::{Blocks, Distance, IndexKind, Metric, Scale};
use crate::data::FeatureOptions;
use crate::error::Result;
use crate::stats::{Keep, RowTable};

const K: Parameter = Parameter {
    name: "k",
    default: "10",
    allowed: Allowed::Int(1, 1_000_000),
    help: "how many neighbours are asked",
};
const SCALE: Parameter = Parameter {
    name: "scale",
    default: "minmax",
    allowed: Allowed::Words(&["minmax", "standard", "none"]),
    help: "how numbers are made comparable: range 1, standard deviation 1, or as they are",
};
const DISTANCE: Parameter = Parameter {
    name: "distance",
    default: "euclidean",
    allowed: Allowed::Words(&["euclidean", "cosine", "manhattan"]),
    help: "how far rows are apart; cosine suits sparse text",
};
const WEIGHT: Parameter = Parameter {
    name: "weight",
    default: "uniform",
    allowed: Allowed::Words(&["uniform", "distance"]),
    help: "whether all neighbours count alike, or each by the inverse of its distance",
};
const INDEX: Parameter = Parameter {
    name: "index",
    default: "exact",
    allowed: Allowed::Words(&["exact", "hnsw"]),
    help: "how neighbours are found: all of them (exact), or nearly all of them in very many rows \
           (hnsw; its graph is built whenever a model is opened, in minutes for 100000 rows)",
};

/// The parameters of the learners that let neighbours vote.
pub(super) const VOTING: &[Parameter] =
    &[K, SCALE, DISTANCE, WEIGHT, KEEP, INDEX, MAX_LABELS, MAX_FEATURES];

/// The parameters of ML-kNN.
pub(super) const BAYES: &[Parameter] = &[
    K,
    Parameter {
        name: "smoothing",
        default: "1",
        allowed: Allowed::Float(1e-9, 1e9),
        help: "weight added to every count",
    },
    SCALE,
    DISTANCE,
    WEIGHT,
    KEEP,
    INDEX,
    MAX_LABELS,
    MAX_FEATURES,
];

/// How neighbours become a label set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Method {
    /// Labels that more than half of the neighbours have.
    Majority,
    /// As above; if there is none, the most frequent label.
    MajorityOrBest,
    /// The most frequent labels, as many as neighbours have on average.
    MeanSize,
    /// The most frequent label set.
    Powerset,
    /// Labels that are more probable than not given how many neighbours have them.
    Bayes {
        /// The weight added to every count.
        smoothing: f64,
    },
}

/// How ML-kNN does it.
pub(super) fn bayes(spec: &CheckedSpec) -> Result<Method> {
    Ok(Method::Bayes { smoothing: spec.number("smoothing")? })
}

/// The parameters, typed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Params {
    pub(super) method: Method,
    pub(super) k: usize,
    /// Whether neighbours count by the inverse of their distance.
    pub(super) by_distance: bool,
    pub(super) keep: Keep,
    pub(super) metric: Metric,
    /// Bounds on names; with `keep`, they decide what is learned.
    bounds: (usize, usize),
}

impl Params {
    pub(super) fn try_new(spec: &CheckedSpec, method: Method) -> Result<Self> {
        let scale = match spec.word("scale")? {
            "minmax" => Scale::MinMax,
            "standard" => Scale::Standard,
            _ => Scale::None,
        };
        let distance = match spec.word("distance")? {
            "cosine" => Distance::Cosine,
            "manhattan" => Distance::Manhattan,
            _ => Distance::Euclidean,
        };
        let index = match spec.word("index")? {
            "hnsw" => IndexKind::Hnsw,
            _ => IndexKind::Exact,
        };
        Ok(Params {
            method,
            k: spec.whole("k")?,
            by_distance: spec.word("weight")? == "distance",
            keep: keep(spec)?,
            metric: Metric { scale, distance, index, blocks: Blocks::default() },
            bounds: (spec.whole(MAX_LABELS.name)?, spec.whole(MAX_FEATURES.name)?),
        })
    }

    /// Whether rows are counted by how many of their neighbours have a label.
    pub(super) fn counts(&self) -> bool {
        matches!(self.method, Method::Bayes { .. })
    }

    /// How many neighbours are asked: no more than there are.
    pub(super) fn asked(&self, table: &RowTable) -> usize {
        usize::try_from(table.total()).map_or(self.k, |rows| rows.min(self.k))
    }

    /// What decides the state besides the rows.
    pub(super) fn state_kind(&self) -> String {
        format!("rows: {:?}, {:?}", self.keep, self.bounds)
    }
}

/// How features are read for this spec.
pub(super) fn features(spec: &CheckedSpec) -> Result<FeatureOptions> {
    bounded(spec)
}
