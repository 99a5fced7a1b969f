//! Rows to learn from, as arrays.

use super::super::weight;
use crate::error::{Error, Result};
use datafusion::arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BooleanArray, ListArray, MAX_INLINE_VIEW_LEN, StructArray,
    UInt32Array,
};
use datafusion::arrow::compute::{concat, filter, interleave, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use std::sync::Arc;

/// The fields of a row kept as a state, from those of the arguments `spec, labels, features` and
/// perhaps a weight; `None` when the arguments are others.
pub(super) fn row_type(arguments: &[FieldRef]) -> Option<Fields> {
    let field = |name: &str, data_type: &DataType| Field::new(name, data_type.clone(), true);
    let (labels, features, weight) = match arguments {
        [_, labels, features] => (labels, features, None),
        [_, labels, features, weight] if weight::is_weight(weight.data_type()) => {
            (labels, features, Some(field("weight", &DataType::Float64)))
        }
        _ => return None,
    };
    let row = [field("labels", labels.data_type()), field("features", features.data_type())];
    Some(row.into_iter().chain(weight).collect())
}

/// Labels, features and weights of some rows.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    pub(super) labels: ArrayRef,
    pub(super) features: ArrayRef,
    pub(super) weights: Option<ArrayRef>,
}

impl Batch {
    /// The rows among the arguments of a call.
    pub(super) fn of_arguments(values: &[ArrayRef]) -> Result<Self> {
        Ok(Batch {
            labels: Arc::clone(&values[1]),
            features: Arc::clone(&values[2]),
            weights: values.get(3).map(weight::numbers).transpose()?,
        })
    }

    fn of_rows(rows: &StructArray) -> Self {
        Batch {
            labels: Arc::clone(rows.column(0)),
            features: Arc::clone(rows.column(1)),
            weights: rows.columns().get(2).map(Arc::clone),
        }
    }

    /// The rows inside a column of kept rows, and the group of each.
    pub(super) fn of_lists(lists: &ListArray, groups: &[usize]) -> Result<(Self, Vec<usize>)> {
        let rows = lists.values().as_struct_opt();
        let rows = Batch::of_rows(rows.ok_or_else(|| Error::internal("kept rows are structs"))?);
        let offsets = lists.value_offsets();
        let mut group_of = Vec::new();
        let mut at = Vec::new();
        for i in (0..lists.len()).filter(|&i| lists.is_valid(i)) {
            for row in offsets[i]..offsets[i + 1] {
                at.push(row as u32);
                group_of.push(groups[i]);
            }
        }
        let all = at.len() == rows.len() && at.iter().enumerate().all(|(i, &row)| i as u32 == row);
        Ok((if all { rows } else { rows.take(&UInt32Array::from(at))? }, group_of))
    }

    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    fn map(&self, mut of: impl FnMut(&ArrayRef) -> Result<ArrayRef>) -> Result<Self> {
        Ok(Batch {
            labels: of(&self.labels)?,
            features: of(&self.features)?,
            weights: self.weights.as_ref().map(of).transpose()?,
        })
    }

    pub(super) fn take(&self, rows: &UInt32Array) -> Result<Self> {
        self.map(|array| Ok(take(array, rows, None)?))
    }

    /// The rows that are to be kept, without the bytes of the others.
    pub(super) fn filter(&self, keep: &BooleanArray) -> Result<Self> {
        self.map(|array| own_bytes(&filter(array, keep)?))
    }

    pub(super) fn slice(&self, start: usize, len: usize) -> Result<Self> {
        self.map(|array| Ok(array.slice(start, len)))
    }

    /// All rows of `batches`, one after the other.
    pub(super) fn concat(batches: &[Batch]) -> Result<Option<Self>> {
        match batches {
            [] => Ok(None),
            [only] => Ok(Some(only.clone())),
            _ => Batch::joined(batches, |parts| Ok(concat(parts)?)).map(Some),
        }
    }

    /// The rows at the places `at`, each the number of a batch and of a row in it.
    pub(super) fn gather(batches: &[Batch], at: &[(usize, usize)]) -> Result<Self> {
        Batch::joined(batches, |parts| Ok(interleave(parts, at)?))
    }

    fn joined(batches: &[Batch], join: impl Fn(&[&dyn Array]) -> Result<ArrayRef>) -> Result<Self> {
        let all = |of: &dyn Fn(&Batch) -> Option<&ArrayRef>| -> Result<ArrayRef> {
            let parts: Vec<&dyn Array> = batches.iter().filter_map(of).map(|a| &**a).collect();
            join(&parts)
        };
        let weighted = batches.first().is_some_and(|first| first.weights.is_some());
        Ok(Batch {
            labels: all(&|b| Some(&b.labels))?,
            features: all(&|b| Some(&b.features))?,
            weights: weighted.then(|| all(&|b| b.weights.as_ref())).transpose()?,
        })
    }

    /// One struct per row.
    pub(super) fn to_rows(&self, row: &Fields) -> Result<StructArray> {
        let columns = [&self.labels, &self.features].into_iter().chain(&self.weights);
        Ok(StructArray::try_new(row.clone(), columns.map(Arc::clone).collect(), None)?)
    }

    /// About how many bytes the rows take, without what their buffers hold besides.
    pub(super) fn bytes(&self) -> usize {
        let arrays = [&self.labels, &self.features].into_iter().chain(&self.weights);
        let size = |array: &ArrayRef| {
            let data = array.to_data();
            data.get_slice_memory_size().unwrap_or(0) + viewed_bytes(&data)
        };
        arrays.map(size).sum()
    }
}

/// Bytes of the texts that the views in `data` point to.
fn viewed_bytes(data: &ArrayData) -> usize {
    match data.data_type() {
        DataType::Utf8View | DataType::BinaryView => {
            let views = data.buffer::<u128>(0).iter().take(data.len());
            let lengths = views.map(|&view| view as u32).filter(|&len| len > MAX_INLINE_VIEW_LEN);
            lengths.map(|len| len as usize).sum()
        }
        _ => data.child_data().iter().map(viewed_bytes).sum(),
    }
}

/// The same values with buffers that hold nothing else.
fn own_bytes(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        DataType::Struct(fields) => {
            let rows = array.as_struct();
            let columns = rows.columns().iter().map(own_bytes).collect::<Result<_>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, rows.nulls().cloned())?)
        }
        DataType::List(item) => {
            let lists = array.as_list::<i32>();
            let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
            let values = own_bytes(lists.values())?;
            Arc::new(ListArray::try_new(Arc::clone(item), offsets, values, nulls)?)
        }
        _ => Arc::clone(array),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{ListBuilder, StringViewArray, StringViewBuilder};

    #[test]
    fn rows_that_are_left_out_take_no_bytes() {
        let text = |i: usize| format!("a text that is too long to stand in its view: {i:06}");
        let words: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..1000).map(text)));
        let features: ArrayRef = Arc::new(StructArray::try_from(vec![("w", words)]).unwrap());
        let mut labels = ListBuilder::new(StringViewBuilder::new());
        (0..1000).for_each(|i| labels.append_value([Some(text(i))]));
        let rows = Batch { labels: Arc::new(labels.finish()), features, weights: None };
        let long = text(0).len();
        assert!(rows.bytes() >= 2 * 1000 * (long + 16), "{}", rows.bytes());
        let keep = BooleanArray::from_iter((0..1000).map(|i| Some(i == 7)));
        let one = rows.filter(&keep).unwrap();
        assert_eq!((one.len(), one.features.len()), (1, 1));
        assert_eq!(one.features.as_struct().column(0).as_string_view().value(0), text(7));
        assert!(one.bytes() >= 2 * long && one.bytes() < 1000, "{}", one.bytes());
        let held = one.labels.get_array_memory_size() + one.features.get_array_memory_size();
        assert!(held < 10_000, "{held}");
    }
}
