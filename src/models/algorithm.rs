//! The contract between labelflow and an algorithm.

use super::{CheckedSpec, Parameter};
use crate::data::{FeatureOptions, LabelId, LabelSets, Remap, Rows, Space, Used};
use crate::error::{Error, Result};
use crate::stats::State;
use std::any::Any;
use std::fmt;

/// One algorithm: what it is called, what it takes, what it can do, and how it starts.
#[derive(Debug, Clone, Copy)]
pub struct Algorithm {
    /// The name in specs, SQL and on the command line.
    pub name: &'static str,
    /// One line for tables and help texts.
    pub summary: &'static str,
    /// The parameters a spec may set.
    pub parameters: &'static [Parameter],
    /// What learners of this spec can do beyond learning and merging.
    pub capabilities: fn(&CheckedSpec) -> Capabilities,
    /// Where it comes from.
    pub reference: &'static str,
    /// How features are to be read for this spec.
    pub features: fn(&CheckedSpec) -> Result<FeatureOptions>,
    /// A learner that has seen nothing.
    pub start: fn(&CheckedSpec) -> Result<Box<dyn Learner>>,
    /// The learner whose state is in a model row.
    pub resume: fn(&CheckedSpec, &Space, &State) -> Result<Box<dyn Learner>>,
}

/// What a learner can do; the conformance suite checks that each promise is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Rows can be taken away again.
    pub forgets: bool,
    /// Weights can be multiplied by a factor.
    pub decays: bool,
    /// Several label sets with their probabilities can be returned.
    pub ranks_sets: bool,
    /// A finished model goes on learning and merging. Without it only states do
    /// ([`Trainer::state`](super::Trainer::state)): the model is closed.
    pub reopens: bool,
}

/// What an algorithm has learned so far: a sufficient statistic that grows.
///
/// A learner sees rows and other learners in one numbering; its owner, the
/// [`Trainer`](super::Trainer), does the numbering. After an error the learner is as it was.
pub trait Learner: Send + Sync + fmt::Debug {
    /// Adds labelled rows.
    fn observe(&mut self, rows: &Rows, space: &Space) -> Result<()>;

    /// Adds what `other`, of the same algorithm and spec, has seen.
    fn merge(&mut self, other: &dyn Learner) -> Result<()>;

    /// Takes away what `other` has seen.
    fn forget(&mut self, _other: &dyn Learner) -> Result<()> {
        Err(Error::unsupported("this algorithm cannot take rows away: train anew without them"))
    }

    /// Multiplies all weights by `factor`.
    fn decay(&mut self, _factor: f64) -> Result<()> {
        Err(Error::unsupported("this algorithm cannot decay: train anew on recent rows"))
    }

    /// Whether rows may count other than one ([`Rows::weights`]).
    fn takes_weights(&self) -> bool {
        false
    }

    /// What is known, by number. Names that are not used are dropped from the model, so that it
    /// does not depend on rows that were refused or taken away.
    fn used(&self, space: &Space) -> Used;

    /// The same knowledge under new numbers; names that are not used are dropped.
    fn remap(&self, ids: &Remap) -> Box<dyn Learner>;

    /// What is known, as a value that the model row holds.
    fn encode(&self) -> Result<State>;

    /// The learner of a finished model, where that is not this one, and its fitted parameters: it
    /// keeps what was fitted, so that a model read from bytes is not fitted again.
    ///
    /// Called once, after `remap` into name order. A closed learner scores as this one would. One
    /// that drops what only learning needs, such as rows, refuses to observe, merge and forget
    /// ([`closed`]). `None`, the default: the statistics are the model.
    fn close(&self, _space: &Space) -> Result<Option<Peer>> {
        Ok(None)
    }

    /// The parameters for scoring, derived from what was seen.
    fn fit(&self, space: &Space) -> Result<Box<dyn Scorer>>;

    /// Parameters that follow this learner row by row, equal to those of [`Learner::fit`] after
    /// every row; `None` when there is no quicker way than fitting anew.
    fn follow(&self, _space: &Space) -> Option<Box<dyn Follower>> {
        None
    }

    /// Whether it matters which rows came last: such learners learn from a stream only, since only
    /// a stream has an order.
    fn needs_order(&self) -> bool {
        false
    }

    /// What decides, besides the rows, what is learned: learners of equal kinds know the same after
    /// the same rows, whatever their algorithm and the rest of their parameters. `None` when no
    /// other learner is like this one.
    fn state_kind(&self) -> Option<String> {
        None
    }

    /// For each of `peers`, which are of the same kind and have seen nothing: a learner with its
    /// parameters and the knowledge of this one, and its fitted parameters. Their common work is
    /// done once, here and when they score the same rows.
    fn fit_peers(&self, _peers: &[Box<dyn Learner>], _space: &Space) -> Result<Vec<Peer>> {
        Err(Error::internal("this algorithm does not share what it learns"))
    }

    /// What people want to know about the model.
    fn insight(&self, space: &Space, most: usize) -> Insight;

    /// What a user should know about what was learned, such as a parameter that asks for more than
    /// there is; one sentence each.
    fn notes(&self, _space: &Space) -> Vec<String> {
        Vec::new()
    }

    /// Bytes on the heap.
    fn heap_size(&self) -> usize;

    /// About how many bytes ending takes besides: whoever bounds memory sets them aside while rows
    /// are observed.
    ///
    /// The default is enough for what every learner needs: what is known once more under other
    /// numbers, as a state, and as bytes. One that fits when it is closed needs more.
    fn ending_size(&self, _space: &Space) -> usize {
        3 * self.heap_size()
    }

    /// This learner as its own type, for merging.
    fn as_any(&self) -> &dyn Any;
}

/// A learner with the knowledge of another, and its fitted parameters.
pub type Peer = (Box<dyn Learner>, Box<dyn Scorer>);

/// Fitted parameters: features in, scores and label sets out. Pure: `&self` and the row decide.
pub trait Scorer: Send + Sync + fmt::Debug {
    /// Writes the log-odds of every label for every row into `out`, row by row; what `out` held
    /// before is cleared.
    ///
    /// `sigmoid` of a log-odds is the probability that the row has the label.
    fn score(&self, rows: &Rows, out: &mut Vec<f64>) -> Result<()>;

    /// Appends the predicted label set of every row to `out`.
    fn predict(&self, rows: &Rows, out: &mut LabelSets) -> Result<()>;

    /// The most probable label sets of every row, best first, at most `most` of them.
    fn rank_sets(&self, _rows: &Rows, _most: usize) -> Result<Vec<Vec<RankedSet>>> {
        Err(Error::unsupported("this algorithm does not rank label sets"))
    }
}

/// Parameters that are kept up to date while their learner learns.
///
/// They are a function of what the learner knows: following it row by row and starting to follow
/// it now give the same numbers. Names that the space has but the learner has never seen say
/// nothing.
pub trait Follower: Send + fmt::Debug {
    /// Takes over what changed when `learner` observed `row`, a single row.
    fn learned(&mut self, row: &Rows, learner: &dyn Learner, space: &Space) -> Result<()>;

    /// Appends the predicted set of `row`, a single row, to `out`; `learner` is as it was when a row
    /// was last taken over.
    ///
    /// Ties go to the label that is first in name order, which `order` gives for each label.
    fn predict(
        &mut self,
        row: &Rows,
        learner: &dyn Learner,
        order: &[LabelId],
        out: &mut LabelSets,
    ) -> Result<()>;
}

/// A label set and its probability under the model.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedSet {
    /// Label numbers, ascending.
    pub labels: Vec<LabelId>,
    /// Its probability.
    pub probability: f64,
}

/// What a model can tell about itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Insight {
    /// For each label, the weight of the rows that have it.
    pub label_counts: Vec<f64>,
    /// For each label, the features that tell most about it and how much, strongest first; a negative
    /// weight speaks against the label. Features that tell nothing are left out. Empty lists where an
    /// algorithm cannot say.
    pub telling: Vec<Vec<(String, f64)>>,
    /// What was chosen for each label while it was fitted, such as `threshold`: a name, and a number
    /// per label.
    pub chosen: Vec<(&'static str, Vec<f64>)>,
    /// Label pairs that occur together, most frequent first, with the weight of their rows; none
    /// where an algorithm does not count them.
    pub pairs: Vec<(LabelId, LabelId, f64)>,
}

/// The error of a closed learner that is to observe, merge or forget.
pub fn closed() -> Error {
    Error::unsupported(
        "this model keeps its fitted parameters only, not the rows it learned from: train with \
         keep=all to learn on, merge or take rows away",
    )
}

/// The other learner as type `T`, for [`Learner::merge`] and [`Learner::forget`]: learners of one
/// spec are of one type.
///
/// # Errors
///
/// `Incompatible` when it is another type.
pub fn same_kind<T: 'static>(other: &dyn Learner) -> Result<&T> {
    other
        .as_any()
        .downcast_ref()
        .ok_or_else(|| Error::incompatible("the models are of different algorithms"))
}
