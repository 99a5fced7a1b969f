//! Weights by number: the body of the statistics that count one thing per row.

use super::{Cell, Count, State, StateReader, StateWriter};
use crate::error::Result;

/// A growing vector of weights without trailing zeros.
#[derive(Debug, Clone, Default)]
pub(super) struct CountVector(pub(super) Vec<f64>);

impl CountVector {
    #[inline]
    pub(super) fn add(&mut self, id: u32, weight: f64) {
        let i = id as usize;
        if i >= self.0.len() {
            self.0.resize(i + 1, 0.0);
        }
        self.0[i] += weight;
    }

    pub(super) fn get(&self, id: u32) -> f64 {
        self.0.get(id as usize).copied().unwrap_or(0.0)
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (i, &n) in other.0.iter().enumerate() {
            self.add(i as u32, n);
        }
    }

    pub(super) fn forget(&mut self, other: &Self) -> Result<()> {
        let mut left = self.0.clone();
        left.resize(left.len().max(other.0.len()), 0.0);
        for (mine, &n) in left.iter_mut().zip(&other.0) {
            let mut cell = Count(*mine);
            cell.subtract(&Count(n))?;
            *mine = cell.0;
        }
        self.0 = left;
        Ok(())
    }

    pub(super) fn decay(&mut self, factor: f64) {
        self.0.iter_mut().for_each(|n| *n *= factor);
    }

    fn trimmed(&self) -> &[f64] {
        let len = self.0.iter().rposition(|&n| n != 0.0).map_or(0, |i| i + 1);
        &self.0[..len]
    }

    pub(super) fn encode(&self) -> State {
        let mut writer = StateWriter::default();
        writer.f64s("n", self.trimmed().iter().copied());
        writer.finish()
    }

    pub(super) fn decode(state: &State) -> Result<Self> {
        Ok(CountVector(StateReader::new(state).f64s("n")?.to_vec()))
    }

    pub(super) fn heap_size(&self) -> usize {
        self.0.capacity() * 8
    }
}

impl PartialEq for CountVector {
    fn eq(&self, other: &Self) -> bool {
        self.trimmed() == other.trimmed()
    }
}
