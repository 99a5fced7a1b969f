//! From arrays of labels, features and weights to rows that can be learned.

use super::bounds::check_bounds;
use crate::data::{Binding, FeatureOptions, LabelReader, Rows, Space, plain};
use crate::error::{Error, Result};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{cast, nullif, take};
use arrow::datatypes::{DataType, Float64Type};
use std::sync::Arc;

/// Reads batches of one type; the binding is made once and kept.
#[derive(Debug, Default)]
pub(super) struct RowReader {
    pub(super) options: FeatureOptions,
    binding: Option<Binding>,
    /// How many rows were given to read, for messages.
    rows: u64,
}

impl RowReader {
    pub(super) fn new(options: FeatureOptions) -> Self {
        RowReader { options, binding: None, rows: 0 }
    }

    /// Binds to the columns of `features`, which are those of `space` from now on.
    pub(super) fn declare(&mut self, features: &ArrayRef, space: &mut Space) -> Result<()> {
        self.binding = Some(Binding::declare(features, &self.options, space)?);
        Ok(())
    }

    /// The column of vectors whose length is not known, neither from `space` nor from `features`.
    pub(super) fn without_length(
        &self,
        features: &ArrayRef,
        space: &Space,
    ) -> Result<Option<String>> {
        match space.features.declared {
            true => Ok(None),
            false => Binding::without_length(features, &self.options),
        }
    }

    /// Forgets the columns, so that the next batch fixes them anew.
    pub(super) fn unbind(&mut self) {
        self.binding = None;
    }

    /// Reads the rows to learn from: those that have labels and a weight.
    ///
    /// Returns their numbers in the batch, or `None` when all are. New names are added to `space`,
    /// within the bounds.
    pub(super) fn read(
        &mut self,
        labels: &ArrayRef,
        features: &ArrayRef,
        weights: Option<&ArrayRef>,
        space: &mut Space,
        rows: &mut Rows,
    ) -> Result<Option<Vec<u32>>> {
        if labels.len() != features.len() {
            return Err(Error::data(format!(
                "there are {} rows of labels and {} of features",
                labels.len(),
                features.len()
            )));
        }
        rows.clear();
        let before = self.rows;
        self.rows += labels.len() as u64;
        let weights = weights.map(numbers).transpose()?;
        let labels = match weights.as_ref().and_then(without_weight) {
            // Rows keep their numbers: those that do not count become unlabelled.
            Some(none) if labels.data_type() != &DataType::Null => nullif(&plain(labels)?, &none)?,
            _ => Arc::clone(labels),
        };
        let vocabulary = &mut space.labels;
        let kept = LabelReader::read_from(before, &labels, &mut rows.labels, |name| {
            Ok(Some(vocabulary.intern(name)))
        })?;
        self.read_features(features, kept.as_deref(), space, rows)?;
        check_bounds(space, &self.options)?;
        if let Some(weights) = weights {
            let values = weights.values();
            match &kept {
                None => rows.weights.extend_from_slice(values),
                Some(kept) => rows.weights.extend(kept.iter().map(|&i| values[i as usize])),
            }
        }
        Ok(kept)
    }

    fn read_features(
        &mut self,
        features: &ArrayRef,
        kept: Option<&[u32]>,
        space: &mut Space,
        rows: &mut Rows,
    ) -> Result<()> {
        if kept.map_or(features.len(), <[u32]>::len) == 0 {
            return Ok(());
        }
        let bound = self.binding.as_ref().is_some_and(|b| b.data_type() == features.data_type());
        if !bound {
            self.declare(features, space)?;
        }
        let features = match kept {
            None => Arc::clone(features),
            Some(kept) => take(features, &UInt32Array::from(kept.to_vec()), None)?,
        };
        match &self.binding {
            Some(binding) => binding.read_growing(&features, &mut space.features, rows),
            None => Ok(()),
        }
    }
}

impl RowReader {
    /// Reads the features of rows that are not learned; names that `space` does not know are left
    /// out.
    pub(super) fn read_known(
        &mut self,
        features: &ArrayRef,
        space: &Space,
        rows: &mut Rows,
    ) -> Result<()> {
        let binding = match self.binding.take() {
            Some(binding) if binding.data_type() == features.data_type() => binding,
            _ => Binding::try_new(features.data_type(), &self.options, &space.features)?,
        };
        let read = binding.read(features, &space.features, rows);
        self.binding = Some(binding);
        read
    }
}

/// Weights as numbers, none of them negative or without bounds.
fn numbers(weights: &ArrayRef) -> Result<Float64Array> {
    if !weights.data_type().is_numeric() && weights.data_type() != &DataType::Null {
        return Err(Error::data(format!("a weight is a number, not {}", weights.data_type())));
    }
    let weights = cast(weights, &DataType::Float64)?;
    let weights = weights.as_primitive::<Float64Type>();
    let bad = weights.iter().flatten().find(|w| !w.is_finite() || *w < 0.0);
    match bad {
        Some(weight) => {
            Err(Error::data(format!("a weight is a finite number from 0, not {weight}")))
        }
        None => Ok(weights.clone()),
    }
}

/// Whether the weight of each row is NULL or zero; `None` when it is so for none.
fn without_weight(weights: &Float64Array) -> Option<BooleanArray> {
    let none = BooleanBuffer::from_iter(weights.iter().map(|w| w.is_none_or(|w| w == 0.0)));
    (none.count_set_bits() > 0).then(|| BooleanArray::new(none, None))
}
