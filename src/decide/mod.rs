//! From scores to label sets.
//!
//! Scores are log-odds, one per label; a rule picks a set. Rules do not know how scores were made,
//! so every rule works with every model.

use crate::data::{LabelId, LabelSets};
use crate::math::{logit, top_k};

/// How the scores of a row become a label set.
///
/// # Examples
///
/// ```
/// use labelflow::data::{LabelId, LabelSets};
/// use labelflow::decide::Decision;
///
/// let mut sets = LabelSets::default();
/// let log_odds = [2.0, -1.0, 0.5, -3.0];
/// Decision::Threshold(0.5).decide(&log_odds, 1, &mut sets);
/// Decision::Top(1).decide(&log_odds, 1, &mut sets);
/// Decision::Sizes(&[3]).decide(&log_odds, 1, &mut sets);
/// Decision::ThresholdOrBest(0.99).decide(&log_odds, 1, &mut sets);
/// assert_eq!(sets.row(0), [0, 2].map(LabelId));
/// assert_eq!(sets.row(1), [LabelId(0)]);
/// assert_eq!(sets.row(2), [0, 1, 2].map(LabelId));
/// assert_eq!(sets.row(3), [LabelId(0)]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision<'a> {
    /// Every label whose probability is at least this.
    Threshold(f64),
    /// As [`Decision::Threshold`]; where no label reaches it, the one with the highest score.
    ThresholdOrBest(f64),
    /// The labels with the highest scores, this many (a fixed size).
    Top(usize),
    /// The labels with the highest scores, as many as the size predicted for each row.
    Sizes(&'a [u32]),
}

impl Decision<'_> {
    /// Appends the sets of `rows` rows to `sets`; `log_odds` holds their scores row by row.
    ///
    /// Ties go to the lower label. A row without a predicted size gets no labels.
    pub fn decide(&self, log_odds: &[f64], rows: usize, sets: &mut LabelSets) {
        let mut best = Vec::new();
        let labels = log_odds.len().checked_div(rows).unwrap_or(0);
        for r in 0..rows {
            let row = &log_odds[r * labels..(r + 1) * labels];
            match *self {
                Decision::Threshold(p) | Decision::ThresholdOrBest(p) => {
                    let cut = logit(p);
                    best.clear();
                    best.extend((0..labels as u32).filter(|&y| row[y as usize] >= cut));
                    if best.is_empty() && matches!(self, Decision::ThresholdOrBest(_)) {
                        top_k(row, 1, &mut best);
                    }
                    sets.push(best.iter().copied().map(LabelId));
                }
                Decision::Top(k) => {
                    top_k(row, k, &mut best);
                    sets.push(best.iter().copied().map(LabelId));
                }
                Decision::Sizes(sizes) => {
                    top_k(row, sizes.get(r).map_or(0, |m| *m as usize), &mut best);
                    sets.push(best.iter().copied().map(LabelId));
                }
            }
        }
    }
}
