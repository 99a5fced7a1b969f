//! Label sets that do not come as lists: 0/1 columns, and texts with a separator.

use super::plain::{plain, plain_type};
use crate::error::{Error, Result};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, ListArray, ListBuilder, StringArray,
    StringBuilder, StructArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Fields, Float64Type};

/// Whether a struct of these fields can be a set of 0/1 columns.
pub(super) fn are_flags(fields: &Fields) -> bool {
    let flag = |t: &DataType| t == &DataType::Boolean || t == &DataType::Null || t.is_numeric();
    !fields.is_empty() && fields.iter().all(|f| flag(plain_type(f.data_type())))
}

/// One 0/1 column.
enum Flags {
    Boolean(BooleanArray),
    Number(Float64Array),
}

impl Flags {
    fn try_new(column: &ArrayRef) -> Result<Self> {
        let column = plain(column)?;
        if let Some(flags) = column.as_boolean_opt() {
            return Ok(Flags::Boolean(flags.clone()));
        }
        let numbers = cast(&column, &DataType::Float64)?;
        Ok(Flags::Number(numbers.as_primitive::<Float64Type>().clone()))
    }

    /// Whether the label is on in `row`; `None` when that is not known.
    fn get(&self, row: usize, name: &str, rows_before: u64) -> Result<Option<bool>> {
        let (flags, number) = match self {
            Flags::Boolean(flags) => (flags as &dyn Array, f64::from(flags.value(row))),
            Flags::Number(numbers) => (numbers as &dyn Array, numbers.value(row)),
        };
        match number {
            _ if flags.is_null(row) => Ok(None),
            0.0 => Ok(Some(false)),
            1.0 => Ok(Some(true)),
            other => Err(Error::data(format!(
                "label column `{name}` holds {other} in row {}: a label column holds 0, 1 or NULL",
                rows_before + row as u64
            ))),
        }
    }
}

/// The sets of 0/1 columns: one label per column, named like it.
///
/// # Nulls
///
/// A NULL in any column makes the row unlabelled.
pub(crate) fn flag_lists(columns: &StructArray) -> Result<ListArray> {
    flag_lists_from(0, columns)
}

/// As [`flag_lists`]; messages count the rows that were read before.
pub(super) fn flag_lists_from(rows_before: u64, columns: &StructArray) -> Result<ListArray> {
    let flags = columns.columns().iter().map(Flags::try_new).collect::<Result<Vec<_>>>()?;
    let mut lists = ListBuilder::new(StringBuilder::new());
    let mut on: Vec<&str> = Vec::new();
    for row in 0..columns.len() {
        on.clear();
        let mut known = columns.is_valid(row);
        if known {
            for (flags, field) in flags.iter().zip(columns.fields()) {
                match flags.get(row, field.name(), rows_before)? {
                    Some(true) => on.push(field.name()),
                    Some(false) => {}
                    None => known = false,
                }
            }
        }
        if known {
            on.iter().for_each(|name| lists.values().append_value(name));
        }
        lists.append(known);
    }
    Ok(lists.finish())
}

/// The label lists of texts such as `rock;jazz`.
///
/// Blanks around a label are dropped, and so are empty labels: `rock; jazz;` has two. An empty text
/// is a row without labels.
///
/// # Nulls
///
/// A NULL text is an unlabelled row.
///
/// # Errors
///
/// A column that is no text, number or boolean; an empty separator.
///
/// # Examples
///
/// ```
/// use arrow::array::{Array, ArrayRef, StringArray};
/// use labelflow::data::split_labels;
/// use std::sync::Arc;
///
/// let tags: ArrayRef = Arc::new(StringArray::from(vec![Some("rock; jazz;"), Some(""), None]));
/// let lists = split_labels(&tags, ";")?;
/// assert_eq!(lists.value_length(0), 2);
/// assert!(lists.is_valid(1) && lists.value_length(1) == 0);
/// assert!(lists.is_null(2));
/// # Ok::<(), labelflow::Error>(())
/// ```
pub fn split_labels(column: &ArrayRef, separator: &str) -> Result<ListArray> {
    if separator.is_empty() {
        return Err(Error::usage("the separator of labels is empty: give the text between them"));
    }
    let data_type = plain_type(column.data_type());
    let scalar = data_type.is_string() || data_type.is_numeric();
    if !scalar && !matches!(data_type, DataType::Boolean | DataType::Null) {
        return Err(Error::data(format!(
            "only a text can be split into labels, not {}",
            column.data_type()
        )));
    }
    let texts = cast(&plain(column)?, &DataType::Utf8)?;
    let texts: &StringArray = texts.as_string();
    let mut lists = ListBuilder::new(StringBuilder::new());
    for text in texts {
        let labels = text.unwrap_or_default().split(separator).map(str::trim);
        labels.filter(|l| !l.is_empty()).for_each(|l| lists.values().append_value(l));
        lists.append(text.is_some());
    }
    Ok(lists.finish())
}
