//! Files that are whole or not there.

use super::unfinished::Unfinished;
use crate::error::{Error, Result};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A file that gets its name only when it is complete.
///
/// Written beside its destination under a temporary name, which goes away when the value is dropped
/// without [`AtomicFile::commit`], or by [`remove_unfinished`](super::remove_unfinished); a reader
/// sees the old file or the new one, never a part.
///
/// # Examples
///
/// ```
/// use labelflow::store::AtomicFile;
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("out.csv");
/// let file = AtomicFile::try_new(&path)?;
/// std::fs::write(file.temporary(), "a,b\n")?;
/// assert!(!path.exists());
/// file.commit()?;
/// assert_eq!(std::fs::read_to_string(&path)?, "a,b\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AtomicFile {
    destination: PathBuf,
    temporary: Unfinished,
}

impl AtomicFile {
    /// Prepares to write `destination`.
    ///
    /// # Errors
    ///
    /// When its directory does not exist, or it is a directory itself.
    pub fn try_new(destination: &Path) -> Result<Self> {
        if destination.file_name().is_none() {
            let text = format!("output `{}` is no file name", destination.display());
            return Err(Error::usage(text));
        }
        let directory = directory_of(destination);
        if !directory.is_dir() {
            return Err(Error::not_found(format!(
                "the directory `{}` of output `{}` does not exist: create it first",
                directory.display(),
                destination.display()
            )));
        }
        if destination.is_dir() {
            return Err(Error::usage(format!(
                "output `{}` is a directory: name a file in it",
                destination.display()
            )));
        }
        let temporary = Unfinished::beside(destination);
        Ok(AtomicFile { destination: destination.to_path_buf(), temporary })
    }

    /// Where to write.
    pub fn temporary(&self) -> &Path {
        self.temporary.path()
    }

    /// Gives the file its name, once its content has reached the disk.
    ///
    /// # Errors
    ///
    /// When the file was not written or cannot be renamed; nothing is left behind.
    pub fn commit(self) -> Result<()> {
        let name = format!("output `{}`", self.destination.display());
        let synced = File::open(self.temporary()).and_then(|f| f.sync_all());
        synced
            .and_then(|()| std::fs::rename(self.temporary(), &self.destination))
            .and_then(|()| sync_directory(directory_of(&self.destination)))
            .map_err(|e| Error::io(&name, e))
    }
}

/// Writes `bytes` to `path` in one step.
///
/// # Errors
///
/// As [`AtomicFile`]; the old file, if there is one, stays whole.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let file = AtomicFile::try_new(path)?;
    File::create_new(file.temporary())
        .and_then(|mut f| f.write_all(bytes))
        .map_err(|e| Error::io(format!("output `{}`", path.display()), e))?;
    file.commit()
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes the names in `directory` durable, where the system can.
pub(crate) fn sync_directory(directory: &Path) -> std::io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(directory).and_then(|d| d.sync_all()) {
        // Some file systems do not know how.
        Err(e) if matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        done => done,
    }
}
