//! `labelflow import`: data of any format into a columnar file.

use super::columns::{LabelOptions, literal, quoted};
use super::sink::{FileFormat, write_rows};
use super::{block_on, output};
use crate::data::{Pattern, plain_type};
use crate::error::{Error, Result};
use crate::formats::LabelSource;
use crate::sql::{FileOptions, FileTables, SessionOptions, from_datafusion, session};
use arrow::datatypes::Field;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// The data: a file, directory or pattern, such as ARFF or svmlight.
    #[arg(value_name = "DATA")]
    input: String,
    /// The file to write; its extension chooses the format.
    #[arg(value_name = "FILE")]
    output: PathBuf,
    /// The column of labels; texts in it become lists. `labels` when not given, if there is one.
    #[arg(long, value_name = "COLUMN")]
    labels: Option<String>,
    #[command(flatten)]
    reading: LabelOptions,
    /// Mulan's list of labels; by default the file of the same name with .xml, or MEKA's header.
    #[arg(long, value_name = "XML")]
    labels_xml: Option<PathBuf>,
}

impl Import {
    pub(super) fn run(&self) -> Result<()> {
        let format = FileFormat::of(&self.output)?;
        block_on(0, output::write_file(&self.output, async |name| self.write(&name, format).await))
    }

    async fn write(&self, name: &str, format: FileFormat) -> Result<()> {
        let labels = self.labels.as_deref().unwrap_or("labels");
        let files = FileOptions {
            arff_labels: self.labels_xml.clone().map_or(LabelSource::Auto, LabelSource::Xml),
            csv_text: vec![Pattern::new(labels)],
        };
        let ctx = session(&SessionOptions { partitions: 1, files, ..Default::default() })?;
        let table = literal(&self.input);
        let data = ctx.sql(&format!("SELECT * FROM {table}")).await.map_err(from_datafusion)?;
        let fields = data.schema().fields();
        if self.labels.is_some() && !fields.iter().any(|f| f.name() == labels) {
            let names: Vec<&str> = fields.iter().map(|f| f.name().as_str()).collect();
            return Err(Error::not_found(format!(
                "`{}` has no label column `{labels}`; the columns are: {}",
                self.input,
                names.join(", ")
            )));
        }
        let csv = FileTables::is_csv(&data);
        let column = |f: &Arc<Field>| {
            let column = quoted(f.name());
            match f.name() == labels && plain_type(f.data_type()).is_string() {
                true => format!("{} AS {column}", self.reading.split(&column, csv)),
                false => column,
            }
        };
        let columns: Vec<String> = fields.iter().map(column).collect();
        let query = format!("SELECT {} FROM {table}", columns.join(", "));
        let bar = output::bar("importing", None);
        write_rows(&ctx, &query, name, format, &bar).await?;
        Ok(())
    }
}
