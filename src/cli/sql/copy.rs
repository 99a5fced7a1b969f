//! `COPY ... TO` whose output appears when it is complete.

use crate::cli::sink::{FileFormat, without_dictionary};
use crate::error::{Error, Result};
use crate::store::{AtomicFile, Unfinished};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::dml::CopyTo;
use datafusion::sql::parser::Statement;
use std::path::{Path, PathBuf};

/// An output that is written under another name.
pub(super) enum Output {
    File(AtomicFile),
    Directory(HiddenDirectory),
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

/// Gives a `COPY` to a file the format of its extension, as the other commands understand it.
///
/// # Errors
///
/// An extension in which nothing is written.
pub(super) fn name_format(statement: &mut Statement) -> Result<()> {
    match statement {
        Statement::Explain(explain) => name_format(&mut explain.statement)?,
        Statement::CopyTo(copy) if copy.stored_as.is_none() => {
            let target = Path::new(&copy.target);
            if target.extension().is_some() {
                copy.stored_as = Some(FileFormat::of(target)?.name().to_string());
            }
        }
        _ => {}
    }
    Ok(())
}

/// The rows of a `COPY` that is to write an Arrow IPC stream, which DataFusion does not, and the file.
///
/// # Errors
///
/// A URL: it may belong to another store than the disks of this machine.
pub(super) fn stream(plan: &LogicalPlan) -> Result<Option<(&LogicalPlan, &Path)>> {
    let LogicalPlan::Copy(copy) = plan else { return Ok(None) };
    let file = Path::new(&copy.output_url);
    let is_arrow = copy.file_type.get_ext() == "arrow";
    if !is_arrow || !is_file(copy) || FileFormat::of(file).ok() != Some(FileFormat::Arrows) {
        return Ok(None);
    }
    if copy.output_url.contains("://") {
        return Err(Error::usage(format!(
            "output `{}`: .arrows is written to a path and not to a URL: write .arrow or .parquet",
            copy.output_url
        )));
    }
    Ok(Some((copy.input.as_ref(), file)))
}

/// Whether a `COPY` writes one file.
fn is_file(copy: &CopyTo) -> bool {
    Path::new(&copy.output_url).extension().is_some()
        && copy.partition_by.is_empty()
        && !copy.output_url.ends_with('/')
}

/// Lets a `COPY` to a file or directory of this machine write under a temporary name, and Parquet as
/// the other commands write it. Files that are added to a directory get names of their own.
pub(super) fn redirect(plan: &mut LogicalPlan) -> Result<Option<Output>> {
    let LogicalPlan::Copy(copy) = plan else { return Ok(None) };
    let chosen = copy.options.keys().any(|key| key.contains("dictionary_enabled"));
    if copy.file_type.get_ext() == "parquet" && !chosen {
        let without = without_dictionary(copy.input.schema().fields());
        copy.options.extend(without.map(|option| (option, "false".to_string())));
    }
    if copy.output_url.contains("://") {
        return Ok(None);
    }
    let destination = PathBuf::from(&copy.output_url);
    let (output, temporary) = if is_file(copy) {
        let file = AtomicFile::try_new(&destination)?;
        let temporary = text(file.temporary())?;
        (Output::File(file), temporary)
    } else if destination.file_name().is_none() {
        return Ok(None);
    } else {
        let directory = HiddenDirectory::new(destination);
        let temporary = format!("{}/", text(directory.temporary.path())?);
        (Output::Directory(directory), temporary)
    };
    copy.output_url = temporary;
    Ok(Some(output))
}

fn text(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_string);
    text.ok_or_else(|| Error::usage(format!("output `{}` is no valid UTF-8", path.display())))
}

/// A directory whose files appear when all of them are written.
pub(super) struct HiddenDirectory {
    destination: PathBuf,
    temporary: Unfinished,
}

impl HiddenDirectory {
    fn new(destination: PathBuf) -> Self {
        let temporary = Unfinished::beside(&destination);
        HiddenDirectory { destination, temporary }
    }

    fn commit(self) -> Result<()> {
        let name = format!("output `{}`", self.destination.display());
        // Without rows there is no file and no directory.
        let temporary = self.temporary.path();
        let made = std::fs::create_dir_all(temporary);
        made.and_then(|()| match self.destination.is_dir() {
            true => move_into(temporary, &self.destination),
            false => std::fs::rename(temporary, &self.destination),
        })
        .map_err(|e| Error::io(name, e))
    }
}

/// Moves what is in `from` to the directory `to`, directories by what is in them.
fn move_into(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            std::fs::create_dir_all(&target)?;
            move_into(&entry.path(), &target)?;
        } else {
            std::fs::rename(entry.path(), target)?;
        }
    }
    Ok(())
}
