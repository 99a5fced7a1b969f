//! Schemas of model rows as text, kept in `schemas/`.

use crate::error::Result;
use crate::models::Model;
use arrow::datatypes::{DataType, Field};
use serde_json::{Value, json};

/// The schema of the row of `model` as JSON: fields with name, type and their fields.
///
/// # Errors
///
/// As [`to_bytes`](super::to_bytes).
pub fn schema_json(model: &Model) -> Result<Value> {
    let batch = super::row::Row::try_new(model, None)?.to_batch()?;
    Ok(Value::Array(batch.schema().fields().iter().map(|f| field(f)).collect()))
}

fn field(f: &Field) -> Value {
    match f.data_type() {
        DataType::Struct(fields) => json!({
            "name": f.name(), "type": "struct", "nullable": f.is_nullable(),
            "fields": fields.iter().map(|f| field(f)).collect::<Vec<_>>(),
        }),
        DataType::List(item) => json!({
            "name": f.name(), "type": "list", "nullable": f.is_nullable(), "item": field(item),
        }),
        other => json!({
            "name": f.name(), "type": other.to_string(), "nullable": f.is_nullable(),
        }),
    }
}
