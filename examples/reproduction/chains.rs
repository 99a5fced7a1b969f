//! Binary relevance and chains on the data sets of three papers.

use crate::{line, read_set};
use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::Float64Type;
use arrow::record_batch::RecordBatch;
use labelflow::Result;
use labelflow::data::Discretiser;
use labelflow::evaluate::{Dataset, Experiment, Outcome, Protocol, Stratify};
use labelflow::models::Registry;
use std::path::Path;
use std::sync::Arc;

/// Published figures of one method on one data set, in the order of the metrics of its table.
type Row = (&'static str, &'static [f64]);

/// One table of a paper.
struct Table {
    title: &'static str,
    metrics: &'static [&'static str],
    /// The name of a method in the paper, and the spec that stands for it.
    methods: &'static [(&'static str, &'static str)],
    stratify: Stratify,
    /// Whether the paper cuts numbers into quartiles first.
    quartiles: bool,
    sets: &'static [Set],
}

struct Set {
    directory: &'static str,
    file: &'static str,
    folds: usize,
    /// In the order of the methods of the table; empty where the paper gives none.
    published: &'static [Row],
}

const fn set(directory: &'static str, folds: usize, published: &'static [Row]) -> Set {
    Set { directory, file: directory, folds, published }
}

/// Tables of the three papers. A number of folds of 1 is a hold-out of a third.
#[rustfmt::skip]
const TABLES: &[Table] = &[
    Table {
        title: "PACC-LDF, Table 4",
        metrics: &["exact_match", "jaccard", "macro_f1", "micro_f1"],
        methods: &[("BR", "br"), ("CC", "cc")],
        stratify: Stratify::None,
        quartiles: false,
        sets: &[
            set("emotions", 5, &[("BR", &[0.239, 0.511, 0.636, 0.650]), ("CC", &[0.260, 0.516, 0.623, 0.633])]),
            set("scene", 5, &[("BR", &[0.466, 0.567, 0.652, 0.645]), ("CC", &[0.546, 0.608, 0.639, 0.631])]),
            set("yeast", 5, &[("BR", &[0.139, 0.512, 0.424, 0.642]), ("CC", &[0.194, 0.505, 0.404, 0.626])]),
            set("birds", 5, &[("BR", &[0.476, 0.576, 0.335, 0.441]), ("CC", &[0.476, 0.579, 0.341, 0.449])]),
            set("genbase", 5, &[("BR", &[0.949, 0.973, 0.725, 0.977]), ("CC", &[0.974, 0.986, 0.740, 0.989])]),
            set("medical", 5, &[("BR", &[0.580, 0.698, 0.372, 0.761]), ("CC", &[0.586, 0.672, 0.355, 0.750])]),
            set("enron", 5, &[("BR", &[0.089, 0.377, 0.216, 0.497]), ("CC", &[0.099, 0.380, 0.208, 0.497])]),
            set("langlog", 5, &[("BR", &[0.224, 0.315, 0.090, 0.272]), ("CC", &[0.237, 0.275, 0.055, 0.225])]),
            set("rcv1subset1-top944", 3, &[("BR", &[0.047, 0.243, 0.232, 0.344]), ("CC", &[0.111, 0.289, 0.240, 0.369])]),
            set("corel16k001", 3, &[("BR", &[0.006, 0.117, 0.093, 0.194]), ("CC", &[0.012, 0.093, 0.070, 0.142])]),
            set("bibtex", 3, &[("BR", &[0.110, 0.287, 0.297, 0.376]), ("CC", &[0.120, 0.299, 0.308, 0.385])]),
            set("corel5k", 3, &[("BR", &[0.003, 0.097, 0.045, 0.164]), ("CC", &[0.009, 0.116, 0.043, 0.178])]),
        ],
    },
    Table {
        title: "NaiBX, Tables 6 and 7",
        metrics: &["label_cardinality", "hamming_score", "exact_match", "jaccard", "precision", "recall"],
        methods: &[
            ("CC-SVM", "cc(base=svm(calibrate=none))"),
            ("ECC-SVM", "ecc(base=svm(calibrate=none), vote=set)"),
            ("CC-NBC", "cc(base=naive_bayes)"),
            ("ECC-NBC", "ecc(base=naive_bayes, vote=set)"),
        ],
        stratify: Stratify::None,
        quartiles: false,
        sets: &[
            set("yeast", 10, &[("CC-SVM", &[4.245, 0.785, 0.201, 0.529, 0.652, 0.660]), ("ECC-SVM", &[3.949, 0.799, 0.203, 0.536, 0.680, 0.633]), ("CC-NBC", &[6.165, 0.706, 0.096, 0.476, 0.545, 0.744]), ("ECC-NBC", &[5.122, 0.701, 0.105, 0.428, 0.505, 0.610])]),
            set("scene", 10, &[("CC-SVM", &[1.091, 0.892, 0.634, 0.688, 0.711, 0.720]), ("ECC-SVM", &[1.013, 0.906, 0.642, 0.694, 0.752, 0.710]), ("CC-NBC", &[2.174, 0.762, 0.172, 0.454, 0.461, 0.854]), ("ECC-NBC", &[2.160, 0.765, 0.178, 0.460, 0.422, 0.848])]),
            set("emotions", 10, &[("CC-SVM", &[2.066, 0.780, 0.283, 0.550, 0.633, 0.702]), ("ECC-SVM", &[1.934, 0.806, 0.320, 0.578, 0.682, 0.706]), ("CC-NBC", &[2.551, 0.739, 0.211, 0.521, 0.565, 0.766]), ("ECC-NBC", &[2.447, 0.755, 0.233, 0.538, 0.581, 0.761])]),
            Set { directory: "emotions", file: "music-meka", folds: 10, published: &[("CC-SVM", &[2.059, 0.786, 0.304, 0.564, 0.650, 0.715]), ("ECC-SVM", &[1.895, 0.807, 0.326, 0.577, 0.687, 0.696]), ("CC-NBC", &[2.544, 0.746, 0.215, 0.527, 0.570, 0.774]), ("ECC-NBC", &[2.448, 0.754, 0.240, 0.538, 0.580, 0.760])] },
            set("cal500", 10, &[("CC-SVM", &[23.906, 0.823, 0.000, 0.244, 0.412, 0.375]), ("ECC-SVM", &[13.572, 0.855, 0.000, 0.228, 0.531, 0.277]), ("CC-NBC", &[78.195, 0.571, 0.000, 0.180, 0.209, 0.562]), ("ECC-NBC", &[56.779, 0.690, 0.000, 0.222, 0.254, 0.554])]),
            set("enron", 10, &[("CC-SVM", &[3.220, 0.939, 0.132, 0.409, 0.521, 0.497]), ("ECC-SVM", &[2.958, 0.947, 0.143, 0.448, 0.600, 0.525]), ("CC-NBC", &[11.627, 0.796, 0.004, 0.228, 0.181, 0.622]), ("ECC-NBC", &[10.425, 0.816, 0.004, 0.243, 0.195, 0.601])]),
            set("langlog", 10, &[("CC-SVM", &[0.692, 0.981, 0.237, 0.288, 0.321, 0.188]), ("ECC-SVM", &[0.356, 0.984, 0.234, 0.265, 0.473, 0.143]), ("CC-NBC", &[25.403, 0.672, 0.142, 0.180, 0.039, 0.850])]),
            set("slashdot", 10, &[("CC-SVM", &[1.139, 0.951, 0.413, 0.499, 0.541, 0.522]), ("ECC-SVM", &[0.941, 0.957, 0.411, 0.489, 0.629, 0.502]), ("CC-NBC", &[1.576, 0.936, 0.271, 0.422, 0.426, 0.568]), ("ECC-NBC", &[1.494, 0.940, 0.281, 0.431, 0.451, 0.570])]),
            set("bibtex", 1, &[("CC-SVM", &[1.724, 0.985, 0.161, 0.328, 0.488, 0.362]), ("ECC-SVM", &[2.465, 0.982, 0.148, 0.348, 0.426, 0.451]), ("CC-NBC", &[18.830, 0.882, 0.074, 0.190, 0.084, 0.680])]),
        ],
    },
    Table {
        title: "mNB and mFAN, Tables 3 and 4",
        metrics: &["exact_match", "hamming_score"],
        methods: &[("BR-NB", "br(base=naive_bayes)"), ("ECC-NB", "ecc(base=naive_bayes, chains=20, vote=set)")],
        stratify: Stratify::Rarest,
        quartiles: true,
        sets: &[
            set("cal500", 5, &[("BR-NB", &[0.00, 0.63]), ("ECC-NB", &[0.00, 0.59])]),
            set("emotions", 5, &[("BR-NB", &[0.25, 0.75]), ("ECC-NB", &[0.25, 0.76])]),
            set("enron", 5, &[("BR-NB", &[0.02, 0.87]), ("ECC-NB", &[0.02, 0.77])]),
            set("genbase", 5, &[("BR-NB", &[0.77, 0.98]), ("ECC-NB", &[0.76, 0.99])]),
            set("medical", 5, &[("BR-NB", &[0.18, 0.69]), ("ECC-NB", &[0.20, 0.98])]),
            set("scene", 5, &[("BR-NB", &[0.29, 0.82]), ("ECC-NB", &[0.30, 0.83])]),
            set("slashdot", 5, &[("BR-NB", &[0.41, 0.86]), ("ECC-NB", &[0.44, 0.95])]),
            set("yeast", 5, &[("BR-NB", &[0.11, 0.75]), ("ECC-NB", &[0.13, 0.76])]),
        ],
    },
];

/// Prints the tables, of the data sets named only (all when none is).
pub fn tables(data: &Path, only: &[String]) -> Result<()> {
    let registry = Registry::default();
    for table in TABLES {
        println!("\n{}\n", table.title);
        println!("| data set | protocol | method | {} |", table.metrics.join(" | "));
        println!("|---|---|---|{}", "---|".repeat(table.metrics.len()));
        let wanted = |s: &&Set| only.is_empty() || only.iter().any(|o| o == s.file);
        for set in table.sets.iter().filter(wanted) {
            let batches = read_set(data, set.directory, set.file)?;
            let dataset = Dataset::try_new(set.file, &batches, "labels")?;
            let protocol = match set.folds {
                1 => Protocol::HoldOut { train: 0.66, repeats: 1 },
                folds => Protocol::folds(folds),
            };
            let (clock, watch) = (&|| 0.0, &|| ());
            let stratify = table.stratify;
            let experiment =
                Experiment { registry: &registry, protocol, stratify, seed: 1, clock, watch };
            let cut = if table.quartiles { quartiles(&batches)? } else { None };
            let cut = cut.map(|b| Dataset::try_new(set.file, &b, "labels")).transpose()?;
            for (name, spec) in table.methods {
                let published = set.published.iter().find(|row| row.0 == *name);
                let Some((_, figures)) = published else { continue };
                let figures: Vec<String> = figures.iter().map(|v| format!("{v:.3}")).collect();
                line(set.file, &protocol, &format!("paper, {name}"), &figures);
                let run = |dataset: &Dataset, method: &str| -> Result<()> {
                    let outcome = &experiment.run(dataset, &[(*spec).to_string()])?[0];
                    line(set.file, &protocol, method, &found(outcome, table.metrics));
                    Ok(())
                };
                run(&dataset, &format!("`{spec}`"))?;
                if let Some(cut) = &cut {
                    run(cut, &format!("`{spec}`, quartiles"))?;
                }
            }
        }
    }
    Ok(())
}

/// The rows with every column of numbers cut into quartiles, which are categories; `None` when there
/// is no such column. The cuts are those of all rows: no label is looked at.
fn quartiles(batches: &[RecordBatch]) -> Result<Option<Vec<RecordBatch>>> {
    let Some(first) = batches.first() else { return Ok(None) };
    let batch = concat_batches(&first.schema(), batches)?;
    let mut columns = Vec::new();
    let mut found = false;
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let cut: ArrayRef = match column.as_primitive_opt::<Float64Type>() {
            None => Arc::clone(column),
            Some(numbers) => {
                found = true;
                let cuts = Discretiser::try_quantiles(numbers.values(), 4)?;
                let bin = |x: Option<f64>| x.and_then(|x| cuts.bin(x)).map(|b| b.to_string());
                Arc::new(numbers.iter().map(bin).collect::<StringArray>())
            }
        };
        columns.push((field.name().clone(), cut));
    }
    Ok(if found { Some(vec![RecordBatch::try_from_iter(columns)?]) } else { None })
}

fn found(outcome: &Outcome, metrics: &[&str]) -> Vec<String> {
    let value = |name: &&str| {
        let metric = outcome.metrics.iter().find(|(n, _)| n == name);
        metric.map_or_else(String::new, |(_, v)| format!("{:.3} ± {:.3}", v.mean, v.std))
    };
    metrics.iter().map(value).collect()
}
