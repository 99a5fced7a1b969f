//! What stored rows tell about labels.

use super::super::Insight;
use crate::data::{Id, LabelId};
use crate::math::FixedState;
use crate::stats::RowTable;
use std::collections::HashMap;

pub(super) fn insight(table: &RowTable, labels: usize, most: usize) -> Insight {
    let mut label_counts = vec![0.0; labels];
    let mut pairs: HashMap<(LabelId, LabelId), f64, FixedState> = HashMap::default();
    for (set, &n) in table.rows.labels.iter().zip(&table.counts) {
        for (i, &a) in set.iter().enumerate() {
            label_counts[a.index()] += n as f64;
            set[i + 1..].iter().for_each(|&b| *pairs.entry((a, b)).or_default() += n as f64);
        }
    }
    let pairs = pairs.into_iter().map(|((a, b), n)| (a, b, n));
    let mut pairs: Vec<(LabelId, LabelId, f64)> = pairs.collect();
    pairs.sort_unstable_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
    pairs.truncate(most);
    Insight { label_counts, telling: vec![Vec::new(); labels], pairs, ..Insight::default() }
}
