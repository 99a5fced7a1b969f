//! Rows as a statistic: what learners know that need the rows themselves.

mod codec;
mod table;

pub(crate) use table::NameHashes;
pub use table::RowTable;

use crate::data::{Id, LabelId, MISSING_CATEGORY, Remap, Rows, Space, Used};
use crate::error::{Error, Result};
use crate::math::FixedState;
use crate::stats::State;
use std::collections::HashMap;
use std::sync::Arc;

/// The most that one row may count: sums of such numbers are exact.
const MOST: f64 = 4_294_967_296.0;

/// Which rows are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Keep {
    /// All of them.
    #[default]
    All,
    /// So many distinct rows: those with the smallest keys, which is a random sample that is a
    /// function of content and therefore merges.
    Sample(usize),
    /// So many rows that came last. Only a stream has an order, so that such stores do not merge.
    Last(usize),
}

/// Rows, in columns, as a multiset: equal rows are kept once, with their number.
///
/// # When to use it
///
/// For learners whose sufficient statistic is the rows themselves. Merging is union, and what comes
/// out ([`RowStore::table`]) is in the order of keys, which are hashes of content: it depends on
/// neither the cut of the rows, nor the order of arrival, nor the numbering.
///
/// # Cost
///
/// Memory of the values of the distinct rows, plus 50 bytes for each; bounded by [`Keep`]: a sample
/// holds at most half as many again while it grows, the last rows at most twice as many.
///
/// # Nulls
///
/// Missing values are content like others: `NaN`, an absent category value, an absent map.
#[derive(Debug, Clone, Default)]
pub struct RowStore {
    keep: Keep,
    table: Arc<RowTable>,
    /// Of the last rows: how many at the front are no longer among them.
    gone: usize,
    /// Of a sample: whether there were more rows than are kept.
    dropped: bool,
    /// Of a sample that is full: no row with a larger key is among those that are kept.
    largest: Option<u128>,
    /// The place of each key; made when needed, and never of the last rows.
    index: HashMap<u128, u32, FixedState>,
    names: NameHashes,
}

impl RowStore {
    /// A store that has seen nothing.
    pub fn new(keep: Keep) -> Self {
        RowStore { keep, ..RowStore::default() }
    }

    /// Adds labelled `rows` in the numbering of `space`; on an error nothing changes. A row of
    /// weight 3 is the same row three times.
    ///
    /// # Errors
    ///
    /// More than fits, rows with other columns, weights that are not whole; of the last rows,
    /// weights other than one.
    pub fn observe(&mut self, rows: &Rows, space: &Space) -> Result<()> {
        self.check_room(rows)?;
        self.check_weights(rows)?;
        self.names.extend(space);
        self.make_index();
        // Of the last rows, those that this batch itself pushes out are never looked at.
        let first = match self.keep {
            Keep::Last(n) => rows.len.saturating_sub(n),
            Keep::All | Keep::Sample(_) => 0,
        };
        for row in first..rows.len {
            let key = self.names.key(rows, row);
            // Checked above: whole, and at least one.
            let times = rows.weight(row) as u64;
            self.add(rows, row, key, times);
        }
        Ok(())
    }

    /// Adds the rows of `other`, which has the same numbering; on an error nothing changes.
    ///
    /// # Errors
    ///
    /// Stores of the last rows do not merge: which rows are the last is not known.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if other.is_empty() {
            self.dropped |= other.dropped;
            return Ok(());
        }
        if let Keep::Last(n) = self.keep
            && !self.is_empty()
        {
            return Err(Error::unsupported(format!(
                "models with keep=last({n}) do not merge, because rows of different models have no \
                 order: use keep=sample({n})"
            )));
        }
        let theirs = &other.table;
        self.check_room(&theirs.rows)?;
        self.make_index();
        for row in other.arrival() {
            let row = row as usize;
            self.add(&theirs.rows, row, theirs.keys[row], theirs.counts[row]);
        }
        self.names.learn_labels(&other.names);
        self.dropped |= other.dropped;
        Ok(())
    }

    /// Takes away the rows of `other`, which has the same numbering; on an error nothing changes.
    ///
    /// # Errors
    ///
    /// Rows that are not there; samples that have dropped rows, since others would have to come
    /// back; the last rows.
    pub fn forget(&mut self, other: &Self) -> Result<()> {
        if self.dropped || other.dropped || matches!(self.keep, Keep::Last(_)) {
            return Err(Error::unsupported(
                "rows cannot be taken away after others were dropped: use keep=all",
            ));
        }
        self.make_index();
        let mut left = self.table.counts.clone();
        for (key, count) in other.table.keys.iter().zip(&other.table.counts) {
            let slot = self.index.get(key).map(|&i| &mut left[i as usize]);
            match slot {
                Some(have) if *have >= *count => *have -= count,
                _ => {
                    return Err(Error::incompatible(
                        "the model to take away holds rows that this one never learned",
                    ));
                }
            }
        }
        let kept: Vec<u32> = (0..left.len() as u32).filter(|&row| left[row as usize] > 0).collect();
        if kept.len() == left.len() {
            Arc::make_mut(&mut self.table).counts = left;
        } else {
            let mut table = self.table.take(&kept, None);
            table.counts = kept.iter().map(|&row| left[row as usize]).collect();
            self.replace(table);
        }
        Ok(())
    }

    /// Marks the names that stand in rows.
    pub fn mark_used(&self, used: &mut Used) {
        fn mark<I: Id>(slots: &mut [bool], id: I) {
            if let Some(slot) = slots.get_mut(id.index()) {
                *slot = true;
            }
        }
        let rows = &self.table.rows;
        for row in self.arrival() {
            let row = row as usize;
            rows.labels.row(row).iter().for_each(|&y| mark(&mut used.labels, y));
            rows.sparse.row(row).0.iter().for_each(|&f| mark(&mut used.sparse, f));
            let values = rows.category_row(row).iter().filter(|v| **v != MISSING_CATEGORY);
            values.for_each(|&v| mark(&mut used.values, v));
        }
    }

    /// The same rows under new numbers, in the order of keys. Labels that are dropped leave their
    /// rows, and rows that become equal are joined.
    #[must_use]
    pub fn remap(&self, ids: &Remap) -> Self {
        let order = match self.keep {
            Keep::Last(_) => self.arrival(),
            Keep::All | Keep::Sample(_) => self.order(),
        };
        let mut table = self.table.take(&order, Some(ids));
        let names = self.names.labels_under(ids);
        let mut store = RowStore { dropped: self.dropped, names, ..RowStore::new(self.keep) };
        if !self.loses_labels(ids) {
            store.table = Arc::new(table);
            return store;
        }
        for (key, &row) in table.keys.iter_mut().zip(&order) {
            let labels = self.table.rows.labels.row(row as usize);
            *key = self.names.key_without(*key, labels, ids);
        }
        for row in 0..table.len() {
            store.add(&table.rows, row, table.keys[row], table.counts[row]);
        }
        if !matches!(self.keep, Keep::Last(_)) {
            store.replace(RowTable::clone(&store.table()));
        }
        store
    }

    /// Whether a label that stands in a row is dropped by `ids`.
    pub fn loses_labels(&self, ids: &Remap) -> bool {
        let lost = |y: &LabelId| ids.labels[y.index()] == LabelId::NONE;
        ids.labels.contains(&LabelId::NONE)
            && (self.gone..self.table.len()).any(|r| self.table.rows.labels.row(r).iter().any(lost))
    }

    /// The rows in the order of keys: what a learner fits.
    ///
    /// Without cost when the rows stand in this order, as they do in a finished model.
    pub fn table(&self) -> Arc<RowTable> {
        let order = self.order();
        let in_order = order.len() == self.table.len() && order.is_sorted();
        if in_order { Arc::clone(&self.table) } else { Arc::new(self.table.take(&order, None)) }
    }

    /// The rows that are stored, in no order that means anything, without those dropped since.
    pub(crate) fn stored(&self) -> &Rows {
        &self.table.rows
    }

    /// What is kept, as a state.
    ///
    /// # Errors
    ///
    /// More numbers than an Arrow list holds.
    pub fn encode(&self) -> Result<State> {
        codec::encode(self)
    }

    /// The store in a state.
    ///
    /// # Errors
    ///
    /// `Corrupt` when it is not that of a store that keeps `keep` in `space`.
    pub fn decode(keep: Keep, space: &Space, state: &State) -> Result<Self> {
        codec::decode(keep, space, state)
    }

    /// Which rows are kept.
    pub fn keep(&self) -> Keep {
        self.keep
    }

    /// How many distinct rows are kept (of the last rows: how many rows).
    pub fn len(&self) -> usize {
        let here = self.table.len() - self.gone;
        match self.keep {
            Keep::Sample(n) => here.min(n),
            Keep::All | Keep::Last(_) => here,
        }
    }

    /// How many rows are kept, equal ones counted.
    pub fn rows(&self) -> u64 {
        self.arrival().iter().map(|&row| self.table.counts[row as usize]).sum()
    }

    /// Whether no rows are kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        self.table.heap_size() + 33 * self.index.capacity() + self.names.heap_size()
    }

    /// The rows that count, as they came.
    fn arrival(&self) -> Vec<u32> {
        match self.keep {
            // Of a sample, only the smallest keys count.
            Keep::Sample(n) if self.table.len() > n => self.order(),
            _ => (self.gone as u32..self.table.len() as u32).collect(),
        }
    }

    /// The rows that count, by key; equal ones (of the last rows) as they came.
    fn order(&self) -> Vec<u32> {
        let keys = &self.table.keys;
        let mut order: Vec<u32> = (self.gone as u32..keys.len() as u32).collect();
        if !keys[self.gone..].is_sorted() {
            order.sort_unstable_by_key(|&row| (keys[row as usize], row));
        }
        order.truncate(self.len());
        order
    }

    fn check_room(&self, rows: &Rows) -> Result<()> {
        let mine = &self.table.rows;
        if !mine.fits(rows) {
            return Err(Error::internal("rows of other columns came to a store of rows"));
        }
        let most = (mine.len + rows.len)
            .max(mine.sparse.entries() + rows.sparse.entries())
            .max(mine.labels.ids().len() + rows.labels.ids().len());
        if most > u32::MAX as usize {
            return Err(Error::limit(
                "there are more rows or entries than can be kept: learn from a sample of the rows",
            ));
        }
        Ok(())
    }

    fn check_weights(&self, rows: &Rows) -> Result<()> {
        let last = matches!(self.keep, Keep::Last(_));
        let fits = |w: &f64| *w >= 1.0 && w.fract() == 0.0 && *w <= MOST && (!last || *w == 1.0);
        match rows.weights.iter().find(|w| !fits(w)) {
            None => Ok(()),
            Some(weight) => Err(Error::data(format!(
                "a row has weight {weight}: rows that are kept have {}",
                if last { "weight 1" } else { "whole weights from 1" }
            ))),
        }
    }

    fn make_index(&mut self) {
        if !matches!(self.keep, Keep::Last(_)) && self.index.len() != self.table.len() {
            let keys = self.table.keys.iter().copied();
            self.index = keys.zip(0..).collect();
        }
    }

    fn add(&mut self, rows: &Rows, row: usize, key: u128, count: u64) {
        if self.largest.is_some_and(|largest| key > largest) {
            self.dropped = true;
            return;
        }
        let table = Arc::make_mut(&mut self.table);
        match self.keep {
            Keep::Last(_) => table.push(rows, row, key, count),
            Keep::All | Keep::Sample(_) => {
                let next = table.len() as u32;
                let place = *self.index.entry(key).or_insert(next);
                if place == next {
                    table.push(rows, row, key, count);
                } else {
                    table.counts[place as usize] += count;
                }
            }
        }
        self.settle();
    }

    /// Keeps what is to be kept; now and then, so that a row is moved a few times at most.
    fn settle(&mut self) {
        match self.keep {
            Keep::All => {}
            Keep::Sample(n) => {
                self.dropped |= self.table.len() > n;
                if self.table.len() > n + n / 2 {
                    let mut order = self.order();
                    self.largest = order.last().map(|&row| self.table.keys[row as usize]);
                    order.sort_unstable();
                    self.replace(self.table.take(&order, None));
                }
            }
            Keep::Last(n) => {
                self.gone = self.table.len().saturating_sub(n);
                if self.gone > n {
                    let table = self.table.take(&self.arrival(), None);
                    self.gone = 0;
                    self.replace(table);
                }
            }
        }
    }

    fn replace(&mut self, table: RowTable) {
        self.table = Arc::new(table);
        self.index.clear();
        self.make_index();
    }
}
