//! Hashing that is the same on every machine and in every run.

use twox_hash::XxHash3_128;

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
