//! What is known of every feature in every group of rows.

use super::count_vector::CountVector;
use super::{
    Cell, Count, GroupMoments, Grouping, Moment, OneGroup, PairTable, State, StateReader,
    StateWriter, Statistic,
};
use crate::data::{
    FeatureId, FeatureKind, FeatureSpace, Id, MISSING_CATEGORY, Remap, Rows, Used, ValueId,
};
use crate::error::Result;
use std::marker::PhantomData;

/// Per group: weight of rows, moments of dense features, counts (or moments) of sparse features,
/// counts of category values.
///
/// Sparse features store what occurs; what does not is derived: a row whose map lacks a key has a
/// zero there, so zeros are the rows of the group less those with an entry or a missing value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FeatureStats<G> {
    rows: CountVector,
    open_rows: PairTable<Count>,
    dense: GroupMoments,
    counts: PairTable<Count>,
    moments: PairTable<Moment>,
    missing: PairTable<Count>,
    values: PairTable<Count>,
    groups: PhantomData<G>,
}

impl<G: Grouping> FeatureStats<G> {
    /// The weight of the rows in `group`.
    pub fn rows(&self, group: u32) -> f64 {
        self.rows.get(group)
    }

    /// The weight of the rows in `group` whose map or tokens of open column `open` are there.
    pub fn open_rows(&self, group: u32, open: u32) -> f64 {
        self.open_rows.get(group, open).0
    }

    /// How many groups have been seen.
    pub fn groups(&self) -> usize {
        self.rows.0.len()
    }

    /// The moments of dense features.
    #[inline]
    pub fn dense(&self) -> &GroupMoments {
        &self.dense
    }

    /// Sums of binary and count features, as (group, feature, sum).
    pub fn counts(&self) -> Vec<(u32, FeatureId, Count)> {
        entries(&self.counts)
    }

    /// Moments of the non-zero values of sparse numeric features, as (group, feature, moment).
    pub fn moments(&self) -> Vec<(u32, FeatureId, Moment)> {
        entries(&self.moments)
    }

    /// Rows in which a sparse feature is missing, as (group, feature, weight).
    pub fn missing(&self) -> Vec<(u32, FeatureId, Count)> {
        entries(&self.missing)
    }

    /// Rows with a category value, as (group, value, weight).
    pub fn values(&self) -> Vec<(u32, ValueId, Count)> {
        entries(&self.values)
    }

    /// The same statistic over all groups together.
    ///
    /// Exact when every row is in one group, as it is when grouped by size.
    pub fn pooled(&self) -> FeatureStats<OneGroup> {
        let mut pooled = FeatureStats {
            open_rows: pool(&self.open_rows),
            counts: pool(&self.counts),
            moments: pool(&self.moments),
            missing: pool(&self.missing),
            values: pool(&self.values),
            ..FeatureStats::default()
        };
        pooled.rows.add(0, self.rows.0.iter().sum());
        self.dense.pool_into(&mut pooled.dense);
        pooled
    }

    /// Marks the sparse features and category values that something is known about.
    pub fn mark_used(&self, used: &mut Used) {
        let sparse = [&self.counts, &self.missing].into_iter().flat_map(PairTable::entries);
        let sparse = sparse.map(|e| e.1).chain(self.moments.entries().into_iter().map(|e| e.1));
        for id in sparse {
            if let Some(slot) = used.sparse.get_mut(id as usize) {
                *slot = true;
            }
        }
        for (_, id, _) in self.values.entries() {
            if let Some(slot) = used.values.get_mut(id as usize) {
                *slot = true;
            }
        }
    }

    /// Whether every number is below the given bounds: (groups, dense, sparse, category values).
    pub fn fits(&self, groups: usize, space: &FeatureSpace) -> bool {
        let inside = |(rows, columns): (usize, usize), top: usize| rows <= groups && columns <= top;
        self.rows.0.len() <= groups
            && inside(self.open_rows.shape(), space.open_len())
            && self.dense.groups() <= groups
            && (self.dense.width() == 0 || self.dense.width() == space.dense_len())
            && inside(self.counts.shape(), space.sparse_len())
            && inside(self.moments.shape(), space.sparse_len())
            && inside(self.missing.shape(), space.sparse_len())
            && inside(self.values.shape(), space.value_len())
    }
}

impl<G: Grouping> Statistic for FeatureStats<G> {
    fn observe(&mut self, rows: &Rows, features: &FeatureSpace) {
        let made = G::make(rows);
        let groups = |row: usize| G::groups(rows, &made, row);
        self.dense.observe(rows, groups);
        for row in 0..rows.len {
            let weight = rows.weight(row);
            for group in groups(row).iter().map(|group| group.index() as u32) {
                self.rows.add(group, weight);
                for open in (0..rows.open_width as u32).filter(|&o| rows.has_open(row, o)) {
                    self.open_rows.add(group, open, Count(weight));
                }
                for &value in rows.category_row(row) {
                    if value != MISSING_CATEGORY {
                        self.values.add(group, value.0, Count(weight));
                    }
                }
                if rows.sparse.is_empty() {
                    continue;
                }
                let (ids, values) = rows.sparse.row(row);
                for (&id, &value) in ids.iter().zip(values) {
                    if value.is_nan() {
                        self.missing.add(group, id.0, Count(weight));
                    } else if features.sparse_kind(id) == FeatureKind::Numeric {
                        self.moments.add(group, id.0, Moment::weighted(value, weight));
                    } else {
                        self.counts.add(group, id.0, Count(weight * value));
                    }
                }
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.rows.merge(&other.rows);
        self.open_rows.merge(&other.open_rows);
        self.dense.merge(&other.dense);
        self.counts.merge(&other.counts);
        self.moments.merge(&other.moments);
        self.missing.merge(&other.missing);
        self.values.merge(&other.values);
    }

    fn forget(&mut self, other: &Self) -> Result<()> {
        let mut left = self.clone();
        left.rows.forget(&other.rows)?;
        left.open_rows.forget(&other.open_rows)?;
        left.dense.forget(&other.dense)?;
        left.counts.forget(&other.counts)?;
        left.moments.forget(&other.moments)?;
        left.missing.forget(&other.missing)?;
        left.values.forget(&other.values)?;
        *self = left;
        Ok(())
    }

    fn decay(&mut self, factor: f64) {
        self.rows.decay(factor);
        self.open_rows.decay(factor);
        self.dense.decay(factor);
        self.counts.decay(factor);
        self.moments.decay(factor);
        self.missing.decay(factor);
        self.values.decay(factor);
    }

    fn remap(&self, ids: &Remap) -> Self {
        let groups = G::renumbered(ids);
        let vector = |v: &CountVector| match groups {
            Some(groups) => CountVector(super::permute(&v.0, groups)),
            None => v.clone(),
        };
        let group = |g: u32| groups.map_or(g, |groups| groups[g.index()].index() as u32);
        let sparse = |f: u32| ids.sparse[f.index()].0;
        FeatureStats {
            rows: vector(&self.rows),
            open_rows: self.open_rows.remap(group, |open| open),
            dense: groups.map_or_else(|| self.dense.clone(), |g| self.dense.remap(g)),
            counts: self.counts.remap(group, sparse),
            moments: self.moments.remap(group, sparse),
            missing: self.missing.remap(group, sparse),
            values: self.values.remap(group, |v| ids.values[v.index()].0),
            groups: PhantomData,
        }
    }

    fn encode(&self) -> State {
        // Tables without an entry are left out: most models have features of one family only.
        let mut writer = StateWriter::default();
        writer.nested("rows", self.rows.encode());
        writer.optional("open_rows", self.open_rows.encode_some());
        writer.nested("dense", self.dense.encode());
        writer.optional("counts", self.counts.encode_some());
        writer.optional("moments", self.moments.encode_some());
        writer.optional("missing", self.missing.encode_some());
        writer.optional("values", self.values.encode_some());
        writer.finish()
    }

    fn decode(state: &State) -> Result<Self> {
        let reader = StateReader::new(state);
        Ok(FeatureStats {
            rows: CountVector::decode(reader.nested("rows")?)?,
            open_rows: PairTable::decode_some(reader.optional("open_rows")?)?,
            dense: GroupMoments::decode(reader.nested("dense")?)?,
            counts: PairTable::decode_some(reader.optional("counts")?)?,
            moments: PairTable::decode_some(reader.optional("moments")?)?,
            missing: PairTable::decode_some(reader.optional("missing")?)?,
            values: PairTable::decode_some(reader.optional("values")?)?,
            groups: PhantomData,
        })
    }

    fn heap_size(&self) -> usize {
        self.rows.heap_size()
            + self.open_rows.heap_size()
            + self.dense.heap_size()
            + self.counts.heap_size()
            + self.moments.heap_size()
            + self.missing.heap_size()
            + self.values.heap_size()
    }
}

/// The entries of a table whose columns are numbered by `I`.
fn entries<I: Id, C: Cell>(table: &PairTable<C>) -> Vec<(u32, I, C)> {
    let entries = table.entries().into_iter();
    entries.map(|(group, id, cell)| (group, I::new(id.index()), cell)).collect()
}

fn pool<C: Cell>(table: &PairTable<C>) -> PairTable<C> {
    let mut out = PairTable::default();
    for (_, column, cell) in table.entries() {
        out.add(0, column, cell);
    }
    out
}
