//! `evaluate` and `describe` from end to end.

use crate::program::{Workplace, split};
use serde_json::Value;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// The means of all metrics of one evaluation.
fn means(place: &Workplace, arguments: &str) -> Vec<(String, f64)> {
    let lines = place.json(&split(&format!("evaluate t.parquet --format json {arguments}")));
    let metric = |line: &Value| line["metric"].as_str().unwrap().to_string();
    let timed = |line: &Value| metric(line).ends_with("_seconds");
    lines.iter().filter(|l| !timed(l)).map(|l| (metric(l), number(&l["mean"]))).collect()
}

#[test]
fn repeated_folds_have_so_many_rounds() {
    let place = Workplace::with_data();
    let lines = place.json(&split("evaluate t.parquet --format json --folds 4x3"));
    assert!(lines.iter().all(|line| line["folds"] == 12), "{lines:?}");
    let table = place.ok(&split("evaluate t.parquet --folds 4x3"));
    assert!(table.starts_with("t: 200 rows, 5 labels, 4 folds x 3, seed 1\n"), "{table}");
    // Done once they are the four folds alone; the others divide the rows anew.
    assert_eq!(means(&place, "--folds 4x1"), means(&place, "--folds 4"));
    assert_ne!(means(&place, "--folds 4x3"), means(&place, "--folds 4"));
    assert_ne!(means(&place, "--folds 4x3"), means(&place, "--folds 4x2"));
}

/// Specs are printed as they were typed, whatever options add to them.
#[test]
fn counts_do_not_rename_algorithms() {
    let place = Workplace::with_data();
    let names = |arguments: &[&str]| {
        let lines = place.json(
            &[&["evaluate", "t.parquet", "--folds", "2", "--format", "json"], arguments].concat(),
        );
        let mut names: Vec<String> =
            lines.iter().map(|l| l["algorithm"].as_str().unwrap().to_string()).collect();
        names.dedup();
        names
    };
    let typed = [
        "--algorithm",
        "naibx( smoothing=2 )",
        "--algorithm",
        "naibx(sets=1..2)",
        "--algorithm",
        "br(base=naive_bayes(smoothing=1..2))",
    ];
    let expected = names(&typed);
    let nested = "br(base=naive_bayes(smoothing=1))".to_string();
    assert!(expected.contains(&nested), "{expected:?}");
    assert!(expected.contains(&"naibx( smoothing=2 )".to_string()), "{expected:?}");
    place.rows("COPY (SELECT id % 3 AS w, f0, labels FROM 't.parquet') TO 'w.parquet'");
    std::fs::rename(place.path("w.parquet"), place.path("t.parquet")).unwrap();
    assert_eq!(names(&[&typed[..], &["--counts", "w"]].concat()), expected);
}

#[test]
fn strata_change_the_folds_and_can_be_repeated() {
    let place = Workplace::with_data();
    let [none, iterative, rarest] = ["none", "iterative", "rarest"]
        .map(|strata| means(&place, &format!("--folds 5 --stratify {strata}")));
    assert_eq!(none, means(&place, "--folds 5"));
    assert_ne!(none, iterative);
    assert_ne!(none, rarest);
    assert_eq!(iterative, means(&place, "--folds 5 --stratify iterative"));
    assert_ne!(iterative, means(&place, "--folds 5 --stratify iterative --seed 9"));
    assert_ne!(means(&place, "--split 0.6 --stratify rarest"), means(&place, "--split 0.6"));
}

/// On what it has learned from, `evaluate` gives what the SQL functions give.
#[test]
fn evaluate_agrees_with_sql() {
    let place = Workplace::with_data();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    let found = means(&place, "--test t.parquet");
    let sql_name = |name: &str| match name {
        "jaccard" => "jaccard_score".to_string(),
        "precision" | "recall" | "f1" => format!("example_{name}"),
        name => name.to_string(),
    };
    let ranks = ["ranking_loss", "one_error", "coverage", "average_precision", "ndcg_at_5"];
    let columns: Vec<String> = found
        .iter()
        .map(|(name, _)| {
            let ranked = ranks.contains(&name.as_str()) || name.starts_with("precision_at");
            format!("{}(labels, {}, 5)", sql_name(name), if ranked { "s" } else { "p" })
        })
        .collect();
    let rows = place.rows(&format!(
        "SELECT {} FROM (SELECT labels, predict_labels('m.labelflow', f0, f1, f2, f3) AS p, \
         score_labels('m.labelflow', f0, f1, f2, f3) AS s FROM 't.parquet')",
        columns.join(", ")
    ));
    let values: Vec<f64> = rows[0].split(',').map(|v| v.parse().unwrap()).collect();
    assert_eq!((values.len(), found.len()), (22, 22));
    for ((name, mean), value) in found.iter().zip(values) {
        assert!((mean - value).abs() < 1e-12, "{name}: {mean} and {value}");
    }
}

#[test]
fn reports_list_every_label() {
    let place = Workplace::with_data();
    let lines = place.json(&split("evaluate t.parquet --folds 4 --report --format json"));
    let names: Vec<&str> = lines.iter().map(|l| l["label"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 5);
    assert!(names.is_sorted());
    let micro = means(&place, "--folds 4").iter().find(|m| m.0 == "micro_f1").unwrap().1;
    let mut total = [0.0; 3];
    for line in &lines {
        let of = |name: &str| number(&line[name]);
        let (tp, fp, missed) = (of("true_positive"), of("false_positive"), of("false_negative"));
        assert_eq!(of("support"), tp + missed, "{line}");
        assert!((of("precision") - tp / (tp + fp)).abs() < 1e-12, "{line}");
        assert!((of("recall") - tp / (tp + missed)).abs() < 1e-12, "{line}");
        assert!((of("f1") - 2.0 * tp / (2.0 * tp + fp + missed)).abs() < 1e-12, "{line}");
        [tp, fp, missed].iter().zip(&mut total).for_each(|(n, sum)| *sum += n);
    }
    // Every row is tested once: support is that of the file.
    let counts = place.rows(
        "SELECT count(*) FROM (SELECT unnest(labels) AS y FROM 't.parquet') GROUP BY y ORDER BY y",
    );
    let support: Vec<String> = lines.iter().map(|l| l["support"].to_string()).collect();
    assert_eq!(support, counts);
    // Pooled over all folds it is near the mean over folds.
    let pooled = 2.0 * total[0] / (2.0 * total[0] + total[1] + total[2]);
    assert!((pooled - micro).abs() < 0.02, "{pooled} {micro}");

    let table = place.ok(&split("evaluate t.parquet --folds 4 --report"));
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("t: 200 rows, 5 labels, 4 folds, seed 1, naibx"));
    let head: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["label", "support", "tp", "fp", "fn", "precision", "recall", "f1"]);
    assert_eq!(lines.count(), 5);
    let csv = place.ok(&split("evaluate t.parquet --folds 4 --report --format csv"));
    assert!(csv.starts_with("dataset,algorithm,label,support,"), "{csv}");
    assert_eq!(csv.lines().count(), 6);
}

#[test]
fn describe_counts_what_sql_counts() {
    let place = Workplace::with_data();
    let d = &place.json(&split("describe t.parquet --format json"))[0];
    assert_eq!(
        (&d["dataset"], &d["rows"], &d["unlabelled"]),
        (&"t".into(), &200.into(), &0.into())
    );
    let kinds = serde_json::json!({"numeric": 4, "binary": 0, "count": 0, "category": 0});
    assert_eq!((&d["features"], &d["labels"]), (&kinds, &5.into()));
    let rows = place.rows(
        "SELECT avg(cardinality(labels)), count(DISTINCT array_sort(labels)), max(cardinality(labels)), \
         count(*) FILTER (WHERE cardinality(labels) = 0) FROM 't.parquet'",
    );
    let values: Vec<f64> = rows[0].split(',').map(|v| v.parse().unwrap()).collect();
    let cardinality = number(&d["cardinality"]);
    assert!((cardinality - values[0]).abs() < 1e-12);
    assert!((number(&d["density"]) - cardinality / 5.0).abs() < 1e-12);
    assert_eq!(["distinct_sets", "largest_set", "empty_sets"].map(|n| number(&d[n])), values[1..]);
    let most = place.rows(
        "SELECT y, count(*) AS n FROM (SELECT unnest(labels) AS y FROM 't.parquet') GROUP BY y ORDER BY n DESC, y",
    );
    let found = d["most_labels"].as_array().unwrap().iter();
    let found: Vec<String> =
        found.map(|l| format!("{},{}", l["of"].as_str().unwrap(), l["rows"])).collect();
    assert_eq!(found, most);
    let counts: Vec<f64> =
        most.iter().map(|l| l.split(',').nth(1).unwrap().parse().unwrap()).collect();
    let mean = counts.iter().map(|n| counts[0] / n).sum::<f64>() / 5.0;
    assert!((number(&d["mean_imbalance"]) - mean).abs() < 1e-12);

    let table = place.ok(&split("describe t.parquet --most 2"));
    assert!(table.contains("\nmost frequent label"), "{table}");
    assert_eq!(table.lines().filter(|l| l.starts_with("label_0")).count(), 6, "{table}");
    let csv = place.ok(&split("describe t.parquet t.parquet --format csv"));
    assert_eq!(csv.lines().count(), 3);
    assert!(csv.starts_with("dataset,rows,unlabelled,features,"), "{csv}");
}

#[test]
fn describe_knows_declared_labels_and_unlabelled_rows() {
    let place = Workplace::new();
    place.write(
        "a.arff",
        "@relation 'a: -C 3'\n@attribute x {0,1}\n@attribute y {0,1}\n@attribute never {0,1}\n\
         @attribute n numeric\n@attribute f {0,1}\n@attribute c {red,blue}\n@data\n\
         1,0,0,1.5,1,red\n1,1,0,2.5,0,blue\n0,0,0,0.5,0,red\n",
    );
    let d = &place.json(&split("describe a.arff --format json"))[0];
    assert_eq!((&d["labels"], &d["labels_seen"]), (&3.into(), &2.into()));
    let kinds = serde_json::json!({"numeric": 1, "binary": 1, "count": 0, "category": 1});
    assert_eq!((&d["features"], &d["mean_imbalance"]), (&kinds, &1.5.into()));
    place.rows(
        "COPY (SELECT * FROM (VALUES (1.0, ['a']), (2.0, NULL), (3.0, [])) AS v(x, labels)) TO 'u.parquet'",
    );
    let d = &place.json(&split("describe u.parquet --format json"))[0];
    assert_eq!((&d["rows"], &d["unlabelled"], &d["empty_sets"]), (&2.into(), &1.into(), &1.into()));
}

/// What `docs/reproduction.md` says of sizes that are known, and of the better predictor of them.
#[test]
fn sizes_that_are_better_known_give_better_sets() {
    let Some(data) = std::env::var_os("LABELFLOW_DATA") else {
        println!("skipped: LABELFLOW_DATA is not set");
        return;
    };
    let data = std::path::absolute(data).unwrap();
    let place = Workplace::new();
    let mut gains = 0;
    for name in ["emotions", "scene", "medical"] {
        let file = data.join(name).join(format!("{name}.arff")).display().to_string();
        let specs = ["naibx", "naibx(size=labels)", "naibx(size=given)"];
        let options = ["evaluate", &file, "--folds", "10", "--seed", "1", "--format", "json"];
        let algorithms = specs.iter().flat_map(|spec| ["--algorithm", *spec]);
        let lines = place.json(&options.into_iter().chain(algorithms).collect::<Vec<_>>());
        let mean = |spec: &str, metric: &str| {
            let line = lines.iter().find(|l| l["algorithm"] == spec && l["metric"] == metric);
            number(&line.unwrap()["mean"])
        };
        let [predicted, labels, given] = specs.map(|spec| mean(spec, "exact_match"));
        assert!(given > predicted, "{name}: exact match {given} with the true size, {predicted}");
        let jaccard = (mean(specs[1], "jaccard"), mean(specs[0], "jaccard"));
        gains += u32::from(labels > predicted || jaccard.0 > jaccard.1);
    }
    assert!(gains >= 2, "size=labels is better on {gains} of 3");
}
