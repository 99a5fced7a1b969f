//! From arrays of labels, features and weights to rows that can be learned.

use crate::data::{Binding, FeatureOptions, LabelReader, Rows, Space};
use crate::error::{Error, Result};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Float64Type};
use std::sync::Arc;

/// Reads batches of one type; the binding is made once and kept.
#[derive(Debug, Default)]
pub(super) struct RowReader {
    pub(super) options: FeatureOptions,
    binding: Option<Binding>,
}

impl RowReader {
    pub(super) fn new(options: FeatureOptions) -> Self {
        RowReader { options, binding: None }
    }

    /// Forgets the columns, so that the next batch fixes them anew.
    pub(super) fn unbind(&mut self) {
        self.binding = None;
    }

    /// Reads the rows to learn from: those that have labels and a weight.
    ///
    /// Returns their numbers in the batch, or `None` when all are. New names are added to `space`.
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
        let weights = weights.map(numbers).transpose()?;
        let weighty = weights.as_ref().and_then(with_weight);
        let labels = match &weighty {
            None => Arc::clone(labels),
            Some(kept) => take(labels, &UInt32Array::from(kept.clone()), None)?,
        };
        let max = self.options.max_labels.unwrap_or(usize::MAX);
        let vocabulary = &mut space.labels;
        let labelled = LabelReader::read(&labels, &mut rows.labels, |name| {
            let id = vocabulary.intern(name);
            if id as usize >= max {
                return Err(Error::limit(format!(
                    "label `{name}` is one more than max_labels={max} allows: raise it"
                )));
            }
            Ok(Some(id))
        })?;
        let kept = match (weighty, labelled) {
            (Some(weighty), Some(labelled)) => {
                Some(labelled.into_iter().map(|i| weighty[i as usize]).collect())
            }
            (weighty, labelled) => weighty.or(labelled),
        };
        self.read_features(features, kept.as_deref(), space, rows)?;
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
        let features = match kept {
            None => Arc::clone(features),
            Some(kept) => take(features, &UInt32Array::from(kept.to_vec()), None)?,
        };
        if features.is_empty() {
            return Ok(());
        }
        let bound = self.binding.as_ref().is_some_and(|b| b.data_type() == features.data_type());
        if !bound {
            self.binding = Some(Binding::declare(&features, &self.options, space)?);
        }
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

/// The rows whose weight is there and not zero; `None` when it is so for all.
fn with_weight(weights: &Float64Array) -> Option<Vec<u32>> {
    let kept: Vec<u32> = weights
        .iter()
        .enumerate()
        .filter_map(|(i, w)| w.filter(|w| *w > 0.0).map(|_| i as u32))
        .collect();
    (kept.len() < weights.len()).then_some(kept)
}
