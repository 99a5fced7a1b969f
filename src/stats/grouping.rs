//! Which groups a row belongs to.

use crate::data::{Id, LabelId, Remap};
use std::fmt::Debug;

/// What the groups of a [`FeatureStats`](super::FeatureStats) are.
pub trait Grouping: Debug + Clone + Default + PartialEq + Send + Sync + 'static {
    /// What numbers a group.
    type Group: Id;

    /// The groups of a row with the label set `labels`; `size` is how many labels these are.
    fn groups<'a>(labels: &'a [LabelId], size: &'a [u32]) -> &'a [Self::Group];

    /// The new numbers of groups, where they change with those of labels.
    fn renumbered(ids: &Remap) -> Option<&[Self::Group]>;
}

/// A row belongs to the group of each of its labels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ByLabel;

/// A row belongs to the group of the size of its label set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BySize;

/// Every row belongs to group 0.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OneGroup;

impl Grouping for ByLabel {
    type Group = LabelId;

    fn groups<'a>(labels: &'a [LabelId], _size: &'a [u32]) -> &'a [LabelId] {
        labels
    }

    fn renumbered(ids: &Remap) -> Option<&[LabelId]> {
        Some(&ids.labels)
    }
}

impl Grouping for BySize {
    type Group = u32;

    fn groups<'a>(_labels: &'a [LabelId], size: &'a [u32]) -> &'a [u32] {
        size
    }

    fn renumbered(_ids: &Remap) -> Option<&[u32]> {
        None
    }
}

impl Grouping for OneGroup {
    type Group = u32;

    fn groups<'a>(_labels: &'a [LabelId], _size: &'a [u32]) -> &'a [u32] {
        &[0]
    }

    fn renumbered(_ids: &Remap) -> Option<&[u32]> {
        None
    }
}
