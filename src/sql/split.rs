//! `split_labels(text, separator)`: texts such as `rock;jazz` as label lists.

use super::error::to_datafusion;
use crate::data::split_labels;
use crate::error::{Error, Result};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

const NAME: &str = "split_labels";

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct SplitLabels {
    signature: Signature,
}

impl SplitLabels {
    pub(super) fn new() -> Self {
        SplitLabels { signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for SplitLabels {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> DataFusionResult<DataType> {
        Ok(DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let split = |texts: &ArrayRef| -> Result<ArrayRef> {
            let separator = match &args.args[1] {
                ColumnarValue::Scalar(scalar) => scalar.try_as_str().flatten(),
                ColumnarValue::Array(_) => None,
            };
            let separator = separator.ok_or_else(|| {
                Error::usage("the separator is a constant text; write split_labels(text, ';')")
            })?;
            Ok(Arc::new(split_labels(texts, separator)?))
        };
        let named = |e: Error| to_datafusion(e.context(NAME));
        match &args.args[0] {
            ColumnarValue::Array(texts) => Ok(ColumnarValue::Array(split(texts).map_err(named)?)),
            ColumnarValue::Scalar(text) => {
                let lists = split(&text.to_array()?).map_err(named)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&lists, 0)?))
            }
        }
    }
}
