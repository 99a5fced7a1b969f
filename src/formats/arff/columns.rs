//! The columns of the batch that is being read.

use std::sync::Arc;

use arrow::array::{
    ArrayBuilder, ArrayRef, BooleanBuilder, Float64Builder, ListBuilder, MapBuilder, RecordBatch,
    StringBuilder,
};
use arrow::datatypes::SchemaRef;

use super::attribute::{Attribute, Kind};
use super::layout::{Layout, Slot};
use crate::error::{Error, Result};
use crate::formats::maps::map_builder;

/// Collects rows, one value at a time by ascending attribute.
///
/// The caller writes a row as `begin_row`, any number of `put`s, `end_row`. Attributes without a
/// `put` get what a sparse row means by leaving them out. After an error the row is half-written
/// and the columns must not be used again.
pub(super) struct Columns {
    schema: SchemaRef,
    places: Vec<(Attribute, Slot)>,
    scalars: Vec<Scalar>,
    /// The first scalar column without a value in this row.
    next_scalar: usize,
    numbers: Option<MapBuilder<StringBuilder, Float64Builder>>,
    flags: Option<MapBuilder<StringBuilder, BooleanBuilder>>,
    labels: LabelColumn,
    rows: usize,
    text_bytes: usize,
}

/// A scalar column and what an unlisted value means.
enum Scalar {
    Number(Float64Builder),
    Flag(BooleanBuilder, bool),
    Text(StringBuilder, Option<String>),
}

/// The list column of the labels and the row in hand.
struct LabelColumn {
    names: Vec<String>,
    /// Ids of labels that are on when a row does not list them; empty for nearly all files.
    unlisted_on: Vec<usize>,
    on: Vec<usize>,
    missing: bool,
    builder: ListBuilder<StringBuilder>,
}

impl Columns {
    pub(super) fn try_new(attributes: Vec<Attribute>, layout: &Layout) -> Result<Self> {
        let mut scalars = Vec::new();
        let mut unlisted_on = Vec::new();
        for (attribute, slot) in attributes.iter().zip(&layout.slots) {
            match slot {
                Slot::Scalar(_) => scalars.push(Scalar::new(&attribute.kind)),
                Slot::Label(label) if attribute.unlisted_label()? => unlisted_on.push(*label),
                _ => {}
            }
        }
        let labels = LabelColumn {
            names: layout.label_names.clone(),
            unlisted_on,
            on: Vec::new(),
            missing: false,
            builder: ListBuilder::new(StringBuilder::new()),
        };
        Ok(Columns {
            schema: Arc::clone(&layout.schema),
            places: attributes.into_iter().zip(layout.slots.iter().copied()).collect(),
            scalars,
            next_scalar: 0,
            numbers: layout
                .has_numbers
                .then(|| map_builder(StringBuilder::new(), Float64Builder::new())),
            flags: layout
                .has_flags
                .then(|| map_builder(StringBuilder::new(), BooleanBuilder::new())),
            labels,
            rows: 0,
            text_bytes: 0,
        })
    }

    /// The number of attributes of a row.
    pub(super) fn attribute_count(&self) -> usize {
        self.places.len()
    }

    /// The name of the attribute at `position`.
    pub(super) fn attribute_name(&self, position: usize) -> &str {
        self.places.get(position).map_or("", |(attribute, _)| &attribute.name)
    }

    /// The number of rows in hand.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The bytes of text in hand. Arrow counts them in 32 bits, so a batch must end in time.
    pub(super) fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    pub(super) fn begin_row(&mut self) {
        self.next_scalar = 0;
        self.labels.missing = false;
        self.labels.on.clear();
        self.labels.on.extend_from_slice(&self.labels.unlisted_on);
    }

    /// Writes the value of the attribute at `position`; `None` is missing.
    pub(super) fn put(&mut self, position: usize, value: Option<&str>) -> Result<()> {
        let Some((attribute, slot)) = self.places.get(position) else {
            return Err(Error::internal(format!("no attribute at position {position}")));
        };
        match *slot {
            Slot::Label(label) => self.labels.put(label, attribute, value),
            Slot::Scalar(column) => {
                self.text_bytes += fill(&mut self.scalars, self.next_scalar, column);
                self.next_scalar = column + 1;
                self.text_bytes += value.map_or(0, str::len);
                match self.scalars.get_mut(column) {
                    Some(scalar) => scalar.put(attribute, value),
                    None => Err(Error::internal(format!("no scalar column {column}"))),
                }
            }
            Slot::Numbers => {
                let number = value.map(|text| attribute.number(text)).transpose()?;
                if let Some(map) = self.numbers.as_mut().filter(|_| number != Some(0.0)) {
                    map.keys().append_value(&attribute.name);
                    map.values().append_option(number);
                    self.text_bytes += attribute.name.len();
                }
                Ok(())
            }
            Slot::Flags => {
                let flag = value.map(|text| attribute.flag(text)).transpose()?;
                if let Some(map) = self.flags.as_mut().filter(|_| flag != Some(false)) {
                    map.keys().append_value(&attribute.name);
                    map.values().append_option(flag);
                    self.text_bytes += attribute.name.len();
                }
                Ok(())
            }
        }
    }

    pub(super) fn end_row(&mut self) -> Result<()> {
        let count = self.scalars.len();
        self.text_bytes += fill(&mut self.scalars, self.next_scalar, count);
        if let Some(map) = &mut self.numbers {
            map.append(true)?;
        }
        if let Some(map) = &mut self.flags {
            map.append(true)?;
        }
        self.text_bytes += self.labels.end_row();
        self.rows += 1;
        Ok(())
    }

    /// The rows in hand as a batch; the columns are empty afterwards.
    pub(super) fn finish(&mut self) -> Result<RecordBatch> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        if let Some(map) = &mut self.numbers {
            arrays.push(Arc::new(map.finish()));
        }
        if let Some(map) = &mut self.flags {
            arrays.push(Arc::new(map.finish()));
        }
        arrays.extend(self.scalars.iter_mut().map(Scalar::finish));
        arrays.push(Arc::new(self.labels.builder.finish()));
        self.rows = 0;
        self.text_bytes = 0;
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), arrays)?)
    }
}

impl Scalar {
    fn new(kind: &Kind) -> Self {
        match kind {
            Kind::Number => Scalar::Number(Float64Builder::new()),
            Kind::Flag { first } => Scalar::Flag(BooleanBuilder::new(), *first),
            Kind::Nominal(set) => Scalar::Text(StringBuilder::new(), set.first.clone()),
            Kind::Text => Scalar::Text(StringBuilder::new(), None),
        }
    }

    fn put(&mut self, attribute: &Attribute, value: Option<&str>) -> Result<()> {
        match (self, value) {
            (Scalar::Number(builder), Some(text)) => builder.append_value(attribute.number(text)?),
            (Scalar::Flag(builder, _), Some(text)) => builder.append_value(attribute.flag(text)?),
            (Scalar::Text(builder, _), Some(text)) => {
                attribute.check_declared(text)?;
                builder.append_value(text);
            }
            (Scalar::Number(builder), None) => builder.append_null(),
            (Scalar::Flag(builder, _), None) => builder.append_null(),
            (Scalar::Text(builder, _), None) => builder.append_null(),
        }
        Ok(())
    }

    /// Writes what an unlisted value means; returns the bytes of text it took.
    fn put_unlisted(&mut self) -> usize {
        match self {
            Scalar::Number(builder) => builder.append_value(0.0),
            Scalar::Flag(builder, first) => builder.append_value(*first),
            Scalar::Text(builder, first) => {
                builder.append_option(first.as_deref());
                return first.as_ref().map_or(0, String::len);
            }
        }
        0
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Scalar::Number(builder) => ArrayBuilder::finish(builder),
            Scalar::Flag(builder, _) => ArrayBuilder::finish(builder),
            Scalar::Text(builder, _) => ArrayBuilder::finish(builder),
        }
    }
}

impl LabelColumn {
    fn put(&mut self, label: usize, attribute: &Attribute, value: Option<&str>) -> Result<()> {
        let Some(text) = value else {
            self.missing = true;
            return Ok(());
        };
        let on = attribute.label(text)?;
        if !self.unlisted_on.is_empty() {
            self.on.retain(|&other| other != label);
        }
        if on {
            self.on.push(label);
        }
        Ok(())
    }

    /// Writes the row in hand; returns the bytes of text it took.
    fn end_row(&mut self) -> usize {
        if self.missing {
            self.builder.append_null();
            return 0;
        }
        self.on.sort_unstable();
        let mut bytes = 0;
        for name in self.on.iter().filter_map(|&label| self.names.get(label)) {
            self.builder.values().append_value(name);
            bytes += name.len();
        }
        self.builder.append(true);
        bytes
    }
}

/// Writes the unlisted values of the scalar columns from `start` to before `end`.
fn fill(scalars: &mut [Scalar], start: usize, end: usize) -> usize {
    scalars.get_mut(start..end).unwrap_or_default().iter_mut().map(Scalar::put_unlisted).sum()
}
