//! `labelflow import`: ARFF into a columnar file.

use super::columns::literal;
use super::score::{copy_statement, file_format};
use super::{block_on, output};
use crate::error::Result;
use crate::formats::LabelSource;
use crate::sql::{SessionOptions, from_datafusion, run_to_end, session};
use clap::Args;
use std::path::PathBuf;

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// The ARFF file.
    #[arg(value_name = "ARFF")]
    input: PathBuf,
    /// The file to write; its extension chooses the format.
    #[arg(value_name = "FILE")]
    output: PathBuf,
    /// Mulan's list of labels; by default the file of the same name with .xml, or MEKA's header.
    #[arg(long, value_name = "XML")]
    labels_xml: Option<PathBuf>,
}

impl Import {
    pub(super) fn run(&self) -> Result<()> {
        let format = file_format(&self.output)?;
        let arff_labels = self.labels_xml.clone().map_or(LabelSource::Auto, LabelSource::Xml);
        block_on(
            0,
            output::write_file(&self.output, async |name| {
                let options = SessionOptions { partitions: 1, arff_labels, ..Default::default() };
                let ctx = session(&options)?;
                let query = format!("SELECT * FROM {}", literal(&self.input.to_string_lossy()));
                let copy = copy_statement(&query, &ctx, &name, format).await?;
                let bar = output::bar("importing", None);
                let query = ctx.sql(&copy).await.map_err(from_datafusion)?;
                run_to_end(query, |p| output::show(&bar, p)).await?;
                bar.finish_and_clear();
                Ok(())
            }),
        )
    }
}
