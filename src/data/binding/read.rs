//! From arrays to rows.

use super::super::plain::plain;
use super::super::{FeatureKind, FeatureSpace, MISSING_CATEGORY, Rows};
use super::source::Open;
use super::{Binding, Leaf, Source, Target};
use crate::error::{Error, Result};
use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, GenericListArray, MapArray, StringArray, make_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type};
use std::sync::Arc;

/// Rows that are turned from columns into rows at a time: small enough to stay in the cache.
const BLOCK: usize = 64;
/// The number of a name that is not known.
const UNKNOWN: u32 = u32::MAX;

/// Where names are looked up.
pub(super) enum Names<'a> {
    Known(&'a FeatureSpace),
    Grow(&'a mut FeatureSpace, Option<usize>),
}

impl Names<'_> {
    fn sparse(&mut self, name: &str, open: Open) -> Result<u32> {
        match self {
            Names::Known(space) => Ok(space.sparse.get(name).unwrap_or(UNKNOWN)),
            Names::Grow(space, max) => {
                let id = space.intern_sparse(name, open.kind, Some(open.column));
                if max.is_some_and(|max| space.len() > max) {
                    return Err(Error::limit(format!(
                        "feature `{name}` is one more than max_features={} allows: raise it or use \
                         fewer features",
                        space.len() - 1
                    )));
                }
                Ok(id)
            }
        }
    }

    fn value(&mut self, column: u32, value: &str) -> u32 {
        match self {
            Names::Known(space) => space.value_id(column, value).unwrap_or(MISSING_CATEGORY),
            Names::Grow(space, _) => space.intern_value(column, value),
        }
    }

    fn space(&self) -> &FeatureSpace {
        match self {
            Names::Known(space) => space,
            Names::Grow(space, _) => space,
        }
    }
}

/// Sparse entries of one leaf, ready to be walked row by row.
enum Entries {
    Scalar { values: Float64Array, id: u32, kind: FeatureKind, name: String },
    Lists(Lists),
}

/// Names and values of an open column, row by row; rows that are NULL have none.
struct Lists {
    column: u32,
    offsets: Vec<usize>,
    ids: Vec<u32>,
    values: Vec<f64>,
    present: Option<NullBuffer>,
}

impl Lists {
    fn new(open: Open, nulls: Option<&NullBuffer>) -> Self {
        let present = nulls.filter(|n| n.null_count() > 0).cloned();
        Lists {
            column: open.column,
            offsets: vec![0],
            ids: Vec::new(),
            values: Vec::new(),
            present,
        }
    }

    fn has(&self, row: usize) -> bool {
        self.present.as_ref().is_none_or(|p| p.is_valid(row))
    }

    /// Reads the rows that are there; `entries(i)` gives the name and value of entry `i`.
    fn fill(
        &mut self,
        list_offsets: impl ExactSizeIterator<Item = usize> + Clone,
        mut entry: impl FnMut(usize, usize) -> Result<(u32, f64)>,
    ) -> Result<()> {
        let ends = list_offsets.clone().skip(1);
        for (row, (start, end)) in list_offsets.zip(ends).enumerate() {
            if self.has(row) {
                for i in start..end {
                    let (id, value) = entry(start, i)?;
                    self.ids.push(id);
                    self.values.push(value);
                }
            }
            self.offsets.push(self.ids.len());
        }
        Ok(())
    }
}

impl Binding {
    pub(super) fn read_rows(
        &self,
        root: &ArrayRef,
        mut names: Names<'_>,
        rows: &mut Rows,
    ) -> Result<()> {
        if root.data_type() != &self.data_type {
            return Err(Error::internal(format!(
                "a batch of type {} came to a reader of {}",
                root.data_type(),
                self.data_type
            )));
        }
        rows.len = root.len();
        rows.dense_width = names.space().dense_len();
        rows.category_width = names.space().category_len();
        rows.open_width = names.space().open_len();
        let mut dense: Vec<(u32, Float64Array, &str)> = Vec::new();
        let mut sparse = Vec::new();
        rows.categories.clear();
        rows.categories.resize(rows.len * rows.category_width, MISSING_CATEGORY);
        for leaf in &self.leaves {
            let array = at_path(root, &leaf.path)?;
            match &leaf.target {
                Target::Dense(id) => dense.push((*id, numbers(&array)?, &leaf.name)),
                Target::DenseVector(ids) => read_vector(&array, ids, leaf, &mut dense)?,
                Target::Category(id) => {
                    if array.data_type().is_floating()
                        && numbers(&array)?.iter().flatten().any(f64::is_infinite)
                    {
                        return Err(infinite(&leaf.name));
                    }
                    read_category(&array, *id, &mut names, rows)?;
                }
                Target::Sparse { id, kind } => sparse.push(Entries::Scalar {
                    values: numbers(&array)?,
                    id: *id,
                    kind: *kind,
                    name: leaf.name.clone(),
                }),
                Target::Map(open) => {
                    sparse.push(Entries::Lists(map_entries(&array, leaf, *open, &mut names)?));
                }
                Target::Tokens(open) => {
                    sparse.push(Entries::Lists(token_entries(&array, leaf, *open, &mut names)?));
                }
                Target::SparseVector(open) => {
                    sparse.push(Entries::Lists(vector_entries(&array, leaf, *open, &mut names)?));
                }
            }
        }
        transpose(&dense, rows)?;
        self.push_sparse(&sparse, rows)?;
        if let Some(path) = &self.given_size {
            let sizes = numbers(&at_path(root, path)?)?;
            rows.given_size.extend(sizes.iter().map(|s| s.map_or(0, |s| s.max(0.0) as u32)));
        }
        Ok(())
    }

    fn push_sparse(&self, sparse: &[Entries], rows: &mut Rows) -> Result<()> {
        let absent = |e: &Entries| matches!(e, Entries::Lists(lists) if lists.present.is_some());
        if sparse.iter().any(absent) {
            rows.open_present.resize(rows.len * rows.open_width, true);
        }
        for row in 0..rows.len {
            for entries in sparse {
                match entries {
                    Entries::Scalar { values, id, kind, name } => {
                        let value = if values.is_null(row) { f64::NAN } else { values.value(row) };
                        if let Some(value) = entry(value, *kind, name)? {
                            rows.sparse.push(*id, value);
                        }
                    }
                    Entries::Lists(lists) => {
                        if !lists.has(row) {
                            let at = row * rows.open_width + lists.column as usize;
                            rows.open_present[at] = false;
                        }
                        for i in lists.offsets[row]..lists.offsets[row + 1] {
                            if lists.ids[i] != UNKNOWN && lists.values[i] != 0.0 {
                                rows.sparse.push(lists.ids[i], lists.values[i]);
                            }
                        }
                    }
                }
            }
            rows.sparse.end_row();
        }
        Ok(())
    }
}

/// The value to store for a raw one; `None` for zero.
fn entry(value: f64, kind: FeatureKind, name: &str) -> Result<Option<f64>> {
    if value.is_nan() {
        return Ok(Some(value));
    }
    if value.is_infinite() {
        return Err(infinite(name));
    }
    if value == 0.0 {
        return Ok(None);
    }
    match kind {
        FeatureKind::Binary => Ok(Some(1.0)),
        FeatureKind::Count if value < 0.0 => Err(Error::data(format!(
            "feature `{name}` is a count and holds {value}: counts must not be negative"
        ))),
        _ => Ok(Some(value)),
    }
}

fn infinite(name: &str) -> Error {
    Error::data(format!(
        "feature `{name}` holds an infinite value: make it NULL where it is unknown, or clip it"
    ))
}

/// The array at `path` below `root`, without dictionaries and runs; rows whose struct is NULL are
/// NULL.
fn at_path(root: &ArrayRef, path: &[usize]) -> Result<ArrayRef> {
    let mut array = plain(root)?;
    for &i in path {
        let parent = array
            .as_struct_opt()
            .ok_or_else(|| Error::internal("a feature path leads through no struct"))?;
        let child = Arc::clone(parent.column(i));
        array = match parent.nulls().filter(|n| n.null_count() > 0) {
            None => plain(&child)?,
            // Nothing but NULLs is in there anyway.
            Some(_) if child.data_type() == &DataType::Null => child,
            Some(nulls) => {
                let child = plain(&child)?;
                let nulls = NullBuffer::union(Some(nulls), child.nulls());
                make_array(child.to_data().into_builder().nulls(nulls).build()?)
            }
        };
    }
    Ok(array)
}

fn numbers(array: &ArrayRef) -> Result<Float64Array> {
    if let Some(values) = array.as_primitive_opt::<Float64Type>() {
        return Ok(values.clone());
    }
    Ok(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}

fn texts(array: &ArrayRef) -> Result<StringArray> {
    if let Some(values) = array.as_string_opt::<i32>() {
        return Ok(values.clone());
    }
    Ok(cast(array, &DataType::Utf8)?.as_string::<i32>().clone())
}

/// Any kind of list as a plain list of `item`.
fn as_list(array: &ArrayRef, item: DataType) -> Result<GenericListArray<i64>> {
    let wanted = DataType::LargeList(Arc::new(Field::new_list_field(item, true)));
    Ok(cast(array, &wanted)?.as_list::<i64>().clone())
}

fn read_category(array: &ArrayRef, id: u32, names: &mut Names<'_>, rows: &mut Rows) -> Result<()> {
    let values = texts(array)?;
    let width = rows.category_width;
    for (row, value) in values.iter().enumerate() {
        if let Some(value) = value {
            rows.categories[row * width + id as usize] = names.value(id, value);
        }
    }
    Ok(())
}

/// The length of the first vector of `source` that is not NULL.
pub(super) fn vector_width(root: &ArrayRef, source: &Source) -> Result<usize> {
    let list = as_list(&at_path(root, &source.path)?, DataType::Float64)?;
    let first = (0..list.len()).find(|&r| list.is_valid(r)).map(|r| list.value_length(r) as usize);
    match first {
        Some(0) => Err(Error::data("the list of numbers is empty: there is no feature in it")),
        Some(width) => Ok(width),
        None => Err(Error::data(
            "the list of numbers is NULL in every row of the first batch: its length is unknown",
        )),
    }
}

fn read_vector<'a>(
    array: &ArrayRef,
    ids: &[u32],
    leaf: &'a Leaf,
    dense: &mut Vec<(u32, Float64Array, &'a str)>,
) -> Result<()> {
    let list = as_list(array, DataType::Float64)?;
    let values: &Float64Array = list.values().as_primitive();
    let mut columns = vec![Vec::with_capacity(list.len()); ids.len()];
    for row in 0..list.len() {
        if list.is_null(row) {
            columns.iter_mut().for_each(|c| c.push(f64::NAN));
            continue;
        }
        let (start, len) = (list.value_offsets()[row] as usize, list.value_length(row) as usize);
        if len != ids.len() {
            return Err(Error::data(format!(
                "row {row} has a vector of {len} numbers, expected {}: all rows need the same length",
                ids.len()
            )));
        }
        for (i, column) in columns.iter_mut().enumerate() {
            let at = start + i;
            column.push(if values.is_null(at) { f64::NAN } else { values.value(at) });
        }
    }
    let arrays = ids.iter().zip(columns).map(|(&id, c)| (id, Float64Array::from(c), &*leaf.name));
    dense.extend(arrays);
    Ok(())
}

/// Columns to rows, a block of rows at a time.
fn transpose(dense: &[(u32, Float64Array, &str)], rows: &mut Rows) -> Result<()> {
    let width = rows.dense_width;
    for (_, values, name) in dense {
        let finite = values.values().iter().fold(true, |all, v| all & v.is_finite());
        if !finite && values.iter().flatten().any(f64::is_infinite) {
            return Err(infinite(name));
        }
        rows.dense_missing |= !finite || values.null_count() > 0;
    }
    // Every dense feature is bound, so every number is written: old ones need no clearing.
    rows.dense.resize(rows.len * width, f64::NAN);
    for (block, out) in rows.dense.chunks_mut((BLOCK * width).max(1)).enumerate() {
        let start = block * BLOCK;
        let len = out.len() / width;
        for (id, values, _) in dense {
            let column = &values.values()[start..start + len];
            for (slot, &value) in out[*id as usize..].iter_mut().step_by(width).zip(column) {
                *slot = value;
            }
        }
    }
    for (id, values, _) in dense {
        if let Some(nulls) = values.nulls().filter(|n| n.null_count() > 0) {
            for row in (0..rows.len).filter(|&r| nulls.is_null(r)) {
                rows.dense[row * width + *id as usize] = f64::NAN;
            }
        }
    }
    Ok(())
}

fn map_entries(array: &ArrayRef, leaf: &Leaf, open: Open, names: &mut Names<'_>) -> Result<Lists> {
    let map: &MapArray = array.as_map_opt().ok_or_else(|| Error::internal("no map array"))?;
    let keys = texts(map.keys())?;
    let numbers = numbers(map.values())?;
    let mut key = Key::new(&leaf.name);
    let mut lists = Lists::new(open, map.nulls());
    lists.fill(map.value_offsets().iter().map(|&o| o as usize), |_, i| {
        let name = key.of(keys.value(i));
        let value = if numbers.is_null(i) { f64::NAN } else { numbers.value(i) };
        let value = entry(value, open.kind, name)?.unwrap_or(0.0);
        Ok((names.sparse(name, open)?, value))
    })?;
    Ok(lists)
}

fn token_entries(
    array: &ArrayRef,
    leaf: &Leaf,
    open: Open,
    names: &mut Names<'_>,
) -> Result<Lists> {
    let list = as_list(array, DataType::Utf8)?;
    let tokens: &StringArray = list.values().as_string();
    let mut key = Key::new(&leaf.name);
    let mut lists = Lists::new(open, list.nulls());
    lists.fill(list.value_offsets().iter().map(|&o| o as usize), |_, i| {
        if tokens.is_null(i) {
            return Ok((UNKNOWN, 0.0));
        }
        Ok((names.sparse(key.of(tokens.value(i)), open)?, 1.0))
    })?;
    if open.kind == FeatureKind::Binary {
        // A token that stands several times in a row is present once.
        for w in lists.offsets.windows(2) {
            for i in w[0]..w[1] {
                if lists.ids[w[0]..i].contains(&lists.ids[i]) {
                    lists.values[i] = 0.0;
                }
            }
        }
    }
    Ok(lists)
}

fn vector_entries(
    array: &ArrayRef,
    leaf: &Leaf,
    open: Open,
    names: &mut Names<'_>,
) -> Result<Lists> {
    let list = as_list(array, DataType::Float64)?;
    let numbers: &Float64Array = list.values().as_primitive();
    let mut key = Key::new(&leaf.name);
    let mut lists = Lists::new(open, list.nulls());
    lists.fill(list.value_offsets().iter().map(|&o| o as usize), |start, i| {
        let name = key.of(&(i - start).to_string());
        let value = if numbers.is_null(i) { f64::NAN } else { numbers.value(i) };
        let value = entry(value, open.kind, name)?.unwrap_or(0.0);
        Ok((names.sparse(name, open)?, value))
    })?;
    Ok(lists)
}

/// Prefix and name in one buffer, reused from name to name.
struct Key {
    buffer: String,
    prefix: usize,
}

impl Key {
    fn new(prefix: &str) -> Self {
        Key { buffer: prefix.to_string(), prefix: prefix.len() }
    }

    fn of(&mut self, name: &str) -> &str {
        self.buffer.truncate(self.prefix);
        self.buffer.push_str(name);
        &self.buffer
    }
}
