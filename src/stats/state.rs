//! States as values: what a statistic or a learner hands to a model row, and gets back from it.

use crate::error::{Error, Result};
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, ListArray, PrimitiveArray, StructArray,
};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Float64Type, UInt32Type};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

/// Items of lists, made once.
static NUMBER: LazyLock<FieldRef> =
    LazyLock::new(|| Arc::new(Field::new_list_field(DataType::Float64, false)));
static WHOLE_NUMBER: LazyLock<FieldRef> =
    LazyLock::new(|| Arc::new(Field::new_list_field(DataType::UInt32, false)));

/// Named lists of numbers, and states inside it: one row of a struct of lists.
///
/// Written by a [`StateWriter`](super::StateWriter), read by a [`StateReader`](super::StateReader).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    parts: Vec<(Cow<'static, str>, Part)>,
}

/// What stands under a name.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    Numbers(ScalarBuffer<f64>),
    WholeNumbers(ScalarBuffer<u32>),
    State(State),
}

impl PartialEq for Part {
    /// By bits: what is missing is the same as itself.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Part::Numbers(a), Part::Numbers(b)) => a.inner() == b.inner(),
            (Part::WholeNumbers(a), Part::WholeNumbers(b)) => a == b,
            (Part::State(a), Part::State(b)) => a == b,
            _ => false,
        }
    }
}

impl State {
    pub(crate) fn push(&mut self, name: impl Into<Cow<'static, str>>, part: Part) {
        self.parts.push((name.into(), part));
    }

    /// Names and what stands under them, in the order in which they were written.
    pub(crate) fn parts(&self) -> &[(Cow<'static, str>, Part)] {
        &self.parts
    }

    pub(super) fn get(&self, name: &str) -> Option<&Part> {
        self.parts.iter().find(|part| part.0 == name).map(|part| &part.1)
    }

    /// Whether `other` has parts of the same names and kinds in the same order.
    pub(crate) fn same_shape(&self, other: &State) -> bool {
        let same = |((name, mine), (other, theirs)): (&(_, Part), &(_, Part))| {
            let kind = match (mine, theirs) {
                (Part::State(mine), Part::State(theirs)) => mine.same_shape(theirs),
                _ => std::mem::discriminant(mine) == std::mem::discriminant(theirs),
            };
            kind && name == other
        };
        self.parts.len() == other.parts.len() && self.parts.iter().zip(&other.parts).all(same)
    }

    /// The state as one Arrow row.
    ///
    /// # Errors
    ///
    /// A list of more than 2^31 numbers.
    pub fn to_array(&self) -> Result<StructArray> {
        let mut fields = Vec::with_capacity(self.parts.len());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.parts.len());
        for (name, part) in &self.parts {
            let array: ArrayRef = match part {
                Part::Numbers(values) => Arc::new(list::<Float64Type>(&NUMBER, values)?),
                Part::WholeNumbers(values) => Arc::new(list::<UInt32Type>(&WHOLE_NUMBER, values)?),
                Part::State(state) => Arc::new(state.to_array()?),
            };
            fields.push(Field::new(name.as_ref(), array.data_type().clone(), false));
            arrays.push(array);
        }
        Ok(StructArray::try_new_with_length(Fields::from(fields), arrays, None, 1)?)
    }

    /// The state of one Arrow row. Columns that are neither lists of numbers nor such rows are left
    /// out, and are not found when they are asked for.
    ///
    /// # Errors
    ///
    /// `Corrupt` when it is not one row.
    pub fn try_from_array(row: &StructArray) -> Result<Self> {
        if row.len() != 1 || row.null_count() > 0 {
            return Err(Error::corrupt(format!("a state is one row, not {}", row.len())));
        }
        let mut state = State::default();
        for (field, column) in row.fields().iter().zip(row.columns()) {
            let part = match column.data_type() {
                DataType::Struct(_) => {
                    Some(Part::State(State::try_from_array(column.as_struct())?))
                }
                DataType::List(_) => numbers(column.as_list()),
                _ => None,
            };
            if let Some(part) = part {
                state.push(field.name().clone(), part);
            }
        }
        Ok(state)
    }
}

fn list<T: ArrowPrimitiveType>(
    item: &FieldRef,
    values: &ScalarBuffer<T::Native>,
) -> Result<ListArray> {
    if i32::try_from(values.len()).is_err() {
        return Err(Error::limit("a model holds at most 2^31 numbers in one list"));
    }
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    let values = Arc::new(PrimitiveArray::<T>::new(values.clone(), None));
    Ok(ListArray::try_new(Arc::clone(item), offsets, values, None)?)
}

/// The numbers of the only list in `list`.
fn numbers(list: &ListArray) -> Option<Part> {
    let values = list.values();
    let whole = list.value_offsets() == [0, values.len() as i32];
    if !whole || list.null_count() > 0 || values.null_count() > 0 {
        return None;
    }
    match values.data_type() {
        DataType::Float64 => {
            Some(Part::Numbers(values.as_primitive::<Float64Type>().values().clone()))
        }
        DataType::UInt32 => {
            Some(Part::WholeNumbers(values.as_primitive::<UInt32Type>().values().clone()))
        }
        _ => None,
    }
}
