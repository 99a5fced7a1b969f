//! Metrics of label sets as aggregates: `hamming_score(truth, predicted[, label_count])` and the like,
//! and `label_report(truth, predicted)`.

use super::call::{Call, as_called, metric_name};
use super::error::to_datafusion;
use super::label_lists;
use crate::data::{LabelId, LabelReader, LabelSets, Vocabulary};
use crate::error::{Error, Result};
use crate::metrics::{Metric, SetMetrics};
use crate::stats::State;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, ListArray, ListBuilder, StringArray, StringBuilder,
    StructArray, UInt32Array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Volatility};
use std::sync::Arc;

/// One metric, or the report.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct MetricFunction {
    metric: Option<Metric>,
    call: Call,
}

/// All metric functions.
pub(super) fn functions() -> impl Iterator<Item = MetricFunction> {
    let metrics = Metric::ALL.iter().copied().filter(|m| !m.of_scores()).map(Some);
    metrics.chain([None]).map(|metric| MetricFunction {
        metric,
        call: Call::new(metric.map_or("label_report", metric_name), Volatility::Immutable),
    })
}

/// Checks the arguments of a metric: how many, labels first, a whole number third.
pub(super) fn check_types(call: &Call, types: &[DataType]) -> Result<()> {
    call.check_count(types.len())?;
    match types {
        [truth, ..] if !LabelReader::accepts(truth) => Err(call.misuse(format!(
            "truth must be a list of labels, or a struct of 0/1 columns, not {}",
            LabelReader::refused(truth)
        ))),
        [_, _, count] if !count.is_integer() && count != &DataType::Null => {
            Err(call.misuse(format!("the third argument is the number of labels, not {count}")))
        }
        _ => Ok(()),
    }
}

fn report_item() -> DataType {
    let count = |name: &str| Field::new(name, DataType::Int64, false);
    DataType::Struct(Fields::from(vec![
        Field::new("label", DataType::Utf8, false),
        count("true_positive"),
        count("false_positive"),
        count("false_negative"),
    ]))
}

fn state_type() -> Result<DataType> {
    Ok(SetMetrics::default().encode().to_array()?.data_type().clone())
}

impl AggregateUDFImpl for MetricFunction {
    as_called!();

    fn return_type(&self, types: &[DataType]) -> DataFusionResult<DataType> {
        check_types(&self.call, types).map_err(to_datafusion)?;
        if !LabelReader::accepts(&types[1]) {
            return Err(to_datafusion(self.call.misuse(format!(
                "predicted must be a list of labels, or a struct of 0/1 columns, not {}",
                LabelReader::refused(&types[1])
            ))));
        }
        Ok(match self.metric {
            Some(_) => DataType::Float64,
            None => DataType::List(Arc::new(Field::new_list_field(report_item(), true))),
        })
    }

    fn state_fields(&self, args: StateFieldsArgs) -> DataFusionResult<Vec<FieldRef>> {
        let field = |part: &str, data_type: DataType| -> FieldRef {
            Arc::new(Field::new(format_state_name(args.name, part), data_type, true))
        };
        Ok(vec![
            field("labels", label_lists()),
            field("state", state_type().map_err(to_datafusion)?),
            field("label_count", DataType::Int64),
        ])
    }

    fn accumulator(&self, _args: AccumulatorArgs) -> DataFusionResult<Box<dyn Accumulator>> {
        let (metric, name) = (self.metric, self.call.name);
        Ok(Box::new(MetricState { metric, name, ..MetricState::default() }))
    }
}

/// The arguments in the rows where the first two are known: truth, what it is compared with, and the
/// third if there is one. `None` when one of them is never known.
pub(super) fn compared(
    values: &[ArrayRef],
) -> Result<Option<(ArrayRef, ArrayRef, Option<ArrayRef>)>> {
    let (truth, other) = (&values[0], &values[1]);
    if truth.data_type() == &DataType::Null || other.data_type() == &DataType::Null {
        return Ok(None);
    }
    // A set of 0/1 columns is unlabelled where one of them is NULL: in lists that can be seen.
    let lists = |array: &ArrayRef| match LabelReader::accepts(array.data_type()) {
        true => LabelReader::lists(array),
        false => Ok(Arc::clone(array)),
    };
    let (truth, other) = (&lists(truth)?, &lists(other)?);
    let both = NullBuffer::union(truth.nulls(), other.nulls());
    let Some(nulls) = both.filter(|n| n.null_count() > 0) else {
        return Ok(Some((Arc::clone(truth), Arc::clone(other), values.get(2).cloned())));
    };
    let rows = (0..nulls.len()).filter(|&i| nulls.is_valid(i)).map(|i| i as u32);
    let rows = UInt32Array::from_iter_values(rows);
    let third = values.get(2).map(|third| take(third, &rows, None)).transpose()?;
    Ok(Some((take(truth, &rows, None)?, take(other, &rows, None)?, third)))
}

/// The state in row `i` of a column of states.
pub(super) fn one_row(states: &StructArray, i: usize) -> Result<State> {
    let row = UInt32Array::from(vec![i as u32]);
    let columns = states.columns().iter().map(|c| take(c, &row, None));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    State::try_from_array(&StructArray::try_new(states.fields().clone(), columns, None)?)
}

#[derive(Debug, Default)]
struct MetricState {
    metric: Option<Metric>,
    /// Of the function.
    name: &'static str,
    labels: Vocabulary<LabelId>,
    metrics: SetMetrics,
    label_count: Option<i64>,
}

impl MetricState {
    fn observe(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some((truth, predicted, counts)) = compared(values)? else { return Ok(()) };
        let (mut a, mut b) = (LabelSets::default(), LabelSets::default());
        let labels = &mut self.labels;
        LabelReader::read(&truth, &mut a, |name| Ok(Some(labels.intern(name))))?;
        LabelReader::read(&predicted, &mut b, |name| Ok(Some(labels.intern(name))))?;
        self.metrics.observe_sets(&a, &b)?;
        counts.map_or(Ok(()), |counts| self.count_labels(&counts))
    }

    /// Takes note of how many labels there are, which is the same in all rows.
    fn count_labels(&mut self, counts: &ArrayRef) -> Result<()> {
        let counts = cast(counts, &DataType::Int64)?;
        for count in counts.as_primitive::<Int64Type>().iter().flatten() {
            let known = *self.label_count.get_or_insert(count);
            if known != count {
                return Err(Error::usage(format!(
                    "label_count is {known} in one row and {count} in another: give one number"
                )));
            }
        }
        Ok(())
    }

    fn merge(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (names, parts) = (states[0].as_list::<i32>(), states[1].as_struct());
        for i in (0..parts.len()).filter(|&i| parts.is_valid(i)) {
            let names = names.value(i);
            let names: &StringArray = names.as_string();
            let ids: Vec<LabelId> = names.iter().flatten().map(|n| self.labels.intern(n)).collect();
            self.metrics.merge(&SetMetrics::decode(&one_row(parts, i)?)?.remap(&ids));
        }
        self.count_labels(&states[2])
    }

    fn names(&self) -> ListArray {
        let mut names = ListBuilder::new(StringBuilder::new());
        names.append_value(self.labels.names().map(Some));
        names.finish()
    }

    fn report(&self) -> Result<ScalarValue> {
        let mut outcomes = self.metrics.label_report();
        outcomes.sort_by_key(|o| self.labels.name(o.label).to_string());
        let number = |get: fn(&crate::metrics::LabelOutcome) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(outcomes.iter().map(get)))
        };
        let labels = outcomes.iter().map(|o| self.labels.name(o.label));
        let DataType::Struct(fields) = report_item() else {
            return Err(Error::internal("reports are structs"));
        };
        let rows = StructArray::try_new(
            fields,
            vec![
                Arc::new(StringArray::from_iter_values(labels)),
                number(|o| o.true_positive as i64),
                number(|o| o.false_positive as i64),
                number(|o| o.false_negative as i64),
            ],
            None,
        )?;
        let item = Arc::new(Field::new_list_field(report_item(), true));
        let offsets = OffsetBuffer::from_lengths([rows.len()]);
        let nulls = NullBuffer::from(vec![self.metrics.rows() > 0]);
        let list = ListArray::try_new(item, offsets, Arc::new(rows), Some(nulls))?;
        Ok(ScalarValue::List(Arc::new(list)))
    }
}

impl Accumulator for MetricState {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DataFusionResult<()> {
        self.observe(values).map_err(|e| to_datafusion(e.context(self.name)))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DataFusionResult<()> {
        self.merge(states).map_err(|e| to_datafusion(e.context(self.name)))
    }

    fn state(&mut self) -> DataFusionResult<Vec<ScalarValue>> {
        let state = self.metrics.encode().to_array().map_err(to_datafusion)?;
        Ok(vec![
            ScalarValue::List(Arc::new(self.names())),
            ScalarValue::Struct(Arc::new(state)),
            ScalarValue::Int64(self.label_count),
        ])
    }

    fn evaluate(&mut self) -> DataFusionResult<ScalarValue> {
        let Some(metric) = self.metric else { return self.report().map_err(to_datafusion) };
        let count = match self.label_count {
            Some(n) if n < self.labels.len() as i64 => {
                return Err(to_datafusion(Error::usage(format!(
                    "{}: label_count is {n}, but there are {} labels in the rows",
                    self.name,
                    self.labels.len()
                ))));
            }
            Some(n) => Some(n as usize),
            None => None,
        };
        // In name order, so that sums over labels do not depend on who came first.
        let (_, ids) = self.labels.sorted();
        Ok(ScalarValue::Float64(self.metrics.remap(&ids).value(metric, count)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.labels.heap_size() + self.metrics.heap_size()
    }
}
