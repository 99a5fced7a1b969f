//! From arrays to rows.

use super::super::plain::plain;
use super::super::{FeatureId, FeatureKind, FeatureSpace, Id, MISSING_CATEGORY, Rows, ValueId};
use super::source::{Open, column_called};
use super::{Binding, Leaf, Source, Target};
use crate::error::{Error, Result};
use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, GenericListArray, MapArray, StringArray, make_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type};
use std::sync::Arc;

/// Rows that are turned from columns into rows at a time: four lines of the cache of each column,
/// which the processor fetches ahead, and few enough for the rows to stay in it.
const ROWS: usize = 32;

/// Where names are looked up.
pub(super) enum Names<'a> {
    Known(&'a FeatureSpace),
    Grow(&'a mut FeatureSpace),
}

impl Names<'_> {
    /// The number of the key or token `name` of an open column; none when it is not known.
    fn sparse(&mut self, name: &str, open: Open) -> Result<FeatureId> {
        match self {
            Names::Known(space) => {
                let own = |id: &FeatureId| space.sparse_open(*id) == Some(open.column);
                Ok(space.sparse.get(name).filter(own).unwrap_or(FeatureId::NONE))
            }
            Names::Grow(space) => {
                let known = space.sparse_len();
                let id = space.intern_sparse(name, open.kind, Some(open.column));
                let other = match id.index() < known {
                    true => space.sparse_open(id) != Some(open.column),
                    false => space.dense.get(name).or(space.categories.get(name)).is_some(),
                };
                if other {
                    return Err(Error::data(format!(
                        "feature `{name}` is a key or token of column `{}`, and of another column \
                         too: rename one of the columns",
                        space.open.name(open.column).trim_end_matches('.')
                    )));
                }
                Ok(id)
            }
        }
    }

    /// Number and value of an entry of an open column. A zero says nothing of its name, which is
    /// not learned.
    fn entry(&mut self, name: &str, value: f64, open: Open) -> Result<(FeatureId, f64)> {
        match entry(value, open.kind, name)? {
            None => Ok((FeatureId::NONE, 0.0)),
            Some(value) => Ok((self.sparse(name, open)?, value)),
        }
    }

    fn value(&mut self, column: u32, value: &str) -> ValueId {
        match self {
            Names::Known(space) => space.value_id(column, value).unwrap_or(MISSING_CATEGORY),
            Names::Grow(space) => space.intern_value(column, value),
        }
    }

    fn space(&self) -> &FeatureSpace {
        match self {
            Names::Known(space) => space,
            Names::Grow(space) => space,
        }
    }
}

/// Sparse entries of one leaf, ready to be walked row by row.
enum Entries {
    Scalar { values: Float64Array, id: FeatureId, kind: FeatureKind, name: String },
    Lists(Lists),
}

/// Names and values of an open column, row by row; rows that are NULL have none.
struct Lists {
    column: u32,
    offsets: Vec<usize>,
    ids: Vec<FeatureId>,
    values: Vec<f64>,
    present: Option<NullBuffer>,
    /// Whether a name counts once in a row, however often it stands there.
    once: bool,
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
            once: open.kind == FeatureKind::Binary,
        }
    }

    fn has(&self, row: usize) -> bool {
        self.present.as_ref().is_none_or(|p| p.is_valid(row))
    }

    /// Reads the rows that are there; `entries(i)` gives the name and value of entry `i`.
    fn fill(
        &mut self,
        list_offsets: impl ExactSizeIterator<Item = usize> + Clone,
        mut entry: impl FnMut(usize, usize) -> Result<(FeatureId, f64)>,
    ) -> Result<()> {
        let ends = list_offsets.clone().skip(1);
        for (row, (start, end)) in list_offsets.zip(ends).enumerate() {
            if self.has(row) {
                let first = self.ids.len();
                for i in start..end {
                    let (id, value) = entry(start, i)?;
                    if id != FeatureId::NONE && value != 0.0 {
                        self.ids.push(id);
                        self.values.push(value);
                    }
                }
                if self.once {
                    self.drop_repeated(first);
                }
            }
            self.offsets.push(self.ids.len());
        }
        Ok(())
    }

    /// Keeps each name of the row that begins at `first` once: a feature that is present several
    /// times is present.
    fn drop_repeated(&mut self, first: usize) {
        if self.ids[first..].is_sorted_by(|a, b| a < b) {
            return;
        }
        let values = self.values.drain(first..);
        let mut row: Vec<(FeatureId, f64)> = self.ids.drain(first..).zip(values).collect();
        // NaN, which is missing, comes last.
        row.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        row.dedup_by_key(|entry| entry.0);
        self.ids.extend(row.iter().map(|entry| entry.0));
        self.values.extend(row.iter().map(|entry| entry.1));
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
        let mut dense: Vec<(u32, Float64Array)> = Vec::new();
        let mut sparse = Vec::new();
        rows.categories.clear();
        rows.categories.resize(rows.len * rows.category_width, MISSING_CATEGORY);
        for leaf in &self.leaves {
            let array = at_path(root, &leaf.path)?;
            match &leaf.target {
                Target::Dense(id) => dense.push((*id, numbers(&array)?)),
                Target::DenseVector(ids) => read_vector(&array, ids, leaf, &mut dense)?,
                Target::Category(id) => read_category(&array, *id, leaf, &mut names, rows)?,
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
        transpose(&dense, names.space(), rows)?;
        self.push_sparse(&sparse, rows)?;
        if let Some((path, name)) = &self.given_size {
            for size in &numbers(&at_path(root, path)?)? {
                let size = size.filter(|s| !s.is_nan()).unwrap_or(0.0);
                if size < 0.0 || size.fract() != 0.0 || size > f64::from(u32::MAX) {
                    return Err(Error::data(format!(
                        "column `{name}` gives the size of the set to predict and holds {size}: a \
                         size is a whole number from 0"
                    )));
                }
                rows.given_size.push(size as u32);
            }
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
                            rows.sparse.push(lists.ids[i], lists.values[i]);
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

fn read_category(
    array: &ArrayRef,
    id: u32,
    leaf: &Leaf,
    names: &mut Names<'_>,
    rows: &mut Rows,
) -> Result<()> {
    let width = rows.category_width;
    let slots = rows.categories.iter_mut().skip(id as usize).step_by(width);
    if array.data_type().is_floating() {
        for (slot, number) in slots.zip(&numbers(array)?) {
            match number {
                Some(x) if x.is_infinite() => return Err(infinite(&leaf.name)),
                Some(x) if !x.is_nan() => *slot = names.value(id, &text_of(x)),
                _ => {}
            }
        }
        return Ok(());
    }
    let decimal = array.data_type().is_decimal();
    for (slot, value) in slots.zip(&texts(array)?) {
        match value {
            Some(value) if decimal && value.contains('.') => {
                *slot = names.value(id, value.trim_end_matches('0').trim_end_matches('.'));
            }
            Some(value) => *slot = names.value(id, value),
            None => {}
        }
    }
    Ok(())
}

/// A number as the value of a category: equal numbers have equal texts, whatever their types.
fn text_of(x: f64) -> String {
    // Whole numbers are written like integers as far as those reach.
    const INTEGERS: f64 = 18_446_744_073_709_551_616.0;
    match x.abs() {
        size if size < INTEGERS && x.fract() == 0.0 => format!("{:.0}", x + 0.0),
        size if (1e-40..INTEGERS).contains(&size) => x.to_string(),
        _ => format!("{x:e}"),
    }
}

/// The first numbers of a vector, for a message.
fn shown(values: &Float64Array) -> String {
    let number = |x: Option<f64>| x.map_or("NULL".to_string(), |x| x.to_string());
    let mut numbers: Vec<String> = values.iter().take(4).map(number).collect();
    if values.len() > numbers.len() {
        numbers.push("...".to_string());
    }
    format!("[{}]", numbers.join(", "))
}

/// The length of the vectors of `source`: that of their type, or else of the first that is not
/// NULL; `None` when there is no such vector.
pub(super) fn vector_width(root: &ArrayRef, source: &Source) -> Result<Option<usize>> {
    let array = at_path(root, &source.path)?;
    let width = match array.data_type() {
        DataType::FixedSizeList(_, width) => Some(*width as usize),
        _ => {
            let list = as_list(&array, DataType::Float64)?;
            let first = (0..list.len()).find(|&row| list.is_valid(row));
            first.map(|row| list.value_length(row) as usize)
        }
    };
    if width == Some(0) {
        return Err(Error::data(format!(
            "{} is empty: there is no feature in it",
            column_called(&source.name)
        )));
    }
    Ok(width)
}

fn read_vector(
    array: &ArrayRef,
    ids: &[u32],
    leaf: &Leaf,
    dense: &mut Vec<(u32, Float64Array)>,
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
            let vector = shown(&values.slice(start, len));
            return Err(Error::data(format!(
                "{} holds a vector of {len} numbers, {vector}, where {} are expected: all rows \
                 need the same length",
                column_called(&leaf.name),
                ids.len()
            )));
        }
        for (i, column) in columns.iter_mut().enumerate() {
            let at = start + i;
            column.push(if values.is_null(at) { f64::NAN } else { values.value(at) });
        }
    }
    dense.extend(ids.iter().zip(columns).map(|(&id, c)| (id, Float64Array::from(c))));
    Ok(())
}

/// Columns to rows; each number is looked at while it is at hand.
///
/// Columns lie at the same place of a page, so that their lines push each other out of the cache: a
/// line of each is used up before the next, and lines of rows are filled four numbers at a time.
fn transpose(dense: &[(u32, Float64Array)], space: &FeatureSpace, rows: &mut Rows) -> Result<()> {
    let width = rows.dense_width;
    let mut columns: Vec<&[f64]> = vec![&[]; width];
    dense.iter().for_each(|(id, values)| columns[*id as usize] = values.values());
    if columns.iter().any(|c| c.len() != rows.len) {
        return Err(Error::internal("a dense feature has no column"));
    }
    let mut finite = true;
    // Every number is written: old ones need no clearing.
    rows.dense.resize(rows.len * width, f64::NAN);
    for (block, out) in rows.dense.chunks_mut((ROWS * width).max(1)).enumerate() {
        let start = block * ROWS;
        let at = start..start + out.len() / width;
        // All columns at once: while one waits for memory, others are fetched.
        for column in &columns {
            finite &= column[at.clone()].iter().fold(true, |all, v| all & v.is_finite());
        }
        for (i, columns) in columns.chunks(4).enumerate() {
            let rows = out.chunks_exact_mut(width).zip(at.clone());
            if let [a, b, c, d] = columns {
                rows.for_each(|(row, r)| {
                    row[4 * i..4 * i + 4].copy_from_slice(&[a[r], b[r], c[r], d[r]]);
                });
            } else {
                rows.for_each(|(row, r)| {
                    row[4 * i..].iter_mut().zip(columns).for_each(|(slot, c)| *slot = c[r]);
                });
            }
        }
    }
    if !finite {
        let infinitely =
            |(_, values): &&(u32, Float64Array)| values.iter().flatten().any(f64::is_infinite);
        if let Some((id, _)) = dense.iter().find(infinitely) {
            return Err(infinite(space.dense_name(*id)));
        }
    }
    rows.dense_missing |= !finite || dense.iter().any(|(_, values)| values.null_count() > 0);
    for (id, values) in dense {
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
        names.entry(name, value, open)
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
            return Ok((FeatureId::NONE, 0.0));
        }
        Ok((names.sparse(key.of(tokens.value(i)), open)?, 1.0))
    })?;
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
        names.entry(name, value, open)
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
