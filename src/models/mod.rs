//! Algorithms: one folder each, one line each in the [`Registry`].
//!
//! # Notation
//!
//! | letter | means |
//! |---|---|
//! | `N`, `M`, `L` | rows, features, labels |
//! | `y`, `m` | a label, the size of a label set |
//! | `x`, `z` | a feature value, the same in units of its standard deviation |
//! | `g` | a group of rows: those with a label, or with a set of one size |
//! | `s` | the smoothing weight |
//! | `_ln` | a natural logarithm |
//!
//! # How the parts fit
//!
//! A [`Trainer`] reads Arrow arrays into rows and hands them to the [`Learner`] of its algorithm,
//! which keeps sufficient statistics. [`Trainer::finish`] puts labels and features in name order
//! and gives a [`Model`], an immutable value that is stored, merged and scored with. The first use
//! of a model asks its learner for a [`Scorer`]: the parameters, laid out for speed.

mod algorithm;
mod base;
mod bounds;
mod chains;
mod columns;
mod decay;
mod event;
mod grouped;
mod keep;
mod lazy;
mod likelihood;
mod lists;
mod model;
mod naive_bayes;
mod origin;
mod params;
mod reader;
mod registry;
mod spec;
mod trainer;

pub use algorithm::{
    Algorithm, Capabilities, Follower, Insight, Learner, Peer, RankedSet, Scorer, closed, same_kind,
};
pub use columns::{holds_features, root, split_columns};
pub use decay::Decay;
pub use grouped::GroupedTrainer;
pub use lists::LabelLists;
pub use model::Model;
pub use origin::Origin;
pub use params::{Allowed, CheckedSpec, Choice, Parameter};
pub use registry::Registry;
pub use spec::{Spec, Value};
pub use trainer::Trainer;

#[cfg(test)]
mod tests;
