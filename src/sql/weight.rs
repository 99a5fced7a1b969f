//! `row_weight(number)`: how much a row counts when it is learned.
//!
//! DataFusion resolves named arguments only where there is a fixed number of them, so a weight among
//! any number of features is told by its type: a struct with the one field `row_weight`.

use super::call::{Call, as_called};
use super::error::to_datafusion;
use crate::error::Result;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StructArray};
use datafusion::arrow::compute::{cast, nullif};
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Volatility};
use std::sync::Arc;

const FIELD: &str = "row_weight";

fn fields() -> Fields {
    Fields::from(vec![Field::new(FIELD, DataType::Float64, true)])
}

/// Whether a value of this type is a weight.
pub(super) fn is_weight(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Struct(fields) if fields.len() == 1 && fields[0].name() == FIELD)
}

/// The numbers of a column of weights; NULL where the weight is.
pub(super) fn numbers(weights: &ArrayRef) -> Result<ArrayRef> {
    let Some(weights) = weights.as_struct_opt() else { return Ok(Arc::clone(weights)) };
    let numbers = weights.column(0);
    match weights.nulls() {
        None => Ok(Arc::clone(numbers)),
        Some(present) => Ok(nullif(numbers, &BooleanArray::new(!present.inner(), None))?),
    }
}

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct RowWeight {
    call: Call,
}

impl RowWeight {
    pub(super) fn new() -> Self {
        RowWeight { call: Call::new("row_weight", Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for RowWeight {
    as_called!();

    fn return_type(&self, types: &[DataType]) -> DataFusionResult<DataType> {
        self.call.check_count(types.len()).map_err(to_datafusion)?;
        if !types[0].is_numeric() && !types[0].is_null() {
            let problem = format!("a weight is a number, not {}", types[0]);
            return Err(to_datafusion(self.call.misuse(problem)));
        }
        Ok(DataType::Struct(fields()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let weights = args.args[0].to_array(args.number_rows)?;
        let weights = cast(&weights, &DataType::Float64)?;
        let weights = StructArray::try_new(fields(), vec![weights], None)?;
        Ok(ColumnarValue::Array(Arc::new(weights)))
    }
}
