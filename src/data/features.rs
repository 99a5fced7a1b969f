//! Feature spaces: which features there are, of which kind, and how they are numbered.

use super::{FeatureId, Id, Pattern, ValueId, Vocabulary};
use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// How the values of a feature are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FeatureKind {
    /// A real number.
    Numeric,
    /// Present or absent.
    Binary,
    /// How often something occurred; zero or more.
    Count,
    /// One of several values without order.
    Category,
}

impl FeatureKind {
    /// The name in model rows and messages.
    pub fn name(self) -> &'static str {
        match self {
            FeatureKind::Numeric => "numeric",
            FeatureKind::Binary => "binary",
            FeatureKind::Count => "count",
            FeatureKind::Category => "category",
        }
    }

    /// The kind that an event model of naive Bayes is for; `None` for `auto`, which goes by types.
    pub(crate) fn of_event(event: &str) -> Option<Self> {
        match event {
            "gaussian" => Some(FeatureKind::Numeric),
            "bernoulli" => Some(FeatureKind::Binary),
            "multinomial" => Some(FeatureKind::Count),
            "categorical" => Some(FeatureKind::Category),
            _ => None,
        }
    }
}

impl fmt::Display for FeatureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FeatureKind {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        [FeatureKind::Numeric, FeatureKind::Binary, FeatureKind::Count, FeatureKind::Category]
            .into_iter()
            .find(|k| k.name() == s)
            .ok_or_else(|| Error::corrupt(format!("`{s}` is no kind of feature")))
    }
}

/// One feature as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// Its name.
    pub name: String,
    /// How its values are read.
    pub kind: FeatureKind,
    /// Whether it is a column that must be there (as against a map key, a token or a list entry).
    pub column: bool,
}

/// What an algorithm wants of its features beyond what their types say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FeatureOptions {
    /// Read every feature that allows it as this kind.
    pub force: Option<FeatureKind>,
    /// Columns whose values are counts, whatever `force` says.
    pub counts: Vec<Pattern>,
    /// A column that holds the size of the set to predict and is no feature.
    pub given_size: Option<String>,
    /// Whether an evaluation may give the true size of each set, because the spec asks for it.
    pub true_size: bool,
    /// The most features that may appear; `None` is no bound.
    pub max_features: Option<usize>,
    /// The most labels that may appear; `None` is no bound.
    pub max_labels: Option<usize>,
}

/// The features of a model in three families, each with its own numbers.
///
/// - *dense*: numeric columns and entries of numeric lists; a fixed set, numbered in name order;
/// - *sparse*: flags, map keys and tokens; an open set, since new keys may appear at any row; keys
///   and tokens belong to the *open column* they come from;
/// - *categories*: text columns; a fixed set of columns with open sets of values.
///
/// # Cost
///
/// Memory follows the number of names, not the number of rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FeatureSpace {
    pub(crate) declared: bool,
    pub(crate) dense: Vocabulary<u32>,
    /// For each dense feature, whether it is a column of its own (else an entry of a list).
    pub(crate) dense_column: Vec<bool>,
    /// Prefixes of the columns of maps, tokens and sparse vectors, in name order.
    pub(crate) open: Vocabulary<u32>,
    pub(crate) sparse: Vocabulary<FeatureId>,
    pub(crate) sparse_kind: Vec<FeatureKind>,
    /// For each sparse feature the open column it comes from; `None` is a column of its own.
    pub(crate) sparse_open: Vec<Option<u32>>,
    pub(crate) categories: Vocabulary<u32>,
    pub(crate) values: Vec<Vocabulary<u32>>,
    /// For each category column and value there, its number among all values.
    pub(crate) value_ids: Vec<Vec<ValueId>>,
    /// For each value number, its category column and its number there.
    pub(crate) value_owner: Vec<(u32, u32)>,
}

impl FeatureSpace {
    /// How many dense features there are.
    pub fn dense_len(&self) -> usize {
        self.dense.len()
    }

    /// How many sparse features there are.
    pub fn sparse_len(&self) -> usize {
        self.sparse.len()
    }

    /// How many category columns there are.
    pub fn category_len(&self) -> usize {
        self.categories.len()
    }

    /// How many category values there are over all columns.
    pub fn value_len(&self) -> usize {
        self.value_owner.len()
    }

    /// How many features there are (a category column is one).
    pub fn len(&self) -> usize {
        self.dense.len() + self.sparse.len() + self.categories.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of dense feature `id`.
    pub fn dense_name(&self, id: u32) -> &str {
        self.dense.name(id)
    }

    /// The name of sparse feature `id`.
    pub fn sparse_name(&self, id: FeatureId) -> &str {
        self.sparse.name(id)
    }

    /// The kind of sparse feature `id`.
    pub fn sparse_kind(&self, id: FeatureId) -> FeatureKind {
        self.sparse_kind.get(id.index()).copied().unwrap_or(FeatureKind::Count)
    }

    /// The open column that sparse feature `id` comes from; `None` when it is a column itself.
    pub fn sparse_open(&self, id: FeatureId) -> Option<u32> {
        self.sparse_open.get(id.index()).copied().flatten()
    }

    /// How many columns of maps, tokens or sparse vectors there are.
    pub fn open_len(&self) -> usize {
        self.open.len()
    }

    /// The category column and the text of value number `id`.
    pub fn value(&self, id: ValueId) -> Option<(&str, &str)> {
        let &(column, local) = self.value_owner.get(id.index())?;
        Some((self.categories.name(column), self.values.get(column as usize)?.name(local)))
    }

    /// The category column that value number `id` belongs to.
    pub fn value_category(&self, id: ValueId) -> Option<u32> {
        self.value_owner.get(id.index()).map(|o| o.0)
    }

    /// The numbers of the values of category column `column`.
    pub fn values_of(&self, column: u32) -> &[ValueId] {
        self.value_ids.get(column as usize).map_or(&[], |v| v)
    }

    /// All features in name order.
    pub fn features(&self) -> Vec<Feature> {
        let dense = self.dense.names().zip(&self.dense_column).map(|(name, &column)| Feature {
            name: name.to_string(),
            kind: FeatureKind::Numeric,
            column,
        });
        let sparse = self
            .sparse
            .names()
            .zip(&self.sparse_kind)
            .zip(&self.sparse_open)
            .map(|((name, &kind), open)| (name.to_string(), kind, open.is_none()))
            .map(|(name, kind, column)| Feature { name, kind, column });
        let categories = self.categories.names().map(|name| Feature {
            name: name.to_string(),
            kind: FeatureKind::Category,
            column: true,
        });
        let mut all: Vec<Feature> = dense.chain(sparse).chain(categories).collect();
        all.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        all
    }

    /// The features that are the same in every batch, in name order.
    pub(crate) fn fixed(&self) -> Vec<Feature> {
        let mut all = self.features();
        all.retain(|f| f.column || self.dense.get(&f.name).is_some());
        all
    }

    /// Writes what decides how features are read and numbered: equal bytes, equal reading.
    pub(crate) fn write_reading(&self, out: &mut Vec<u8>) {
        write_names(&self.dense, out);
        write_names(&self.open, out);
        write_names(&self.sparse, out);
        write_names(&self.categories, out);
        self.values.iter().for_each(|names| write_names(names, out));
        out.extend(self.dense_column.iter().map(|&column| u8::from(column)));
        out.extend(self.sparse_kind.iter().map(|&kind| kind as u8));
        let open = self.sparse_open.iter().map(|open| open.map_or(0, |o| o as usize + 1));
        open.for_each(|open| write_number(open, out));
        self.value_ids.iter().flatten().for_each(|id| write_number(id.index(), out));
    }

    /// Whether the columns have the same names in the same families; kinds of flags aside.
    pub(crate) fn same_columns(&self, other: &FeatureSpace) -> bool {
        self.dense == other.dense
            && self.dense_column == other.dense_column
            && self.open == other.open
            && self.categories == other.categories
            && self.sparse_columns().eq(other.sparse_columns())
    }

    /// The names of the sparse features that are columns of their own and come before all others,
    /// as they do where rows are learned.
    fn sparse_columns(&self) -> impl Iterator<Item = &str> {
        let columns = self.sparse_open.iter().take_while(|open| open.is_none());
        columns.zip(self.sparse.names()).map(|(_, name)| name)
    }

    /// The number of the sparse feature `name`, added when new.
    pub(crate) fn intern_sparse(
        &mut self,
        name: &str,
        kind: FeatureKind,
        open: Option<u32>,
    ) -> FeatureId {
        let id = self.sparse.intern(name);
        if id.index() == self.sparse_kind.len() {
            self.sparse_kind.push(kind);
            self.sparse_open.push(open);
        }
        id
    }

    /// Forgets all sparse features and category values but the first so many.
    pub(crate) fn truncate(&mut self, sparse: usize, values: usize) {
        self.sparse.truncate(sparse);
        self.sparse_kind.truncate(sparse);
        self.sparse_open.truncate(sparse);
        for (column, local) in self.value_owner.drain(values.min(self.value_owner.len())..) {
            self.values[column as usize].truncate(local as usize);
            self.value_ids[column as usize].truncate(local as usize);
        }
    }

    /// The number of `value` of category column `column`, added when new.
    pub(crate) fn intern_value(&mut self, column: u32, value: &str) -> ValueId {
        let c = column as usize;
        let local = self.values[c].intern(value);
        if local as usize == self.value_ids[c].len() {
            self.value_ids[c].push(ValueId::new(self.value_owner.len()));
            self.value_owner.push((column, local));
        }
        self.value_ids[c][local as usize]
    }

    /// The number of `value` of category column `column`, if it is known.
    pub(crate) fn value_id(&self, column: u32, value: &str) -> Option<ValueId> {
        let local = self.values.get(column as usize)?.get(value)?;
        self.value_ids.get(column as usize)?.get(local as usize).copied()
    }

    /// Adds category column `name`.
    pub(crate) fn add_category(&mut self, name: &str) -> u32 {
        let id = self.categories.intern(name);
        if id as usize == self.values.len() {
            self.values.push(Vocabulary::default());
            self.value_ids.push(Vec::new());
        }
        id
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        self.dense.heap_size()
            + self.dense_column.capacity()
            + self.sparse.heap_size()
            + self.sparse_kind.capacity()
            + self.sparse_open.capacity() * size_of::<Option<u32>>()
            + self.categories.heap_size()
            + self.values.iter().map(Vocabulary::heap_size).sum::<usize>()
            + self.value_owner.capacity() * 12
    }
}

fn write_number(n: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(n as u64).to_le_bytes());
}

fn write_names<I: Id>(names: &Vocabulary<I>, out: &mut Vec<u8>) {
    write_number(names.len(), out);
    for name in names.names() {
        write_number(name.len(), out);
        out.extend_from_slice(name.as_bytes());
    }
}
