//! The parameters `event` and `counts` of naive Bayes: how features are modelled.

use super::{Allowed, CheckedSpec, Parameter, Value};
use crate::data::{FeatureKind, FeatureOptions, Pattern};
use crate::error::Result;

/// How feature values are modelled.
pub(super) const EVENT: Parameter = Parameter {
    name: "event",
    default: "auto",
    allowed: Allowed::Words(&["auto", "gaussian", "bernoulli", "multinomial", "categorical"]),
    help: "how feature values are modelled; auto goes by the type of each column",
};

/// Which columns are counts.
pub(super) const COUNTS: Parameter = Parameter {
    name: "counts",
    default: "none",
    allowed: Allowed::Custom("none, or column names in quotes, such as 'word_*|tf_*'", |v| {
        matches!(v, Value::Word(_))
    }),
    help: "columns that hold counts, whatever event says; `*` stands for any characters, `|` between names",
};

/// `options`, with features read as `spec`, which declares both parameters, says.
pub(super) fn as_events(spec: &CheckedSpec, options: FeatureOptions) -> Result<FeatureOptions> {
    Ok(FeatureOptions {
        force: FeatureKind::of_event(spec.word(EVENT.name)?),
        counts: match spec.word(COUNTS.name)? {
            "none" => Vec::new(),
            names => names.split('|').map(Pattern::new).collect(),
        },
        ..options
    })
}
