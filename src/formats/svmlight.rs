//! Multi-label svmlight text (LIBSVM), as record batches.
//!
//! ```text
//! sport,news 3:0.5 17:1
//! 7:2.25 # no labels
//! ```
//!
//! Reference: <https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multilabel.html>

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::iter::FusedIterator;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float64Builder, Int64Builder, ListBuilder, MapBuilder, RecordBatch, StringBuilder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::lines::{Lines, without_comment};
use super::maps::{map_builder, map_field};
use super::{DEFAULT_BATCH_SIZE, shown};
use crate::error::{Error, Result};

/// A batch ends at this many entries even when rows are missing, so that memory is bounded.
const MAX_BATCH_ENTRIES: usize = 4 << 20;

/// Reads a svmlight file as a stream of record batches, line by line.
///
/// A line is a row: its labels, separated by commas, then `index:value` for each feature that is
/// not zero. A row without labels begins with its first feature. What follows a blank and `#` is a comment.
/// Blank lines are passed over, and so is a first line of three whole numbers (the counts of rows,
/// features and labels with which some repositories begin).
///
/// # Columns
///
/// - `features`, a `Map<Int64, Float64>` from indices to values; zeros are left out;
/// - `labels`, a nullable `List<Utf8>`.
///
/// # Nulls
///
/// `?` in place of the labels is an unlabelled row: its list is NULL. A value `nan` is missing.
///
/// # Errors
///
/// Errors name the file and the line. The iterator ends after the first.
///
/// # Cost
///
/// One batch in memory.
///
/// # Examples
///
/// ```
/// use labelflow::formats::SvmlightReader;
///
/// let text = "sport,news 3:0.5 17:1\n 7:2.25\n";
/// let mut reader = SvmlightReader::new("news.svm", text.as_bytes());
/// let batch = reader.next().transpose()?.map(|b| (b.num_rows(), b.num_columns()));
/// assert_eq!(batch, Some((2, 2)));
/// # Ok::<(), labelflow::Error>(())
/// ```
pub struct SvmlightReader {
    lines: Lines,
    schema: SchemaRef,
    features: MapBuilder<Int64Builder, Float64Builder>,
    labels: ListBuilder<StringBuilder>,
    /// The indices of the row in hand, to find repeated ones.
    indices: Vec<i64>,
    rows: usize,
    entries: usize,
    batch_size: usize,
    done: bool,
}

impl SvmlightReader {
    /// Opens the file at `path`.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn try_open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|e| Error::io(format_args!("file `{name}`"), e))?;
        Ok(Self::new(name, BufReader::with_capacity(1 << 16, file)))
    }

    /// Reads svmlight text from `reader`; `name` is for messages.
    pub fn new<R: BufRead + Send + 'static>(name: impl Into<String>, reader: R) -> Self {
        SvmlightReader {
            lines: Lines::new(name.into(), Box::new(reader), '#'),
            schema: schema(),
            features: map_builder(Int64Builder::new(), Float64Builder::new()),
            labels: ListBuilder::new(StringBuilder::new()),
            indices: Vec::new(),
            rows: 0,
            entries: 0,
            batch_size: DEFAULT_BATCH_SIZE,
            done: false,
        }
    }

    /// Sets the number of rows of a batch (8192 unless set, at least 1).
    ///
    /// A batch with very many entries ends earlier.
    #[must_use]
    pub fn with_batch_size(mut self, rows: usize) -> Self {
        self.batch_size = rows.max(1);
        self
    }

    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn read_batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.rows < self.batch_size && self.entries < MAX_BATCH_ENTRIES {
            if !self.lines.advance()? {
                self.done = true;
                break;
            }
            if self.lines.number() == 1 && is_header(self.lines.current()) {
                continue;
            }
            let row = Row {
                features: &mut self.features,
                labels: &mut self.labels,
                indices: &mut self.indices,
            };
            let entries = row.read(self.lines.current()).map_err(|e| self.lines.locate(e))?;
            self.entries += entries;
            self.rows += 1;
        }
        if self.rows == 0 {
            return Ok(None);
        }
        (self.rows, self.entries) = (0, 0);
        let arrays: Vec<ArrayRef> =
            vec![Arc::new(self.features.finish()), Arc::new(self.labels.finish())];
        Ok(Some(RecordBatch::try_new(self.schema(), arrays)?))
    }
}

fn schema() -> SchemaRef {
    let labels = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    Arc::new(Schema::new(vec![
        map_field("features", DataType::Int64, DataType::Float64),
        Field::new("labels", labels, true),
    ]))
}

/// Whether a line holds the counts of rows, features and labels: no row looks like that.
fn is_header(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let counts = words.by_ref().take(3).filter(|w| w.bytes().all(|b| b.is_ascii_digit())).count();
    counts == 3 && words.next().is_none()
}

/// Where one line goes.
struct Row<'a> {
    features: &'a mut MapBuilder<Int64Builder, Float64Builder>,
    labels: &'a mut ListBuilder<StringBuilder>,
    indices: &'a mut Vec<i64>,
}

impl Row<'_> {
    /// Reads `line`; returns how many entries it has.
    fn read(self, line: &str) -> Result<usize> {
        let line = without_comment(line, '#');
        let mut words = line.split_ascii_whitespace().peekable();
        let mut entries = 0;
        match words.next_if(|word| !word.contains(':')) {
            Some("?") => self.labels.append(false),
            Some(labels) => {
                for label in labels.split(',') {
                    if label.is_empty() {
                        return Err(Error::data(format!(
                            "a label of `{}` is empty; write labels as a,b,c",
                            shown(labels)
                        )));
                    }
                    self.labels.values().append_value(label);
                    entries += 1;
                }
                self.labels.append(true);
            }
            None => self.labels.append(true),
        }
        self.indices.clear();
        for word in words {
            let (index, value) = entry(word)?;
            self.indices.push(index);
            if value != 0.0 {
                self.features.keys().append_value(index);
                self.features.values().append_value(value);
            }
        }
        entries += self.indices.len();
        if !self.indices.is_sorted_by(|a, b| a < b) {
            self.indices.sort_unstable();
            if let Some(pair) = self.indices.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(Error::data(format!(
                    "index {} stands twice; list each feature once",
                    pair[0]
                )));
            }
        }
        self.features.append(true)?;
        Ok(entries)
    }
}

/// The index and value of a word such as `3:0.5`.
fn entry(word: &str) -> Result<(i64, f64)> {
    let Some((index, value)) = word.split_once(':') else {
        return Err(Error::data(format!(
            "`{}` is no feature; write index:value, and labels as a,b,c without blanks",
            shown(word)
        )));
    };
    let index = Some(index).filter(|i| i.bytes().all(|b| b.is_ascii_digit()));
    let Some(index) = index.and_then(|i| i.parse::<i64>().ok()) else {
        return Err(Error::data(format!(
            "the index of `{}` is no whole number from 0; write index:value",
            shown(word)
        )));
    };
    let value = value.parse().map_err(|_| {
        Error::data(format!("the value of `{}` is no number; write index:value", shown(word)))
    })?;
    Ok((index, value))
}

impl Iterator for SvmlightReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let batch = self.read_batch();
        self.done |= batch.is_err();
        batch.transpose()
    }
}

impl FusedIterator for SvmlightReader {}

impl fmt::Debug for SvmlightReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SvmlightReader")
            .field("file", &self.lines.name())
            .field("line", &self.lines.number())
            .field("batch_size", &self.batch_size)
            .finish_non_exhaustive()
    }
}
