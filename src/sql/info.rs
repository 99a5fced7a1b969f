//! `model_info(model)`: what a model is.

use super::cache::{ModelCache, SharedCache};
use super::call::{Call, as_called};
use super::error::to_datafusion;
use super::model_argument::{self, Models};
use crate::error::Result;
use crate::models::Model;
use crate::store;
use datafusion::arrow::array::{
    ArrayRef, Int32Array, Int64Array, ListBuilder, StringArray, StringBuilder, StructArray,
    UInt32Array,
};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Volatility};
use std::sync::Arc;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ModelInfo {
    call: Call,
    cache: SharedCache,
}

impl ModelInfo {
    pub(super) fn new(cache: &Arc<ModelCache>) -> Self {
        let call = Call::new("model_info", Volatility::Stable);
        ModelInfo { call, cache: SharedCache(Arc::clone(cache)) }
    }

    fn run(&self, args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
        let models = Models::read(&args.args[0], &self.cache.0)?;
        if let Models::One(model) = &models {
            let told = match model {
                Some(model) => tell(std::slice::from_ref(model))?,
                None => StructArray::new_null(fields(), 1),
            };
            return Ok(ColumnarValue::Scalar(ScalarValue::Struct(Arc::new(told))));
        }
        // Each model is told of once, however many rows have it.
        let models = models.column(args.number_rows);
        let of_row = UInt32Array::from(models.of_rows().to_vec());
        Ok(ColumnarValue::Array(take(&tell(models.distinct())?, &of_row, None)?))
    }
}

/// What is to be told of each model.
fn tell(models: &[Arc<Model>]) -> Result<StructArray> {
    let mut labels = ListBuilder::new(StringBuilder::new());
    let mut features = ListBuilder::new(StringBuilder::new());
    let mut notes = ListBuilder::new(StringBuilder::new());
    let mut digests = Vec::with_capacity(models.len());
    for model in models {
        labels.append_value(model.space().labels.names().map(Some));
        features.append_value(model.space().features.features().into_iter().map(|f| Some(f.name)));
        notes.append_value(model.notes().into_iter().map(Some));
        digests.push(store::digest(model)?);
    }
    let of = |get: fn(&Model) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(models.iter().map(|m| get(m))))
    };
    let columns: Vec<ArrayRef> = vec![
        of(|m| m.algorithm().name.to_string()),
        of(|m| m.spec().to_string()),
        Arc::new(Int64Array::from_iter_values(models.iter().map(|m| m.rows() as i64))),
        Arc::new(labels.finish()),
        Arc::new(features.finish()),
        Arc::new(Int32Array::from_iter_values(models.iter().map(|m| store::version(m) as i32))),
        Arc::new(StringArray::from(digests)),
        Arc::new(notes.finish()),
    ];
    Ok(StructArray::try_new(fields(), columns, None)?)
}

fn fields() -> Fields {
    let texts = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    Fields::from(vec![
        Field::new("algorithm", DataType::Utf8, true),
        Field::new("spec", DataType::Utf8, true),
        Field::new("rows", DataType::Int64, true),
        Field::new("labels", texts.clone(), true),
        Field::new("features", texts.clone(), true),
        Field::new("version", DataType::Int32, true),
        Field::new("digest", DataType::Utf8, true),
        Field::new("notes", texts, true),
    ])
}

impl ScalarUDFImpl for ModelInfo {
    as_called!();

    fn return_type(&self, types: &[DataType]) -> DataFusionResult<DataType> {
        self.call.check_count(types.len()).map_err(to_datafusion)?;
        model_argument::check_type(&self.call, &types[0]).map_err(to_datafusion)?;
        Ok(DataType::Struct(fields()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        self.run(&args).map_err(|e| to_datafusion(e.context(self.call.name)))
    }
}
