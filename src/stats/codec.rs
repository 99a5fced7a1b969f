//! Nested Arrow rows for states: a struct of lists, written and read by name.

use crate::error::{Error, Result};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, ListArray, StructArray, UInt32Array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Float64Type, UInt32Type};
use std::sync::{Arc, LazyLock};

/// Items of lists, made once: a small model has dozens of lists.
static NUMBER: LazyLock<FieldRef> =
    LazyLock::new(|| Arc::new(Field::new_list_field(DataType::Float64, false)));
static WHOLE_NUMBER: LazyLock<FieldRef> =
    LazyLock::new(|| Arc::new(Field::new_list_field(DataType::UInt32, false)));

/// Builds a struct array of one row, field by field.
#[derive(Debug, Default)]
pub struct StateWriter {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl StateWriter {
    /// Adds a list of numbers.
    pub fn f64s(&mut self, name: &str, values: impl IntoIterator<Item = f64>) {
        self.list(name, &NUMBER, Arc::new(Float64Array::from_iter_values(values)));
    }

    /// Adds a list of whole numbers.
    pub fn u32s(&mut self, name: &str, values: impl IntoIterator<Item = u32>) {
        self.list(name, &WHOLE_NUMBER, Arc::new(UInt32Array::from_iter_values(values)));
    }

    /// Adds a state inside this one.
    pub fn nested(&mut self, name: &str, row: StructArray) {
        self.fields.push(Field::new(name, row.data_type().clone(), false));
        self.arrays.push(Arc::new(row));
    }

    /// Adds a state inside this one where there is one; else its column is left out.
    pub fn optional(&mut self, name: &str, row: Option<StructArray>) {
        if let Some(row) = row {
            self.nested(name, row);
        }
    }

    fn list(&mut self, name: &str, item: &FieldRef, values: ArrayRef) {
        let offsets = OffsetBuffer::from_lengths([values.len()]);
        self.fields.push(Field::new(name, DataType::List(Arc::clone(item)), false));
        self.arrays.push(Arc::new(ListArray::new(Arc::clone(item), offsets, values, None)));
    }

    /// The row.
    ///
    /// # Errors
    ///
    /// When there is no field.
    pub fn finish(self) -> Result<StructArray> {
        Ok(StructArray::try_new(Fields::from(self.fields), self.arrays, None)?)
    }
}

/// Reads a struct array of one row, field by field; whatever does not fit is `Corrupt`.
#[derive(Debug, Clone, Copy)]
pub struct StateReader<'a> {
    row: &'a StructArray,
}

impl<'a> StateReader<'a> {
    /// A reader of `row`.
    pub fn new(row: &'a StructArray) -> Self {
        StateReader { row }
    }

    /// The list of numbers called `name`.
    pub fn f64s(&self, name: &str) -> Result<&'a [f64]> {
        let values = self.list(name)?.as_primitive_opt::<Float64Type>();
        Ok(values.ok_or_else(|| unfit(name))?.values())
    }

    /// The list of whole numbers called `name`.
    pub fn u32s(&self, name: &str) -> Result<&'a [u32]> {
        let values = self.list(name)?.as_primitive_opt::<UInt32Type>();
        Ok(values.ok_or_else(|| unfit(name))?.values())
    }

    /// The state called `name` inside this one.
    pub fn nested(&self, name: &str) -> Result<&'a StructArray> {
        self.column(name)?.as_struct_opt().ok_or_else(|| unfit(name))
    }

    /// The state called `name` inside this one, where its column is not left out.
    pub fn optional(&self, name: &str) -> Result<Option<&'a StructArray>> {
        self.row.column_by_name(name).map(|_| self.nested(name)).transpose()
    }

    fn column(&self, name: &str) -> Result<&'a ArrayRef> {
        self.row.column_by_name(name).filter(|c| c.len() == 1).ok_or_else(|| unfit(name))
    }

    fn list(&self, name: &str) -> Result<&'a ArrayRef> {
        let list = self.column(name)?.as_list_opt::<i32>().ok_or_else(|| unfit(name))?;
        let whole = list.value_offsets() == [0, list.values().len() as i32];
        if !whole || list.null_count() > 0 || list.values().null_count() > 0 {
            return Err(unfit(name));
        }
        Ok(list.values())
    }
}

fn unfit(name: &str) -> Error {
    Error::corrupt(format!("the model's field `{name}` is missing or of another type"))
}
