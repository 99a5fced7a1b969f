//! Which columns of a file are labels, which are features.

use crate::data::{LabelId, Pattern, Vocabulary, declared_labels, plain_type};
use crate::error::{Error, Result};
use crate::formats::LabelSource;
use crate::models::{Model, Registry, Spec, Value, holds_features};
use crate::sql::FileOptions;
use clap::{Args, ValueEnum};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use std::path::PathBuf;

/// Options that choose columns.
#[derive(Debug, Clone, Args)]
pub(super) struct ColumnOptions {
    /// The column of labels: lists, or texts such as `a;b`. A pattern in which `*` stands for any
    /// characters, or several names, choose columns of 0 and 1 instead, one for each label.
    #[arg(long, default_value = LABELS, value_name = "COLUMN")]
    pub(super) labels: Vec<String>,
    /// A column that is a feature; `*` stands for any characters. All but labels when not given.
    #[arg(long, value_name = "PATTERN")]
    pub(super) features: Vec<String>,
    /// A column that is no feature; `*` stands for any characters. `id` never is, unless named by
    /// --features.
    #[arg(long, value_name = "PATTERN")]
    pub(super) exclude: Vec<String>,
    /// Mulan's list of labels of an ARFF file; by default the file of the same name with .xml, or
    /// MEKA's header.
    #[arg(long, value_name = "XML")]
    pub(super) labels_xml: Option<PathBuf>,
}

impl Default for ColumnOptions {
    fn default() -> Self {
        let labels = vec![LABELS.to_string()];
        ColumnOptions { labels, features: Vec::new(), exclude: Vec::new(), labels_xml: None }
    }
}

/// Options that say how label columns are read.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct LabelOptions {
    /// What stands between the labels of a text column; `;` when not given.
    #[arg(long, value_name = "TEXT")]
    pub(super) separator: Option<String>,
    /// What an empty label field of a CSV file means.
    #[arg(long, value_enum, default_value_t, value_name = "MEANING")]
    pub(super) empty_labels: EmptyLabels,
}

/// Options that say how columns are learned from.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct LearnOptions {
    #[command(flatten)]
    pub(super) labels: LabelOptions,
    /// A column that holds counts; `*` stands for any characters. The same as the parameter
    /// `counts` of the algorithm.
    #[arg(long, value_name = "PATTERN")]
    pub(super) counts: Vec<String>,
}

/// What an empty label field of a CSV file means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum EmptyLabels {
    /// The row has no labels.
    #[default]
    None,
    /// The labels of the row are not known.
    Unlabelled,
}

impl LabelOptions {
    /// The label sets of a column of texts, as an SQL expression.
    pub(super) fn split(&self, column: &str, csv: bool) -> String {
        // Only in CSV an empty field is NULL; elsewhere NULL is meant.
        let text = match self.empty_labels {
            EmptyLabels::None if csv => format!("coalesce({column}, '')"),
            _ => column.to_string(),
        };
        format!("split_labels({text}, {})", literal(self.separator.as_deref().unwrap_or(";")))
    }
}

impl LearnOptions {
    /// `spec` with the columns that hold counts.
    pub(super) fn spec(&self, spec: &str) -> Result<String> {
        if self.counts.is_empty() {
            return Ok(spec.to_string());
        }
        let mut parsed: Spec = spec.parse()?;
        let Some(part) = counting(&mut parsed)? else {
            return Err(Error::usage(format!(
                "--counts: `{spec}` does not tell counts from other numbers: use naive Bayes, or leave \
                 --counts out"
            )));
        };
        if part.args.iter().any(|(name, _)| name.as_deref() == Some(COUNTS)) {
            return Err(Error::usage(format!(
                "`{spec}` names columns of counts, and so does --counts: use one of them"
            )));
        }
        part.args.push((Some(COUNTS.to_string()), Value::Word(self.counts.join("|"))));
        Ok(parsed.to_string())
    }

    /// What was typed for `spec`, which [`LearnOptions::spec`] made of one of `typed`, or which is a
    /// value of a range in it.
    pub(super) fn typed(&self, spec: &str, typed: &[String]) -> Result<String> {
        if self.counts.is_empty() {
            return Ok(spec.to_string());
        }
        for original in typed {
            if self.spec(original)? == spec {
                return Ok(original.clone());
            }
        }
        let mut parsed: Spec = spec.parse()?;
        if let Some(part) = counting(&mut parsed)? {
            part.args.retain(|(name, _)| name.as_deref() != Some(COUNTS));
        }
        Ok(parsed.to_string())
    }
}

/// The parameter that names columns of counts.
const COUNTS: &str = "counts";

/// The part of `spec` that takes columns of counts: the algorithm, or a base learner of it.
fn counting(spec: &mut Spec) -> Result<Option<&mut Spec>> {
    let algorithm = Registry::default().find(&spec.name)?;
    Ok(spec.part_with(COUNTS, algorithm.parameters))
}

/// The name of a column that is taken to be a row number.
pub(super) const ID: &str = "id";
/// The name of the label column where none is given.
const LABELS: &str = "labels";

impl ColumnOptions {
    /// How the files of a command become tables.
    pub(super) fn files(&self) -> FileOptions {
        // The one label column of a CSV file holds text, even where the first rows look like numbers.
        let text = self.single().map(Pattern::new);
        FileOptions {
            arff_labels: self.labels_xml.clone().map_or(LabelSource::Auto, LabelSource::Xml),
            csv_text: text.into_iter().collect(),
        }
    }

    /// The labels that the label columns declare, whether they occur or not.
    pub(super) fn declared(&self, schema: &SchemaRef) -> Result<Vocabulary<LabelId>> {
        let names = schema.fields().iter().map(|f| f.name());
        match self.single() {
            Some(one) => declared_labels(schema.field_with_name(one)?),
            None => Vocabulary::try_from_names(names.filter(|n| self.is_label(n))),
        }
    }

    /// The name of the label column, if there is one and not a set of 0/1 columns.
    pub(super) fn single(&self) -> Option<&str> {
        match &self.labels[..] {
            [one] if !Pattern::new(one).is_open() => Some(one),
            _ => None,
        }
    }

    fn is_label(&self, column: &str) -> bool {
        self.labels.iter().any(|p| Pattern::new(p).matches(column))
    }

    /// The label columns of a table.
    pub(super) fn label_columns(&self, schema: &SchemaRef) -> Vec<String> {
        let names = schema.fields().iter().map(|f| f.name());
        names.filter(|name| self.is_label(name)).cloned().collect()
    }

    /// The label sets of a table, as an SQL expression; in `csv` an empty field is NULL.
    ///
    /// # Errors
    ///
    /// A label column that is not there lists those that are.
    pub(super) fn label_sets(
        &self,
        schema: &SchemaRef,
        input: &str,
        reading: &LabelOptions,
        csv: bool,
    ) -> Result<String> {
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        for pattern in &self.labels {
            if !names.iter().any(|n| Pattern::new(pattern).matches(n)) {
                return Err(Error::not_found(format!(
                    "`{input}` has no label column `{pattern}`; name it with --labels, the columns \
                     are: {}",
                    names.join(", ")
                )));
            }
        }
        let flags = |columns: &[&str]| {
            let pair = |name: &&str| format!("{}, {}", literal(name), quoted(name));
            format!("named_struct({})", columns.iter().map(pair).collect::<Vec<_>>().join(", "))
        };
        let Some(one) = self.single() else {
            if reading.separator.is_some() {
                return Err(Error::usage(
                    "--separator is for one column of texts: name one column with --labels",
                ));
            }
            let labels: Vec<&str> = names.into_iter().filter(|n| self.is_label(n)).collect();
            return Ok(flags(&labels));
        };
        let column = quoted(one);
        let data_type = plain_type(schema.field_with_name(one)?.data_type());
        let flag = *data_type == DataType::Boolean || data_type.is_numeric();
        if data_type.is_string() || (flag && reading.separator.is_some()) {
            return Ok(reading.split(&column, csv));
        }
        Ok(if flag { flags(&[one]) } else { column })
    }

    /// The feature columns of a table.
    ///
    /// # Errors
    ///
    /// A pattern that matches nothing lists the columns; so does a table without features.
    pub(super) fn features(&self, schema: &SchemaRef) -> Result<Vec<String>> {
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        check_patterns(schema, self.features.iter().chain(&self.exclude))?;
        let wanted = |name: &&&str| {
            let excluded = self.exclude.iter().any(|p| matches(p, name));
            let chosen = if self.features.is_empty() {
                **name != ID
            } else {
                self.features.iter().any(|p| matches(p, name))
            };
            chosen && !excluded && !self.is_label(name)
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
    ///
    /// # Errors
    ///
    /// A pattern that matches nothing, and a column that the model needs and is told to do without.
    pub(super) fn for_model(&self, schema: &SchemaRef, model: &Model) -> Result<Vec<String>> {
        let known = model.space().features.features();
        // Rows to score may have no labels.
        check_patterns(schema, self.labels.iter().filter(|label| *label != LABELS))?;
        let features = self.features(schema)?;
        let alone = matches!(&features[..], [only] if schema
            .field_with_name(only)
            .is_ok_and(|f| holds_features(f.data_type())));
        if alone || !known.iter().all(|f| f.column) {
            return Ok(features);
        }
        let needed = needed(model)?;
        let names = schema.fields().iter().map(|f| f.name());
        let names: Vec<String> = names.filter(|name| needed(name)).cloned().collect();
        match names.iter().find_map(|name| Some((name, self.leaves_out(name)?))) {
            Some((name, option)) => Err(Error::usage(format!(
                "the model needs column `{name}`, which {option} leaves out: score with it, or fit a \
                 model without it"
            ))),
            None => Ok(names),
        }
    }

    /// The option by which somebody says that a column is no feature.
    fn leaves_out(&self, column: &str) -> Option<&'static str> {
        let in_any = |patterns: &[String]| patterns.iter().any(|p| matches(p, column));
        if in_any(&self.exclude) {
            Some("--exclude")
        } else if !self.features.is_empty() && !in_any(&self.features) {
            Some("--features")
        } else {
            // A feature may be called as the label column is where none is given.
            (column != LABELS && self.is_label(column)).then_some("--labels")
        }
    }
}

/// Refuses patterns that match no column.
fn check_patterns<'a>(
    schema: &SchemaRef,
    mut patterns: impl Iterator<Item = &'a String>,
) -> Result<()> {
    let names = || schema.fields().iter().map(|f| f.name().as_str());
    let Some(pattern) = patterns.find(|pattern| !names().any(|name| matches(pattern, name))) else {
        return Ok(());
    };
    let maps = schema.fields().iter().filter(|f| matches!(f.data_type(), DataType::Map(..)));
    let maps: Vec<String> = maps.map(|f| format!("`{}`", f.name())).collect();
    let keys = match &maps[..] {
        [] => String::new(),
        maps => format!(
            "; the keys of {}, such as the attributes of a sparse ARFF file, cannot be chosen one by one",
            maps.join(" and ")
        ),
    };
    Err(Error::not_found(format!(
        "no column matches `{pattern}`; the columns are: {}{keys}",
        names().collect::<Vec<_>>().join(", ")
    )))
}

/// Those of the columns given to a model that it reads.
pub(super) fn read_by(model: &Model, columns: &[String]) -> Result<Vec<String>> {
    let needed = needed(model)?;
    // One column alone gives its entries no prefix.
    let alone = columns.len() == 1;
    Ok(columns.iter().filter(|name| alone || needed(name)).cloned().collect())
}

/// Which columns the features of `model` are in, and the size of the set to predict.
fn needed(model: &Model) -> Result<impl Fn(&str) -> bool> {
    let known = model.space().features.features();
    let given = (model.algorithm().features)(model.spec())?.given_size;
    Ok(move |name: &str| {
        given.as_deref() == Some(name) || known.iter().any(|f| is_in(name, &f.name))
    })
}

/// Whether `feature` is `column`, or a field, key or entry of it.
pub(super) fn is_in(column: &str, feature: &str) -> bool {
    feature.strip_prefix(column).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn matches(pattern: &str, name: &str) -> bool {
    Pattern::new(pattern).matches(name)
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
