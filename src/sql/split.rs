//! `split_labels(text, separator)`: texts such as `rock;jazz` as label lists.

use super::call::{Call, as_called};
use super::error::to_datafusion;
use super::label_lists;
use crate::data::split_labels;
use crate::error::Result;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Volatility};
use std::sync::Arc;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct SplitLabels {
    call: Call,
}

impl SplitLabels {
    pub(super) fn new() -> Self {
        SplitLabels { call: Call::new("split_labels", Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for SplitLabels {
    as_called!();

    fn return_type(&self, types: &[DataType]) -> DataFusionResult<DataType> {
        self.call.check_count(types.len()).map_err(to_datafusion)?;
        Ok(label_lists())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let split = |texts: &ArrayRef| -> Result<ArrayRef> {
            let separator = match &args.args[1] {
                ColumnarValue::Scalar(scalar) => scalar.try_as_str().flatten(),
                ColumnarValue::Array(_) => None,
            };
            let separator =
                separator.ok_or_else(|| self.call.misuse("the separator is a constant text"))?;
            let lists = split_labels(texts, separator).map_err(|e| e.context(self.call.name))?;
            Ok(Arc::new(lists))
        };
        match &args.args[0] {
            ColumnarValue::Array(texts) => {
                Ok(ColumnarValue::Array(split(texts).map_err(to_datafusion)?))
            }
            ColumnarValue::Scalar(text) => {
                let lists = split(&text.to_array()?).map_err(to_datafusion)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&lists, 0)?))
            }
        }
    }
}
