//! Arithmetic of models: `merge_models`, `subtract_model`, `decay_model`.

use super::cache::{ModelCache, SharedCache};
use super::call::{Call, as_called};
use super::error::to_datafusion;
use super::model_argument::{self, ModelColumn, Models};
use crate::error::Result;
use crate::math::FixedState;
use crate::models::{Model, Trainer};
use crate::store::{self, ModelReader};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Volatility,
};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
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

    fn accumulator(&self, _args: AccumulatorArgs) -> DataFusionResult<Box<dyn Accumulator>> {
        let (reader, trainer) = (ModelReader::default(), None);
        Ok(Box::new(Merged { cache: Arc::clone(&self.cache.0), reader, trainer }))
    }
}

#[derive(Debug)]
struct Merged {
    cache: Arc<ModelCache>,
    /// Bytes are read once and not kept: the cache is for models that score.
    reader: ModelReader,
    trainer: Option<Trainer>,
}

impl Merged {
    fn add(&mut self, models: &ArrayRef) -> Result<()> {
        if models.data_type().is_string() {
            let named = ColumnarValue::Array(Arc::clone(models));
            let named = Models::read(&named, &self.cache)?.column(models.len());
            let mut of_row = named.of_rows().iter().flatten();
            return of_row.try_for_each(|&m| self.merge(&named.distinct()[m as usize]));
        }
        let models = cast(models, &DataType::BinaryView)?;
        for (row, bytes) in models.as_binary_view().iter().enumerate() {
            let Some(bytes) = bytes else { continue };
            let model = self.reader.read(bytes, self.cache.registry());
            self.merge(&model.map_err(|e| e.context(model_argument::which(row, bytes)))?)?;
        }
        Ok(())
    }

    fn merge(&mut self, model: &Model) -> Result<()> {
        match &mut self.trainer {
            Some(trainer) => trainer.merge(model)?,
            None => self.trainer = Some(model.reopen()?),
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
    fn run(&self, args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let models = Models::read(&args.args[0], &self.cache.0)?.column(rows);
        let changed: ArrayRef = match self.change {
            Change::Subtract => {
                let parts = Models::read(&args.args[1], &self.cache.0)?.column(rows);
                change_each(&models, parts.of_rows().iter().copied(), |trainer, part| {
                    trainer.forget(&parts.distinct()[part as usize])
                })?
            }
            Change::Decay => {
                let factors = args.args[1].to_array(rows).map_err(super::from_datafusion)?;
                let factors = cast(&factors, &DataType::Float64)?;
                let bits =
                    factors.as_primitive::<Float64Type>().iter().map(|f| f.map(f64::to_bits));
                change_each(&models, bits, |trainer, bits| trainer.decay(f64::from_bits(bits)))?
            }
        };
        Ok(match constant {
            true => {
                let scalar = ScalarValue::try_from_array(&changed, 0);
                ColumnarValue::Scalar(scalar.map_err(super::from_datafusion)?)
            }
            false => ColumnarValue::Array(changed),
        })
    }
}

/// Each model changed by what stands beside it. A model and a change that are met again share the
/// bytes of the first.
fn change_each<C: Copy + Eq + std::hash::Hash>(
    models: &ModelColumn,
    changes: impl Iterator<Item = Option<C>>,
    change: impl Fn(&mut Trainer, C) -> Result<()>,
) -> Result<ArrayRef> {
    let mut out = BinaryViewBuilder::with_capacity(models.of_rows().len());
    let mut made: HashMap<(u32, C), Option<(u32, u32)>, FixedState> = HashMap::default();
    for pair in models.of_rows().iter().zip(changes) {
        let (Some(model), Some(with)) = pair else {
            out.append_null();
            continue;
        };
        let place = match made.entry((*model, with)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let bytes = changed(&models.distinct()[*model as usize], |t| change(t, with))?;
                let place = bytes.map(|bytes| {
                    let len = bytes.len() as u32;
                    (out.append_block(bytes.into()), len)
                });
                *new.insert(place)
            }
        };
        match place {
            Some((block, len)) => out.try_append_view(block, 0, len)?,
            None => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
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
        self.run(&args).map_err(|e| to_datafusion(e.context(self.call.name)))
    }
}
