//! `labelflow algorithms`: the registry as a table.

use super::output::{print_table, say};
use crate::error::Result;
use crate::models::{Parameter, Registry};
use clap::Args;

/// Arguments of `algorithms`.
#[derive(Debug, Args)]
pub(super) struct Algorithms {}

impl Algorithms {
    pub(super) fn run(&self) -> Result<()> {
        let registry = Registry::default();
        let mut lines = vec![vec!["algorithm".into(), "what it is".into()]];
        for a in registry.algorithms() {
            lines.push(vec![a.name.into(), a.summary.into()]);
        }
        print_table(&lines)?;
        for a in registry.algorithms() {
            say(&format!("\n{}: {}", a.name, a.reference))?;
            print_parameters(a.parameters)?;
        }
        for (setting, choice) in registry.choices() {
            say(&format!("\n{setting}={}: {}", choice.name, choice.help))?;
            print_parameters(choice.parameters)?;
        }
        Ok(())
    }
}

fn print_parameters(parameters: &[Parameter]) -> Result<()> {
    let head = ["  parameter", "default", "takes", "what it does"];
    let mut lines = vec![head.map(String::from).to_vec()];
    for p in parameters {
        let takes = p.allowed.to_string();
        lines.push(vec![format!("  {}", p.name), p.default.into(), takes, p.help.into()]);
    }
    print_table(&lines)
}
