//! `labelflow demo`: the main job on generated data, step by step.

use super::columns::{ColumnOptions, LearnOptions};
use super::output::{Format, say};
use super::{
    evaluate::Evaluate, fit::Fit, generate::Generate, inspect::Inspect, score::Score, sql::Sql,
};
use crate::error::{Error, Result};
use crate::store::Unfinished;
use clap::Args;
use std::path::PathBuf;

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
        let (dir, _temporary) = match &self.dir {
            Some(dir) => (dir.clone(), None),
            None => {
                let name = format!("labelflow-demo-{}", std::process::id());
                let dir = std::path::absolute(std::env::temp_dir().join(name));
                let dir = dir.map_err(|e| Error::io("the temporary directory", e))?;
                (dir.clone(), Some(Unfinished::new(dir)))
            }
        };
        // Commands are run where they are said to be typed, so that they name the same files.
        std::fs::create_dir_all(&dir)
            .and_then(|()| std::env::set_current_dir(&dir))
            .map_err(|e| Error::io(format!("directory `{}`", dir.display()), e))?;
        let done = self.steps();
        // Some systems do not remove a directory that somebody is in.
        let _ = std::env::set_current_dir("..");
        done
    }

    fn steps(&self) -> Result<()> {
        let columns = ColumnOptions::default();
        heading("Make rows, and hold every fifth back to predict.")?;
        let shape = "--features 20 --labels 12 --cardinality 2.5 --seed 1";
        command(&format!("generate --rows {} {shape} all.parquet", self.rows))?;
        Generate {
            rows: self.rows,
            features: 20,
            labels: 12,
            cardinality: 2.5,
            seed: 1,
            drift: false,
            output: PathBuf::from("all.parquet"),
        }
        .run()?;
        query(
            "COPY (SELECT * FROM 'all.parquet' WHERE id % 5 > 0) TO 'train.parquet'; \
             COPY (SELECT * FROM 'all.parquet' WHERE id % 5 = 0) TO 'new.parquet'",
        )?;

        heading("Learn: one pass over the file, counts and moments only.")?;
        command("fit --algorithm naibx --labels labels train.parquet -o tags.labelflow")?;
        Fit {
            algorithm: "naibx".into(),
            columns: columns.clone(),
            learn: LearnOptions::default(),
            input: String::from("train.parquet"),
            output: PathBuf::from("tags.labelflow"),
            threads: 0,
        }
        .run()?;
        command("inspect tags.labelflow --most 3")?;
        Inspect { model: PathBuf::from("tags.labelflow"), most: 3 }.run()?;

        heading("Predict: Parquet in, the same columns and `predicted_labels` out.")?;
        command("score --model tags.labelflow new.parquet -o scored.parquet")?;
        Score {
            model: PathBuf::from("tags.labelflow"),
            input: String::from("new.parquet"),
            output: PathBuf::from("scored.parquet"),
            scores: false,
            top: None,
            sets: None,
            columns: columns.clone(),
            threads: 0,
        }
        .run()?;

        heading("Ask in SQL: how good are the predictions, and what do they look like?")?;
        query(
            "SELECT hamming_score(labels, predicted_labels, 12) AS hamming, \
             jaccard_score(labels, predicted_labels) AS jaccard, \
             micro_f1(labels, predicted_labels) AS micro_f1 FROM 'scored.parquet'",
        )?;
        query("SELECT id, labels, predicted_labels FROM 'scored.parquet' ORDER BY id LIMIT 5")?;

        heading("A model is a value: learn one per group and merge them, all in SQL.")?;
        query(
            "SELECT model_info(merge_models(m))['rows'] AS rows, count(*) AS models FROM \
             (SELECT train_labels('naibx', labels, f0, f1, f2) AS m FROM 'train.parquet' GROUP BY id % 4)",
        )?;

        heading("Compare settings with honest folds.")?;
        command(
            "evaluate new.parquet --algorithm naibx --algorithm 'naibx(size=given)' --folds 5",
        )?;
        Evaluate {
            inputs: vec![String::from("new.parquet")],
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

fn heading(text: &str) -> Result<()> {
    say(&format!("\n# {text}"))
}

fn command(text: &str) -> Result<()> {
    say(&format!("$ labelflow {text}"))
}

/// Prints a query and runs it.
fn query(text: &str) -> Result<()> {
    command(&format!("sql \"{text}\""))?;
    Sql {
        query: Some(text.to_string()),
        file: None,
        table: Vec::new(),
        labels_xml: None,
        format: Format::Table,
        threads: 0,
        memory: None,
    }
    .run()
}
