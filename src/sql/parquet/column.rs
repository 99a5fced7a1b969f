//! A column of a row group, from its values to its bytes.

use crate::sql::BATCH;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, GenericListArray, OffsetSizeTrait};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::error::Result;
use datafusion::parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, compute_leaves,
};
use std::sync::Arc;

/// A column of a row group that is not encoded yet.
pub(super) struct Column {
    pub(super) field: FieldRef,
    pub(super) arrays: Vec<ArrayRef>,
    pub(super) writers: Vec<ArrowColumnWriter>,
}

impl Column {
    /// Its values as they stand in a file, one chunk for each writer.
    pub(super) fn encode(mut self) -> Result<Vec<ArrowColumnChunk>> {
        for block in blocks(self.arrays) {
            for array in joined(block) {
                let leaves = compute_leaves(&self.field, &array)?;
                for (leaf, writer) in leaves.iter().zip(&mut self.writers) {
                    writer.write(leaf)?;
                }
            }
        }
        let chunks = self.writers.into_iter().map(|w| Ok(w.close()?));
        chunks.collect()
    }
}

/// The values of `arrays`, each block a batch of them.
///
/// A writer ends pages, and gives dictionaries up, after some of the values it is given at a time. So it
/// is given the same ones wherever the input was cut: a file depends on its rows alone, where they can
/// be joined.
fn blocks(arrays: Vec<ArrayRef>) -> Vec<Vec<ArrayRef>> {
    let mut blocks: Vec<Vec<ArrayRef>> = Vec::new();
    let mut row = 0;
    for array in arrays {
        let mut at = 0;
        while at < array.len() {
            if row % BATCH == 0 {
                blocks.push(Vec::new());
            }
            let rows = (BATCH - row % BATCH).min(array.len() - at);
            blocks.last_mut().into_iter().for_each(|block| block.push(array.slice(at, rows)));
            row += rows;
            at += rows;
        }
    }
    blocks
}

/// The values of `block` in one array, unless that might not hold them.
fn joined(block: Vec<ArrayRef>) -> Vec<ArrayRef> {
    if block.len() < 2 || !fit_together(&block) {
        return block;
    }
    let parts: Vec<_> = block.iter().map(AsRef::as_ref).collect();
    match concat(&parts) {
        Ok(array) => vec![array],
        Err(_) => block,
    }
}

/// Whether one array holds the values of `parts`, which are of one type: the keys of a dictionary may be
/// too small for the values of several, and the offsets of lists for all items.
fn fit_together(parts: &[ArrayRef]) -> bool {
    let Some(first) = parts.first() else { return true };
    let items = |items: Vec<ArrayRef>| {
        let count = items.iter().map(|i| i.len()).sum::<usize>();
        i32::try_from(count).is_ok() && fit_together(&items)
    };
    match first.data_type() {
        DataType::Dictionary(key, _) => {
            let most = match **key {
                DataType::Int8 => 1 << 7,
                DataType::UInt8 => 1 << 8,
                DataType::Int16 => 1 << 15,
                DataType::UInt16 => 1 << 16,
                _ => i32::MAX as usize,
            };
            let values = |part: &ArrayRef| part.as_any_dictionary().values().len();
            parts.iter().map(values).sum::<usize>() <= most
        }
        DataType::List(_) => items(parts.iter().map(|p| items_of(p.as_list::<i32>())).collect()),
        DataType::LargeList(_) => {
            items(parts.iter().map(|p| items_of(p.as_list::<i64>())).collect())
        }
        DataType::Map(..) => items(parts.iter().map(entries_of).collect()),
        DataType::Struct(fields) => (0..fields.len()).all(|i| {
            let column = |p: &ArrayRef| Arc::clone(p.as_struct().column(i));
            fit_together(&parts.iter().map(column).collect::<Vec<_>>())
        }),
        // Their items are joined whole, or without regard to what an array can hold.
        DataType::ListView(_) | DataType::LargeListView(_) | DataType::Union(..) => false,
        DataType::FixedSizeList(item, _) => item.data_type().is_primitive(),
        _ => true,
    }
}

/// The items of lists, without those of lists that were cut off.
fn items_of<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> ArrayRef {
    between(lists.values(), lists.value_offsets())
}

/// The entries of maps, without those of maps that were cut off.
fn entries_of(maps: &ArrayRef) -> ArrayRef {
    let maps = maps.as_map();
    let entries: ArrayRef = Arc::new(maps.entries().clone());
    between(&entries, maps.value_offsets())
}

fn between<O: OffsetSizeTrait>(items: &ArrayRef, offsets: &[O]) -> ArrayRef {
    match (offsets.first(), offsets.last()) {
        (Some(start), Some(end)) => {
            items.slice(start.as_usize(), end.as_usize() - start.as_usize())
        }
        _ => items.slice(0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Int64Array, ListArray};
    use datafusion::arrow::datatypes::Int32Type;

    #[test]
    fn blocks_have_the_rows_of_a_batch() {
        let array = |len: usize| -> ArrayRef { Arc::new(Int64Array::from(vec![7; len])) };
        for lengths in [&[3 * BATCH + 5][..], &[1, BATCH, BATCH - 1, 2 * BATCH + 5], &[0, 5, 0]] {
            let rows: usize = lengths.iter().sum();
            let blocks = blocks(lengths.iter().map(|&n| array(n)).collect());
            assert_eq!(blocks.len(), rows.div_ceil(BATCH));
            for (i, block) in blocks.into_iter().enumerate() {
                let rows = BATCH.min(rows - i * BATCH);
                assert_eq!(block.iter().map(|a| a.len()).sum::<usize>(), rows);
                let joined = joined(block);
                assert_eq!((joined.len(), joined[0].len()), (1, rows));
            }
        }
    }

    #[test]
    fn lists_that_were_cut_off_do_not_count() {
        let lists = (0..10).map(|i| Some((0..i).map(Some)));
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
        assert_eq!(items_of(&lists.slice(3, 4)).len(), 3 + 4 + 5 + 6);
        assert_eq!(items_of(&lists.slice(3, 0)).len(), 0);
    }
}
