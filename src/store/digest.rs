//! Bytes that know their own digest.

use super::message::{self, ALIGNMENT, Message};
use crate::error::{Error, Result};
use crate::math::{content_hash, content_hash_of_parts};
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::reader::{FileDecoder, FileReader};
use arrow::ipc::writer::{FileWriter, IpcWriteOptions};
use arrow::ipc::{Block, MetadataVersion, root_as_footer};
use arrow::record_batch::RecordBatch;
use std::io::Cursor;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The key under which the digest stands in the footer.
const KEY: &str = "labelflow.digest";
/// What stands before the 32 digits of the digest.
const PREFIX: &str = "xxh3-128:";
const DIGITS: usize = 32;
const SEED: u64 = 0;
/// The length of the footer (4 bytes) and the closing `ARROW1`.
const TAIL: usize = 10;

/// Where the end of an IPC file begins: eight bytes say that no batch follows, then the footer.
const END: usize = 8;
/// The bytes by which a footer names a batch: offset, length of its metadata, length of its body.
const BLOCK: usize = 24;

/// Schemas that are remembered: those of models that have features alike differ in few columns.
const MAX_TEMPLATES: usize = 8;

/// Makes IPC files of one batch each, whose footer holds the digest of all bytes (its own place
/// zeroed).
///
/// Files of one schema begin alike, and end alike but for the lengths of the batch and the digest.
/// So the schema, which is most of a small model, is encoded for the first file only.
#[derive(Debug, Default)]
pub(super) struct Sealer {
    /// The last used first.
    templates: Vec<Template>,
}

/// What files of one schema share.
struct Template {
    schema: SchemaRef,
    beginning: Vec<u8>,
    message: Message,
    /// From the end of the batch to the end of the file, with zeros for the digest.
    end: Vec<u8>,
    /// Where the batch is named, and where the digest stands, in `end`.
    block: usize,
    place: Range<usize>,
}

impl Sealer {
    pub(super) fn seal(&mut self, batch: &RecordBatch) -> Result<Vec<u8>> {
        if let Some(at) = self.templates.iter().position(|t| t.schema == batch.schema()) {
            self.templates[..=at].rotate_right(1);
            if let Some(bytes) = self.templates[0].seal(batch) {
                return Ok(bytes);
            }
            self.templates.remove(0);
        }
        let (bytes, template) = write(batch)?;
        self.templates.truncate(MAX_TEMPLATES - 1);
        if let Some(template) = template {
            self.templates.insert(0, template);
        }
        Ok(bytes)
    }
}

/// The file of `batch` as Arrow writes it, and what it shares with others.
fn write(batch: &RecordBatch) -> Result<(Vec<u8>, Option<Template>)> {
    // Many small buffers: aligned to 8 bytes they take a third of what 64 would.
    let options = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5)?;
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options)?;
    let start = writer.get_ref().len();
    writer.write_metadata(KEY, format!("{PREFIX}{}", "0".repeat(DIGITS)));
    writer.write(batch)?;
    let written = writer.get_ref().len();
    let mut bytes = writer.into_inner()?;
    let place =
        place(&bytes).ok_or_else(|| Error::internal("an IPC file is not laid out as expected"))?;
    let template = Template::learn(batch, &bytes, start..written, &place);
    put_digest(&mut bytes, place);
    Ok((bytes, template))
}

/// Puts the digest of `bytes`, where it is zeros, to its place.
fn put_digest(bytes: &mut [u8], place: Range<usize>) {
    let digest = format!("{:032x}", content_hash(SEED, bytes));
    bytes[place].copy_from_slice(digest.as_bytes());
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
        f.debug_struct("Template").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Template {
    /// What the file `bytes`, in which `batch` stands at `message`, shares with others.
    fn learn(
        batch: &RecordBatch,
        bytes: &[u8],
        message: Range<usize>,
        place: &Range<usize>,
    ) -> Option<Self> {
        let block = block_of(message.start, &bytes[message.clone()])?;
        let end = bytes[message.end..].to_vec();
        let found = end[END..].windows(BLOCK).position(|w| w == block)?;
        Some(Template {
            schema: batch.schema(),
            beginning: bytes[..message.start].to_vec(),
            block: END + found,
            place: place.start - message.end..place.end - message.end,
            end,
            message: Message::learn(batch, &bytes[message])?,
        })
    }

    fn seal(&mut self, batch: &RecordBatch) -> Option<Vec<u8>> {
        let start = self.beginning.len();
        let mut bytes = Vec::with_capacity(start + self.message.len_hint() + self.end.len());
        bytes.extend_from_slice(&self.beginning);
        self.message.write(batch, &mut bytes)?;
        let written = bytes.len();
        let block = block_of(start, &bytes[start..])?;
        bytes.extend_from_slice(&self.end);
        bytes[written + self.block..][..BLOCK].copy_from_slice(&block);
        put_digest(&mut bytes, written + self.place.start..written + self.place.end);
        Some(bytes)
    }
}

/// The batch in `bytes`, whose digest must be right.
pub(super) fn open(bytes: &[u8]) -> Result<RecordBatch> {
    Opener::default().open(bytes)
}

/// Reads what [`Sealer`] makes. Files of one schema begin alike: the schema is decoded for the
/// first of them only.
#[derive(Debug, Clone, Default)]
pub(super) struct Opener {
    known: Option<Arc<Known>>,
    /// How far before the end the digest of the last file stood.
    from_end: usize,
}

/// Bytes that have the digest they carry.
#[derive(Debug, Clone, Copy)]
pub struct Checked<'a> {
    bytes: &'a [u8],
    /// Their digest.
    pub digest: &'a str,
}

/// The beginning of a file and the schema in it.
#[derive(Debug)]
struct Known {
    start: Vec<u8>,
    schema: SchemaRef,
}

impl Opener {
    pub(super) fn open(&mut self, bytes: &[u8]) -> Result<RecordBatch> {
        let checked = self.check(bytes)?;
        self.open_checked(&checked)
    }

    /// Looks for the digest of `bytes`, first where that of the last file stood, and checks it.
    pub(super) fn check<'a>(&mut self, bytes: &'a [u8]) -> Result<Checked<'a>> {
        let found = place_at(bytes, self.from_end).or_else(|| place(bytes));
        let place = found.ok_or_else(not_a_model)?;
        self.from_end = bytes.len() - place.start;
        let zeros = [b'0'; DIGITS];
        let hash = content_hash_of_parts(&[&bytes[..place.start], &zeros, &bytes[place.end..]]);
        if format!("{hash:032x}").as_bytes() != &bytes[place.clone()] {
            return Err(Error::corrupt(
                "the model is damaged: its bytes do not have the digest they carry; use a whole \
                 copy",
            ));
        }
        let digest = std::str::from_utf8(&bytes[place]).map_err(|_| not_a_model())?;
        Ok(Checked { bytes, digest })
    }

    pub(super) fn open_checked(&mut self, checked: &Checked<'_>) -> Result<RecordBatch> {
        // The reader of Arrow's format asserts what bytes made to deceive do not keep.
        let decoded = catch_unwind(AssertUnwindSafe(|| self.decode(checked.bytes.to_vec())));
        decoded.unwrap_or_else(|_| {
            Err(Error::corrupt("the model cannot be read: its columns do not fit their buffers"))
        })
    }

    fn decode(&mut self, bytes: Vec<u8>) -> Result<RecordBatch> {
        let damaged = |e| Error::corrupt(format!("the model cannot be read: {e}"));
        if let Some(known) = self.known.as_ref().filter(|k| bytes.starts_with(&k.start)) {
            let start = known.start.len();
            let schema = Arc::clone(&known.schema);
            return read_batch(bytes, start, schema).map_err(damaged)?.ok_or_else(one_batch);
        }
        if !blocks_fit(&bytes) {
            return Err(Error::corrupt("the model cannot be read: its parts lie outside of it"));
        }
        let mut reader = FileReader::try_new(Cursor::new(&bytes), None).map_err(damaged)?;
        let batch = match (reader.next(), reader.next()) {
            (Some(batch), None) => batch.map_err(damaged)?,
            _ => return Err(one_batch()),
        };
        if let Some(start) = beginning(&bytes) {
            self.known = Some(Arc::new(Known { start: start.to_vec(), schema: reader.schema() }));
        }
        Ok(batch)
    }
}

/// Whether the blocks that the footer names lie within the file; the reader allocates what they say.
fn blocks_fit(bytes: &[u8]) -> bool {
    let Some(footer) = footer(bytes).and_then(|f| root_as_footer(&bytes[f]).ok()) else {
        return false;
    };
    let fits = |block: &Block| {
        let lengths = [block.offset(), i64::from(block.metaDataLength()), block.bodyLength()];
        let end = lengths.iter().try_fold(0i64, |sum, &n| sum.checked_add(n));
        lengths.iter().all(|n| *n >= 0) && end.is_some_and(|end| end <= bytes.len() as i64)
    };
    let blocks = [footer.recordBatches(), footer.dictionaries()];
    blocks.into_iter().flatten().all(|blocks| blocks.iter().all(fits))
}

fn one_batch() -> Error {
    Error::corrupt("a model is one record batch")
}

/// The bytes of a file up to its first batch: the name of the format, then the schema as a message.
fn beginning(bytes: &[u8]) -> Option<&[u8]> {
    let metadata = i32::from_le_bytes(bytes.get(12..16)?.try_into().ok()?);
    bytes.get(..16usize.checked_add(usize::try_from(metadata).ok()?)?)
}

/// The batch whose message begins at `start`.
fn read_batch(
    bytes: Vec<u8>,
    start: usize,
    schema: SchemaRef,
) -> std::result::Result<Option<RecordBatch>, ArrowError> {
    let length = bytes.get(start + 4..start + 8).and_then(|b| b.try_into().ok());
    let metadata = length.map_or(-1, i32::from_le_bytes).checked_add(8).unwrap_or(-1);
    let fits = usize::try_from(metadata).is_ok_and(|m| m >= 8 && m <= bytes.len() - start);
    if !fits {
        return Ok(None);
    }
    let rest = Buffer::from_vec(bytes).slice(start);
    if let Some(batch) = message::read(&rest, metadata as usize - message::PREFIX, &schema) {
        return Ok(Some(batch));
    }
    let block = Block::new(0, metadata, rest.len() as i64 - i64::from(metadata));
    FileDecoder::new(schema, MetadataVersion::V5).read_record_batch(&block, &rest)
}

/// The digest that model bytes carry, without checking it: a name for the model.
///
/// # Errors
///
/// `Corrupt` when the bytes are no model.
pub fn digest_of(bytes: &[u8]) -> Result<&str> {
    let place = place(bytes).ok_or_else(not_a_model)?;
    std::str::from_utf8(&bytes[place]).map_err(|_| not_a_model())
}

fn not_a_model() -> Error {
    Error::corrupt("this is no labelflow model, or it is cut short: use a whole model file")
}

/// Where the footer stands.
fn footer(bytes: &[u8]) -> Option<Range<usize>> {
    let tail = bytes.len().checked_sub(TAIL)?;
    let (length, magic) = bytes[tail..].split_at(4);
    if magic != b"ARROW1" {
        return None;
    }
    let length = i32::from_le_bytes(length.try_into().ok()?);
    Some(tail.checked_sub(usize::try_from(length).ok()?)?..tail)
}

/// Where the digits stand; the footer is written last and holds no text of users.
fn place(bytes: &[u8]) -> Option<Range<usize>> {
    let footer = footer(bytes)?;
    let prefix = PREFIX.as_bytes();
    let found = bytes[footer.clone()].windows(prefix.len()).position(|w| w == prefix)?;
    let at = found + footer.start + prefix.len();
    (at + DIGITS <= footer.end).then_some(at..at + DIGITS)
}

/// The place of the digits `from_end` bytes before the end, if they stand there.
fn place_at(bytes: &[u8], from_end: usize) -> Option<Range<usize>> {
    let at = bytes.len().checked_sub(from_end)?;
    let inside = at + DIGITS <= bytes.len().checked_sub(TAIL)? && bytes.ends_with(b"ARROW1");
    (inside && bytes[..at].ends_with(PREFIX.as_bytes())).then_some(at..at + DIGITS)
}
