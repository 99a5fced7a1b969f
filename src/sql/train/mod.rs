//! `train_labels(spec, labels, features...)`: learning as an aggregate.
//!
//! A partial state is a model (its bytes) or rows. Rows are the smaller state where groups have few
//! of them, and the only one where DataFusion asks for one state per input row; they are learned
//! when states are merged.

mod batch;
mod column;
mod many;
mod one;
mod sorted;

use super::cache::{ModelCache, SharedCache};
use super::call::{Call, as_called};
use super::error::to_datafusion;
use super::weight::is_weight;
use crate::data::LabelReader;
use crate::error::{Error, Result};
use crate::models::{Algorithm, CheckedSpec, Model, Trainer};
use crate::store::ModelReader;
use batch::row_type;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, GroupsAccumulator, Volatility};
use datafusion::physical_expr::expressions::Literal;
use many::ManyModels;
use one::{OneModel, SlidingModel};
use std::sync::Arc;

/// The aggregate.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct TrainLabels {
    call: Call,
    cache: SharedCache,
}

impl TrainLabels {
    pub(super) fn new(cache: &Arc<ModelCache>) -> Self {
        let call = Call::new("train_labels", Volatility::Immutable);
        TrainLabels { call, cache: SharedCache(Arc::clone(cache)) }
    }

    fn plan(&self, args: &AccumulatorArgs) -> Result<Plan> {
        let Some(row) = row_type(args.expr_fields) else {
            return Err(Error::internal(
                "features were not packed; call labelflow::sql::register_all on the session",
            ));
        };
        let spec = args.exprs[0].downcast_ref::<Literal>().and_then(|l| l.value().try_as_str());
        let Some(spec) = spec.flatten() else {
            return Err(self.call.misuse("the spec must be a constant text"));
        };
        let (algorithm, spec) =
            self.cache.0.registry().resolve(spec).map_err(|e| e.context(self.call.name))?;
        Ok(Plan { algorithm, spec, row, cache: Arc::clone(&self.cache.0) })
    }
}

/// Checks the types of the arguments of a function that learns.
pub(super) fn check_types(call: &Call, types: &[DataType]) -> Result<()> {
    call.check_count(types.len())?;
    let is_text = |t: &DataType| t.is_string() || t.is_null();
    match types {
        [spec, ..] if !is_text(spec) => {
            Err(call.misuse(format!("the first argument is the algorithm as text, not {spec}")))
        }
        [_, labels, ..] if !LabelReader::accepts(labels) => Err(call.misuse(format!(
            "labels must be a list of texts or integers, or a struct of 0/1 columns, not {}",
            LabelReader::refused(labels)
        ))),
        [_, _, rest @ ..] if rest.iter().all(is_weight) => Err(call.misuse("there is no feature")),
        _ => Ok(()),
    }
}

fn rows_type(row: &Fields) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Struct(row.clone()), true)))
}

impl AggregateUDFImpl for TrainLabels {
    as_called!();

    fn return_type(&self, types: &[DataType]) -> DataFusionResult<DataType> {
        check_types(&self.call, types).map_err(to_datafusion)?;
        Ok(DataType::BinaryView)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> DataFusionResult<Vec<FieldRef>> {
        let row = row_type(args.input_fields).unwrap_or_else(Fields::empty);
        Ok(vec![
            Arc::new(Field::new(format_state_name(args.name, "model"), DataType::BinaryView, true)),
            Arc::new(Field::new(format_state_name(args.name, "rows"), rows_type(&row), true)),
        ])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> DataFusionResult<Box<dyn Accumulator>> {
        let one = self.plan(&args).and_then(OneModel::try_new).map_err(to_datafusion)?;
        Ok(Box::new(one))
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> DataFusionResult<Box<dyn Accumulator>> {
        let plan = self.plan(&args).map_err(to_datafusion)?;
        Ok(Box::new(SlidingModel::new(plan)))
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> DataFusionResult<Box<dyn GroupsAccumulator>> {
        let many = self.plan(&args).and_then(ManyModels::try_new).map_err(to_datafusion)?;
        Ok(Box::new(many))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// What all groups share.
#[derive(Debug, Clone)]
struct Plan {
    algorithm: Algorithm,
    spec: CheckedSpec,
    /// The fields of a row kept as a state.
    row: Fields,
    cache: Arc<ModelCache>,
}

impl Plan {
    fn trainer(&self) -> Result<Trainer> {
        Trainer::start(self.algorithm, self.spec.clone())
    }

    fn merge_bytes(
        &self,
        trainer: &mut Trainer,
        bytes: &[u8],
        reader: &mut ModelReader,
    ) -> Result<()> {
        trainer.merge(&reader.read(bytes, self.cache.registry())?)
    }
}

/// What a trainer becomes: the state partitions hand on, or the model a query returns.
type Ending = fn(&Trainer) -> Result<Model>;

/// An error on its way out, with the name of the function.
fn outward(error: Error) -> datafusion::error::DataFusionError {
    to_datafusion(error.context("train_labels"))
}
