//! The model row: shared columns, then the state of the algorithm.

use super::FORMAT_VERSION;
use crate::data::{FeatureKind, FeatureSpace, Space, Vocabulary};
use crate::error::{Error, Result};
use crate::models::{Algorithm, CheckedSpec, Decay, Model, Registry};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, RecordBatch, StringArray, StructArray,
    UInt32Array, UInt64Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields, Schema, UInt32Type, UInt64Type};
use std::collections::HashMap;
use std::sync::Arc;

pub(super) fn encode(model: &Model) -> Result<RecordBatch> {
    let state = model.learner().encode()?;
    let labels = texts(model.space().labels.names());
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("format_version", Arc::new(UInt32Array::from(vec![FORMAT_VERSION]))),
        ("algorithm", Arc::new(StringArray::from(vec![model.algorithm().name]))),
        ("spec", Arc::new(StringArray::from(vec![model.spec().to_string()]))),
        ("labels", Arc::new(one_list(labels))),
        ("features", Arc::new(encode_features(&model.space().features)?)),
        ("rows", Arc::new(UInt64Array::from(vec![model.rows()]))),
        ("state", Arc::new(state)),
    ];
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), false))
        .collect();
    let arrays = columns.into_iter().map(|c| c.1).collect();
    // Most models have no decay, and no metadata then.
    let decay = model.decay().map(|decay| (Decay::KEY.to_string(), decay.to_text()));
    let schema = Schema::new_with_metadata(fields, HashMap::from_iter(decay));
    Ok(RecordBatch::try_new(Arc::new(schema), arrays)?)
}

/// A spec as text and what it stands for.
pub(super) type KnownSpec = (String, Algorithm, CheckedSpec);

/// The model in `batch`; labels of a model are in name order, those of a snapshot in any. Names that
/// are those of `known`, the space of another model, are shared with it, and so is its spec.
pub(super) fn decode(
    batch: &RecordBatch,
    registry: &Registry,
    in_order: bool,
    known: &Space,
    known_spec: &mut Option<KnownSpec>,
) -> Result<Model> {
    if batch.num_rows() != 1 {
        return Err(Error::corrupt(format!("a model is one row, not {}", batch.num_rows())));
    }
    let row = StructArray::from(batch.clone());
    let version = column(&row, "format_version")?.as_primitive_opt::<UInt32Type>();
    let version = version.ok_or_else(|| unfit("format_version"))?.value(0);
    if version > FORMAT_VERSION {
        return Err(Error::incompatible(format!(
            "the model has format version {version} and this build reads up to {FORMAT_VERSION}: \
             update labelflow"
        )));
    }
    let (algorithm, spec) = resolve(text(&row, "spec")?, registry, known_spec)?;
    if text(&row, "algorithm")? != algorithm.name {
        return Err(Error::corrupt("the model's spec names another algorithm than the model"));
    }
    let labels = list(&row, "labels")?;
    let space = Space {
        labels: vocabulary(
            labels.as_string_opt().ok_or_else(|| unfit("labels"))?,
            in_order,
            &known.labels,
        )?,
        features: decode_features(structure(&row, "features")?, &known.features)?,
    };
    let rows = column(&row, "rows")?.as_primitive_opt::<UInt64Type>();
    let rows = rows.ok_or_else(|| unfit("rows"))?.value(0);
    let learner = (algorithm.resume)(&spec, &space, structure(&row, "state")?)?;
    let decay = batch.schema_ref().metadata().get(Decay::KEY);
    let decay = decay.map(|text| Decay::from_text(text)).transpose()?;
    Ok(Model::new(algorithm, spec, space, rows, learner).with_decay(decay))
}

fn resolve(
    text: &str,
    registry: &Registry,
    known: &mut Option<KnownSpec>,
) -> Result<(Algorithm, CheckedSpec)> {
    if let Some((_, algorithm, spec)) = known.as_ref().filter(|known| known.0 == text) {
        return Ok((*algorithm, spec.clone()));
    }
    let (algorithm, spec) = registry.resolve(text)?;
    *known = Some((text.to_string(), algorithm, spec.clone()));
    Ok((algorithm, spec))
}

/// The families of features that there are, dense ones always: empty families are left out.
fn encode_features(space: &FeatureSpace) -> Result<StructArray> {
    let mut families = Vec::new();
    let mut add = |name, values| families.push((name, Arc::new(one_list(values)) as ArrayRef));
    let dense = structs(vec![
        ("name", texts(space.dense.names())),
        ("column", flags(&space.dense_column)),
    ])?;
    add("dense", Arc::new(dense));
    if !space.open.is_empty() {
        add("open", texts(space.open.names()));
    }
    if !space.sparse.is_empty() {
        let kinds = space.sparse_kind.iter().map(|k| k.name());
        let sparse = structs(vec![
            ("name", texts(space.sparse.names())),
            ("kind", texts(kinds)),
            ("open", Arc::new(UInt32Array::from_iter(space.sparse_open.iter().copied()))),
        ])?;
        add("sparse", Arc::new(sparse));
    }
    if !space.categories.is_empty() {
        add("categories", Arc::new(encode_categories(space)?));
    }
    structs(families)
}

fn encode_categories(space: &FeatureSpace) -> Result<StructArray> {
    let lengths = space.values.iter().map(Vocabulary::len);
    let values: Vec<&str> = space.values.iter().flat_map(Vocabulary::names).collect();
    let values = texts(values.into_iter());
    let item = Arc::new(Field::new_list_field(DataType::Utf8, false));
    let values = ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), values, None)?;
    structs(vec![("name", texts(space.categories.names())), ("values", Arc::new(values))])
}

fn decode_features(row: &StructArray, known: &FeatureSpace) -> Result<FeatureSpace> {
    let family = |name: &str| -> Result<Option<StructArray>> {
        let there = row.column_by_name(name).map(|_| list(row, name)).transpose()?;
        there.map(|l| l.as_struct_opt().cloned().ok_or_else(|| unfit(name))).transpose()
    };
    let mut space = FeatureSpace { declared: true, ..FeatureSpace::default() };
    let dense = family("dense")?.ok_or_else(|| unfit("dense"))?;
    space.dense = vocabulary(names(&dense)?, true, &known.dense)?;
    let flags = column(&dense, "column")?.as_boolean_opt().ok_or_else(|| unfit("column"))?;
    space.dense_column = flags.values().iter().collect();
    if row.column_by_name("open").is_some() {
        let columns = list(row, "open")?;
        let columns = columns.as_string_opt().ok_or_else(|| unfit("open"))?;
        space.open = vocabulary(columns, true, &known.open)?;
    }
    if let Some(sparse) = family("sparse")? {
        decode_sparse(&sparse, &mut space)?;
    }
    if let Some(categories) = family("categories")? {
        decode_categories(&categories, &mut space)?;
    }
    Ok(space)
}

fn names(family: &StructArray) -> Result<&StringArray> {
    column(family, "name")?.as_string_opt::<i32>().ok_or_else(|| unfit("name"))
}

fn decode_sparse(sparse: &StructArray, space: &mut FeatureSpace) -> Result<()> {
    let kinds = column(sparse, "kind")?.as_string_opt::<i32>().ok_or_else(|| unfit("kind"))?;
    let open = sparse.column_by_name("open").and_then(|c| c.as_primitive_opt::<UInt32Type>());
    let open = open.ok_or_else(|| unfit("open"))?;
    for (i, name) in names(sparse)?.iter().enumerate() {
        let kind: FeatureKind = kinds.value(i).parse()?;
        let open = open.is_valid(i).then(|| open.value(i));
        let id = space.intern_sparse(name.unwrap_or_default(), kind, open);
        if id as usize != i || open.is_some_and(|o| o as usize >= space.open.len()) {
            return Err(Error::corrupt("a feature of the model stands twice or has no column"));
        }
    }
    Ok(())
}

fn decode_categories(categories: &StructArray, space: &mut FeatureSpace) -> Result<()> {
    let values =
        column(categories, "values")?.as_list_opt::<i32>().ok_or_else(|| unfit("values"))?;
    for (i, name) in names(categories)?.iter().enumerate() {
        let id = space.add_category(name.unwrap_or_default());
        let texts = values.value(i);
        for value in texts.as_string_opt::<i32>().ok_or_else(|| unfit("values"))? {
            space.intern_value(id, value.unwrap_or_default());
        }
    }
    Ok(())
}

fn texts<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter(values.map(Some)))
}

fn flags(values: &[bool]) -> ArrayRef {
    Arc::new(BooleanArray::from(values.to_vec()))
}

fn structs(columns: Vec<(&str, ArrayRef)>) -> Result<StructArray> {
    // Only the open column of a feature may be NULL: the feature is a column itself.
    let field = |(name, array): &(&str, ArrayRef)| {
        let nullable = array.data_type() == &DataType::UInt32;
        Field::new(*name, array.data_type().clone(), nullable)
    };
    let fields: Fields = columns.iter().map(field).collect();
    Ok(StructArray::try_new(fields, columns.into_iter().map(|c| c.1).collect(), None)?)
}

fn one_list(values: ArrayRef) -> ListArray {
    let item = Arc::new(Field::new_list_field(values.data_type().clone(), false));
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    ListArray::new(item, offsets, values, None)
}

fn vocabulary(names: &StringArray, in_order: bool, known: &Vocabulary) -> Result<Vocabulary> {
    let names: Vec<&str> = names.iter().flatten().collect();
    if in_order && !names.is_sorted() {
        return Err(Error::corrupt("the names of a model are not in order"));
    }
    if names.len() == known.len() && known.names().eq(names.iter().copied()) {
        return Ok(known.clone());
    }
    Vocabulary::try_from_names(names).map_err(|e| Error::corrupt(e.to_string()))
}

fn unfit(name: &str) -> Error {
    Error::corrupt(format!("the model's column `{name}` is missing or of another type"))
}

fn column<'a>(row: &'a StructArray, name: &str) -> Result<&'a ArrayRef> {
    row.column_by_name(name).filter(|c| c.null_count() == 0).ok_or_else(|| unfit(name))
}

fn structure<'a>(row: &'a StructArray, name: &str) -> Result<&'a StructArray> {
    column(row, name)?.as_struct_opt().ok_or_else(|| unfit(name))
}

fn text<'a>(row: &'a StructArray, name: &str) -> Result<&'a str> {
    let column = column(row, name)?.as_string_opt::<i32>().ok_or_else(|| unfit(name))?;
    Ok(column.value(0))
}

fn list(row: &StructArray, name: &str) -> Result<ArrayRef> {
    let lists = column(row, name)?.as_list_opt::<i32>().ok_or_else(|| unfit(name))?;
    if lists.len() != 1 || lists.values().null_count() > 0 {
        return Err(unfit(name));
    }
    Ok(lists.value(0))
}
