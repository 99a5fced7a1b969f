//! How many rows have each label set.

use super::{Cell, Count, State, StateReader, StateWriter, Statistic};
use crate::data::{FeatureSpace, Id, LabelId, Remap, Rows};
use crate::error::{Error, Result};
use crate::math::FixedState;
use std::collections::HashMap;

/// N_S: the weight of the rows whose label set is exactly S, for sets that occur.
///
/// Whatever depends on label sets alone follows from it: counts of labels, of pairs, of sizes.
///
/// # Cost
///
/// Memory follows the number of distinct sets and their sizes. A row of a set that was seen before
/// allocates nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SetCounts(HashMap<Box<[LabelId]>, f64, FixedState>);

impl SetCounts {
    /// The weight of the rows with exactly the labels `set`, ascending.
    pub fn get(&self, set: &[LabelId]) -> f64 {
        self.0.get(set).copied().unwrap_or(0.0)
    }

    /// How many different sets there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All sets with their weights, by the numbers of their labels.
    pub fn entries(&self) -> Vec<(&[LabelId], f64)> {
        let mut entries: Vec<(&[LabelId], f64)> =
            self.0.iter().map(|(set, &n)| (&**set, n)).collect();
        entries.sort_unstable_by_key(|entry| entry.0);
        entries
    }

    fn add(&mut self, set: &[LabelId], weight: f64) {
        match self.0.get_mut(set) {
            Some(n) => *n += weight,
            None => drop(self.0.insert(set.into(), weight)),
        }
    }
}

impl Statistic for SetCounts {
    fn observe(&mut self, rows: &Rows, _features: &FeatureSpace) {
        for (row, set) in rows.labels.iter().enumerate() {
            self.add(set, rows.weight(row));
        }
    }

    fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(set, &n)| self.add(set, n));
    }

    fn forget(&mut self, other: &Self) -> Result<()> {
        let mut left = Vec::with_capacity(other.0.len());
        for (set, &n) in &other.0 {
            let mut cell = Count(self.get(set));
            cell.subtract(&Count(n))?;
            left.push((set, cell.0));
        }
        for (set, n) in left {
            if let Some(own) = self.0.get_mut(set) {
                *own = n;
            }
        }
        self.0.retain(|_, n| *n > 0.0);
        Ok(())
    }

    fn decay(&mut self, factor: f64) {
        self.0.values_mut().for_each(|n| *n *= factor);
        self.0.retain(|_, n| *n > 0.0);
    }

    fn remap(&self, ids: &Remap) -> Self {
        let mut out = SetCounts::default();
        // In order, so that sums of sets that become equal do not depend on hashes.
        for (set, n) in self.entries() {
            let new = set.iter().map(|&y| ids.labels[y.index()]).filter(|&y| y != LabelId::NONE);
            let mut new: Vec<LabelId> = new.collect();
            new.sort_unstable();
            out.add(&new, n);
        }
        out
    }

    fn encode(&self) -> State {
        let entries = self.entries();
        let mut writer = StateWriter::default();
        writer.u32s("sizes", entries.iter().map(|(set, _)| set.len() as u32));
        writer.u32s("labels", entries.iter().flat_map(|(set, _)| set.iter().map(|y| y.0)));
        writer.f64s("rows", entries.iter().map(|(_, n)| *n));
        writer.finish()
    }

    fn decode(state: &State) -> Result<Self> {
        let reader = StateReader::new(state);
        let (sizes, rows) = (reader.u32s("sizes")?, reader.f64s("rows")?);
        let mut labels = reader.u32s("labels")?;
        let unfit = || Error::corrupt("the counts of label sets do not fit together");
        if sizes.len() != rows.len() {
            return Err(unfit());
        }
        let mut counts = SetCounts::default();
        for (&size, &n) in sizes.iter().zip(rows) {
            let (set, rest) = labels.split_at_checked(size as usize).ok_or_else(unfit)?;
            labels = rest;
            let sound = set.is_sorted_by(|a, b| a < b) && n.is_finite() && n > 0.0;
            if !sound || counts.0.insert(set.iter().copied().map(LabelId).collect(), n).is_some() {
                return Err(unfit());
            }
        }
        if labels.is_empty() { Ok(counts) } else { Err(unfit()) }
    }

    fn heap_size(&self) -> usize {
        let sets: usize = self.0.keys().map(|set| size_of_val(&**set) + 16).sum();
        sets + self.0.capacity() * (size_of::<(Box<[LabelId]>, f64)>() + 1)
    }
}
