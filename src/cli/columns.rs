//! Which columns of a file are labels, which are features.

use crate::error::{Error, Result};
use crate::models::{Model, holds_features};
use clap::Args;
use datafusion::arrow::datatypes::SchemaRef;

/// Options that choose columns.
#[derive(Debug, Clone, Args)]
pub(super) struct ColumnOptions {
    /// The column of labels.
    #[arg(long, default_value = "labels", value_name = "COLUMN")]
    pub(super) labels: String,
    /// A column that is a feature; `*` stands for any characters. All but labels when not given.
    #[arg(long, value_name = "PATTERN")]
    pub(super) features: Vec<String>,
    /// A column that is no feature; `*` stands for any characters. `id` never is, unless named by
    /// --features.
    #[arg(long, value_name = "PATTERN")]
    pub(super) exclude: Vec<String>,
}

/// The name of a column that is taken to be a row number.
pub(super) const ID: &str = "id";

impl ColumnOptions {
    /// The feature columns of a table.
    ///
    /// # Errors
    ///
    /// A pattern that matches nothing lists the columns; so does a table without features.
    pub(super) fn features(&self, schema: &SchemaRef) -> Result<Vec<String>> {
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        for pattern in self.features.iter().chain(&self.exclude) {
            if !names.iter().any(|n| matches(pattern, n)) {
                return Err(Error::not_found(format!(
                    "no column matches `{pattern}`; the columns are: {}",
                    names.join(", ")
                )));
            }
        }
        let wanted = |name: &&&str| {
            let excluded = self.exclude.iter().any(|p| matches(p, name));
            let chosen = if self.features.is_empty() {
                **name != ID
            } else {
                self.features.iter().any(|p| matches(p, name))
            };
            chosen && !excluded && **name != self.labels
        };
        let features: Vec<String> = names.iter().filter(wanted).map(|n| n.to_string()).collect();
        if features.is_empty() {
            return Err(Error::data(format!(
                "there is no feature column besides labels; the columns are: {}",
                names.join(", ")
            )));
        }
        Ok(features)
    }

    /// A sentence about columns left out without being asked to.
    pub(super) fn note(&self, schema: &SchemaRef) -> Option<String> {
        let has_id = schema.field_with_name(ID).is_ok();
        (has_id && self.features.is_empty() && !self.exclude.iter().any(|p| matches(p, ID)))
            .then(|| format!("column `{ID}` is taken to be a row number and left out"))
    }

    /// The columns a model is given: the one column of maps, lists or structs there is, or those it
    /// knows when all its features are columns.
    pub(super) fn for_model(&self, schema: &SchemaRef, model: &Model) -> Result<Vec<String>> {
        let known = model.space().features.features();
        let features = self.features(schema)?;
        let alone = matches!(&features[..], [only] if schema
            .field_with_name(only)
            .is_ok_and(|f| holds_features(f.data_type())));
        if alone || !known.iter().all(|f| f.column) {
            return Ok(features);
        }
        let given = (model.algorithm().features)(model.spec())?.given_size;
        Ok(schema
            .fields()
            .iter()
            .map(|f| f.name().clone())
            .filter(|name| {
                given.as_ref() == Some(name)
                    || known.iter().any(|f| {
                        &f.name == name
                            || f.name
                                .strip_prefix(name.as_str())
                                .is_some_and(|r| r.starts_with('.'))
                    })
            })
            .collect())
    }
}

/// Whether `name` matches `pattern`, in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(first) = parts.next() else { return false };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A name as a quoted SQL identifier.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as an SQL literal.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Names as quoted identifiers, separated by commas.
pub(super) fn list(names: &[String]) -> String {
    names.iter().map(|n| quoted(n)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name) in
            [("a", "a"), ("w_*", "w_1"), ("*", ""), ("*_x", "a_x"), ("a*b*c", "a1b2c")]
        {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("a", "ab"), ("w_*", "v_1"), ("a*b*c", "acb"), ("*b", "ba")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
