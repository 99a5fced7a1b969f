//! From bytes that carry their digest to rows and batches.

use super::digest::{Checked, footer};
use super::message::{self, HeadBytes, Read};
use crate::error::{Error, Result};
use crate::stats::State;
use arrow::array::{Array, AsArray};
use arrow::buffer::Buffer;
use arrow::datatypes::{SchemaRef, UInt64Type};
use arrow::ipc::reader::FileReader;
use arrow::ipc::{Block, root_as_footer};
use arrow::record_batch::RecordBatch;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Schemas that are remembered: those of models of one query differ in few columns.
const MAX_KNOWN: usize = 8;

/// Reads files of model rows. Files of one schema begin alike: the schema is decoded for the first
/// of them only.
#[derive(Debug, Clone, Default)]
pub(super) struct Opener {
    /// The last met first; shared, since readers are copied.
    known: Arc<Vec<Arc<Known>>>,
    /// How far before the end the digest of the last file stood.
    from_end: usize,
}

/// The beginning of a file and the schema in it.
#[derive(Debug)]
struct Known {
    start: Vec<u8>,
    schema: SchemaRef,
}

/// The row of a file.
pub(super) struct Opened {
    pub(super) schema: SchemaRef,
    pub(super) read: Read,
}

/// The batch in `bytes`, whose digest must be right.
pub(super) fn open_batch(bytes: &[u8]) -> Result<RecordBatch> {
    let (checked, _) = Checked::try_new(bytes, 0)?;
    guarded(|| read_file(checked.bytes)).ok_or_else(unfit)?
}

impl Opener {
    /// Checks the digest of `bytes`, which stands where that of the last file stood.
    pub(super) fn check<'a>(&mut self, bytes: &'a [u8]) -> Result<Checked<'a>> {
        let (checked, from_end) = Checked::try_new(bytes, self.from_end)?;
        self.from_end = from_end;
        Ok(checked)
    }

    /// The row in bytes that were checked. Its first columns are left out where they are those in
    /// `same`, which were read from a row of that schema.
    pub(super) fn open(
        &mut self,
        checked: &Checked<'_>,
        same: Option<(&SchemaRef, &HeadBytes)>,
    ) -> Result<Opened> {
        let bytes = checked.bytes;
        if let Some(known) = self.known.iter().find(|k| bytes.starts_with(&k.start)) {
            let same = same.filter(|same| Arc::ptr_eq(same.0, &known.schema)).map(|same| same.1);
            let quick = guarded(|| read_row(&bytes[known.start.len()..], &known.schema, same));
            if let Some(read) = quick.ok_or_else(unfit)? {
                return Ok(Opened { schema: Arc::clone(&known.schema), read });
            }
        }
        let batch = guarded(|| read_file(bytes)).ok_or_else(unfit)??;
        let schema = batch.schema();
        if let Some(start) = beginning(bytes) {
            let new = Known { start: start.to_vec(), schema: Arc::clone(&schema) };
            let others = self.known.iter().filter(|k| k.start != start).take(MAX_KNOWN - 1);
            self.known = Arc::new([Arc::new(new)].into_iter().chain(others.cloned()).collect());
        }
        Ok(Opened { schema, read: of_batch(&batch)? })
    }
}

/// What `read` gives; none where the reader of Arrow's format asserts what damaged bytes do not keep.
pub(crate) fn guarded<T>(read: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(read)).ok()
}

fn unfit() -> Error {
    Error::corrupt("the model cannot be read: its columns do not fit their buffers")
}

/// The batch of a file, as Arrow reads it.
fn read_file(bytes: &[u8]) -> Result<RecordBatch> {
    let damaged = |e| Error::corrupt(format!("the model cannot be read: {e}"));
    let footer = footer(bytes).and_then(|footer| bytes.get(footer));
    if !footer.is_some_and(|footer| blocks_fit(footer, bytes.len() as u64)) {
        return Err(Error::corrupt("the model cannot be read: its parts lie outside of it"));
    }
    let mut reader = FileReader::try_new(Cursor::new(bytes), None).map_err(damaged)?;
    match (reader.next(), reader.next()) {
        (Some(batch), None) => batch.map_err(damaged),
        _ => Err(Error::corrupt("a model is one record batch")),
    }
}

/// Whether the blocks that the footer of an IPC file names lie within its `length` bytes; the reader
/// allocates what they say.
pub(crate) fn blocks_fit(footer: &[u8], length: u64) -> bool {
    let Ok(footer) = root_as_footer(footer) else { return false };
    let fits = |block: &Block| {
        let lengths = [block.offset(), i64::from(block.metaDataLength()), block.bodyLength()];
        let lengths = lengths.map(|n| u64::try_from(n).ok());
        let end = lengths.iter().try_fold(0u64, |sum, n| sum.checked_add((*n)?));
        end.is_some_and(|end| end <= length)
    };
    let blocks = [footer.recordBatches(), footer.dictionaries()];
    blocks.into_iter().flatten().all(|blocks| blocks.iter().all(fits))
}

/// The bytes of a file up to its first batch: the name of the format, then the schema as a message.
fn beginning(bytes: &[u8]) -> Option<&[u8]> {
    let metadata = i32::from_le_bytes(bytes.get(12..16)?.try_into().ok()?);
    bytes.get(..16usize.checked_add(usize::try_from(metadata).ok()?)?)
}

/// The row whose message `bytes` begin with; `None` when Arrow has to read it.
fn read_row(bytes: &[u8], schema: &SchemaRef, same: Option<&HeadBytes>) -> Option<Read> {
    let metadata = i32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?);
    // A copy, since numbers are read where they stand and have to be aligned.
    message::read(&Buffer::from(bytes), usize::try_from(metadata).ok()?, schema, same)
}

/// The row of a batch.
fn of_batch(batch: &RecordBatch) -> Result<Read> {
    if batch.num_rows() != 1 {
        return Err(Error::corrupt(format!("a model is one row, not {}", batch.num_rows())));
    }
    let unfit = |name: &str| {
        Error::corrupt(format!("the model's column `{name}` is missing or of another type"))
    };
    let column = |name: &str| {
        batch.column_by_name(name).filter(|c| c.null_count() == 0).ok_or_else(|| unfit(name))
    };
    let rows = column("rows")?.as_primitive_opt::<UInt64Type>().ok_or_else(|| unfit("rows"))?;
    let state = column("state")?.as_struct_opt().ok_or_else(|| unfit("state"))?;
    let (rows, state) = (rows.value(0), State::try_from_array(state)?);
    Ok(Read { head: Some((batch.columns().to_vec(), None)), rows, state })
}
