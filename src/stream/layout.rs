//! Which columns of a stream are what.

use super::pending::key_texts;
use super::stage::{Mode, PREDICTED, SCORES, StageOptions, VERSION};
use crate::data::{Pattern, flag_lists, plain_type, split_labels};
use crate::error::{Error, Result};
use crate::models::holds_features;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, StructArray};
use arrow::compute::cast;
use arrow::compute::kernels::cmp::not_distinct;
use arrow::datatypes::{DataType, Field, Int64Type, SchemaRef, TimeUnit};
use std::sync::Arc;

/// What stands between labels when nothing is said.
const SEPARATOR: &str = ";";

/// The columns of the stream.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) schema: SchemaRef,
    features: Vec<usize>,
    labels: Vec<usize>,
    label_form: LabelForm,
    time: Option<usize>,
    key: Option<usize>,
}

/// How label columns hold sets.
#[derive(Debug, Clone)]
enum LabelForm {
    /// One column of lists.
    Lists,
    /// One column of texts, with this between labels.
    Texts(String),
    /// Columns of 0 and 1.
    Flags,
}

impl StageOptions {
    /// Which columns of `schema` are what.
    pub(super) fn layout(&self, schema: &SchemaRef) -> Result<Layout> {
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        let find = |name: &str, what: &str| {
            names.iter().position(|n| *n == name).ok_or_else(|| {
                Error::not_found(format!(
                    "there is no {what} column `{name}`; the columns are: {}",
                    names.join(", ")
                ))
            })
        };
        if let Some(taken) = [PREDICTED, SCORES, VERSION].iter().find(|n| names.contains(n)) {
            return Err(Error::data(format!(
                "the stream has a column `{taken}` already: rename it first"
            )));
        }
        let matches = |pattern: &String, name: &str| Pattern::new(pattern).matches(name);
        let is_label = |i: &usize| self.labels.iter().any(|p| matches(p, names[*i]));
        let labels: Vec<usize> = (0..names.len()).filter(is_label).collect();
        let missing = self.labels.iter().find(|p| !names.iter().any(|n| matches(p, n)));
        if let Some(missing) = missing.filter(|_| self.mode != Mode::Score) {
            find(missing, "label")?;
        }
        let label_form = self.label_form(schema, &labels)?;
        let time = self.time.as_ref().map(|name| find(name, "time")).transpose()?;
        let key = match &self.mode {
            Mode::Delayed { key, .. } => Some(find(key, "key")?),
            _ => None,
        };
        if let Some(none) = self.features.iter().find(|p| !names.iter().any(|n| matches(p, n))) {
            find(none, "feature")?;
        }
        let chosen = |i: &usize| {
            let any = |patterns: &[String]| patterns.iter().any(|p| matches(p, names[*i]));
            ![time, key].contains(&Some(*i))
                && !labels.contains(i)
                && (self.features.is_empty() || any(&self.features))
                && !any(&self.exclude)
        };
        let features: Vec<usize> = (0..names.len()).filter(chosen).collect();
        if features.is_empty() {
            return Err(Error::data(format!(
                "there is no feature column; the columns are: {}",
                names.join(", ")
            )));
        }
        Ok(Layout { schema: Arc::clone(schema), features, labels, label_form, time, key })
    }

    fn label_form(&self, schema: &SchemaRef, labels: &[usize]) -> Result<LabelForm> {
        let one = match (&self.labels[..], labels) {
            ([name], [one]) if !Pattern::new(name).is_open() => *one,
            (_, []) => return Ok(LabelForm::Lists),
            _ if self.separator.is_some() => {
                return Err(Error::usage(
                    "a separator is for one column of texts: name one column of labels",
                ));
            }
            _ => return Ok(LabelForm::Flags),
        };
        let data_type = plain_type(schema.field(one).data_type());
        let flag = *data_type == DataType::Boolean || data_type.is_numeric();
        if data_type.is_string() || (flag && self.separator.is_some()) {
            let separator = self.separator.as_deref().unwrap_or(SEPARATOR);
            return Ok(LabelForm::Texts(separator.to_string()));
        }
        Ok(if flag { LabelForm::Flags } else { LabelForm::Lists })
    }
}

impl Layout {
    /// The batch with the columns of the stream: by name, without those that came later.
    pub(super) fn fit(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        if batch.schema() == self.schema {
            return Ok(batch.clone());
        }
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for field in self.schema.fields() {
            let column = batch.column_by_name(field.name()).ok_or_else(|| {
                Error::data(format!(
                    "column `{}`, with which the stream began, is missing: send it with every batch",
                    field.name()
                ))
            })?;
            let column = &same_type(column, field)?;
            if !field.is_nullable() && column.null_count() > 0 {
                return Err(Error::data(format!(
                    "column `{}` holds a NULL and was declared to have none",
                    field.name()
                )));
            }
            columns.push(Arc::clone(column));
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    /// The type of the features.
    pub(super) fn feature_type(&self) -> Result<DataType> {
        let nothing = RecordBatch::new_empty(Arc::clone(&self.schema));
        Ok(self.features(&nothing)?.data_type().clone())
    }

    pub(super) fn features(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        if let [only] = self.features[..]
            && holds_features(batch.column(only).data_type())
        {
            return Ok(Arc::clone(batch.column(only)));
        }
        Ok(Arc::new(StructArray::from(batch.project(&self.features)?)))
    }

    /// Whether there are label columns.
    pub(super) fn has_labels(&self) -> bool {
        !self.labels.is_empty()
    }

    /// The label set of each row, as lists.
    pub(super) fn labels(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let first = *self
            .labels
            .first()
            .ok_or_else(|| Error::internal("a stage that learns has labels"))?;
        Ok(match &self.label_form {
            LabelForm::Lists => Arc::clone(batch.column(first)),
            LabelForm::Texts(separator) => Arc::new(split_labels(batch.column(first), separator)?),
            LabelForm::Flags => {
                Arc::new(flag_lists(&StructArray::from(batch.project(&self.labels)?))?)
            }
        })
    }

    pub(super) fn keys(&self, batch: &RecordBatch) -> Result<StringArray> {
        let at = self.key.ok_or_else(|| Error::internal("delayed labels have a key"))?;
        key_texts(batch.column(at), self.schema.field(at).name())
    }

    /// Event times: timestamps and dates as microseconds, whole numbers as they are.
    pub(super) fn times(&self, batch: &RecordBatch) -> Result<Option<Int64Array>> {
        let Some(at) = self.time else { return Ok(None) };
        let column = batch.column(at);
        let times = match column.data_type() {
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => {
                let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
                cast(&cast(column, &micros)?, &DataType::Int64)?
            }
            t if t.is_integer() => cast(column, &DataType::Int64)?,
            other => {
                return Err(Error::data(format!(
                    "time column `{}` is {other}: use a timestamp, a date or a whole number",
                    self.schema.field(at).name()
                )));
            }
        };
        Ok(Some(times.as_primitive::<Int64Type>().clone()))
    }
}

/// The column in the type it has in the stream. Numbers of another width or kind are cast where that
/// loses nothing, and so is a column of NULLs: files of one stream may differ in what a reader makes
/// of them.
fn same_type(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    let (now, before) = (column.data_type(), field.data_type());
    if now == before {
        return Ok(Arc::clone(column));
    }
    let numbers = now.is_numeric() && before.is_numeric();
    if numbers || column.logical_null_count() == column.len() {
        let there = cast(column, before)?;
        let back = cast(&there, now)?;
        if not_distinct(&back, column).is_ok_and(|same| same.true_count() == column.len()) {
            return Ok(there);
        }
    }
    Err(Error::data(format!(
        "column `{}` is {now} now and was {before} before: send one type{}",
        field.name(),
        if numbers { ", since these numbers do not fit the first" } else { "" }
    )))
}
