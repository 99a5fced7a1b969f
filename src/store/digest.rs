//! Bytes that know their own digest.

use crate::error::{Error, Result};
use crate::math::content_hash;
use arrow::ipc::MetadataVersion;
use arrow::ipc::reader::FileReader;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions};
use arrow::record_batch::RecordBatch;
use std::io::Cursor;
use std::ops::Range;

/// The key under which the digest stands in the footer.
const KEY: &str = "labelflow.digest";
/// What stands before the 32 digits of the digest.
const PREFIX: &str = "xxh3-128:";
const DIGITS: usize = 32;
const SEED: u64 = 0;
/// The length of the footer (4 bytes) and the closing `ARROW1`.
const TAIL: usize = 10;

/// `batch` as an IPC file whose footer holds the digest of all its bytes (its own place zeroed).
pub(super) fn seal(batch: &RecordBatch) -> Result<Vec<u8>> {
    // Many small buffers: aligned to 8 bytes they take a third of what 64 would.
    let options = IpcWriteOptions::try_new(8, false, MetadataVersion::V5)?;
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options)?;
    writer.write_metadata(KEY, format!("{PREFIX}{}", "0".repeat(DIGITS)));
    writer.write(batch)?;
    let mut bytes = writer.into_inner()?;
    let place = place(&bytes).ok_or_else(|| Error::internal("the footer has no digest"))?;
    let digest = format!("{:032x}", content_hash(SEED, &bytes));
    bytes[place].copy_from_slice(digest.as_bytes());
    Ok(bytes)
}

/// The batch in `bytes`, whose digest must be right.
pub(super) fn open(bytes: &[u8]) -> Result<RecordBatch> {
    let place = place(bytes).ok_or_else(not_a_model)?;
    let mut zeroed = bytes.to_vec();
    zeroed[place.clone()].fill(b'0');
    let digest = format!("{:032x}", content_hash(SEED, &zeroed));
    if digest.as_bytes() != &bytes[place] {
        return Err(Error::corrupt(
            "the model is damaged: its bytes do not have the digest they carry; use a whole copy",
        ));
    }
    let damaged = |e| Error::corrupt(format!("the model cannot be read: {e}"));
    let mut reader = FileReader::try_new(Cursor::new(bytes), None).map_err(damaged)?;
    match (reader.next(), reader.next()) {
        (Some(batch), None) => batch.map_err(damaged),
        _ => Err(Error::corrupt("a model is one record batch")),
    }
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

/// Where the digits stand; the footer is written last and holds no text of users.
fn place(bytes: &[u8]) -> Option<Range<usize>> {
    let tail = bytes.len().checked_sub(TAIL)?;
    let (length, magic) = bytes[tail..].split_at(4);
    if magic != b"ARROW1" {
        return None;
    }
    let length = i32::from_le_bytes(length.try_into().ok()?);
    let start = tail.checked_sub(usize::try_from(length).ok()?)?;
    let footer = &bytes[start..tail];
    let prefix = PREFIX.as_bytes();
    let at = footer.windows(prefix.len()).position(|w| w == prefix)? + start + prefix.len();
    (at + DIGITS <= tail).then_some(at..at + DIGITS)
}
