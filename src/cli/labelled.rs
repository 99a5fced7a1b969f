//! A table with its label sets and features chosen: what `fit`, `describe` and `evaluate` begin with.

use super::columns::{ColumnOptions, LabelOptions, is_in, list, literal};
use super::output::tell;
use crate::error::{Error, Result};
use crate::sql::{FileTables, Gap, SessionOptions, from_datafusion, session};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::prelude::{DataFrame, SessionContext};

/// A table and the SQL of what is learned from it.
pub(super) struct LabelledTable {
    ctx: SessionContext,
    pub(super) schema: SchemaRef,
    /// The name of the table.
    pub(super) table: String,
    /// The label sets.
    pub(super) labels: String,
    /// The feature columns, separated by commas.
    pub(super) features: String,
}

impl LabelledTable {
    /// Opens `input`; columns that are left out without being asked to are told.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or columns that are not there, in one file of several too.
    pub(super) async fn open(
        input: &str,
        columns: &ColumnOptions,
        reading: &LabelOptions,
        options: SessionOptions,
    ) -> Result<Self> {
        let ctx = session(&SessionOptions { files: columns.files(), ..options })?;
        let table = literal(input);
        let data = ctx.sql(&format!("SELECT * FROM {table}")).await.map_err(from_datafusion)?;
        let schema = data.schema().inner();
        let labels = columns.label_sets(schema, input, reading, FileTables::is_csv(&data))?;
        if let Some(note) = columns.note(schema) {
            tell(&format!("note: {note}"));
        }
        let features = columns.features(schema)?;
        let targets = columns.label_columns(schema);
        let used = [&targets[..], &features[..]].concat();
        let way_out = |column: &String| match targets.contains(column) {
            true => "leave the file out, or add the column, NULL where labels are not known".into(),
            false => {
                format!("leave the column out with `--exclude {column}`, or leave the file out")
            }
        };
        refuse_gap(&ctx, &data, input, &used, way_out).await?;
        let features = list(&features);
        let schema = SchemaRef::clone(schema);
        Ok(LabelledTable { ctx, schema, table, labels, features })
    }

    /// Whether `name` is a column, or a field of one.
    pub(super) fn has(&self, name: &str) -> bool {
        self.schema.fields().iter().any(|f| is_in(f.name(), name))
    }

    /// Plans a query of the table.
    ///
    /// # Errors
    ///
    /// What planning fails with.
    pub(super) async fn query(&self, sql: &str) -> Result<DataFrame> {
        self.ctx.sql(sql).await.map_err(from_datafusion)
    }
}

/// Refuses a table of which one file lacks one of `columns`: its rows would be read as if the values
/// were not known.
///
/// # Errors
///
/// Names the file and the column, and what to do by `way_out`.
pub(super) async fn refuse_gap(
    ctx: &SessionContext,
    data: &DataFrame,
    input: &str,
    columns: &[String],
    way_out: impl Fn(&String) -> String,
) -> Result<()> {
    let Some(Gap { file, column }) = FileTables::gap(ctx, data, columns).await? else {
        return Ok(());
    };
    Err(Error::incompatible(format!(
        "file `{file}` has no column `{column}`, which other files of `{input}` have: {}",
        way_out(&column)
    )))
}
