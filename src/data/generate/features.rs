//! What the features of a row look like, given its labels.
//!
//! Feature `i` of a row with the label set `Y` is
//!
//! ```text
//! x_i = offset_i + scale_i * (slope_i * (|Y| - c) + sum over y in Y of shift_iy + noise)
//! ```
//!
//! with the cardinality `c` and noise of variance 1. A tenth of the features follows the set size (`slope`), a
//! quarter is noise only, the others carry the labels (`shift`).

use super::labels::LabelSets;
use super::random::noise;
use crate::data::{Id, LabelId};
use crate::math::Sequence;

/// The shift of one more label in the set, over all features that follow the size, in deviations of the noise.
const SIZE_SHIFT: f64 = 1.7;
/// The most features that one label moves.
const MAX_SHIFTS: usize = 12;
/// The most that the other labels of a row are allowed for in the strength of a shift.
const MAX_CROWDING: f64 = 0.5;

/// How labels and set size move the features.
///
/// It sees labels as ids only: rows whose labels mean something else are rows with other ids.
#[derive(Debug, Clone)]
pub(super) struct FeatureModel {
    columns: Vec<Column>,
    cardinality: f64,
}

/// One feature.
#[derive(Debug, Clone)]
struct Column {
    offset: f64,
    scale: f64,
    /// The shift for each label beyond the cardinality.
    slope: f64,
    /// The labels that move this feature, ascending, and how far.
    shifts: Vec<(LabelId, f64)>,
}

impl FeatureModel {
    /// Draws units, roles and shifts for `features >= 1` features and `labels >= 1` labels.
    pub(super) fn new(
        features: usize,
        labels: usize,
        cardinality: f64,
        mut random: Sequence,
    ) -> Self {
        let mut columns: Vec<Column> = (0..features).map(|_| Column::draw(&mut random)).collect();
        let mut order: Vec<usize> = (0..features).collect();
        random.shuffle(&mut order);
        let sized = if features == 1 { 0 } else { features.div_ceil(10) };
        let noisy = features / 4;
        for &i in &order[..sized] {
            columns[i].slope = random.either_sign(SIZE_SHIFT / (sized as f64).sqrt());
        }
        // Features are dealt to labels like cards: all are used about equally often, none twice by one label.
        let mut deck = order[sized..features - noisy].to_vec();
        let hand = deck.len().div_ceil(2).min(MAX_SHIFTS);
        let strength = strength(deck.len(), hand, labels, cardinality);
        let mut dealt = deck.len();
        for label in LabelId::all(labels) {
            if dealt + hand > deck.len() {
                random.shuffle(&mut deck);
                dealt = 0;
            }
            for &i in &deck[dealt..dealt + hand] {
                let size = strength * (0.5 + random.uniform());
                columns[i].shifts.push((label, random.either_sign(size)));
            }
            dealt += hand;
        }
        FeatureModel { columns, cardinality }
    }

    /// The number of features.
    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    /// The values of one feature, one for each row.
    pub(super) fn values(
        &self,
        feature: usize,
        column_key: u64,
        row_keys: &[u64],
        sets: &LabelSets,
    ) -> Vec<f64> {
        let Column { offset, scale, slope, shifts } = &self.columns[feature];
        let mut values: Vec<f64> =
            row_keys.iter().map(|row_key| noise(row_key ^ column_key)).collect();
        if *slope != 0.0 {
            for (x, size) in values.iter_mut().zip(sets.sizes()) {
                *x += slope * (size as f64 - self.cardinality);
            }
        }
        // Ascending labels: a row adds up its shifts in the same order in any batch.
        for &(label, shift) in shifts {
            for &row in sets.rows_with(label) {
                values[row as usize] += shift;
            }
        }
        values.iter_mut().for_each(|x| *x = offset + scale * *x);
        values
    }
}

impl Column {
    /// A feature of noise in a random unit.
    fn draw(random: &mut Sequence) -> Self {
        let unit = [0.01, 0.1, 1.0, 10.0, 100.0][random.below(5)];
        let scale = unit * (1.0 + 4.0 * random.uniform());
        let offset = scale * (10.0 * random.uniform() - 5.0);
        Column { offset, scale, slope: 0.0, shifts: Vec::new() }
    }
}

/// The mean size of a shift, in deviations of the noise.
///
/// A label with `h` shifts of size `s` on `n` features stands out by `d^2 = h s^2 / (1 + c h s^2 / n)`: the other
/// labels of a row add to the noise. Solved for `s`, with the `d^2` that tells a label from `L - 1` others. That
/// `d^2` and the bound on `c d^2 / n` are fitted, such that NaiBX reaches a Jaccard score of 0.5 to 0.8 on shapes from
/// 10 features and 6 labels to 120 features and 100 labels, with more features than labels. Where labels crowd, the
/// bound holds, and it reaches less.
fn strength(carrying: usize, hand: usize, labels: usize, cardinality: f64) -> f64 {
    let wanted = 3.0 * (labels as f64).sqrt().sqrt() - 1.0;
    let crowding = (cardinality * wanted / carrying as f64).min(MAX_CROWDING);
    (wanted / (hand as f64 * (1.0 - crowding))).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::generate::random::key;

    #[test]
    fn a_quarter_is_noise_and_a_tenth_follows_the_size() {
        for (features, noisy, sized) in
            [(1, 0, 0), (2, 0, 1), (3, 0, 1), (4, 1, 1), (20, 5, 2), (120, 30, 12)]
        {
            let model = FeatureModel::new(features, 50, 3.0, Sequence(1));
            let count =
                |test: fn(&Column) -> bool| model.columns.iter().filter(|c| test(c)).count();
            assert_eq!(count(|c| c.slope == 0.0 && c.shifts.is_empty()), noisy, "{features}");
            assert_eq!(count(|c| c.slope != 0.0), sized, "{features}");
            assert_eq!(count(|c| !c.shifts.is_empty()), features - noisy - sized, "{features}");
        }
    }

    #[test]
    fn labels_move_the_mean_by_their_shift() {
        let model = FeatureModel::new(20, 4, 1.0, Sequence(9));
        let rows = 40_000;
        let keys: Vec<u64> = (0..rows as u64).map(|row| key(1, row)).collect();
        let ids = (0..rows).map(|row| LabelId::new(row % 2)).collect();
        let sets = LabelSets::new(4, ids, (1..=rows).collect());
        for (feature, column) in model.columns.iter().enumerate() {
            let values = model.values(feature, feature as u64, &keys, &sets);
            let mean =
                |label| values.iter().skip(label).step_by(2).sum::<f64>() / (rows / 2) as f64;
            let shift =
                |label| column.shifts.iter().find(|s| s.0 == LabelId(label)).map_or(0.0, |s| s.1);
            let measured = (mean(1) - mean(0)) / column.scale;
            assert!((measured - (shift(1) - shift(0))).abs() < 0.05, "f{feature}: {measured}");
        }
    }
}
