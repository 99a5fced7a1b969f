//! Where a stream can go on after a stop: one file, whole or not there.

use crate::error::{Error, Result};
use crate::store;
use arrow::array::{
    Array, ArrayRef, AsArray, LargeBinaryArray, RecordBatch, StringArray, UInt32Array,
};
use arrow::datatypes::{DataType, Field, Schema, UInt32Type};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FORMAT_VERSION: u32 = 1;
const PREFIX: &str = "checkpoint-";
const SUFFIX: &str = ".arrow";
/// The file in a directory of checkpoints that its process keeps locked.
const LOCK: &str = ".lock";

/// The state of a stage, its source and its sink at one moment: named pieces of bytes.
///
/// As bytes it is an Arrow IPC file with a digest of itself, like a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checkpoint {
    parts: BTreeMap<String, Vec<u8>>,
}

impl Checkpoint {
    /// Adds a piece.
    pub fn put(&mut self, name: impl Into<String>, bytes: Vec<u8>) {
        self.parts.insert(name.into(), bytes);
    }

    /// Adds a piece that is a JSON value.
    pub fn put_json(&mut self, name: &str, value: &Value) {
        self.put(name, value.to_string().into_bytes());
    }

    /// The piece called `name`, if there is one.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.parts.get(name).map(Vec::as_slice)
    }

    /// The JSON value called `name`.
    ///
    /// # Errors
    ///
    /// `Corrupt` when it is missing or no JSON.
    pub fn json(&self, name: &str) -> Result<Value> {
        let bytes = self.get(name).ok_or_else(|| unfit(name))?;
        serde_json::from_slice(bytes).map_err(|_| unfit(name))
    }

    /// Adds a batch.
    pub(super) fn put_batch(&mut self, name: &str, batch: &RecordBatch) -> Result<()> {
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
        writer.write(batch)?;
        self.put(name, writer.into_inner()?);
        Ok(())
    }

    /// The batch called `name`, if there is one.
    pub(super) fn batch(&self, name: &str) -> Result<Option<RecordBatch>> {
        let Some(bytes) = self.get(name) else { return Ok(None) };
        let mut reader = StreamReader::try_new(bytes, None).map_err(|_| unfit(name))?;
        reader.next().transpose().map_err(|_| unfit(name))
    }

    /// The bytes of the checkpoint.
    ///
    /// # Errors
    ///
    /// When Arrow cannot hold it.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let columns: [(&str, ArrayRef); 3] = [
            ("format_version", Arc::new(UInt32Array::from(vec![FORMAT_VERSION; self.parts.len()]))),
            ("name", Arc::new(StringArray::from_iter_values(self.parts.keys()))),
            ("bytes", Arc::new(LargeBinaryArray::from_iter_values(self.parts.values()))),
        ];
        let field = |c: &(&str, ArrayRef)| Field::new(c.0, c.1.data_type().clone(), false);
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
        let batch =
            RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|c| c.1).collect())?;
        store::seal(&batch)
    }

    /// The checkpoint in `bytes`.
    ///
    /// # Errors
    ///
    /// `Corrupt` for any damage, `Incompatible` for a newer version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let batch = store::open(bytes)?;
        let column = |name: &str| batch.column_by_name(name).ok_or_else(|| unfit(name));
        let versions = column("format_version")?.as_primitive_opt::<UInt32Type>();
        let version = versions.filter(|v| !v.is_empty()).map_or(FORMAT_VERSION, |v| v.value(0));
        if version > FORMAT_VERSION {
            return Err(Error::incompatible(format!(
                "the checkpoint has format version {version} and this build reads up to \
                 {FORMAT_VERSION}: update labelflow"
            )));
        }
        let names = column("name")?.as_string_opt::<i32>().ok_or_else(|| unfit("name"))?;
        let bytes = column("bytes")?;
        if bytes.data_type() != &DataType::LargeBinary {
            return Err(unfit("bytes"));
        }
        let bytes = bytes.as_binary::<i64>();
        let pairs = names.iter().flatten().zip(bytes.iter().flatten());
        Ok(Checkpoint { parts: pairs.map(|(n, b)| (n.to_string(), b.to_vec())).collect() })
    }
}

fn unfit(name: &str) -> Error {
    Error::corrupt(format!("piece `{name}` of the checkpoint is missing or of another kind"))
}

/// A directory of checkpoints, of which the last few are kept. It belongs to one value at a time, in
/// this process and in others.
#[derive(Debug)]
pub struct CheckpointDir {
    dir: PathBuf,
    keep: usize,
    /// Locked as long as it is open.
    _lock: File,
}

impl CheckpointDir {
    /// Makes the directory if it is not there; `keep` checkpoints are kept, at least one.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made; `Usage` when somebody else uses it.
    pub fn try_new(dir: &Path, keep: usize) -> Result<Self> {
        let name = format!("checkpoint directory `{}`", dir.display());
        std::fs::create_dir_all(dir).map_err(|e| Error::io(&name, e))?;
        let lock = File::options().create(true).append(true).open(dir.join(LOCK));
        let lock = lock.map_err(|e| Error::io(&name, e))?;
        // Some file systems have no locks: there, nothing guards the directory.
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            return Err(Error::usage(format!(
                "{name} is in use by another stream: stop that one, or use another directory"
            )));
        }
        let checkpoints = CheckpointDir { dir: dir.to_path_buf(), keep: keep.max(1), _lock: lock };
        checkpoints.remove_unfinished()?;
        Ok(checkpoints)
    }

    /// Removes what runs that were killed left of checkpoints they were writing.
    fn remove_unfinished(&self) -> Result<()> {
        let marker = format!("{}{PREFIX}", store::PART);
        for name in self.names()? {
            if name.starts_with('.') && name.contains(&marker) {
                // It is in nobody's way.
                let _ = std::fs::remove_file(self.dir.join(name));
            }
        }
        Ok(())
    }

    /// Writes checkpoint `number`, then removes those that are no longer kept.
    ///
    /// # Errors
    ///
    /// When it cannot be written; those before are whole.
    pub fn write(&self, number: u64, checkpoint: &Checkpoint) -> Result<()> {
        store::write_atomically(&self.path(number), &checkpoint.to_bytes()?)?;
        for &old in self.numbers()?.iter().rev().skip(self.keep) {
            // One checkpoint too many harms nobody.
            let _ = std::fs::remove_file(self.path(old));
        }
        Ok(())
    }

    /// The newest checkpoint that is whole, with its number. `note` is told of those that are not.
    ///
    /// # Errors
    ///
    /// When there are checkpoints and none can be read.
    pub fn newest(&self, mut note: impl FnMut(String)) -> Result<Option<(u64, Checkpoint)>> {
        let numbers = self.numbers()?;
        let mut broken = None;
        for &number in numbers.iter().rev() {
            let path = self.path(number);
            let name = format!("checkpoint `{}`", path.display());
            let read = std::fs::read(&path)
                .map_err(|e| Error::io(&name, e))
                .and_then(|bytes| Checkpoint::from_bytes(&bytes).map_err(|e| e.context(&name)));
            match read {
                Ok(checkpoint) => return Ok(Some((number, checkpoint))),
                Err(error) => {
                    note(format!("{error}; falling back to the checkpoint before it"));
                    broken.get_or_insert(error);
                }
            }
        }
        match broken {
            None => Ok(None),
            Some(error) => Err(error.context("no checkpoint is whole")),
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{PREFIX}{number:020}{SUFFIX}"))
    }

    /// The names of the files there are.
    fn names(&self) -> Result<Vec<String>> {
        let failed = |e| Error::io(format!("checkpoint directory `{}`", self.dir.display()), e);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.dir).map_err(failed)? {
            names.extend(entry.map_err(failed)?.file_name().into_string());
        }
        Ok(names)
    }

    /// The numbers of the checkpoints there are, ascending.
    fn numbers(&self) -> Result<Vec<u64>> {
        let number = |n: &String| n.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok();
        let mut numbers: Vec<u64> = self.names()?.iter().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
}
