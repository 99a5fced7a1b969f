//! Names and their numbers.

use super::Id;
use crate::error::{Error, Result};
use crate::math::FixedState;
use std::collections::HashMap;
use std::sync::Arc;

/// An open list of distinct names, numbered in the order in which they were met.
///
/// Numbers are an inner matter: whatever leaves labelflow is in name order (UTF-8 bytes), which
/// [`Vocabulary::sorted`] establishes.
///
/// # Examples
///
/// ```
/// use labelflow::data::{LabelId, Vocabulary};
///
/// let mut v = Vocabulary::default();
/// assert_eq!(v.intern("rock"), LabelId(0));
/// assert_eq!(v.intern("jazz"), LabelId(1));
/// assert_eq!(v.intern("rock"), LabelId(0));
/// let (sorted, new_ids) = v.sorted();
/// assert_eq!(sorted.name(LabelId(0)), "jazz");
/// assert_eq!(new_ids, [1, 0].map(LabelId));
/// ```
///
/// # Cost
///
/// A clone shares the names until one of the two gets another name.
#[derive(Debug, Clone)]
pub struct Vocabulary<I>(Arc<Names<I>>);

#[derive(Debug, Clone)]
struct Names<I> {
    names: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, I, FixedState>,
}

impl<I> Default for Vocabulary<I> {
    fn default() -> Self {
        Vocabulary(Arc::new(Names { names: Vec::new(), ids: HashMap::default() }))
    }
}

impl<I: Id> Vocabulary<I> {
    /// A vocabulary of `names` in the given order.
    ///
    /// # Errors
    ///
    /// A name that stands twice is named.
    pub fn try_from_names<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Result<Self> {
        let mut v = Self::default();
        for name in names {
            let name = name.as_ref();
            let next = v.len();
            if v.intern(name).index() != next {
                return Err(Error::data(format!("the name `{name}` stands twice in a vocabulary")));
            }
        }
        Ok(v)
    }

    /// The number of `name`, which is added when new.
    pub fn intern(&mut self, name: &str) -> I {
        match self.get(name) {
            Some(id) => id,
            None => self.add(name.into()),
        }
    }

    /// The number here of the name `id` of `other`, which is added when new.
    pub(crate) fn intern_of(&mut self, other: &Self, id: I) -> I {
        let Some(name) = other.0.names.get(id.index()) else { return self.intern("") };
        match self.get(name) {
            Some(id) => id,
            None => self.add(Arc::clone(name)),
        }
    }

    fn add(&mut self, name: Arc<str>) -> I {
        let inner = Arc::make_mut(&mut self.0);
        let id = I::new(inner.names.len());
        inner.names.push(Arc::clone(&name));
        inner.ids.insert(name, id);
        id
    }

    /// The number of `name`, if it is known.
    pub fn get(&self, name: &str) -> Option<I> {
        self.0.ids.get(name).copied()
    }

    /// The name numbered `id`; empty when there is none.
    pub fn name(&self, id: I) -> &str {
        self.0.names.get(id.index()).map_or("", |n| n)
    }

    /// The numbers of all names, ascending.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + Clone + use<I> {
        I::all(self.len())
    }

    /// All names by number.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.names.iter().map(|n| &**n)
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.0.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.names.is_empty()
    }

    /// The same names in name order, and for each old number the new one.
    pub fn sorted(&self) -> (Self, Vec<I>) {
        let mut order: Vec<I> = self.ids().collect();
        if self.0.names.is_sorted() {
            return (self.clone(), order);
        }
        order.sort_unstable_by(|&a, &b| self.name(a).as_bytes().cmp(self.name(b).as_bytes()));
        let mut new_ids = vec![I::NONE; self.len()];
        let mut sorted = Vocabulary::default();
        for old in order {
            new_ids[old.index()] = sorted.intern_of(self, old);
        }
        (sorted, new_ids)
    }

    /// Adds the names of `other`; returns the number here of each name there.
    pub fn absorb(&mut self, other: &Self) -> Vec<I> {
        other.ids().map(|id| self.intern_of(other, id)).collect()
    }

    /// Forgets all names but the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len >= self.len() {
            return;
        }
        let inner = Arc::make_mut(&mut self.0);
        for name in inner.names.drain(len..) {
            inner.ids.remove(&name);
        }
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        let text: usize = self.0.names.iter().map(|n| n.len() + 16).sum();
        text + self.0.names.capacity() * 16 + self.0.ids.capacity() * 25
    }
}

impl<I> PartialEq for Vocabulary<I> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.names == other.0.names
    }
}
