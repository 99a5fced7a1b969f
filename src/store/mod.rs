//! Models as bytes and files.
//!
//! A model is one Arrow row in the IPC file format: any Arrow reader opens it. The bytes carry a
//! digest of themselves, so damage is an error and never a wrong answer. The same bytes are the
//! value of a model in SQL and the content of a `.labelflow` file.

mod atomic;
mod digest;
mod message;
mod open;
mod row;
mod schema;
mod seal;
mod unfinished;

pub(crate) use atomic::sync_directory;
pub use atomic::{AtomicFile, write_atomically};
pub use digest::digest_of;
pub(crate) use digest::{Checked, TAIL, footer_before};
pub(crate) use open::{blocks_fit, guarded};
pub use schema::schema_json;
pub(crate) use unfinished::PART;
#[cfg(feature = "sql")]
pub(crate) use unfinished::Unfinished;
pub use unfinished::remove_unfinished;

use crate::error::{Error, Result};
use crate::models::{Model, Origin, Registry};
use arrow::record_batch::RecordBatch;
use std::path::Path;
use std::sync::Arc;

/// The version of the model row this build writes; it reads this and all older ones.
pub const FORMAT_VERSION: u32 = 2;

/// The bytes of `model`; equal statistics give equal bytes.
///
/// # Errors
///
/// Only when Arrow cannot hold the model, such as more than 2^31 entries in one list.
pub fn to_bytes(model: &Model) -> Result<Vec<u8>> {
    ModelWriter::default().to_bytes(model)
}

/// Writes many models: the same bytes as [`to_bytes`], several times as quickly when the models are
/// small and of one algorithm.
#[derive(Debug, Default)]
pub struct ModelWriter {
    sealer: seal::Sealer,
    /// Of the last model: the next is likely to have the same names and the same spec.
    head: Option<Arc<row::Head>>,
}

impl ModelWriter {
    /// The bytes of `model`.
    ///
    /// # Errors
    ///
    /// As [`to_bytes`].
    pub fn to_bytes(&mut self, model: &Model) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write(model, &mut bytes)?;
        Ok(bytes)
    }

    /// Appends the bytes of `model` to `out`.
    ///
    /// # Errors
    ///
    /// As [`to_bytes`]; `out` then stays as it was.
    pub fn write(&mut self, model: &Model, out: &mut Vec<u8>) -> Result<()> {
        let row = row::Row::try_new(model, self.head.as_ref())?;
        self.head = Some(Arc::clone(&row.head));
        self.sealer.seal(row, out)
    }
}

/// The digest of the bytes of `model`: those it was read from, else those it would be written as.
///
/// # Errors
///
/// As [`to_bytes`].
pub fn digest(model: &Model) -> Result<String> {
    match model.digest() {
        Some(digest) => Ok(digest.to_string()),
        None => digest_of(&to_bytes(model)?).map(str::to_string),
    }
}

/// The format version of `model`: that of the bytes it was read from, else the one it would be
/// written in.
pub fn version(model: &Model) -> u32 {
    model.origin().map_or(FORMAT_VERSION, |origin| origin.version)
}

/// The model in `bytes`.
///
/// # Errors
///
/// `Corrupt` for any damage, `Incompatible` for a newer version, `Usage` for an algorithm the
/// registry does not have.
pub fn from_bytes(bytes: &[u8], registry: &Registry) -> Result<Model> {
    ModelReader::default().read(bytes, registry)
}

/// Reads many models: the same as [`from_bytes`], more quickly when the models are small and of one
/// algorithm. One reader is for one registry.
#[derive(Debug, Clone, Default)]
pub struct ModelReader {
    opener: open::Opener,
    /// Of the last model: the next is likely to have the same names and the same spec.
    head: Option<Arc<row::KnownHead>>,
}

impl ModelReader {
    /// The model in `bytes`.
    ///
    /// # Errors
    ///
    /// As [`from_bytes`].
    pub fn read(&mut self, bytes: &[u8], registry: &Registry) -> Result<Model> {
        let checked = self.check(bytes)?;
        self.read_checked(&checked, registry)
    }

    /// Checks the digest of `bytes`.
    pub(crate) fn check<'a>(&mut self, bytes: &'a [u8]) -> Result<Checked<'a>> {
        self.opener.check(bytes)
    }

    /// The model in bytes that were checked.
    pub(crate) fn read_checked(
        &mut self,
        checked: &Checked<'_>,
        registry: &Registry,
    ) -> Result<Model> {
        let model = self.decode(checked, registry, true)?;
        Ok(model.with_origin(Origin {
            digest: checked.digest.into(),
            version: self.head.as_ref().map_or(FORMAT_VERSION, |head| head.version()),
            bytes: checked.bytes.len(),
        }))
    }

    fn decode(
        &mut self,
        checked: &Checked<'_>,
        registry: &Registry,
        in_order: bool,
    ) -> Result<Model> {
        let opened = self.opener.open(checked, self.head.as_ref().and_then(|h| h.bytes()))?;
        row::decode(opened, registry, in_order, &mut self.head)
    }
}

/// The model in `bytes`, whose labels may be in any order: a learner on its way.
pub(crate) fn snapshot_from_bytes(bytes: &[u8], registry: &Registry) -> Result<Model> {
    let mut reader = ModelReader::default();
    let checked = reader.check(bytes)?;
    reader.decode(&checked, registry, false)
}

/// `batch` as bytes that carry their own digest.
pub(crate) fn seal(batch: &RecordBatch) -> Result<Vec<u8>> {
    seal::seal_batch(batch)
}

/// The batch in bytes that [`seal`] made.
pub(crate) fn open(bytes: &[u8]) -> Result<RecordBatch> {
    open::open_batch(bytes)
}

/// Writes `model` to `path`, which holds the old content until the new one is complete.
///
/// # Errors
///
/// When the directory does not exist or cannot be written.
pub fn write_model(path: &Path, model: &Model) -> Result<()> {
    write_atomically(path, &to_bytes(model)?)
}

/// Reads the model in the file `path`.
///
/// # Errors
///
/// As [`from_bytes`], with the path named.
pub fn read_model(path: &Path, registry: &Registry) -> Result<Model> {
    let name = format!("model file `{}`", path.display());
    let bytes = std::fs::read(path).map_err(|e| Error::io(&name, e))?;
    from_bytes(&bytes, registry).map_err(|e| e.context(name))
}

#[cfg(test)]
mod tests;
