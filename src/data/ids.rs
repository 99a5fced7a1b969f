//! Numbers of labels, features and values, each of a type of its own.

use std::fmt::Debug;
use std::hash::Hash;

/// A number that stands for a name in a [`Vocabulary`](super::Vocabulary), or for a thing that has
/// one.
///
/// [`LabelId`], [`FeatureId`] and [`ValueId`] cannot be taken for each other. Columns of a table,
/// which are few and fixed, are numbered by plain `u32`.
///
/// # Examples
///
/// ```
/// use labelflow::data::{Id, LabelId};
///
/// let scores = [0.2, 0.9, 0.7];
/// let likely: Vec<LabelId> = LabelId::all(3).filter(|y| scores[y.index()] > 0.5).collect();
/// assert_eq!(likely, [1, 2].map(LabelId));
/// ```
pub trait Id: Copy + Debug + Eq + Ord + Hash + Send + Sync + 'static {
    /// Stands for no name: one that is not known, is missing, or was dropped.
    const NONE: Self;

    /// The number of the name in place `index` of a list, which has fewer than 2^32 names.
    fn new(index: usize) -> Self;

    /// The place of the name in a list.
    fn index(self) -> usize;

    /// The numbers of `len` names, ascending.
    fn all(len: usize) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator + Clone {
        (0..len).map(Self::new)
    }
}

impl Id for u32 {
    const NONE: Self = u32::MAX;

    #[inline]
    fn new(index: usize) -> Self {
        index as u32
    }

    #[inline]
    fn index(self) -> usize {
        self as usize
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl Id for $name {
            const NONE: Self = $name(u32::NONE);

            #[inline]
            fn new(index: usize) -> Self {
                $name(index as u32)
            }

            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// The number of a label in a space.
    LabelId
    /// The number of a sparse feature: a flag, the key of a map, or a token.
    FeatureId
    /// The number of a value of a category column, among the values of all such columns.
    ValueId
}
