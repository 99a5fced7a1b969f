//! Names and their numbers.

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
/// use labelflow::data::Vocabulary;
///
/// let mut v = Vocabulary::default();
/// assert_eq!(v.intern("rock"), 0);
/// assert_eq!(v.intern("jazz"), 1);
/// assert_eq!(v.intern("rock"), 0);
/// let (sorted, new_ids) = v.sorted();
/// assert_eq!(sorted.name(0), "jazz");
/// assert_eq!(new_ids, [1, 0]);
/// ```
///
/// # Cost
///
/// A clone shares the names until one of the two gets another name.
#[derive(Debug, Clone, Default)]
pub struct Vocabulary(Arc<Names>);

#[derive(Debug, Clone, Default)]
struct Names {
    names: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, u32, FixedState>,
}

impl Vocabulary {
    /// A vocabulary of `names` in the given order.
    ///
    /// # Errors
    ///
    /// A name that stands twice is named.
    pub fn try_from_names<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Result<Self> {
        let mut v = Vocabulary::default();
        for name in names {
            let name = name.as_ref();
            let next = v.len();
            if v.intern(name) as usize != next {
                return Err(Error::data(format!("the name `{name}` stands twice in a vocabulary")));
            }
        }
        Ok(v)
    }

    /// The number of `name`, which is added when new.
    pub fn intern(&mut self, name: &str) -> u32 {
        match self.get(name) {
            Some(id) => id,
            None => self.add(name.into()),
        }
    }

    /// The number here of the name `id` of `other`, which is added when new.
    pub(crate) fn intern_of(&mut self, other: &Vocabulary, id: u32) -> u32 {
        let Some(name) = other.0.names.get(id as usize) else { return self.intern("") };
        match self.get(name) {
            Some(id) => id,
            None => self.add(Arc::clone(name)),
        }
    }

    fn add(&mut self, name: Arc<str>) -> u32 {
        let inner = Arc::make_mut(&mut self.0);
        let id = inner.names.len() as u32;
        inner.names.push(Arc::clone(&name));
        inner.ids.insert(name, id);
        id
    }

    /// The number of `name`, if it is known.
    pub fn get(&self, name: &str) -> Option<u32> {
        self.0.ids.get(name).copied()
    }

    /// The name numbered `id`; empty when there is none.
    pub fn name(&self, id: u32) -> &str {
        self.0.names.get(id as usize).map_or("", |n| n)
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
    pub fn sorted(&self) -> (Vocabulary, Vec<u32>) {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        if self.0.names.is_sorted() {
            return (self.clone(), order);
        }
        order.sort_unstable_by(|&a, &b| self.name(a).as_bytes().cmp(self.name(b).as_bytes()));
        let mut new_ids = vec![0; self.len()];
        let mut sorted = Vocabulary::default();
        for old in order {
            new_ids[old as usize] = sorted.intern_of(self, old);
        }
        (sorted, new_ids)
    }

    /// Adds the names of `other`; returns the number here of each name there.
    pub fn absorb(&mut self, other: &Vocabulary) -> Vec<u32> {
        (0..other.len() as u32).map(|id| self.intern_of(other, id)).collect()
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

impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.names == other.0.names
    }
}
