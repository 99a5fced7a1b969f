//! Laws of statistics, stated once and run for every statistic, and moments on bad data.
//!
//! Counts must agree bit for bit. Moments must agree *to 1e-12 of the scale of their values*: with
//! `r` the root mean square of the values of a cell, means within `1e-12 r` and standard deviations
//! (roots of sums of squares) within `1e-12 r`. For the variance this is 1e-12 times the condition
//! number `r / sd` of Chan, Golub and LeVeque: no state that keeps a mean as one `f64` can promise
//! more under merging. One pass over a block promises more, 1e-12 of the variance itself, and is
//! held to that in `moments`.

mod moments;
mod row_store;

use super::*;
use crate::data::{
    Csr, FeatureId, FeatureKind, FeatureSpace, Id, LabelId, MISSING_CATEGORY, ValueId, Vocabulary,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const LABELS: u32 = 5;
const DENSE: usize = 2;
/// Two binary columns, two counts and two numbers of a map.
const SPARSE: u32 = 6;
/// Values of the two category columns: 0..3 and 3..5.
const VALUES: [std::ops::Range<u32>; 2] = [0..3, 3..5];
const TOLERANCE: f64 = 1e-12;

fn config() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(20_240_607);
    ProptestConfig { cases: 96, failure_persistence: None, rng_seed, ..ProptestConfig::default() }
}

fn space() -> FeatureSpace {
    let mut space = FeatureSpace {
        declared: true,
        dense: Vocabulary::try_from_names(["x", "y"]).unwrap(),
        dense_column: vec![true; DENSE],
        open: Vocabulary::try_from_names([""]).unwrap(),
        ..FeatureSpace::default()
    };
    for id in 0..SPARSE {
        let kinds = [FeatureKind::Binary, FeatureKind::Count, FeatureKind::Numeric];
        space.intern_sparse(&format!("s{id}"), kinds[id as usize / 2], (id >= 2).then_some(0));
    }
    for (column, values) in VALUES.into_iter().enumerate() {
        let id = space.add_category(&format!("c{column}"));
        for v in values {
            space.intern_value(id, &format!("v{v}"));
        }
    }
    space
}

/// One row before it becomes part of [`Rows`].
#[derive(Debug, Clone)]
struct Row {
    dense: Vec<f64>,
    /// By feature; `None` is no entry.
    sparse: Vec<Option<f64>>,
    open: bool,
    categories: Vec<ValueId>,
    labels: Vec<LabelId>,
}

impl Row {
    fn with_labels(labels: &[u32]) -> Row {
        let dense = vec![1.5, -2.0];
        let sparse = vec![Some(1.0), None, Some(3.0), None, Some(0.5), Some(f64::NAN)];
        let categories = vec![ValueId(0), ValueId(3)];
        let labels = labels.iter().copied().map(LabelId).collect();
        Row { dense, sparse, open: true, categories, labels }
    }
}

fn assemble(rows: &[Row]) -> Rows {
    let mut out = Rows {
        len: rows.len(),
        dense_width: DENSE,
        dense_missing: rows.iter().any(|r| r.dense.iter().any(|x| x.is_nan())),
        category_width: VALUES.len(),
        open_width: 1,
        sparse: Csr::default(),
        ..Rows::default()
    };
    for row in rows {
        out.dense.extend(&row.dense);
        out.categories.extend(&row.categories);
        for (id, value) in row.sparse.iter().enumerate() {
            if let Some(value) = value.filter(|_| row.open || id < 2) {
                out.sparse.push(FeatureId::new(id), value);
            }
        }
        out.sparse.end_row();
        out.labels.push(row.labels.iter().copied());
    }
    if rows.iter().any(|r| !r.open) {
        out.open_present = rows.iter().map(|r| r.open).collect();
    }
    out
}

/// A number away from zero, so that it has a scale; equal ones are frequent.
fn number() -> impl Strategy<Value = f64> {
    let size = prop_oneof![2 => 0.5..100.0, 1 => (1..4).prop_map(f64::from)];
    (size, any::<bool>()).prop_map(|(x, minus): (f64, bool)| if minus { -x } else { x })
}

fn or_missing(value: impl Strategy<Value = f64>) -> impl Strategy<Value = f64> {
    prop_oneof![4 => value, 1 => Just(f64::NAN)]
}

fn entry(value: impl Strategy<Value = f64>) -> impl Strategy<Value = Option<f64>> {
    prop_oneof![1 => Just(None), 1 => or_missing(value).prop_map(Some)]
}

fn category(values: std::ops::Range<u32>) -> impl Strategy<Value = ValueId> {
    prop_oneof![4 => values.prop_map(ValueId), 1 => Just(MISSING_CATEGORY)]
}

prop_compose! {
    fn row()(
        dense in prop::collection::vec(or_missing(number()), DENSE),
        flags in prop::collection::vec(entry(Just(1.0)), 2),
        counts in prop::collection::vec(entry((1..9).prop_map(f64::from)), 2),
        numbers in prop::collection::vec(entry(number()), 2),
        open in prop::bool::weighted(0.8),
        first in category(VALUES[0].clone()),
        second in category(VALUES[1].clone()),
        labels in prop::collection::vec(prop::bool::weighted(0.4), LABELS as usize),
    ) -> Row {
        let labels = LabelId::all(LABELS as usize).filter(|y| labels[y.index()]).collect();
        let sparse = [flags, counts, numbers].concat();
        Row { dense, sparse, open, categories: vec![first, second], labels }
    }
}

/// Some rows and two places to cut them at.
fn cut_rows() -> impl Strategy<Value = (Vec<Row>, usize, usize)> {
    prop::collection::vec(row(), 0..24).prop_flat_map(|rows| {
        let len = rows.len();
        (Just(rows), 0..=len, 0..=len).prop_map(|(rows, a, b)| (rows, a.min(b), a.max(b)))
    })
}

/// New numbers that keep kinds and category columns, as sorting by name does.
fn renumbering() -> impl Strategy<Value = Remap> {
    let shuffled = |range: std::ops::Range<u32>| Just(range.collect::<Vec<u32>>()).prop_shuffle();
    (
        shuffled(0..LABELS),
        (shuffled(0..2), shuffled(2..4), shuffled(4..6)),
        (shuffled(VALUES[0].clone()), shuffled(VALUES[1].clone())),
    )
        .prop_map(|(labels, (a, b, c), (v, w))| Remap {
            labels: labels.into_iter().map(LabelId).collect(),
            sparse: [a, b, c].concat().into_iter().map(FeatureId).collect(),
            values: [v, w].concat().into_iter().map(ValueId).collect(),
        })
}

fn inverse(ids: &Remap) -> Remap {
    fn turn<I: Id>(map: &[I]) -> Vec<I> {
        let mut back = vec![I::NONE; map.len()];
        map.iter().enumerate().for_each(|(old, new)| back[new.index()] = I::new(old));
        back
    }
    Remap { labels: turn(&ids.labels), sparse: turn(&ids.sparse), values: turn(&ids.values) }
}

/// The same rows under new numbers.
fn renumber(rows: &[Row], ids: &Remap) -> Vec<Row> {
    let moved = |row: &Row| {
        let mut new = row.clone();
        row.sparse.iter().enumerate().for_each(|(i, v)| new.sparse[ids.sparse[i].index()] = *v);
        new.labels.iter_mut().for_each(|y| *y = ids.labels[y.index()]);
        let known = new.categories.iter_mut().filter(|v| **v != MISSING_CATEGORY);
        known.for_each(|v| *v = ids.values[v.index()]);
        new
    };
    rows.iter().map(moved).collect()
}

fn seen<S: Statistic>(rows: &[Row]) -> S {
    let mut state = S::default();
    state.observe(&assemble(rows), &space());
    state
}

fn merged<S: Statistic>(parts: &[&S]) -> S {
    let mut all = S::default();
    parts.iter().for_each(|part| all.merge(part));
    all
}

/// The laws of [`Statistic`]. `close` is equality within the promise of the statistic; `refuses`
/// says that it may refuse to forget because digits would be lost.
fn laws<S: Statistic>(
    (rows, first, second): &(Vec<Row>, usize, usize),
    ids: &Remap,
    close: fn(&S, &S) -> bool,
    refuses: bool,
) -> Result<(), TestCaseError> {
    let whole: S = seen(rows);
    let a: S = seen(&rows[..*first]);
    let b: S = seen(&rows[*first..*second]);
    let c: S = seen(&rows[*second..]);

    // Identity, bit for bit on both sides.
    prop_assert_eq!(&merged(&[&S::default(), &whole]), &whole);
    prop_assert_eq!(&merged(&[&whole, &S::default()]), &whole);
    prop_assert_eq!(&merged(&[&S::default(), &S::default()]), &S::default());
    prop_assert_eq!(&seen::<S>(&[]), &S::default());

    // Associativity and commutativity.
    let right = merged(&[&b, &c]);
    let (left, turned) = (merged(&[&merged(&[&a, &b]), &c]), merged(&[&c, &a, &b]));
    prop_assert!(close(&left, &merged(&[&a, &right])));
    prop_assert!(close(&left, &turned), "{left:?}\n{turned:?}");

    // Any cut equals one pass: three parts, one state that goes on, single rows.
    prop_assert!(close(&left, &whole), "{left:?}\n{whole:?}");
    let mut on = a.clone();
    on.observe(&assemble(&rows[*first..]), &space());
    prop_assert!(close(&on, &whole));
    let singles: Vec<S> = rows.iter().map(|r| seen(std::slice::from_ref(r))).collect();
    prop_assert!(close(&merged(&singles.iter().collect::<Vec<_>>()), &whole));

    // A row of weight n is n equal rows; weights of one are no weights.
    let weight = |i: usize| 1 + 7 * i % 3;
    let mut weighted = S::default();
    let weights = (0..rows.len()).map(|i| weight(i) as f64).collect();
    weighted.observe(&Rows { weights, ..assemble(rows) }, &space());
    let equal = rows.iter().enumerate().flat_map(|(i, row)| vec![row.clone(); weight(i)]);
    let repeated: S = seen(&equal.collect::<Vec<_>>());
    prop_assert!(close(&weighted, &repeated), "{weighted:?}\n{repeated:?}");
    let mut ones = S::default();
    ones.observe(&Rows { weights: vec![1.0; rows.len()], ..assemble(rows) }, &space());
    prop_assert_eq!(&ones, &whole);

    // Forgetting what was added restores, or is refused and changes nothing.
    let mut back = left.clone();
    match back.forget(&right) {
        Ok(()) => prop_assert!(close(&back, &a), "{back:?}\n{a:?}"),
        Err(error) => {
            prop_assert!(refuses && error.to_string().contains("six digits"), "{error}");
            prop_assert_eq!(&back, &left);
        }
    }
    let mut none = left.clone();
    none.forget(&left).unwrap();
    prop_assert_eq!(&none, &S::default());

    // What was never added cannot be forgotten, and the attempt leaves no trace.
    let more: S = merged(&[&whole, &seen(&[Row::with_labels(&[0, 1, 2])])]);
    let mut kept = whole.clone();
    prop_assert!(kept.forget(&more).is_err());
    prop_assert_eq!(&kept, &whole);

    // Lossless in Arrow.
    prop_assert_eq!(&S::decode(&whole.encode()).unwrap(), &whole);
    prop_assert_eq!(&S::decode(&S::default().encode()).unwrap(), &S::default());
    prop_assert_eq!(&S::decode(&back.encode()).unwrap(), &back);

    // Renumbering the state is renumbering the rows, and can be undone.
    let moved = whole.remap(ids);
    prop_assert_eq!(&moved.remap(&inverse(ids)), &whole);
    prop_assert!(close(&moved, &seen(&renumber(rows, ids))));

    Ok(())
}

/// Decay scales: two halves make a whole, bit for bit; 1 changes nothing, 0 leaves nothing.
fn decay_laws<S: Statistic>(rows: &[Row]) -> Result<(), TestCaseError> {
    let whole: S = seen(rows);
    let decayed = |factor: f64| {
        let mut state = whole.clone();
        state.decay(factor);
        state
    };
    prop_assert_eq!(&merged(&[&decayed(0.5), &decayed(0.5)]), &whole);
    prop_assert_eq!(&decayed(1.0), &whole);
    prop_assert_eq!(&decayed(0.0), &S::default());
    Ok(())
}

/// Weights equal, mean and standard deviation within [`TOLERANCE`] of the scale of the values.
fn moments_close(a: &Moment, b: &Moment) -> bool {
    if a.n != b.n {
        return false;
    }
    let n = a.n.max(1.0);
    let scale = (a.mean * a.mean + a.m2 / n).sqrt();
    let sd = |m: &Moment| (m.m2 / n).sqrt();
    (a.mean - b.mean).abs() <= TOLERANCE * scale && (sd(a) - sd(b)).abs() <= TOLERANCE * scale
}

fn features_close<G: Grouping>(a: &FeatureStats<G>, b: &FeatureStats<G>) -> bool {
    let groups = 0..=LABELS;
    let (ma, mb) = (a.moments(), b.moments());
    a.counts() == b.counts()
        && a.missing() == b.missing()
        && a.values() == b.values()
        && groups.clone().all(|g| a.rows(g) == b.rows(g) && a.open_rows(g, 0) == b.open_rows(g, 0))
        && groups
            .clone()
            .all(|g| (0..DENSE).all(|d| moments_close(&a.dense().get(g, d), &b.dense().get(g, d))))
        && ma.len() == mb.len()
        && ma.iter().zip(&mb).all(|(x, y)| (x.0, x.1) == (y.0, y.1) && moments_close(&x.2, &y.2))
}

/// One line per statistic.
macro_rules! lawful {
    ($($name:ident: $statistic:ty, $close:expr, $refuses:expr;)*) => {
        proptest! {
            #![proptest_config(config())]
            $(#[test]
            fn $name(rows in cut_rows(), ids in renumbering()) {
                laws::<$statistic>(&rows, &ids, $close, $refuses)?;
                decay_laws::<$statistic>(&rows.0)?;
            })*
        }
    };
}

lawful! {
    label_counts_are_lawful: LabelCounts, PartialEq::eq, false;
    label_pairs_are_lawful: LabelPairs, PartialEq::eq, false;
    set_counts_are_lawful: SetCounts, PartialEq::eq, false;
    set_sizes_are_lawful: SetSizes, PartialEq::eq, false;
    sizes_given_labels_are_lawful: SizeGivenLabel, PartialEq::eq, false;
    features_by_label_are_lawful: FeatureStats<ByLabel>, features_close, true;
    features_by_size_are_lawful: FeatureStats<BySize>, features_close, true;
    features_in_one_group_are_lawful: FeatureStats<OneGroup>, features_close, true;
}

fn labelled(sets: &[&[u32]]) -> Vec<Row> {
    sets.iter().map(|labels| Row::with_labels(labels)).collect()
}

#[test]
fn statistics_count_what_they_say() {
    let rows = labelled(&[&[0, 2], &[2], &[], &[0, 1, 2], &[2, 0]]);
    let labels: LabelCounts = seen(&rows);
    assert_eq!([0, 1, 2, 3].map(|y| labels.get(LabelId(y))), [3.0, 1.0, 4.0, 0.0]);
    let pairs: LabelPairs = seen(&rows);
    let expected = [(0, 1, 1.0), (0, 2, 3.0), (1, 2, 1.0)];
    let expected = expected.map(|(a, b, n)| (LabelId(a), LabelId(b), n));
    assert_eq!(pairs.entries().collect::<Vec<_>>(), expected);
    let both = |a: u32, b: u32| pairs.get(LabelId(a), LabelId(b));
    assert_eq!((both(2, 0), both(0, 0)), (3.0, 0.0));
    let sets: SetCounts = seen(&rows);
    let [all, two] = [&[0, 1, 2][..], &[0, 2]].map(|set| set.iter().copied().map(LabelId));
    let (all, two): (Vec<LabelId>, Vec<LabelId>) = (all.collect(), two.collect());
    let expected: [(&[LabelId], f64); 4] =
        [(&[], 1.0), (&all, 1.0), (&two, 2.0), (&[LabelId(2)], 1.0)];
    assert_eq!(sets.entries(), expected);
    assert_eq!((sets.get(&two), sets.get(&[LabelId(1)]), sets.len()), (2.0, 0.0, 4));
    let sizes: SetSizes = seen(&rows);
    assert_eq!((sizes.as_slice(), sizes.total()), (&[1.0, 1.0, 2.0, 1.0][..], 5.0));
    let given: SizeGivenLabel = seen(&rows);
    let expected = [(0, 2, 2.0), (0, 3, 1.0), (1, 3, 1.0), (2, 1, 1.0), (2, 2, 2.0), (2, 3, 1.0)];
    let expected = expected.map(|(y, m, n)| (LabelId(y), m, n));
    assert_eq!(given.entries().collect::<Vec<_>>(), expected);
}

#[test]
fn feature_stats_count_what_they_say() {
    let mut rows = labelled(&[&[0], &[0], &[1]]);
    rows[1].open = false;
    rows[1].dense[0] = f64::NAN;
    rows[1].categories = vec![MISSING_CATEGORY, ValueId(4)];
    rows[0].sparse[4] = Some(2.5);
    let stats: FeatureStats<ByLabel> = seen(&rows);
    assert_eq!((stats.rows(0), stats.open_rows(0, 0), stats.rows(1)), (2.0, 1.0, 1.0));
    assert_eq!(stats.dense().get(0, 0), Moment { n: 1.0, mean: 1.5, m2: 0.0 });
    assert_eq!(stats.dense().get(0, 1), Moment { n: 2.0, mean: -2.0, m2: 0.0 });
    let counts = [(0, 0, Count(2.0)), (0, 2, Count(3.0)), (1, 0, Count(1.0)), (1, 2, Count(3.0))];
    let of = |(g, f, n): (u32, u32, Count)| (g, FeatureId(f), n);
    assert_eq!(stats.counts(), counts.map(of));
    assert_eq!(stats.missing(), [(0, 5, Count(1.0)), (1, 5, Count(1.0))].map(of));
    let (a, b) = (Moment::of(2.5), Moment::of(0.5));
    assert_eq!(stats.moments(), [(0, FeatureId(4), a), (1, FeatureId(4), b)]);
    let values = [(0, 0, 1.0), (0, 3, 1.0), (0, 4, 1.0), (1, 0, 1.0), (1, 3, 1.0)];
    assert_eq!(stats.values(), values.map(|(g, v, n)| (g, ValueId(v), Count(n))));
    let by_size: FeatureStats<BySize> = seen(&rows);
    let pooled = by_size.pooled();
    assert_eq!((pooled.rows(0), pooled.open_rows(0, 0), pooled.groups()), (3.0, 2.0, 1));
    assert_eq!(pooled.counts(), [(0, 0, Count(3.0)), (0, 2, Count(6.0))].map(of));
    assert_eq!(pooled.dense().get(0, 0), Moment { n: 2.0, mean: 1.5, m2: 0.0 });
}

#[test]
fn decay_scales_every_count() {
    let rows = labelled(&[&[0, 2], &[2], &[0, 2], &[2]]);
    let mut labels: LabelCounts = seen(&rows);
    labels.decay(0.25);
    assert_eq!((labels.get(LabelId(0)), labels.get(LabelId(2))), (0.5, 1.0));
    let mut pairs: LabelPairs = seen(&rows);
    pairs.decay(0.25);
    assert_eq!(pairs.get(LabelId(0), LabelId(2)), 0.5);
    let mut sizes: SetSizes = seen(&rows);
    sizes.decay(0.25);
    assert_eq!(sizes.as_slice(), [0.0, 0.5, 0.5]);
    let mut given: SizeGivenLabel = seen(&rows);
    given.decay(0.25);
    assert_eq!((given.get(LabelId(0), 2), given.get(LabelId(2), 1)), (0.5, 0.5));
    let mut stats: FeatureStats<ByLabel> = seen(&rows);
    let before = stats.dense().get(2, 1);
    stats.decay(0.25);
    let after = stats.dense().get(2, 1);
    assert_eq!((after.n, after.mean, after.m2), (1.0, before.mean, 0.25 * before.m2));
    assert_eq!((stats.rows(2), stats.open_rows(0, 0)), (1.0, 0.5));
    assert_eq!(stats.counts()[0], (0, FeatureId(0), Count(0.5)));
    assert_eq!(stats.missing()[0], (0, FeatureId(5), Count(0.5)));
    assert_eq!(stats.values()[0], (0, ValueId(0), Count(0.5)));
    assert_eq!(stats.moments()[0], (0, FeatureId(4), Moment { n: 0.5, mean: 0.5, m2: 0.0 }));
}

#[test]
fn fractional_weights_are_forgotten_whole() {
    let rows = labelled(&[&[0], &[0, 1], &[0]]);
    let seen = |from: usize, weights: &[f64]| {
        let mut state = FeatureStats::<ByLabel>::default();
        let part = assemble(&rows[from..from + weights.len()]);
        state.observe(&Rows { weights: weights.to_vec(), ..part }, &space());
        state
    };
    // 0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1: the last digits of sums depend on their order.
    let mut all = seen(0, &[0.1, 0.2, 0.3]);
    assert_eq!(all.rows(0), 0.1 + 0.2 + 0.3);
    assert_eq!(all.counts()[0], (0, FeatureId(0), Count(0.1 + 0.2 + 0.3)));
    for (row, weight) in [(2, 0.3), (1, 0.2), (0, 0.1)] {
        all.forget(&seen(row, &[weight])).unwrap();
    }
    assert_eq!(all, FeatureStats::default());
    assert!(all.forget(&seen(0, &[0.1])).is_err());
}

#[test]
fn forgetting_an_outlier_is_refused_and_leaves_the_state() {
    let mut rows = labelled(&[&[0], &[0], &[0], &[0, 1]]);
    rows.iter_mut().enumerate().for_each(|(i, r)| r.dense[1] = i as f64);
    rows[3].dense[1] = 1e10;
    let whole: FeatureStats<ByLabel> = seen(&rows);
    let outlier: FeatureStats<ByLabel> = seen(&rows[3..]);
    let mut state = whole.clone();
    let error = state.forget(&outlier).unwrap_err();
    assert!(error.to_string().contains("six digits"), "{error}");
    assert_eq!(state, whole);
}

#[test]
fn damaged_states_are_refused() {
    let rows = labelled(&[&[0, 2], &[1]]);
    let counts = seen::<LabelCounts>(&rows).encode();
    let pairs = seen::<LabelPairs>(&rows).encode();
    let features = seen::<FeatureStats<ByLabel>>(&rows).encode();
    let kind = |error: crate::Error| error.kind();
    let corrupt = crate::ErrorKind::Corrupt;
    assert_eq!(kind(LabelPairs::decode(&counts).unwrap_err()), corrupt);
    assert_eq!(kind(LabelCounts::decode(&features).unwrap_err()), corrupt);
    assert_eq!(kind(FeatureStats::<ByLabel>::decode(&pairs).unwrap_err()), corrupt);
    assert_eq!(kind(GroupMoments::decode(&pairs).unwrap_err()), corrupt);
    let row = pairs.to_array().unwrap();
    assert_eq!(LabelPairs::decode(&State::try_from_array(&row).unwrap()).unwrap().encode(), pairs);
    assert_eq!(kind(State::try_from_array(&row.slice(0, 0)).unwrap_err()), corrupt);
}
