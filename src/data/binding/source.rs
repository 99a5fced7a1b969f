//! The places in an Arrow type that hold features.

use super::super::{FeatureId, FeatureKind, FeatureOptions, FeatureSpace, plain_type};
use crate::error::{Error, Result};
use arrow::datatypes::DataType;

/// What a place holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Number,
    Flag,
    Text,
    Vector,
    NumberMap,
    FlagMap,
    Tokens,
}

impl Shape {
    /// Whether names come from the values.
    pub(super) fn is_open(self) -> bool {
        matches!(self, Shape::Vector | Shape::NumberMap | Shape::FlagMap | Shape::Tokens)
    }

    fn of(data_type: &DataType) -> Option<Shape> {
        Some(match plain_type(data_type) {
            DataType::Boolean => Shape::Flag,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Shape::Text,
            DataType::Null => Shape::Number,
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::FixedSizeList(item, _)
            | DataType::ListView(item)
            | DataType::LargeListView(item) => match Shape::of(item.data_type())? {
                Shape::Text => Shape::Tokens,
                Shape::Number | Shape::Flag => Shape::Vector,
                _ => return None,
            },
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 && is_key(fields[0].data_type()) => {
                    match Shape::of(fields[1].data_type())? {
                        Shape::Number => Shape::NumberMap,
                        Shape::Flag => Shape::FlagMap,
                        _ => return None,
                    }
                }
                _ => return None,
            },
            other if other.is_numeric() => Shape::Number,
            _ => return None,
        })
    }
}

/// Whether the keys of a map can name features.
fn is_key(data_type: &DataType) -> bool {
    let data_type = plain_type(data_type);
    data_type.is_string() || data_type.is_integer()
}

/// A place in an Arrow type that holds features: a scalar of name `name`, or an open column whose
/// features have the prefix `name`.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) path: Vec<usize>,
    pub(super) name: String,
    pub(super) shape: Shape,
}

/// How a message calls the column of vectors with this prefix.
pub(super) fn column_called(prefix: &str) -> String {
    match prefix.trim_end_matches('.') {
        "" => "the list of numbers".to_string(),
        name => format!("column `{name}`"),
    }
}

/// Where the values of a source go.
#[derive(Debug, Clone)]
pub(super) enum Target {
    Dense(u32),
    DenseVector(Vec<u32>),
    Sparse { id: FeatureId, kind: FeatureKind },
    SparseVector(Open),
    Category(u32),
    Map(Open),
    Tokens(Open),
}

/// The kind of the features of an open column, and its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) kind: FeatureKind,
    pub(super) column: u32,
}

/// Lists the sources of `root`; returns the path of the column that gives the size.
///
/// With `strict`, a type that cannot be a feature is an error, else it is passed over.
pub(super) fn sources(
    root: &DataType,
    options: &FeatureOptions,
    out: &mut Vec<Source>,
    strict: bool,
) -> Result<Option<Vec<usize>>> {
    let mut given = None;
    if let DataType::Struct(_) = plain_type(root) {
        walk(root, &mut Vec::new(), "", options, out, &mut given, strict)?;
    } else {
        match Shape::of(root) {
            Some(shape) if shape.is_open() => {
                out.push(Source { path: Vec::new(), name: String::new(), shape });
            }
            _ => {
                return Err(Error::data(format!(
                    "features of type {root} cannot be read: give columns, a struct, a list of \
                     numbers, a map from names to numbers, or a list of tokens"
                )));
            }
        }
    }
    Ok(given)
}

fn walk(
    data_type: &DataType,
    path: &mut Vec<usize>,
    prefix: &str,
    options: &FeatureOptions,
    out: &mut Vec<Source>,
    given: &mut Option<Vec<usize>>,
    strict: bool,
) -> Result<()> {
    let DataType::Struct(fields) = plain_type(data_type) else { return Ok(()) };
    for (i, field) in fields.iter().enumerate() {
        let name = format!("{prefix}{}", field.name());
        path.push(i);
        if options.given_size.as_deref() == Some(name.as_str()) {
            let held = plain_type(field.data_type());
            if !held.is_numeric() && held != &DataType::Null {
                return Err(Error::data(format!(
                    "column `{name}` gives the size of the set to predict and has type {held}: \
                     cast it to a whole number"
                )));
            }
            *given = Some(path.clone());
        } else if let DataType::Struct(_) = plain_type(field.data_type()) {
            walk(field.data_type(), path, &format!("{name}."), options, out, given, strict)?;
        } else if let Some(shape) = Shape::of(field.data_type()) {
            let name = if shape.is_open() { format!("{name}.") } else { name };
            out.push(Source { path: path.clone(), name, shape });
        } else if strict {
            return Err(Error::data(format!(
                "column `{name}` has type {}, which cannot be a feature: exclude it or cast it to \
                 a number, text, list or map",
                field.data_type()
            )));
        }
        path.pop();
    }
    Ok(())
}

impl Source {
    /// The kind under which the features of this source are declared; `None` is dense.
    pub(super) fn declared_kind(&self, options: &FeatureOptions) -> Result<Option<FeatureKind>> {
        use FeatureKind::{Binary, Category, Count, Numeric};
        let natural = match self.shape {
            Shape::Number | Shape::Vector | Shape::NumberMap => Numeric,
            Shape::Flag | Shape::FlagMap => Binary,
            Shape::Text => Category,
            Shape::Tokens => Count,
        };
        let counted = options.counts.iter().any(|p| p.matches(self.name.trim_end_matches('.')));
        let kind = if counted { Count } else { options.force.unwrap_or(natural) };
        let fits = match self.shape {
            Shape::Number | Shape::Flag => true,
            Shape::Text => kind == Category && !counted,
            _ => kind != Category,
        };
        if !fits {
            return Err(Error::data(format!(
                "column `{}` cannot be read as {kind}: exclude it or drop the option that forces it",
                self.name.trim_end_matches('.')
            )));
        }
        let dense =
            kind == Numeric && matches!(self.shape, Shape::Number | Shape::Flag | Shape::Vector);
        Ok((!dense).then_some(kind))
    }

    /// Where the values go in `space`; `None` when it does not know them.
    pub(super) fn bind(
        &self,
        space: &FeatureSpace,
        options: &FeatureOptions,
    ) -> Result<Option<Target>> {
        if !self.shape.is_open() {
            return self.bind_scalar(space);
        }
        if self.shape == Shape::Vector {
            let ids: Vec<u32> =
                (0..).map_while(|i| space.dense.get(&format!("{}{i}", self.name))).collect();
            if !ids.is_empty() {
                return Ok(Some(Target::DenseVector(ids)));
            }
        }
        let Some(kind) = self.declared_kind(options)? else { return Ok(None) };
        let Some(column) = space.open.get(&self.name) else { return Ok(None) };
        let open = Open { kind, column };
        Ok(Some(match self.shape {
            Shape::Vector => Target::SparseVector(open),
            Shape::Tokens => Target::Tokens(open),
            _ => Target::Map(open),
        }))
    }

    fn bind_scalar(&self, space: &FeatureSpace) -> Result<Option<Target>> {
        let target = if let Some(id) = space.dense.get(&self.name) {
            Target::Dense(id)
        } else if let Some(id) = space.categories.get(&self.name) {
            return Ok(Some(Target::Category(id)));
        } else if let Some(id) =
            space.sparse.get(&self.name).filter(|&i| space.sparse_open(i).is_none())
        {
            Target::Sparse { id, kind: space.sparse_kind(id) }
        } else {
            return Ok(None);
        };
        if self.shape == Shape::Text {
            return Err(Error::data(format!(
                "feature `{}` is a number in the model and text in the input: cast it to a number",
                self.name
            )));
        }
        Ok(Some(target))
    }
}
