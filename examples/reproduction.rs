//! Makes the tables of `docs/reproduction.md`: the algorithms on the data sets of their papers. The
//! first argument chooses a paper: nothing for NaiBX, `words` for what moves its figures on words,
//! `lazy`, or `chains` (and names of data sets, or none for all).
//!
//! `LABELFLOW_DATA` names the directory of data sets. Each is evaluated with the protocol of the
//! paper (10 folds, or a hold-out of a third) and honest folds, beside the published figures. The
//! last rows repeat the published program's folds, which train on the first nine tenths of the file
//! whichever part is tested: the figure that moves is explained by the test rows it has seen.

#[path = "reproduction/chains.rs"]
mod chains;
#[path = "reproduction/features.rs"]
mod features;
#[path = "reproduction/hinge.rs"]
mod hinge;
#[path = "reproduction/lazy.rs"]
mod lazy;
#[path = "reproduction/links.rs"]
mod links;
#[path = "reproduction/meka.rs"]
mod meka;
#[path = "reproduction/tables.rs"]
mod tables;
#[path = "reproduction/values.rs"]
mod values;
#[path = "reproduction/weka.rs"]
mod weka;
#[path = "reproduction/words.rs"]
mod words;

use labelflow::evaluate::{Dataset, Experiment, Outcome, Protocol, Stratify};
use labelflow::formats::{ArffReader, LabelSource};
use labelflow::models::Registry;
use labelflow::{Error, Result};
use std::path::{Path, PathBuf};

/// The metrics of the paper's tables, in its order.
const METRICS: [&str; 6] =
    ["label_cardinality", "hamming_score", "exact_match", "jaccard", "precision", "recall"];

/// A data set of the paper.
struct Set {
    /// Directory, file and the name in the paper.
    files: (&'static str, &'static str, &'static str),
    /// The event model the paper uses; `auto` goes by the types of the file.
    event: &'static str,
    /// The share that trains where the paper uses a hold-out.
    hold_out: Option<f64>,
    /// The published figures of NaiBX and of NaiBX with the true size (Tables 6 to 8).
    published: Option<([f64; 6], [f64; 6])>,
}

const NONE: f64 = f64::NAN;

#[rustfmt::skip]
const SETS: &[Set] = &[
    Set { files: ("emotions", "emotions", "Emotions"), event: "auto", hold_out: None, published: Some(
        ([1.947, 0.771, 0.275, 0.528, 0.639, 0.648], [NONE, 0.814, 0.526, 0.623, 0.669, 0.669])) },
    Set { files: ("emotions", "music-meka", "Music"), event: "auto", hold_out: None, published: Some(
        ([1.926, 0.771, 0.284, 0.530, 0.643, 0.643], [NONE, 0.815, 0.526, 0.624, 0.671, 0.671])) },
    Set { files: ("scene", "scene", "Scene"), event: "auto", hold_out: None, published: Some(
        ([1.408, 0.866, 0.453, 0.623, 0.631, 0.784], [NONE, 0.903, 0.712, 0.721, 0.725, 0.725])) },
    Set { files: ("yeast", "yeast", "Yeast"), event: "auto", hold_out: None, published: Some(
        ([4.551, 0.705, 0.115, 0.405, 0.541, 0.555], [NONE, 0.757, 0.218, 0.481, 0.579, 0.579])) },
    Set { files: ("cal500", "cal500", "CAL500"), event: "auto", hold_out: None, published: Some(
        ([25.719, 0.817, 0.002, 0.249, 0.379, 0.372], [NONE, 0.833, 0.012, 0.299, 0.423, 0.423])) },
    Set { files: ("bibtex", "bibtex", "Bibtex"), event: "auto", hold_out: Some(0.66), published: Some(
        ([1.280, 0.984, 0.147, 0.278, 0.461, 0.301], [NONE, 0.983, 0.212, 0.346, 0.406, 0.406])) },
    Set { files: ("enron", "enron", "Enron"), event: "auto", hold_out: None, published: Some(
        ([3.269, 0.923, 0.016, 0.267, 0.397, 0.431], [NONE, 0.928, 0.134, 0.357, 0.460, 0.460])) },
    Set { files: ("langlog", "langlog", "LLog"), event: "bernoulli", hold_out: None, published: Some(
        ([0.859, 0.984, 0.420, 0.341, 0.422, 0.341], [NONE, 0.983, 0.479, 0.375, 0.392, 0.392])) },
    Set { files: ("slashdot", "slashdot", "SlashDot"), event: "bernoulli", hold_out: None, published: Some(
        ([0.905, 0.961, 0.424, 0.497, 0.535, 0.533], [NONE, 0.970, 0.680, 0.702, 0.713, 0.713])) },
    Set { files: ("yahoo-arts", "yahoo-arts", "Arts"), event: "multinomial", hold_out: Some(0.66), published: Some(
        ([1.002, 0.937, 0.313, 0.393, 0.504, 0.393], [NONE, 0.930, 0.355, 0.442, 0.483, 0.483])) },
    Set { files: ("yahoo-business", "yahoo-business", "Business"), event: "multinomial", hold_out: Some(0.66), published: Some(
        ([1.012, 0.971, 0.541, 0.682, 0.868, 0.682], [NONE, 0.977, 0.761, 0.810, 0.832, 0.832])) },
    Set { files: ("medical", "medical", "Medical"), event: "auto", hold_out: None, published: None },
    Set { files: ("genbase", "genbase", "Genbase"), event: "auto", hold_out: None, published: None },
];

fn main() -> Result<()> {
    let Some(data) = std::env::var_os("LABELFLOW_DATA").map(PathBuf::from) else {
        println!("skipped: set LABELFLOW_DATA to the directory of data sets");
        return Ok(());
    };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first().map(|(paper, only)| (paper.as_str(), only)) {
        Some(("chains", only)) => return chains::tables(&data, only),
        Some(("lazy", _)) => return lazy::tables(&data),
        Some(("words", _)) => return words::table(&data),
        Some((unknown, _)) => {
            return Err(Error::usage(format!(
                "there are no tables `{unknown}`: give `words`, `lazy`, `chains`, or nothing for NaiBX"
            )));
        }
        None => {}
    }
    println!("| data set | protocol | method | {} |", METRICS.join(" | "));
    println!("|---|---|---|{}", "---|".repeat(METRICS.len()));
    for set in SETS {
        table(&data, set)?;
    }
    Ok(())
}

/// The specs over 10 folds.
fn run(dataset: &Dataset, specs: &[String]) -> Result<Vec<Outcome>> {
    let registry = Registry::default();
    let protocol = Protocol::folds(10);
    let (clock, watch) = (&|| 0.0, &|| ());
    Experiment { registry: &registry, protocol, stratify: Stratify::None, seed: 1, clock, watch }
        .run(dataset, specs)
}

fn table(data: &Path, set: &Set) -> Result<()> {
    let (directory, file, name) = set.files;
    let batches = read_set(data, directory, file)?;
    let dataset = Dataset::try_new(name, &batches, "labels")?;
    let protocol = match set.hold_out {
        Some(train) => Protocol::HoldOut { train, repeats: 1 },
        None => Protocol::folds(10),
    };
    let registry = Registry::default();
    let experiment = Experiment {
        registry: &registry,
        protocol,
        stratify: Stratify::None,
        seed: 1,
        clock: &|| 0.0,
        watch: &|| (),
    };
    let spec = |size: &str| match set.event {
        "auto" => format!("naibx(size={size})"),
        event => format!("naibx(event={event}, size={size})"),
    };
    let sizes = ["predicted", "labels", "given"];
    let specs = sizes.map(spec);
    let ours = experiment.run(&dataset, &specs)?;
    let line = |method: &str, values: &[String]| line(name, &protocol, method, values);
    if let Some((size_predicted, size_given)) = &set.published {
        line("paper, NaiBX", &published(size_predicted));
        line("size=predicted", &found(&ours[0]));
        line("size=labels", &found(&ours[1]));
        line("paper, true size", &published(size_given));
        line("size=given", &found(&ours[2]));
    } else {
        for (outcome, size) in ours.iter().zip(sizes) {
            line(&format!("size={size}"), &found(outcome));
        }
    }
    if set.event != "auto" {
        let specs = sizes.map(|size| format!("naibx(size={size})"));
        for (outcome, size) in experiment.run(&dataset, &specs)?.iter().zip(sizes) {
            line(&format!("size={size}, event=auto"), &found(outcome));
        }
    }
    if set.hold_out.is_none() && set.published.is_some() {
        let rows: usize = batches.iter().map(|b| b.num_rows()).sum();
        let first = batches_until(&batches, rows * 9 / 10);
        let train = Dataset::try_new(name, &first, "labels")?;
        let seen = experiment.run_on(&train, &dataset, &[spec("predicted"), spec("given")])?;
        line("published folds, size=predicted", &found(&seen[0]));
        line("published folds, size=given", &found(&seen[1]));
    }
    Ok(())
}

/// One line of a table.
fn line(name: &str, protocol: &Protocol, method: &str, values: &[String]) {
    println!("| {name} | {protocol} | {method} | {} |", values.join(" | "));
}

fn read_set(
    data: &Path,
    directory: &str,
    file: &str,
) -> Result<Vec<arrow::record_batch::RecordBatch>> {
    let path = data.join(directory).join(format!("{file}.arff"));
    let reader = ArffReader::try_open(&path, &LabelSource::Auto)?;
    reader
        .map(|batch| {
            let batch = batch?;
            // A row number of genbase, no feature.
            let keep = |i: &usize| batch.schema().field(*i).name() != "protein";
            let columns: Vec<usize> = (0..batch.num_columns()).filter(keep).collect();
            Ok(batch.project(&columns)?)
        })
        .collect()
}

fn batches_until(
    batches: &[arrow::record_batch::RecordBatch],
    rows: usize,
) -> Vec<arrow::record_batch::RecordBatch> {
    let mut left = rows;
    let mut out = Vec::new();
    for batch in batches {
        let take = batch.num_rows().min(left);
        out.push(batch.slice(0, take));
        left -= take;
    }
    out
}

fn published(values: &[f64; 6]) -> Vec<String> {
    let text = |v: &f64| if v.is_nan() { String::new() } else { format!("{v:.3}") };
    values.iter().map(text).collect()
}

fn found(outcome: &Outcome) -> Vec<String> {
    let value = |name: &&str| {
        let metric = outcome.metrics.iter().find(|(n, _)| n == name);
        metric.map_or_else(String::new, |(_, v)| format!("{:.3} ± {:.3}", v.mean, v.std))
    };
    METRICS.iter().map(value).collect()
}
