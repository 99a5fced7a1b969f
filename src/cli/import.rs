//! `labelflow import`: data of any format into a columnar file.

use super::columns::literal;
use super::sink::{FileFormat, write_rows};
use super::{block_on, output};
use crate::error::Result;
use crate::formats::LabelSource;
use crate::sql::{FileOptions, SessionOptions, session};
use clap::Args;
use std::path::PathBuf;

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// The data: a file, directory or pattern, such as ARFF or svmlight.
    #[arg(value_name = "DATA")]
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
        let format = FileFormat::of(&self.output)?;
        let arff_labels = self.labels_xml.clone().map_or(LabelSource::Auto, LabelSource::Xml);
        block_on(
            0,
            output::write_file(&self.output, async |name| {
                let files = FileOptions { arff_labels, ..Default::default() };
                let options = SessionOptions { partitions: 1, files, ..Default::default() };
                let ctx = session(&options)?;
                let query = format!("SELECT * FROM {}", literal(&self.input.to_string_lossy()));
                let bar = output::bar("importing", None);
                write_rows(&ctx, &query, &name, format, &bar).await?;
                Ok(())
            }),
        )
    }
}
