//! Parameters of base learners.

use super::super::bounds::bounded;
use super::super::event::{COUNTS, EVENT, as_events};
use super::super::{Allowed, CheckedSpec, Choice, Parameter, Spec, Value};
use super::linear::{Lambda, LinearBase, Shape};
use super::newton::Limits;
use crate::data::FeatureOptions;
use crate::error::{Error, Result};

/// The base learners a spec can name.
pub(in crate::models) const BASES: &[Choice] = &[
    Choice {
        name: "logistic",
        help: "logistic regression with an L2 penalty; learns from rows",
        parameters: LOGISTIC,
    },
    Choice {
        name: "svm",
        help: "linear support vector machine: squared hinge, L2 penalty; learns from rows",
        parameters: SVM,
    },
    Choice {
        name: "naive_bayes",
        help: "naive Bayes of a label against its absence; learns from counts",
        parameters: NAIVE_BAYES,
    },
];

const LAMBDA: Allowed = Allowed::Custom("a number from 1e-9 to 1e9|grid|grid(number, ...)", |v| {
    Lambda::of(v).is_some()
});
const TOLERANCE: Parameter = Parameter {
    name: "tolerance",
    default: "1e-7",
    allowed: Allowed::Float(1e-12, 0.1),
    help: "converged when the gradient is this share of that at zero",
};
const MAX_STEPS: Parameter = Parameter {
    name: "max_steps",
    default: "100",
    allowed: Allowed::Int(1, 1_000_000),
    help: "the most Newton steps; `inspect` says when they were not enough",
};

const LOGISTIC: &[Parameter] = &[
    Parameter {
        name: "lambda",
        default: "0.1",
        allowed: LAMBDA,
        help: "weight of the squared weights (Eq. 16); grid: per label the best of several on held-out rows (over all labels, for rare ones)",
    },
    TOLERANCE,
    MAX_STEPS,
];

const SVM: &[Parameter] = &[
    Parameter {
        name: "lambda",
        default: "0.5",
        allowed: LAMBDA,
        help: "weight of the squared weights, 1/(2C); grid: per label the best of several on held-out rows (over all labels, for rare ones)",
    },
    TOLERANCE,
    MAX_STEPS,
    Parameter {
        name: "calibrate",
        default: "platt",
        allowed: Allowed::Words(&["platt", "none"]),
        help: "platt: probabilities fitted on margins of held-out rows; none: the margin is the log-odds",
    },
];

const NAIVE_BAYES: &[Parameter] = &[
    EVENT,
    COUNTS,
    Parameter {
        name: "smoothing",
        default: "1",
        allowed: Allowed::Float(1e-9, 1e9),
        help: "weight added to every count",
    },
];

/// A base learner with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::models) enum Base {
    /// Learns from rows.
    Linear(LinearBase),
    /// Learns from counts.
    NaiveBayes {
        /// The weight added to every count.
        smoothing: f64,
    },
}

impl Base {
    /// The base learner that parameter `base` of `spec` names.
    pub(in crate::models) fn try_new(spec: &CheckedSpec) -> Result<Self> {
        let base = spec.choice("base", BASES)?;
        let shape = match base.canonical().name.as_str() {
            "naive_bayes" => {
                return Ok(Base::NaiveBayes { smoothing: base.number("smoothing")? });
            }
            "svm" => Shape::Svm { calibrate: base.word("calibrate")? == "platt" },
            _ => Shape::Logistic,
        };
        let lambda = Lambda::of(base.value("lambda")?)
            .ok_or_else(|| Error::internal("parameter `lambda` passed its check"))?;
        let limits =
            Limits { tolerance: base.number("tolerance")?, steps: base.whole("max_steps")? };
        Ok(Base::Linear(LinearBase { shape, lambda, limits }))
    }

    /// How the base learner that `spec` names reads features.
    pub(in crate::models) fn features(spec: &CheckedSpec) -> Result<FeatureOptions> {
        match Base::try_new(spec)? {
            Base::NaiveBayes { .. } => as_events(&spec.choice("base", BASES)?, bounded(spec)?),
            Base::Linear(_) => bounded(spec),
        }
    }
}

impl Lambda {
    fn of(value: &Value) -> Option<Self> {
        let fits = |v: &Value| v.as_number().filter(|x| (1e-9..=1e9).contains(x));
        match value {
            Value::Word(word) if word == "grid" => Some(Lambda::Grid(Lambda::GRID.to_vec())),
            Value::Call(Spec { name, args }) if name == "grid" && !args.is_empty() => {
                let one = |(name, v): &(Option<String>, Value)| match name {
                    None => fits(v),
                    Some(_) => None,
                };
                let mut grid = args.iter().map(one).collect::<Option<Vec<f64>>>()?;
                grid.sort_by(|a, b| b.total_cmp(a));
                Some(Lambda::Grid(grid))
            }
            other => fits(other).map(Lambda::One),
        }
    }
}
