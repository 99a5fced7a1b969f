//! Which groups a row belongs to.

use crate::data::{Id, LabelId, Remap, Rows};
use std::fmt::Debug;

/// What the groups of a [`FeatureStats`](super::FeatureStats) are.
pub trait Grouping: Debug + Clone + Default + PartialEq + Send + Sync + 'static {
    /// What numbers a group.
    type Group: Id;

    /// The numbers of groups that have to be made of rows, one for each row; none where rows have them.
    fn make(_rows: &Rows) -> Vec<Self::Group> {
        Vec::new()
    }

    /// The groups of row `row`; `made` is what was made of the rows.
    fn groups<'a>(rows: &'a Rows, made: &'a [Self::Group], row: usize) -> &'a [Self::Group];

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

    fn groups<'a>(rows: &'a Rows, _made: &'a [LabelId], row: usize) -> &'a [LabelId] {
        rows.labels.row(row)
    }

    fn renumbered(ids: &Remap) -> Option<&[LabelId]> {
        Some(&ids.labels)
    }
}

impl Grouping for BySize {
    type Group = u32;

    fn make(rows: &Rows) -> Vec<u32> {
        rows.labels.iter().map(|set| set.len() as u32).collect()
    }

    fn groups<'a>(_rows: &'a Rows, made: &'a [u32], row: usize) -> &'a [u32] {
        &made[row..=row]
    }

    fn renumbered(_ids: &Remap) -> Option<&[u32]> {
        None
    }
}

impl Grouping for OneGroup {
    type Group = u32;

    fn groups<'a>(_rows: &'a Rows, _made: &'a [u32], _row: usize) -> &'a [u32] {
        &[0]
    }

    fn renumbered(_ids: &Remap) -> Option<&[u32]> {
        None
    }
}
