//! Hashing that is the same on every machine and in every run.

use twox_hash::XxHash3_128;
use twox_hash::xxhash3_128::{RawHasher, SecretBuffer};

/// A hasher for maps whose order never shows: fixed seed, so that runs can be repeated.
pub type FixedState = foldhash::fast::FixedState;

/// XXH3-128 of `bytes` under `seed`: the digest of model bytes, the order of stored rows and the
/// source of every random choice that must be a function of content.
///
/// # Examples
///
/// ```
/// use labelflow::math::content_hash;
///
/// assert_eq!(content_hash(1, b"row"), content_hash(1, b"row"));
/// assert_ne!(content_hash(1, b"row"), content_hash(2, b"row"));
/// ```
pub fn content_hash(seed: u64, bytes: &[u8]) -> u128 {
    XxHash3_128::oneshot_with_seed(seed, bytes)
}

/// [`content_hash`] under seed 0 of `parts`, one after the other, without joining them.
///
/// # Examples
///
/// ```
/// use labelflow::math::{content_hash, content_hash_of_parts};
///
/// assert_eq!(content_hash_of_parts(&[b"a ", b"row"]), content_hash(0, b"a row"));
/// ```
pub fn content_hash_of_parts(parts: &[&[u8]]) -> u128 {
    let mut hasher = RawHasher::new(SecretBuffer::default());
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish_128()
}
