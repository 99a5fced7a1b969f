//! The reader that fits a file.

use std::path::Path;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::{ArffReader, ArrowReader, LabelSource, SvmlightReader};
use crate::error::Result;

/// Reads a file of any format of this module, chosen by its extension.
#[derive(Debug)]
pub enum FileReader {
    /// `.arff`
    Arff(Box<ArffReader>),
    /// `.arrow`, `.arrows`
    Arrow(Box<ArrowReader>),
    /// `.svm`, `.libsvm`, `.svmlight`
    Svmlight(Box<SvmlightReader>),
}

impl FileReader {
    /// The extensions that are read, without the dot.
    pub const EXTENSIONS: &[&str] = &["arff", "svm", "libsvm", "svmlight", "arrow", "arrows"];

    /// Whether a file of this extension is read.
    pub fn reads(extension: &str) -> bool {
        FileReader::EXTENSIONS.iter().any(|e| e.eq_ignore_ascii_case(extension))
    }

    /// Opens the file at `path`; `labels` says which attributes of an ARFF file are labels.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, an ARFF header is malformed, or an Arrow file damaged.
    pub fn try_open(path: &Path, labels: &LabelSource) -> Result<Self> {
        let has =
            |extension: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(extension));
        if has("arff") {
            return Ok(FileReader::Arff(Box::new(ArffReader::try_open(path, labels)?)));
        }
        if has("arrow") || has("arrows") {
            return Ok(FileReader::Arrow(Box::new(ArrowReader::try_open(path)?)));
        }
        Ok(FileReader::Svmlight(Box::new(SvmlightReader::try_open(path)?)))
    }

    /// Sets the number of rows of a batch.
    #[must_use]
    pub fn with_batch_size(self, rows: usize) -> Self {
        match self {
            FileReader::Arff(r) => FileReader::Arff(Box::new(r.with_batch_size(rows))),
            FileReader::Arrow(r) => FileReader::Arrow(Box::new(r.with_batch_size(rows))),
            FileReader::Svmlight(r) => FileReader::Svmlight(Box::new(r.with_batch_size(rows))),
        }
    }

    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        match self {
            FileReader::Arff(reader) => reader.schema(),
            FileReader::Arrow(reader) => reader.schema(),
            FileReader::Svmlight(reader) => reader.schema(),
        }
    }
}

impl Iterator for FileReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            FileReader::Arff(reader) => reader.next(),
            FileReader::Arrow(reader) => reader.next(),
            FileReader::Svmlight(reader) => reader.next(),
        }
    }
}
