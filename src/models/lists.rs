//! What models answer, as Arrow lists.

use super::RankedSet;
use crate::data::{LabelId, Vocabulary};
use crate::error::{Error, Result};
use arrow::array::{ArrayRef, Float64Array, ListArray, StringArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields};
use std::sync::Arc;

/// Lists of labels, one per row, in the making; rows may be answered by different models.
#[derive(Debug)]
pub struct LabelLists {
    /// Where the entries of each row end.
    rows: Vec<i32>,
    /// Where the labels of each entry end, when entries are sets.
    sets: Vec<i32>,
    /// Where each name ends.
    names: Vec<i32>,
    text: Vec<u8>,
    /// The score of each label, or the probability of each set.
    numbers: Vec<f64>,
}

impl Default for LabelLists {
    fn default() -> Self {
        LabelLists {
            rows: vec![0],
            sets: vec![0],
            names: vec![0],
            text: Vec::new(),
            numbers: Vec::new(),
        }
    }
}

impl LabelLists {
    fn name(&mut self, name: &str) {
        self.text.extend_from_slice(name.as_bytes());
        self.names.push(self.text.len() as i32);
    }

    fn end_row(&mut self, entries: usize) {
        let last = self.rows.last().copied().unwrap_or(0);
        self.rows.push(last + entries as i32);
    }

    /// Adds a row: labels by their ids.
    pub(crate) fn push(
        &mut self,
        labels: &Vocabulary<LabelId>,
        ids: impl ExactSizeIterator<Item = LabelId>,
    ) {
        let entries = ids.len();
        ids.for_each(|id| self.name(labels.name(id)));
        self.end_row(entries);
    }

    /// Adds a row: labels by their ids, with scores.
    pub(super) fn push_scored(
        &mut self,
        labels: &Vocabulary<LabelId>,
        row: impl Iterator<Item = (LabelId, f64)>,
    ) {
        let before = self.numbers.len();
        for (id, score) in row {
            self.name(labels.name(id));
            self.numbers.push(score);
        }
        self.end_row(self.numbers.len() - before);
    }

    /// Adds a row: label sets with their probabilities.
    pub(super) fn push_sets(&mut self, labels: &Vocabulary<LabelId>, row: &[RankedSet]) {
        for set in row {
            set.labels.iter().for_each(|&id| self.name(labels.name(id)));
            self.sets.push(self.names.len() as i32 - 1);
            self.numbers.push(set.probability);
        }
        self.end_row(row.len());
    }

    /// The type of an entry of [`LabelLists::names`].
    pub fn name_type() -> DataType {
        DataType::Utf8
    }

    /// The type of an entry of [`LabelLists::scored`].
    pub fn scored_type() -> DataType {
        DataType::Struct(Fields::from(vec![
            Field::new("label", DataType::Utf8, false),
            Field::new("score", DataType::Float64, false),
        ]))
    }

    /// The type of an entry of [`LabelLists::ranked_sets`].
    pub fn set_type() -> DataType {
        let labels = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
        DataType::Struct(Fields::from(vec![
            Field::new("labels", labels, false),
            Field::new("probability", DataType::Float64, false),
        ]))
    }

    /// Lists of names.
    ///
    /// # Errors
    ///
    /// Rows that were pushed otherwise, or that take more than 2 GiB.
    pub fn names(self) -> Result<ListArray> {
        let names = texts(self.names, self.text)?;
        list(self.rows, names, LabelLists::name_type())
    }

    /// Lists of names with scores.
    ///
    /// # Errors
    ///
    /// As [`LabelLists::names`].
    pub fn scored(self) -> Result<ListArray> {
        let names = texts(self.names, self.text)?;
        list(
            self.rows,
            pairs(LabelLists::scored_type(), names, self.numbers)?,
            LabelLists::scored_type(),
        )
    }

    /// Lists of sets with probabilities.
    ///
    /// # Errors
    ///
    /// As [`LabelLists::names`].
    pub fn ranked_sets(self) -> Result<ListArray> {
        let sets = list(self.sets, texts(self.names, self.text)?, LabelLists::name_type())?;
        let entries = pairs(LabelLists::set_type(), Arc::new(sets), self.numbers)?;
        list(self.rows, entries, LabelLists::set_type())
    }
}

fn texts(ends: Vec<i32>, text: Vec<u8>) -> Result<ArrayRef> {
    if text.len() > i32::MAX as usize {
        return Err(Error::limit(
            "the labels of one batch take more than 2 GiB: ask for fewer labels, or use smaller \
             batches",
        ));
    }
    Ok(Arc::new(StringArray::try_new(OffsetBuffer::new(ends.into()), text.into(), None)?))
}

fn list(ends: Vec<i32>, entries: ArrayRef, item: DataType) -> Result<ListArray> {
    let item = Arc::new(Field::new_list_field(item, true));
    Ok(ListArray::try_new(item, OffsetBuffer::new(ends.into()), entries, None)?)
}

fn pairs(data_type: DataType, first: ArrayRef, numbers: Vec<f64>) -> Result<ArrayRef> {
    let DataType::Struct(fields) = data_type else {
        return Err(Error::internal("entries with numbers are structs"));
    };
    let numbers = Arc::new(Float64Array::from(numbers));
    Ok(Arc::new(StructArray::try_new(fields, vec![first, numbers], None)?))
}
