//! Files and directories as a source.

use crate::error::{Error, Result};
use crate::sql::{FileOptions, FileTables, RunningQuery, SessionOptions, from_datafusion, session};
use crate::stream::{IpcSource, Source, Sourced};
use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::prelude::SessionContext;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

/// How often a directory is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Files one after the other; the position is the file, the rows of it that are done, and whether
/// these are all.
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
    /// Files of the directory at hand that were read or spoken of; `None` before it is looked at.
    known: Option<BTreeSet<OsString>>,
    schema: Option<SchemaRef>,
    notes: Vec<String>,
    started: bool,
    lost: bool,
}

/// A file being read.
struct Open {
    rows: u64,
    reader: Reader,
    /// The batch after the last one that was given, so that the last one of a file is known.
    ahead: Option<Result<Option<RecordBatch>>>,
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
        Ok(Files {
            inputs,
            labels,
            watch,
            stop,
            runtime,
            ctx,
            input: 0,
            last: None,
            open: None,
            skip: 0,
            known: None,
            schema: None,
            notes: Vec::new(),
            started: false,
            lost: false,
        })
    }

    /// Whether all inputs from number `from` on are there. Not asked for those before a checkpoint:
    /// they may have been put away.
    fn check_inputs(&self, from: usize) -> Result<()> {
        match self.inputs.iter().skip(from).find(|path| !path.exists()) {
            None => Ok(()),
            Some(path) => Err(Error::not_found(format!(
                "`{}` does not exist: name files or directories",
                path.display()
            ))),
        }
    }

    /// The file after the last one; waits for it when watching.
    fn next_file(&mut self) -> Result<Option<PathBuf>> {
        loop {
            let Some(input) = self.inputs.get(self.input) else { return Ok(None) };
            let next = match (input.is_dir(), &self.last) {
                (false, None) => Some(input.clone()),
                (false, Some(last)) if last != input => {
                    return Err(Error::not_found(format!(
                        "the directory `{}` is gone: put it back, and start again",
                        input.display()
                    )));
                }
                (false, Some(_)) => None,
                (true, _) => {
                    let dir = input.clone();
                    self.after(&dir)?
                }
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
            (self.last, self.known) = (None, None);
        }
    }

    /// The first file of `dir` in name order that comes after the last one. Says which files came
    /// too late to be read.
    fn after(&mut self, dir: &Path) -> Result<Option<PathBuf>> {
        let failed = |e| Error::io(format!("directory `{}`", dir.display()), e);
        let mut files = BTreeSet::new();
        for entry in std::fs::read_dir(dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let Some(name) = path.file_name() else { continue };
            let hidden = name.to_string_lossy().starts_with(['.', '_']);
            let known = path.extension().and_then(|e| e.to_str()).is_some_and(FileTables::reads);
            if known && !hidden && path.is_file() {
                files.insert(name.to_os_string());
            }
        }
        let last = self.last.as_deref().and_then(Path::file_name);
        let done = |name: &&OsString| last.is_some_and(|last| name.as_os_str() <= last);
        let next = files.iter().find(|name| !done(name)).map(|name| dir.join(name));
        let late: Vec<OsString> = files.iter().take_while(done).cloned().collect();
        if let (Some(known), Some(last)) = (&self.known, last) {
            let late =
                late.iter().filter(|name| !known.contains(*name) && name.as_os_str() != last);
            self.notes.extend(late.map(|name| {
                format!(
                    "`{}` is not read: it came after `{}` and sorts before it; give it a later name",
                    dir.join(name).display(),
                    last.display()
                )
            }));
        }
        self.known = Some(late.into_iter().collect());
        Ok(next)
    }

    /// Starts to read `path`.
    fn begin(&mut self, path: &Path) -> Result<()> {
        self.last = Some(path.to_path_buf());
        let reader = self.open(path)?;
        if let Reader::Query { rows, .. } = &reader {
            self.schema.get_or_insert(rows.schema());
        }
        self.open = Some(Open { rows: 0, reader, ahead: None });
        Ok(())
    }

    /// Ends the file at hand.
    fn close(&mut self) {
        self.open = None;
        self.skip = 0;
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

impl Open {
    fn read(&mut self, runtime: &Runtime) -> Result<Option<RecordBatch>> {
        if let Some(ahead) = self.ahead.take() {
            return ahead;
        }
        match &mut self.reader {
            Reader::Query { rows, .. } => runtime.block_on(rows.next()),
            Reader::Ipc(source) => source.next().map(|s| s.map(|s| s.batch)),
        }
    }

    /// Whether there is no other batch.
    fn is_last(&mut self, runtime: &Runtime) -> bool {
        let ahead = self.read(runtime);
        let last = matches!(ahead, Ok(None));
        self.ahead = Some(ahead);
        last
    }

    /// Whether batches can be read after an error.
    fn goes_on(&self) -> bool {
        match &self.reader {
            Reader::Query { .. } => false,
            Reader::Ipc(source) => !source.is_lost(),
        }
    }
}

impl Source for Files {
    fn next(&mut self) -> Result<Option<Sourced>> {
        if !self.started {
            (self.started, self.lost) = (true, true);
            self.check_inputs(0)?;
            self.lost = false;
        }
        loop {
            if self.open.is_none() {
                // Without its directory there is nothing to go on with.
                self.lost = true;
                let next = self.next_file()?;
                self.lost = false;
                let Some(path) = next else { return Ok(None) };
                self.begin(&path)?;
            }
            let (Some(open), Some(path)) = (&mut self.open, &self.last) else { return Ok(None) };
            let batch = match open.read(&self.runtime) {
                Ok(batch) => batch,
                Err(error) => {
                    let error = named(path, error);
                    if !open.goes_on() {
                        // What comes after damage is in the next file.
                        self.close();
                    }
                    return Err(error);
                }
            };
            let Some(batch) = batch else {
                self.close();
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
                let (file, whole) = (path.to_string_lossy(), open.is_last(&self.runtime));
                let position =
                    json!({ "input": self.input, "file": file, "row": open.rows, "whole": whole });
                return Ok(Some(Sourced { batch, position }));
            }
        }
    }

    fn resume(&mut self, position: &Value) -> Result<()> {
        let unfit = || Error::corrupt(format!("`{position}` is no position in files"));
        let file = PathBuf::from(position["file"].as_str().ok_or_else(unfit)?);
        self.input = position["input"].as_u64().ok_or_else(unfit)? as usize;
        self.started = true;
        if position["whole"] == true {
            // It is not needed any more, and may have been put away.
            let is_input = self.inputs.get(self.input) == Some(&file);
            self.last = Some(file);
            return self.check_inputs(self.input + usize::from(is_input));
        }
        self.skip = position["row"].as_u64().ok_or_else(unfit)?;
        if !file.exists() {
            return Err(Error::not_found(format!(
                "`{}`, in which the checkpoint stands, is gone: put it back, or start anew without \
                 the checkpoint",
                file.display()
            )));
        }
        self.check_inputs(self.input)?;
        self.begin(&file)
    }

    fn is_lost(&self) -> bool {
        self.lost
    }

    fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    fn schema(&self) -> Option<SchemaRef> {
        self.schema.clone()
    }
}
