//! Waiting rows in the order of their groups.

use super::batch::Batch;
use crate::error::Result;
use std::ops::Range;

/// Rows that are brought into order at a time: few enough to stay in the cache.
const CHUNK: usize = 8192;
/// Batches of fewer rows are put together.
const SMALL: usize = 2048;

/// Rows by group, those of a group in the order in which they came. They stay where they are until
/// they are asked for: all of them in another place would be twice the memory.
pub(super) struct Sorted {
    pub(super) batches: Vec<Batch>,
    /// Where the rows of each batch end among all.
    ends: Vec<usize>,
    /// The group of each row, ascending.
    pub(super) groups: Vec<usize>,
    /// The batch of each row and its number there; `None` when rows came in order.
    places: Option<Vec<(u32, u32)>>,
}

impl Sorted {
    /// The rows of `batches`, which belong to `groups` one by one, all below `count`.
    pub(super) fn new(batches: Vec<Batch>, groups: Vec<usize>, count: usize) -> Self {
        let mut end = 0;
        let ends = batches.iter().map(|batch| {
            end += batch.len();
            end
        });
        let ends = ends.collect();
        if groups.is_sorted() {
            return Sorted { batches, ends, groups, places: None };
        }
        let mut next = vec![0; count + 1];
        groups.iter().for_each(|&g| next[g + 1] += 1);
        (1..next.len()).for_each(|g| next[g] += next[g - 1]);
        let mut places = vec![(0, 0); groups.len()];
        let mut sorted = vec![0; groups.len()];
        let came = batches.iter().enumerate();
        let came = came.flat_map(|(b, batch)| (0..batch.len()).map(move |r| (b as u32, r as u32)));
        for (place, &group) in came.zip(&groups) {
            places[next[group]] = place;
            sorted[next[group]] = group;
            next[group] += 1;
        }
        Sorted { batches, ends, groups: sorted, places: Some(places) }
    }

    /// Ranges of all rows that are quick to ask for, one after the other.
    pub(super) fn chunks(&self) -> Vec<Range<usize>> {
        let len = self.groups.len();
        let mut chunks = Vec::new();
        let mut cut = |whole: Range<usize>| {
            let starts = whole.clone().step_by(CHUNK);
            chunks.extend(starts.map(|start| start..(start + CHUNK).min(whole.end)));
        };
        if self.places.is_some() {
            cut(0..len);
            return chunks;
        }
        let mut start = 0;
        for &end in self.ends.iter().map(|end| end.min(&len)) {
            if end - start >= SMALL || end == len {
                cut(start..end);
                start = end;
            }
        }
        chunks
    }

    /// The rows numbered `range`.
    pub(super) fn rows(&self, range: Range<usize>) -> Result<Option<Batch>> {
        if let Some(places) = &self.places {
            let at = places[range].iter().map(|&(b, r)| (b as usize, r as usize));
            return Batch::gather(&self.batches, &at.collect::<Vec<_>>()).map(Some);
        }
        let mut parts = Vec::new();
        for (batch, &end) in self.batches.iter().zip(&self.ends) {
            let start = end - batch.len();
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from < to {
                parts.push(batch.slice(from - start, to - from)?);
            }
        }
        Batch::concat(&parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
    use datafusion::arrow::datatypes::Int64Type;
    use std::sync::Arc;

    /// Rows numbered from 0, cut into batches of these lengths.
    fn batches(lengths: &[usize]) -> Vec<Batch> {
        let mut next = 0;
        let batch = lengths.iter().map(|&len| {
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(next..next + len as i64));
            next += len as i64;
            Batch { labels: Arc::clone(&numbers), features: numbers, weights: None }
        });
        batch.collect()
    }

    #[test]
    fn rows_come_by_group_in_the_order_in_which_they_came() {
        for lengths in [&[][..], &[5], &[1; 7000], &[20_000, 3, 1, 9000, 2047, 2049]] {
            let len: usize = lengths.iter().sum();
            for (in_order, group) in [(true, 13usize), (false, 7)] {
                let of = |row: usize| if in_order { row / group } else { row * 31 % group };
                let groups: Vec<usize> = (0..len).map(of).collect();
                let mut expected: Vec<usize> = (0..len).collect();
                expected.sort_by_key(|&row| groups[row]);
                let sorted = Sorted::new(batches(lengths), groups, len + 7);
                assert!(sorted.groups.is_sorted());
                let mut found: Vec<i64> = Vec::new();
                for range in sorted.chunks() {
                    assert!(range.len() <= CHUNK && range.start == found.len(), "{range:?}");
                    let rows = sorted.rows(range).unwrap().unwrap();
                    assert_eq!(&*rows.labels, &*rows.features);
                    found.extend(rows.labels.as_primitive::<Int64Type>().values().iter());
                }
                assert!(found.into_iter().eq(expected.iter().map(|&row| row as i64)));
                assert!(sorted.rows(0..0).unwrap().is_none_or(|none| none.len() == 0));
            }
        }
    }
}
