//! What naive Bayes can tell people about features.

use super::groups::SeenCell;
use super::{GroupInput, group_variance, numeric_scales};
use crate::data::{FeatureKind, FeatureSpace};
use crate::stats::{FeatureStats, Moment};

/// For each of `labels` labels, the features that tell most about it, at most `most`: positive where
/// they speak for the label.
pub(in crate::models) fn telling(
    by_label: &FeatureStats,
    pooled: &FeatureStats,
    labels: usize,
    features: &FeatureSpace,
    most: usize,
) -> Vec<Vec<(String, f64)>> {
    let ids: Vec<u32> = (0..labels as u32).collect();
    let inside = GroupInput::of(by_label, &ids, features);
    let outside = GroupInput::of(by_label, &ids, features).outside(pooled, features);
    let mut telling: Vec<Vec<(String, f64)>> = vec![Vec::new(); labels];
    for (y, list) in telling.iter_mut().enumerate() {
        for d in 0..features.dense_len() {
            let variance = pooled.dense().get(0, d).variance().unwrap_or(0.0);
            let gap = separation(&inside.dense(y, d), &outside.dense(y, d), variance);
            list.push((features.dense_name(d as u32).to_string(), gap));
        }
    }
    let scales = numeric_scales(pooled, features);
    let share = |n: f64, total: f64| (n + 1.0) / (total + 2.0);
    for ((y, f, cell), (_, _, other)) in inside.seen.iter().zip(&outside.seen) {
        let g = *y as usize;
        let weight = match features.sparse_kind(*f) {
            FeatureKind::Numeric => {
                // Rows without the key have a zero there.
                let all = |input: &GroupInput, cell: &SeenCell| {
                    let n = input.observed(g, features.sparse_open(*f), cell.missing, features);
                    cell.moment.with_zeros(n - cell.moment.n)
                };
                let sd = scales[*f as usize].sd;
                separation(&all(&inside, cell), &all(&outside, other), sd * sd)
            }
            FeatureKind::Count => root_ratio(
                share(cell.count, inside.count_totals[g]),
                share(other.count, outside.count_totals[g]),
            ),
            _ => root_ratio(share(cell.count, inside.rows[g]), share(other.count, outside.rows[g])),
        };
        telling[g].push((features.sparse_name(*f).to_string(), weight));
    }
    for ((y, v, n), (_, _, other)) in inside.values.iter().zip(&outside.values) {
        let g = *y as usize;
        let weight = root_ratio(share(*n, inside.rows[g]), share(*other, outside.rows[g]));
        if let Some((column, value)) = features.value(*v) {
            telling[g].push((format!("{column}={value}"), weight));
        }
    }
    for list in &mut telling {
        list.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then_with(|| a.0.cmp(&b.0)));
        list.truncate(most);
    }
    telling
}

/// The distance of two means in units of their standard deviations.
fn separation(a: &Moment, b: &Moment, pooled: f64) -> f64 {
    if a.n == 0.0 || b.n == 0.0 {
        return 0.0;
    }
    let spread = 0.5 * (group_variance(a, pooled) + group_variance(b, pooled));
    if spread > 0.0 { (a.mean - b.mean) / spread.sqrt() } else { 0.0 }
}

/// How far two shares are apart (a signed root divergence, so that rare features do not win by
/// ratio alone).
fn root_ratio(a: f64, b: f64) -> f64 {
    2.0 * (a.sqrt() - b.sqrt())
}
