//! Where answers go.

use crate::error::{Error, Result};
use crate::store::sync_directory;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::{FileWriter, StreamWriter};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Takes answers in order. Written to on a thread of its own, so it may block.
pub trait Sink: Send {
    /// Takes a batch.
    ///
    /// # Errors
    ///
    /// What cannot be written.
    fn write(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Makes all that was taken since the last time durable, but not visible; returns how often
    /// that was done with something to keep, which becomes part of the checkpoint. A sink that
    /// cannot take back what it wrote has nothing to keep: so are this and the next two by default.
    ///
    /// # Errors
    ///
    /// What cannot be written.
    fn prepare(&mut self) -> Result<u64> {
        Ok(0)
    }

    /// Makes visible what was prepared: the checkpoint that says so is written.
    ///
    /// # Errors
    ///
    /// What cannot be written.
    fn commit(&mut self) -> Result<()> {
        Ok(())
    }

    /// Called before the first batch when there is no checkpoint to go on from.
    ///
    /// # Errors
    ///
    /// Output of another run, which would be mixed up with that of this one.
    fn start(&mut self) -> Result<()> {
        Ok(())
    }

    /// Goes back to what was visible or prepared when `prepared` became part of a checkpoint.
    ///
    /// # Errors
    ///
    /// What cannot be read or removed; what was prepared and is gone.
    fn resume(&mut self, prepared: u64) -> Result<()> {
        let _ = prepared;
        Ok(())
    }

    /// Told the columns of a stream that ended without a row.
    ///
    /// # Errors
    ///
    /// What cannot be written.
    fn no_rows(&mut self, columns: &SchemaRef) -> Result<()> {
        let _ = columns;
        Ok(())
    }

    /// Ends the output.
    ///
    /// # Errors
    ///
    /// What cannot be written.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Takes answers and throws them away.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSink;

impl Sink for NoSink {
    fn write(&mut self, _: &RecordBatch) -> Result<()> {
        Ok(())
    }
}

/// Arrow IPC into a pipe: at least once, since what a pipe took cannot be taken back.
pub struct IpcSink<W: Write> {
    output: Option<W>,
    writer: Option<StreamWriter<W>>,
}

impl<W: Write> std::fmt::Debug for IpcSink<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IpcSink").field("started", &self.writer.is_some()).finish()
    }
}

impl<W: Write> IpcSink<W> {
    /// Writes to `output`, which should be buffered.
    pub fn new(output: W) -> Self {
        IpcSink { output: Some(output), writer: None }
    }
}

/// A failed write as an error that keeps its cause.
pub(super) fn unwritten(what: &str, error: arrow::error::ArrowError) -> Error {
    match error {
        arrow::error::ArrowError::IoError(_, cause) => Error::io(what, cause),
        other => Error::from(other).context(what.to_string()),
    }
}

impl<W: Write + Send> Sink for IpcSink<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let failed = |e| unwritten("standard output", e);
        self.no_rows(&batch.schema())?;
        if let Some(writer) = &mut self.writer {
            writer.write(batch).map_err(failed)?;
            // Whoever waits for the answers should have them before the next batch is there.
            writer.flush().map_err(failed)?;
        }
        Ok(())
    }

    fn no_rows(&mut self, columns: &SchemaRef) -> Result<()> {
        if let Some(output) = self.output.take() {
            let started = StreamWriter::try_new(output, columns);
            self.writer = Some(started.map_err(|e| unwritten("standard output", e))?);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if let Some(writer) = &mut self.writer {
            writer.finish().map_err(|e| unwritten("standard output", e))?;
            writer.flush().map_err(|e| unwritten("standard output", e))?;
        }
        Ok(())
    }
}

/// One part file in the making.
pub trait PartWriter: Send {
    /// Adds a batch.
    ///
    /// # Errors
    ///
    /// What cannot be written.
    fn write(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Ends the file and gives it back, so that it can be made durable.
    ///
    /// # Errors
    ///
    /// What cannot be written.
    fn finish(self: Box<Self>) -> Result<File>;
}

/// A part file in the Arrow IPC file format.
pub struct IpcPart(FileWriter<BufWriter<File>>);

impl std::fmt::Debug for IpcPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IpcPart")
    }
}

impl IpcPart {
    /// Starts a file with the columns of `batch`.
    ///
    /// # Errors
    ///
    /// What cannot be written.
    pub fn start(file: File, batch: &RecordBatch) -> Result<Box<dyn PartWriter>> {
        let writer = FileWriter::try_new(BufWriter::new(file), &batch.schema());
        Ok(Box::new(IpcPart(writer.map_err(|e| unwritten("a part file", e))?)))
    }
}

impl PartWriter for IpcPart {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch).map_err(|e| unwritten("a part file", e))
    }

    fn finish(self: Box<Self>) -> Result<File> {
        let buffer = self.0.into_inner().map_err(|e| unwritten("a part file", e))?;
        buffer.into_inner().map_err(|e| Error::io("a part file", e.into_error()))
    }
}

/// A directory of part files, each of which appears with the checkpoint that contains it: every
/// row once, whatever happens.
#[derive(Debug)]
pub struct PartSink {
    dir: PathBuf,
    extension: String,
    start: fn(File, &RecordBatch) -> Result<Box<dyn PartWriter>>,
    open: Option<OpenPart>,
    /// The number of the last part that is prepared.
    prepared: u64,
}

struct OpenPart(Box<dyn PartWriter>);

impl std::fmt::Debug for OpenPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OpenPart")
    }
}

impl PartSink {
    /// Writes `part-....extension` files made by `start` into `dir`, which is made if need be.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made.
    pub fn try_new(
        dir: &Path,
        extension: &str,
        start: fn(File, &RecordBatch) -> Result<Box<dyn PartWriter>>,
    ) -> Result<Self> {
        std::fs::create_dir_all(dir)
            .map_err(|e| Error::io(format!("output directory `{}`", dir.display()), e))?;
        Ok(PartSink {
            dir: dir.to_path_buf(),
            extension: extension.to_string(),
            start,
            open: None,
            prepared: 0,
        })
    }

    fn path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("part-{number:010}.{}", self.extension))
    }

    fn hidden(&self, number: u64) -> PathBuf {
        self.dir.join(format!(".part-{number:010}.{}", self.extension))
    }

    /// The files of parts: name, number, and whether it is visible.
    fn parts(&self) -> Result<Vec<(String, u64, bool)>> {
        let mut parts = Vec::new();
        for entry in std::fs::read_dir(&self.dir).map_err(self.failed())? {
            let name = entry.map_err(self.failed())?.file_name();
            let Some(name) = name.to_str() else { continue };
            let visible = !name.starts_with('.');
            let stem = name.strip_prefix('.').unwrap_or(name).strip_prefix("part-");
            let number = stem.and_then(|s| s.split_once('.')).and_then(|(n, _)| n.parse().ok());
            parts.extend(number.map(|number| (name.to_string(), number, visible)));
        }
        Ok(parts)
    }

    /// Removes the parts that are not `kept`: their rows come again.
    fn remove(&self, kept: impl Fn(u64, bool) -> bool) -> Result<()> {
        for (name, number, visible) in self.parts()? {
            if !kept(number, visible) {
                std::fs::remove_file(self.dir.join(&name)).map_err(self.failed())?;
            }
        }
        Ok(())
    }

    fn failed(&self) -> impl Fn(std::io::Error) -> Error + use<> {
        let what = format!("output directory `{}`", self.dir.display());
        move |e| Error::io(&what, e)
    }
}

impl Sink for PartSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let failed = self.failed();
        if self.open.is_none() {
            let file = File::create(self.hidden(self.prepared + 1)).map_err(failed)?;
            self.open = Some(OpenPart((self.start)(file, batch)?));
        }
        match &mut self.open {
            Some(part) => part.0.write(batch),
            None => Ok(()),
        }
    }

    fn prepare(&mut self) -> Result<u64> {
        if let Some(part) = self.open.take() {
            part.0.finish()?.sync_all().map_err(self.failed())?;
            sync_directory(&self.dir).map_err(self.failed())?;
            self.prepared += 1;
        }
        Ok(self.prepared)
    }

    fn commit(&mut self) -> Result<()> {
        let hidden = self.hidden(self.prepared);
        if hidden.exists() {
            std::fs::rename(&hidden, self.path(self.prepared)).map_err(self.failed())?;
            sync_directory(&self.dir).map_err(self.failed())?;
        }
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        if let Some((name, ..)) = self.parts()?.into_iter().find(|(_, _, visible)| *visible) {
            return Err(Error::usage(format!(
                "output directory `{}` holds `{name}` of another run, and there is no checkpoint \
                 to go on from: name an empty directory, or the checkpoint directory of that run",
                self.dir.display()
            )));
        }
        self.remove(|_, _| false)
    }

    fn resume(&mut self, prepared: u64) -> Result<()> {
        self.prepared = prepared;
        self.commit()?;
        let last = self.path(prepared);
        if prepared > 0 && !last.exists() {
            return Err(Error::not_found(format!(
                "`{}`, the last part of the checkpoint, is gone: put it back, or start anew with \
                 another checkpoint directory and an empty output directory",
                last.display()
            )));
        }
        self.remove(|number, visible| visible && number <= prepared)
    }
}
