//! Functions of a model and features: `predict_labels`, `score_labels`, `top_labels`,
//! `predict_sets`.

use super::cache::{ModelCache, SharedCache, is_url};
use super::call::{Call, as_called};
use super::error::to_datafusion;
use super::model_argument::{self, ModelColumn, Models};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::math::FixedState;
use crate::models::{LabelLists, Model, holds_features};
use datafusion::arrow::array::{Array, ArrayRef, ListArray, UInt32Array, new_null_array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl,
    Volatility,
};
use std::collections::HashMap;
use std::sync::Arc;

/// The most sets that are ranked, as with the parameter `sets`.
const MAX_SETS: usize = 1000;

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

    fn return_type(self) -> DataType {
        let item = match self {
            Task::Predict | Task::Top => LabelLists::name_type(),
            Task::Score => LabelLists::scored_type(),
            Task::Sets => LabelLists::set_type(),
        };
        DataType::List(Arc::new(Field::new_list_field(item, true)))
    }

    /// Adds the answers of `model` for rows that were read for it.
    fn answer(self, model: &Model, rows: &Rows, k: usize, out: &mut LabelLists) -> Result<()> {
        match self {
            Task::Predict => model.predict_rows(rows, out),
            Task::Score => model.score_rows(rows, out),
            Task::Top => model.top_rows(rows, k, out),
            Task::Sets => model.rank_sets_rows(rows, k, out),
        }
    }

    fn finish(self, lists: LabelLists) -> Result<ListArray> {
        match self {
            Task::Predict | Task::Top => lists.names(),
            Task::Score => lists.scored(),
            Task::Sets => lists.ranked_sets(),
        }
    }
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
            if let Some(Some(k)) = args.scalar_arguments.get(1) {
                self.k(k)?;
            }
        }
        let model = args.scalar_arguments.first().copied().flatten();
        let Some(model) = model.filter(|m| !m.is_null()) else { return Ok(()) };
        // An object is looked at once for a query: by the analyzer, which checks it too.
        if model.try_as_str().flatten().is_some_and(is_url) {
            return Ok(());
        }
        let packed = args.arg_fields.len() == first + 1;
        let features = args.arg_fields.get(first).filter(|_| packed);
        self.check_model(model, features.map(|f| f.data_type()))
    }

    /// Whether a constant model can do what is asked, and whether the features fit.
    fn check_model(&self, model: &ScalarValue, features: Option<&DataType>) -> Result<()> {
        let Some(model) = model_argument::one(model, &self.cache.0)? else { return Ok(()) };
        let can = (model.algorithm().capabilities)(model.spec());
        if self.task == Task::Sets && !can.ranks_sets {
            return Err(Error::unsupported(format!(
                "`{}` does not rank label sets: use predict_labels or score_labels",
                model.algorithm().name
            )));
        }
        match features.filter(|data_type| holds_features(data_type)) {
            Some(data_type) => model.check_features(data_type),
            None => Ok(()),
        }
    }

    /// As the planner does with other constants: whether the model at a URL fits its features.
    pub(super) fn check_object(&self, arguments: &[Expr], schema: &DFSchema) -> Result<()> {
        let Some(Expr::Literal(model, _)) = arguments.first() else { return Ok(()) };
        if !model.try_as_str().flatten().is_some_and(is_url) {
            return Ok(());
        }
        let features = arguments.get(self.task.first_feature()).map(|f| f.get_type(schema));
        let features = features.and_then(|data_type| data_type.ok());
        self.check_model(model, features.as_ref()).map_err(|e| e.context(self.call.name))
    }

    /// How many are asked for.
    fn k(&self, k: &ScalarValue) -> Result<usize> {
        let number = match k.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(number)) => number.and_then(|n| usize::try_from(n).ok()),
            _ => None,
        };
        match number {
            Some(k) if self.task == Task::Sets && k > MAX_SETS => {
                Err(Error::usage(format!("{k} sets are asked for: ask for at most {MAX_SETS}")))
            }
            Some(k) => Ok(k),
            None => Err(Error::usage("the second argument must be one whole number from 0")),
        }
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
            Some(ColumnarValue::Scalar(k)) => self.k(k)?,
            Some(ColumnarValue::Array(_)) => self.k(&ScalarValue::Null)?,
        };
        let rows = args.number_rows;
        let models = Models::read(&args.args[0], &self.cache.0)?;
        if let Models::One(None) = models {
            return Ok(new_null_array(&self.task.return_type(), rows));
        }
        let features = args.args[first].to_array(rows).map_err(super::from_datafusion)?;
        match models {
            Models::Rows(models) => self.run_many(&models, &features, k),
            Models::One(Some(model)) => {
                let mut lists = LabelLists::default();
                model.with_rows(&features, |r| self.task.answer(&model, r, k, &mut lists))?;
                Ok(Arc::new(self.task.finish(lists)?))
            }
            Models::One(None) => Err(Error::internal("a model that is NULL scores nothing")),
        }
    }

    /// Scores each row with its own model: the rows of a model together, then all in their order.
    /// Models that read features alike share one reading of their rows.
    fn run_many(&self, models: &ModelColumn, features: &ArrayRef, k: usize) -> Result<ArrayRef> {
        let readings = models.distinct().iter().map(|m| m.reading());
        let mut of_reading: HashMap<u128, Vec<usize>, FixedState> = HashMap::default();
        readings
            .enumerate()
            .for_each(|(m, reading)| of_reading.entry(reading).or_default().push(m));
        let mut alike: Vec<Vec<usize>> = of_reading.into_values().collect();
        alike.sort_unstable();
        let (rows, ends) = models.rows_by_model();
        let mut order = Vec::with_capacity(rows.len());
        let mut lists = LabelLists::default();
        let mut own = Rows::default();
        for alike in alike {
            let first = order.len();
            let mut bounds = vec![0];
            for &m in &alike {
                let start = if m == 0 { 0 } else { ends[m - 1] };
                order.extend_from_slice(&rows[start..ends[m]]);
                bounds.push(order.len() - first);
            }
            let reader = &models.distinct()[alike[0]];
            reader.with_rows(&in_order(features, &order[first..])?, |all| {
                for (&m, ends) in alike.iter().zip(bounds.windows(2)) {
                    all.slice_features(ends[0]..ends[1], &mut own);
                    self.task.answer(&models.distinct()[m], &own, k, &mut lists)?;
                }
                Ok(())
            })?;
        }
        let lists = self.task.finish(lists)?;
        if order.len() == features.len() && order.is_sorted() {
            return Ok(Arc::new(lists));
        }
        let mut place = vec![None; features.len()];
        for (at, &row) in order.iter().enumerate() {
            place[row as usize] = Some(at as u32);
        }
        Ok(take(&lists, &UInt32Array::from(place), None)?)
    }
}

/// The rows `order` of `features`.
fn in_order(features: &ArrayRef, order: &[u32]) -> Result<ArrayRef> {
    if order.len() == features.len() && order.is_sorted() {
        return Ok(Arc::clone(features));
    }
    Ok(take(features, &UInt32Array::from(order.to_vec()), None)?)
}

impl ScalarUDFImpl for Scoring {
    as_called!();

    fn return_type(&self, _types: &[DataType]) -> DataFusionResult<DataType> {
        Ok(self.task.return_type())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DataFusionResult<FieldRef> {
        self.plan(&args).map_err(|e| to_datafusion(e.context(self.call.name)))?;
        Ok(Arc::new(Field::new(self.task.name(), self.task.return_type(), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        self.run(args)
            .map(ColumnarValue::Array)
            .map_err(|e| to_datafusion(e.context(self.task.name())))
    }
}
