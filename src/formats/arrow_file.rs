//! Arrow IPC files and streams, as record batches.

use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::iter::FusedIterator;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::FileReader;

use super::DEFAULT_BATCH_SIZE;
use crate::error::{Error, Result};
use crate::stream::{IpcSource, Source};

/// What an IPC file begins with; a stream begins otherwise.
const MAGIC: &[u8] = b"ARROW1";

/// Reads an Arrow IPC file or stream, batch by batch; empty batches are passed over.
///
/// For builds without `sql`; with it, DataFusion reads such files, several batches at a time.
///
/// # Nulls
///
/// As they are in the file.
///
/// # Errors
///
/// Errors name the file. The iterator ends after the first.
///
/// # Cost
///
/// One batch in memory, as large as it is in the file.
///
/// # Examples
///
/// ```
/// use arrow::array::{Int64Array, RecordBatch};
/// use arrow::ipc::writer::StreamWriter;
/// use labelflow::formats::ArrowReader;
/// use std::sync::Arc;
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("a.arrows");
/// let rows = RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(vec![1, 2])) as _)])?;
/// let mut writer = StreamWriter::try_new(std::fs::File::create(&path)?, &rows.schema())?;
/// writer.write(&rows)?;
/// writer.finish()?;
///
/// let read: Vec<RecordBatch> = ArrowReader::try_open(&path)?.collect::<labelflow::Result<_>>()?;
/// assert_eq!(read, [rows]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ArrowReader {
    name: String,
    schema: SchemaRef,
    batches: Batches,
    /// What is left of a batch that is larger than asked for.
    rest: Option<RecordBatch>,
    batch_size: usize,
    done: bool,
}

enum Batches {
    File(Box<FileReader<BufReader<File>>>),
    Stream(Box<IpcSource<BufReader<File>>>),
}

impl ArrowReader {
    /// Opens the file at `path`; which of the two forms it has is seen from its first bytes.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is neither.
    pub fn try_open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let failed = |e| Error::io(format_args!("file `{name}`"), e);
        let mut file = File::open(path).map_err(failed)?;
        let mut start = Vec::new();
        file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut start).map_err(failed)?;
        file.rewind().map_err(failed)?;
        let (schema, batches, rest) = match start == MAGIC {
            true => {
                let reader = FileReader::try_new_buffered(file, None);
                let reader = reader.map_err(|e| damaged(&name, &e))?;
                (reader.schema(), Batches::File(Box::new(reader)), None)
            }
            false => {
                let mut source = IpcSource::new(BufReader::new(file));
                let named = |e: Error| e.context(format!("file `{name}`"));
                let first = source.next().map_err(named)?.map(|first| first.batch);
                let schema = source.schema().unwrap_or_else(|| Arc::new(Schema::empty()));
                (schema, Batches::Stream(Box::new(source)), first)
            }
        };
        let batch_size = DEFAULT_BATCH_SIZE;
        Ok(ArrowReader { name, schema, batches, rest, batch_size, done: false })
    }

    /// Sets the most rows of a batch (8192 unless set, at least 1); shorter ones stay as they are.
    #[must_use]
    pub fn with_batch_size(mut self, rows: usize) -> Self {
        self.batch_size = rows.max(1);
        self
    }

    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn read(&mut self) -> Option<Result<RecordBatch>> {
        match &mut self.batches {
            Batches::File(reader) => {
                let filled = |next: &Result<RecordBatch, ArrowError>| {
                    next.as_ref().map_or(true, |batch| batch.num_rows() > 0)
                };
                Some(reader.find(filled)?.map_err(|e| damaged(&self.name, &e)))
            }
            Batches::Stream(source) => {
                let named = |e: Error| e.context(format!("file `{}`", self.name));
                source.next().map_err(named).transpose().map(|next| Ok(next?.batch))
            }
        }
    }
}

fn damaged(name: &str, error: &ArrowError) -> Error {
    Error::corrupt(format!("file `{name}` is no whole Arrow file: {error}; write it again"))
}

impl Iterator for ArrowReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let batch = match self.rest.take() {
            Some(batch) => batch,
            None => match self.read() {
                Some(Ok(batch)) => batch,
                end => {
                    self.done = true;
                    return end;
                }
            },
        };
        let rows = self.batch_size.min(batch.num_rows());
        if rows < batch.num_rows() {
            self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        Some(Ok(batch.slice(0, rows)))
    }
}

impl FusedIterator for ArrowReader {}

impl fmt::Debug for ArrowReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrowReader").field("name", &self.name).finish_non_exhaustive()
    }
}
