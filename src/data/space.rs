//! The numbering of one model: its labels and its features.

use super::{FeatureId, FeatureSpace, Id, LabelId, ValueId, Vocabulary};
use crate::error::{Error, Result};

/// Labels and features of one model, numbered in the order in which they were met.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Space {
    /// The labels.
    pub labels: Vocabulary<LabelId>,
    /// The features.
    pub features: FeatureSpace,
}

/// What a learner knows something about, by number: what it does not use need not be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Used {
    /// For each label.
    pub labels: Vec<bool>,
    /// For each sparse feature.
    pub sparse: Vec<bool>,
    /// For each category value.
    pub values: Vec<bool>,
}

impl Used {
    /// Everything in `space`.
    pub fn all(space: &Space) -> Self {
        Used::each(space, true)
    }

    /// Nothing in `space`.
    pub fn none(space: &Space) -> Self {
        Used::each(space, false)
    }

    fn each(space: &Space, used: bool) -> Self {
        Used {
            labels: vec![used; space.labels.len()],
            sparse: vec![used; space.features.sparse_len()],
            values: vec![used; space.features.value_len()],
        }
    }
}

/// New numbers for old ones ([`Id::NONE`] for a name that is dropped), family by family; dense
/// features and category columns are always in name order and keep their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remap {
    /// For each label.
    pub labels: Vec<LabelId>,
    /// For each sparse feature.
    pub sparse: Vec<FeatureId>,
    /// For each category value.
    pub values: Vec<ValueId>,
}

impl Remap {
    /// Every number of `space` as it is.
    pub fn identity(space: &Space) -> Self {
        Remap {
            labels: space.labels.ids().collect(),
            sparse: space.features.sparse.ids().collect(),
            values: ValueId::all(space.features.value_len()).collect(),
        }
    }

    /// Whether there are other names among the new numbers.
    pub fn widens(&self) -> bool {
        fn widened<I: Id>(ids: &[I]) -> bool {
            let kept = ids.iter().filter(|id| **id != I::NONE);
            kept.clone().count() < kept.map(|id| id.index() + 1).max().unwrap_or(0)
        }
        widened(&self.labels) || widened(&self.sparse) || widened(&self.values)
    }

    /// Whether every number stays what it is.
    pub fn is_identity(&self) -> bool {
        fn same<I: Id>(ids: &[I]) -> bool {
            ids.iter().enumerate().all(|(i, &id)| I::new(i) == id)
        }
        same(&self.labels) && same(&self.sparse) && same(&self.values)
    }
}

impl Space {
    /// Adds what `other` has and this has not; returns the numbers here of the things there.
    ///
    /// # Errors
    ///
    /// Spaces with different columns do not fit together; the first difference is named and this
    /// space stays as it was.
    pub fn absorb(&mut self, other: &Space) -> Result<Remap> {
        self.check_columns(other)?;
        self.take_columns(other);
        let labels = self.labels.absorb(&other.labels);
        let (mine, theirs) = (&mut self.features, &other.features);
        let sparse = theirs
            .sparse
            .ids()
            .map(|id| {
                let (kind, open) = (theirs.sparse_kind(id), theirs.sparse_open(id));
                mine.intern_sparse(theirs.sparse_name(id), kind, open)
            })
            .collect();
        let values = theirs
            .value_owner
            .iter()
            .map(|&(column, local)| {
                mine.intern_value(column, theirs.values[column as usize].name(local))
            })
            .collect();
        Ok(Remap { labels, sparse, values })
    }

    /// Takes the columns of `other` where there are none yet, else checks that they are the same.
    pub(crate) fn admit_columns(&mut self, other: &Space) -> Result<()> {
        // Quick where they are the same, which they are within one query.
        if !self.features.declared || !self.features.same_columns(&other.features) {
            self.check_columns(other)?;
            self.take_columns(other);
        }
        Ok(())
    }

    fn take_columns(&mut self, other: &Space) {
        let (mine, theirs) = (&mut self.features, &other.features);
        if mine.declared || !theirs.declared {
            return;
        }
        mine.declared = true;
        mine.dense = theirs.dense.clone();
        mine.dense_column = theirs.dense_column.clone();
        mine.open = theirs.open.clone();
        for name in theirs.categories.names() {
            mine.add_category(name);
        }
        // Flags that are columns belong to every row, seen or not.
        let flags = theirs.sparse.ids().filter(|&id| theirs.sparse_open(id).is_none());
        for id in flags {
            mine.intern_sparse(theirs.sparse_name(id), theirs.sparse_kind(id), None);
        }
    }

    fn check_columns(&self, other: &Space) -> Result<()> {
        let (mine, theirs) = (&self.features, &other.features);
        if !mine.declared || !theirs.declared {
            return Ok(());
        }
        if mine.open != theirs.open {
            return Err(Error::incompatible(
                "the models have different columns of maps or tokens: train them on the same columns",
            ));
        }
        let (mut a, mut b) = (mine.fixed().into_iter(), theirs.fixed().into_iter());
        loop {
            let (a, b) = (a.next(), b.next());
            let name = match (&a, &b) {
                (None, None) => return self.check_kinds(other),
                (Some(a), Some(b)) if a == b => continue,
                (Some(a), Some(b)) if a.name <= b.name => &a.name,
                (_, Some(f)) | (Some(f), None) => &f.name,
            };
            return Err(Error::incompatible(format!(
                "the models have different features: `{name}` is not the same column in both; \
                 train them on the same columns"
            )));
        }
    }

    fn check_kinds(&self, other: &Space) -> Result<()> {
        let (mine, theirs) = (&self.features, &other.features);
        for (id, name) in theirs.sparse.ids().zip(theirs.sparse.names()) {
            let Some(here) = mine.sparse.get(name) else { continue };
            let (a, b) = (mine.sparse_kind(here), theirs.sparse_kind(id));
            if a != b {
                return Err(Error::incompatible(format!(
                    "feature `{name}` is {a} in one model and {b} in the other: give it one type"
                )));
            }
            if mine.sparse_open(here) != theirs.sparse_open(id) {
                return Err(Error::incompatible(format!(
                    "feature `{name}` comes from different columns in the two models: rename one \
                     of the columns"
                )));
            }
        }
        Ok(())
    }

    /// The same space with every family in name order and without what is not used, and the new
    /// numbers.
    pub fn sorted(&self, used: &Used) -> (Space, Remap) {
        self.kept(used, Order::ByName)
    }

    /// The same space without what is not used, the rest in its order, and the new numbers.
    pub fn compacted(&self, used: &Used) -> (Space, Remap) {
        self.kept(used, Order::AsMet)
    }

    /// What is used, each family in `order`.
    fn kept(&self, used: &Used, order: Order) -> (Space, Remap) {
        let (labels, label_map) = kept(&self.labels, &used.labels, order);
        let old = &self.features;
        let is_used = |id: FeatureId| {
            old.sparse_open(id).is_none() || used.sparse.get(id.index()).copied().unwrap_or(false)
        };
        let keep: Vec<bool> = old.sparse.ids().map(is_used).collect();
        let (sparse, sparse_map) = kept(&old.sparse, &keep, order);
        let mut features = FeatureSpace {
            declared: old.declared,
            dense: old.dense.clone(),
            dense_column: old.dense_column.clone(),
            open: old.open.clone(),
            ..FeatureSpace::default()
        };
        for name in sparse.names() {
            if let Some(id) = old.sparse.get(name) {
                features.intern_sparse(name, old.sparse_kind(id), old.sparse_open(id));
            }
        }
        let mut values = vec![ValueId::NONE; old.value_len()];
        for (column, name) in old.categories.names().enumerate() {
            let id = features.add_category(name);
            let is_used = |id: &ValueId| used.values.get(id.index()).copied().unwrap_or(false);
            let keep: Vec<bool> = old.value_ids[column].iter().map(is_used).collect();
            for value in kept(&old.values[column], &keep, order).0.names() {
                let new = features.intern_value(id, value);
                if let Some(old_id) = old.value_id(column as u32, value) {
                    values[old_id.index()] = new;
                }
            }
        }
        (Space { labels, features }, Remap { labels: label_map, sparse: sparse_map, values })
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        self.labels.heap_size() + self.features.heap_size()
    }
}

/// How names that are kept are numbered.
#[derive(Debug, Clone, Copy)]
enum Order {
    ByName,
    AsMet,
}

/// The names to keep, in `order`, and the new number of each old one.
fn kept<I: Id>(names: &Vocabulary<I>, keep: &[bool], order: Order) -> (Vocabulary<I>, Vec<I>) {
    let (all, mut new_ids) = match order {
        Order::ByName => names.sorted(),
        Order::AsMet => (names.clone(), names.ids().collect()),
    };
    let is_kept = |old: usize| keep.get(old).copied().unwrap_or(false);
    if (0..names.len()).all(is_kept) {
        return (all, new_ids);
    }
    let mut places = vec![0; names.len()];
    new_ids.iter().enumerate().for_each(|(old, &place)| places[place.index()] = old);
    let mut kept = Vocabulary::default();
    for (place, old) in places.into_iter().enumerate() {
        new_ids[old] = if is_kept(old) { kept.intern_of(&all, I::new(place)) } else { I::NONE };
    }
    (kept, new_ids)
}
