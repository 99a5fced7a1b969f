//! Where each feature of a space is found in an Arrow type, and the way from arrays to [`Rows`].
//!
//! Features come as one array, the *root*: a struct of columns, or one map, list or token list.
//! A scalar field is a feature of its own name; the keys of a map, the tokens of a list and the
//! entries of a vector are features of their own names, with the field's name before them
//! (`title.rust`) when the root is a struct, so that two such columns stay apart.

mod read;
mod source;

use super::{FeatureKind, FeatureOptions, FeatureSpace, Pattern, Rows, Space};
use crate::error::{Error, Result};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use source::{Shape, Source, Target, column_called, sources};

/// The features of one space found in one Arrow type.
///
/// Columns are matched by name: order does not matter and columns the space does not know are
/// ignored.
#[derive(Debug, Clone)]
pub struct Binding {
    data_type: DataType,
    leaves: Vec<Leaf>,
    /// The path and the name of the column that gives the size of the set to predict.
    given_size: Option<(Vec<usize>, String)>,
}

#[derive(Debug, Clone)]
struct Leaf {
    path: Vec<usize>,
    name: String,
    target: Target,
}

impl Binding {
    /// Fixes the columns of an empty space after `root`, then binds it.
    ///
    /// # Errors
    ///
    /// A column whose type cannot be a feature is named, as is a column that cannot be read as the
    /// kind `options` force, and a pattern of `options` that no column matches.
    pub fn declare(
        root: &ArrayRef,
        options: &FeatureOptions,
        space: &mut Space,
    ) -> Result<Binding> {
        if !space.features.declared {
            let mut found = Vec::new();
            sources(root.data_type(), options, &mut found, true)?;
            check_counts(&found, options)?;
            declare_columns(&found, root, options, &mut space.features)?;
        }
        Binding::try_new(root.data_type(), options, &space.features)
    }

    /// Whether features of type `data_type` can be learned from.
    ///
    /// # Errors
    ///
    /// As [`Binding::declare`], as far as the type alone tells.
    pub fn check_type(data_type: &DataType, options: &FeatureOptions) -> Result<()> {
        let mut found = Vec::new();
        sources(data_type, options, &mut found, true)?;
        if found.is_empty() {
            return Err(no_feature());
        }
        check_counts(&found, options)?;
        found.iter().try_for_each(|source| source.declared_kind(options).map(drop))
    }

    /// The first column of vectors whose length neither its type nor a row of `root` tells.
    ///
    /// [`Binding::declare`] takes such vectors for empty, so rows before the first vector have to
    /// wait for it.
    pub(crate) fn without_length(
        root: &ArrayRef,
        options: &FeatureOptions,
    ) -> Result<Option<String>> {
        let mut found = Vec::new();
        sources(root.data_type(), options, &mut found, true)?;
        for source in found.iter().filter(|s| s.shape == Shape::Vector) {
            if source.declared_kind(options)?.is_none()
                && read::vector_width(root, source)?.is_none()
            {
                return Ok(Some(column_called(&source.name)));
            }
        }
        Ok(None)
    }

    /// Finds every feature of `space` in `data_type`.
    ///
    /// # Errors
    ///
    /// A feature of the space that is not there is named, as is one of a type that does not fit.
    pub fn try_new(
        data_type: &DataType,
        options: &FeatureOptions,
        space: &FeatureSpace,
    ) -> Result<Binding> {
        let mut found = Vec::new();
        let given_size = sources(data_type, options, &mut found, false)?;
        let mut leaves = Vec::new();
        let mut seen = vec![false; space.dense_len()];
        let mut columns_seen = 0;
        let mut open_seen = vec![false; space.open_len()];
        for source in found {
            let Some(target) = source.bind(space, options)? else { continue };
            match &target {
                Target::Dense(id) => mark(&mut seen, *id),
                Target::DenseVector(ids) => ids.iter().for_each(|&id| mark(&mut seen, id)),
                Target::Sparse { .. } | Target::Category(_) => columns_seen += 1,
                Target::SparseVector(open) | Target::Map(open) | Target::Tokens(open) => {
                    mark(&mut open_seen, open.column);
                }
            }
            leaves.push(Leaf { path: source.path, name: source.name, target });
        }
        refuse_repeated(leaves.iter().map(|leaf: &Leaf| leaf.name.as_str()))?;
        let columns =
            space.sparse_open.iter().filter(|o| o.is_none()).count() + space.categories.len();
        if let Some(open) = open_seen.iter().position(|s| !s) {
            return Err(missing_column(space.open.name(open as u32).trim_end_matches('.')));
        }
        let missing = seen.iter().position(|s| !s);
        if missing.is_some() || columns_seen < columns {
            return Err(missing_feature(space, &leaves, missing));
        }
        let name = options.given_size.clone().unwrap_or_default();
        let given_size = given_size.map(|path| (path, name));
        Ok(Binding { data_type: data_type.clone(), leaves, given_size })
    }

    /// The Arrow type this binding reads.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Reads `root` into `rows`, adding names that are new to `space`.
    ///
    /// # Nulls
    ///
    /// A NULL or NaN value is missing. A NULL map, vector or token list makes all its features
    /// missing in that row.
    ///
    /// # Errors
    ///
    /// An infinite value, a negative count, a vector of another length, a key that has the name of
    /// another column: the column is named.
    pub fn read_growing(
        &self,
        root: &ArrayRef,
        space: &mut FeatureSpace,
        rows: &mut Rows,
    ) -> Result<()> {
        self.read_rows(root, read::Names::Grow(space), rows)
    }

    /// Reads `root` into `rows`; names that `space` does not know are left out.
    pub fn read(&self, root: &ArrayRef, space: &FeatureSpace, rows: &mut Rows) -> Result<()> {
        self.read_rows(root, read::Names::Known(space), rows)
    }
}

fn no_feature() -> Error {
    Error::data("there is no feature: name at least one feature column")
}

/// Whether there is a column for every pattern of columns that hold counts.
fn check_counts(found: &[Source], options: &FeatureOptions) -> Result<()> {
    let names: Vec<&str> = found.iter().map(|source| source.name.trim_end_matches('.')).collect();
    let is_idle = |pattern: &&Pattern| !names.iter().any(|name| pattern.matches(name));
    match options.counts.iter().find(is_idle) {
        None => Ok(()),
        Some(pattern) if names == [""] => Err(Error::not_found(format!(
            "no feature column matches `{pattern}`, of those that hold counts: all features are in one \
             column, name it by `*`"
        ))),
        Some(pattern) => Err(Error::not_found(format!(
            "no feature column matches `{pattern}`, of those that hold counts; the columns are: {}",
            names.join(", ")
        ))),
    }
}

fn refuse_repeated<'a>(names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(Error::data(format!(
            "there are two features `{}`: rename one of the columns",
            pair[0].trim_end_matches('.')
        ))),
    }
}

fn mark(seen: &mut [bool], id: u32) {
    if let Some(s) = seen.get_mut(id as usize) {
        *s = true;
    }
}

/// A column of maps, tokens or vectors is missing; one that stood alone has no name.
fn missing_column(name: &str) -> Error {
    Error::data(match name {
        "" => "the model was trained on one column of maps, tokens or vectors: give that column \
               alone"
            .to_string(),
        name => format!(
            "column `{name}` of the model is missing in the input, or is no map, list of tokens or \
             vector there: add it"
        ),
    })
}

fn missing_feature(space: &FeatureSpace, leaves: &[Leaf], dense: Option<usize>) -> Error {
    let has = |name: &str| leaves.iter().any(|l| l.name == name);
    let name = match dense {
        Some(id) if !space.dense_column[id] => {
            let (prefix, _) = space.dense_name(id as u32).rsplit_once('.').unwrap_or_default();
            return missing_column(prefix);
        }
        Some(id) => space.dense_name(id as u32).to_string(),
        None => space
            .features()
            .into_iter()
            .find(|f| f.column && space.dense.get(&f.name).is_none() && !has(&f.name))
            .map_or_else(String::new, |f| f.name),
    };
    Error::data(format!(
        "feature `{name}` of the model is missing in the input: add a column of that name"
    ))
}

fn declare_columns(
    found: &[Source],
    root: &ArrayRef,
    options: &FeatureOptions,
    space: &mut FeatureSpace,
) -> Result<()> {
    let mut dense: Vec<(String, bool)> = Vec::new();
    let mut categories: Vec<&str> = Vec::new();
    let mut flags: Vec<(&str, FeatureKind)> = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    for source in found {
        match source.declared_kind(options)? {
            None if source.shape == Shape::Vector => {
                let width = read::vector_width(root, source)?.unwrap_or(0);
                dense.extend((0..width).map(|i| (format!("{}{i}", source.name), false)));
            }
            None => dense.push((source.name.clone(), true)),
            Some(_) if source.shape.is_open() => open.push(&source.name),
            Some(FeatureKind::Category) => categories.push(&source.name),
            Some(kind) => flags.push((&source.name, kind)),
        }
    }
    if found.is_empty() {
        return Err(no_feature());
    }
    let flag_names = flags.iter().map(|flag| flag.0);
    let dense_names = dense.iter().map(|d| d.0.as_str());
    let text_names = categories.iter().chain(&open).copied();
    refuse_repeated(dense_names.chain(flag_names).chain(text_names))?;
    dense.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    categories.sort_unstable_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    open.sort_unstable_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    space.dense = super::Vocabulary::try_from_names(dense.iter().map(|d| &d.0))?;
    space.dense_column = dense.iter().map(|d| d.1).collect();
    space.open = super::Vocabulary::try_from_names(open)?;
    for (name, kind) in flags {
        space.intern_sparse(name, kind, None);
    }
    for name in categories {
        space.add_category(name);
    }
    space.declared = true;
    Ok(())
}

#[cfg(test)]
mod tests;
