//! The public reader.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::iter::FusedIterator;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::columns::Columns;
use super::header::Header;
use super::labels::label_positions;
use super::layout::Layout;
use super::rows;
use crate::error::{Error, Result};
use crate::formats::label_source::NamedLabels;
use crate::formats::lines::Lines;
use crate::formats::{DEFAULT_BATCH_SIZE, LabelSource};

/// A batch ends at this much text even when rows are missing: offsets into it have 32 bits.
const MAX_BATCH_TEXT: usize = 64 << 20;

/// Reads an ARFF file as a stream of record batches, line by line.
///
/// # Columns
///
/// The last column is `labels`, a nullable `List<Utf8>` of the labels that are on, in declared
/// order. Its field keeps all declared labels as a JSON array in its metadata under
/// [`LABELS_METADATA_KEY`](crate::formats::LABELS_METADATA_KEY). A label attribute holds 0 or 1
/// (also false/true and no/yes where so declared).
///
/// The form of the first row decides about the features. Rows of the other form are read as well.
///
/// A *dense* file has a column per feature attribute, in file order: numeric, real and integer
/// become `Float64`, a nominal `{0,1}` `Boolean`, any other nominal, string or date `Utf8` as
/// written.
///
/// A *sparse* file has these columns:
///
/// - `features`, a `Map<Utf8, Float64>` of the numeric attributes that are not zero;
/// - `flags`, a `Map<Utf8, Boolean>` of the `{0,1}` attributes that are not zero; it is named
///   `features` when there are no numeric ones;
/// - a scalar column for each other attribute (and for `{1,0}`, whose unlisted rows are on). A row
///   that does not list it holds its first declared value, as ARFF defines, or NULL for
///   string and date. (WEKA does not list the first string it has seen, and reads it back as
///   another one; a file that it wrote cannot tell.)
///
/// A map column whose name is an attribute of the file gets underscores appended, and so does the
/// scalar column of a feature called `labels`: that name is always the list's.
///
/// # Nulls
///
/// `?` is NULL in a scalar column and a NULL value under the attribute's key in a map. In a label
/// attribute it makes the whole list NULL: the row is unlabelled. A row with no label on has an
/// empty list.
///
/// # Errors
///
/// Errors name the file, the line and the attribute. The iterator ends after the first. Relational
/// attributes and instance weights are not supported.
///
/// # Cost
///
/// One batch in memory. Numbers are parsed from the line buffer without a copy.
///
/// # Examples
///
/// ```
/// use labelflow::formats::ArffReader;
///
/// let text = "@relation 'news: -C 1'\n@attribute sport {0,1}\n@attribute goals numeric\n\
///             @data\n1,3\n0,?\n";
/// let mut reader = ArffReader::try_new("news.arff", text.as_bytes(), None)?;
/// assert_eq!(reader.declared_labels(), ["sport"]);
/// let batch = reader.next().transpose()?.map(|b| (b.num_rows(), b.num_columns()));
/// assert_eq!(batch, Some((2, 2)));
/// # Ok::<(), labelflow::Error>(())
/// ```
pub struct ArffReader {
    lines: Lines,
    layout: Layout,
    columns: Columns,
    batch_size: usize,
    /// Whether the current line is a row that is not read yet.
    at_row: bool,
}

impl ArffReader {
    /// Opens the file at `path` and reads its header.
    ///
    /// # Errors
    ///
    /// When the file or its label list cannot be read, the header is malformed, or the labels are
    /// not attributes of the file.
    pub fn try_open(path: &Path, labels: &LabelSource) -> Result<ArffReader> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|e| Error::io(format_args!("file `{name}`"), e))?;
        let named = labels.named_labels(path)?;
        let reader = Box::new(BufReader::with_capacity(1 << 16, file));
        Self::from_lines(Lines::new(name, reader, '%'), named)
    }

    /// Reads the header of ARFF text from `reader`; `name` is for messages.
    ///
    /// Use it for text that is not a file. `labels` are the label attributes in the order they
    /// shall have; without them MEKA's `-C n` in the relation name must tell.
    ///
    /// # Errors
    ///
    /// As [`try_open`](Self::try_open).
    pub fn try_new<R: BufRead + Send + 'static>(
        name: impl Into<String>,
        reader: R,
        labels: Option<&[String]>,
    ) -> Result<ArffReader> {
        let named = labels.map(|names| NamedLabels {
            names: names.to_vec(),
            origin: "the given list".to_string(),
        });
        Self::from_lines(Lines::new(name.into(), Box::new(reader), '%'), named)
    }

    fn from_lines(mut lines: Lines, named: Option<NamedLabels>) -> Result<ArffReader> {
        let header = Header::read(&mut lines)?;
        let labels = label_positions(&header, named.as_ref()).map_err(|e| lines.name_file(e))?;
        let at_row = lines.advance()?;
        let sparse = at_row && rows::is_sparse(lines.current());
        let layout = Layout::try_new(&header, &labels, sparse)?;
        let columns = Columns::try_new(header.attributes, &layout)?;
        Ok(ArffReader { lines, layout, columns, batch_size: DEFAULT_BATCH_SIZE, at_row })
    }

    /// Sets the number of rows of a batch (8192 unless set, at least 1).
    ///
    /// A batch with very much text ends earlier.
    #[must_use]
    pub fn with_batch_size(mut self, rows: usize) -> Self {
        self.batch_size = rows.max(1);
        self
    }

    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.layout.schema)
    }

    /// All labels of the file in declared order, whether they occur or not.
    pub fn declared_labels(&self) -> &[String] {
        &self.layout.label_names
    }

    /// All feature attributes of the file in file order, also those that are keys of a map.
    pub fn declared_features(&self) -> &[String] {
        &self.layout.feature_names
    }

    fn read_batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.at_row {
            rows::read_row(self.lines.current(), &mut self.columns)
                .map_err(|e| self.lines.locate(e))?;
            self.at_row = self.lines.advance()?;
            let full = self.columns.rows() >= self.batch_size;
            if full || self.columns.text_bytes() >= MAX_BATCH_TEXT {
                break;
            }
        }
        if self.columns.rows() == 0 {
            return Ok(None);
        }
        self.columns.finish().map(Some)
    }
}

impl Iterator for ArffReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.at_row {
            return None;
        }
        let batch = self.read_batch();
        if batch.is_err() {
            self.at_row = false;
        }
        batch.transpose()
    }
}

impl FusedIterator for ArffReader {}

impl fmt::Debug for ArffReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArffReader")
            .field("file", &self.lines.name())
            .field("features", &self.layout.feature_names.len())
            .field("labels", &self.layout.label_names.len())
            .field("batch_size", &self.batch_size)
            .finish_non_exhaustive()
    }
}
