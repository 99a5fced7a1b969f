//! Tables 2 and 3 and the data of Figure 1 of the study of lazy learners.
//!
//! Means over 10 folds and over k = 1..30, numbers scaled to a range of 1, beside the published
//! figures; for the paper's F of rows, also two other measures of the same predictions: the F of the
//! mean precision and the mean recall, and that recall.

use super::{read_set, run};
use labelflow::Result;
use labelflow::evaluate::{Dataset, Outcome};
use std::path::Path;

/// The measures of the paper and ours; its Hamming loss is one less our Hamming score.
const METRICS: [(&str, &str); 6] = [
    ("hamming_loss", "hamming_score"),
    ("accuracy", "jaccard"),
    ("f", "f1"),
    ("subset_accuracy", "exact_match"),
    ("micro_f", "micro_f1"),
    ("macro_f", "macro_f1"),
];

const METHODS: [&str; 5] = ["brknn", "brknn_a", "brknn_b", "lpknn", "mlknn"];

/// The figures of a method on a data set, in the order of [`METRICS`] (Tables 2 and 3).
#[rustfmt::skip]
// A published figure happens to be near a fraction of pi.
#[expect(clippy::approx_constant)]
const PUBLISHED: &[(&str, [Option<[f64; 6]>; 5])] = &[
    ("scene", [
        Some([0.0950, 0.6256, 0.6386, 0.5993, 0.6964, 0.6955]),
        Some([0.0938, 0.7226, 0.7392, 0.6889, 0.7296, 0.7363]),
        Some([0.0941, 0.7218, 0.7381, 0.6886, 0.7284, 0.7349]),
        Some([0.0955, 0.7181, 0.7343, 0.6854, 0.7249, 0.7323]),
        Some([0.0884, 0.6720, 0.6944, 0.6272, 0.7316, 0.7341]),
    ]),
    ("emotions", [
        Some([0.1976, 0.5215, 0.6275, 0.2895, 0.6499, 0.6224]),
        Some([0.1982, 0.5441, 0.6576, 0.2971, 0.6577, 0.6303]),
        Some([0.2175, 0.5430, 0.6590, 0.2759, 0.6509, 0.6294]),
        Some([0.2094, 0.5600, 0.6662, 0.3287, 0.6649, 0.6505]),
        Some([0.2003, 0.5233, 0.6352, 0.2780, 0.6509, 0.6110]),
    ]),
    ("yeast", [
        Some([0.1974, 0.5062, 0.5777, 0.1958, 0.6374, 0.3926]),
        Some([0.1975, 0.5080, 0.5795, 0.1959, 0.6380, 0.3931]),
        Some([0.2082, 0.5346, 0.6652, 0.1766, 0.6567, 0.4261]),
        Some([0.2143, 0.5280, 0.6375, 0.2452, 0.6415, 0.4322]),
        Some([0.1950, 0.5105, 0.5823, 0.1780, 0.6422, 0.3701]),
    ]),
];

/// Prints the tables.
pub fn tables(data: &Path) -> Result<()> {
    let names = METRICS.map(|m| m.0).join(" | ");
    println!("\n| data set | method | {names} | f of means | recall |");
    println!("|---|---|{}", "---|".repeat(METRICS.len() + 2));
    let mut empty = Vec::new();
    for (name, published) in PUBLISHED {
        let batches = read_set(data, name, name)?;
        let dataset = Dataset::try_new(name, &batches, "labels")?;
        let outcomes = run(&dataset, &METHODS.map(|m| format!("{m}(k=1..30)")))?;
        for (method, published) in METHODS.iter().zip(published) {
            let range = format!("{method}(k=1..30)");
            let Some(mean) = outcomes.iter().find(|o| o.spec == range) else { continue };
            if let Some(values) = published {
                let values = values.map(|v| format!("{v:.4}"));
                println!("| {name} | paper, {method} | {} | | |", values.join(" | "));
            }
            let (precision, recall) = (value(mean, "precision"), value(mean, "recall"));
            let both = 2.0 * precision * recall / (precision + recall);
            let ours = METRICS.map(|(theirs, ours)| {
                let value = value(mean, ours);
                let value = if theirs == "hamming_loss" { 1.0 - value } else { value };
                format!("{value:.4}")
            });
            let ours = ours.join(" | ");
            println!("| {name} | {method} | {ours} | {both:.4} | {recall:.4} |");
        }
        let share = |k: usize| {
            let spec = format!("brknn(k={k})");
            outcomes.iter().find(|o| o.spec == spec).map_or(f64::NAN, |o| value(o, "empty_share"))
        };
        empty.push((name, (1..=30).map(share).collect::<Vec<f64>>()));
    }
    println!("\nFigure 1: share of rows for which brknn predicts nothing\n");
    println!("| k | {} |", empty.iter().map(|e| *e.0).collect::<Vec<_>>().join(" | "));
    println!("|---|{}", "---|".repeat(empty.len()));
    for k in 1..=30 {
        let line = empty.iter().map(|e| format!("{:.3}", e.1[k - 1])).collect::<Vec<_>>();
        println!("| {k} | {} |", line.join(" | "));
    }
    Ok(())
}

fn value(outcome: &Outcome, metric: &str) -> f64 {
    outcome.metrics.iter().find(|m| m.0 == metric).map_or(f64::NAN, |m| m.1.mean)
}
