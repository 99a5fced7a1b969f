//! Measures of one ranking.

/// The depths of precision at k; the last is also that of NDCG.
pub(super) const DEPTHS: [usize; 3] = [1, 3, 5];
const NDCG_DEPTH: usize = 5;

/// What one row adds to the sums.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ranking {
    pub(super) loss: f64,
    pub(super) coverage: u64,
    pub(super) average_precision: f64,
    pub(super) precision_at: [f64; 3],
    pub(super) ndcg: f64,
}

/// 1 / log2(place + 2): the weight of a place, the first being 0.
fn discount(place: usize) -> f64 {
    (place as f64 + 2.0).log2().recip()
}

impl Ranking {
    /// The measures of a row: for each label its score and whether it is true, in any order, and
    /// how many labels there are besides that are neither scored nor true.
    ///
    /// Equal scores form a group, and only the size of a group and its true labels count. So the
    /// numbers, to the last bit, do not depend on the order of the labels.
    pub(super) fn of(labels: &mut [(f64, bool)], unscored: u32) -> Self {
        for (score, _) in labels.iter_mut() {
            // No NaN, and no negative zero, which compares below zero.
            *score = if score.is_nan() { f64::NEG_INFINITY } else { *score + 0.0 };
        }
        labels.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let total = labels.len() + unscored as usize;
        let relevant = labels.iter().filter(|label| label.1).count();
        let (mut above, mut true_above) = (0, 0);
        let (mut wrong_pairs, mut coverage) = (0u64, 0);
        let (mut precisions, mut gain) = (0.0, 0.0);
        let mut hits = [0.0; DEPTHS.len()];
        for equals in labels.chunk_by(|a, b| a.0 == b.0) {
            let is_last = equals[0].0 == f64::NEG_INFINITY;
            let size = equals.len() + if is_last { unscored as usize } else { 0 };
            let true_here = equals.iter().filter(|label| label.1).count();
            let end = above + size;
            // Every true label here or below scores no more than the others here.
            wrong_pairs += ((size - true_here) * (relevant - true_above)) as u64;
            if true_here > 0 {
                coverage = end as u64 - 1;
                precisions += (true_here * (true_above + true_here)) as f64 / end as f64;
                let share = true_here as f64 / size as f64;
                for (hits, depth) in hits.iter_mut().zip(DEPTHS) {
                    *hits += share * (end.min(depth) - above.min(depth)) as f64;
                }
                gain += share * (above..end.min(NDCG_DEPTH)).map(discount).sum::<f64>();
            }
            (above, true_above) = (end, true_above + true_here);
        }
        let pairs = relevant as f64 * (total - relevant) as f64;
        let best: f64 = (0..relevant.min(NDCG_DEPTH)).map(discount).sum();
        // Sums of parts of a whole may exceed it in the last digit.
        let ratio = |part: f64, whole: f64, none: f64| {
            if whole == 0.0 { none } else { (part / whole).min(1.0) }
        };
        let mut precision_at = [0.0; DEPTHS.len()];
        for ((precision, hits), depth) in precision_at.iter_mut().zip(hits).zip(DEPTHS) {
            *precision = ratio(hits, depth as f64, 0.0);
        }
        Ranking {
            loss: ratio(wrong_pairs as f64, pairs, 0.0),
            coverage,
            average_precision: ratio(precisions, relevant as f64, 1.0),
            precision_at,
            ndcg: ratio(gain, best, 0.0),
        }
    }
}
