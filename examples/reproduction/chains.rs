//! Binary relevance and chains on the data sets of three papers.

use crate::features::{Features, prepared};
use crate::links::ruled;
use crate::meka;
use crate::tables::{Folds, Set, TABLES, Table, Variant, Way, selected};
use crate::{line, read_set};
use arrow::compute::concat_batches;
use arrow::record_batch::RecordBatch;
use labelflow::evaluate::{Dataset, Experiment, Outcome, Protocol, Split, Stratify};
use labelflow::metrics::{Metric, SetMetrics};
use labelflow::models::Registry;
use labelflow::{Error, Result};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

/// Prints the tables, of the data sets named only (all when none is); a name that no table has is an
/// error.
pub fn tables(data: &Path, only: &[String]) -> Result<()> {
    let names: BTreeSet<&str> = TABLES.iter().flat_map(|t| t.sets.iter().map(|s| s.file)).collect();
    if let Some(unknown) = only.iter().find(|o| !names.contains(o.as_str())) {
        let names: Vec<&str> = names.into_iter().collect();
        return Err(Error::usage(format!(
            "no table has a data set `{unknown}`: name some of {}",
            names.join(", ")
        )));
    }
    let registry = Registry::default();
    for table in TABLES {
        println!("\n{}\n", table.title);
        println!("| data set | protocol | method | {} |", table.metrics.join(" | "));
        println!("|---|---|---|{}", "---|".repeat(table.metrics.len()));
        let wanted = |s: &&Set| only.is_empty() || only.iter().any(|o| o == s.file);
        for set in table.sets.iter().filter(wanted) {
            rows_of(table, set, data, &registry)?;
        }
    }
    Ok(())
}

fn rows_of(table: &Table, set: &Set, data: &Path, registry: &Registry) -> Result<()> {
    let batches = read_set(data, set.directory, set.file)?;
    let Some(first) = batches.first() else { return Ok(()) };
    let batch = concat_batches(&first.schema(), &batches)?;
    let protocol = match set.folds {
        1 => Protocol::HoldOut { train: 0.66, repeats: 1 },
        folds => Protocol::folds(folds),
    };
    let (clock, watch, stratify) = (&|| 0.0, &|| (), table.stratify);
    let experiment = Experiment { registry, protocol, stratify, seed: 1, clock, watch };
    for (name, variants) in table.methods {
        let published = set.published.iter().find(|row| row.0 == *name);
        let Some((_, means, spreads)) = published else { continue };
        let figure = |(i, v): (usize, &f64)| match spreads.get(i) {
            Some(spread) => format!("{v:.3} ± {spread:.3}"),
            None => format!("{v:.3}"),
        };
        let figures: Vec<String> = means.iter().enumerate().map(figure).collect();
        line(set.file, &protocol, &format!("paper, {name}"), &figures);
        let micro = set.micro || name.starts_with("ECC");
        let metric = |m: &&'static str| match *m {
            "precision" if micro => "micro_precision",
            "recall" if micro => "micro_recall",
            other => other,
        };
        let metrics: Vec<&str> = table.metrics.iter().map(metric).collect();
        let here = |v: &&Variant| v.only.is_empty() || v.only.contains(&set.file);
        for variant in variants.iter().filter(here) {
            if let Some(found) = figures_of(&experiment, &batch, set.file, variant, &metrics)? {
                line(set.file, &protocol, &variant.name(), &found);
            }
        }
    }
    Ok(())
}

/// Mean and standard deviation over rounds; `None` when there are no features to prepare.
fn figures_of(
    experiment: &Experiment,
    batch: &RecordBatch,
    name: &str,
    variant: &Variant,
    metrics: &[&str],
) -> Result<Option<Vec<String>>> {
    let dataset = Dataset::try_new(name, std::slice::from_ref(batch), "labels")?;
    let stratify = match variant.folds {
        Folds::Stratified => Stratify::Iterative,
        Folds::OfTable | Folds::Meka => experiment.stratify,
    };
    let experiment = Experiment { stratify, ..*experiment };
    let splits = match (variant.folds, variant.way, variant.features) {
        (Folds::Meka, ..) => meka::splits(&experiment.protocol, dataset.len()),
        (_, Way::Spec(spec), Features::AsTheyAre) => {
            return Ok(Some(found(&experiment.run(&dataset, &[spec.to_string()])?[0], metrics)));
        }
        _ => experiment.protocol.splits(dataset.truth(), stratify, experiment.seed)?,
    };
    let round = |split: &Split| round_of(&experiment, batch, name, variant, split, metrics);
    let rounds: Vec<Option<Vec<f64>>> = splits.par_iter().map(round).collect::<Result<_>>()?;
    let Some(rounds) = rounds.into_iter().collect::<Option<Vec<Vec<f64>>>>() else {
        return Ok(None);
    };
    let summary = |m: usize| {
        let n = rounds.len() as f64;
        let mean = rounds.iter().map(|round| round[m]).sum::<f64>() / n;
        let squares: f64 = rounds.iter().map(|round| (round[m] - mean).powi(2)).sum();
        format!("{mean:.3} ± {:.3}", (squares / (n - 1.0).max(1.0)).sqrt())
    };
    Ok(Some((0..metrics.len()).map(summary).collect()))
}

/// The metrics of one round; `None` when there are no features to prepare.
fn round_of(
    experiment: &Experiment,
    batch: &RecordBatch,
    name: &str,
    variant: &Variant,
    split: &Split,
    metrics: &[&str],
) -> Result<Option<Vec<f64>>> {
    let Some((train, test)) = prepared(batch, split, &variant.features, selected(name))? else {
        return Ok(None);
    };
    let registry = experiment.registry;
    let predicted = match variant.way {
        Way::Spec(spec) => {
            let train = Dataset::try_new(name, &[train], "labels")?;
            let test = Dataset::try_new(name, &[test], "labels")?;
            let outcome = &experiment.run_on(&train, &test, &[spec.to_string()])?[0];
            let value = |metric: &&str| {
                let found = outcome.metrics.iter().find(|(n, _)| n == metric);
                found.map_or(f64::NAN, |(_, v)| v.mean)
            };
            return Ok(Some(metrics.iter().map(value).collect()));
        }
        Way::Ruled(rule, spec) => ruled(registry, rule, spec, &train, &test)?,
        Way::Chains(chains) => chains.predict(registry, &train, &test)?,
    };
    let test = Dataset::try_new(name, &[test], "labels")?;
    let mut sets = SetMetrics::default();
    sets.observe_sets(test.truth(), &predicted)?;
    let value = |metric: &&str| -> Result<f64> {
        let value = sets.value(metric.parse::<Metric>()?, Some(test.universe().len()));
        Ok(value.unwrap_or(f64::NAN))
    };
    Ok(Some(metrics.iter().map(value).collect::<Result<_>>()?))
}

fn found(outcome: &Outcome, metrics: &[&str]) -> Vec<String> {
    let value = |name: &&str| {
        let metric = outcome.metrics.iter().find(|(n, _)| n == name);
        metric.map_or_else(String::new, |(_, v)| format!("{:.3} ± {:.3}", v.mean, v.std))
    };
    metrics.iter().map(value).collect()
}
