//! Stored rows: the laws of statistics, bounds, and bytes that are not a store.

use super::*;
use crate::data::{Space, Used};
use crate::error::ErrorKind;
use std::sync::Arc;

fn names() -> Space {
    let labels = Vocabulary::try_from_names((0..LABELS).map(|y| format!("l{y}"))).unwrap();
    Space { labels, features: super::space() }
}

/// [`RowStore`] as a [`Statistic`]: the space of these tests is fixed. `N` is the size of the
/// sample, 0 for all rows.
#[derive(Debug, Clone)]
struct Stored<const N: usize>(RowStore);

impl<const N: usize> Stored<N> {
    const KEEP: Keep = if N == 0 { Keep::All } else { Keep::Sample(N) };
}

impl<const N: usize> Default for Stored<N> {
    fn default() -> Self {
        Stored(RowStore::new(Self::KEEP))
    }
}

/// All rows with their counts as texts, in order of content: what a store holds, whatever its order.
fn contents(store: &RowStore) -> Vec<String> {
    let table = store.table();
    let rows = &table.rows;
    let text = |row: usize| {
        let sparse = rows.sparse.row(row);
        format!(
            "{:?} {:?} {:?} {} {:?} x{}",
            rows.dense_row(row),
            sparse,
            rows.category_row(row),
            rows.has_open(row, 0),
            rows.labels.row(row),
            table.counts[row]
        )
    };
    let mut all: Vec<String> = (0..rows.len).map(text).collect();
    all.sort_unstable();
    all
}

/// Equal rows in equal order under equal keys.
impl<const N: usize> PartialEq for Stored<N> {
    fn eq(&self, other: &Self) -> bool {
        self.0.table().keys == other.0.table().keys
            && self.0.len() == other.0.len()
            && self.0.encode().unwrap() == other.0.encode().unwrap()
    }
}

impl<const N: usize> Statistic for Stored<N> {
    fn observe(&mut self, rows: &Rows, _: &FeatureSpace) {
        self.0.observe(rows, &names()).unwrap();
    }

    fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0).unwrap();
    }

    fn forget(&mut self, other: &Self) -> crate::Result<()> {
        self.0.forget(&other.0)
    }

    fn decay(&mut self, _: f64) {}

    fn remap(&self, ids: &Remap) -> Self {
        Stored(self.0.remap(ids))
    }

    fn encode(&self) -> State {
        self.0.encode().unwrap()
    }

    fn decode(state: &State) -> crate::Result<Self> {
        RowStore::decode(Self::KEEP, &names(), state).map(Stored)
    }

    fn heap_size(&self) -> usize {
        self.0.heap_size()
    }
}

fn same_contents(a: &Stored<0>, b: &Stored<0>) -> bool {
    contents(&a.0) == contents(&b.0)
}

/// Every row once more, so that counts are more than one.
fn doubled((rows, first, second): (Vec<Row>, usize, usize)) -> (Vec<Row>, usize, usize) {
    let len = rows.len();
    let twice: Vec<Row> = rows.iter().chain(rows.iter().take(len / 2)).cloned().collect();
    (twice, first, second)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn stored_rows_are_lawful(rows in cut_rows(), ids in renumbering()) {
        laws::<Stored<0>>(&rows, &ids, same_contents, false)?;
        laws::<Stored<0>>(&doubled(rows), &ids, same_contents, false)?;
    }

    #[test]
    fn samples_merge(rows in cut_rows()) {
        const N: usize = 5;
        let (rows, first, second) = doubled(rows);
        let whole: Stored<N> = seen(&rows);
        let parts = [&rows[..first], &rows[first..second], &rows[second..]].map(seen::<Stored<N>>);
        let [a, b, c] = &parts;
        prop_assert_eq!(&merged(&[a, b, c]), &whole);
        prop_assert_eq!(&merged(&[c, &merged(&[b, a])]), &whole);
        let singles: Vec<Stored<N>> = rows.iter().map(|r| seen(std::slice::from_ref(r))).collect();
        prop_assert_eq!(&merged(&singles.iter().rev().collect::<Vec<_>>()), &whole);
        prop_assert_eq!(&Stored::<N>::decode(&whole.encode()).unwrap(), &whole);

        // The sample is the rows with the smallest keys, with all their copies.
        let all: Stored<0> = seen(&rows);
        let (all, kept) = (all.0.table(), whole.0.table());
        let n = N.min(all.len());
        prop_assert_eq!(&kept.keys, &all.keys[..n]);
        prop_assert_eq!(&kept.counts, &all.counts[..n]);

        // Taking rows away is exact while nothing was dropped, else refused.
        let mut left = merged(&[a, b]);
        let before = left.clone();
        let distinct = seen::<Stored<0>>(&rows[..second]).0.len();
        match left.forget(b) {
            Ok(()) => {
                prop_assert!(distinct <= N);
                prop_assert_eq!(&left, a);
            }
            Err(error) => {
                prop_assert!(distinct > N && error.kind() == ErrorKind::Unsupported, "{}", error);
                prop_assert_eq!(&left, &before);
            }
        }
    }

    #[test]
    fn the_last_rows_are_kept_in_any_cut((rows, first, second) in cut_rows(), n in 1usize..8) {
        let mut store = RowStore::new(Keep::Last(n));
        for part in [&rows[..first], &rows[first..second], &rows[second..]] {
            store.observe(&assemble(part), &names()).unwrap();
        }
        let mut one_by_one = RowStore::new(Keep::Last(n));
        for row in &rows {
            one_by_one.observe(&assemble(std::slice::from_ref(row)), &names()).unwrap();
        }
        prop_assert_eq!(store.encode().unwrap(), one_by_one.encode().unwrap());
        let last = &rows[rows.len().saturating_sub(n)..];
        let expected: Stored<0> = seen(last);
        let stored = store.table();
        prop_assert_eq!(stored.len(), last.len());
        prop_assert!(stored.keys.is_sorted());
        let mut distinct = stored.keys.clone();
        distinct.dedup();
        prop_assert_eq!(&distinct, &expected.0.table().keys);

        // Stored and read on the way, it goes on as if nothing had been.
        let mut read = RowStore::new(Keep::Last(n));
        read.observe(&assemble(&rows[..first]), &names()).unwrap();
        let bytes = read.encode().unwrap();
        let mut read = RowStore::decode(Keep::Last(n), &names(), &bytes).unwrap();
        read.observe(&assemble(&rows[first..]), &names()).unwrap();
        prop_assert_eq!(read.encode().unwrap(), store.encode().unwrap());
    }

    #[test]
    fn damaged_stores_are_corrupt(rows in cut_rows(), at in any::<prop::sample::Index>(), bad in 0..4u32) {
        let row = seen::<Stored<0>>(&rows.0).0.encode().unwrap();
        let wrong = [0, 1, 7, u32::MAX][bad as usize];
        for name in row.parts().iter().map(|part| &*part.0) {
            let damaged = damage(&row, name, at, wrong);
            // A damaged row may be another store, but never a panic, and what is read can be used.
            match RowStore::decode(Keep::All, &names(), &damaged) {
                Ok(store) => drop((contents(&store), store.encode().unwrap())),
                Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Corrupt),
            }
        }
    }
}

/// The row with one number of field `name` replaced, or the field cut short.
fn damage(state: &State, name: &str, at: prop::sample::Index, wrong: u32) -> State {
    let reader = StateReader::new(state);
    let mut writer = StateWriter::default();
    for field in state.parts().iter().map(|part| part.0.clone()) {
        if let Ok(numbers) = reader.u32s(&field) {
            let mut numbers = numbers.to_vec();
            if field == name {
                let len = numbers.len();
                match numbers.get_mut(at.index(len.max(1))) {
                    Some(slot) => *slot = wrong,
                    None => numbers.push(wrong),
                }
            }
            writer.u32s(field, numbers);
        } else {
            let mut numbers = reader.f64s(&field).unwrap().to_vec();
            if field == name && numbers.pop().is_none() {
                numbers.push(f64::from(wrong));
            }
            writer.f64s(field, numbers);
        }
    }
    writer.finish()
}

#[test]
fn keys_do_not_depend_on_numbers() {
    // The same two rows in a space whose names came in another order.
    let turned = |n: u32| -> Vec<u32> { (0..n).rev().collect() };
    let mut there = Space {
        labels: Vocabulary::try_from_names((0..LABELS).rev().map(|y| format!("l{y}"))).unwrap(),
        features: FeatureSpace {
            declared: true,
            dense: Vocabulary::try_from_names(["x", "y"]).unwrap(),
            dense_column: vec![true; DENSE],
            open: Vocabulary::try_from_names([""]).unwrap(),
            ..FeatureSpace::default()
        },
    };
    for id in turned(SPARSE) {
        let kinds = [FeatureKind::Binary, FeatureKind::Count, FeatureKind::Numeric];
        let features = &mut there.features;
        features.intern_sparse(&format!("s{id}"), kinds[id as usize / 2], (id >= 2).then_some(0));
    }
    for column in 0..2 {
        there.features.add_category(&format!("c{column}"));
    }
    for value in turned(5) {
        there.features.intern_value(u32::from(value >= 3), &format!("v{value}"));
    }
    let ids = Remap {
        labels: turned(LABELS).into_iter().map(LabelId).collect(),
        sparse: turned(SPARSE).into_iter().map(FeatureId).collect(),
        values: turned(5).into_iter().map(ValueId).collect(),
    };
    let rows = [Row::with_labels(&[0, 3]), Row::with_labels(&[1])];
    let mut here = RowStore::new(Keep::All);
    here.observe(&assemble(&rows), &names()).unwrap();
    let mut other = RowStore::new(Keep::All);
    let mut moved = Rows::default();
    (0..2).for_each(|row| moved.push_row(&assemble(&rows), row, Some(&ids)));
    other.observe(&moved, &there).unwrap();
    assert_eq!(here.table().keys, other.table().keys);

    // Features decide the upper half, so that names of labels do not change the order of rows.
    let keys = &here.table().keys;
    assert_eq!(keys[0] >> 64, keys[1] >> 64);
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn equal_rows_are_kept_once() {
    let mut zero = Row::with_labels(&[0]);
    zero.dense = vec![0.0, f64::NAN];
    let mut minus = zero.clone();
    minus.dense = vec![-0.0, -f64::NAN];
    minus.sparse[1] = Some(0.0);
    let mut store = RowStore::new(Keep::All);
    store.observe(&assemble(&[zero.clone(), minus.clone()]), &names()).unwrap();
    store.observe(&assemble(&[minus, Row::with_labels(&[1])]), &names()).unwrap();
    let table = store.table();
    let mut counts = table.counts.clone();
    counts.sort_unstable();
    assert_eq!((counts, table.total(), store.len()), (vec![1, 3], 4, 2));
    let repeated = table.repeated();
    assert_eq!((repeated.len, repeated.labels.len(), repeated.sparse.len()), (4, 4, 4));
    // A finished store gives its rows without copying.
    let used = Used::all(&names());
    let finished = store.remap(&names().sorted(&used).1);
    assert!(Arc::ptr_eq(&finished.table(), &finished.table()));
}

#[test]
fn the_last_rows_do_not_merge() {
    let mut a = RowStore::new(Keep::Last(3));
    a.observe(&assemble(&[Row::with_labels(&[0])]), &names()).unwrap();
    let b = a.clone();
    let error = a.merge(&b).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("use keep=sample(3)"), "{error}");
    assert_eq!(a.len(), 1);
    a.merge(&RowStore::new(Keep::Last(3))).unwrap();
    assert!(a.forget(&b).is_err());
}

#[test]
fn labels_can_leave_their_rows() {
    // Rows that differ in label 0 alone become equal without it.
    let rows = [&[0, 1][..], &[1], &[0], &[2]].map(Row::with_labels);
    let expected = [&[1][..], &[1], &[], &[2]].map(Row::with_labels);
    let mut ids = Remap::identity(&names());
    ids.labels[0] = LabelId::NONE;
    for keep in [Keep::All, Keep::Sample(9), Keep::Last(9)] {
        let of = |rows: &[Row]| {
            let mut store = RowStore::new(keep);
            store.observe(&assemble(rows), &names()).unwrap();
            store
        };
        let plain = of(&expected);
        // From rows that were observed, read, renumbered and merged.
        let observed = of(&rows);
        let read = RowStore::decode(keep, &names(), &observed.encode().unwrap()).unwrap();
        let copied = observed.remap(&Remap::identity(&names()));
        let mut merged = RowStore::new(keep);
        merged.merge(&copied).unwrap();
        for store in [observed, read, copied, merged] {
            assert!(store.loses_labels(&ids));
            let left = store.remap(&ids);
            assert!(!left.loses_labels(&ids));
            assert_eq!(left.table().keys, plain.table().keys, "{keep:?}");
            assert_eq!(left.encode().unwrap(), plain.remap(&ids).encode().unwrap(), "{keep:?}");
            let mut on = left;
            on.observe(&assemble(&rows), &names()).unwrap();
            assert_eq!(on.rows(), 8);
        }
    }
}

#[test]
fn one_large_batch_is_not_copied_before_it_is_sampled() {
    let rows: Vec<Row> = (0..20_000u32)
        .map(|i| {
            let mut row = Row::with_labels(&[i % LABELS]);
            row.dense[0] = f64::from(i);
            row
        })
        .collect();
    for keep in [Keep::Last(100), Keep::Sample(100)] {
        let (mut at_once, mut in_parts) = (RowStore::new(keep), RowStore::new(keep));
        at_once.observe(&assemble(&rows), &names()).unwrap();
        for part in rows.chunks(70) {
            in_parts.observe(&assemble(part), &names()).unwrap();
        }
        assert_eq!(at_once.encode().unwrap(), in_parts.encode().unwrap());
        assert!(at_once.heap_size() <= in_parts.heap_size() + 1000, "{keep:?}");
        assert_eq!(at_once.len(), 100);
    }
}

#[test]
fn memory_of_bounded_stores_is_flat() {
    for keep in [Keep::Last(100), Keep::Sample(100)] {
        let mut store = RowStore::new(keep);
        let mut sizes = Vec::new();
        for batch in 0..200u32 {
            let rows: Vec<Row> = (0..50u32)
                .map(|i| {
                    let mut row = Row::with_labels(&[i % LABELS]);
                    row.dense[0] = f64::from(batch * 50 + i);
                    row
                })
                .collect();
            store.observe(&assemble(&rows), &names()).unwrap();
            sizes.push(store.heap_size());
        }
        assert_eq!(store.len(), 100);
        let early = sizes[..20].iter().max().unwrap();
        assert!(sizes[20..].iter().max().unwrap() <= early, "{keep:?}: {sizes:?}");
    }
}
