//! Sufficient statistics: what a model knows, in a form that can be added up.
//!
//! | statistic | counts |
//! |---|---|
//! | [`LabelCounts`] | rows with a label |
//! | [`LabelPairs`] | rows with both of two labels (sparse) |
//! | [`SetCounts`] | rows with exactly a label set |
//! | [`SetSizes`] | rows whose label set has a size |
//! | [`SizeGivenLabel`] | rows with a label whose set has a size (sparse) |
//! | [`FeatureStats`] | per group of rows: moments, counts and categories of every feature |
//! | [`RowStore`] | rows with a content: the rows themselves, for learners that need them |
//!
//! All but the last are [`Statistic`]s. [`RowStore`] has the same verbs and laws, but may refuse rows and
//! other stores: those that are too many, or whose order would matter. All are over [`Rows`] in the
//! numbering of one [`Space`](crate::data::Space); numbers are `f64` because weights and decay make
//! counts fractional, and whole counts are exact up to 2^53.

mod codec;
mod count_vector;
mod feature_stats;
mod group_moments;
mod grouping;
mod label_counts;
mod label_pairs;
mod moment;
mod pair_table;
mod row_store;
mod set_counts;
mod set_sizes;
mod size_given_label;
mod state;

pub use codec::{StateReader, StateWriter};
pub use feature_stats::FeatureStats;
pub use group_moments::GroupMoments;
pub use grouping::{ByLabel, BySize, Grouping, OneGroup};
pub use label_counts::LabelCounts;
pub use label_pairs::LabelPairs;
pub use moment::Moment;
pub use pair_table::{Cell, Count, PairTable};
pub(crate) use row_store::NameHashes;
pub use row_store::{Keep, RowStore, RowTable};
pub use set_counts::SetCounts;
pub use set_sizes::SetSizes;
pub use size_given_label::SizeGivenLabel;
pub(crate) use state::Part;
pub use state::State;

use crate::data::{FeatureSpace, Id, Remap, Rows};
use crate::error::Result;

/// A sufficient statistic.
///
/// # Laws
///
/// - `default()` is the identity of `merge`.
/// - `merge` is associative and commutative; observing rows in any cut and merging in any order
///   equals one pass. Counts agree bit for bit, moments to 1e-12 relative.
/// - `forget(part)` after `merge(part)` restores the state; when it cannot, it is an error and the
///   state stays as it was.
/// - `decode(encode(s)) == s`.
///
/// `observe`, `merge` and `forget` take rows and states in the same numbering; `remap` changes it.
pub trait Statistic: Clone + Default + PartialEq + Send + Sync + std::fmt::Debug {
    /// Adds `rows`, all of which are labelled; `features` says what their features are.
    fn observe(&mut self, rows: &Rows, features: &FeatureSpace);

    /// Adds what `other` has seen.
    fn merge(&mut self, other: &Self);

    /// Takes away what `other` has seen, which must have been added before.
    ///
    /// # Errors
    ///
    /// When `other` holds what was never added, or the subtraction would lose more than six digits.
    fn forget(&mut self, other: &Self) -> Result<()>;

    /// Multiplies every weight by `factor`, between 0 and 1.
    fn decay(&mut self, factor: f64);

    /// The same statistic under new numbers.
    fn remap(&self, ids: &Remap) -> Self;

    /// What was seen, as a value that a model row holds.
    fn encode(&self) -> State;

    /// What a state holds.
    ///
    /// # Errors
    ///
    /// `Corrupt` when it is not the state of this statistic.
    fn decode(state: &State) -> Result<Self>;

    /// Bytes on the heap.
    fn heap_size(&self) -> usize;
}

/// Moves `values` to new places; places nobody moves to stay zero, dropped ones go.
pub(crate) fn permute<I: Id>(values: &[f64], new_ids: &[I]) -> Vec<f64> {
    let kept = new_ids.iter().filter(|i| **i != I::NONE);
    let len = kept.map(|i| i.index() + 1).max().unwrap_or(0);
    let mut out = vec![0.0; len];
    for (&value, &id) in values.iter().zip(new_ids).filter(|(_, id)| **id != I::NONE) {
        out[id.index()] = value;
    }
    while out.last() == Some(&0.0) {
        out.pop();
    }
    out
}

#[cfg(test)]
mod tests;
