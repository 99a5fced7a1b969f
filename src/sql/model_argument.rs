//! The model argument of a function: one model for all rows, or one per row.

use super::cache::ModelCache;
use super::call::Call;
use crate::error::{Error, Result};
use crate::math::FixedState;
use crate::models::Model;
use crate::store::digest_of;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ByteView, MAX_INLINE_VIEW_LEN};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;
use std::collections::HashMap;
use std::sync::Arc;

/// The models of a batch.
pub(super) enum Models {
    /// The same for every row; `None` is NULL.
    One(Option<Arc<Model>>),
    /// One for each row.
    Rows(ModelColumn),
}

/// A column of models, of which many are the same.
#[derive(Default)]
pub(super) struct ModelColumn {
    distinct: Vec<Arc<Model>>,
    /// Which of them each row has; `None` is NULL.
    of_row: Vec<Option<u32>>,
}

impl ModelColumn {
    pub(super) fn distinct(&self) -> &[Arc<Model>] {
        &self.distinct
    }

    /// The rows that have a model, those of the first model first, and where those of each end.
    pub(super) fn rows_by_model(&self) -> (Vec<u32>, Vec<usize>) {
        let mut ends = vec![0; self.distinct.len()];
        self.of_row.iter().flatten().for_each(|&m| ends[m as usize] += 1);
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut order = vec![0; start];
        for (row, model) in self.of_row.iter().enumerate() {
            if let Some(model) = model {
                let next = &mut ends[*model as usize];
                order[*next] = row as u32;
                *next += 1;
            }
        }
        (order, ends)
    }

    /// Which of the distinct models each row has; `None` is NULL.
    pub(super) fn of_rows(&self) -> &[Option<u32>] {
        &self.of_row
    }

    /// Adds a row that has the model numbered `model`, which is `new` if it has that number not yet.
    fn push(&mut self, model: u32, new: impl FnOnce() -> Result<Arc<Model>>) -> Result<()> {
        if model as usize == self.distinct.len() {
            self.distinct.push(new()?);
        }
        self.of_row.push(Some(model));
        Ok(())
    }
}

/// Whether a model can come as this type.
pub(super) fn check_type(call: &Call, data_type: &DataType) -> Result<()> {
    match data_type {
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Null => Ok(()),
        other => Err(call.misuse(format!(
            "a model is the value of train_labels or the name of a model file, not {other}"
        ))),
    }
}

impl Models {
    pub(super) fn read(value: &ColumnarValue, cache: &ModelCache) -> Result<Self> {
        match value {
            ColumnarValue::Scalar(scalar) => Ok(Models::One(one(scalar, cache)?)),
            ColumnarValue::Array(array) => Ok(Models::Rows(many(array, cache)?)),
        }
    }

    /// The distinct models, and which of them each of `rows` rows has.
    pub(super) fn column(self, rows: usize) -> ModelColumn {
        match self {
            Models::Rows(column) => column,
            Models::One(model) => ModelColumn {
                of_row: vec![model.as_ref().map(|_| 0); rows],
                distinct: model.into_iter().collect(),
            },
        }
    }
}

/// The model of a constant.
pub(super) fn one(scalar: &ScalarValue, cache: &ModelCache) -> Result<Option<Arc<Model>>> {
    match scalar {
        ScalarValue::Binary(bytes)
        | ScalarValue::LargeBinary(bytes)
        | ScalarValue::BinaryView(bytes) => bytes.as_deref().map(|b| cache.decode(b)).transpose(),
        ScalarValue::Null => Ok(None),
        other => match other.try_as_str() {
            Some(name) => name.map(|n| cache.open(n)).transpose(),
            None => Err(Error::usage(format!("a model cannot be {}", other.data_type()))),
        },
    }
}

fn many(array: &ArrayRef, cache: &ModelCache) -> Result<ModelColumn> {
    let mut column = ModelColumn::default();
    match array.data_type() {
        DataType::Null => column.of_row.resize(array.len(), None),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let names = cast(array, &DataType::Utf8View)?;
            let mut seen: HashMap<&str, u32, FixedState> = HashMap::default();
            for name in names.as_string_view() {
                let Some(name) = name else {
                    column.of_row.push(None);
                    continue;
                };
                let next = column.distinct.len() as u32;
                column.push(*seen.entry(name).or_insert(next), || cache.open(name))?;
            }
        }
        _ => {
            let models = cast(array, &DataType::BinaryView)?;
            let models = models.as_binary_view();
            // A join repeats the views of a model: each is looked up once in a batch.
            let mut seen: HashMap<u128, u32, FixedState> = HashMap::default();
            for (i, &view) in models.views().iter().enumerate() {
                if models.is_null(i) {
                    column.of_row.push(None);
                    continue;
                }
                let next = column.distinct.len() as u32;
                column.push(*seen.entry(view).or_insert(next), || {
                    let bytes = models.value(i);
                    let buffer = ByteView::from(view).buffer_index as usize;
                    let model = match models.data_buffers().get(buffer) {
                        Some(buffer) if bytes.len() > MAX_INLINE_VIEW_LEN as usize => {
                            cache.decode_in(bytes, buffer)
                        }
                        _ => cache.decode(bytes),
                    };
                    model.map_err(|e| e.context(which(i, bytes)))
                })?;
            }
        }
    }
    Ok(column)
}

/// How a model of a column is named in an error: by its digest where it can be read.
pub(super) fn which(row: usize, bytes: &[u8]) -> String {
    match digest_of(bytes) {
        Ok(digest) => format!("the model with digest {digest}"),
        Err(_) => format!("the model in row {row} of a batch"),
    }
}
