//! The model row: shared columns, then the state of the algorithm.

use super::FORMAT_VERSION;
use super::message::HeadBytes;
use super::open::Opened;
use crate::data::{FeatureKind, FeatureSpace, Id, Space, Vocabulary};
use crate::error::{Error, Result};
use crate::models::{Algorithm, CheckedSpec, Decay, Model, Registry};
use crate::stats::State;
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, RecordBatch, StringArray, StructArray,
    UInt32Array, UInt64Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, UInt32Type};
use std::collections::HashMap;
use std::sync::Arc;

/// The row of a model.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) head: Arc<Head>,
    pub(super) rows: u64,
    pub(super) state: State,
    decay: Option<Decay>,
}

/// The columns before the number of rows, which models of one query are likely to share.
#[derive(Debug)]
pub(super) struct Head {
    spec: CheckedSpec,
    space: Space,
    columns: Vec<(&'static str, ArrayRef)>,
}

impl Row {
    /// The row of `model`, with the columns of `head` if they are its own.
    pub(super) fn try_new(model: &Model, head: Option<&Arc<Head>>) -> Result<Self> {
        let same = head.filter(|h| h.spec == *model.spec() && h.space == *model.space());
        Ok(Row {
            head: same.map_or_else(|| Head::try_new(model).map(Arc::new), |h| Ok(Arc::clone(h)))?,
            rows: model.rows(),
            state: model.learner().encode()?,
            decay: model.decay(),
        })
    }

    /// Whether `other` has columns of the same names and types.
    pub(super) fn same_columns(&self, other: &Row) -> bool {
        let (mine, theirs) = (self.head.columns(), other.head.columns());
        let same_types = || mine.map(|c| c.data_type()).eq(theirs.map(|c| c.data_type()));
        self.decay == other.decay
            && self.state.same_shape(&other.state)
            && (Arc::ptr_eq(&self.head, &other.head) || same_types())
    }

    /// The row as a batch.
    pub(super) fn to_batch(&self) -> Result<RecordBatch> {
        let mut columns = self.head.columns.clone();
        columns.push(("rows", Arc::new(UInt64Array::from(vec![self.rows]))));
        columns.push(("state", Arc::new(self.state.to_array()?)));
        let field =
            |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), false);
        let fields: Vec<Field> = columns.iter().map(field).collect();
        let arrays = columns.into_iter().map(|c| c.1).collect();
        // Most models have no decay, and no metadata then.
        let decay = self.decay.map(|decay| (Decay::KEY.to_string(), decay.to_text()));
        let schema = Schema::new_with_metadata(fields, HashMap::from_iter(decay));
        Ok(RecordBatch::try_new(Arc::new(schema), arrays)?)
    }
}

impl Head {
    fn try_new(model: &Model) -> Result<Self> {
        let (spec, space) = (model.spec().clone(), model.space().clone());
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("format_version", Arc::new(UInt32Array::from(vec![FORMAT_VERSION]))),
            ("algorithm", Arc::new(StringArray::from(vec![model.algorithm().name]))),
            ("spec", Arc::new(StringArray::from(vec![spec.to_string()]))),
            ("labels", Arc::new(one_list(texts(space.labels.names())))),
            ("features", Arc::new(encode_features(&space.features)?)),
        ];
        Ok(Head { spec, space, columns })
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = &ArrayRef> {
        self.columns.iter().map(|c| &c.1)
    }
}

/// What was read from the columns before the number of rows.
#[derive(Debug)]
pub(super) struct KnownHead {
    /// The columns as they stood in the bytes, unless Arrow read them.
    bytes: Option<HeadBytes>,
    schema: SchemaRef,
    version: u32,
    spec_text: String,
    algorithm: Algorithm,
    spec: CheckedSpec,
    space: Space,
}

impl KnownHead {
    /// The format version that was read.
    pub(super) fn version(&self) -> u32 {
        self.version
    }

    /// The columns as they stood in the bytes, and the schema of the row.
    pub(super) fn bytes(&self) -> Option<(&SchemaRef, &HeadBytes)> {
        self.bytes.as_ref().map(|bytes| (&self.schema, bytes))
    }
}

/// The model in a row that was read; labels of a model are in name order, those of a snapshot in
/// any. What it has in common with `known`, the head of another model, it shares with it.
pub(super) fn decode(
    Opened { schema, read }: Opened,
    registry: &Registry,
    in_order: bool,
    known: &mut Option<Arc<KnownHead>>,
) -> Result<Model> {
    let head = match (read.head, known.as_ref()) {
        (None, None) => return Err(Error::internal("there is no model before this one")),
        (None, Some(known)) => Arc::clone(known),
        (Some((columns, bytes)), last) => {
            let fields: Fields = schema.fields()[..columns.len()].into();
            let row = StructArray::try_new(fields, columns, None)
                .map_err(|e| Error::corrupt(format!("the model cannot be read: {e}")))?;
            let last = last.map(|last| &**last);
            Arc::new(decode_head(&row, registry, in_order, last, Arc::clone(&schema), bytes)?)
        }
    };
    let learner = (head.algorithm.resume)(&head.spec, &head.space, &read.state)?;
    let decay = schema.metadata().get(Decay::KEY).map(|text| Decay::from_text(text)).transpose()?;
    let (spec, space) = (head.spec.clone(), head.space.clone());
    let model = Model::new(head.algorithm, spec, space, read.rows, learner).with_decay(decay);
    *known = Some(head);
    Ok(model)
}

fn decode_head(
    row: &StructArray,
    registry: &Registry,
    in_order: bool,
    last: Option<&KnownHead>,
    schema: SchemaRef,
    bytes: Option<HeadBytes>,
) -> Result<KnownHead> {
    let version = column(row, "format_version")?.as_primitive_opt::<UInt32Type>();
    let version = version.ok_or_else(|| unfit("format_version"))?.value(0);
    if version > FORMAT_VERSION {
        return Err(Error::incompatible(format!(
            "the model has format version {version} and this build reads up to {FORMAT_VERSION}: \
             update labelflow"
        )));
    }
    let spec_text = text(row, "spec")?.to_string();
    let (algorithm, spec) = match last.filter(|last| last.spec_text == spec_text) {
        Some(last) => (last.algorithm, last.spec.clone()),
        None => registry.resolve(&spec_text)?,
    };
    if text(row, "algorithm")? != algorithm.name {
        return Err(Error::corrupt("the model's spec names another algorithm than the model"));
    }
    let none = Space::default();
    let known = last.map_or(&none, |last| &last.space);
    let labels = list(row, "labels")?;
    let labels = labels.as_string_opt().ok_or_else(|| unfit("labels"))?;
    let space = Space {
        labels: vocabulary(labels, in_order, &known.labels)?,
        features: decode_features(structure(row, "features")?, &known.features)?,
    };
    Ok(KnownHead { bytes, schema, version, spec_text, algorithm, spec, space })
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
        if id.index() != i || open.is_some_and(|o| o as usize >= space.open.len()) {
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

fn vocabulary<I: Id>(
    names: &StringArray,
    in_order: bool,
    known: &Vocabulary<I>,
) -> Result<Vocabulary<I>> {
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
