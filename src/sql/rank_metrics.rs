//! Metrics of scores as aggregates: `ranking_loss(truth, scores[, label_count])` and the like, where
//! `scores` is what `score_labels` gives.

use super::call::{Call, as_called, metric_name};
use super::error::to_datafusion;
use super::metrics::{check_types, compared, one_row};
use crate::data::{Id, LabelId, LabelReader, LabelSets, Vocabulary};
use crate::error::{Error, Result};
use crate::metrics::{Metric, RankMetrics};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, StringArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Volatility};
use std::sync::Arc;

/// One metric of scores.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct RankFunction {
    metric: Metric,
    call: Call,
}

/// All metric functions of scores.
pub(super) fn functions() -> impl Iterator<Item = RankFunction> {
    let metrics = Metric::ALL.iter().copied().filter(|m| m.of_scores());
    metrics.map(|metric| RankFunction {
        metric,
        call: Call::new(metric_name(metric), Volatility::Immutable),
    })
}

/// The fields of an entry of a score list.
const FIELDS: [&str; 2] = ["label", "score"];

/// Whether a column of `data_type` can hold lists of labels with scores.
fn holds_scores(data_type: &DataType) -> bool {
    match data_type {
        DataType::Null => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => match item.data_type() {
            DataType::Struct(fields) => FIELDS.iter().all(|name| fields.find(name).is_some()),
            DataType::Null => true,
            _ => false,
        },
        _ => false,
    }
}

impl AggregateUDFImpl for RankFunction {
    as_called!();

    fn return_type(&self, types: &[DataType]) -> DataFusionResult<DataType> {
        check_types(&self.call, types).map_err(to_datafusion)?;
        if !holds_scores(&types[1]) {
            return Err(to_datafusion(self.call.misuse(format!(
                "scores must be a list of labels with scores, as score_labels gives, not {}",
                types[1]
            ))));
        }
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> DataFusionResult<Vec<FieldRef>> {
        let state = RankMetrics::default().encode().to_array().map_err(to_datafusion)?;
        let name = format_state_name(args.name, "state");
        Ok(vec![Arc::new(Field::new(name, state.data_type().clone(), true))])
    }

    fn accumulator(&self, _args: AccumulatorArgs) -> DataFusionResult<Box<dyn Accumulator>> {
        let (labels, ranks) = (Vocabulary::default(), RankMetrics::default());
        Ok(Box::new(RankState { metric: self.metric, labels, ranks }))
    }
}

#[derive(Debug)]
struct RankState {
    metric: Metric,
    /// Numbers of the names met, for looking up true labels; no part of the state.
    labels: Vocabulary<LabelId>,
    ranks: RankMetrics,
}

/// In which row a label was last true, and last scored; rows are counted from 1.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    true_in: usize,
    scored_in: usize,
}

impl RankState {
    fn observe(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some((truth, scores, counts)) = compared(values)? else { return Ok(()) };
        let counts = counts.map(|c| cast(&c, &DataType::Int64)).transpose()?;
        let counts: Option<&Int64Array> = counts.as_ref().map(|c| c.as_primitive::<Int64Type>());
        let mut sets = LabelSets::default();
        let names = &mut self.labels;
        LabelReader::read(&truth, &mut sets, |name| Ok(Some(names.intern(name))))?;
        let scores = ScoreLists::try_new(&scores)?;
        let mut last = vec![Last::default(); self.labels.len()];
        let mut ranking = Vec::new();
        for row in 0..sets.len() {
            let truth = sets.row(row);
            truth.iter().for_each(|y| last[y.index()].true_in = row + 1);
            ranking.clear();
            let mut found = 0;
            for i in scores.entries(row) {
                let label = self.labels.intern(scores.label(i, row)?);
                let at = label.index();
                last.resize(last.len().max(at + 1), Last::default());
                if std::mem::replace(&mut last[at].scored_in, row + 1) == row + 1 {
                    return Err(Error::data(format!(
                        "label `{}` is scored twice in row {row}",
                        self.labels.name(label)
                    )));
                }
                let is_true = last[at].true_in == row + 1;
                found += usize::from(is_true);
                ranking.push((scores.score(i), is_true));
            }
            ranking.resize(ranking.len() + truth.len() - found, (f64::NEG_INFINITY, true));
            if let Some(count) = counts.filter(|c| c.is_valid(row)).map(|c| c.value(row)) {
                let labels = ranking.len();
                if count < labels as i64 {
                    return Err(Error::usage(format!(
                        "label_count is {count}, but there are {labels} labels in a row"
                    )));
                }
                let others = u32::try_from(count - labels as i64).map_err(|_| {
                    Error::usage(format!("label_count is {count}: there are at most {}", u32::MAX))
                })?;
                self.ranks.observe_among(&mut ranking, others);
                continue;
            }
            self.ranks.observe_labels(&mut ranking);
        }
        Ok(())
    }

    fn merge(&mut self, states: &[ArrayRef]) -> Result<()> {
        let states = states[0].as_struct();
        for i in (0..states.len()).filter(|&i| states.is_valid(i)) {
            self.ranks.merge(&RankMetrics::decode(&one_row(states, i)?)?);
        }
        Ok(())
    }
}

/// Lists of labels with scores, in one layout.
struct ScoreLists {
    offsets: Vec<usize>,
    /// Which entries are not NULL.
    present: Option<NullBuffer>,
    labels: StringArray,
    scores: Float64Array,
}

impl ScoreLists {
    fn try_new(column: &ArrayRef) -> Result<Self> {
        let unfit = || Error::internal(format!("scores of type {}", column.data_type()));
        let item = match column.data_type() {
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => item,
            _ => return Err(unfit()),
        };
        let lists = cast(column, &DataType::LargeList(Arc::clone(item)))?;
        let lists = lists.as_list::<i64>();
        let offsets = lists.value_offsets().iter().map(|&offset| offset as usize).collect();
        let Some(entries) = lists.values().as_struct_opt() else {
            // Lists that are all empty have no type of their own.
            let none: [&str; 0] = [];
            let (labels, scores) =
                (StringArray::from_iter_values(none), Float64Array::from(Vec::<f64>::new()));
            return Ok(ScoreLists { offsets, present: None, labels, scores });
        };
        let field = |name: &str, to: &DataType| -> Result<ArrayRef> {
            Ok(cast(entries.column_by_name(name).ok_or_else(unfit)?, to)?)
        };
        Ok(ScoreLists {
            offsets,
            present: entries.nulls().cloned(),
            labels: field(FIELDS[0], &DataType::Utf8)?.as_string().clone(),
            scores: field(FIELDS[1], &DataType::Float64)?.as_primitive::<Float64Type>().clone(),
        })
    }

    fn entries(&self, row: usize) -> std::ops::Range<usize> {
        self.offsets[row]..self.offsets[row + 1]
    }

    fn label(&self, entry: usize, row: usize) -> Result<&str> {
        if self.labels.is_null(entry) || self.present.as_ref().is_some_and(|p| p.is_null(entry)) {
            return Err(Error::data(format!(
                "the score list of row {row} holds a NULL: remove it"
            )));
        }
        Ok(self.labels.value(entry))
    }

    /// The score of an entry; NULL stands below all scores.
    fn score(&self, entry: usize) -> f64 {
        if self.scores.is_null(entry) { f64::NEG_INFINITY } else { self.scores.value(entry) }
    }
}

impl Accumulator for RankState {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DataFusionResult<()> {
        self.observe(values).map_err(|e| to_datafusion(e.context(self.metric)))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DataFusionResult<()> {
        self.merge(states).map_err(|e| to_datafusion(e.context(self.metric)))
    }

    fn state(&mut self) -> DataFusionResult<Vec<ScalarValue>> {
        let state = self.ranks.encode().to_array().map_err(to_datafusion)?;
        Ok(vec![ScalarValue::Struct(Arc::new(state))])
    }

    fn evaluate(&mut self) -> DataFusionResult<ScalarValue> {
        Ok(ScalarValue::Float64(self.ranks.value(self.metric)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.labels.heap_size()
    }
}
