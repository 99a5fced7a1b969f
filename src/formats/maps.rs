//! Map columns of the rows that list only what is not zero.

use std::sync::Arc;

use arrow::array::{ArrayBuilder, MapBuilder, MapFieldNames};
use arrow::datatypes::{DataType, Field, FieldRef};

/// The entries of a map, with the names the Arrow format suggests.
const ENTRIES: [&str; 3] = ["entries", "key", "value"];

/// A column of maps; every row has one.
pub(super) fn map_field(name: impl Into<String>, key: DataType, value: DataType) -> Field {
    let [entries, key_name, value_name] = ENTRIES;
    let pair = vec![Field::new(key_name, key, false), Field::new(value_name, value, true)];
    let entries: FieldRef = Arc::new(Field::new(entries, DataType::Struct(pair.into()), false));
    Field::new(name, DataType::Map(entries, false), false)
}

/// Builds a column of [`map_field`].
pub(super) fn map_builder<K: ArrayBuilder, V: ArrayBuilder>(
    keys: K,
    values: V,
) -> MapBuilder<K, V> {
    let [entry, key, value] = ENTRIES.map(String::from);
    MapBuilder::new(Some(MapFieldNames { entry, key, value }), keys, values)
}
