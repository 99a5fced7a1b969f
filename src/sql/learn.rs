//! `learn_and_predict(spec, labels, features...) OVER (ORDER BY ...)`: test-then-train.
//!
//! The frame is read from the query by the analyzer ([`rows_before`]), which refuses frames that
//! would show a row its own labels, and handed on as a constant. The evaluator keeps what it has
//! learned, so DataFusion need not keep the rows of the frame: memory is that of the model.

use super::cache::{ModelCache, SharedCache};
use super::call::{Call, as_called};
use super::error::to_datafusion;
use super::label_lists;
use super::train::check_types;
use crate::error::{Error, Result};
use crate::models::Registry;
use crate::stream::{Forgetting, OnlineLearner, OnlineOptions, Span};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, UInt64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::expr::WindowFunctionParams;
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    Expr, LimitEffect, PartitionEvaluator, Volatility, WindowFrame, WindowFrameBound,
    WindowFrameUnits, WindowUDFImpl, lit,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use std::ops::Range;
use std::sync::Arc;

pub(super) const NAME: &str = "learn_and_predict";
const FRAME: &str = "learn_and_predict.frame";

/// How many rows before a row are known; `None` is all of them.
///
/// # Errors
///
/// No order; a frame that is not in rows, ends later than before the row, or starts after that.
pub(super) fn rows_before(params: &WindowFunctionParams) -> Result<Option<u64>> {
    if params.order_by.is_empty() {
        return Err(Error::usage("rows are learned in an order: write OVER (ORDER BY ...)"));
    }
    if params.filter.is_some() {
        return Err(Error::usage(
            "FILTER is not supported: make the labels of rows that are not to be learned NULL",
        ));
    }
    let frame = &params.window_frame;
    if is_default(frame) {
        return Ok(None);
    }
    let wrong = || {
        Err(Error::usage(
            "a row must not see its own labels: write ROWS BETWEEN n PRECEDING AND 1 PRECEDING, or \
             leave the frame out",
        ))
    };
    if frame.units != WindowFrameUnits::Rows || number(&frame.end_bound) != Some(Some(1)) {
        return wrong();
    }
    match number(&frame.start_bound) {
        Some(rows) if rows != Some(0) => Ok(rows),
        _ => wrong(),
    }
}

/// Whether this is the frame of an OVER that names none: up to the row and those equal to it.
fn is_default(frame: &WindowFrame) -> bool {
    frame.units == WindowFrameUnits::Range
        && number(&frame.start_bound) == Some(None)
        && matches!(frame.end_bound, WindowFrameBound::CurrentRow)
}

/// The number of rows of a bound that precedes, `Some(None)` when it is not bounded.
fn number(bound: &WindowFrameBound) -> Option<Option<u64>> {
    match bound {
        WindowFrameBound::Preceding(rows) if rows.is_null() => Some(None),
        WindowFrameBound::Preceding(rows) => match rows.cast_to(&DataType::UInt64) {
            Ok(ScalarValue::UInt64(rows)) => rows.map(Some),
            _ => None,
        },
        _ => None,
    }
}

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct LearnAndPredict {
    call: Call,
    cache: SharedCache,
}

impl LearnAndPredict {
    pub(super) fn new(cache: &Arc<ModelCache>) -> Self {
        let call = Call::new(NAME, Volatility::Immutable);
        LearnAndPredict { call, cache: SharedCache(Arc::clone(cache)) }
    }

    fn learner(&self, exprs: &[Arc<dyn PhysicalExpr>]) -> Result<OnlineLearner> {
        let constant = |i: usize| exprs.get(i).and_then(|e| e.downcast_ref::<Literal>());
        let spec = constant(0).and_then(|l| l.value().try_as_str()).flatten();
        let Some(spec) = spec else {
            return Err(self.call.misuse("the spec must be a constant text"));
        };
        let Some(ScalarValue::Struct(frame)) = constant(3).map(Literal::value) else {
            return Err(Error::internal(
                "the frame was not read; call labelflow::sql::register_all on the session",
            ));
        };
        let rows = frame.column(0).as_primitive::<UInt64Type>().iter().next().flatten();
        start(self.cache.0.registry(), spec, rows).map_err(|e| e.context(NAME))
    }
}

/// A learner that knows the last `rows` rows; `None` is all of them.
///
/// # Errors
///
/// Unknown algorithms and parameters; one that keeps the last rows by itself, in a frame.
pub(super) fn start(registry: &Registry, spec: &str, rows: Option<u64>) -> Result<OnlineLearner> {
    let forgetting = match rows {
        Some(rows) => Forgetting::Window { length: Span::Rows(rows) },
        None => Forgetting::Never,
    };
    let (algorithm, checked) = registry.resolve(spec)?;
    if rows.is_some() && (algorithm.start)(&checked)?.needs_order() {
        return Err(Error::usage(format!(
            "`{checked}` keeps the last rows by itself and cannot slide: leave the frame out, or \
             the parameter"
        )));
    }
    let options = OnlineOptions { forgetting, ..OnlineOptions::default() };
    OnlineLearner::try_new(registry, spec, options)
}

/// The frame as a constant among the arguments: a struct, which no user writes.
pub(super) fn frame(rows: Option<u64>) -> Result<Expr> {
    let rows: ArrayRef = Arc::new(UInt64Array::from(vec![rows]));
    let fields = Fields::from(vec![Field::new(FRAME, DataType::UInt64, true)]);
    let frame = StructArray::try_new(fields, vec![rows], None)?;
    Ok(lit(ScalarValue::Struct(Arc::new(frame))))
}

/// Whether an argument is a frame that was read.
pub(super) fn is_frame(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Struct(fields) if fields.len() == 1 && fields[0].name() == FRAME)
}

impl WindowUDFImpl for LearnAndPredict {
    as_called!();

    fn field(&self, args: WindowUDFFieldArgs) -> DataFusionResult<FieldRef> {
        let types: Vec<DataType> =
            args.input_fields().iter().map(|f| f.data_type().clone()).collect();
        check_types(&self.call, &types).map_err(to_datafusion)?;
        Ok(Arc::new(Field::new(args.name(), label_lists(), true)))
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs,
    ) -> DataFusionResult<Box<dyn PartitionEvaluator>> {
        let learner = self.learner(args.input_exprs()).map_err(to_datafusion)?;
        Ok(Box::new(Learning { learner, answers: None }))
    }

    fn limit_effect(&self, _args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        LimitEffect::None
    }
}

/// A partition: rows come in order and are learned as they pass.
#[derive(Debug)]
struct Learning {
    learner: OnlineLearner,
    /// The answers for the rows of the batch at hand that were not asked for yet, and how many of
    /// them were given.
    answers: Option<(ListArray, usize)>,
}

impl Learning {
    fn answer(&mut self, values: &[ArrayRef], start: usize, len: usize) -> Result<ListArray> {
        let (labels, features) = (values[1].slice(start, len), values[2].slice(start, len));
        let answers = self.learner.learn_and_predict(&labels, &features, None);
        Ok(answers.map_err(|e| e.context(NAME))?.predicted)
    }
}

impl PartitionEvaluator for Learning {
    /// All rows of the batch are answered and learned when the first is asked for.
    fn evaluate(
        &mut self,
        values: &[ArrayRef],
        range: &Range<usize>,
    ) -> DataFusionResult<ScalarValue> {
        let (answers, given) = match self.answers.take().filter(|(all, given)| *given < all.len()) {
            Some(left) => left,
            None => {
                let rows = values[1].len() - range.start;
                (self.answer(values, range.start, rows).map_err(to_datafusion)?, 0)
            }
        };
        let answer = ScalarValue::List(Arc::new(answers.slice(given, 1)));
        self.answers = Some((answers, given + 1));
        Ok(answer)
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], num_rows: usize) -> DataFusionResult<ArrayRef> {
        Ok(Arc::new(self.answer(values, 0, num_rows).map_err(to_datafusion)?))
    }

    fn get_range(&self, idx: usize, _n_rows: usize) -> DataFusionResult<Range<usize>> {
        Ok(idx..idx + 1)
    }

    fn is_causal(&self) -> bool {
        true
    }

    fn supports_bounded_execution(&self) -> bool {
        true
    }

    fn uses_window_frame(&self) -> bool {
        false
    }
}
