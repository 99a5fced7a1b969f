//! Rows and batches as IPC files that carry their own digest.

use super::digest::{DIGITS, KEY, PREFIX, place, put_digest};
use super::message::{ALIGNMENT, Message};
use super::row::Row;
use crate::error::{Error, Result};
use arrow::ipc::MetadataVersion;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions};
use arrow::record_batch::RecordBatch;
use std::ops::Range;

/// Where the end of an IPC file begins: eight bytes say that no batch follows, then the footer.
const END: usize = 8;
/// The bytes by which a footer names a batch: offset, length of its metadata, length of its body.
const BLOCK: usize = 24;
/// Schemas that are remembered: those of models of one query differ in few columns.
const MAX_TEMPLATES: usize = 8;

/// Makes IPC files of one model row each, whose footer holds the digest of all bytes (its own place
/// zeroed).
///
/// Files of one schema begin alike, and end alike but for the lengths of the batch and the digest.
/// So Arrow writes the first, and the others are its copies with another body.
#[derive(Debug, Default)]
pub(super) struct Sealer {
    /// The last used first.
    templates: Vec<Template>,
}

/// What files of one schema share.
struct Template {
    /// A row with the columns of all.
    like: Row,
    beginning: Vec<u8>,
    message: Message,
    /// From the end of the batch to the end of the file, with zeros for the digest.
    end: Vec<u8>,
    /// Where the batch is named, and where the digest stands, in `end`.
    block: usize,
    place: Range<usize>,
}

impl Sealer {
    /// Appends the file of `row` to `out`.
    pub(super) fn seal(&mut self, row: Row, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        if let Some(at) = self.templates.iter().position(|t| t.like.same_columns(&row)) {
            self.templates[..=at].rotate_right(1);
            if self.templates[0].seal(&row, out).is_some() {
                return Ok(());
            }
            out.truncate(start);
            self.templates.remove(0);
        }
        let (bytes, written, place) = write(&row.to_batch()?)?;
        self.templates.truncate(MAX_TEMPLATES - 1);
        if let Some(template) = Template::learn(row, &bytes, written, &place) {
            self.templates.insert(0, template);
        }
        if out.is_empty() {
            // A model of many rows is not copied once more.
            *out = bytes;
        } else {
            out.extend_from_slice(&bytes);
        }
        put_digest(&mut out[start..], place);
        Ok(())
    }
}

/// The file of `batch`.
pub(super) fn seal_batch(batch: &RecordBatch) -> Result<Vec<u8>> {
    let (mut bytes, _, place) = write(batch)?;
    put_digest(&mut bytes, place);
    Ok(bytes)
}

/// The file of `batch` as Arrow writes it, where the batch stands in it, and the place for the
/// digest, which is zeros.
fn write(batch: &RecordBatch) -> Result<(Vec<u8>, Range<usize>, Range<usize>)> {
    // Many small buffers: aligned to 8 bytes they take a third of what 64 would.
    let options = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5)?;
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options)?;
    let start = writer.get_ref().len();
    writer.write_metadata(KEY, format!("{PREFIX}{}", "0".repeat(DIGITS)));
    writer.write(batch)?;
    let written = start..writer.get_ref().len();
    let bytes = writer.into_inner()?;
    let place =
        place(&bytes).ok_or_else(|| Error::internal("an IPC file is not laid out as expected"))?;
    Ok((bytes, written, place))
}

/// The name of the batch that is `message` and stands at `start`, as it is in the footer.
fn block_of(start: usize, message: &[u8]) -> Option<[u8; BLOCK]> {
    // A message is a marker and the length of its metadata, the metadata, the body.
    let metadata = i32::from_le_bytes(message.get(4..8)?.try_into().ok()?).checked_add(8)?;
    let body = message.len().checked_sub(usize::try_from(metadata).ok()?)?;
    let mut block = [0; BLOCK];
    block[..8].copy_from_slice(&(start as u64).to_le_bytes());
    block[8..12].copy_from_slice(&metadata.to_le_bytes());
    block[16..].copy_from_slice(&(body as u64).to_le_bytes());
    Some(block)
}

impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Template").field("like", &self.like).finish_non_exhaustive()
    }
}

impl Template {
    /// What the file `bytes`, in which `row` stands at `message`, shares with others.
    fn learn(row: Row, bytes: &[u8], message: Range<usize>, place: &Range<usize>) -> Option<Self> {
        let block = block_of(message.start, &bytes[message.clone()])?;
        let end = bytes[message.end..].to_vec();
        let found = end[END..].windows(BLOCK).position(|w| w == block)?;
        Some(Template {
            beginning: bytes[..message.start].to_vec(),
            block: END + found,
            place: place.start - message.end..place.end - message.end,
            end,
            message: Message::learn(&row, &bytes[message])?,
            like: row,
        })
    }

    fn seal(&mut self, row: &Row, out: &mut Vec<u8>) -> Option<()> {
        let first = out.len();
        out.reserve(self.beginning.len() + self.message.len_hint() + self.end.len());
        out.extend_from_slice(&self.beginning);
        let start = out.len();
        self.message.write(row, out)?;
        let written = out.len();
        let block = block_of(start - first, &out[start..])?;
        out.extend_from_slice(&self.end);
        out[written + self.block..][..BLOCK].copy_from_slice(&block);
        let place = written - first + self.place.start..written - first + self.place.end;
        put_digest(&mut out[first..], place);
        Some(())
    }
}
