//! Parameters of binary relevance and chains.

use super::super::base::{BASES, Base, Prepare};
use super::super::bounds::{self, MAX_FEATURES};
use super::super::{Allowed, Capabilities, CheckedSpec, Parameter, Spec, Value};
use super::thresholds::Tuned;
use crate::data::{FeatureOptions, Id, LabelId, Vocabulary};
use crate::error::{Error, Result};
use crate::math::content_hash;

const BASE: Parameter = Parameter {
    name: "base",
    default: "logistic",
    allowed: Allowed::Choice(BASES),
    help: "the binary classifier of each label",
};
const ORDER: Parameter = Parameter {
    name: "order",
    default: "random",
    allowed: Allowed::Custom("random|random(seed)|frequency|given|given(label, ...)", |v| {
        Order::from_value(v).is_some()
    }),
    help: "the order of labels: random (from its own seed, or that of the model), most frequent first, or as given (those not named follow in name order)",
};
const CHAINS: Parameter = Parameter {
    name: "chains",
    default: "10",
    allowed: Allowed::Int(1, 1000),
    help: "how many chains, each with an order and a bag of its own",
};
const VOTE: Parameter = Parameter {
    name: "vote",
    default: "probability",
    allowed: Allowed::Words(&["probability", "set"]),
    help: "what is averaged over chains: the probability of a label, or whether it is in the predicted set",
};
const DECIDE: Parameter = Parameter {
    name: "decide",
    default: "joint",
    allowed: Allowed::Words(&["joint", "marginal"]),
    help: "the most probable set, or every label whose probability reaches the threshold",
};
const BEAM: Parameter = Parameter {
    name: "beam",
    default: "50",
    allowed: Allowed::Int(1, 100_000),
    help: "candidates kept when there are more than 15 labels; up to 15 every set is considered",
};
const PREPARE: Parameter = Parameter {
    name: "prepare",
    default: "none",
    allowed: Allowed::Words(&["none", "standard", "tfidf"]),
    help: "features as they are, to unit variance, or sparse ones by rarity and to unit length; fitted on training rows",
};
const THRESHOLD: Parameter = Parameter {
    name: "threshold",
    default: "0.5",
    allowed: Allowed::Custom(
        "a number from 0 to 1|tuned(macro_f1|micro_f1|hamming_score)|cardinality",
        |v| Threshold::from_value(v).is_some(),
    ),
    help: "the probability from which a label is predicted; on a held-out fifth, tuned: per label the best, \
           cardinality: the one that gives rows as many labels as they have",
};
const SEED: Parameter = Parameter {
    name: "seed",
    default: "1",
    allowed: Allowed::Int(0, i64::MAX),
    help: "where held-out rows come from, together with the content of rows",
};
const CHAIN_SEED: Parameter =
    Parameter { help: "where a random order and held-out rows come from", ..SEED };
const BAG_SEED: Parameter =
    Parameter { help: "where orders, bags and held-out rows come from", ..SEED };
const KEEP: Parameter = Parameter {
    name: "keep",
    default: "none",
    allowed: Allowed::Words(&["none", "all"]),
    help: "rows kept in the finished model: with all it can learn on, merge and forget",
};
/// Links are tables of labels times labels, at most 2 GiB of them: 16384 labels in one chain, 5181 in
/// each of ten.
const MAX_LINKS: u128 = 1 << 28;
const MAX_LABELS: Parameter = Parameter { default: "100000", ..bounds::MAX_LABELS };

pub(super) const BR: &[Parameter] =
    &[BASE, PREPARE, THRESHOLD, SEED, KEEP, MAX_LABELS, MAX_FEATURES];
pub(super) const CC: &[Parameter] =
    &[BASE, ORDER, PREPARE, THRESHOLD, CHAIN_SEED, KEEP, MAX_LABELS, MAX_FEATURES];
pub(super) const ECC: &[Parameter] =
    &[BASE, CHAINS, VOTE, PREPARE, THRESHOLD, BAG_SEED, KEEP, MAX_LABELS, MAX_FEATURES];
pub(super) const PCC: &[Parameter] =
    &[BASE, ORDER, DECIDE, BEAM, PREPARE, THRESHOLD, CHAIN_SEED, KEEP, MAX_LABELS, MAX_FEATURES];

/// Which of the four methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Relevance,
    Chain,
    Ensemble,
    Probabilistic,
}

/// The order of labels in a chain.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Order {
    /// By a hash of seed and name; without a seed, that of the model.
    Random(Option<u64>),
    /// Most frequent first, then by name.
    Frequency,
    /// These first, then the others by name.
    Given(Vec<String>),
}

impl Order {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Word(word) => match word.as_str() {
                "random" => Some(Order::Random(None)),
                "frequency" => Some(Order::Frequency),
                "given" => Some(Order::Given(Vec::new())),
                _ => None,
            },
            Value::Call(Spec { name, args }) => match (name.as_str(), args.as_slice()) {
                ("random", [(None, Value::Int(seed))]) => {
                    u64::try_from(*seed).ok().map(|seed| Order::Random(Some(seed)))
                }
                ("given", args) => {
                    let label = |(name, value): &(Option<String>, Value)| match (name, value) {
                        (None, Value::Word(label)) => Some(label.clone()),
                        (None, Value::Int(label)) => Some(label.to_string()),
                        _ => None,
                    };
                    args.iter().map(label).collect::<Option<_>>().map(Order::Given)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The first of the given labels that stands twice.
    fn twice(&self) -> Option<&str> {
        let Order::Given(names) = self else { return None };
        let repeated = |i: &usize| names[..*i].contains(&names[*i]);
        (1..names.len()).find(repeated).map(|i| names[i].as_str())
    }

    /// The labels of `names`, in name order, in this order; `seed` is that of the model, and `count`
    /// says how many rows have a label. Given labels that are not among them are left out.
    fn of(
        &self,
        names: &Vocabulary<LabelId>,
        seed: u64,
        count: impl Fn(LabelId) -> f64,
    ) -> Vec<LabelId> {
        let mut order: Vec<LabelId> = names.ids().collect();
        match self {
            Order::Random(own) => {
                let seed = own.unwrap_or(seed);
                order.sort_by_key(|&y| (content_hash(seed, names.name(y).as_bytes()), y));
            }
            Order::Frequency => {
                order.sort_by(|&a, &b| count(b).total_cmp(&count(a)).then(a.cmp(&b)))
            }
            Order::Given(given) => {
                let mut place = vec![given.len(); names.len()];
                for (i, name) in given.iter().enumerate() {
                    if let Some(y) = names.get(name) {
                        place[y.index()] = i;
                    }
                }
                order.sort_by_key(|&y| (place[y.index()], y));
            }
        }
        order
    }

    /// A sentence about the given labels that are not in `names`.
    pub(super) fn note(&self, names: &Vocabulary<LabelId>) -> Option<String> {
        let Order::Given(given) = self else { return None };
        let strange = |name: &&String| names.get(name).is_none();
        let strange: Vec<String> =
            given.iter().filter(strange).map(|name| format!("`{name}`")).collect();
        (!strange.is_empty()).then(|| {
            let names = strange.join(", ");
            format!("order=given names labels that no row has, which were left out: {names}")
        })
    }
}

/// From which probability a label is predicted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Threshold {
    /// The same for every label.
    Fixed(f64),
    /// For each label the best on held-out rows.
    Tuned(Tuned),
    /// The same for every label: with it held-out rows get as many labels as they have.
    Cardinality,
}

impl Threshold {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Call(Spec { name, args }) if name == "tuned" => match args.as_slice() {
                [(None, Value::Word(metric))] => Tuned::from_name(metric).map(Threshold::Tuned),
                _ => None,
            },
            Value::Word(word) if word == "cardinality" => Some(Threshold::Cardinality),
            other => {
                let p = other.as_number()?;
                (0.0..=1.0).contains(&p).then_some(Threshold::Fixed(p))
            }
        }
    }
}

/// The parameters, typed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Params {
    pub(super) method: Method,
    pub(super) base: Base,
    pub(super) prepare: Prepare,
    pub(super) order: Order,
    pub(super) chains: usize,
    /// Whether predicted sets are averaged rather than probabilities.
    pub(super) vote_sets: bool,
    /// Whether the most probable set is predicted.
    pub(super) joint: bool,
    pub(super) beam: usize,
    pub(super) threshold: Threshold,
    pub(super) seed: u64,
    /// Whether the finished model keeps its rows.
    pub(super) keep: bool,
}

impl Params {
    pub(super) fn try_new(spec: &CheckedSpec, method: Method) -> Result<Self> {
        let odd = |name: &str| Error::internal(format!("parameter `{name}` passed its check"));
        let has = |name: &str| spec.value(name).is_ok();
        Ok(Params {
            method,
            base: Base::try_new(spec)?,
            prepare: match spec.word("prepare")? {
                "standard" => Prepare::Standard,
                "tfidf" => Prepare::Tfidf,
                _ => Prepare::None,
            },
            order: match has("order") {
                true => Order::from_value(spec.value("order")?).ok_or_else(|| odd("order"))?,
                false => Order::Random(None),
            },
            chains: if has("chains") { spec.whole("chains")? } else { 1 },
            vote_sets: has("vote") && spec.word("vote")? == "set",
            joint: has("decide") && spec.word("decide")? == "joint",
            beam: if has("beam") { spec.whole("beam")? } else { 1 },
            threshold: Threshold::from_value(spec.value("threshold")?)
                .ok_or_else(|| odd("threshold"))?,
            seed: spec.whole("seed")? as u64,
            keep: spec.word("keep")? == "all",
        })
    }

    /// Parameters that would do nothing are errors.
    ///
    /// # Errors
    ///
    /// Names the parameter, and what it needs to do something.
    pub(super) fn check(&self, spec: &CheckedSpec) -> Result<()> {
        if let Some(label) = self.order.twice() {
            return Err(Error::usage(format!(
                "parameter `order={}`: label `{label}` stands twice; name each label once",
                spec.value("order")?
            )));
        }
        if spec.is_set("seed") && !self.draws() {
            return Err(Error::usage(format!(
                "nothing in `{spec}` is drawn at random, so `seed` has no meaning: leave it out"
            )));
        }
        if self.counts() {
            let useless = if self.prepare != Prepare::None {
                Some("prepare")
            } else if let Threshold::Tuned(_) = self.threshold {
                Some("threshold=tuned")
            } else if self.threshold == Threshold::Cardinality {
                Some("threshold=cardinality")
            } else if self.keep {
                Some("keep")
            } else {
                None
            };
            if let Some(name) = useless {
                return Err(Error::usage(format!(
                    "base=naive_bayes learns from counts and keeps no rows, so `{name}` has no \
                     meaning: leave it out, or use another base"
                )));
            }
        }
        if self.joint && self.threshold != Threshold::Fixed(0.5) {
            return Err(Error::usage(
                "decide=joint predicts the most probable set and has no threshold: add \
                 decide=marginal, or leave the threshold out",
            ));
        }
        Ok(())
    }

    /// Whether anything depends on the seed.
    fn draws(&self) -> bool {
        let order = self.chained() && self.order == Order::Random(None);
        let held_out = match &self.base {
            Base::Linear(base) => {
                base.holds_out() || !matches!(self.threshold, Threshold::Fixed(_))
            }
            Base::NaiveBayes { .. } => false,
        };
        self.method == Method::Ensemble || order || held_out
    }

    /// Whether counts are learned rather than rows.
    pub(super) fn counts(&self) -> bool {
        matches!(self.base, Base::NaiveBayes { .. })
    }

    /// Whether labels are told from other labels.
    pub(super) fn chained(&self) -> bool {
        self.method != Method::Relevance
    }

    /// The order of labels in each chain.
    ///
    /// # Errors
    ///
    /// More links than there may be ([`Params::check_links`]).
    pub(super) fn orders(
        &self,
        names: &Vocabulary<LabelId>,
        count: impl Fn(LabelId) -> f64 + Copy,
    ) -> Result<Vec<Vec<LabelId>>> {
        self.check_links(names.len())?;
        // Of one chain, and of the first of several, the seed is that of the model.
        let seed = |chain: u64| self.seed.wrapping_add(chain << 32);
        Ok((0..self.chains as u64).map(|c| self.order.of(names, seed(c), count)).collect())
    }

    /// Refuses more links between labels than memory is for.
    ///
    /// # Errors
    ///
    /// A limit: chains link every label with all that stand before it.
    pub(super) fn check_links(&self, labels: usize) -> Result<()> {
        let links = (labels as u128).pow(2) * self.chains as u128;
        if self.chained() && links > MAX_LINKS {
            return Err(Error::limit(format!(
                "chains link each label with those before it, and {labels} labels make too many \
                 links: use br, fewer labels or fewer chains"
            )));
        }
        Ok(())
    }
}

/// The labels before each label in `order`, ascending; none when labels stand alone.
pub(super) fn parents(order: &[LabelId], chained: bool) -> Vec<Vec<LabelId>> {
    let mut parents = vec![Vec::new(); order.len()];
    if chained {
        for (i, &y) in order.iter().enumerate() {
            parents[y.index()] = order[..i].to_vec();
            parents[y.index()].sort_unstable();
        }
    }
    parents
}

/// How features are read for this spec.
pub(super) fn features(spec: &CheckedSpec) -> Result<FeatureOptions> {
    Base::features(spec)
}

/// What models of this spec can do.
pub(super) fn capabilities(spec: &CheckedSpec, method: Method) -> Capabilities {
    let params = Params::try_new(spec, method);
    let counts = params.as_ref().is_ok_and(Params::counts);
    let keep = params.is_ok_and(|p| p.keep);
    Capabilities {
        forgets: true,
        decays: counts,
        ranks_sets: method == Method::Probabilistic,
        reopens: counts || keep,
    }
}
