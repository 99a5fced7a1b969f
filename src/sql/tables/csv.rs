//! Where the rows of CSV files begin and end, and which of them cannot be read.

use super::CSV_SAMPLE;
use super::faults::shown;
use crate::error::{Error, Result};
use datafusion::arrow::csv::ReaderBuilder;
use datafusion::arrow::csv::reader::Format;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The place in a row that a byte leads to, as the reader of CSV sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the first byte of a row.
    Row,
    /// Before the first byte of a field.
    Field,
    /// In a field without quotes.
    Bare,
    Quoted,
    /// After a quote in a quoted field: its end, unless another quote follows.
    Closed,
}

impl Place {
    fn after(self, byte: u8) -> Place {
        match (self, byte) {
            (Place::Quoted, b'"') => Place::Closed,
            (Place::Quoted, _) | (Place::Closed, b'"') => Place::Quoted,
            (_, b',') => Place::Field,
            (_, b'\n' | b'\r') => Place::Row,
            (Place::Row | Place::Field, b'"') => Place::Quoted,
            _ => Place::Bare,
        }
    }
}

/// Whether a line break stands inside a quoted field: such a file cannot be cut at line breaks.
///
/// # Cost
///
/// Reads the file up to the first one; without quotes, at the speed of the disk.
pub(super) fn has_breaks_in_quotes(path: &Path) -> Result<bool> {
    let failed = |e| Error::io(format!("file `{}`", path.display()), e);
    let mut file = File::open(path).map_err(failed)?;
    let mut buffer = vec![0; 1 << 18];
    let mut place = Place::Row;
    loop {
        let length = file.read(&mut buffer).map_err(failed)?;
        let Some((bytes, last)) = buffer.get(..length).and_then(|b| Some((b, *b.last()?))) else {
            return Ok(false);
        };
        if place != Place::Quoted && place != Place::Closed && !bytes.contains(&b'"') {
            // All that counts is whether a quote may come next.
            place = Place::Bare.after(last);
            continue;
        }
        for &byte in bytes {
            if place == Place::Quoted && byte == b'\n' {
                return Ok(true);
            }
            place = place.after(byte);
        }
    }
}

/// The columns of `files`, with types taken from the first rows of all.
///
/// # Errors
///
/// Rows of different lengths, and files with other heads: fields are known by their place alone.
pub(super) fn schema(files: &[PathBuf]) -> Result<SchemaRef> {
    let format = Format::default().with_header(true);
    let mut known: Option<(&Path, Vec<Field>)> = None;
    let mut rows = CSV_SAMPLE;
    for path in files {
        let failed = |e| Error::io(format!("file `{}`", shown(path)), e);
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() == 0 {
            continue;
        }
        let (head, read) = format.infer_schema(file, Some(rows)).map_err(|e| {
            let fault = fault(path, None);
            fault.unwrap_or_else(|| Error::data(format!("file `{}`: {e}", shown(path))))
        })?;
        rows -= read.min(rows);
        let found = head.fields().iter().map(|f| Field::clone(f)).collect::<Vec<_>>();
        let Some((first, fields)) = &mut known else {
            known = Some((path, found));
            continue;
        };
        if !fields.iter().map(Field::name).eq(found.iter().map(Field::name)) {
            return Err(Error::incompatible(format!(
                "file `{}` has other columns than `{}`, or in another order: read them apart",
                shown(path),
                shown(first)
            )));
        }
        for (field, other) in fields.iter_mut().zip(found) {
            field.set_data_type(common_type(field.data_type(), other.data_type()));
        }
    }
    Ok(Arc::new(Schema::new(known.map_or_else(Vec::new, |(_, fields)| fields))))
}

/// The type that holds the values of both.
fn common_type(a: &DataType, b: &DataType) -> DataType {
    match (a, b) {
        (same, other) if same == other => same.clone(),
        (DataType::Null, known) | (known, DataType::Null) => known.clone(),
        (DataType::Int64 | DataType::Float64, DataType::Int64 | DataType::Float64) => {
            DataType::Float64
        }
        _ => DataType::Utf8,
    }
}

/// The line, from 1, on which the row of this number begins; the head is row 0, blank lines are none.
fn line_of(path: &Path, row: u64) -> std::io::Result<Option<u64>> {
    let mut reader = BufReader::with_capacity(1 << 18, File::open(path)?);
    let (mut place, mut line, mut rows) = (Place::Row, 1, 0);
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        for &byte in bytes {
            if place == Place::Row && !matches!(byte, b'\n' | b'\r') {
                if rows == row {
                    return Ok(Some(line));
                }
                rows += 1;
            }
            line += u64::from(byte == b'\n');
            place = place.after(byte);
        }
        let length = bytes.len();
        reader.consume(length);
    }
}

/// Whether a sentence of Arrow's reader is about a row.
pub(super) fn is_fault(text: &str) -> bool {
    [VALUE, FIELDS, UTF8].iter().any(|mark| text.contains(mark))
}

/// The error of the first row that cannot be read, with its line: as the schema says and for the
/// same reason as `text`, or as rows of texts.
pub(super) fn fault(path: &Path, known: Option<(&SchemaRef, &str)>) -> Option<Error> {
    let (schema, column) = match known {
        Some((schema, text)) => (Arc::clone(schema), column_of(text)),
        None => (texts(path)?, None),
    };
    let mut reader = ReaderBuilder::new(Arc::clone(&schema)).with_header(true);
    if let Some(column) = column {
        // Other columns may not be what they were in the first rows either, and not be read.
        reader = reader.with_projection(vec![column]);
    }
    let mut rows = reader.build(File::open(path).ok()?).ok()?;
    let text = rows.find_map(|batch| batch.err())?.to_string();
    let (row, what) = explained(&text, &schema)?;
    let line = line_of(path, row).ok().flatten()?;
    Some(Error::data(format!("file `{}`, line {line}: {what}", shown(path))))
}

/// The columns of the head, all of them text.
fn texts(path: &Path) -> Option<SchemaRef> {
    let format = Format::default().with_header(true);
    let (head, _) = format.infer_schema(File::open(path).ok()?, Some(0)).ok()?;
    let text = |f: &Arc<Field>| Field::new(f.name(), DataType::Utf8, true);
    Some(Arc::new(Schema::new(head.fields().iter().map(text).collect::<Vec<_>>())))
}

/// How Arrow's reader begins its sentences about a value, the number of fields, and text.
const VALUE: &str = "Error while parsing value ";
const FIELDS: &str = "incorrect number of fields for line ";
const UTF8: &str = "invalid UTF-8 data for line ";

/// The column of the value that cannot be read.
fn column_of(text: &str) -> Option<usize> {
    let (_, rest) = text.split_once(VALUE)?;
    let (rest, _) = rest.split_once(". Row data").unwrap_or((rest, ""));
    let (_, place) = rest.rsplit_once(" for column ")?;
    number(place).and_then(|n| usize::try_from(n).ok())
}

/// The number that `text` begins with.
fn number(text: &str) -> Option<u64> {
    text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The row that an error of Arrow's reader is about, counted with the head, and what is wrong.
fn explained(text: &str, schema: &Schema) -> Option<(u64, String)> {
    if let Some((_, rest)) = text.split_once(VALUE) {
        let (rest, _) = rest.split_once(". Row data").unwrap_or((rest, ""));
        let (rest, row) = rest.rsplit_once(" at line ")?;
        let (rest, column) = rest.rsplit_once(" for column ")?;
        let (value, kind) = rest.rsplit_once(" as type ")?;
        let column = schema.fields().get(number(column)? as usize)?.name();
        let kind = match kind.trim_matches('\'') {
            "Int64" => "whole number",
            "Float64" => "number",
            "Boolean" => "true or false",
            other => other,
        };
        let what = format!(
            "the value {value} of column `{column}` is no {kind}, which the column is in the first \
             {CSV_SAMPLE} rows: write the column alike in all rows"
        );
        return Some((number(row)?, what));
    }
    if let Some((_, rest)) = text.split_once(FIELDS) {
        let (_, counts) = rest.split_once("expected ")?;
        let (expected, got) = counts.split_once(" got ")?;
        let what = format!(
            "expected {expected} values, one for each column, got {got}; quote values that hold \
             commas or line breaks"
        );
        return Some((number(rest)?.checked_sub(1)?, what));
    }
    let (_, rest) = text.split_once(UTF8)?;
    let what = "not UTF-8 text; convert the file to UTF-8".to_string();
    Some((number(rest)?.checked_sub(1)?, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn breaks_are_found_where_a_reader_sees_quotes() {
        let long = format!("x,y\n{}", "1,2\n".repeat(200_000));
        for (text, found) in [
            ("", false),
            ("a,b\n1,2\n", false),
            ("a,b\n1,\"x\ny\"\n", true),
            ("a,b\n\"x\r\ny\",1\n", true),
            ("a,b\n\"x \"\"y\"\"\",1\n2,\"z\"\n", false),
            ("a,b\n\"x\"\"\ny\",1\n", true),
            // A quote inside a field without quotes is a character like others.
            ("a,b\n5\" disk,1\n6\" disk,2\n", false),
            ("a,b\n5\" disk,\"x\ny\"\n", true),
            ("a,b\n\"x\"y\"\n2,3\n", false),
            ("a,b\n1,\"never closed\n", true),
        ] {
            assert_eq!(has_breaks_in_quotes(file(text).path()).unwrap(), found, "{text:?}");
            let late = format!("{long}{text}");
            assert_eq!(has_breaks_in_quotes(file(&late).path()).unwrap(), found, "late {text:?}");
        }
    }

    #[test]
    fn faults_name_the_line() {
        let numbers = Schema::new(vec![
            Field::new("n", DataType::Int64, true),
            Field::new("t", DataType::Utf8, true),
        ]);
        let numbers = Arc::new(numbers);
        let value =
            "Error while parsing value '2' as type 'Int64' for column 0 at line 9. Row data: ''";
        let value = Some((&numbers, value));
        let fields = Some((&numbers, "incorrect number of fields for line 9, expected 2 got 3"));
        for (text, schema, line, what) in [
            ("n,t\n1,a\n2.5,b\n", value, 3, "the value '2.5' of column `n` is no whole"),
            ("n,t\n\n1,\"a\nb\nc\"\n\nx,b\n", value, 7, "the value 'x' of column `n`"),
            ("n,t\n1,a\n2,b,c\n", fields, 3, "expected 2 values, one for each column, got 3"),
            ("n,t\n1,\"a\nb\"\n2\n", None, 4, "expected 2 values, one for each column, got 1"),
        ] {
            let file = file(text);
            let error = fault(file.path(), schema).unwrap().to_string();
            let start = format!("file `{}`, line {line}: {what}", file.path().display());
            assert!(error.starts_with(&start), "{text:?}: {error}");
        }
        assert!(fault(file("n,t\n1,a\n").path(), None).is_none());
    }

    #[test]
    fn types_are_those_of_all_files() {
        let [whole, fractions, texts] =
            ["n,a,b\n1,1,\n", "n,a,b\n2.5,2,\n", "n,a,b\n3,x,true\n"].map(file);
        let types = |files: &[&tempfile::NamedTempFile]| {
            let files: Vec<PathBuf> = files.iter().map(|f| f.path().to_path_buf()).collect();
            let schema = schema(&files).unwrap();
            schema.fields().iter().map(|f| f.data_type().clone()).collect::<Vec<_>>()
        };
        use DataType::{Boolean, Float64, Int64, Null, Utf8};
        assert_eq!(types(&[&whole]), [Int64, Int64, Null]);
        assert_eq!(types(&[&whole, &fractions]), [Float64, Int64, Null]);
        assert_eq!(types(&[&fractions, &texts, &whole]), [Float64, Utf8, Boolean]);
        assert_eq!(types(&[&file("")]), []);
        // Fields are read by their place.
        let swapped = file("a,n,b\n1,2,3\n");
        let files = [whole.path().to_path_buf(), swapped.path().to_path_buf()];
        let error = schema(&files).unwrap_err().to_string();
        assert!(error.contains("has other columns than"), "{error}");
    }
}
