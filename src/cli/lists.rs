//! Lists in CSV, which has none: `a;b`.

use super::columns::{literal, quoted};
use crate::error::{Error, Result};
use crate::sql::to_datafusion;
use arrow::array::{ArrayRef, AsArray, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// What stands between the items of a list.
pub(super) const BETWEEN: &str = ";";

/// The items of a list type.
pub(super) fn items(data_type: &DataType) -> Option<&FieldRef> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => Some(item),
        _ => None,
    }
}

/// The lists of the column `name` as texts; items that are NULL are left out.
///
/// # Errors
///
/// An item that holds what stands between items: it would be read back as several.
pub(super) fn joined(name: &str, lists: &ArrayRef) -> Result<StringArray> {
    let item = Arc::new(Field::new_list_field(DataType::Utf8, true));
    let lists = cast(lists, &DataType::List(item))?;
    let mut texts = StringBuilder::new();
    for list in lists.as_list::<i32>().iter() {
        let Some(list) = list else {
            texts.append_null();
            continue;
        };
        let items: Vec<&str> = list.as_string::<i32>().iter().flatten().collect();
        if let Some(item) = items.iter().find(|item| item.contains(BETWEEN)) {
            return Err(Error::data(format!(
                "column `{name}`: `{item}` holds the `{BETWEEN}` that stands between the items of a \
                 list in CSV: choose a format that has lists, such as JSON"
            )));
        }
        texts.append_value(items.join(BETWEEN));
    }
    Ok(texts.finish())
}

/// [`joined`] as a function of the sessions that write CSV files.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct JoinItems(Signature);

impl JoinItems {
    pub(super) fn new() -> Self {
        JoinItems(Signature::any(2, Volatility::Immutable))
    }

    /// The SQL of the column `name` as texts.
    pub(super) fn call(name: &str) -> String {
        let column = quoted(name);
        format!("{JOIN_ITEMS}({column}, {}) AS {column}", literal(name))
    }
}

const JOIN_ITEMS: &str = "csv_items";

impl ScalarUDFImpl for JoinItems {
    fn name(&self) -> &str {
        JOIN_ITEMS
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let name = match args.args.get(1) {
            Some(ColumnarValue::Scalar(name)) => name.try_as_str().flatten(),
            _ => None,
        };
        let lists = args.args[0].to_array(args.number_rows)?;
        let texts = joined(name.unwrap_or_default(), &lists).map_err(to_datafusion)?;
        Ok(ColumnarValue::Array(Arc::new(texts)))
    }
}
