//! How many rows have both of two labels.

use super::{Count, PairTable, State, Statistic};
use crate::data::{FeatureSpace, Id, LabelId, Remap, Rows};
use crate::error::Result;

/// N_yy': the weight of the rows that have both label y and label y', for pairs that occur.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LabelPairs(PairTable<Count>);

impl LabelPairs {
    /// The weight of the rows with both labels; 0 for a label with itself.
    pub fn get(&self, a: LabelId, b: LabelId) -> f64 {
        self.0.get(a.min(b).0, a.max(b).0).0
    }

    /// All weights that are not zero, as (lower label, higher label, weight).
    pub fn entries(&self) -> impl Iterator<Item = (LabelId, LabelId, f64)> {
        self.0.entries().into_iter().map(|(a, b, n)| (LabelId(a), LabelId(b), n.0))
    }
}

impl Statistic for LabelPairs {
    fn observe(&mut self, rows: &Rows, _features: &FeatureSpace) {
        for (row, set) in rows.labels.iter().enumerate() {
            let weight = Count(rows.weight(row));
            for (i, &a) in set.iter().enumerate() {
                for &b in &set[i + 1..] {
                    self.0.add(a.0, b.0, weight);
                }
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
        let mut out = PairTable::default();
        for (a, b, n) in self.0.entries() {
            let (a, b) = (ids.labels[a as usize], ids.labels[b as usize]);
            if a != LabelId::NONE && b != LabelId::NONE {
                out.add(a.min(b).0, a.max(b).0, n);
            }
        }
        LabelPairs(out)
    }

    fn encode(&self) -> State {
        self.0.encode()
    }

    fn decode(state: &State) -> Result<Self> {
        PairTable::decode(state).map(LabelPairs)
    }

    fn heap_size(&self) -> usize {
        self.0.heap_size()
    }
}
