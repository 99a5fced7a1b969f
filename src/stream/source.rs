//! Where batches come from, and how to get back to a place among them.

use super::framed::Framed;
use crate::error::{Error, Result};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
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
    /// What cannot be read. Asking again gives what comes after it, unless
    /// [`is_lost`](Source::is_lost) says otherwise or the error is no fault of the data
    /// ([`ErrorKind::is_user_error`](crate::ErrorKind::is_user_error)).
    fn next(&mut self) -> Result<Option<Sourced>>;

    /// Goes on at `position`, which this source gave in this or an earlier run.
    ///
    /// # Errors
    ///
    /// A position that no longer exists.
    fn resume(&mut self, position: &Value) -> Result<()>;

    /// Whether nothing can be read after the last error: it then ends the work, whatever is done
    /// with batches that are refused.
    fn is_lost(&self) -> bool {
        false
    }

    /// What is worth saying since the last time.
    fn notes(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// The columns, where they are known before or without a batch.
    fn schema(&self) -> Option<SchemaRef> {
        None
    }
}

impl Source for Box<dyn Source> {
    fn next(&mut self) -> Result<Option<Sourced>> {
        (**self).next()
    }

    fn resume(&mut self, position: &Value) -> Result<()> {
        (**self).resume(position)
    }

    fn is_lost(&self) -> bool {
        (**self).is_lost()
    }

    fn notes(&mut self) -> Vec<String> {
        (**self).notes()
    }

    fn schema(&self) -> Option<SchemaRef> {
        (**self).schema()
    }
}

/// Arrow IPC from a pipe, one stream or several one after the other; the position is the number of
/// rows read.
///
/// After a restart the producer sends all rows again, and those that are done are passed over. A
/// batch that cannot be decoded is an error after which the next one is read; when the beginning of
/// the next message cannot be found, the source is lost.
pub struct IpcSource<R> {
    input: Option<Framed<R>>,
    reader: Option<StreamReader<Framed<R>>>,
    schema: Option<SchemaRef>,
    rows: u64,
    skip: u64,
    lost: bool,
}

impl<R> std::fmt::Debug for IpcSource<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IpcSource").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<R: Read> IpcSource<R> {
    /// Reads `input`, which is not touched before the first batch is asked for.
    pub fn new(input: R) -> Self {
        let input = Some(Framed::new(input));
        IpcSource { input, reader: None, schema: None, rows: 0, skip: 0, lost: false }
    }

    /// The next batch as it was sent; `None` at the end of the last stream.
    fn read(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(input) = self.input.take() {
                let reader = StreamReader::try_new(input, None).map_err(|e| self.lose(&e))?;
                self.schema.get_or_insert(reader.schema());
                self.reader = Some(reader);
            }
            let Some(reader) = &mut self.reader else { return Ok(None) };
            match reader.next() {
                Some(Ok(batch)) => return Ok(Some(batch)),
                Some(Err(error)) if reader.get_ref().after_batch() => {
                    return Err(Error::data(format!(
                        "the batch after row {} of the Arrow stream cannot be read: {error}",
                        self.rows
                    )));
                }
                Some(Err(error)) => return Err(self.lose(&error)),
                None => {}
            }
            let more = reader.get_mut().more().map_err(ArrowError::from);
            let whole = reader.get_ref().between_messages();
            match more {
                Ok(false) if whole => {
                    self.reader = None;
                    return Ok(None);
                }
                Ok(true) => self.input = reader.get_mut().rest(),
                Ok(false) => return Err(self.lose(&ArrowError::IpcError("it is cut".into()))),
                Err(error) => return Err(self.lose(&error)),
            }
        }
    }

    /// The error of a stream that cannot be read on.
    fn lose(&mut self, error: &ArrowError) -> Error {
        (self.reader, self.lost) = (None, true);
        Error::data(format!(
            "the Arrow stream cannot be read after {} rows: {error}; send the IPC stream format",
            self.rows
        ))
    }
}

impl<R: Read + Send> Source for IpcSource<R> {
    fn next(&mut self) -> Result<Option<Sourced>> {
        while let Some(batch) = self.read()? {
            let rows = batch.num_rows() as u64;
            let done = self.skip.min(rows);
            self.skip -= done;
            self.rows += rows;
            if done < rows {
                let batch = batch.slice(done as usize, (rows - done) as usize);
                return Ok(Some(Sourced { batch, position: json!(self.rows) }));
            }
        }
        if self.skip > 0 && !self.lost {
            self.lost = true;
            return Err(Error::data(format!(
                "the stream ended after {} rows, and the checkpoint stands at row {}: send all \
                 rows again, from the first",
                self.rows,
                self.rows + self.skip
            )));
        }
        Ok(None)
    }

    fn resume(&mut self, position: &Value) -> Result<()> {
        self.skip = position.as_u64().ok_or_else(|| {
            Error::corrupt(format!("`{position}` is no position in a stream of rows"))
        })?;
        Ok(())
    }

    fn is_lost(&self) -> bool {
        self.lost
    }

    fn schema(&self) -> Option<SchemaRef> {
        self.schema.clone()
    }
}
