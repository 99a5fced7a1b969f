//! The rows of a file, page by page.

use super::PagedFile;
use crate::error::Error;
use crate::sql::error::to_datafusion;
use crate::sql::scans::Footer;
use crate::sql::tables::Bytes;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener};
use datafusion::error::{DataFusionError, Result};
use datafusion::object_store::ObjectMeta;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
    RowSelector,
};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::reader::{ChunkReader, Length};
use futures::{FutureExt, StreamExt, stream};
use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use std::vec;

/// Rows of row groups that are read together at most, unless one has more: what is known of row groups
/// is packed until they are read.
const RUN: usize = 1 << 16;

/// Reads columns of files that come as [`PagedFile`]s.
pub(super) struct Opener {
    /// The places of the columns in the file, in ascending order.
    pub(super) columns: Vec<usize>,
    pub(super) batch_size: usize,
}

impl FileOpener for Opener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let Some(paged) = file.extension::<PagedFile>() else {
            return Err(DataFusionError::Internal("a file comes without its footer".into()));
        };
        let selected = file.extension::<ParquetRowSelection>();
        let rows = Rows {
            file: LocalFile::open(&file.object_meta)?,
            runs: runs(&paged.rows, selected.map(|s| s.selection().clone()))?.into_iter(),
            paged: paged.clone(),
            current: None,
            columns: self.columns.clone(),
            batch_size: self.batch_size,
        };
        Ok(async { Ok(stream::iter(rows).boxed()) }.boxed())
    }
}

/// Row groups beside each other that are read together.
#[derive(Debug, PartialEq)]
pub(super) struct Run {
    pub(super) groups: Range<usize>,
    /// The rows of them that are asked for; `None` is all.
    pub(super) rows: Option<RowSelection>,
}

/// The row groups with rows that are asked for, together as long as they have not many; `groups` is how
/// many rows each has.
///
/// # Errors
///
/// When other rows are asked for than there are.
pub(super) fn runs(groups: &[usize], mut selected: Option<RowSelection>) -> Result<Vec<Run>> {
    if let Some(selected) = &selected {
        let (asked, rows) = (selected.iter().map(|s| s.row_count).sum(), groups.iter().sum());
        let (asked, rows): (usize, usize) = (asked, rows);
        if asked != rows {
            let text = format!("rows are chosen from {asked} of a file that has {rows}");
            return Err(DataFusionError::Internal(text));
        }
    }
    let mut runs: Vec<Run> = Vec::new();
    let mut run_rows = 0;
    for (i, &rows) in groups.iter().enumerate() {
        let own = selected.as_mut().map(|rest| rest.split_off(rows));
        if own.as_ref().is_some_and(|own| !own.selects_any()) {
            continue;
        }
        match runs.last_mut().filter(|run| run.groups.end == i && run_rows + rows <= RUN) {
            Some(run) => {
                run.groups.end = i + 1;
                run.rows = run.rows.take().zip(own).map(|(before, own)| {
                    let before: Vec<RowSelector> = before.into();
                    let own: Vec<RowSelector> = own.into();
                    before.into_iter().chain(own).collect()
                });
                run_rows += rows;
            }
            None => {
                runs.push(Run { groups: i..i + 1, rows: own });
                run_rows = rows;
            }
        }
    }
    Ok(runs)
}

/// The rows of a file that are asked for.
struct Rows {
    file: LocalFile,
    paged: PagedFile,
    runs: vec::IntoIter<Run>,
    current: Option<ParquetRecordBatchReader>,
    columns: Vec<usize>,
    batch_size: usize,
}

impl Iterator for Rows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = loop {
            if let Some(batch) = self.current.as_mut().and_then(Iterator::next) {
                break batch.map_err(fault);
            }
            let run = self.runs.next()?;
            match self.read(run) {
                Ok(reader) => self.current = Some(reader),
                Err(error) => break Err(error),
            }
        };
        if next.is_err() {
            // Rows after those that could not be read would look like all there are.
            self.current = None;
            self.runs = Vec::new().into_iter();
        }
        Some(next)
    }
}

impl Rows {
    fn read(&self, run: Run) -> Result<ParquetRecordBatchReader> {
        let (footer, groups) = match &self.paged.footer {
            Footer::Read(footer) => (Arc::clone(footer), run.groups),
            Footer::Packed(footer) => {
                (Arc::new(footer.unpack(run.groups.clone())?), 0..run.groups.len())
            }
        };
        let metadata = ArrowReaderMetadata::try_new(footer, self.paged.options.clone())?;
        let columns = self.columns.iter().copied();
        let columns = ProjectionMask::roots(metadata.parquet_schema(), columns);
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), metadata)
                .with_projection(columns)
                .with_row_groups(groups.collect())
                .with_batch_size(self.batch_size);
        let builder = match run.rows {
            Some(rows) => builder.with_row_selection(rows),
            None => builder,
        };
        Ok(builder.build()?)
    }
}

/// A file that names itself when it cannot be read.
#[derive(Clone)]
pub(super) struct LocalFile {
    file: Arc<File>,
    path: PathBuf,
}

impl LocalFile {
    /// The file as it was when the query was planned: places in another one say nothing.
    pub(super) fn open(known: &ObjectMeta) -> Result<Self> {
        let path = LocalFileSystem::new().path_to_filesystem(&known.location)?;
        let opened = File::open(&path).and_then(|file| {
            let same = is_of(&file.metadata()?, known)?;
            Ok((file, same))
        });
        match opened {
            Ok((file, true)) => Ok(LocalFile { file: Arc::new(file), path }),
            Ok((_, false)) => Err(to_datafusion(Error::data(format!(
                "file `{}` was changed after the query was planned: run the query again",
                path.display()
            )))),
            Err(error) => Err(named(&path, &error).into()),
        }
    }

    fn explain(&self, error: ParquetError) -> ParquetError {
        match error {
            ParquetError::External(cause) => match cause.downcast_ref::<io::Error>() {
                Some(error) => ParquetError::External(Box::new(named(&self.path, error))),
                None => ParquetError::External(cause),
            },
            error => error,
        }
    }
}

/// Whether a file is still the one that is known.
///
/// # Errors
///
/// When it cannot be looked at.
pub(super) fn is_unchanged(known: &ObjectMeta) -> Result<bool> {
    let path = LocalFileSystem::new().path_to_filesystem(&known.location)?;
    Ok(is_of(&path.metadata()?, known)?)
}

fn is_of(found: &Metadata, known: &ObjectMeta) -> io::Result<bool> {
    Ok(found.len() == known.size && found.modified()? == SystemTime::from(known.last_modified))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

impl Length for LocalFile {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for LocalFile {
    type T = <File as ChunkReader>::T;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        self.file.get_read(start).map_err(|e| self.explain(e))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        // A damaged file may ask for any number of bytes.
        if start.saturating_add(length as u64) > self.len() {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} are past the end")));
        }
        self.file.get_bytes(start, length).map_err(|e| self.explain(e))
    }
}

/// An error of the reader, which has its causes as text.
fn fault(error: ArrowError) -> DataFusionError {
    match error {
        ArrowError::ParquetError(text) => match text.strip_prefix("External: ") {
            Some(cause) => DataFusionError::External(cause.into()),
            None => {
                let text = text.strip_prefix("Parquet error: ").unwrap_or(&text);
                DataFusionError::from(ParquetError::General(text.to_string()))
            }
        },
        error => error.into(),
    }
}
