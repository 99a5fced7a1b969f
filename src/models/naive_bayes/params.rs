//! Parameters of NaiBX.

use super::super::bounds::{MAX_FEATURES, MAX_LABELS, bounded};
use super::super::event::{COUNTS, EVENT, as_events};
use super::super::{Allowed, CheckedSpec, Parameter, Spec, Value};
use crate::data::FeatureOptions;
use crate::error::{Error, Result};

pub(super) const PARAMETERS: &[Parameter] = &[
    EVENT,
    COUNTS,
    Parameter {
        name: "smoothing",
        default: "1",
        allowed: Allowed::Float(1e-9, 1e9),
        help: "weight added to every count (Eq. 10, 11)",
    },
    Parameter {
        name: "size",
        default: "predicted",
        allowed: Allowed::Custom("predicted|labels|given|given(column)|a whole number", |v| {
            Size::from_value(v).is_some()
        }),
        help: "where the size of the set comes from: features alone (predicted), label scores too (labels; better on most real data), or known",
    },
    Parameter {
        name: "allow_empty",
        default: "auto",
        allowed: Allowed::Words(&["auto", "true", "false"]),
        help: "whether an empty set may be predicted; auto: if one was seen in training, and by a threshold",
    },
    Parameter {
        name: "sets",
        default: "1",
        allowed: Allowed::Int(1, 1000),
        help: "1: the greedy cascade of the paper; more: the most probable set, by a beam search that keeps so many candidates, 20 at least (2 to 20 are the same); how many sets are told is asked for when scoring",
    },
    Parameter {
        name: "decide",
        default: "cascade",
        allowed: Allowed::Custom("cascade|size|threshold(p)|top(k)", |v| {
            Rule::from_value(v).is_some()
        }),
        help: "how scores become a set: the cascade, or a rule over the score of each label: the best ones, as many as the size says (size) or always k, or all from a probability on",
    },
    MAX_LABELS,
    MAX_FEATURES,
];

/// Where the size of a predicted set comes from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Size {
    /// Naive Bayes over sizes (the paper's).
    Predicted,
    /// From the scores of the labels and what is known of sizes given labels.
    Labels,
    /// A column holds it; without a name, `evaluate` gives the true size.
    Given(Option<String>),
    /// Always the same.
    Fixed(u32),
}

impl Size {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Word(word) => match word.as_str() {
                "predicted" => Some(Size::Predicted),
                "labels" => Some(Size::Labels),
                "given" => Some(Size::Given(None)),
                _ => None,
            },
            Value::Int(n) => u32::try_from(*n).ok().map(Size::Fixed),
            Value::Call(Spec { name, args }) if name == "given" => match args.as_slice() {
                [(None, Value::Word(column))] => Some(Size::Given(Some(column.clone()))),
                _ => None,
            },
            _ => None,
        }
    }
}

/// How scores become a label set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Rule {
    /// Size first, then labels one by one (Eq. 9).
    Cascade,
    /// The labels with the highest probability, as many as the size says.
    Size,
    /// Every label whose probability reaches this.
    Threshold(f64),
    /// The labels with the highest probability.
    Top(usize),
}

impl Rule {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Word(word) => match word.as_str() {
                "cascade" => Some(Rule::Cascade),
                "size" => Some(Rule::Size),
                _ => None,
            },
            Value::Call(Spec { name, args }) => match (name.as_str(), args.as_slice()) {
                ("threshold", [(None, p)]) => {
                    let p = p.as_number()?;
                    (0.0..=1.0).contains(&p).then_some(Rule::Threshold(p))
                }
                ("top", [(None, Value::Int(k))]) if *k > 0 => Some(Rule::Top(*k as usize)),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The parameters, typed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Params {
    pub(super) smoothing: f64,
    pub(super) size: Size,
    pub(super) allow_empty: Option<bool>,
    pub(super) sets: usize,
    pub(super) rule: Rule,
}

impl Params {
    pub(super) fn try_new(spec: &CheckedSpec) -> Result<Self> {
        let odd = |name: &str| Error::internal(format!("parameter `{name}` passed its check"));
        Ok(Params {
            smoothing: spec.number("smoothing")?,
            size: Size::from_value(spec.value("size")?).ok_or_else(|| odd("size"))?,
            allow_empty: match spec.word("allow_empty")? {
                "true" => Some(true),
                "false" => Some(false),
                _ => None,
            },
            sets: spec.whole("sets")?,
            rule: Rule::from_value(spec.value("decide")?).ok_or_else(|| odd("decide"))?,
        })
    }
}

impl Params {
    /// Whether every parameter that is set does something.
    ///
    /// # Errors
    ///
    /// The parameter that does nothing is named, with the one that makes it so.
    pub(super) fn check(&self, spec: &CheckedSpec) -> Result<()> {
        let sized = matches!(self.rule, Rule::Cascade | Rule::Size);
        let rule = spec.value("decide")?;
        let size = spec.value("size")?;
        let idle = |name: &str, other: &str, value: &Value| {
            Err(Error::usage(format!(
                "parameter `{name}` does nothing with `{other}={value}`: leave it out"
            )))
        };
        if self.size != Size::Predicted && !sized {
            return idle("size", "decide", rule);
        }
        if self.sets != 1 && self.rule != Rule::Cascade {
            return idle("sets", "decide", rule);
        }
        match (self.rule, &self.size, self.allow_empty) {
            (Rule::Top(_), _, Some(_)) => idle("allow_empty", "decide", rule),
            // Thresholds allow empty sets anyway.
            (Rule::Threshold(_), _, Some(true)) => idle("allow_empty", "decide", rule),
            (_, Size::Given(_) | Size::Fixed(_), Some(_)) => idle("allow_empty", "size", size),
            _ => Ok(()),
        }
    }

    /// The sizes that may be predicted when those in `seen`, ascending, occurred.
    pub(super) fn allowed_sizes(&self, seen: &[u32]) -> Vec<u32> {
        let least = u32::from(self.allow_empty == Some(false));
        let mut sizes: Vec<u32> = seen.iter().copied().filter(|&m| m >= least).collect();
        if self.allow_empty == Some(true) && sizes.first() != Some(&0) {
            sizes.insert(0, 0);
        }
        sizes
    }
}

/// How features are read for this spec.
pub(super) fn features(spec: &CheckedSpec) -> Result<FeatureOptions> {
    let size = Params::try_new(spec)?.size;
    Ok(FeatureOptions {
        true_size: size == Size::Given(None),
        given_size: match size {
            Size::Given(column) => column,
            _ => None,
        },
        ..as_events(spec, bounded(spec)?)?
    })
}
