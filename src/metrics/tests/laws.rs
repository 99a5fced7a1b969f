//! Laws of metrics as statistics, stated once: identity, associativity, commutativity, any cut of the
//! rows, and Arrow and back; bit for bit.

use super::super::{Metric, RankMetrics, SetMetrics};
use crate::data::{Id, LabelId};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const LABELS: u32 = 6;

/// True labels, predicted labels, and scores of which many are equal.
#[derive(Debug, Clone)]
struct Row {
    truth: Vec<LabelId>,
    predicted: Vec<LabelId>,
    scores: Vec<f64>,
}

/// A metric as a statistic over such rows.
trait Measured: Clone + Default + PartialEq + std::fmt::Debug {
    fn observe(&mut self, row: &Row);
    fn merge(&mut self, other: &Self);
    fn back(&self) -> Self;
    fn values(&self) -> Vec<Option<f64>>;
}

impl Measured for SetMetrics {
    fn observe(&mut self, row: &Row) {
        SetMetrics::observe(self, &row.truth, &row.predicted);
    }

    fn merge(&mut self, other: &Self) {
        SetMetrics::merge(self, other);
    }

    fn back(&self) -> Self {
        SetMetrics::decode(&self.encode()).unwrap()
    }

    fn values(&self) -> Vec<Option<f64>> {
        let value = |m: &Metric| self.value(*m, Some(LABELS as usize));
        super::set_metrics().map(|m| value(&m)).collect()
    }
}

impl Measured for RankMetrics {
    fn observe(&mut self, row: &Row) {
        RankMetrics::observe(self, &row.truth, &row.scores);
    }

    fn merge(&mut self, other: &Self) {
        RankMetrics::merge(self, other);
    }

    fn back(&self) -> Self {
        RankMetrics::decode(&self.encode()).unwrap()
    }

    fn values(&self) -> Vec<Option<f64>> {
        super::rank_metrics().map(|m| self.value(m)).collect()
    }
}

fn seen<M: Measured>(rows: &[Row]) -> M {
    let mut state = M::default();
    rows.iter().for_each(|row| state.observe(row));
    state
}

fn merged<M: Measured>(parts: &[&M]) -> M {
    let mut all = M::default();
    parts.iter().for_each(|part| all.merge(part));
    all
}

fn laws<M: Measured>(rows: &[Row], first: usize, second: usize) -> Result<(), TestCaseError> {
    let whole: M = seen(rows);
    let (a, b): (M, M) = (seen(&rows[..first]), seen(&rows[first..second]));
    let c: M = seen(&rows[second..]);

    prop_assert_eq!(&merged(&[&M::default(), &whole]), &whole);
    prop_assert_eq!(&merged(&[&whole, &M::default()]), &whole);
    prop_assert_eq!(&merged(&[&M::default(), &M::default()]), &M::default());

    prop_assert_eq!(&merged(&[&merged(&[&a, &b]), &c]), &whole);
    prop_assert_eq!(&merged(&[&a, &merged(&[&b, &c])]), &whole);
    prop_assert_eq!(&merged(&[&c, &a, &b]), &whole);
    let singles: Vec<M> = rows.iter().rev().map(|row| seen(std::slice::from_ref(row))).collect();
    prop_assert_eq!(&merged(&singles.iter().collect::<Vec<_>>()), &whole);

    prop_assert_eq!(&whole.back(), &whole);
    let bits = |m: &M| m.values().iter().map(|v| v.map(f64::to_bits)).collect::<Vec<_>>();
    prop_assert_eq!(bits(&merged(&[&b, &c, &a])), bits(&whole));
    prop_assert!(whole.values().iter().all(|v| v.is_some() != rows.is_empty()));
    Ok(())
}

fn set() -> impl Strategy<Value = Vec<LabelId>> {
    prop::collection::vec(any::<bool>(), LABELS as usize)
        .prop_map(|on| LabelId::all(on.len()).filter(|y| on[y.index()]).collect())
}

prop_compose! {
    fn row()(
        truth in set(),
        predicted in set(),
        scores in prop::collection::vec((-4..4i32).prop_map(|s| f64::from(s) / 3.0), LABELS as usize),
    ) -> Row {
        Row { truth, predicted, scores }
    }
}

fn cut_rows() -> impl Strategy<Value = (Vec<Row>, usize, usize)> {
    prop::collection::vec(row(), 0..24).prop_flat_map(|rows| {
        let len = rows.len();
        (Just(rows), 0..=len, 0..=len).prop_map(|(rows, a, b)| (rows, a.min(b), a.max(b)))
    })
}

fn config() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(20_261_116);
    ProptestConfig { cases: 96, failure_persistence: None, rng_seed, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn set_metrics_are_lawful((rows, a, b) in cut_rows()) {
        laws::<SetMetrics>(&rows, a, b)?;
    }

    #[test]
    fn rank_metrics_are_lawful((rows, a, b) in cut_rows()) {
        laws::<RankMetrics>(&rows, a, b)?;
    }

    /// Every value but coverage and cardinality is between 0 and 1.
    #[test]
    fn values_are_shares((rows, _, _) in cut_rows()) {
        let (sets, ranks): (SetMetrics, RankMetrics) = (seen(&rows), seen(&rows));
        for &metric in Metric::ALL {
            let value = sets.value(metric, None).or_else(|| ranks.value(metric));
            let top = match metric {
                Metric::Coverage | Metric::LabelCardinality => f64::from(LABELS),
                _ => 1.0,
            };
            prop_assert!(value.is_none_or(|v| (0.0..=top).contains(&v)), "{} {:?}", metric, value);
        }
    }

    /// New numbers for labels change nothing but the numbers in the report.
    #[test]
    fn renumbering_labels_changes_no_value(
        (rows, _, _) in cut_rows(),
        ids in Just((0..LABELS).map(LabelId).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let moved = |set: &Vec<LabelId>| {
            let mut set: Vec<LabelId> = set.iter().map(|y| ids[y.index()]).collect();
            set.sort_unstable();
            set
        };
        let renumbered: Vec<Row> = rows.iter().map(|row| {
            let mut scores = row.scores.clone();
            row.scores.iter().zip(&ids).for_each(|(&s, id)| scores[id.index()] = s);
            Row { truth: moved(&row.truth), predicted: moved(&row.predicted), scores }
        }).collect();
        let (before, after): (SetMetrics, SetMetrics) = (seen(&rows), seen(&renumbered));
        prop_assert_eq!(&before.remap(&ids), &after);
        let (before, after): (RankMetrics, RankMetrics) = (seen(&rows), seen(&renumbered));
        prop_assert_eq!(before, after);
    }
}
