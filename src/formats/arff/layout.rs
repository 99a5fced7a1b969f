//! Where each attribute goes: the schema of the batches and the place of every value.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::attribute::{Attribute, Kind};
use super::header::Header;
use crate::error::{Error, Result};
use crate::formats::LABELS_METADATA_KEY;
use crate::formats::maps::map_field;

/// The column of the label lists.
const LABELS: &str = "labels";

/// Where the values of one attribute go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// The scalar column of this position among the scalar columns.
    Scalar(usize),
    /// The map from names to numbers.
    Numbers,
    /// The map from names to booleans.
    Flags,
    /// The label of this position in declared order.
    Label(usize),
}

/// The plan of a batch: maps first, then scalar columns in file order, labels last.
pub(super) struct Layout {
    pub(super) schema: SchemaRef,
    /// One per attribute.
    pub(super) slots: Vec<Slot>,
    pub(super) has_numbers: bool,
    pub(super) has_flags: bool,
    pub(super) label_names: Vec<String>,
    pub(super) feature_names: Vec<String>,
}

impl Layout {
    /// Plans the columns for `header` with the labels at the positions `labels`, in their order.
    pub(super) fn try_new(header: &Header, labels: &[usize], sparse: bool) -> Result<Layout> {
        let attributes = &header.attributes;
        let mut slots = slots(attributes, sparse);
        let mut label_names = Vec::with_capacity(labels.len());
        for (label, &position) in labels.iter().enumerate() {
            let found = slots.get_mut(position).zip(attributes.get(position));
            let (slot, attribute) = found.ok_or_else(|| Error::internal("no such attribute"))?;
            *slot = Slot::Label(label);
            label_names.push(attribute.name.clone());
        }
        let is_attribute = |name: &str| attributes.iter().any(|a| a.name == name);
        let mut fields = Vec::new();
        let mut feature_names = Vec::new();
        for (slot, attribute) in slots.iter_mut().zip(attributes) {
            if let Slot::Scalar(column) = slot {
                *column = fields.len();
                // The label list is found by its name, so no feature may have it.
                let name = match attribute.name.as_str() {
                    LABELS => free_name(LABELS, is_attribute),
                    name => name.to_string(),
                };
                fields.push(Field::new(name, scalar_type(&attribute.kind), true));
            }
            if !matches!(slot, Slot::Label(_)) {
                feature_names.push(attribute.name.clone());
            }
        }
        let has_numbers = slots.contains(&Slot::Numbers);
        let has_flags = slots.contains(&Slot::Flags);
        let mut columns = Vec::with_capacity(fields.len() + 3);
        if has_numbers {
            let name = free_name("features", is_attribute);
            columns.push(map_field(name, DataType::Utf8, DataType::Float64));
        }
        if has_flags {
            let name = free_name(if has_numbers { "flags" } else { "features" }, is_attribute);
            columns.push(map_field(name, DataType::Utf8, DataType::Boolean));
        }
        columns.append(&mut fields);
        columns.push(labels_field(&label_names)?);
        let schema = Arc::new(Schema::new(columns));
        Ok(Layout { schema, slots, has_numbers, has_flags, label_names, feature_names })
    }
}

/// The slots of all attributes as if none were a label; scalar columns are numbered later.
fn slots(attributes: &[Attribute], sparse: bool) -> Vec<Slot> {
    let slot = |attribute: &Attribute| match attribute.kind {
        Kind::Number if sparse => Slot::Numbers,
        // With `{1,0}` the rows that do not list the attribute are the ones that are on: in a map
        // they would all have to be stored.
        Kind::Flag { first: false } if sparse => Slot::Flags,
        _ => Slot::Scalar(0),
    };
    attributes.iter().map(slot).collect()
}

fn scalar_type(kind: &Kind) -> DataType {
    match kind {
        Kind::Number => DataType::Float64,
        Kind::Flag { .. } => DataType::Boolean,
        Kind::Nominal(_) | Kind::Text => DataType::Utf8,
    }
}

fn labels_field(labels: &[String]) -> Result<Field> {
    let json = serde_json::to_string(labels)
        .map_err(|e| Error::internal(format!("label names as JSON: {e}")).with_source(e))?;
    let item = Field::new_list_field(DataType::Utf8, true);
    let metadata = [(LABELS_METADATA_KEY.to_string(), json)].into();
    Ok(Field::new(LABELS, DataType::List(Arc::new(item)), true).with_metadata(metadata))
}

/// `base`, with as many underscores as it takes not to be `taken`.
fn free_name(base: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = base.to_string();
    while taken(&name) {
        name.push('_');
    }
    name
}
