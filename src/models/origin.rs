//! Where models come from.

/// The bytes that a model was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Their digest.
    pub digest: Box<str>,
    /// Their format version.
    pub version: u32,
    /// How many there are.
    pub bytes: usize,
}
