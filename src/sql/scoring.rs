//! Functions of a model and features: `predict_labels`, `score_labels`, `top_labels`,
//! `predict_sets`.

use super::cache::{ModelCache, SharedCache};
use super::call::{Call, as_called};
use super::error::to_datafusion;
use super::model_argument::{self, Models};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::models::{Model, scored_label_type};
use datafusion::arrow::array::{
    Array, ArrayRef, Float64Array, ListArray, StructArray, UInt32Array, new_null_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{concat, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Volatility,
};
use std::sync::Arc;

/// What is asked of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Task {
    Predict,
    Score,
    Top,
    Sets,
}

impl Task {
    const ALL: [Task; 4] = [Task::Predict, Task::Score, Task::Top, Task::Sets];

    fn name(self) -> &'static str {
        match self {
            Task::Predict => "predict_labels",
            Task::Score => "score_labels",
            Task::Top => "top_labels",
            Task::Sets => "predict_sets",
        }
    }

    fn first_feature(self) -> usize {
        if matches!(self, Task::Top | Task::Sets) { 2 } else { 1 }
    }

    fn item(self) -> DataType {
        match self {
            Task::Predict | Task::Top => DataType::Utf8,
            Task::Score => scored_label_type(),
            Task::Sets => ranked_set_type(),
        }
    }

    fn return_type(self) -> DataType {
        DataType::List(Arc::new(Field::new_list_field(self.item(), true)))
    }

    fn run(self, model: &Model, features: &ArrayRef, k: usize) -> Result<ListArray> {
        match self {
            Task::Predict => model.predict(features),
            Task::Score => model.score(features),
            Task::Top => model.top(features, k),
            Task::Sets => ranked_sets(model, &model.read(features)?, k),
        }
    }

    fn run_rows(self, model: &Model, rows: &Rows, k: usize) -> Result<ListArray> {
        match self {
            Task::Predict => model.predict_rows(rows),
            Task::Score => model.score_rows(rows),
            Task::Top => model.top_rows(rows, k),
            Task::Sets => ranked_sets(model, rows, k),
        }
    }
}

fn ranked_set_type() -> DataType {
    let labels = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    DataType::Struct(Fields::from(vec![
        Field::new("labels", labels, false),
        Field::new("probability", DataType::Float64, false),
    ]))
}

fn ranked_sets(model: &Model, rows: &Rows, k: usize) -> Result<ListArray> {
    let ranked = model.rank_sets_rows(rows, k)?;
    let offsets = OffsetBuffer::from_lengths(ranked.iter().map(Vec::len));
    let labels = model.name_lists(ranked.iter().flatten().map(|set| &set.labels));
    let probabilities =
        Float64Array::from_iter_values(ranked.iter().flatten().map(|set| set.probability));
    let DataType::Struct(fields) = ranked_set_type() else {
        return Err(Error::internal("ranked sets are structs"));
    };
    let values =
        StructArray::try_new(fields, vec![Arc::new(labels), Arc::new(probabilities)], None)?;
    let item = Arc::new(Field::new_list_field(ranked_set_type(), true));
    Ok(ListArray::try_new(item, offsets, Arc::new(values), None)?)
}

/// One of the scoring functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Scoring {
    task: Task,
    call: Call,
    cache: SharedCache,
}

/// All scoring functions.
pub(super) fn functions(cache: &Arc<ModelCache>) -> impl Iterator<Item = Scoring> {
    let cache = SharedCache(Arc::clone(cache));
    // Stable: a model named by its file may change between queries.
    Task::ALL.into_iter().map(move |task| Scoring {
        task,
        call: Call::new(task.name(), Volatility::Stable),
        cache: cache.clone(),
    })
}

impl Scoring {
    /// Checks what can be checked before there are rows.
    fn plan(&self, args: &ReturnFieldArgs) -> Result<()> {
        let first = self.task.first_feature();
        self.call.check_count(args.arg_fields.len())?;
        model_argument::check_type(&self.call, args.arg_fields[0].data_type())?;
        if first == 2 {
            let k = args.arg_fields[1].data_type();
            if !k.is_integer() && k != &DataType::Null {
                let problem = format!("the second argument is a whole number, not {k}");
                return Err(self.call.misuse(problem));
            }
        }
        // A constant model tells now whether the features fit.
        if let [model, ..] = args.scalar_arguments
            && let Some(model) = model.filter(|m| !m.is_null())
            && let Some(model) = model_argument::check(model, &self.cache.0)
                .map_err(|e| e.context(self.call.name))?
            && args.arg_fields.len() == first + 1
            && crate::models::holds_features(args.arg_fields[first].data_type())
        {
            model
                .check_features(args.arg_fields[first].data_type())
                .map_err(|e| e.context(self.call.name))?;
        }
        Ok(())
    }

    fn run(&self, args: ScalarFunctionArgs) -> Result<ArrayRef> {
        let first = self.task.first_feature();
        if args.args.len() != first + 1 {
            return Err(Error::internal(
                "features were not packed; call labelflow::sql::register_all on the session",
            ));
        }
        let k = match args.args.get(1).filter(|_| first == 2) {
            None => 0,
            Some(k) => whole_number(k)?,
        };
        let rows = args.number_rows;
        let models = Models::read(&args.args[0], &self.cache.0)?;
        if let Models::One(None) = models {
            return Ok(new_null_array(&self.task.return_type(), rows));
        }
        let features = args.args[first].to_array(rows).map_err(super::from_datafusion)?;
        match models {
            Models::Rows(models) => self.run_many(&models, &features, k),
            Models::One(Some(model)) => Ok(Arc::new(self.task.run(&model, &features, k)?)),
            Models::One(None) => Err(Error::internal("a model that is NULL scores nothing")),
        }
    }

    /// Scores each row with its own model. Models that read features alike share one reading of the
    /// batch.
    fn run_many(
        &self,
        models: &[Option<Arc<Model>>],
        features: &ArrayRef,
        k: usize,
    ) -> Result<ArrayRef> {
        let mut parts: Vec<ArrayRef> = vec![new_null_array(&self.task.return_type(), 1)];
        let mut place = vec![0u32; models.len()];
        let mut next = 1;
        let mut read: Option<(&Arc<Model>, Rows)> = None;
        let mut selected = Rows::default();
        for (model, wanted) in Models::by_model(models) {
            for &row in &wanted {
                place[row as usize] = next;
                next += 1;
            }
            let shared = match &read {
                Some((first, _)) => model.reads_like(first),
                None => {
                    read = Some((model, model.read(features)?));
                    true
                }
            };
            let part = match &read {
                Some((_, rows)) if shared => {
                    rows.select_features(&wanted, &mut selected);
                    self.task.run_rows(model, &selected, k)?
                }
                _ => {
                    let own = take(features, &UInt32Array::from(wanted), None)?;
                    self.task.run(model, &own, k)?
                }
            };
            parts.push(Arc::new(part));
        }
        let parts: Vec<&dyn Array> = parts.iter().map(|p| p.as_ref()).collect();
        Ok(take(&concat(&parts)?, &UInt32Array::from(place), None)?)
    }
}

fn whole_number(value: &ColumnarValue) -> Result<usize> {
    let number = match value {
        ColumnarValue::Scalar(scalar) => match scalar.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(number)) => number,
            _ => None,
        },
        ColumnarValue::Array(_) => None,
    };
    number
        .and_then(|n| usize::try_from(n).ok())
        .ok_or_else(|| Error::usage("the second argument must be one whole number from 0"))
}

impl ScalarUDFImpl for Scoring {
    as_called!();

    fn return_type(&self, _types: &[DataType]) -> DataFusionResult<DataType> {
        Ok(self.task.return_type())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DataFusionResult<FieldRef> {
        self.plan(&args).map_err(to_datafusion)?;
        Ok(Arc::new(Field::new(self.task.name(), self.task.return_type(), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        self.run(args)
            .map(ColumnarValue::Array)
            .map_err(|e| to_datafusion(e.context(self.task.name())))
    }
}
