//! How large the sets of the rows with each label are.

use super::{Count, PairTable, State, Statistic};
use crate::data::{FeatureSpace, Id, LabelId, Remap, Rows};
use crate::error::Result;

/// N_ym: the weight of the rows that have label y and a set of size m.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SizeGivenLabel(PairTable<Count>);

impl SizeGivenLabel {
    /// The weight of the rows with `label` whose set has `size` labels.
    pub fn get(&self, label: LabelId, size: u32) -> f64 {
        self.0.get(label.0, size).0
    }

    /// All weights that are not zero, as (label, size, weight).
    pub fn entries(&self) -> impl Iterator<Item = (LabelId, u32, f64)> {
        self.0.entries().into_iter().map(|(y, m, n)| (LabelId(y), m, n.0))
    }
}

impl Statistic for SizeGivenLabel {
    fn observe(&mut self, rows: &Rows, _features: &FeatureSpace) {
        for (row, set) in rows.labels.iter().enumerate() {
            let weight = Count(rows.weight(row));
            for &label in set {
                self.0.add(label.0, set.len() as u32, weight);
            }
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
        SizeGivenLabel(self.0.remap(|y| ids.labels[y.index()].0, |m| m))
    }

    fn encode(&self) -> State {
        self.0.encode()
    }

    fn decode(state: &State) -> Result<Self> {
        PairTable::decode(state).map(SizeGivenLabel)
    }

    fn heap_size(&self) -> usize {
        self.0.heap_size()
    }
}
