//! `labelflow inspect`: what a model has learned.

use super::output::{print_table, say};
use crate::data::{Id, LabelId};
use crate::error::{Error, Result};
use crate::models::Registry;
use crate::store::read_model;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub(super) struct Inspect {
    /// The model file.
    #[arg(value_name = "MODEL")]
    pub(super) model: PathBuf,
    /// How many labels, features per label and pairs are shown.
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub(super) most: usize,
}

impl Inspect {
    pub(super) fn run(&self) -> Result<()> {
        let model = read_model(&self.model, &Registry::default())?;
        let origin =
            model.origin().ok_or_else(|| Error::internal("the model was read from a file"))?;
        let space = model.space();
        print_table(&[
            vec!["algorithm".into(), model.algorithm().name.into()],
            vec!["spec".into(), model.spec().to_string()],
            vec!["rows".into(), model.rows().to_string()],
            vec!["labels".into(), space.labels.len().to_string()],
            vec!["features".into(), space.features.len().to_string()],
            vec!["version".into(), origin.version.to_string()],
            vec!["bytes".into(), origin.bytes.to_string()],
            vec!["digest".into(), origin.digest.to_string()],
        ])?;
        let insight = model.insight(self.most);
        for note in model.notes() {
            say(&format!("note: {note}"))?;
        }
        let mut order: Vec<usize> = (0..space.labels.len()).collect();
        order.sort_by(|&a, &b| {
            insight.label_counts[b].total_cmp(&insight.label_counts[a]).then(a.cmp(&b))
        });
        let shown = order.len().min(self.most);
        say(&format!(
            "\nlabels ({shown} most frequent of {}), with the features that tell most",
            order.len()
        ))?;
        let mut head = vec!["label".to_string(), "rows".to_string()];
        head.extend(insight.chosen.iter().map(|(name, _)| name.to_string()));
        head.push("telling features".into());
        let mut lines = vec![head];
        for &y in order.iter().take(shown) {
            // An algorithm may have none for any label.
            let telling = insight.telling.get(y).into_iter().flatten();
            let telling: Vec<String> =
                telling.map(|(name, weight)| format!("{name} {weight:+.2}")).collect();
            let name = space.labels.name(LabelId::new(y)).to_string();
            let mut line = vec![name, number(insight.label_counts[y])];
            line.extend(
                insight
                    .chosen
                    .iter()
                    .map(|(_, of)| of.get(y).map_or_else(String::new, |n| chosen(*n))),
            );
            line.push(telling.join(", "));
            lines.push(line);
        }
        print_table(&lines)?;
        if insight.pairs.is_empty() {
            return Ok(());
        }
        say("\nstrongest label pairs")?;
        let mut lines = vec![vec!["label".into(), "with".into(), "rows".into()]];
        for (a, b, n) in insight.pairs {
            let name = |y: LabelId| space.labels.name(y).to_string();
            lines.push(vec![name(a), name(b), number(n)]);
        }
        print_table(&lines)
    }
}

/// A number that was chosen: four digits.
fn chosen(n: f64) -> String {
    let digits = (3.0 - n.abs().max(1e-12).log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{n:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// A weight: whole when it is.
fn number(n: f64) -> String {
    if n.fract() == 0.0 { format!("{n:.0}") } else { format!("{n:.3}") }
}
