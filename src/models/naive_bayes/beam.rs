//! The most probable sets, by beam search.

use super::super::RankedSet;
use super::cascade::LabelEvidence;
use crate::data::LabelId;
use crate::math::{log_sum_exp, top_k};
use std::collections::BTreeSet;

/// Logarithms of probabilities that differ by less may be equal but for rounding.
const ROUNDING: f64 = 1e-9;

/// A partial set of the beam and the scores of the labels that may come next.
struct Candidate {
    set: Vec<LabelId>,
    ln: f64,
    scores: Vec<f64>,
}

impl LabelEvidence {
    /// The `most` best sets over `sizes`, each with ln P(m | x) and the best first; the search keeps
    /// `width` partial sets of a size.
    ///
    /// A set that several orders lead to counts with the best of them. Probabilities only fall while
    /// a set grows: what is below `most` sets that were found is left, which changes no result.
    pub(super) fn best_sets(
        &self,
        base: &[f64],
        sizes: &[(u32, f64)],
        width: usize,
        most: usize,
    ) -> Vec<RankedSet> {
        let mut found: Vec<(Vec<LabelId>, f64)> = Vec::new();
        for &(size, size_ln) in sizes {
            let last = found.len().checked_sub(1).filter(|_| found.len() == most);
            let least = last.map_or(f64::NEG_INFINITY, |last| found[last].1 - ROUNDING);
            if size_ln < least {
                break;
            }
            let mut scores = base.to_vec();
            self.add_size(size, &mut scores);
            let mut beam = vec![Candidate { set: Vec::new(), ln: size_ln, scores }];
            for left in (0..(size as usize).min(self.labels())).rev() {
                beam = self.step(&beam, width, least, left == 0);
            }
            found.extend(beam.into_iter().map(|c| (c.set, c.ln)));
            found.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            found.truncate(most);
        }
        let ranked =
            |(labels, ln): (Vec<LabelId>, f64)| RankedSet { labels, probability: ln.exp() };
        found.into_iter().map(ranked).collect()
    }

    /// The `width` best sets with one label more than those of `beam`, none below `least`.
    fn step(&self, beam: &[Candidate], width: usize, least: f64, is_last: bool) -> Vec<Candidate> {
        // The probability of a set, what it was before, and the label that is added.
        let mut next: Vec<(f64, usize, LabelId)> = Vec::new();
        let mut order = Vec::new();
        for (from, candidate) in beam.iter().enumerate() {
            let total = log_sum_exp(&candidate.scores);
            top_k(&candidate.scores, width, &mut order);
            let grown = order
                .iter()
                .map(|&y| (candidate.ln + candidate.scores[y as usize] - total, from, LabelId(y)));
            next.extend(grown.take_while(|n| n.0 > f64::NEG_INFINITY && n.0 >= least));
        }
        let set = |&(_, from, y): &(f64, usize, LabelId)| with_label(&beam[from].set, y);
        next.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| set(a).cmp(set(b))));
        let mut seen = BTreeSet::new();
        let mut kept = Vec::with_capacity(width.min(next.len()));
        for grown in next {
            if kept.len() == width {
                break;
            }
            let (ln, from, y) = grown;
            let set: Vec<LabelId> = set(&grown).collect();
            if !seen.insert(set.clone()) {
                continue;
            }
            let mut scores = Vec::new();
            if !is_last {
                scores.clone_from(&beam[from].scores);
                self.pick(y, &mut scores);
            }
            kept.push(Candidate { set, ln, scores });
        }
        kept
    }
}

/// The labels of `set`, ascending, and `y` among them.
fn with_label(set: &[LabelId], y: LabelId) -> impl Iterator<Item = LabelId> {
    let (before, after) = set.split_at(set.partition_point(|p| *p < y));
    before.iter().copied().chain([y]).chain(after.iter().copied())
}
