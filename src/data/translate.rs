//! Rows from one numbering into another.

use super::{FeatureId, Id, LabelId, MISSING_CATEGORY, Rows, Space, ValueId};
use crate::error::Result;
use std::ops::Range;

/// Copies rows that were read in the numbering of one space into that of another, which gets the
/// names that are new to it.
///
/// One batch is read once, in a numbering of its own, and its rows are handed to many models: each
/// pays for the names in its own rows, not for those of all.
#[derive(Debug, Default)]
pub struct Translator {
    labels: Family<LabelId>,
    sparse: Family<FeatureId>,
    values: Family<ValueId>,
    ids: Vec<LabelId>,
}

/// New numbers of one family (none for a name that was not met yet), and which of them are set.
#[derive(Debug)]
struct Family<I> {
    to: Vec<I>,
    set: Vec<I>,
}

impl<I> Default for Family<I> {
    fn default() -> Self {
        Family { to: Vec::new(), set: Vec::new() }
    }
}

impl<I: Id> Family<I> {
    fn get(&mut self, id: I, new: impl FnOnce() -> I) -> I {
        let at = id.index();
        if at >= self.to.len() {
            self.to.resize(at + 1, I::NONE);
        }
        if self.to[at] == I::NONE {
            self.to[at] = new();
            self.set.push(id);
        }
        self.to[at]
    }

    fn reset(&mut self) {
        for id in self.set.drain(..) {
            self.to[id.index()] = I::NONE;
        }
    }
}

impl Translator {
    /// Copies the rows of `range` from `rows`, numbered as in `from`, to `out`, numbered as in `to`.
    ///
    /// # Errors
    ///
    /// Spaces with different columns.
    pub fn copy(
        &mut self,
        rows: &Rows,
        from: &Space,
        range: Range<usize>,
        to: &mut Space,
        out: &mut Rows,
    ) -> Result<()> {
        to.admit_columns(from)?;
        out.clear();
        out.len = range.len();
        out.dense_width = rows.dense_width;
        out.category_width = rows.category_width;
        out.open_width = rows.open_width;
        out.dense.clear();
        let dense = range.start * rows.dense_width..range.end * rows.dense_width;
        out.dense.extend_from_slice(&rows.dense[dense]);
        out.dense_missing = rows.dense_missing && out.dense.iter().any(|x| x.is_nan());
        if !rows.weights.is_empty() {
            out.weights.extend_from_slice(&rows.weights[range.clone()]);
        }
        if !rows.open_present.is_empty() {
            let open = range.start * rows.open_width..range.end * rows.open_width;
            out.open_present.extend_from_slice(&rows.open_present[open]);
        }
        if !rows.given_size.is_empty() {
            out.given_size.extend_from_slice(&rows.given_size[range.clone()]);
        }
        self.copy_names(rows, from, range, to, out);
        self.labels.reset();
        self.sparse.reset();
        self.values.reset();
        Ok(())
    }

    fn copy_names(
        &mut self,
        rows: &Rows,
        from: &Space,
        range: Range<usize>,
        to: &mut Space,
        out: &mut Rows,
    ) {
        let (theirs, mine) = (&from.features, &mut to.features);
        for row in range {
            self.ids.clear();
            for &id in rows.labels.row(row) {
                let new = || to.labels.intern_of(&from.labels, id);
                self.ids.push(self.labels.get(id, new));
            }
            out.labels.push(self.ids.iter().copied());
            for &value in rows.category_row(row) {
                out.categories.push(match value {
                    MISSING_CATEGORY => MISSING_CATEGORY,
                    id => self.values.get(id, || {
                        let (column, local) = theirs.value_owner[id.index()];
                        mine.intern_value(column, theirs.values[column as usize].name(local))
                    }),
                });
            }
            if rows.sparse.is_empty() {
                continue;
            }
            let (ids, values) = rows.sparse.row(row);
            for (&id, &value) in ids.iter().zip(values) {
                let new = || {
                    let (kind, open) = (theirs.sparse_kind(id), theirs.sparse_open(id));
                    mine.intern_sparse(theirs.sparse_name(id), kind, open)
                };
                out.sparse.push(self.sparse.get(id, new), value);
            }
            out.sparse.end_row();
        }
    }
}
