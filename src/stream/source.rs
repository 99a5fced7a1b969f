//! Where batches come from, and how to get back to a place among them.

use crate::error::{Error, Result};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::StreamReader;
use serde_json::{Value, json};
use std::io::Read;

/// A batch, and the position after it.
#[derive(Debug, Clone)]
pub struct Sourced {
    /// The rows.
    pub batch: RecordBatch,
    /// Where to go on when these rows are done.
    pub position: Value,
}

/// A sequence of batches that can be taken up again at a position it gave.
///
/// Read on a thread of its own, so it may block.
pub trait Source: Send {
    /// The next batch; `None` at the end.
    ///
    /// # Errors
    ///
    /// What cannot be read. Asking again gives what comes after it, or the end.
    fn next(&mut self) -> Result<Option<Sourced>>;

    /// Goes on at `position`, which this source gave in this or an earlier run.
    ///
    /// # Errors
    ///
    /// A position that no longer exists.
    fn resume(&mut self, position: &Value) -> Result<()>;
}

impl Source for Box<dyn Source> {
    fn next(&mut self) -> Result<Option<Sourced>> {
        (**self).next()
    }

    fn resume(&mut self, position: &Value) -> Result<()> {
        (**self).resume(position)
    }
}

/// Arrow IPC from a pipe; the position is the number of rows read.
///
/// After a restart the producer sends all rows again, and those that are done are passed over.
pub struct IpcSource<R> {
    input: Option<R>,
    reader: Option<StreamReader<R>>,
    rows: u64,
    skip: u64,
}

impl<R> std::fmt::Debug for IpcSource<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IpcSource").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<R: Read> IpcSource<R> {
    /// Reads `input`, which is not touched before the first batch is asked for.
    pub fn new(input: R) -> Self {
        IpcSource { input: Some(input), reader: None, rows: 0, skip: 0 }
    }

    /// The columns, once the first batch was asked for.
    pub fn schema(&self) -> Option<SchemaRef> {
        self.reader.as_ref().map(StreamReader::schema)
    }
}

impl<R: Read + Send> Source for IpcSource<R> {
    fn next(&mut self) -> Result<Option<Sourced>> {
        if let Some(input) = self.input.take() {
            let opened = StreamReader::try_new(input, None).map_err(|e| unreadable(0, &e))?;
            self.reader = Some(opened);
        }
        let Some(reader) = &mut self.reader else { return Ok(None) };
        for batch in reader.by_ref() {
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => {
                    // After damage the beginning of the next message cannot be found.
                    self.reader = None;
                    return Err(unreadable(self.rows, &error));
                }
            };
            let rows = batch.num_rows() as u64;
            let done = self.skip.min(rows);
            self.skip -= done;
            self.rows += rows;
            if done < rows {
                let batch = batch.slice(done as usize, (rows - done) as usize);
                return Ok(Some(Sourced { batch, position: json!(self.rows) }));
            }
        }
        Ok(None)
    }

    fn resume(&mut self, position: &Value) -> Result<()> {
        self.skip = position.as_u64().ok_or_else(|| {
            Error::corrupt(format!("`{position}` is no position in a stream of rows"))
        })?;
        Ok(())
    }
}

fn unreadable(rows: u64, error: &arrow::error::ArrowError) -> Error {
    Error::data(format!(
        "the Arrow stream cannot be read after {rows} rows: {error}; send the IPC stream format"
    ))
}
