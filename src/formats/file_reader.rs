//! The reader that fits a file.

use std::path::Path;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::{ArffReader, LabelSource, SvmlightReader};
use crate::error::Result;

/// Reads a file of any format of this module, chosen by its extension.
#[derive(Debug)]
pub enum FileReader {
    /// `.arff`
    Arff(Box<ArffReader>),
    /// `.svm`, `.libsvm`, `.svmlight`
    Svmlight(Box<SvmlightReader>),
}

impl FileReader {
    /// The extensions that are read, without the dot.
    pub const EXTENSIONS: &[&str] = &["arff", "svm", "libsvm", "svmlight"];

    /// Whether a file of this extension is read.
    pub fn reads(extension: &str) -> bool {
        FileReader::EXTENSIONS.iter().any(|e| e.eq_ignore_ascii_case(extension))
    }

    /// Opens the file at `path`; `labels` says which attributes of an ARFF file are labels.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or an ARFF header is malformed.
    pub fn try_open(path: &Path, labels: &LabelSource) -> Result<Self> {
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("arff")) {
            return Ok(FileReader::Arff(Box::new(ArffReader::try_open(path, labels)?)));
        }
        Ok(FileReader::Svmlight(Box::new(SvmlightReader::try_open(path)?)))
    }

    /// Sets the number of rows of a batch.
    #[must_use]
    pub fn with_batch_size(self, rows: usize) -> Self {
        match self {
            FileReader::Arff(r) => FileReader::Arff(Box::new(r.with_batch_size(rows))),
            FileReader::Svmlight(r) => FileReader::Svmlight(Box::new(r.with_batch_size(rows))),
        }
    }

    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        match self {
            FileReader::Arff(reader) => reader.schema(),
            FileReader::Svmlight(reader) => reader.schema(),
        }
    }
}

impl Iterator for FileReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            FileReader::Arff(reader) => reader.next(),
            FileReader::Svmlight(reader) => reader.next(),
        }
    }
}
