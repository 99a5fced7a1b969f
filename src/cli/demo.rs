//! `labelflow demo`: the main job on generated data, step by step.

use super::columns::{ColumnOptions, LearnOptions};
use super::output::Format;
use super::{
    evaluate::Evaluate, fit::Fit, generate::Generate, inspect::Inspect, score::Score, sql::Sql,
};
use crate::error::{Error, Result};
use clap::Args;
use std::path::{Path, PathBuf};

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Keep the files in this directory; by default they are removed.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// How many rows are generated to learn from.
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    rows: u64,
}

impl Demo {
    pub(super) fn run(&self) -> Result<()> {
        match &self.dir {
            Some(dir) => {
                std::fs::create_dir_all(dir)
                    .map_err(|e| Error::io(format!("directory `{}`", dir.display()), e))?;
                self.steps(dir)
            }
            None => {
                let name = format!("labelflow-demo-{}", std::process::id());
                let dir = std::env::temp_dir().join(name);
                std::fs::create_dir_all(&dir)
                    .map_err(|e| Error::io(format!("directory `{}`", dir.display()), e))?;
                let done = self.steps(&dir);
                // A temporary directory that cannot be removed harms nobody.
                let _ = std::fs::remove_dir_all(&dir);
                done
            }
        }
    }

    fn steps(&self, dir: &Path) -> Result<()> {
        let path = |name: &str| dir.join(name);
        let text = |name: &str| path(name).to_string_lossy().into_owned();
        let columns = ColumnOptions::default();
        say("Make rows, and hold every fifth back to predict.");
        let shape = "--features 20 --labels 12 --cardinality 2.5 --seed 1";
        command(&format!("generate --rows {} {shape} all.parquet", self.rows));
        Generate {
            rows: self.rows,
            features: 20,
            labels: 12,
            cardinality: 2.5,
            seed: 1,
            drift: false,
            output: path("all.parquet"),
        }
        .run()?;
        query(
            dir,
            "COPY (SELECT * FROM 'all.parquet' WHERE id % 5 > 0) TO 'train.parquet'; \
             COPY (SELECT * FROM 'all.parquet' WHERE id % 5 = 0) TO 'new.parquet'",
        )?;

        say("Learn: one pass over the file, counts and moments only.");
        command("fit --algorithm naibx --labels labels train.parquet -o tags.labelflow");
        Fit {
            algorithm: "naibx".into(),
            columns: columns.clone(),
            learn: LearnOptions::default(),
            input: text("train.parquet"),
            output: path("tags.labelflow"),
            threads: 0,
        }
        .run()?;
        command("inspect tags.labelflow --most 3");
        Inspect { model: path("tags.labelflow"), most: 3 }.run()?;

        say("Predict: Parquet in, the same columns and `predicted_labels` out.");
        command("score --model tags.labelflow new.parquet -o scored.parquet");
        Score {
            model: path("tags.labelflow"),
            input: text("new.parquet"),
            output: path("scored.parquet"),
            scores: false,
            top: None,
            sets: None,
            columns: columns.clone(),
            threads: 0,
        }
        .run()?;

        say("Ask in SQL: how good are the predictions, and what do they look like?");
        query(
            dir,
            "SELECT hamming_score(labels, predicted_labels, 12) AS hamming, \
             jaccard_score(labels, predicted_labels) AS jaccard, \
             micro_f1(labels, predicted_labels) AS micro_f1 FROM 'scored.parquet'",
        )?;
        query(
            dir,
            "SELECT id, labels, predicted_labels FROM 'scored.parquet' ORDER BY id LIMIT 5",
        )?;

        say("A model is a value: learn one per group and merge them, all in SQL.");
        query(
            dir,
            "SELECT model_info(merge_models(m))['rows'] AS rows, count(*) AS models FROM \
             (SELECT train_labels('naibx', labels, f0, f1, f2) AS m FROM 'train.parquet' GROUP BY id % 4)",
        )?;

        say("Compare settings with honest folds.");
        command("evaluate new.parquet --algorithm naibx --algorithm 'naibx(size=given)' --folds 5");
        Evaluate {
            inputs: vec![text("new.parquet")],
            algorithm: vec!["naibx".into(), "naibx(size=given)".into()],
            folds: "5".into(),
            stratify: "none".into(),
            report: false,
            split: None,
            test: None,
            seed: 1,
            columns,
            learn: LearnOptions::default(),
            format: Format::Table,
        }
        .run()
    }
}

fn say(text: &str) {
    println!("\n# {text}");
}

fn command(text: &str) {
    println!("$ labelflow {text}");
}

/// Prints a query over files as it would be typed beside them, and runs it.
fn query(dir: &Path, text: &str) -> Result<()> {
    command(&format!("sql \"{text}\""));
    let here = format!("'{}/", dir.to_string_lossy().replace('\'', "''"));
    let query =
        text.replace("FROM '", &format!("FROM {here}")).replace("TO '", &format!("TO {here}"));
    Sql {
        query: Some(query),
        file: None,
        table: Vec::new(),
        labels_xml: None,
        format: Format::Table,
        threads: 0,
        memory: None,
    }
    .run()
}
