//! The statistic that every measure of scores is derived from.

use super::Metric;
use super::ranking::{DEPTHS, Ranking};
use super::ratio_sum::{MAX_COUNT, RatioSum, read_count, unfit};
use crate::data::{Id, LabelId};
use crate::error::Result;
use crate::stats::{State, StateReader, StateWriter};

/// What is known about rankings of labels by their scores.
///
/// Sums are in fixed point: any cut of the rows and any order of merging give the same bits. A row
/// is measured when it is observed, so states have no numbering of labels and always fit together.
/// What ties and rows without true labels count is fixed in the
/// [module](crate::metrics#conventions).
///
/// # Cost
///
/// A row of L labels is sorted: O(L log L). The state has one size, whatever was seen.
///
/// # Examples
///
/// ```
/// use labelflow::data::LabelId;
/// use labelflow::metrics::{Metric, RankMetrics};
///
/// let mut ranks = RankMetrics::default();
/// ranks.observe(&[0, 2].map(LabelId), &[0.9, 0.5, 0.1]);
/// // Label 1 stands between the true ones: one of two pairs is in the wrong order.
/// assert_eq!(ranks.value(Metric::RankingLoss), Some(0.5));
/// assert_eq!(ranks.value(Metric::OneError), Some(0.0));
/// assert_eq!(ranks.value(Metric::Coverage), Some(2.0));
/// assert_eq!(RankMetrics::default().value(Metric::Coverage), None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankMetrics {
    rows: u64,
    loss: RatioSum,
    coverage: u128,
    average_precision: RatioSum,
    precision_at: [RatioSum; DEPTHS.len()],
    ndcg: RatioSum,
}

const PRECISIONS: [&str; DEPTHS.len()] = ["precision_at_1", "precision_at_3", "precision_at_5"];
/// More labels than a row can have.
const MAX_LABELS: u128 = 1 << 32;

impl RankMetrics {
    /// Adds a row: its true labels, ascending, and the score of every label by number.
    ///
    /// Scores of any kind will do, since only their order counts. `NaN` and minus infinity stand
    /// for labels without a score, as do true labels beyond the end of `scores`.
    pub fn observe(&mut self, truth: &[LabelId], scores: &[f64]) {
        debug_assert!(truth.is_sorted_by(|a, b| a < b), "true labels must ascend");
        let mut labels: Vec<(f64, bool)> = scores.iter().map(|&score| (score, false)).collect();
        for &label in truth {
            if label.index() < scores.len() {
                labels[label.index()].1 = true;
            } else {
                labels.push((f64::NEG_INFINITY, true));
            }
        }
        self.observe_labels(&mut labels);
    }

    /// As [`RankMetrics::observe`], without an allocation: for each label its score and whether it is
    /// true, in any order. The labels are sorted on the way.
    pub fn observe_labels(&mut self, labels: &mut [(f64, bool)]) {
        self.observe_among(labels, 0);
    }

    /// As [`RankMetrics::observe_labels`], among `unscored` more labels that are neither scored nor
    /// true. They stand last, and cost nothing.
    pub fn observe_among(&mut self, labels: &mut [(f64, bool)], unscored: u32) {
        let row = Ranking::of(labels, unscored);
        self.rows += 1;
        self.loss.add(row.loss);
        self.coverage += u128::from(row.coverage);
        self.average_precision.add(row.average_precision);
        self.precision_at.iter_mut().zip(row.precision_at).for_each(|(sum, p)| sum.add(p));
        self.ndcg.add(row.ndcg);
    }

    /// Adds what `other` has seen.
    pub fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        self.loss.merge(other.loss);
        self.coverage += other.coverage;
        self.average_precision.merge(other.average_precision);
        self.precision_at.iter_mut().zip(other.precision_at).for_each(|(sum, p)| sum.merge(p));
        self.ndcg.merge(other.ndcg);
    }

    /// The value of `metric`, or `None` when no row was seen or it measures label sets.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        if self.rows > 0 { metric.of_ranks(self) } else { None }
    }

    /// How many rows were seen.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What was observed, as a state.
    ///
    /// The number of rows is exact up to 2^53.
    pub fn encode(&self) -> State {
        let mut writer = StateWriter::default();
        writer.f64s("rows", [self.rows as f64]);
        writer.u32s("ranking_loss", self.loss.words());
        writer.u32s("coverage", [0, 32, 64, 96].map(|shift| (self.coverage >> shift) as u32));
        writer.u32s("average_precision", self.average_precision.words());
        for (name, sum) in PRECISIONS.iter().zip(self.precision_at) {
            writer.u32s(*name, sum.words());
        }
        writer.u32s("ndcg_at_5", self.ndcg.words());
        writer.finish()
    }

    /// The measures in a state.
    ///
    /// # Errors
    ///
    /// `Corrupt` when the row is not such a state.
    pub fn decode(state: &State) -> Result<Self> {
        let reader = StateReader::new(state);
        let [rows] = *reader.f64s("rows")? else { return Err(unfit("rows")) };
        let rows = read_count("rows", rows, MAX_COUNT)?;
        let sum = |name| RatioSum::from_words(reader.u32s(name)?, rows).ok_or_else(|| unfit(name));
        let words =
            <[u32; 4]>::try_from(reader.u32s("coverage")?).map_err(|_| unfit("coverage"))?;
        let coverage = words.iter().rev().fold(0, |sum, &word| sum << 32 | u128::from(word));
        if coverage > u128::from(rows) * MAX_LABELS {
            return Err(unfit("coverage"));
        }
        let [first, second, third] = PRECISIONS.map(sum);
        Ok(RankMetrics {
            rows,
            loss: sum("ranking_loss")?,
            coverage,
            average_precision: sum("average_precision")?,
            precision_at: [first?, second?, third?],
            ndcg: sum("ndcg_at_5")?,
        })
    }
}

/// Pairs of a true and another label where the true one does not score higher, over such pairs.
pub(super) fn ranking_loss(ranks: &RankMetrics) -> f64 {
    ranks.loss.mean(ranks.rows)
}

/// 1 less precision at 1.
pub(super) fn one_error(ranks: &RankMetrics) -> f64 {
    1.0 - precision_at_1(ranks)
}

/// The place of the last true label, the first place being 0.
pub(super) fn coverage(ranks: &RankMetrics) -> f64 {
    ranks.coverage as f64 / ranks.rows as f64
}

/// For each true label the share of true labels down to it, mean of the true labels.
pub(super) fn average_precision(ranks: &RankMetrics) -> f64 {
    ranks.average_precision.mean(ranks.rows)
}

/// True labels among the first, over 1.
pub(super) fn precision_at_1(ranks: &RankMetrics) -> f64 {
    ranks.precision_at[0].mean(ranks.rows)
}

/// True labels among the first three, over 3.
pub(super) fn precision_at_3(ranks: &RankMetrics) -> f64 {
    ranks.precision_at[1].mean(ranks.rows)
}

/// True labels among the first five, over 5.
pub(super) fn precision_at_5(ranks: &RankMetrics) -> f64 {
    ranks.precision_at[2].mean(ranks.rows)
}

/// Sum of 1 / log2(place + 2) over true labels among the first five, over its highest value.
pub(super) fn ndcg_at_5(ranks: &RankMetrics) -> f64 {
    ranks.ndcg.mean(ranks.rows)
}
