//! Rows as plain numbers, in the numbering of one space.

use super::{FeatureId, Id, LabelId, LabelSets, Remap, ValueId};
use std::ops::Range;

/// The category value of a row that has none.
pub const MISSING_CATEGORY: ValueId = ValueId::NONE;

/// Sparse rows: numbers and values of the entries that are not zero, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Csr {
    offsets: Vec<u32>,
    ids: Vec<FeatureId>,
    values: Vec<f64>,
}

impl Default for Csr {
    fn default() -> Self {
        Csr { offsets: vec![0], ids: Vec::new(), values: Vec::new() }
    }
}

impl Csr {
    /// Adds an entry to the open row.
    pub fn push(&mut self, id: FeatureId, value: f64) {
        self.ids.push(id);
        self.values.push(value);
    }

    /// Closes the open row: entries in ascending order, values of equal numbers added.
    pub fn end_row(&mut self) {
        let start = self.offsets[self.offsets.len() - 1] as usize;
        if !self.ids[start..].is_sorted_by(|a, b| a < b) {
            let mut entries: Vec<(FeatureId, f64)> = self.ids[start..]
                .iter()
                .copied()
                .zip(self.values[start..].iter().copied())
                .collect();
            entries.sort_by_key(|e| e.0);
            self.ids.truncate(start);
            self.values.truncate(start);
            for (id, value) in entries {
                if self.ids.len() > start && self.ids.last() == Some(&id) {
                    let last = self.values.len() - 1;
                    self.values[last] += value;
                } else {
                    self.push(id, value);
                }
            }
        }
        self.offsets.push(self.ids.len() as u32);
    }

    /// The numbers and values of row `row`.
    #[inline]
    pub fn row(&self, row: usize) -> (&[FeatureId], &[f64]) {
        let range = self.offsets[row] as usize..self.offsets[row + 1] as usize;
        (&self.ids[range.clone()], &self.values[range])
    }

    /// How many rows are closed.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many entries there are in all rows.
    pub fn entries(&self) -> usize {
        self.ids.len()
    }

    /// Where each row begins among the entries, and where the last ends.
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// The numbers of all entries, one row after the other.
    pub fn ids(&self) -> &[FeatureId] {
        &self.ids
    }

    /// The values of all entries, one row after the other.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        4 * (self.offsets.capacity() + self.ids.capacity()) + 8 * self.values.capacity()
    }

    fn clear(&mut self) {
        self.offsets.truncate(1);
        self.ids.clear();
        self.values.clear();
    }
}

/// Consecutive rows, their features and (when learning) their labels.
///
/// Buffers are reused from batch to batch: [`Rows::clear`] keeps their memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// How many rows there are.
    pub len: usize,
    /// Dense features, row by row; `NaN` is missing.
    pub dense: Vec<f64>,
    /// How many dense features a row has.
    pub dense_width: usize,
    /// Whether any dense value is missing.
    pub dense_missing: bool,
    /// Sparse features; a `NaN` value is missing, an absent entry is zero.
    pub sparse: Csr,
    /// For each row and open column, whether its map or tokens are there; empty when all are.
    pub open_present: Vec<bool>,
    /// How many open columns there are.
    pub open_width: usize,
    /// Category values, row by row; [`MISSING_CATEGORY`] is missing.
    pub categories: Vec<ValueId>,
    /// How many category columns a row has.
    pub category_width: usize,
    /// The label sets, one per row when learning, none when scoring.
    pub labels: LabelSets,
    /// How much each row counts, more than zero; empty when all count one.
    pub weights: Vec<f64>,
    /// The sizes to predict when they are given; empty otherwise.
    pub given_size: Vec<u32>,
}

impl Rows {
    /// The dense features of row `row`.
    #[inline]
    pub fn dense_row(&self, row: usize) -> &[f64] {
        &self.dense[row * self.dense_width..(row + 1) * self.dense_width]
    }

    /// The category values of row `row`.
    #[inline]
    pub fn category_row(&self, row: usize) -> &[ValueId] {
        &self.categories[row * self.category_width..(row + 1) * self.category_width]
    }

    /// Whether the map or tokens of open column `open` are there in row `row`.
    pub fn has_open(&self, row: usize, open: u32) -> bool {
        let at = row * self.open_width + open as usize;
        self.open_present.get(at).copied().unwrap_or(true)
    }

    /// Makes `one` a copy of row `row` alone, in memory that is reused.
    pub fn copy_row(&self, row: usize, one: &mut Rows) {
        one.clear();
        one.len = 1;
        one.dense_width = self.dense_width;
        one.dense.clear();
        one.dense.extend_from_slice(self.dense_row(row));
        one.dense_missing = self.dense_missing && one.dense.iter().any(|x| x.is_nan());
        if !self.sparse.is_empty() {
            let (ids, values) = self.sparse.row(row);
            ids.iter().zip(values).for_each(|(&id, &value)| one.sparse.push(id, value));
            one.sparse.end_row();
        }
        one.open_width = self.open_width;
        if !self.open_present.is_empty() {
            let present = row * self.open_width..(row + 1) * self.open_width;
            one.open_present.extend_from_slice(&self.open_present[present]);
        }
        one.category_width = self.category_width;
        one.categories.extend_from_slice(self.category_row(row));
        if !self.labels.is_empty() {
            one.labels.push(self.labels.row(row).iter().copied());
        }
        one.weights.extend(self.weights.get(row));
        one.given_size.extend(self.given_size.get(row));
    }

    /// Adds row `row` of `from`, which has the same columns, under the numbers of `ids`; what has
    /// none there is left out.
    ///
    /// Equal numbers get equal bits (one zero, one `NaN`), and entries that are zero are left out:
    /// rows that mean the same are the same. Weights and given sizes are not taken over.
    pub fn push_row(&mut self, from: &Rows, row: usize, ids: Option<&Remap>) {
        if self.len == 0 {
            self.dense_width = from.dense_width;
            self.category_width = from.category_width;
            self.open_width = from.open_width;
        }
        self.dense.truncate(self.len * self.dense_width);
        let numbers = from.dense_row(row).iter().map(|&x| plain(x));
        self.dense.extend(numbers);
        self.dense_missing |= from.dense_missing && from.dense_row(row).iter().any(|x| x.is_nan());
        if row < from.sparse.len() {
            let (numbers, values) = from.sparse.row(row);
            for (&id, &value) in numbers.iter().zip(values).filter(|e| *e.1 != 0.0) {
                let id = ids.map_or(id, |ids| ids.sparse[id.index()]);
                if id != FeatureId::NONE {
                    self.sparse.push(id, plain(value));
                }
            }
        }
        self.sparse.end_row();
        let value = |&v: &ValueId| match ids {
            Some(ids) if v != MISSING_CATEGORY => ids.values[v.index()],
            _ => v,
        };
        self.categories.extend(from.category_row(row).iter().map(value));
        let open = 0..from.open_width as u32;
        if self.open_present.is_empty() && open.clone().any(|o| !from.has_open(row, o)) {
            self.open_present.resize(self.len * self.open_width, true);
            self.open_present.extend(open.map(|o| from.has_open(row, o)));
        } else if !self.open_present.is_empty() {
            self.open_present.extend(open.map(|o| from.has_open(row, o)));
        }
        if row < from.labels.len() {
            let label = |&y: &LabelId| ids.map_or(y, |ids| ids.labels[y.index()]);
            let labels = from.labels.row(row).iter().map(label);
            self.labels.push(labels.filter(|y| *y != LabelId::NONE));
        }
        self.len += 1;
    }

    /// Whether rows of `other` have the same columns; rows that are not there fit any.
    pub fn fits(&self, other: &Rows) -> bool {
        let widths = |r: &Rows| (r.dense_width, r.category_width, r.open_width);
        self.len == 0 || other.len == 0 || widths(self) == widths(other)
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        8 * self.dense.capacity()
            + self.sparse.heap_size()
            + self.open_present.capacity()
            + 4 * (self.categories.capacity() + self.given_size.capacity())
            + self.labels.heap_size()
    }

    /// How much row `row` counts: a row of weight 3 is the same row three times.
    #[inline]
    pub fn weight(&self, row: usize) -> f64 {
        self.weights.get(row).copied().unwrap_or(1.0)
    }

    /// Copies the features of the rows in `range` to `out`, without labels and weights.
    pub fn slice_features(&self, range: Range<usize>, out: &mut Rows) {
        out.clear();
        out.dense.clear();
        out.len = range.len();
        out.dense_width = self.dense_width;
        out.dense_missing = self.dense_missing;
        out.open_width = self.open_width;
        out.category_width = self.category_width;
        let wide = |width: usize| range.start * width..range.end * width;
        out.dense.extend_from_slice(&self.dense[wide(self.dense_width)]);
        out.categories.extend_from_slice(&self.categories[wide(self.category_width)]);
        if !self.open_present.is_empty() {
            out.open_present.extend_from_slice(&self.open_present[wide(self.open_width)]);
        }
        if !self.given_size.is_empty() {
            out.given_size.extend_from_slice(&self.given_size[range.clone()]);
        }
        if !self.sparse.is_empty() {
            for row in range {
                let (ids, values) = self.sparse.row(row);
                ids.iter().zip(values).for_each(|(&id, &value)| out.sparse.push(id, value));
                out.sparse.end_row();
            }
        }
    }

    /// Forgets all rows and keeps the memory; dense numbers stay until they are overwritten.
    pub fn clear(&mut self) {
        self.len = 0;
        self.dense_width = 0;
        self.dense_missing = false;
        self.sparse.clear();
        self.open_present.clear();
        self.open_width = 0;
        self.categories.clear();
        self.category_width = 0;
        self.labels.clear();
        self.weights.clear();
        self.given_size.clear();
    }
}

/// The number in the bits that stand for it: one zero, one `NaN`.
fn plain(x: f64) -> f64 {
    if x.is_nan() { f64::NAN } else { x + 0.0 }
}
