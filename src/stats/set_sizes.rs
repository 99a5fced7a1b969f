//! How many rows have a label set of each size.

use super::count_vector::CountVector;
use super::{State, Statistic};
use crate::data::{FeatureSpace, Remap, Rows};
use crate::error::Result;

/// N_m: the weight of the rows whose label set has size m.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SetSizes(CountVector);

impl SetSizes {
    /// The weight of the rows whose set has `size` labels.
    pub fn get(&self, size: u32) -> f64 {
        self.0.get(size)
    }

    /// The weight of all rows.
    pub fn total(&self) -> f64 {
        self.0.0.iter().sum()
    }

    /// The weights by size.
    pub fn as_slice(&self) -> &[f64] {
        &self.0.0
    }
}

impl Statistic for SetSizes {
    fn observe(&mut self, rows: &Rows, _features: &FeatureSpace) {
        for (row, set) in rows.labels.iter().enumerate() {
            self.0.add(set.len() as u32, rows.weight(row));
        }
    }

    fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }

    fn forget(&mut self, other: &Self) -> Result<()> {
        self.0.forget(&other.0)
    }

    fn decay(&mut self, factor: f64) {
        self.0.decay(factor);
    }

    fn remap(&self, _ids: &Remap) -> Self {
        self.clone()
    }

    fn encode(&self) -> State {
        self.0.encode()
    }

    fn decode(state: &State) -> Result<Self> {
        CountVector::decode(state).map(SetSizes)
    }

    fn heap_size(&self) -> usize {
        self.0.heap_size()
    }
}
