//! Commands that work, from end to end.

use crate::program::{Workplace, split};
use crate::states::assert_same_state;
use labelflow::models::{Model, Registry};
use labelflow::store::read_model;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[test]
fn demo_shows_every_step() {
    let place = Workplace::new();
    let text = place.ok(&split("demo --rows 2000 --dir kept"));
    for step in [
        "$ labelflow generate --rows 2000 ",
        "$ labelflow fit --algorithm naibx --labels labels train.parquet -o tags.labelflow",
        "$ labelflow inspect tags.labelflow --most 3",
        "$ labelflow score --model tags.labelflow new.parquet -o scored.parquet",
        "hamming_score(labels, predicted_labels, 12)",
        "merge_models(m)",
        "$ labelflow evaluate new.parquet",
    ] {
        assert!(text.contains(step), "no `{step}` in:\n{text}");
    }
    let kept = ["all.parquet", "new.parquet", "scored.parquet", "tags.labelflow", "train.parquet"];
    assert_eq!(place.files("kept"), kept);
    let counts = place.rows(
        "SELECT (SELECT count(*) FROM 'kept/train.parquet') AS a, (SELECT count(*) FROM 'kept/scored.parquet') AS b",
    );
    assert_eq!(counts, ["1600,400"]);
}

#[test]
fn generate_fit_score_evaluate() {
    let place = Workplace::with_data();
    assert_eq!(
        place.rows("SELECT count(*), min(id), max(id), count(DISTINCT id) FROM 't.parquet'"),
        ["200,0,199,200"]
    );
    place.ok(&split("fit --algorithm naibx --labels labels t.parquet -o m.labelflow"));
    place.ok(&split("score --model m.labelflow t.parquet -o s.parquet --scores --sets 2"));
    // Input columns in their order, then those that were added; rows in their order.
    let schema = place.json(&["sql", "DESCRIBE 's.parquet'", "--format", "json"]);
    let names: Vec<&str> = schema.iter().map(|c| c["column_name"].as_str().unwrap()).collect();
    let added = ["predicted_labels", "label_scores", "label_sets"];
    assert_eq!(names, [&["id", "f0", "f1", "f2", "f3", "labels"][..], &added].concat());
    let ids: Vec<String> = (0..200).map(|id| id.to_string()).collect();
    assert_eq!(place.rows("SELECT id FROM 's.parquet'"), ids);
    let same = "SELECT count(*) FROM 't.parquet' AS t JOIN 's.parquet' AS s ON t.id = s.id \
         WHERE t.f0 = s.f0 AND t.f3 = s.f3 AND t.labels = s.labels \
         AND s.predicted_labels = predict_labels('m.labelflow', s.f0, s.f1, s.f2, s.f3) \
         AND s.label_scores = score_labels('m.labelflow', s.f0, s.f1, s.f2, s.f3)";
    assert_eq!(place.rows(same), ["200"]);
    place.ok(&split("score --model m.labelflow t.parquet -o top.parquet --top 2"));
    assert_eq!(
        place.rows("SELECT count(*) FROM 'top.parquet' WHERE array_length(predicted_labels) = 2"),
        ["200"]
    );
    let jaccard =
        &place.rows("SELECT jaccard_score(labels, predicted_labels) > 0.5 FROM 's.parquet'")[0];
    assert_eq!(jaccard, "true");
}

#[test]
fn generate_is_repeatable() {
    let place = Workplace::with_data();
    place.ok(&split("generate --rows 200 --features 4 --labels 5 --seed 3 again.parquet"));
    assert!(place.bytes("t.parquet") == place.bytes("again.parquet"));
    place.ok(&split("generate --rows 200 --features 4 --labels 5 --seed 4 other.parquet"));
    assert!(place.bytes("t.parquet") != place.bytes("other.parquet"));
}

#[test]
fn inspect_tells_of_the_file_itself() {
    let place = Workplace::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (version, bytes, digest) in
        [("1", "23122", Some("70928615244c1674d96e52a245cd84d9")), ("2", "20050", None)]
    {
        let name = format!("naibx-v{version}.labelflow");
        std::fs::copy(golden.join(&name), place.path(&name)).unwrap();
        let text = place.ok(&["inspect", &name]);
        let told = |what: &str| {
            let mut lines = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
            lines.find(|words| words.first() == Some(&what)).map(|words| words[1].to_string())
        };
        let (version, bytes) = (Some(version.to_string()), Some(bytes.to_string()));
        assert_eq!((told("version"), told("bytes")), (version, bytes), "{text}");
        let sql = format!("SELECT model_info('{name}')['digest']");
        assert_eq!(told("digest"), place.rows(&sql).pop(), "{text}");
        assert!(digest.is_none_or(|d| told("digest").is_some_and(|t| t == d)), "{text}");
    }
}

#[test]
fn inspect_says_when_a_limit_of_steps_was_reached() {
    let place = Workplace::with_data();
    let inspected = |spec: &str| {
        place.ok(&[
            "fit",
            "--algorithm",
            spec,
            "--labels",
            "labels",
            "t.parquet",
            "-o",
            "m.labelflow",
        ]);
        place.ok(&["inspect", "m.labelflow"])
    };
    let text = inspected("br(base=logistic(max_steps=1))");
    assert!(text.contains("note: 5 of 5 classifiers stopped before they converged"), "{text}");
    assert!(text.contains("after 1 steps") && text.contains("raise max_steps"), "{text}");
    assert!(!inspected("br").contains("note:"));
}

fn model(place: &Workplace, name: &str) -> Model {
    read_model(&place.path(name), &Registry::default()).unwrap()
}

#[test]
fn halves_merge_to_the_whole() {
    let place = Workplace::with_data();
    place.rows("COPY (SELECT * FROM 't.parquet' WHERE id < 90) TO 'a.parquet'");
    place.rows("COPY (SELECT * FROM 't.parquet' WHERE id >= 90) TO 'b.parquet'");
    for name in ["t", "a", "b"] {
        let (input, output) = (format!("{name}.parquet"), format!("{name}.labelflow"));
        place.ok(&["fit", &input, "-o", &output]);
    }
    place.ok(&split("merge a.labelflow b.labelflow -o merged.labelflow"));
    place.ok(&split("merge b.labelflow a.labelflow -o swapped.labelflow"));
    let whole = model(&place, "t.labelflow");
    assert_eq!(whole.rows(), 200);
    assert_same_state(&model(&place, "merged.labelflow"), &whole, "merged");
    assert_same_state(&model(&place, "swapped.labelflow"), &whole, "swapped");
    let same = "SELECT count(*) FROM 't.parquet' WHERE \
         predict_labels('t.labelflow', f0, f1, f2, f3) = predict_labels('merged.labelflow', f0, f1, f2, f3)";
    assert_eq!(place.rows(same), ["200"]);
}

#[test]
fn models_that_forgot_merge_only_where_that_means_something() {
    let place = Workplace::with_data();
    let learn = |options: &str, name: &str| {
        place.ok(&split(&format!(
            "stream --algorithm naibx --learn-only {options} t.parquet --save {name}.labelflow"
        )));
    };
    learn("--half-life 50", "rows");
    learn("--half-life 50 --time id", "time");
    learn("", "never");
    for (a, b) in [("rows", "rows"), ("rows", "never"), ("time", "never")] {
        let command = format!("merge {a}.labelflow {b}.labelflow -o merged.labelflow");
        let (code, text) = place.failure(&split(&command));
        assert!(code == 2 && text.contains("cannot be merged"), "{text}");
    }
    place.ok(&split("merge time.labelflow time.labelflow -o merged.labelflow"));
    let shown = place.ok(&split("inspect merged.labelflow"));
    assert!(shown.contains("note: weights halve every 50 of event time"), "{shown}");
}

#[test]
fn threads_do_not_matter() {
    let place = Workplace::new();
    // Three row groups: each is a part for a thread.
    place.ok(&split("generate --rows 140000 --features 4 --labels 5 --seed 3 t.parquet"));
    let parts = place.ok(&["sql", "EXPLAIN SELECT * FROM 't.parquet'", "--threads", "4"]);
    assert!(parts.contains("file_groups={4 groups"), "{parts}");
    place.ok(&split("fit t.parquet -o one.labelflow --threads 1"));
    place.ok(&split("fit t.parquet -o four.labelflow --threads 4"));
    let (one, four) = (model(&place, "one.labelflow"), model(&place, "four.labelflow"));
    assert_same_state(&four, &one, "four threads");
    place.ok(&split("score --model one.labelflow t.parquet -o one.parquet --threads 1"));
    place.ok(&split("score --model one.labelflow t.parquet -o four.parquet --threads 4"));
    let same = "SELECT count(*) FROM 'one.parquet' AS a JOIN 'four.parquet' AS b ON a.id = b.id \
         WHERE a.predicted_labels = b.predicted_labels";
    assert_eq!(place.rows(same), ["140000"]);
    let one = place.json(&split("describe t.parquet --format json --threads 1"));
    assert_eq!(place.json(&split("describe t.parquet --format json --threads 4")), one);
}

#[test]
fn columns_are_chosen_by_name() {
    let place = Workplace::with_data();
    let features = |arguments: &str| {
        place.ok(&split(&format!("fit t.parquet -o m.labelflow {arguments}")));
        place.rows("SELECT model_info('m.labelflow')['features']")[0].clone()
    };
    assert_eq!(features(""), "f0;f1;f2;f3");
    assert_eq!(features("--exclude f1 --exclude id"), "f0;f2;f3");
    assert_eq!(features("--features f* --exclude *3"), "f0;f1;f2");
    assert_eq!(features("--features id --features f0"), "f0;id");
}

const METRICS: [&str; 22] = [
    "hamming_score",
    "exact_match",
    "jaccard",
    "precision",
    "recall",
    "f1",
    "micro_precision",
    "micro_recall",
    "micro_f1",
    "macro_precision",
    "macro_recall",
    "macro_f1",
    "label_cardinality",
    "empty_share",
    "ranking_loss",
    "one_error",
    "coverage",
    "average_precision",
    "precision_at_1",
    "precision_at_3",
    "precision_at_5",
    "ndcg_at_5",
];

#[test]
fn evaluate_prints_each_metric_once() {
    let place = Workplace::with_data();
    let specs = ["naibx", "naibx(sets=1..2)"];
    let arguments = ["evaluate", "t.parquet", "--folds", "3", "--seed", "7", "--format", "json"];
    let algorithms = specs.iter().flat_map(|spec| ["--algorithm", *spec]);
    let lines = place.json(&arguments.iter().copied().chain(algorithms).collect::<Vec<_>>());
    let fields: BTreeSet<&str> =
        ["dataset", "algorithm", "metric", "mean", "std", "folds", "seed"].into();
    let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in &lines {
        let object = line.as_object().unwrap();
        assert_eq!(object.keys().map(String::as_str).collect::<BTreeSet<_>>(), fields);
        assert_eq!(
            (&line["dataset"], &line["folds"], &line["seed"]),
            (&"t".into(), &3.into(), &7.into())
        );
        let mean = line["mean"].as_f64().unwrap();
        assert!(mean >= 0.0 && line["std"].as_f64().unwrap() >= 0.0, "{line}");
        let text = |name: &str| line[name].as_str().unwrap().to_string();
        seen.entry(text("algorithm")).or_default().push(text("metric"));
    }
    // A range stands under its own name and once for each value.
    let expected = ["naibx", "naibx(sets=1)", "naibx(sets=1..2)", "naibx(sets=2)"];
    assert_eq!(seen.keys().collect::<Vec<_>>(), expected);
    for (algorithm, metrics) in &seen {
        for wanted in METRICS.iter().chain(&["fit_seconds", "predict_seconds"]) {
            let count = metrics.iter().filter(|m| m == wanted).count();
            assert_eq!(count, 1, "{wanted} of {algorithm}");
        }
    }
    let value = |algorithm: &str, metric: &str| {
        let line = lines.iter().find(|l| l["algorithm"] == algorithm && l["metric"] == metric);
        line.unwrap()["mean"].as_f64().unwrap()
    };
    assert_eq!(value("naibx", "jaccard"), value("naibx(sets=1)", "jaccard"));
    let mean = (value("naibx(sets=1)", "jaccard") + value("naibx(sets=2)", "jaccard")) / 2.0;
    assert!((value("naibx(sets=1..2)", "jaccard") - mean).abs() < 1e-12);
}

#[test]
fn evaluate_is_repeatable_and_knows_its_protocols() {
    let place = Workplace::with_data();
    let jaccard = |arguments: &str| {
        let lines = place.json(&split(&format!("evaluate t.parquet --format json {arguments}")));
        let line = lines.into_iter().find(|l| l["metric"] == "jaccard").unwrap();
        (line["mean"].as_f64().unwrap(), line["folds"].as_u64().unwrap())
    };
    assert_eq!(jaccard("--folds 4"), jaccard("--folds 4 --seed 1"));
    assert_ne!(jaccard("--folds 4"), jaccard("--folds 4 --seed 2"));
    assert_eq!(jaccard("").1, 10);
    assert_eq!(jaccard("--split 0.66x5").1, 5);
    // Tested on what it has learned from: the same as fit, score and the SQL function.
    place.ok(&split("fit t.parquet -o m.labelflow"));
    let rows = place.rows(
        "SELECT jaccard_score(labels, predict_labels('m.labelflow', f0, f1, f2, f3)) FROM 't.parquet'",
    );
    let (mean, rounds) = jaccard("--test t.parquet");
    assert_eq!(rounds, 1);
    assert!((mean - rows[0].parse::<f64>().unwrap()).abs() < 1e-12, "{mean} {rows:?}");
    let table = place.ok(&split("evaluate t.parquet --folds 4"));
    assert!(table.starts_with("t: 200 rows, 5 labels, 4 folds, seed 1\n"), "{table}");
    for metric in METRICS {
        assert_eq!(table.lines().filter(|l| l.starts_with(&format!("{metric} "))).count(), 1);
    }
}

#[test]
fn sql_prints_table_csv_and_json() {
    let place = Workplace::with_data();
    let query =
        "SELECT * FROM (VALUES (1, 'x,y', ['a', 'b'], 0.5), (2, NULL, [], 2.0)) AS v(n, t, l, d)";
    assert_eq!(
        place.ok(&["sql", query]),
        "+---+-----+--------+-----+\n\
         | n | t   | l      | d   |\n\
         +---+-----+--------+-----+\n\
         | 1 | x,y | [a, b] | 0.5 |\n\
         | 2 |     | []     | 2.0 |\n\
         +---+-----+--------+-----+\n"
    );
    assert_eq!(
        place.ok(&["sql", query, "--format", "csv"]),
        "n,t,l,d\n1,\"x,y\",a;b,0.5\n2,,,2.0\n"
    );
    assert_eq!(
        place.ok(&["sql", query, "--format", "json"]),
        "{\"n\":1,\"t\":\"x,y\",\"l\":[\"a\",\"b\"],\"d\":0.5}\n\
         {\"n\":2,\"t\":null,\"l\":[],\"d\":2.0}\n"
    );
    // A model is told by its size, an empty result by its head.
    let model = place.rows("SELECT train_labels('naibx', labels, f0) FROM 't.parquet'");
    assert!(model[0].starts_with('<') && model[0].ends_with(" bytes>"), "{model:?}");
    assert_eq!(place.ok(&["sql", "SELECT 1 AS n WHERE false", "--format", "csv"]), "n\n");
    assert_eq!(place.ok(&["sql", "SELECT 1 AS n WHERE false", "--format", "json"]), "");
    // Names for files, scripts of several statements.
    place.write("q.sql", "CREATE VIEW v AS SELECT id FROM data; SELECT count(*) AS n FROM v;");
    let named = ["sql", "-f", "q.sql", "--table", "data=t.parquet", "--format", "csv"];
    assert_eq!(place.ok(&named), "n\n200\n");
}

#[test]
fn arff_is_imported_and_evaluated() {
    let place = Workplace::new();
    let rows = (0..40).map(|i| match i % 2 {
        0 => format!("{},{},red,1,0\n", i % 5, i % 3),
        _ => format!("{},{},blue,0,1\n", 20 + i % 5, i % 3),
    });
    let header = "@relation fruit\n@attribute size numeric\n@attribute noise numeric\n\
         @attribute colour {red,blue}\n@attribute apple {0,1}\n@attribute plum {0,1}\n@data\n";
    place.write("fruit.arff", header.to_string() + &rows.collect::<String>());
    place.write(
        "fruit.xml",
        "<labels xmlns=\"http://mulan.sourceforge.net/labels\">\
         <label name=\"apple\"></label><label name=\"plum\"></label></labels>",
    );
    place.ok(&split("import fruit.arff fruit.parquet"));
    assert_eq!(
        place.rows("SELECT size, noise, colour, labels FROM 'fruit.parquet' LIMIT 2"),
        ["0.0,0.0,red,apple", "21.0,1.0,blue,plum"]
    );
    let direct = place.rows("SELECT size, labels FROM 'fruit.arff'");
    assert_eq!(place.rows("SELECT size, labels FROM 'fruit.parquet'"), direct);
    // The list may lie elsewhere.
    std::fs::rename(place.path("fruit.xml"), place.path("other.xml")).unwrap();
    place.ok(&split("import fruit.arff --labels-xml other.xml again.parquet"));
    assert_eq!(place.rows("SELECT size, labels FROM 'again.parquet'"), direct);
    std::fs::rename(place.path("other.xml"), place.path("fruit.xml")).unwrap();
    for file in ["fruit.arff", "fruit.parquet"] {
        let lines = place.json(&[
            "evaluate",
            file,
            "--folds",
            "4",
            "--format",
            "json",
            "--exclude",
            "colour",
        ]);
        let line = lines.iter().find(|l| l["metric"] == "exact_match").unwrap();
        assert_eq!(
            (&line["dataset"], line["mean"].as_f64()),
            (&"fruit".into(), Some(1.0)),
            "{file}"
        );
    }
}

#[test]
fn texts_are_features_too() {
    let place = Workplace::new();
    place.rows(
        "COPY (SELECT value AS id, CASE WHEN value % 2 = 0 THEN 'red' ELSE 'blue' END AS colour, \
         CASE WHEN value % 2 = 0 THEN ['apple'] ELSE ['plum'] END AS labels \
         FROM generate_series(0, 19)) TO 'c.parquet'",
    );
    place.ok(&split("fit c.parquet -o c.labelflow"));
    place.ok(&split("score --model c.labelflow c.parquet -o s.parquet"));
    let right = place.rows("SELECT exact_match(labels, predicted_labels) FROM 's.parquet'");
    assert_eq!(right, ["1.0"]);
}

#[test]
fn outputs_have_the_format_of_their_extension() {
    let place = Workplace::with_data();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    place.ok(&split("score --model m.labelflow t.parquet -o s.parquet"));
    let wanted = place.rows("SELECT id, predicted_labels FROM 's.parquet'");
    for file in ["s.json", "s.arrow"] {
        place.ok(&["score", "--model", "m.labelflow", "t.parquet", "-o", file]);
        let rows = place.rows(&format!("SELECT id, predicted_labels FROM '{file}'"));
        assert_eq!(rows, wanted, "{file}");
    }
}

#[test]
fn json_has_every_column_in_every_row() {
    let place = Workplace::with_data();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    place.rows(
        "COPY (SELECT *, CASE WHEN id > 1 THEN id END AS late, CAST(NULL AS BIGINT) AS never \
         FROM 't.parquet' WHERE id < 4 ORDER BY id) TO 'n.parquet'",
    );
    place.ok(&split("score --model m.labelflow n.parquet -o n.jsonl"));
    place.ok(&split("import n.parquet i.jsonl"));
    for (file, added) in [("n.jsonl", 1), ("i.jsonl", 0)] {
        let text = String::from_utf8(place.bytes(file)).unwrap();
        let rows: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows.len(), 4, "{text}");
        for (id, row) in rows.iter().enumerate() {
            let late = if id > 1 { id.into() } else { serde_json::Value::Null };
            assert_eq!((&row["id"], row.get("late")), (&id.into(), Some(&late)), "{text}");
            assert_eq!(row.get("never"), Some(&serde_json::Value::Null), "{text}");
            assert_eq!(row.as_object().unwrap().len(), 8 + added, "{text}");
        }
    }
}

#[test]
fn files_are_added_to_a_directory_when_all_are_written() {
    let place = Workplace::with_data();
    let count = |from: &str| place.rows(&format!("SELECT count(*) FROM '{from}'"));
    let rows = count("t.parquet");
    place.rows("COPY (SELECT * FROM 't.parquet') TO 'days/' STORED AS PARQUET");
    assert_eq!(count("days/*.parquet"), rows);
    place.rows("COPY (SELECT * FROM 't.parquet') TO 'days/' STORED AS PARQUET");
    let twice: u64 = rows[0].parse::<u64>().unwrap() * 2;
    assert_eq!(count("days/*.parquet"), [twice.to_string()]);
    let before = (place.files("."), place.files("days"));
    // Fails in the last row, when most of the others were written.
    let failing =
        "COPY (SELECT id, 1 / (199 - id) AS x FROM 't.parquet') TO 'days/' STORED AS PARQUET";
    assert!(place.failure(&["sql", failing]).1.contains("ivide by zero"));
    assert_eq!((place.files("."), place.files("days")), before);
}

#[test]
fn help_names_every_command() {
    let place = Workplace::new();
    let help = place.ok(&["--help"]);
    for command in [
        "demo",
        "generate",
        "import",
        "fit",
        "score",
        "evaluate",
        "merge",
        "inspect",
        "sql",
        "algorithms",
    ] {
        assert!(help.contains(&format!("\n  {command} ")), "{command} in {help}");
        assert!(place.ok(&[command, "--help"]).contains("Usage: labelflow"), "{command}");
    }
    let algorithms = place.ok(&["algorithms"]);
    assert!(algorithms.contains("naibx"));
    // Base learners have parameters of their own, each once.
    let base = "\nbase=svm: linear support vector machine";
    assert_eq!(algorithms.matches(base).count(), 1, "{algorithms}");
    assert!(algorithms.contains("\n  calibrate  platt"), "{algorithms}");
}

#[test]
fn inspect_shows_what_was_chosen_and_nothing_empty() {
    let place = Workplace::with_data();
    let inspect = |spec: &str| {
        place.ok(&["fit", "t.parquet", "--algorithm", spec, "-o", "i.labelflow"]);
        place.ok(&["inspect", "i.labelflow"])
    };
    let plain = inspect("br");
    assert!(!plain.contains("threshold") && !plain.contains("strongest label pairs"), "{plain}");
    assert!(inspect("naibx").contains("strongest label pairs"));
    let tuned = inspect("br(base=logistic(lambda=grid(1, 0.1)), threshold=tuned(macro_f1))");
    let head = tuned.lines().find(|line| line.starts_with("label ")).unwrap_or_default();
    let columns: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(columns, ["label", "rows", "threshold", "lambda", "telling", "features"]);
    let line = tuned.lines().skip_while(|line| *line != head).nth(1).unwrap_or_default();
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert!((0.0..=1.0).contains(&cells[2].parse::<f64>().unwrap()), "{line}");
    assert!(["1", "0.1"].contains(&cells[3]), "{line}");
}

#[test]
fn a_column_that_gives_the_size_may_come_later() {
    let place = Workplace::with_data();
    let fit = ["fit", "t.parquet", "--algorithm", "naibx(size=given(n))", "-o", "m.labelflow"];
    let output = place.run(&fit);
    let text = String::from_utf8(output.stderr).unwrap();
    let note =
        "note: there is no column `n`, which gives the size of each set; rows to score need it";
    assert!(output.status.success() && text.lines().any(|l| l == note), "{text}");
    place.rows("COPY (SELECT *, id % 3 AS n FROM 't.parquet') TO 'n.parquet'");
    place.ok(&split("score --model m.labelflow n.parquet -o s.parquet"));
    let sizes = "SELECT count(*) FROM 's.parquet' WHERE cardinality(predicted_labels) = n";
    assert_eq!(place.rows(sizes), ["200"]);
    let output = place.run(&["fit", "n.parquet", "--algorithm", "naibx(size=given(n))", "-o", "m"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && !text.contains("no column"), "{text}");
}
