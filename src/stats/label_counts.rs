//! How many rows have each label.

use super::count_vector::CountVector;
use super::{State, Statistic, permute};
use crate::data::{FeatureSpace, LabelId, Remap, Rows};
use crate::error::Result;

/// N_y: the weight of the rows that have label y.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LabelCounts(CountVector);

impl LabelCounts {
    /// The weight of the rows with `label`.
    pub fn get(&self, label: LabelId) -> f64 {
        self.0.get(label.0)
    }

    /// The weights by label.
    pub fn as_slice(&self) -> &[f64] {
        &self.0.0
    }
}

impl Statistic for LabelCounts {
    fn observe(&mut self, rows: &Rows, _features: &FeatureSpace) {
        for (row, set) in rows.labels.iter().enumerate() {
            set.iter().for_each(|&label| self.0.add(label.0, rows.weight(row)));
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

    fn remap(&self, ids: &Remap) -> Self {
        LabelCounts(CountVector(permute(&self.0.0, &ids.labels)))
    }

    fn encode(&self) -> State {
        self.0.encode()
    }

    fn decode(state: &State) -> Result<Self> {
        CountVector::decode(state).map(LabelCounts)
    }

    fn heap_size(&self) -> usize {
        self.0.heap_size()
    }
}
