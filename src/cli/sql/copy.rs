//! `COPY ... TO` whose output appears when it is complete.

use crate::error::{Error, Result};
use crate::store::AtomicFile;
use datafusion::logical_expr::LogicalPlan;
use std::path::{Path, PathBuf};

/// An output that is written under another name.
pub(super) enum Output {
    File(AtomicFile),
    Directory(NewDirectory),
}

impl Output {
    /// Gives it its name.
    pub(super) fn commit(self) -> Result<()> {
        match self {
            Output::File(file) => file.commit(),
            Output::Directory(directory) => directory.commit(),
        }
    }
}

/// Lets a `COPY` to a file of this machine, or to a directory that is not there yet, write under a
/// temporary name. Files that are added to a directory get names of their own and stay as they are.
pub(super) fn redirect(plan: &mut LogicalPlan) -> Result<Option<Output>> {
    let LogicalPlan::Copy(copy) = plan else { return Ok(None) };
    if copy.output_url.contains("://") {
        return Ok(None);
    }
    let destination = PathBuf::from(&copy.output_url);
    let is_file = destination.extension().is_some()
        && copy.partition_by.is_empty()
        && !copy.output_url.ends_with('/');
    let (output, temporary) = if is_file {
        let file = AtomicFile::try_new(&destination)?;
        let temporary = text(file.temporary())?;
        (Output::File(file), temporary)
    } else if destination.exists() {
        return Ok(None);
    } else {
        let directory = NewDirectory::new(destination);
        let temporary = format!("{}/", text(&directory.temporary)?);
        (Output::Directory(directory), temporary)
    };
    copy.output_url = temporary;
    Ok(Some(output))
}

fn text(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_string);
    text.ok_or_else(|| Error::usage(format!("output `{}` is no valid UTF-8", path.display())))
}

/// A directory that gets its name when all its files are written.
pub(super) struct NewDirectory {
    destination: PathBuf,
    temporary: PathBuf,
}

impl NewDirectory {
    fn new(destination: PathBuf) -> Self {
        let mut name = std::ffi::OsString::from(format!(".{}.part-", std::process::id()));
        name.push(destination.file_name().unwrap_or_default());
        let temporary = destination.with_file_name(name);
        NewDirectory { destination, temporary }
    }

    fn commit(self) -> Result<()> {
        let name = format!("output `{}`", self.destination.display());
        // Without rows there is no file and no directory.
        let made = std::fs::create_dir_all(&self.temporary);
        made.and_then(|()| std::fs::rename(&self.temporary, &self.destination))
            .map_err(|e| Error::io(name, e))
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        // After a commit it is not there any more; there is nobody to tell about the rest.
        let _ = std::fs::remove_dir_all(&self.temporary);
    }
}
