//! A column of label sets in compressed form.

use super::LabelId;

/// The label sets of consecutive rows: ids of all rows in one vector, rows by offsets.
///
/// Within a row ids are distinct and ascending.
///
/// # Examples
///
/// ```
/// use labelflow::data::{LabelId, LabelSets};
///
/// let mut sets = LabelSets::default();
/// sets.push([2, 0, 2].map(LabelId));
/// sets.push([]);
/// assert_eq!(sets.row(0), [0, 2].map(LabelId));
/// assert!(sets.row(1).is_empty());
/// assert_eq!(sets.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSets {
    offsets: Vec<u32>,
    ids: Vec<LabelId>,
}

impl Default for LabelSets {
    fn default() -> Self {
        LabelSets { offsets: vec![0], ids: Vec::new() }
    }
}

impl LabelSets {
    /// Adds a row; duplicates count once.
    pub fn push(&mut self, ids: impl IntoIterator<Item = LabelId>) {
        let start = self.ids.len();
        self.ids.extend(ids);
        let row = &mut self.ids[start..];
        if !row.is_sorted_by(|a, b| a < b) {
            row.sort_unstable();
            let mut kept = start;
            for i in start..self.ids.len() {
                if kept == start || self.ids[kept - 1] != self.ids[i] {
                    self.ids[kept] = self.ids[i];
                    kept += 1;
                }
            }
            self.ids.truncate(kept);
        }
        self.offsets.push(self.ids.len() as u32);
    }

    /// The ids of row `row`.
    #[inline]
    pub fn row(&self, row: usize) -> &[LabelId] {
        &self.ids[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    /// All rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[LabelId]> {
        self.offsets.windows(2).map(|w| &self.ids[w[0] as usize..w[1] as usize])
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ids of all rows, one row after the other.
    pub fn ids(&self) -> &[LabelId] {
        &self.ids
    }

    /// Where each row begins among the ids, and where the last ends.
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        4 * (self.offsets.capacity() + self.ids.capacity())
    }

    /// Forgets all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.ids.clear();
        self.offsets.truncate(1);
    }
}
