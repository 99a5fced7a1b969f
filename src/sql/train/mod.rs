//! `train_labels(spec, labels, features...)`: learning as an aggregate.
//!
//! A partial state is a model (its bytes) or, where DataFusion asks for one state per input row
//! (many groups, few rows each), the row itself: tiny, and learned when states are merged.

use super::cache::{ModelCache, SharedCache};
use super::error::to_datafusion;
use crate::data::LabelReader;
use crate::error::{Error, Result};
use crate::models::{Algorithm, CheckedSpec, Model, Trainer};
use crate::store;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewBuilder, BooleanArray, ListArray, StructArray, UInt32Array,
    new_null_array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use datafusion::physical_expr::expressions::Literal;
use std::sync::Arc;

const NAME: &str = "train_labels";
const USAGE: &str = "write train_labels('algorithm', labels, features...)";

/// The aggregate.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct TrainLabels {
    signature: Signature,
    cache: SharedCache,
}

impl TrainLabels {
    pub(super) fn new(cache: &Arc<ModelCache>) -> Self {
        let signature = Signature::variadic_any(Volatility::Immutable);
        TrainLabels { signature, cache: SharedCache(Arc::clone(cache)) }
    }

    fn plan(&self, args: &AccumulatorArgs) -> Result<Plan> {
        if args.is_distinct {
            return Err(Error::usage("DISTINCT is not supported: remove duplicates in a subquery"));
        }
        let [_, labels, features] = args.expr_fields else {
            return Err(Error::internal(
                "features were not packed; call labelflow::sql::register_all on the session",
            ));
        };
        let spec = args.exprs[0].downcast_ref::<Literal>().and_then(|l| l.value().try_as_str());
        let Some(spec) = spec.flatten() else {
            return Err(Error::usage(format!("the spec must be a constant text; {USAGE}")));
        };
        let (algorithm, spec) = self.cache.0.registry().resolve(spec)?;
        let row = row_type(labels, features);
        Ok(Plan { algorithm, spec, row, cache: Arc::clone(&self.cache.0) })
    }
}

/// The type of one input row kept as a state.
fn row_type(labels: &Field, features: &Field) -> DataType {
    DataType::Struct(Fields::from(vec![
        Field::new("labels", labels.data_type().clone(), true),
        Field::new("features", features.data_type().clone(), true),
    ]))
}

fn rows_type(row: &DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(row.clone(), true)))
}

impl AggregateUDFImpl for TrainLabels {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> DataFusionResult<DataType> {
        let is_text = |t: &DataType| t.is_string() || t == &DataType::Null;
        let error = match types {
            [spec, ..] if !is_text(spec) => {
                Some(format!("the first argument is the algorithm as text, not {spec}; {USAGE}"))
            }
            [_, labels, ..] if !LabelReader::accepts(labels) => Some(format!(
                "labels must be a list of texts or integers, or a struct of 0/1 columns, not {labels}; {USAGE}"
            )),
            [_, _, _, ..] => None,
            _ => Some(format!("there is no feature; {USAGE}")),
        };
        match error {
            Some(text) => Err(to_datafusion(Error::usage(text).context(NAME))),
            None => Ok(DataType::BinaryView),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> DataFusionResult<Vec<FieldRef>> {
        let row = match args.input_fields {
            [_, labels, features] => row_type(labels, features),
            _ => DataType::Null,
        };
        Ok(vec![
            Arc::new(Field::new(format_state_name(args.name, "model"), DataType::BinaryView, true)),
            Arc::new(Field::new(format_state_name(args.name, "rows"), rows_type(&row), true)),
        ])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> DataFusionResult<Box<dyn Accumulator>> {
        let plan = self.plan(&args).map_err(|e| to_datafusion(e.context(NAME)))?;
        let trainer = plan.trainer().map_err(to_datafusion)?;
        Ok(Box::new(OneModel { plan, trainer }))
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> DataFusionResult<Box<dyn GroupsAccumulator>> {
        let plan = self.plan(&args).map_err(|e| to_datafusion(e.context(NAME)))?;
        Ok(Box::new(ManyModels { plan, trainers: Vec::new(), bytes: 0 }))
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
    row: DataType,
    cache: Arc<ModelCache>,
}

impl Plan {
    fn trainer(&self) -> Result<Trainer> {
        Trainer::start(self.algorithm, self.spec.clone())
    }

    fn merge_bytes(&self, trainer: &mut Trainer, bytes: &[u8]) -> Result<()> {
        trainer.merge(&store::from_bytes(bytes, self.cache.registry())?)
    }
}

/// What a trainer becomes: the state partitions hand on, or the model a query returns.
type Ending = fn(&Trainer) -> Result<Model>;

/// The bytes of what `trainer` has learned, NULL when nothing.
fn model_bytes(trainer: &Trainer, ending: Ending) -> Result<Option<Vec<u8>>> {
    if trainer.rows() == 0 {
        return Ok(None);
    }
    store::to_bytes(&ending(trainer)?).map(Some)
}

/// The labels and features inside a column of kept rows, and the group of each.
fn kept_rows(lists: &ListArray, groups: &[usize]) -> Option<(ArrayRef, ArrayRef, Vec<usize>)> {
    if lists.null_count() == lists.len() {
        return None;
    }
    let rows = lists.values().as_struct();
    let offsets = lists.value_offsets();
    let mut group_of = Vec::new();
    let mut at = Vec::new();
    for i in (0..lists.len()).filter(|&i| lists.is_valid(i)) {
        for row in offsets[i]..offsets[i + 1] {
            at.push(row as u32);
            group_of.push(groups[i]);
        }
    }
    let at = UInt32Array::from(at);
    let labels = take(rows.column(0), &at, None).ok()?;
    let features = take(rows.column(1), &at, None).ok()?;
    Some((labels, features, group_of))
}

/// One model over all rows.
#[derive(Debug)]
struct OneModel {
    plan: Plan,
    trainer: Trainer,
}

impl Accumulator for OneModel {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DataFusionResult<()> {
        self.trainer.observe(&values[1], &values[2]).map_err(|e| to_datafusion(e.context(NAME)))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DataFusionResult<()> {
        let models = states[0].as_binary_view();
        for i in (0..models.len()).filter(|&i| models.is_valid(i)) {
            self.plan.merge_bytes(&mut self.trainer, models.value(i)).map_err(to_datafusion)?;
        }
        let zeros = vec![0; states[1].len()];
        if let Some((labels, features, _)) = kept_rows(states[1].as_list(), &zeros) {
            self.trainer.observe(&labels, &features).map_err(to_datafusion)?;
        }
        Ok(())
    }

    fn state(&mut self) -> DataFusionResult<Vec<ScalarValue>> {
        let model = model_bytes(&self.trainer, Trainer::state).map_err(to_datafusion)?;
        let rows = ScalarValue::try_new_null(&rows_type(&self.plan.row))?;
        Ok(vec![ScalarValue::BinaryView(model), rows])
    }

    fn evaluate(&mut self) -> DataFusionResult<ScalarValue> {
        let model = model_bytes(&self.trainer, Trainer::finish).map_err(to_datafusion)?;
        Ok(ScalarValue::BinaryView(model))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.trainer.heap_size()
    }
}

/// One model per group.
struct ManyModels {
    plan: Plan,
    trainers: Vec<Option<Box<Trainer>>>,
    bytes: usize,
}

impl ManyModels {
    fn learn(
        &mut self,
        labels: &ArrayRef,
        features: &ArrayRef,
        rows: Vec<(usize, u32)>,
    ) -> Result<()> {
        for run in rows.chunk_by(|a, b| a.0 == b.0) {
            let at = UInt32Array::from_iter_values(run.iter().map(|r| r.1));
            let labels = take(labels, &at, None)?;
            let features = take(features, &at, None)?;
            self.with(run[0].0, |_, trainer| trainer.observe(&labels, &features))?;
        }
        Ok(())
    }

    /// Changes the trainer of `group` and keeps count of its bytes.
    fn with(
        &mut self,
        group: usize,
        change: impl FnOnce(&Plan, &mut Trainer) -> Result<()>,
    ) -> Result<()> {
        if self.trainers[group].is_none() {
            self.trainers[group] = Some(Box::new(self.plan.trainer()?));
        }
        if let Some(trainer) = &mut self.trainers[group] {
            let before = trainer.heap_size();
            let done = change(&self.plan, trainer);
            self.bytes = (self.bytes + trainer.heap_size()).saturating_sub(before);
            done?;
        }
        Ok(())
    }

    fn take(&mut self, emit: EmitTo, ending: Ending) -> Result<ArrayRef> {
        let taken = emit.take_needed(&mut self.trainers);
        let mut out = BinaryViewBuilder::with_capacity(taken.len());
        for trainer in taken {
            match &trainer {
                Some(trainer) => {
                    self.bytes = self.bytes.saturating_sub(trainer.heap_size());
                    out.append_option(model_bytes(trainer, ending)?);
                }
                None => out.append_null(),
            }
        }
        Ok(Arc::new(out.finish()))
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let models = states[0].as_binary_view();
        for i in (0..models.len()).filter(|&i| models.is_valid(i)) {
            self.with(groups[i], |plan, trainer| plan.merge_bytes(trainer, models.value(i)))?;
        }
        if let Some((labels, features, group_of)) = kept_rows(states[1].as_list(), groups) {
            self.learn(&labels, &features, sorted_rows(&group_of, None))?;
        }
        Ok(())
    }
}

/// (group, row) of the rows that pass the filter, group by group.
fn sorted_rows(groups: &[usize], filter: Option<&BooleanArray>) -> Vec<(usize, u32)> {
    let passes = |i: usize| filter.is_none_or(|f| f.is_valid(i) && f.value(i));
    let rows = groups.iter().enumerate().filter(|(i, _)| passes(*i));
    let mut rows: Vec<(usize, u32)> = rows.map(|(i, &g)| (g, i as u32)).collect();
    rows.sort_unstable();
    rows
}

impl GroupsAccumulator for ManyModels {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> DataFusionResult<()> {
        self.trainers.resize_with(total_num_groups, || None);
        self.learn(&values[1], &values[2], sorted_rows(group_indices, filter))
            .map_err(|e| to_datafusion(e.context(NAME)))
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> DataFusionResult<()> {
        self.trainers.resize_with(total_num_groups, || None);
        self.merge(values, group_indices).map_err(|e| to_datafusion(e.context(NAME)))
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> DataFusionResult<ArrayRef> {
        self.take(emit_to, Trainer::finish).map_err(to_datafusion)
    }

    fn state(&mut self, emit_to: EmitTo) -> DataFusionResult<Vec<ArrayRef>> {
        let models = self.take(emit_to, Trainer::state).map_err(to_datafusion)?;
        let rows = new_null_array(&rows_type(&self.plan.row), models.len());
        Ok(vec![models, rows])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> DataFusionResult<Vec<ArrayRef>> {
        let len = values[1].len();
        let DataType::Struct(fields) = &self.plan.row else {
            return Err(to_datafusion(Error::internal("rows are structs")));
        };
        let rows = vec![Arc::clone(&values[1]), Arc::clone(&values[2])];
        let rows = StructArray::try_new(fields.clone(), rows, None)?;
        let kept =
            filter.map(|f| NullBuffer::from_iter((0..len).map(|i| f.is_valid(i) && f.value(i))));
        let item = Arc::new(Field::new_list_field(self.plan.row.clone(), true));
        let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(1, len));
        let lists = ListArray::try_new(item, offsets, Arc::new(rows), kept)?;
        Ok(vec![new_null_array(&DataType::BinaryView, len), Arc::new(lists)])
    }

    fn size(&self) -> usize {
        self.bytes + self.trainers.capacity() * size_of::<Option<Box<Trainer>>>()
    }
}
