//! Arrow IPC files and streams, as record batches.

use std::fmt;
use std::fs::File;
use std::io::{BufReader, ErrorKind as IoKind, Read, Result as IoResult, Seek, SeekFrom};
use std::iter::FusedIterator;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::reader::{FileReader, StreamReader};

use super::DEFAULT_BATCH_SIZE;
use crate::error::{Error, Result};
use crate::store::{TAIL, blocks_fit, footer_before, guarded};
use crate::stream::Framed;

/// What an IPC file begins with; a stream begins otherwise.
const MAGIC: &[u8] = b"ARROW1";

/// Reads an Arrow IPC file or stream, batch by batch.
///
/// For programs without DataFusion, which reads several batches of such a file at a time.
///
/// # Nulls
///
/// As they are in the file.
///
/// # Errors
///
/// Errors name the file; one that holds compressed columns is refused in builds without `sql`. The
/// iterator ends after the first.
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
    Stream(Box<StreamReader<Framed<BufReader<File>>>>),
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
        let length = file.metadata().map_err(failed)?.len();
        let mut start = Vec::new();
        file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut start).map_err(failed)?;
        let is_file = start == MAGIC;
        if is_file && !is_whole(&mut file, length).map_err(failed)? {
            return Err(damaged(&name, "its parts lie outside of it"));
        }
        file.rewind().map_err(failed)?;
        let file = BufReader::new(file);
        let opened = guarded(|| match is_file {
            true => {
                let reader = FileReader::try_new(file, None)?;
                Ok((reader.schema(), Batches::File(Box::new(reader))))
            }
            false => {
                let reader = StreamReader::try_new(Framed::within(file, length), None)?;
                Ok((reader.schema(), Batches::Stream(Box::new(reader))))
            }
        });
        let opened = opened.ok_or_else(|| unfit(&name))?;
        let (schema, batches) = opened.map_err(|e| fault(&name, e))?;
        let batch_size = DEFAULT_BATCH_SIZE;
        Ok(ArrowReader { name, schema, batches, rest: None, batch_size, done: false })
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
        let (name, batches) = (&self.name, &mut self.batches);
        let next = guarded(|| match batches {
            Batches::File(reader) => reader.next(),
            Batches::Stream(reader) => reader.next(),
        });
        match next {
            Some(Some(batch)) => Some(batch.map_err(|e| fault(name, e))),
            Some(None) => self.end().err().map(Err),
            None => Some(Err(unfit(name))),
        }
    }

    /// Whether the last batch was all there is.
    fn end(&mut self) -> Result<()> {
        let Batches::Stream(reader) = &mut self.batches else { return Ok(()) };
        let failed = |e| Error::io(format_args!("file `{}`", self.name), e);
        if !reader.get_ref().between_messages() {
            return Err(damaged(&self.name, "it is cut"));
        }
        if reader.get_mut().more().map_err(failed)? {
            let name = &self.name;
            return Err(Error::unsupported(format!(
                "file `{name}` holds more than one Arrow stream: write each to a file of its own"
            )));
        }
        Ok(())
    }
}

/// Whether the parts of an IPC file of `length` bytes lie within it: the reader makes room for them.
fn is_whole(file: &mut File, length: u64) -> IoResult<bool> {
    let mut tail = [0; TAIL];
    let Some(end) = length.checked_sub(TAIL as u64) else { return Ok(false) };
    file.seek(SeekFrom::Start(end))?;
    file.read_exact(&mut tail)?;
    let Some(place) = footer_before(tail, length) else { return Ok(false) };
    file.seek(SeekFrom::Start(place.start))?;
    let mut footer = Vec::new();
    file.take(place.end - place.start).read_to_end(&mut footer)?;
    Ok(blocks_fit(&footer, length))
}

fn damaged(name: &str, what: impl fmt::Display) -> Error {
    Error::corrupt(format!("file `{name}` is no whole Arrow file: {what}; write it again"))
}

fn unfit(name: &str) -> Error {
    damaged(name, "its columns do not fit their buffers")
}

fn fault(name: &str, error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, e) if e.kind() != IoKind::UnexpectedEof => {
            Error::io(format_args!("file `{name}`"), e)
        }
        // The feature that is meant is one of Arrow's.
        error if error.to_string().contains("decompression requires") => {
            Error::unsupported(format!(
                "file `{name}` is compressed, which builds without `sql` cannot read: write it \
                 without compression"
            ))
        }
        error => damaged(name, error),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    /// In the words of Arrow, which has the feature in builds with `sql`.
    #[test]
    fn a_compressed_file_is_not_called_damaged() {
        let text = "lz4 IPC decompression requires the lz4 feature".to_string();
        let error = fault("a.arrow", ArrowError::InvalidArgumentError(text));
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("without compression"), "{error}");
    }
}
