//! Distinct rows, each with its key and how often it was seen.

use crate::data::{FeatureId, Id, LabelId, MISSING_CATEGORY, Remap, Rows, Space, ValueId};
use crate::math::{STEP, content_hash, mix};

/// Distinct rows: columns, and for each row how often it was seen.
#[derive(Debug, Clone, Default)]
pub struct RowTable {
    /// Features and labels, in the numbering of one space.
    pub rows: Rows,
    /// How often each row was seen.
    pub counts: Vec<u64>,
    /// A hash of the content of each row: features in the upper half, labels and features in the
    /// lower one. It does not depend on the numbering.
    pub keys: Vec<u128>,
}

impl RowTable {
    /// How many distinct rows there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many rows were seen, equal ones counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// All rows in the same order, a row that was seen several times as often as it was seen.
    pub fn repeated(&self) -> Rows {
        let mut out = Rows::default();
        for (row, &count) in self.counts.iter().enumerate() {
            (0..count).for_each(|_| out.push_row(&self.rows, row, None));
        }
        out
    }

    pub(super) fn push(&mut self, from: &Rows, row: usize, key: u128, count: u64) {
        self.rows.push_row(from, row, None);
        self.keys.push(key);
        self.counts.push(count);
    }

    /// The rows `order`, in that order, under the numbers of `ids`.
    pub(super) fn take(&self, order: &[u32], ids: Option<&Remap>) -> RowTable {
        let mut out = RowTable::default();
        out.rows.dense.reserve_exact(order.len() * self.rows.dense_width);
        for &row in order {
            out.rows.push_row(&self.rows, row as usize, ids);
        }
        out.keys = order.iter().map(|&row| self.keys[row as usize]).collect();
        out.counts = order.iter().map(|&row| self.counts[row as usize]).collect();
        out
    }

    pub(super) fn heap_size(&self) -> usize {
        self.rows.heap_size() + 8 * self.counts.capacity() + 16 * self.keys.capacity()
    }
}

/// Hashes of names by number, so that each name is hashed once.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameHashes {
    /// Those of labels stay when numbers change: labels can leave rows that are kept.
    labels: Vec<u64>,
    /// How many labels have the numbers of the space at hand.
    numbered: usize,
    sparse: Vec<u64>,
    values: Vec<u64>,
    bytes: Vec<u8>,
}

impl NameHashes {
    /// Learns the names that `space` has got since the last time.
    pub(crate) fn extend(&mut self, space: &Space) {
        let features = &space.features;
        self.labels.resize(self.labels.len().max(space.labels.len()), 0);
        let news = self.numbered..space.labels.len();
        news.for_each(|y| self.labels[y] = hash(space.labels.name(LabelId::new(y))));
        self.numbered = self.numbered.max(space.labels.len());
        let news = self.sparse.len()..features.sparse_len();
        self.sparse.extend(news.map(|f| hash(features.sparse_name(FeatureId::new(f)))));
        let news = self.values.len()..features.value_len();
        let value = |v: usize| features.value(ValueId::new(v)).map_or(0, |(_, value)| hash(value));
        self.values.extend(news.map(value));
    }

    /// Forgets the names of features.
    pub(crate) fn clear_features(&mut self) {
        self.sparse.clear();
        self.values.clear();
    }

    /// The names of labels under the numbers of `ids`.
    pub(super) fn labels_under(&self, ids: &Remap) -> Self {
        let mut out = NameHashes::default();
        let named = self.labels.iter().zip(&ids.labels).filter(|(_, y)| **y != LabelId::NONE);
        for (&hash, &y) in named {
            out.know(y.index(), hash);
        }
        out
    }

    /// Learns names of labels that `other` knows under the same numbers.
    pub(super) fn learn_labels(&mut self, other: &Self) {
        for (y, &hash) in other.labels.iter().enumerate().filter(|(_, hash)| **hash != 0) {
            self.know(y, hash);
        }
    }

    fn know(&mut self, label: usize, hash: u64) {
        self.labels.resize(self.labels.len().max(label + 1), 0);
        self.labels[label] = hash;
    }

    /// What the labels of a row add to its key.
    fn of_labels(&self, labels: impl Iterator<Item = LabelId>) -> u128 {
        let set = labels.map(|y| scatter(self.labels[y.index()]));
        u128::from(set.fold(0u64, u64::wrapping_add))
    }

    /// The key of a row whose key was `key`, without those of its `labels` that `ids` drops.
    pub(super) fn key_without(&self, key: u128, labels: &[LabelId], ids: &Remap) -> u128 {
        let left = labels.iter().copied().filter(|&y| ids.labels[y.index()] != LabelId::NONE);
        key ^ self.of_labels(labels.iter().copied()) ^ self.of_labels(left)
    }

    /// The key of row `row`: equal rows have equal keys, in every numbering and on every machine.
    pub(crate) fn key(&mut self, rows: &Rows, row: usize) -> u128 {
        self.bytes.clear();
        for &x in rows.dense_row(row) {
            let bits = if x.is_nan() { u64::MAX } else { (x + 0.0).to_bits() };
            self.bytes.extend(bits.to_le_bytes());
        }
        for &value in rows.category_row(row) {
            let hash = if value == MISSING_CATEGORY { 0 } else { self.values[value.index()] };
            self.bytes.extend(hash.to_le_bytes());
        }
        for open in 0..rows.open_width as u32 {
            self.bytes.push(u8::from(rows.has_open(row, open)));
        }
        if row < rows.sparse.len() {
            // Sums, because the order of entries is that of numbers, which are not content.
            let (mut low, mut high) = (0u64, 0u64);
            let (ids, values) = rows.sparse.row(row);
            for (&id, &x) in ids.iter().zip(values).filter(|e| *e.1 != 0.0) {
                let bits = if x.is_nan() { u64::MAX } else { x.to_bits() };
                let entry = scatter(self.sparse[id.index()] ^ scatter(bits));
                low = low.wrapping_add(entry);
                high = high.wrapping_add(scatter(entry));
            }
            self.bytes.extend(low.to_le_bytes());
            self.bytes.extend(high.to_le_bytes());
        }
        let labels = if row < rows.labels.len() { rows.labels.row(row) } else { &[] };
        content_hash(FEATURES, &self.bytes) ^ self.of_labels(labels.iter().copied())
    }

    pub(crate) fn heap_size(&self) -> usize {
        8 * (self.labels.capacity() + self.sparse.capacity() + self.values.capacity())
            + self.bytes.capacity()
    }
}

/// The seed of the hash of features.
const FEATURES: u64 = 1;

fn hash(name: &str) -> u64 {
    content_hash(FEATURES, name.as_bytes()) as u64
}

/// A bijection without pattern (the finaliser of SplitMix64).
fn scatter(x: u64) -> u64 {
    mix(x.wrapping_add(STEP))
}
