//! Descriptions against figures by hand and against those of the literature.

use super::*;
use crate::data::declared_labels;
use crate::formats::{ArffReader, LabelSource};
use crate::models::{Registry, Trainer};
use crate::store::{from_bytes, to_bytes};
use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, ListBuilder, StringArray, StringBuilder, StructArray,
};
use std::path::PathBuf;
use std::sync::Arc;

fn registry() -> Registry {
    Registry::default().with(DESCRIBE)
}

fn lists(rows: &[Option<&[&str]>]) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    rows.iter().for_each(|row| lists.append_option(row.map(|r| r.iter().map(Some))));
    Arc::new(lists.finish())
}

fn table() -> (ArrayRef, ArrayRef) {
    let labels = lists(&[
        Some(&["b", "a"]),
        Some(&["a"]),
        Some(&[]),
        None,
        Some(&["c", "a", "b"]),
        Some(&["a", "b"]),
        Some(&[]),
    ]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("x", Arc::new(Float64Array::from(vec![1.0; 7]))),
        ("y", Arc::new(Float64Array::from(vec![2.0; 7]))),
        ("flag", Arc::new(BooleanArray::from(vec![true; 7]))),
        ("town", Arc::new(StringArray::from(vec!["oslo"; 7]))),
        (
            "words",
            lists(&[Some(&["u", "v"]), Some(&["u"]), None, Some(&["lost"]), None, None, None]),
        ),
    ];
    (labels, Arc::new(StructArray::try_from(columns).unwrap()))
}

fn described(parts: &[(ArrayRef, ArrayRef)]) -> Model {
    let mut whole = Trainer::try_new(&registry(), "describe").unwrap();
    for (labels, features) in parts {
        let mut trainer = Trainer::try_new(&registry(), "describe").unwrap();
        trainer.observe(labels, features).unwrap();
        whole.merge(&trainer.finish().unwrap()).unwrap();
    }
    whole.finish().unwrap()
}

#[test]
fn figures_by_hand() {
    let model = described(&[table()]);
    let found = Description::try_new(&model, 5, 2).unwrap();
    let of = |name: &str, rows| Frequent { of: name.to_string(), rows };
    let set = |names: &[&str], rows| Frequent {
        of: names.iter().map(|n| n.to_string()).collect::<Vec<_>>(),
        rows,
    };
    let pair = |a: &str, b: &str, rows| Frequent { of: [a.to_string(), b.to_string()], rows };
    // Label a in 4 rows, b in 3, c in 1: ratios 1, 4/3 and 4.
    let ratios = [1.0, 4.0 / 3.0, 4.0];
    let mean = ratios.iter().sum::<f64>() / 3.0;
    let variance = ratios.iter().map(|r| (r - mean) * (r - mean)).sum::<f64>() / 2.0;
    let expected = Description {
        rows: 6,
        features: [("numeric", 2), ("binary", 1), ("category", 1), ("count", 2)].into(),
        labels: 5,
        labels_seen: 3,
        cardinality: 8.0 / 6.0,
        density: 8.0 / 30.0,
        distinct_sets: 4,
        empty_sets: 2,
        largest_set: 3,
        mean_imbalance: mean,
        imbalance_variation: variance.sqrt() / mean,
        most_labels: vec![of("a", 4), of("b", 3)],
        pairs: vec![pair("a", "b", 3), pair("a", "c", 1)],
        sets: vec![set(&[], 2), set(&["a", "b"], 2)],
    };
    assert_eq!(found, expected);
}

#[test]
fn parts_and_bytes_describe_the_same() {
    let (labels, features) = table();
    let whole = Description::try_new(&described(&[table()]), 0, 9).unwrap();
    for cut in 1..7 {
        let part = |a: usize, n: usize| (labels.slice(a, n), features.slice(a, n));
        // Part one may hold the unlabelled row alone, which is no model.
        if cut == 4 {
            continue;
        }
        let (first, second) = (part(0, cut), part(cut, 7 - cut));
        let model = described(&[second, first]);
        assert_eq!(Description::try_new(&model, 0, 9).unwrap(), whole, "cut at {cut}");
        let back = from_bytes(&to_bytes(&model).unwrap(), &registry()).unwrap();
        assert_eq!(Description::try_new(&back, 0, 9).unwrap(), whole);
    }
    assert_eq!((whole.labels, whole.labels_seen), (3, 3));
}

#[test]
fn a_description_is_no_model() {
    let (labels, features) = table();
    let model = described(&[(labels.clone(), features.clone())]);
    let error = model.predict(&features).unwrap_err();
    assert_eq!(error.to_string(), "a description does not predict: fit a model");
    let mut trainer = Trainer::try_new(&registry(), "naibx").unwrap();
    trainer.observe(&labels, &features).unwrap();
    let error = Description::try_new(&trainer.finish().unwrap(), 0, 1).unwrap_err();
    assert_eq!(error.to_string(), "a model of `naibx` is no description");
}

/// Table 2 of Sun and Kudo (2019): rows, features, labels, cardinality, density, distinct sets, mean
/// IR and CVIR.
///
/// Where the table has other figures than a count over the files by another program, that count is
/// here: IR and CVIR of yeast (6.623 and 1.763 there), the sets of langlog (286), and sets, IR and
/// CVIR of rcv1subset1 (837, 59.333, 2.380) and corel16k001 (1791, 34.890, 0.815).
type Published = (&'static str, [usize; 3], [f64; 2], usize, [f64; 2]);

const PUBLISHED: &[Published] = &[
    ("emotions", [593, 72, 6], [1.869, 0.311], 27, [1.478, 0.180]),
    ("scene", [2407, 294, 6], [1.074, 0.179], 15, [1.254, 0.122]),
    ("yeast", [2417, 103, 14], [4.237, 0.303], 198, [7.197, 1.884]),
    ("birds", [645, 260, 19], [1.014, 0.053], 133, [5.407, 0.817]),
    ("genbase", [662, 1186, 27], [1.252, 0.046], 32, [37.315, 1.449]),
    ("medical", [978, 1449, 45], [1.245, 0.028], 94, [89.501, 1.148]),
    ("enron", [1702, 1001, 53], [3.378, 0.064], 753, [73.953, 1.960]),
    ("langlog", [1460, 1004, 75], [1.180, 0.016], 304, [39.267, 1.311]),
    ("rcv1subset1-top944", [6000, 944, 101], [2.880, 0.029], 1028, [54.492, 2.081]),
    ("corel16k001", [13766, 500, 153], [2.859, 0.019], 4803, [34.155, 0.809]),
    ("bibtex", [7395, 1836, 159], [2.402, 0.015], 2856, [12.498, 0.405]),
    ("corel5k", [5000, 499, 374], [3.522, 0.009], 3175, [189.568, 1.527]),
];

#[test]
fn figures_of_the_literature() {
    let Some(data) = std::env::var_os("LABELFLOW_DATA").map(PathBuf::from) else {
        println!("skipped: LABELFLOW_DATA is not set");
        return;
    };
    for (name, [rows, features, labels], [cardinality, density], distinct, [ir, cvir]) in PUBLISHED
    {
        let path = data.join(name).join(format!("{name}.arff"));
        let mut trainer = Trainer::try_new(&registry(), "describe").unwrap();
        let mut declared = 0;
        for batch in ArffReader::try_open(&path, &LabelSource::Auto).unwrap() {
            let batch = batch.unwrap();
            let schema = batch.schema();
            declared = declared_labels(schema.field_with_name("labels").unwrap()).unwrap().len();
            trainer.observe_batch(&batch, "labels").unwrap();
        }
        let found = Description::try_new(&trainer.finish().unwrap(), declared, 3).unwrap();
        let near = |a: f64, b: f64, what: &str| {
            assert!((a - b).abs() <= 0.0006, "{name}, {what}: {a}, published {b}");
        };
        assert_eq!(found.rows, *rows as u64, "{name}");
        assert_eq!(found.features.values().sum::<usize>(), *features, "{name}");
        assert_eq!(found.labels, *labels, "{name}");
        near(found.cardinality, *cardinality, "cardinality");
        near(found.density, *density, "density");
        assert_eq!(found.distinct_sets, *distinct, "{name}");
        near(found.mean_imbalance, *ir, "mean IR");
        near(found.imbalance_variation, *cvir, "CVIR");
    }
}
