//! Ranges of local files, read into buffers that serve again.
//!
//! A scan with a predicate asks for all columns of a row group at a time, and gives them back at the end
//! of it. An allocator returns blocks of that size to the system; to get them again costs a page fault
//! for every 4 KB, a tenth of the time of a scan. So the blocks are kept here until the next row group;
//! those of a size that is asked for once, as for the footer of a file, are not.

use super::visible::Bytes;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;

/// Fewer bytes than this are left to the store.
const SMALL: u64 = 64 << 10;
/// Ranges beside each other are read into one buffer up to this length: whole columns of a row group
/// and single pages take buffers of about one size then, and serve each other.
const TOGETHER: u64 = 1 << 20;
/// Bytes that are kept at most while nobody reads: about two row groups.
const KEPT: usize = 128 << 20;

/// Reads ranges of local files.
#[derive(Debug, Default)]
pub(super) struct LocalRanges {
    files: LocalFileSystem,
    buffers: Arc<Buffers>,
}

impl LocalRanges {
    /// The bytes of `ranges`; `None` where the store itself has to answer, because they are few or
    /// cannot be read, which it explains.
    pub(super) async fn read(&self, file: &Path, ranges: &[Range<u64>]) -> Option<Vec<Bytes>> {
        let length = |sum: u64, r: &Range<u64>| sum.saturating_add(r.end.saturating_sub(r.start));
        if ranges.iter().fold(0, length) < SMALL {
            return None;
        }
        let path = self.files.path_to_filesystem(file).ok()?;
        let (ranges, buffers) = (ranges.to_vec(), Arc::clone(&self.buffers));
        let reading = move || read(&path, &ranges, &buffers);
        Handle::try_current().ok()?.spawn_blocking(reading).await.ok()?.ok()
    }
}

fn read(
    path: &std::path::Path,
    ranges: &[Range<u64>],
    buffers: &Arc<Buffers>,
) -> io::Result<Vec<Bytes>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut found = Vec::with_capacity(ranges.len());
    let mut rest = ranges;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(beside_each_other(rest));
        let (start, end) = (part[0].start, part[part.len() - 1].end);
        // A damaged file may ask for any number of bytes.
        if end > size || part.iter().any(|r| r.end < r.start) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut buffer = buffers.take((end - start) as usize);
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut buffer.bytes[..buffer.len])?;
        let bytes = Bytes::from_owner(buffer);
        let place = |at: u64| (at - start) as usize;
        found.extend(part.iter().map(|r| bytes.slice(place(r.start)..place(r.end))));
        rest = after;
    }
    Ok(found)
}

/// How many of the first ranges follow each other without a gap and are read together; one at least.
fn beside_each_other(ranges: &[Range<u64>]) -> usize {
    let start = ranges[0].start;
    let goes_on = |pair: &[Range<u64>]| {
        pair[0].end == pair[1].start && pair[1].end.saturating_sub(start) <= TOGETHER
    };
    1 + ranges.windows(2).take_while(|pair| goes_on(pair)).count()
}

/// Buffers that are not in use, by size.
#[derive(Debug)]
pub(in crate::sql) struct Buffers {
    /// Bytes that are kept at most.
    kept: usize,
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    by_size: BTreeMap<usize, Vec<Vec<u8>>>,
    bytes: usize,
    /// Sizes that were allocated, and whether more than once.
    allocated: BTreeMap<usize, bool>,
}

/// A buffer in use; dropped, it is free again.
pub(in crate::sql) struct Buffer {
    bytes: Vec<u8>,
    len: usize,
    home: Arc<Buffers>,
}

impl Default for Buffers {
    fn default() -> Self {
        Buffers::keeping(KEPT)
    }
}

impl Buffers {
    /// No buffers yet; of those that nobody uses, so many bytes are kept.
    pub(in crate::sql) fn keeping(kept: usize) -> Self {
        Buffers { kept, free: Mutex::default() }
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer with room for `size` bytes or somewhat more, and nothing in it.
    pub(in crate::sql) fn empty(self: &Arc<Self>, size: usize) -> Buffer {
        let mut buffer = self.take(size);
        buffer.len = 0;
        buffer
    }

    /// A buffer for `len` bytes, with anything in it.
    fn take(self: &Arc<Self>, len: usize) -> Buffer {
        // Sizes in steps of an eighth, so that columns of about one size share buffers.
        let step = (len.next_power_of_two() >> 3).max(1);
        let size = len.next_multiple_of(step);
        let found = self.free().take(size, self.kept);
        let bytes = found.unwrap_or_else(|| vec![0; size]);
        Buffer { bytes, len, home: Arc::clone(self) }
    }
}

impl Free {
    /// The smallest buffer of `size` bytes or more, unless it is much larger: the last row group of a
    /// file is a short one.
    fn take(&mut self, size: usize, kept: usize) -> Option<Vec<u8>> {
        let mut fitting = self.by_size.range_mut(size..=size.saturating_mul(8));
        match fitting.find_map(|(_, buffers)| buffers.pop()) {
            Some(buffer) => {
                self.bytes -= buffer.len();
                Some(buffer)
            }
            None => {
                // Full of sizes that nobody asks for any more.
                if self.bytes + size > kept {
                    self.by_size.clear();
                    self.bytes = 0;
                }
                self.allocated.entry(size).and_modify(|again| *again = true).or_insert(false);
                None
            }
        }
    }

    fn keep(&mut self, buffer: Vec<u8>, kept: usize) {
        let again = self.allocated.get(&buffer.len()).copied().unwrap_or(false);
        if again && self.bytes + buffer.len() <= kept {
            self.bytes += buffer.len();
            self.by_size.entry(buffer.len()).or_default().push(buffer);
        }
    }
}

impl Buffer {
    /// Adds what there is room for of `more`; returns how many bytes that is.
    pub(in crate::sql) fn push(&mut self, more: &[u8]) -> usize {
        let added = more.len().min(self.bytes.len() - self.len);
        self.bytes[self.len..self.len + added].copy_from_slice(&more[..added]);
        self.len += added;
        added
    }

    pub(in crate::sql) fn is_full(&self) -> bool {
        self.len == self.bytes.len()
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.home.free().keep(bytes, self.home.kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_serves_again() {
        let buffers = Arc::new(Buffers::default());
        // Not when that size was never asked for before.
        drop(buffers.take(100_000));
        assert_eq!(buffers.free().bytes, 0);
        let first = buffers.take(100_000);
        let place = first.bytes.as_ptr();
        assert_eq!(first.as_ref().len(), 100_000);
        drop(first);
        // Another length of about the same size.
        let second = buffers.take(99_000);
        assert_eq!((second.bytes.as_ptr(), second.as_ref().len()), (place, 99_000));
        // It is in use, and others are too large.
        assert_ne!(buffers.take(99_000).bytes.as_ptr(), place);
        drop(second);
        assert_eq!(buffers.take(10_000).bytes.len(), 10_240);
    }

    #[test]
    fn a_buffer_is_filled() {
        let buffers = Arc::new(Buffers::keeping(8));
        for kept in [0, 8] {
            let mut buffer = buffers.empty(8);
            assert_eq!((buffer.push(b"abcde"), buffer.is_full()), (5, false));
            assert_eq!((buffer.push(b"fghij"), buffer.is_full()), (3, true));
            assert_eq!(buffer.as_ref(), b"abcdefgh");
            drop(buffer);
            assert_eq!(buffers.free().bytes, kept);
        }
    }

    #[test]
    fn what_is_kept_is_bounded_and_follows_the_sizes_in_use() {
        let buffers = Arc::new(Buffers::default());
        drop((0..3).map(|_| buffers.take(KEPT / 2)).collect::<Vec<_>>());
        assert_eq!(buffers.free().bytes, KEPT);
        (0..2).for_each(|_| drop(buffers.take(1 << 20)));
        assert_eq!(buffers.free().bytes, 1 << 20);
        assert_eq!(buffers.take(0).as_ref().len(), 0);
    }

    #[test]
    fn ranges_are_read_and_bad_ones_left_to_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.bin");
        let bytes: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let file = Path::from_absolute_path(&path).unwrap();
        let ranges = LocalRanges::default();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let read = |r: &[Range<u64>]| runtime.block_on(ranges.read(&file, r));
        for _ in 0..2 {
            let found = read(&[5..100_005, 199_990..200_000, 7..7]).unwrap();
            assert_eq!(found[0], bytes[5..100_005]);
            assert_eq!(found[1], bytes[199_990..]);
            assert!(found[2].is_empty());
        }
        // Ranges beside each other share a buffer, unless they are long together.
        let ranges_of = |ends: &[u64]| -> Vec<Range<u64>> {
            ends.windows(2).map(|pair| pair[0]..pair[1]).collect()
        };
        let beside = ranges_of(&[10, 60_000, 60_000, 130_000, 199_999]);
        let found = read(&beside).unwrap();
        for (range, found) in beside.iter().zip(&found) {
            assert_eq!(found[..], bytes[range.start as usize..range.end as usize]);
        }
        assert_eq!(found[3].as_ptr(), found[0].as_ptr().wrapping_add(129_990));
        assert_eq!(beside_each_other(&ranges_of(&[5, TOGETHER + 5, TOGETHER + 6])), 1);
        assert_eq!(beside_each_other(&[0..5, 5..9, 10..12]), 2);
        for bad in [0..10, 0..200_001, 0..u64::MAX] {
            assert!(read(std::slice::from_ref(&bad)).is_none(), "{bad:?}");
        }
    }
}
