//! Cells addressed by two numbers, most of which are never used.

use super::{
    State, StateReader, StateWriter,
    moment::{difference, saturate},
};
use crate::data::Id;
use crate::error::{Error, Result};

/// The most cells kept in the dense window of a table.
const WINDOW: usize = 1 << 20;
/// Pending entries from which they are sorted into the table.
const PENDING: usize = 1 << 14;

/// What a [`PairTable`] keeps under each pair of numbers.
pub trait Cell: Copy + Default + PartialEq + Send + Sync + std::fmt::Debug {
    /// Adds `other`.
    fn add(&mut self, other: &Self);
    /// Takes `other` away.
    ///
    /// # Errors
    ///
    /// When `other` cannot be part of this cell; the cell then stays as it was.
    fn subtract(&mut self, other: &Self) -> Result<()>;
    /// Multiplies the weight by `factor`.
    fn scale(&mut self, factor: f64);
    /// Whether nothing was added.
    fn is_zero(&self) -> bool;
    /// The names of the numbers a cell consists of.
    const COLUMNS: &'static [&'static str];
    /// The number `column` of [`Cell::COLUMNS`].
    fn get(&self, column: usize) -> f64;
    /// The cell with these numbers.
    fn from_columns(get: impl Fn(usize) -> f64) -> Self;
}

/// A sum of weights.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Count(pub f64);

impl Cell for Count {
    #[inline]
    fn add(&mut self, other: &Self) {
        self.0 = saturate(self.0 + other.0);
    }

    fn subtract(&mut self, other: &Self) -> Result<()> {
        self.0 = difference(self.0, other.0)?;
        Ok(())
    }

    fn scale(&mut self, factor: f64) {
        self.0 *= factor;
    }

    fn is_zero(&self) -> bool {
        self.0 == 0.0
    }

    const COLUMNS: &'static [&'static str] = &["n"];

    fn get(&self, _column: usize) -> f64 {
        self.0
    }

    fn from_columns(get: impl Fn(usize) -> f64) -> Self {
        Count(get(0))
    }
}

/// A sparse table of cells with a dense window for low numbers.
///
/// Numbers are given in the order in which names are met, so frequent names have low ones: adding
/// to their cells is one indexed addition. Pairs outside the window are collected, sorted and
/// merged now and then.
///
/// # Cost
///
/// Memory follows the pairs that occur; the window has at most 2^20 cells and grows by doubling.
///
/// # Examples
///
/// ```
/// use labelflow::stats::{Count, PairTable};
///
/// let mut t = PairTable::default();
/// t.add(1, 2, Count(1.0));
/// t.add(1, 2, Count(1.0));
/// t.add(4_000_000, 0, Count(1.0));
/// assert_eq!(t.entries(), [(1, 2, Count(2.0)), (4_000_000, 0, Count(1.0))]);
/// ```
#[derive(Debug, Clone)]
pub struct PairTable<C> {
    window: Vec<C>,
    rows: usize,
    columns: usize,
    sorted: Vec<(u64, C)>,
    pending: Vec<(u64, C)>,
}

impl<C> Default for PairTable<C> {
    fn default() -> Self {
        PairTable {
            window: Vec::new(),
            rows: 0,
            columns: 0,
            sorted: Vec::new(),
            pending: Vec::new(),
        }
    }
}

fn key(row: u32, column: u32) -> u64 {
    u64::from(row) << 32 | u64::from(column)
}

fn unkey(key: u64) -> (u32, u32) {
    ((key >> 32) as u32, key as u32)
}

impl<C: Cell> PairTable<C> {
    /// Adds `cell` to the cell at `row`, `column`.
    #[inline]
    pub fn add(&mut self, row: u32, column: u32, cell: C) {
        if (row as usize) < self.rows && (column as usize) < self.columns {
            self.window[row as usize * self.columns + column as usize].add(&cell);
        } else {
            self.add_outside(row, column, cell);
        }
    }

    #[cold]
    fn add_outside(&mut self, row: u32, column: u32, cell: C) {
        let rows = (row as usize + 1).next_power_of_two().max(self.rows);
        let columns = (column as usize + 1).next_power_of_two().max(self.columns);
        if rows.saturating_mul(columns) <= WINDOW {
            self.grow(rows, columns);
            self.window[row as usize * columns + column as usize].add(&cell);
            return;
        }
        self.pending.push((key(row, column), cell));
        if self.pending.len() >= PENDING.max(self.sorted.len() / 2) {
            self.compact();
        }
    }

    /// Makes the window as large as adding cells at these places would in the end.
    fn expect(&mut self, places: impl Iterator<Item = (u32, u32)>) {
        let (rows, columns) = places.fold((0, 0), |(r, c), at| (r.max(at.0), c.max(at.1)));
        let rows = (rows as usize + 1).next_power_of_two();
        let columns = (columns as usize + 1).next_power_of_two();
        if rows.saturating_mul(columns) <= WINDOW {
            self.grow(rows, columns);
        }
    }

    fn grow(&mut self, rows: usize, columns: usize) {
        let mut window = vec![C::default(); rows * columns];
        for row in 0..self.rows {
            window[row * columns..row * columns + self.columns]
                .copy_from_slice(&self.window[row * self.columns..(row + 1) * self.columns]);
        }
        (self.window, self.rows, self.columns) = (window, rows, columns);
        self.compact();
        let outside = std::mem::take(&mut self.sorted);
        for (k, cell) in outside {
            let (row, column) = unkey(k);
            if (row as usize) < rows && (column as usize) < columns {
                self.window[row as usize * columns + column as usize].add(&cell);
            } else {
                self.sorted.push((k, cell));
            }
        }
    }

    fn compact(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        self.sorted.append(&mut self.pending);
        // Stable, and quick on the sorted part: equal keys are added in the order of arrival.
        self.sorted.sort_by_key(|e| e.0);
        self.sorted.dedup_by(|later, first| {
            let same = later.0 == first.0;
            if same {
                first.1.add(&later.1);
            }
            same
        });
    }

    /// The cell at `row`, `column`.
    pub fn get(&self, row: u32, column: u32) -> C {
        if (row as usize) < self.rows && (column as usize) < self.columns {
            return self.window[row as usize * self.columns + column as usize];
        }
        let k = key(row, column);
        let mut cell = match self.sorted.binary_search_by_key(&k, |e| e.0) {
            Ok(i) => self.sorted[i].1,
            Err(_) => C::default(),
        };
        self.pending.iter().filter(|e| e.0 == k).for_each(|e| cell.add(&e.1));
        cell
    }

    /// All cells that are not zero, by row and then by column.
    pub fn entries(&self) -> Vec<(u32, u32, C)> {
        if self.sorted.is_empty() && self.pending.is_empty() {
            return self.window_entries();
        }
        let mut all = PairTable {
            sorted: self.sorted.clone(),
            pending: self.pending.clone(),
            ..PairTable::default()
        };
        all.compact();
        let mut entries = self.window_entries();
        let outside = all.sorted.into_iter().filter(|(_, c)| !c.is_zero());
        entries.extend(outside.map(|(k, c)| (unkey(k).0, unkey(k).1, c)));
        entries.sort_by_key(|e| (e.0, e.1));
        entries
    }

    fn window_entries(&self) -> Vec<(u32, u32, C)> {
        let mut entries = Vec::new();
        for (row, cells) in self.window.chunks_exact(self.columns.max(1)).enumerate() {
            let used = cells.iter().enumerate().filter(|(_, c)| !c.is_zero());
            entries.extend(used.map(|(column, &c)| (row as u32, column as u32, c)));
        }
        entries
    }

    /// Adds every cell of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (row, column, cell) in other.entries() {
            self.add(row, column, cell);
        }
    }

    /// Takes every cell of `other` away; on an error the table stays as it was.
    ///
    /// # Errors
    ///
    /// When a cell cannot be subtracted.
    pub fn forget(&mut self, other: &Self) -> Result<()> {
        let mut left = Vec::new();
        for (row, column, cell) in other.entries() {
            let mut mine = self.get(row, column);
            mine.subtract(&cell)?;
            left.push((row, column, mine));
        }
        self.compact();
        for (row, column, cell) in left {
            self.set(row, column, cell);
        }
        Ok(())
    }

    /// Replaces a cell that is there already.
    fn set(&mut self, row: u32, column: u32, cell: C) {
        if (row as usize) < self.rows && (column as usize) < self.columns {
            self.window[row as usize * self.columns + column as usize] = cell;
        } else if let Ok(i) = self.sorted.binary_search_by_key(&key(row, column), |e| e.0) {
            self.sorted[i].1 = cell;
        }
    }

    /// Multiplies every weight by `factor`.
    pub fn decay(&mut self, factor: f64) {
        // Sums are multiplied, so that it does not matter when entries are sorted into the table.
        self.compact();
        self.window.iter_mut().for_each(|c| c.scale(factor));
        self.sorted.iter_mut().for_each(|e| e.1.scale(factor));
    }

    /// The table under the numbers that `row` and `column` give ([`Id::NONE`] is dropped).
    #[must_use]
    pub fn remap(&self, row: impl Fn(u32) -> u32, column: impl Fn(u32) -> u32) -> Self {
        let mut entries = self.entries();
        entries.iter_mut().for_each(|e| (e.0, e.1) = (row(e.0), column(e.1)));
        entries.retain(|e| e.0 != u32::NONE && e.1 != u32::NONE);
        let mut out = PairTable::default();
        if !entries.is_empty() {
            out.expect(entries.iter().map(|e| (e.0, e.1)));
        }
        entries.into_iter().for_each(|(row, column, cell)| out.add(row, column, cell));
        out
    }

    /// The table as a state.
    pub fn encode(&self) -> State {
        PairTable::encode_entries(&self.entries())
    }

    /// As [`PairTable::encode`]; `None` when there is no entry.
    pub(super) fn encode_some(&self) -> Option<State> {
        let entries = self.entries();
        (!entries.is_empty()).then(|| PairTable::encode_entries(&entries))
    }

    /// The table of [`PairTable::encode_some`].
    pub(super) fn decode_some(state: Option<&State>) -> Result<Self> {
        state.map_or_else(|| Ok(PairTable::default()), PairTable::decode)
    }

    fn encode_entries(entries: &[(u32, u32, C)]) -> State {
        let mut writer = StateWriter::default();
        writer.u32s("row", entries.iter().map(|e| e.0));
        writer.u32s("column", entries.iter().map(|e| e.1));
        for (i, name) in C::COLUMNS.iter().enumerate() {
            writer.f64s(*name, entries.iter().map(|e| e.2.get(i)));
        }
        writer.finish()
    }

    /// The table in a state whose numbers are below `rows` and `columns`.
    pub fn decode(state: &State) -> Result<Self> {
        let reader = StateReader::new(state);
        let (rows, columns) = (reader.u32s("row")?, reader.u32s("column")?);
        let numbers =
            C::COLUMNS.iter().map(|name| reader.f64s(name)).collect::<Result<Vec<_>>>()?;
        if rows.len() != columns.len() || numbers.iter().any(|n| n.len() != rows.len()) {
            return Err(Error::corrupt("the columns of a sparse table have different lengths"));
        }
        let mut table = PairTable::default();
        if !rows.is_empty() {
            table.expect(rows.iter().copied().zip(columns.iter().copied()));
        }
        for i in 0..rows.len() {
            table.add(rows[i], columns[i], C::from_columns(|c| numbers[c][i]));
        }
        Ok(table)
    }

    /// One more than the largest row and column numbers in use.
    pub fn shape(&self) -> (usize, usize) {
        self.entries()
            .iter()
            .fold((0, 0), |(r, c), e| (r.max(e.0 as usize + 1), c.max(e.1 as usize + 1)))
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        self.window.capacity() * size_of::<C>()
            + (self.sorted.capacity() + self.pending.capacity()) * size_of::<(u64, C)>()
    }
}

impl<C: Cell> PartialEq for PairTable<C> {
    fn eq(&self, other: &Self) -> bool {
        self.entries() == other.entries()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn equals_a_map_inside_and_outside_the_window() {
        let mut table = PairTable::default();
        let mut map = BTreeMap::new();
        let mut state = 1u64;
        for _ in 0..50_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (row, column) = ((state >> 33) as u32 % 3000, (state >> 50) as u32 % 3000);
            table.add(row, column, Count(1.0));
            *map.entry((row, column)).or_insert(0.0) += 1.0;
        }
        let expected: Vec<_> = map.into_iter().map(|((r, c), n)| (r, c, Count(n))).collect();
        assert!(table.rows * table.columns <= WINDOW && !table.sorted.is_empty());
        assert_eq!(table.entries(), expected);
        assert_eq!(PairTable::decode(&table.encode()).unwrap(), table);
        let twice = {
            let mut t = table.clone();
            t.merge(&table);
            t
        };
        let mut once = twice.clone();
        once.forget(&table).unwrap();
        assert_eq!(once, table);
        assert!(table.clone().forget(&twice).is_err());
    }
}
