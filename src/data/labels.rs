//! Label columns: from Arrow arrays to label sets.

use super::label_columns::{are_flags, flag_lists_from};
use super::plain::{plain, plain_type};
use super::{LabelId, LabelSets, Vocabulary};
use crate::error::{Error, Result};
use arrow::array::{
    Array, ArrayRef, AsArray, GenericListArray, OffsetSizeTrait, StringArray, StringViewArray,
    new_null_array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};
use std::sync::Arc;

/// The key in the metadata of a label column under which the labels there can be are declared.
///
/// The value is a JSON array of names in declared order. It makes labels known that never occur.
pub const LABELS_METADATA_KEY: &str = "labelflow.labels";

/// The labels that a label column declares, by its 0/1 columns or in its metadata; empty when it
/// declares none.
///
/// # Errors
///
/// Metadata that is no JSON array of distinct names.
pub fn declared_labels(column: &Field) -> Result<Vocabulary<LabelId>> {
    // A set of 0/1 columns names its labels in its type.
    if let DataType::Struct(fields) = column.data_type() {
        return Vocabulary::try_from_names(fields.iter().map(|f| f.name()));
    }
    let Some(json) = column.metadata().get(LABELS_METADATA_KEY) else {
        return Ok(Vocabulary::default());
    };
    let names: Vec<String> = serde_json::from_str(json).map_err(|e| {
        Error::data(format!("the declared labels of column `{}`: {e}", column.name()))
    })?;
    Vocabulary::try_from_names(names)
}

/// Reads label columns; names are turned into ids by the caller's closure.
///
/// A column of labels is a list of texts or integers, or a struct of 0/1 columns, one for each label.
///
/// # Nulls
///
/// A NULL list is an unlabelled row: it gets no set and is left out of the row numbers returned; so
/// is a row with a NULL in a 0/1 column. An empty list is a row observed to have no labels. A NULL
/// inside a list is an error.
#[derive(Debug, Default, Clone, Copy)]
pub struct LabelReader;

impl LabelReader {
    /// Whether a column of `data_type` can hold label sets.
    pub fn accepts(data_type: &DataType) -> bool {
        match plain_type(data_type) {
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => is_label(plain_type(item.data_type())),
            DataType::Struct(fields) => are_flags(fields),
            DataType::Null => true,
            _ => false,
        }
    }

    /// How a message calls a type that is not accepted: its name, and for texts what to do.
    pub(crate) fn refused(data_type: &DataType) -> String {
        match plain_type(data_type).is_string() {
            true => format!("{data_type}: split texts with split_labels(column, ';')"),
            false => data_type.to_string(),
        }
    }

    /// The sets as plain lists of texts (`List` or `LargeList` of `Utf8` or `Utf8View`), NULL where a
    /// row is unlabelled.
    ///
    /// # Errors
    ///
    /// A column of another type, or a 0/1 column that holds something else.
    pub fn lists(column: &ArrayRef) -> Result<ArrayRef> {
        LabelReader::lists_from(0, column)
    }

    fn lists_from(rows_before: u64, column: &ArrayRef) -> Result<ArrayRef> {
        if !LabelReader::accepts(column.data_type()) {
            return Err(Error::data(format!(
                "labels must be a list of texts or integers, or a struct of 0/1 columns, not {}",
                LabelReader::refused(column.data_type())
            )));
        }
        let column = plain(column)?;
        Ok(match column.data_type() {
            DataType::List(item) | DataType::LargeList(item) if is_plain(item.data_type()) => {
                column
            }
            DataType::Struct(_) => Arc::new(flag_lists_from(rows_before, column.as_struct())?),
            DataType::Null => new_null_array(&DataType::List(text_item()), column.len()),
            DataType::List(_) | DataType::ListView(_) => {
                cast(&column, &DataType::List(text_item()))?
            }
            _ => cast(&column, &DataType::LargeList(text_item()))?,
        })
    }

    /// Appends the set of every labelled row of `column` to `sets`.
    ///
    /// Returns the numbers of the labelled rows, or `None` when all are. `id_of` gives the id of a
    /// name, or `None` to leave the label out.
    ///
    /// # Errors
    ///
    /// A column of another type, or a NULL inside a list, which names the row and shows the list.
    pub fn read(
        column: &ArrayRef,
        sets: &mut LabelSets,
        id_of: impl FnMut(&str) -> Result<Option<LabelId>>,
    ) -> Result<Option<Vec<u32>>> {
        LabelReader::read_from(0, column, sets, id_of)
    }

    /// As [`LabelReader::read`]; messages count the rows that were read before.
    pub(crate) fn read_from(
        rows_before: u64,
        column: &ArrayRef,
        sets: &mut LabelSets,
        mut id_of: impl FnMut(&str) -> Result<Option<LabelId>>,
    ) -> Result<Option<Vec<u32>>> {
        let lists = LabelReader::lists_from(rows_before, column)?;
        match lists.data_type() {
            DataType::List(_) => read_list(lists.as_list::<i32>(), rows_before, sets, &mut id_of),
            DataType::LargeList(_) => {
                read_list(lists.as_list::<i64>(), rows_before, sets, &mut id_of)
            }
            other => Err(Error::internal(format!("labels of type {other} were not cast"))),
        }
    }
}

fn text_item() -> Arc<Field> {
    Arc::new(Field::new_list_field(DataType::Utf8, true))
}

fn is_plain(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::Utf8View)
}

fn is_label(data_type: &DataType) -> bool {
    data_type.is_string() || data_type.is_integer() || data_type == &DataType::Null
}

fn read_list<O: OffsetSizeTrait>(
    list: &GenericListArray<O>,
    rows_before: u64,
    sets: &mut LabelSets,
    id_of: &mut impl FnMut(&str) -> Result<Option<LabelId>>,
) -> Result<Option<Vec<u32>>> {
    let values = list.values();
    match values.data_type() {
        DataType::Utf8 => {
            let values: &StringArray = values.as_string();
            read_rows(list, rows_before, values, |i| values.value(i), sets, id_of)
        }
        DataType::Utf8View => {
            let values: &StringViewArray = values.as_string_view();
            read_rows(list, rows_before, values, |i| values.value(i), sets, id_of)
        }
        other => Err(Error::internal(format!("label items of type {other} were not cast"))),
    }
}

fn read_rows<'a, O: OffsetSizeTrait>(
    list: &GenericListArray<O>,
    rows_before: u64,
    values: &dyn Array,
    value: impl Fn(usize) -> &'a str,
    sets: &mut LabelSets,
    id_of: &mut impl FnMut(&str) -> Result<Option<LabelId>>,
) -> Result<Option<Vec<u32>>> {
    let offsets = list.value_offsets();
    let mut labelled = (list.null_count() > 0).then(Vec::new);
    let mut ids = Vec::new();
    for row in 0..list.len() {
        if let Some(labelled) = &mut labelled {
            if list.is_null(row) {
                continue;
            }
            labelled.push(row as u32);
        }
        ids.clear();
        let items = offsets[row].as_usize()..offsets[row + 1].as_usize();
        for i in items.clone() {
            if values.is_null(i) {
                let shown = |i| if values.is_null(i) { "NULL" } else { value(i) };
                let shown: Vec<&str> = items.map(shown).collect();
                return Err(Error::data(format!(
                    "the label list of row {} holds a NULL, [{}]: remove it, or make the whole \
                     list NULL when the row is unlabelled",
                    rows_before + row as u64,
                    shown.join(", ")
                )));
            }
            ids.extend(id_of(value(i))?);
        }
        sets.push(ids.iter().copied());
    }
    Ok(labelled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ListArray, ListBuilder, StringBuilder};

    type Named = Vec<Vec<String>>;

    fn read(column: ArrayRef) -> Result<(Named, Option<Vec<u32>>)> {
        let mut v = Vocabulary::default();
        let mut sets = LabelSets::default();
        let labelled = LabelReader::read(&column, &mut sets, |n| Ok(Some(v.intern(n))))?;
        let named =
            sets.iter().map(|s| s.iter().map(|&i| v.name(i).to_string()).collect()).collect();
        Ok((named, labelled))
    }

    #[test]
    fn null_is_unlabelled_and_empty_is_not() {
        let mut b = ListBuilder::new(StringBuilder::new());
        b.append_value([Some("a"), Some("b"), Some("a")]);
        b.append_null();
        b.append_value(Vec::<Option<&str>>::new());
        let (sets, labelled) = read(Arc::new(b.finish())).unwrap();
        assert_eq!(sets, [vec!["a", "b"], vec![]]);
        assert_eq!(labelled, Some(vec![0, 2]));
    }

    #[test]
    fn a_null_inside_a_list_names_the_row() {
        let mut b = ListBuilder::new(StringBuilder::new());
        b.append_value([Some("a")]);
        b.append_value([Some("a"), None]);
        let error = read(Arc::new(b.finish())).unwrap_err();
        assert!(error.to_string().contains("row 1 holds a NULL, [a, NULL]"), "{error}");
    }

    #[test]
    fn integers_become_names() {
        let list = ListArray::from_iter_primitive::<arrow::datatypes::Int32Type, _, _>([
            Some(vec![Some(7), Some(3)]),
            Some(vec![]),
        ]);
        let (sets, labelled) = read(Arc::new(list)).unwrap();
        assert_eq!(sets, [vec!["7", "3"], vec![]]);
        assert_eq!(labelled, None);
    }
}
