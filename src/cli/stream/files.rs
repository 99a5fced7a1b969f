//! Files and directories as a source.

use crate::error::{Error, Result};
use crate::sql::{FileOptions, FileTables, RunningQuery, SessionOptions, from_datafusion, session};
use crate::stream::{IpcSource, Source, Sourced};
use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::prelude::SessionContext;
use serde_json::{Value, json};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

/// How often a directory is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Files one after the other; the position is the file and the rows of it that are done.
pub(super) struct Files {
    inputs: Vec<PathBuf>,
    /// The column of texts in which an empty field of a CSV file is a text without labels.
    labels: Option<String>,
    watch: bool,
    stop: Arc<AtomicBool>,
    runtime: Runtime,
    ctx: SessionContext,
    /// The input at hand, and the last file of it that was opened.
    input: usize,
    last: Option<PathBuf>,
    open: Option<Open>,
    /// Rows of the next file that are done already.
    skip: u64,
}

/// A file being read.
struct Open {
    rows: u64,
    reader: Reader,
}

enum Reader {
    Query { rows: RunningQuery, csv: bool },
    Ipc(Box<IpcSource<BufReader<File>>>),
}

impl Files {
    pub(super) fn try_new(
        inputs: &[String],
        files: FileOptions,
        labels: Option<&str>,
        watch: bool,
        stop: Arc<AtomicBool>,
    ) -> Result<Self> {
        let inputs: Vec<PathBuf> = inputs.iter().map(PathBuf::from).collect();
        for path in &inputs {
            if !path.exists() {
                return Err(Error::not_found(format!(
                    "`{}` does not exist: name files or directories",
                    path.display()
                )));
            }
        }
        if watch && !inputs.last().is_some_and(|p| p.is_dir()) {
            return Err(Error::usage("--watch needs a directory as the last input"));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|e| Error::io("the reader cannot start", e))?;
        // One partition keeps rows in their order.
        let ctx = session(&SessionOptions { partitions: 1, files, ..Default::default() })?;
        let labels = labels.map(str::to_string);
        let (input, last, open) = (0, None, None);
        Ok(Files { inputs, labels, watch, stop, runtime, ctx, input, last, open, skip: 0 })
    }

    /// The file after the last one; waits for it when watching.
    fn next_file(&mut self) -> Result<Option<PathBuf>> {
        loop {
            let Some(input) = self.inputs.get(self.input) else { return Ok(None) };
            let next = match (input.is_dir(), &self.last) {
                (false, None) => Some(input.clone()),
                (false, Some(_)) => None,
                (true, last) => after(input, last.as_deref())?,
            };
            if next.is_some() {
                return Ok(next);
            }
            if self.watch && self.input + 1 == self.inputs.len() {
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                std::thread::sleep(LOOK);
                continue;
            }
            self.input += 1;
            self.last = None;
        }
    }

    fn open(&self, path: &Path) -> Result<Reader> {
        if path.extension().is_some_and(|e| e == "arrows") {
            let file =
                File::open(path).map_err(|e| Error::io(format!("file `{}`", path.display()), e))?;
            let file = BufReader::with_capacity(1 << 18, file);
            return Ok(Reader::Ipc(Box::new(IpcSource::new(file))));
        }
        let name = path.to_string_lossy();
        let query = format!("SELECT * FROM {}", super::super::columns::literal(&name));
        let reader = self.runtime.block_on(async {
            let query = self.ctx.sql(&query).await.map_err(from_datafusion)?;
            let csv = FileTables::is_csv(&query);
            Ok(Reader::Query { rows: RunningQuery::start(query).await?, csv })
        });
        reader.map_err(|e| named(path, e))
    }
}

/// The rows of a CSV file, whose reader makes empty fields NULL, with empty texts in `column`.
fn filled(batch: RecordBatch, column: &str) -> Result<RecordBatch> {
    let Ok(at) = batch.schema().index_of(column) else { return Ok(batch) };
    let texts = cast(batch.column(at), &DataType::Utf8)?;
    let texts = texts.as_string::<i32>().iter().map(|t| Some(t.unwrap_or_default()));
    let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
    let texts = cast(&texts, batch.column(at).data_type())?;
    let mut columns = batch.columns().to_vec();
    columns[at] = texts;
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}

/// Names the file, if the sentence does not yet.
fn named(path: &Path, error: Error) -> Error {
    if error.to_string().contains(&format!("`{}`", path.display())) {
        return error;
    }
    error.context(format!("`{}`", path.display()))
}

/// The first file of `dir` in name order that comes after `last`.
fn after(dir: &Path, last: Option<&Path>) -> Result<Option<PathBuf>> {
    let failed = |e| Error::io(format!("directory `{}`", dir.display()), e);
    let mut next: Option<PathBuf> = None;
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let known = path.extension().and_then(|e| e.to_str());
        let known = known.is_some_and(FileTables::reads);
        let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(['.', '_']));
        let later = last.is_none_or(|last| path.file_name() > last.file_name());
        if known && !hidden && later && path.is_file() && next.as_ref().is_none_or(|n| path < *n) {
            next = Some(path);
        }
    }
    Ok(next)
}

impl Source for Files {
    fn next(&mut self) -> Result<Option<Sourced>> {
        loop {
            if self.open.is_none() {
                let Some(path) = self.next_file()? else { return Ok(None) };
                self.last = Some(path.clone());
                let reader = self.open(&path)?;
                self.open = Some(Open { rows: 0, reader });
            }
            let (Some(open), Some(path)) = (&mut self.open, &self.last) else { return Ok(None) };
            let batch = match &mut open.reader {
                Reader::Query { rows, .. } => self.runtime.block_on(rows.next()),
                Reader::Ipc(source) => source.next().map(|s| s.map(|s| s.batch)),
            };
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => {
                    // What comes after damage is in the next file.
                    self.open = None;
                    self.skip = 0;
                    return Err(named(path, error));
                }
            };
            let Some(batch) = batch else {
                self.open = None;
                self.skip = 0;
                continue;
            };
            let rows = batch.num_rows() as u64;
            let done = self.skip.min(rows);
            self.skip -= done;
            open.rows += rows;
            if done < rows {
                let mut batch = batch.slice(done as usize, (rows - done) as usize);
                let csv = matches!(open.reader, Reader::Query { csv: true, .. });
                if let Some(labels) = self.labels.as_deref().filter(|_| csv) {
                    batch = filled(batch, labels)?;
                }
                let file = path.to_string_lossy();
                let position = json!({ "input": self.input, "file": file, "row": open.rows });
                return Ok(Some(Sourced { batch, position }));
            }
        }
    }

    fn resume(&mut self, position: &Value) -> Result<()> {
        let unfit = || Error::corrupt(format!("`{position}` is no position in files"));
        let file = PathBuf::from(position["file"].as_str().ok_or_else(unfit)?);
        let input = position["input"].as_u64().ok_or_else(unfit)? as usize;
        self.skip = position["row"].as_u64().ok_or_else(unfit)?;
        self.input = input;
        if !file.exists() {
            return Err(Error::not_found(format!(
                "`{}`, in which the checkpoint stands, is gone: put it back, or start anew without \
                 the checkpoint",
                file.display()
            )));
        }
        let reader = self.open(&file)?;
        self.open = Some(Open { rows: 0, reader });
        self.last = Some(file);
        Ok(())
    }
}
