//! The model argument of a function: one model for all rows, or one per row.

use super::cache::ModelCache;
use super::call::Call;
use crate::error::{Error, Result};
use crate::math::FixedState;
use crate::models::Model;
use crate::store::digest_of;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// The models of a batch.
pub(super) enum Models {
    /// The same for every row; `None` is NULL.
    One(Option<Arc<Model>>),
    /// One for each row.
    Rows(Vec<Option<Arc<Model>>>),
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

/// The model of a constant, read anew when what it names has changed.
pub(super) fn check(scalar: &ScalarValue, cache: &ModelCache) -> Result<Option<Arc<Model>>> {
    if let Some(Some(name)) = scalar.try_as_str() {
        cache.refresh(name)?;
    }
    one(scalar, cache)
}

impl Models {
    pub(super) fn read(value: &ColumnarValue, cache: &ModelCache) -> Result<Self> {
        match value {
            ColumnarValue::Scalar(scalar) => Ok(Models::One(one(scalar, cache)?)),
            ColumnarValue::Array(array) => Ok(Models::Rows(many(array, cache)?)),
        }
    }

    /// One model for each of `rows` rows, read anew where what is named has changed.
    pub(super) fn per_row(
        value: &ColumnarValue,
        rows: usize,
        cache: &ModelCache,
    ) -> Result<Vec<Option<Arc<Model>>>> {
        Ok(match value {
            ColumnarValue::Scalar(scalar) => vec![check(scalar, cache)?; rows],
            ColumnarValue::Array(array) => many(array, cache)?,
        })
    }

    /// The distinct models, each with its rows; rows without a model are left out.
    pub(super) fn by_model(models: &[Option<Arc<Model>>]) -> Vec<(&Arc<Model>, Vec<u32>)> {
        let mut groups: Vec<(&Arc<Model>, Vec<u32>)> = Vec::new();
        let mut index: HashMap<*const Model, usize, FixedState> = HashMap::default();
        for (row, model) in models.iter().enumerate() {
            let Some(model) = model else { continue };
            let at = *index.entry(Arc::as_ptr(model)).or_insert_with(|| {
                groups.push((model, Vec::new()));
                groups.len() - 1
            });
            groups[at].1.push(row as u32);
        }
        groups
    }
}

/// The model of a constant.
fn one(scalar: &ScalarValue, cache: &ModelCache) -> Result<Option<Arc<Model>>> {
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

fn many(array: &ArrayRef, cache: &ModelCache) -> Result<Vec<Option<Arc<Model>>>> {
    match array.data_type() {
        DataType::Null => Ok(vec![None; array.len()]),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let names = cast(array, &DataType::Utf8View)?;
            let names = names.as_string_view();
            (0..names.len())
                .map(|i| names.is_valid(i).then(|| cache.open(names.value(i))).transpose())
                .collect()
        }
        _ => {
            let models = cast(array, &DataType::BinaryView)?;
            let models = models.as_binary_view();
            // A join repeats the views of a model: each is looked up once in a batch.
            let mut seen: HashMap<u128, Arc<Model>, FixedState> = HashMap::default();
            let mut out = Vec::with_capacity(models.len());
            for i in 0..models.len() {
                if models.is_null(i) {
                    out.push(None);
                    continue;
                }
                let model = match seen.entry(models.views()[i]) {
                    Entry::Occupied(known) => Arc::clone(known.get()),
                    Entry::Vacant(new) => {
                        let bytes = models.value(i);
                        let model = cache.decode(bytes).map_err(|e| e.context(which(i, bytes)))?;
                        Arc::clone(new.insert(model))
                    }
                };
                out.push(Some(model));
            }
            Ok(out)
        }
    }
}

/// How a model of a column is named in an error: by its digest where it can be read.
fn which(row: usize, bytes: &[u8]) -> String {
    match digest_of(bytes) {
        Ok(digest) => format!("the model with digest {digest}"),
        Err(_) => format!("the model in row {row} of a batch"),
    }
}
