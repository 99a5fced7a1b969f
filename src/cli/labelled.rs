//! A table with its label sets and features chosen: what `fit`, `describe` and `evaluate` begin with.

use super::columns::{ColumnOptions, LabelOptions, is_in, list, literal};
use super::output::tell;
use crate::error::Result;
use crate::sql::{FileTables, SessionOptions, from_datafusion, session};
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
    /// A file that cannot be read, or columns that are not there.
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
        let features = list(&columns.features(schema)?);
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
