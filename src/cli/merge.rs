//! `labelflow merge`: models into one.

use super::output::tell;
use crate::error::{Error, Result};
use crate::models::{Registry, Trainer};
use crate::store::{AtomicFile, read_model, write_model};
use clap::Args;
use std::path::PathBuf;

/// Arguments of `merge`.
#[derive(Debug, Args)]
pub(super) struct Merge {
    /// The model files.
    #[arg(value_name = "MODEL", required = true)]
    inputs: Vec<PathBuf>,
    /// The model file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl Merge {
    pub(super) fn run(&self) -> Result<()> {
        AtomicFile::try_new(&self.output)?;
        let registry = Registry::default();
        let mut merged: Option<Trainer> = None;
        for path in &self.inputs {
            let model = read_model(path, &registry)?;
            match &mut merged {
                None => merged = Some(model.reopen()?),
                Some(trainer) => trainer
                    .merge(&model)
                    .map_err(|e| e.context(format!("model file `{}`", path.display())))?,
            }
        }
        let trainer = merged.ok_or_else(|| Error::usage("name at least one model file"))?;
        let model = trainer.finish()?;
        write_model(&self.output, &model)?;
        tell(&format!(
            "merged {} models of {} rows: {}",
            self.inputs.len(),
            model.rows(),
            self.output.display()
        ));
        Ok(())
    }
}
