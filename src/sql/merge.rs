//! Arithmetic of models: `merge_models`, `subtract_model`, `decay_model`.

use super::cache::{ModelCache, SharedCache};
use super::call::{Call, as_called};
use super::error::to_datafusion;
use super::model_argument::{self, Models};
use crate::error::Result;
use crate::models::{Model, Trainer};
use crate::store;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Volatility,
};
use std::sync::Arc;

/// `merge_models(model)`: the model of everything the models of a group have seen.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct MergeModels {
    call: Call,
    cache: SharedCache,
}

impl MergeModels {
    pub(super) fn new(cache: &Arc<ModelCache>) -> Self {
        // Stable: a model named by its file may change between queries.
        let call = Call::new("merge_models", Volatility::Stable);
        MergeModels { call, cache: SharedCache(Arc::clone(cache)) }
    }
}

impl AggregateUDFImpl for MergeModels {
    as_called!();

    fn return_type(&self, types: &[DataType]) -> DataFusionResult<DataType> {
        self.call.check_count(types.len()).map_err(to_datafusion)?;
        model_argument::check_type(&self.call, &types[0]).map_err(to_datafusion)?;
        Ok(DataType::BinaryView)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> DataFusionResult<Box<dyn Accumulator>> {
        if args.is_distinct {
            let problem = "DISTINCT is not supported: remove duplicates in a subquery";
            return Err(to_datafusion(self.call.misuse(problem)));
        }
        Ok(Box::new(Merged { cache: Arc::clone(&self.cache.0), trainer: None }))
    }
}

#[derive(Debug)]
struct Merged {
    cache: Arc<ModelCache>,
    trainer: Option<Trainer>,
}

impl Merged {
    fn add(&mut self, models: &ArrayRef) -> Result<()> {
        let rows = models.len();
        let models = Models::per_row(&ColumnarValue::Array(Arc::clone(models)), rows, &self.cache)?;
        for model in models.into_iter().flatten() {
            match &mut self.trainer {
                Some(trainer) => trainer.merge(&model)?,
                None => self.trainer = Some(model.reopen()?),
            }
        }
        Ok(())
    }

    fn bytes(&self, ending: fn(&Trainer) -> Result<Model>) -> Result<ScalarValue> {
        let bytes = match &self.trainer {
            Some(trainer) => Some(store::to_bytes(&ending(trainer)?)?),
            None => None,
        };
        Ok(ScalarValue::BinaryView(bytes))
    }
}

impl Accumulator for Merged {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DataFusionResult<()> {
        self.add(&values[0]).map_err(|e| to_datafusion(e.context("merge_models")))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DataFusionResult<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> DataFusionResult<Vec<ScalarValue>> {
        Ok(vec![self.bytes(Trainer::state).map_err(to_datafusion)?])
    }

    fn evaluate(&mut self) -> DataFusionResult<ScalarValue> {
        self.bytes(Trainer::finish).map_err(to_datafusion)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.trainer.as_ref().map_or(0, Trainer::heap_size)
    }
}

/// What is done to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Change {
    Subtract,
    Decay,
}

/// `subtract_model(model, part)` and `decay_model(model, factor)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ChangeModel {
    change: Change,
    call: Call,
    cache: SharedCache,
}

/// The scalar functions of this file.
pub(super) fn scalars(cache: &Arc<ModelCache>) -> impl Iterator<Item = ChangeModel> {
    let cache = SharedCache(Arc::clone(cache));
    [(Change::Subtract, "subtract_model"), (Change::Decay, "decay_model")].into_iter().map(
        move |(change, name)| ChangeModel {
            change,
            call: Call::new(name, Volatility::Stable),
            cache: cache.clone(),
        },
    )
}

impl ChangeModel {
    fn run(&self, args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let rows = args.number_rows;
        let models = Models::per_row(&args.args[0], rows, &self.cache.0)?;
        let mut out = BinaryViewBuilder::with_capacity(rows);
        match self.change {
            Change::Subtract => {
                let parts = Models::per_row(&args.args[1], rows, &self.cache.0)?;
                for pair in models.iter().zip(&parts) {
                    out.append_option(match pair {
                        (Some(model), Some(part)) => changed(model, |t| t.forget(part))?,
                        _ => None,
                    });
                }
            }
            Change::Decay => {
                let factors = args.args[1].to_array(rows).map_err(super::from_datafusion)?;
                let factors = cast(&factors, &DataType::Float64)?;
                for pair in models.iter().zip(factors.as_primitive::<Float64Type>()) {
                    out.append_option(match pair {
                        (Some(model), Some(factor)) => changed(model, |t| t.decay(factor))?,
                        _ => None,
                    });
                }
            }
        }
        Ok(Arc::new(out.finish()))
    }
}

/// The changed model; `None` when no row is left of it.
fn changed(
    model: &Model,
    change: impl FnOnce(&mut Trainer) -> Result<()>,
) -> Result<Option<Vec<u8>>> {
    let mut trainer = model.reopen()?;
    change(&mut trainer)?;
    match trainer.rows() {
        0 => Ok(None),
        _ => store::to_bytes(&trainer.finish()?).map(Some),
    }
}

impl ScalarUDFImpl for ChangeModel {
    as_called!();

    fn return_type(&self, types: &[DataType]) -> DataFusionResult<DataType> {
        let check = |t: &DataType| model_argument::check_type(&self.call, t).map_err(to_datafusion);
        self.call.check_count(types.len()).map_err(to_datafusion)?;
        check(&types[0])?;
        match self.change {
            Change::Subtract => check(&types[1])?,
            Change::Decay if !types[1].is_numeric() && !types[1].is_null() => {
                let problem = format!("the factor is a number from 0 to 1, not {}", types[1]);
                return Err(to_datafusion(self.call.misuse(problem)));
            }
            Change::Decay => {}
        }
        Ok(DataType::BinaryView)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        self.run(&args)
            .map(ColumnarValue::Array)
            .map_err(|e| to_datafusion(e.context(self.call.name)))
    }
}
