//! What `evaluate` prints.

use super::output::{Format, csv_field, print_table, say};
use crate::error::{Error, Result};
use crate::evaluate::Outcome;
use serde::Serialize;

/// Metrics of several algorithms side by side.
pub(super) fn print_metrics(title: &str, outcomes: &[Outcome]) -> Result<()> {
    say(title)?;
    let Some(first) = outcomes.first() else { return Ok(()) };
    let mut head = vec!["metric".to_string()];
    head.extend(outcomes.iter().map(|o| o.spec.clone()));
    let mut lines = vec![head];
    for (i, (metric, _)) in first.metrics.iter().enumerate() {
        let mut line = vec![(*metric).to_string()];
        line.extend(outcomes.iter().map(|o| {
            let value = o.metrics[i].1;
            format!("{:.4} ± {:.4}", value.mean, value.std)
        }));
        lines.push(line);
    }
    print_table(&lines)
}

/// Metrics, one record each.
pub(super) fn print_records(
    dataset: &str,
    seed: u64,
    outcomes: &[Outcome],
    format: Format,
) -> Result<()> {
    let records = outcomes.iter().flat_map(|outcome| {
        outcome.metrics.iter().map(move |(metric, value)| Record {
            dataset,
            algorithm: &outcome.spec,
            metric,
            mean: value.mean,
            std: value.std,
            folds: value.rounds,
            seed,
        })
    });
    print(records, format, "dataset,algorithm,metric,mean,std,folds,seed", |r| {
        let (dataset, algorithm) = (csv_field(r.dataset), csv_field(r.algorithm));
        let Record { metric, mean, std, folds, seed, .. } = r;
        format!("{dataset},{algorithm},{metric},{mean},{std},{folds},{seed}")
    })
}

/// The outcomes of every label, a table for each algorithm.
pub(super) fn print_labels(title: &str, outcomes: &[Outcome]) -> Result<()> {
    for outcome in outcomes {
        say(&format!("{title}, {}", outcome.spec))?;
        let head = ["label", "support", "tp", "fp", "fn", "precision", "recall", "f1"];
        let mut lines = vec![head.map(str::to_string).to_vec()];
        for (name, o) in &outcome.labels {
            let counts = [o.support(), o.true_positive, o.false_positive, o.false_negative];
            let mut line = vec![name.clone()];
            line.extend(counts.map(|n| n.to_string()));
            line.extend([o.precision(), o.recall(), o.f1()].map(|x| format!("{x:.4}")));
            lines.push(line);
        }
        print_table(&lines)?;
    }
    Ok(())
}

/// The outcomes of every label, one record each.
pub(super) fn print_label_records(
    dataset: &str,
    outcomes: &[Outcome],
    format: Format,
) -> Result<()> {
    let records = outcomes.iter().flat_map(|outcome| {
        outcome.labels.iter().map(move |(label, o)| LabelRecord {
            dataset,
            algorithm: &outcome.spec,
            label,
            support: o.support(),
            true_positive: o.true_positive,
            false_positive: o.false_positive,
            false_negative: o.false_negative,
            precision: o.precision(),
            recall: o.recall(),
            f1: o.f1(),
        })
    });
    let head = "dataset,algorithm,label,support,true_positive,false_positive,false_negative,\
                precision,recall,f1";
    print(records, format, head, |r| {
        let texts = [r.dataset, r.algorithm, r.label].map(csv_field).join(",");
        let counts = [r.support, r.true_positive, r.false_positive, r.false_negative];
        let counts = counts.map(|n| n.to_string()).join(",");
        format!("{texts},{counts},{},{},{}", r.precision, r.recall, r.f1)
    })
}

/// One number of a report.
#[derive(Debug, Serialize)]
struct Record<'a> {
    dataset: &'a str,
    algorithm: &'a str,
    metric: &'a str,
    mean: f64,
    std: f64,
    folds: usize,
    seed: u64,
}

/// One label of a report.
#[derive(Debug, Serialize)]
struct LabelRecord<'a> {
    dataset: &'a str,
    algorithm: &'a str,
    label: &'a str,
    support: u64,
    true_positive: u64,
    false_positive: u64,
    false_negative: u64,
    precision: f64,
    recall: f64,
    f1: f64,
}

/// Prints records as JSON, or with `line` as CSV under `head`.
fn print<R: Serialize>(
    records: impl Iterator<Item = R>,
    format: Format,
    head: &str,
    line: impl Fn(&R) -> String,
) -> Result<()> {
    if format == Format::Csv {
        say(head)?;
    }
    for record in records {
        let text = match format {
            Format::Csv => line(&record),
            _ => serde_json::to_string(&record)
                .map_err(|e| Error::internal(format!("a report line: {e}")))?,
        };
        say(&text)?;
    }
    Ok(())
}
