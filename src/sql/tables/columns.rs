//! Files of one table that have different columns.
//!
//! Parquet is read by the names of columns: rows of a file that lacks one have NULL there. Arrow is
//! read by their places, so that its files must be alike. JSON leaves out what is NULL, and the
//! heads of other files are compared where they are read.

use super::super::error::{from_datafusion, to_datafusion};
use super::faults::{absolute, shown};
use super::{FileTables, list, listing_tables};
use crate::error::{Error, Result};
use datafusion::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::datasource::listing::{ListingOptions, ListingTableConfig, ListingTableUrl};
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::SessionState;
use datafusion::object_store::ObjectMeta;
use datafusion::prelude::{DataFrame, SessionContext};
use std::sync::Arc;

/// A file that lacks a column which other files of its table have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The file, as somebody in the working directory would name it.
    pub file: String,
    /// The column.
    pub column: String,
}

impl FileTables {
    /// The first file of Parquet, by name, that lacks one of `columns` of a table that `query` reads.
    ///
    /// # Cost
    ///
    /// One look at the footer of each file; most of them are known since the table was made.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub async fn gap(
        ctx: &SessionContext,
        query: &DataFrame,
        columns: &[String],
    ) -> Result<Option<Gap>> {
        let state = ctx.state();
        for table in listing_tables(query) {
            let options = table.options();
            if options.format.get_ext() != "parquet" {
                continue;
            }
            let in_path = |name: &String| options.table_partition_cols.iter().any(|p| p.0 == *name);
            let columns: Vec<&String> = columns.iter().filter(|name| !in_path(name)).collect();
            for url in table.table_paths() {
                let mut gap = None;
                let look = |file: &ObjectMeta, schema: &Schema| {
                    let missing = || columns.iter().find(|name| schema.index_of(name).is_err());
                    if gap.is_none() {
                        gap = missing().map(|column| (named(file, url), column.to_string()));
                    }
                };
                look_at_each(&state, options, url, look).await.map_err(from_datafusion)?;
                if let Some((file, column)) = gap {
                    return Ok(Some(Gap { file, column }));
                }
            }
        }
        Ok(None)
    }
}

/// `config` of a table whose files can be read together.
///
/// # Errors
///
/// Arrow files with other columns than the first.
pub(super) async fn settle(
    state: &SessionState,
    config: ListingTableConfig,
) -> DataFusionResult<ListingTableConfig> {
    let (Some(schema), Some(options)) = (&config.file_schema, &config.options) else {
        return Ok(config);
    };
    let mut settled = None;
    for url in &config.table_paths {
        match options.format.get_ext().as_str() {
            "parquet" => settled = with_nulls(state, options, url, schema).await?,
            "arrow" => check_heads(state, options, url).await?,
            _ => {}
        }
    }
    Ok(match settled {
        Some(schema) => config.with_schema(schema),
        None => config,
    })
}

/// `schema` with columns that may be NULL where a file lacks them, whatever the others say; `None`
/// when there is no such column.
async fn with_nulls(
    state: &SessionState,
    options: &ListingOptions,
    url: &ListingTableUrl,
    schema: &SchemaRef,
) -> DataFusionResult<Option<SchemaRef>> {
    if schema.fields().iter().all(|field| field.is_nullable()) {
        return Ok(None);
    }
    let mut lacking = vec![false; schema.fields().len()];
    let look = |_: &ObjectMeta, found: &Schema| {
        for (lacking, field) in lacking.iter_mut().zip(schema.fields()) {
            *lacking |= !field.is_nullable() && found.index_of(field.name()).is_err();
        }
    };
    look_at_each(state, options, url, look).await?;
    if !lacking.contains(&true) {
        return Ok(None);
    }
    let field = |(field, lacking): (&FieldRef, bool)| match lacking {
        true => Arc::new(Field::clone(field).with_nullable(true)),
        false => Arc::clone(field),
    };
    let fields: Vec<FieldRef> = schema.fields().iter().zip(lacking).map(field).collect();
    Ok(Some(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))))
}

/// Refuses files whose columns are not those of the first, in its order: values would be taken from
/// another column without a word.
async fn check_heads(
    state: &SessionState,
    options: &ListingOptions,
    url: &ListingTableUrl,
) -> DataFusionResult<()> {
    let mut first: Option<(String, Vec<String>)> = None;
    let mut problem = None;
    let look = |file: &ObjectMeta, schema: &Schema| {
        let names: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
        match &first {
            None => first = Some((named(file, url), names)),
            Some((_, known)) if problem.is_some() || *known == names => {}
            Some((other, known)) => {
                problem = Some(unlike(&named(file, url), &names, other, known));
            }
        }
    };
    look_at_each(state, options, url, look).await?;
    problem.map_or(Ok(()), |problem| Err(to_datafusion(problem)))
}

/// That `file` has other columns than `first`, by the place where that begins.
fn unlike(file: &str, names: &[String], first: &str, known: &[String]) -> Error {
    let at = names.iter().zip(known).take_while(|(name, known)| name == known).count();
    let what = match (names.get(at), known.get(at)) {
        (Some(name), Some(known)) => format!("column `{name}` where `{first}` has `{known}`"),
        (None, Some(known)) => format!("no column `{known}`, which `{first}` has"),
        (Some(name), None) => format!("a column `{name}`, which `{first}` does not have"),
        (None, None) => "other columns".to_string(),
    };
    Error::incompatible(format!(
        "file `{file}` has {what}: Arrow files are read by the places of columns, so write them \
         alike, or as Parquet, or read them apart"
    ))
}

/// Shows the columns of each file behind `url`, by name, if there may be several.
async fn look_at_each(
    state: &SessionState,
    options: &ListingOptions,
    url: &ListingTableUrl,
    mut look: impl FnMut(&ObjectMeta, &Schema) + Send,
) -> DataFusionResult<()> {
    if !url.is_collection() {
        return Ok(());
    }
    let store = state.runtime_env().object_store(url)?;
    for file in list(state, url).await? {
        // An empty file has no columns, and the reader passes over it.
        if file.size > 0 && file.location.as_ref().ends_with(&options.file_extension) {
            let one = std::slice::from_ref(&file);
            look(&file, options.format.infer_schema(state, &store, one).await?.as_ref());
        }
    }
    Ok(())
}

/// A file behind `url` for messages.
fn named(file: &ObjectMeta, url: &ListingTableUrl) -> String {
    match url.scheme() {
        "file" => shown(&absolute(file.location.as_ref())),
        _ => file.location.to_string(),
    }
}
