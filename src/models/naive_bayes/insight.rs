//! What a NaiBX model can tell people.

use super::super::Insight;
use super::super::likelihood::telling;
use super::fit::NaiveBayes;
use crate::data::{LabelId, Space};

pub(super) fn insight(state: &NaiveBayes, space: &Space, most: usize) -> Insight {
    let labels = space.labels.len();
    let pooled = state.by_size.pooled();
    let telling = telling(&state.by_label, &pooled, labels, &space.features, most);
    let mut pairs: Vec<(LabelId, LabelId, f64)> = state.pairs.entries().collect();
    pairs.sort_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
    pairs.truncate(most);
    let label_counts = space.labels.ids().map(|y| state.labels.get(y)).collect();
    Insight { label_counts, telling, pairs, ..Insight::default() }
}
