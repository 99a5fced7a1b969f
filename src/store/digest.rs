//! The digest that bytes carry of themselves.

use crate::error::{Error, Result};
use crate::math::{content_hash, content_hash_of_parts};
use std::ops::Range;

/// The key under which the digest stands in the footer.
pub(super) const KEY: &str = "labelflow.digest";
/// What stands before the 32 digits of the digest.
pub(super) const PREFIX: &str = "xxh3-128:";
pub(super) const DIGITS: usize = 32;
const SEED: u64 = 0;
/// The length of the footer (4 bytes) and the closing `ARROW1`.
pub(crate) const TAIL: usize = 10;

/// Bytes that have the digest they carry.
#[derive(Debug, Clone, Copy)]
pub struct Checked<'a> {
    pub(super) bytes: &'a [u8],
    /// Their digest.
    pub digest: &'a str,
}

impl<'a> Checked<'a> {
    /// Looks for the digest of `bytes`, first `from_end` bytes before their end, and checks it.
    /// Returns how far before the end it stands, too.
    pub(super) fn try_new(bytes: &'a [u8], from_end: usize) -> Result<(Self, usize)> {
        let found = place_at(bytes, from_end).or_else(|| place(bytes));
        let place = found.ok_or_else(not_a_model)?;
        let from_end = bytes.len() - place.start;
        let zeros = [b'0'; DIGITS];
        let hash = content_hash_of_parts(&[&bytes[..place.start], &zeros, &bytes[place.end..]]);
        if format!("{hash:032x}").as_bytes() != &bytes[place.clone()] {
            return Err(Error::corrupt(
                "the model is damaged: its bytes do not have the digest they carry; use a whole \
                 copy",
            ));
        }
        let digest = std::str::from_utf8(&bytes[place]).map_err(|_| not_a_model())?;
        Ok((Checked { bytes, digest }, from_end))
    }
}

/// Puts the digest of `bytes`, where it is zeros, to its place.
pub(super) fn put_digest(bytes: &mut [u8], place: Range<usize>) {
    let digest = format!("{:032x}", content_hash(SEED, bytes));
    bytes[place].copy_from_slice(digest.as_bytes());
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
pub(super) fn footer(bytes: &[u8]) -> Option<Range<usize>> {
    let tail = bytes.last_chunk()?;
    let place = footer_before(*tail, bytes.len() as u64)?;
    Some(place.start as usize..place.end as usize)
}

/// Where the footer stands in an IPC file of `length` bytes, of which `tail` are the last.
pub(crate) fn footer_before(tail: [u8; TAIL], length: u64) -> Option<Range<u64>> {
    let [a, b, c, d, magic @ ..] = tail;
    let footer = u64::try_from(i32::from_le_bytes([a, b, c, d])).ok()?;
    let end = length.checked_sub(TAIL as u64).filter(|_| magic == *b"ARROW1")?;
    Some(end.checked_sub(footer)?..end)
}

/// Where the digits stand; the footer is written last and holds no text of users.
pub(super) fn place(bytes: &[u8]) -> Option<Range<usize>> {
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
