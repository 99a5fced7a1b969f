//! Small tables of every shape, with something to learn in each.

use super::answers::name_lists;
use crate::data::FeatureKind;
use crate::data::generate::{Generator, GeneratorOptions};
use crate::error::{Error, Result};
use crate::math::{STEP, mix};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, FixedSizeListBuilder, Float64Array,
    Float64Builder, Int32Array, ListArray, ListBuilder, MapBuilder, StringArray, StringBuilder,
    StructArray, UInt32Array,
};
use arrow::compute::{concat, take};
use arrow::datatypes::{Field, Float64Type, Int32Type};
use std::sync::Arc;

/// Rows of the tables: enough to learn from, few enough to learn hundreds of times.
const ROWS: usize = 160;
const LABELS: usize = 5;

/// Label sets and features of the same rows.
#[derive(Debug, Clone)]
pub struct Table {
    /// What it is called in failures.
    pub name: &'static str,
    /// A list of label names per row.
    pub labels: ArrayRef,
    /// The features of each row.
    pub features: ArrayRef,
    /// The kinds under which the features tell the labels.
    pub kinds: &'static [FeatureKind],
}

impl Table {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.features.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Consecutive rows.
    #[must_use]
    pub fn slice(&self, first: usize, rows: usize) -> Table {
        let (labels, features) = (self.labels.slice(first, rows), self.features.slice(first, rows));
        Table { labels, features, ..self.clone() }
    }

    /// The rows `order`, in that order.
    pub fn take(&self, order: &[u32]) -> Result<Table, String> {
        let order = UInt32Array::from(order.to_vec());
        let taken = |array: &ArrayRef| take(array, &order, None).map_err(|e| e.to_string());
        let (labels, features) = (taken(&self.labels)?, taken(&self.features)?);
        Ok(Table { labels, features, ..self.clone() })
    }

    /// The rows of this table, then those of `other`.
    pub fn then(&self, other: &Table) -> Result<Table, String> {
        let joined = |a: &ArrayRef, b: &ArrayRef| concat(&[a, b]).map_err(|e| e.to_string());
        let labels = joined(&self.labels, &other.labels)?;
        let features = joined(&self.features, &other.features)?;
        Ok(Table { labels, features, ..self.clone() })
    }

    /// The same features with other label sets; `None` is unlabelled.
    #[must_use]
    pub fn with_sets<S: AsRef<str>>(&self, sets: &[Option<Vec<S>>]) -> Table {
        Table { labels: lists(sets), ..self.clone() }
    }

    /// The same labels with other features.
    #[must_use]
    pub fn with_features(&self, features: ArrayRef) -> Table {
        Table { features, ..self.clone() }
    }

    /// The label sets as texts; an unlabelled row is empty.
    pub fn sets(&self) -> Vec<Vec<String>> {
        self.labels.as_list_opt::<i32>().map_or_else(Vec::new, name_lists)
    }

    /// The columns, if the features are columns.
    pub fn columns(&self) -> Option<&StructArray> {
        self.features.as_struct_opt()
    }

    /// Puts the name of the table before a failure.
    pub(super) fn say(&self, failure: impl std::fmt::Display) -> String {
        format!("table `{}`: {failure}", self.name)
    }

    /// An order of the rows that looks random.
    pub(super) fn shuffled(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        order.sort_by_key(|&row| (noise(u64::from(row)), row));
        order
    }
}

/// Every table of the suite.
pub(super) fn all() -> Result<Vec<Table>> {
    use FeatureKind::{Binary, Category, Count, Numeric};
    let shape = GeneratorOptions {
        rows: ROWS as u64,
        features: 6,
        labels: LABELS,
        cardinality: 1.8,
        seed: 3,
    };
    let batch = Generator::try_new(shape)?.batch(0, ROWS)?;
    let column = |name: &str| -> Result<ArrayRef> {
        let found = batch.column_by_name(name).cloned();
        found.ok_or_else(|| Error::internal(format!("generated tables have no column `{name}`")))
    };
    let labels = column("labels")?;
    let sets = labels.as_list_opt::<i32>().map_or_else(Vec::new, name_lists);
    let mut numbers = Vec::new();
    for name in ["f0", "f1", "f2", "f3", "f4", "f5"] {
        numbers.push((name, column(name)?));
    }
    let table =
        |name, features, kinds| Table { name, labels: Arc::clone(&labels), features, kinds };
    Ok(vec![
        table("numbers", columns(numbers.clone()), &[Numeric]),
        table("mixed", mixed(&numbers, &sets)?, &[]),
        table("texts", texts(&sets), &[Category]),
        table("tokens", words(&sets), &[Count, Binary, Numeric]),
        table("maps", maps(&sets)?, &[Numeric, Count, Binary]),
        table("nested", nested(&numbers, &sets)?, &[]),
    ])
}

/// Columns of every type, with missing values.
fn mixed(numbers: &[(&str, ArrayRef)], sets: &[Vec<String>]) -> Result<ArrayRef> {
    let values = |i: usize| -> Result<&Float64Array> {
        let column = numbers.get(i).and_then(|n| n.1.as_primitive_opt::<Float64Type>());
        column.ok_or_else(|| Error::internal("generated features are numbers"))
    };
    let missing = |row: usize, every: u64| noise(row as u64 + 7919 * every).is_multiple_of(every);
    let gaps = |values: &Float64Array, every: u64| -> ArrayRef {
        let value = |(row, v): (usize, Option<f64>)| v.filter(|_| !missing(row, every));
        Arc::new(values.iter().enumerate().map(value).collect::<Float64Array>())
    };
    let whole = values(1)?.iter().map(|v| v.map(|v| (10.0 * v) as i32));
    let flag = |(row, set): (usize, &Vec<String>)| (!missing(row, 9)).then(|| shows(row, set, 0));
    let place = |(row, set): (usize, &Vec<String>)| {
        let towns = ["oslo", "paris", "rome"];
        (!missing(row, 8))
            .then(|| towns[usize::from(shows(row, set, 1)) + usize::from(shows(row, set, 2))])
    };
    Ok(columns(vec![
        ("x", gaps(values(0)?, 7)),
        ("whole", Arc::new(whole.collect::<Int32Array>())),
        ("flag", Arc::new(sets.iter().enumerate().map(flag).collect::<BooleanArray>())),
        ("place", Arc::new(sets.iter().enumerate().map(place).collect::<StringArray>())),
        ("y", gaps(values(4)?, 5)),
        ("words", words(sets)),
    ]))
}

/// Vectors of both types of list, some of fixed size missing, and a struct within the columns.
fn nested(numbers: &[(&str, ArrayRef)], sets: &[Vec<String>]) -> Result<ArrayRef> {
    let mut list = ListBuilder::new(Float64Builder::new());
    let mut fixed = FixedSizeListBuilder::new(Float64Builder::new(), 2);
    let value = |column: usize, row: usize| {
        let column = numbers.get(column).and_then(|n| n.1.as_primitive_opt::<Float64Type>());
        column.map(|values| values.value(row))
    };
    for row in 0..sets.len() {
        list.append_value([value(0, row), value(1, row), value(2, row)]);
        fixed.values().append_option(value(3, row));
        fixed.values().append_option(value(4, row));
        fixed.append(!noise(row as u64 + 7).is_multiple_of(5));
    }
    let flag = |(row, set): (usize, &Vec<String>)| Some(shows(row, set, 0));
    let inner = columns(vec![
        ("flag", Arc::new(sets.iter().enumerate().map(flag).collect::<BooleanArray>())),
        ("words", words(sets)),
    ]);
    Ok(columns(vec![
        ("list", Arc::new(list.finish())),
        ("fixed", Arc::new(fixed.finish())),
        ("inner", inner),
    ]))
}

/// Text columns, one of them a dictionary.
fn texts(sets: &[Vec<String>]) -> ArrayRef {
    let value = |y: usize| {
        move |(row, set): (usize, &Vec<String>)| match (shows(row, set, y), noise(row as u64) % 3) {
            (true, 0) => "high",
            (true, _) => "some",
            (false, _) => "none",
        }
    };
    let column = |y: usize| -> ArrayRef {
        Arc::new(sets.iter().enumerate().map(value(y)).map(Some).collect::<StringArray>())
    };
    let coded: DictionaryArray<Int32Type> = sets.iter().enumerate().map(value(4)).collect();
    columns(vec![
        ("c0", column(0)),
        ("c1", column(1)),
        ("c2", column(2)),
        ("c3", column(3)),
        ("c4", Arc::new(coded)),
    ])
}

/// Lists of tokens.
fn words(sets: &[Vec<String>]) -> ArrayRef {
    let row = |(row, set): (usize, &Vec<String>)| {
        let mut row_words = vec![format!("noise{}", noise(row as u64) % 7)];
        for y in (0..LABELS).filter(|&y| shows(row, set, y)) {
            let times = 1 + noise((row * LABELS + y) as u64) % 2;
            row_words.extend((0..times).map(|_| format!("word{y}")));
        }
        Some(row_words)
    };
    lists(&sets.iter().enumerate().map(row).collect::<Vec<_>>())
}

/// Maps from names to positive numbers.
fn maps(sets: &[Vec<String>]) -> Result<ArrayRef> {
    let rows = sets.iter().enumerate().map(|(row, set)| {
        let number = |i: usize| 1.0 + (noise((row * 31 + i) as u64) % 1000) as f64 / 500.0;
        let mut entries = vec![(format!("noise{}", noise(row as u64) % 7), number(9))];
        let shown = (0..LABELS).filter(|&y| shows(row, set, y));
        entries.extend(shown.map(|y| (format!("key{y}"), number(y))));
        entries
    });
    number_maps(rows)
}

/// Whether label number `y` shows in the features of a row: nearly always when it is there, seldom
/// when it is not.
fn shows(row: usize, set: &[String], y: usize) -> bool {
    let there = set.iter().any(|label| label.ends_with(&format!("_{y:02}")));
    let odds = noise((row * 101 + y) as u64) % 100;
    if there { odds < 85 } else { odds < 12 }
}

/// A number without pattern (SplitMix64).
pub(super) fn noise(seed: u64) -> u64 {
    mix(seed.wrapping_add(1).wrapping_mul(STEP)) >> 8
}

/// Columns as one struct.
pub(super) fn columns(columns: Vec<(&str, ArrayRef)>) -> ArrayRef {
    let field = |(name, array): (&str, ArrayRef)| {
        (Arc::new(Field::new(name, array.data_type().clone(), true)), array)
    };
    Arc::new(StructArray::from(columns.into_iter().map(field).collect::<Vec<_>>()))
}

/// Lists of texts; `None` is NULL.
pub(super) fn lists<S: AsRef<str>>(rows: &[Option<Vec<S>>]) -> ArrayRef {
    let mut builder = ListBuilder::new(StringBuilder::new());
    for row in rows {
        builder.append_option(row.as_ref().map(|r| r.iter().map(|s| Some(s.as_ref()))));
    }
    let lists: ListArray = builder.finish();
    Arc::new(lists)
}

/// Maps from names to numbers.
pub(super) fn number_maps(rows: impl IntoIterator<Item = Vec<(String, f64)>>) -> Result<ArrayRef> {
    let mut builder = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
    for row in rows {
        for (key, value) in row {
            builder.keys().append_value(key);
            builder.values().append_value(value);
        }
        builder.append(true)?;
    }
    Ok(Arc::new(builder.finish()))
}
