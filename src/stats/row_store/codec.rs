//! A row store as an Arrow row.

use super::{Keep, RowStore, RowTable};
use crate::data::{Csr, FeatureId, LabelId, LabelSets, MISSING_CATEGORY, Rows, Space, ValueId};
use crate::error::{Error, Result};
use crate::stats::{State, StateReader, StateWriter};
use std::sync::Arc;

/// Whole numbers up to here are exact as `f64`.
const EXACT: f64 = 9_007_199_254_740_992.0;

pub(super) fn encode(store: &RowStore) -> Result<State> {
    let table = match store.keep {
        Keep::Last(_) => Arc::new(store.table.take(&store.arrival(), None)),
        Keep::All | Keep::Sample(_) => store.table(),
    };
    let rows = &table.rows;
    let longest = rows.dense.len().max(rows.sparse.entries()).max(rows.categories.len());
    if longest.max(rows.labels.ids().len()).max(rows.open_present.len()) >= i32::MAX as usize {
        return Err(Error::limit(
            "the rows of the model hold more numbers than one model can: learn from a sample of the rows",
        ));
    }
    let mut writer = StateWriter::default();
    writer.u32s("dropped", [u32::from(store.dropped)]);
    writer.f64s("counts", table.counts.iter().map(|&n| n as f64));
    writer.f64s("dense", rows.dense.iter().copied());
    writer.u32s("sparse_offsets", rows.sparse.offsets().iter().copied());
    writer.u32s("sparse_ids", rows.sparse.ids().iter().map(|f| f.0));
    writer.f64s("sparse_values", rows.sparse.values().iter().copied());
    writer.u32s("categories", rows.categories.iter().map(|v| v.0));
    let absent = rows.open_present.iter().zip(0..).filter(|(there, _)| !**there);
    writer.u32s("open_absent", absent.map(|(_, at)| at));
    writer.u32s("label_offsets", rows.labels.offsets().iter().copied());
    writer.u32s("label_ids", rows.labels.ids().iter().map(|y| y.0));
    Ok(writer.finish())
}

pub(super) fn decode(keep: Keep, space: &Space, state: &State) -> Result<RowStore> {
    let reader = StateReader::new(state);
    let counts = reader.f64s("counts")?;
    let whole = |n: &f64| *n >= 1.0 && *n <= EXACT && n.fract() == 0.0;
    check(counts.iter().all(whole), "counts")?;
    let len = counts.len();
    let features = &space.features;
    let mut rows = Rows {
        len,
        dense_width: features.dense_len(),
        category_width: features.category_len(),
        open_width: features.open_len(),
        ..Rows::default()
    };

    rows.dense = reader.f64s("dense")?.to_vec();
    let sound = rows.dense.iter().all(|x| !x.is_infinite());
    check(rows.dense.len() == len * rows.dense_width && sound, "dense")?;
    rows.dense_missing = rows.dense.iter().any(|x| x.is_nan());

    let (ids, values) = (reader.u32s("sparse_ids")?, reader.f64s("sparse_values")?);
    check(ids.len() == values.len(), "sparse_values")?;
    check(values.iter().all(|x| *x != 0.0 && !x.is_infinite()), "sparse_values")?;
    rows.sparse = Csr::default();
    for range in ranges(reader.u32s("sparse_offsets")?, len, ids.len(), "sparse_offsets")? {
        ascending(&ids[range.clone()], features.sparse_len(), "sparse_ids")?;
        range.for_each(|i| rows.sparse.push(FeatureId(ids[i]), values[i]));
        rows.sparse.end_row();
    }

    rows.categories = reader.u32s("categories")?.iter().copied().map(ValueId).collect();
    check(rows.categories.len() == len * rows.category_width, "categories")?;
    for (at, &value) in rows.categories.iter().enumerate() {
        let column = (at % rows.category_width.max(1)) as u32;
        let known = features.value_category(value) == Some(column);
        check(known || value == MISSING_CATEGORY, "categories")?;
    }

    let absent = reader.u32s("open_absent")?;
    if !absent.is_empty() {
        rows.open_present.resize(len * rows.open_width, true);
        ascending(absent, rows.open_present.len(), "open_absent")?;
        absent.iter().for_each(|&at| rows.open_present[at as usize] = false);
    }

    let ids = reader.u32s("label_ids")?;
    rows.labels = LabelSets::default();
    for range in ranges(reader.u32s("label_offsets")?, len, ids.len(), "label_offsets")? {
        ascending(&ids[range.clone()], space.labels.len(), "label_ids")?;
        rows.labels.push(ids[range].iter().copied().map(LabelId));
    }
    finish(keep, space, reader.u32s("dropped")?, counts, rows)
}

fn finish(
    keep: Keep,
    space: &Space,
    dropped: &[u32],
    counts: &[f64],
    rows: Rows,
) -> Result<RowStore> {
    let mut store = RowStore::new(keep);
    store.dropped = match dropped {
        [0] => false,
        [1] => matches!(keep, Keep::Sample(_)),
        _ => return Err(unfit("dropped")),
    };
    let most = match keep {
        Keep::All => usize::MAX,
        Keep::Sample(n) | Keep::Last(n) => n,
    };
    check(rows.len <= most, "counts")?;
    store.names.extend(space);
    let keys: Vec<u128> = (0..rows.len).map(|row| store.names.key(&rows, row)).collect();
    store.names.clear_features();
    match keep {
        Keep::Last(_) => check(counts.iter().all(|n| *n == 1.0), "counts")?,
        Keep::All | Keep::Sample(_) => check(keys.is_sorted_by(|a, b| a < b), "dense")?,
    }
    let counts = counts.iter().map(|&n| n as u64).collect();
    store.table = Arc::new(RowTable { rows, counts, keys });
    Ok(store)
}

/// The ranges that `offsets` cut `values` entries into, one for each of `rows` rows.
fn ranges<'a>(
    offsets: &'a [u32],
    rows: usize,
    values: usize,
    name: &str,
) -> Result<impl Iterator<Item = std::ops::Range<usize>> + use<'a>> {
    let whole = offsets.first() == Some(&0) && offsets.last().map(|&o| o as usize) == Some(values);
    check(offsets.len() == rows + 1 && whole && offsets.is_sorted(), name)?;
    Ok(offsets.windows(2).map(|w| w[0] as usize..w[1] as usize))
}

fn ascending(ids: &[u32], below: usize, name: &str) -> Result<()> {
    let inside = ids.last().is_none_or(|&id| (id as usize) < below);
    check(inside && ids.is_sorted_by(|a, b| a < b), name)
}

fn check(holds: bool, name: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(unfit(name)) }
}

fn unfit(name: &str) -> Error {
    Error::corrupt(format!("the rows of the model do not fit its features: field `{name}`"))
}
