//! Measures of one row, averaged over rows.
//!
//! Ratios are summed in fixed point: sums of whole numbers do not depend on the order, so any cut
//! of the rows and any merge tree gives the same bits, and no digits are lost over billions of rows.

use super::SetMetrics;
use super::ratio_sum::{MAX_COUNT, RatioSum, read_count, unfit};
use crate::error::Result;
use crate::stats::{StateReader, StateWriter};

/// What is summed over rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ExampleSums {
    rows: u64,
    exact_matches: u64,
    empty_predictions: u64,
    jaccard: RatioSum,
    precision: RatioSum,
    recall: RatioSum,
    f1: RatioSum,
}

impl ExampleSums {
    /// Adds a row with |T| = `truth`, |P| = `predicted` and |T and P| = `common`.
    pub(super) fn observe(&mut self, truth: usize, predicted: usize, common: usize) {
        self.rows += 1;
        self.empty_predictions += u64::from(predicted == 0);
        if truth == common && predicted == common {
            // Equal sets, also two empty ones: every ratio is 1.
            self.exact_matches += 1;
            self.jaccard.add(1.0);
            self.precision.add(1.0);
            self.recall.add(1.0);
            self.f1.add(1.0);
        } else if common > 0 {
            let ratio = |part: usize, whole: usize| part as f64 / whole as f64;
            self.jaccard.add(ratio(common, truth + predicted - common));
            self.precision.add(ratio(common, predicted));
            self.recall.add(ratio(common, truth));
            self.f1.add(ratio(2 * common, truth + predicted));
        }
        // Nothing in common, but something true or predicted: every ratio is 0.
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        self.exact_matches += other.exact_matches;
        self.empty_predictions += other.empty_predictions;
        self.jaccard.merge(other.jaccard);
        self.precision.merge(other.precision);
        self.recall.merge(other.recall);
        self.f1.merge(other.f1);
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn write(&self, writer: &mut StateWriter) {
        let counts = [self.rows, self.exact_matches, self.empty_predictions];
        writer.f64s("rows", counts.map(|n| n as f64));
        writer.u32s("jaccard", self.jaccard.words());
        writer.u32s("precision", self.precision.words());
        writer.u32s("recall", self.recall.words());
        writer.u32s("f1", self.f1.words());
    }

    pub(super) fn read(reader: StateReader<'_>) -> Result<Self> {
        let [rows, exact_matches, empty_predictions] = *reader.f64s("rows")? else {
            return Err(unfit("rows"));
        };
        let rows = read_count("rows", rows, MAX_COUNT)?;
        let ratio =
            |name| RatioSum::from_words(reader.u32s(name)?, rows).ok_or_else(|| unfit(name));
        Ok(ExampleSums {
            rows,
            exact_matches: read_count("rows", exact_matches, rows)?,
            empty_predictions: read_count("rows", empty_predictions, rows)?,
            jaccard: ratio("jaccard")?,
            precision: ratio("precision")?,
            recall: ratio("recall")?,
            f1: ratio("f1")?,
        })
    }
}

/// Rows with T = P, over n.
pub(super) fn exact_match(sets: &SetMetrics, _: usize) -> f64 {
    sets.examples.exact_matches as f64 / sets.examples.rows as f64
}

/// |T and P| / |T or P|, mean of rows.
pub(super) fn jaccard(sets: &SetMetrics, _: usize) -> f64 {
    sets.examples.jaccard.mean(sets.examples.rows)
}

/// |T and P| / |P|, mean of rows.
pub(super) fn precision(sets: &SetMetrics, _: usize) -> f64 {
    sets.examples.precision.mean(sets.examples.rows)
}

/// |T and P| / |T|, mean of rows.
pub(super) fn recall(sets: &SetMetrics, _: usize) -> f64 {
    sets.examples.recall.mean(sets.examples.rows)
}

/// 2 |T and P| / (|T| + |P|), mean of rows; not the harmonic mean of the two means.
pub(super) fn f1(sets: &SetMetrics, _: usize) -> f64 {
    sets.examples.f1.mean(sets.examples.rows)
}

/// Rows with nothing predicted, over n.
pub(super) fn empty_share(sets: &SetMetrics, _: usize) -> f64 {
    sets.examples.empty_predictions as f64 / sets.examples.rows as f64
}
