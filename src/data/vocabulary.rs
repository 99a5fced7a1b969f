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
#[derive(Debug, Clone, Default)]
pub struct Vocabulary {
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
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = self.names.len() as u32;
        let name: Arc<str> = name.into();
        self.names.push(Arc::clone(&name));
        self.ids.insert(name, id);
        id
    }

    /// The number of `name`, if it is known.
    pub fn get(&self, name: &str) -> Option<u32> {
        self.ids.get(name).copied()
    }

    /// The name numbered `id`; empty when there is none.
    pub fn name(&self, id: u32) -> &str {
        self.names.get(id as usize).map_or("", |n| n)
    }

    /// All names by number.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(|n| &**n)
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The same names in name order, and for each old number the new one.
    pub fn sorted(&self) -> (Vocabulary, Vec<u32>) {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        order.sort_unstable_by(|&a, &b| self.name(a).as_bytes().cmp(self.name(b).as_bytes()));
        let mut new_ids = vec![0; self.len()];
        let mut sorted = Vocabulary::default();
        for old in order {
            new_ids[old as usize] = sorted.intern(self.name(old));
        }
        (sorted, new_ids)
    }

    /// Adds the names of `other`; returns the number here of each name there.
    pub fn absorb(&mut self, other: &Vocabulary) -> Vec<u32> {
        other.names().map(|name| self.intern(name)).collect()
    }

    /// Forgets all names but the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        for name in self.names.drain(len.min(self.names.len())..) {
            self.ids.remove(&name);
        }
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        let text: usize = self.names.iter().map(|n| n.len() + 16).sum();
        text + self.names.capacity() * 16 + self.ids.capacity() * 25
    }
}

impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names
    }
}
