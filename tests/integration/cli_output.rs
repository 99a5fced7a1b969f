//! What commands write, and where it does not fit.

use crate::program::{Workplace, split};
use std::process::Command;

/// Lists are written to CSV as the program prints them; what does not fit is refused before any work.
#[test]
fn csv_holds_lists_and_refuses_what_is_nested() {
    let place = Workplace::with_data();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    place.ok(&split("score --model m.labelflow t.parquet -o s.csv"));
    place.ok(&split("score --model m.labelflow t.parquet -o s.parquet"));
    let texts = "SELECT id, array_to_string(predicted_labels, ';') FROM 's.parquet'";
    assert_eq!(
        place.rows("SELECT id, coalesce(predicted_labels, '') FROM 's.csv'"),
        place.rows(texts)
    );
    for (list, text) in [
        ("arrow_cast([1, 2], 'LargeList(Int64)')", "1;2"),
        ("arrow_cast([1, 2], 'FixedSizeList(2, Int64)')", "1;2"),
        ("['a', NULL, 'b']", "a;b"),
    ] {
        place.rows(&format!("COPY (SELECT 7 AS id, {list} AS l) TO 'l.arrow'"));
        place.ok(&split("import l.arrow l.csv"));
        assert_eq!(place.rows("SELECT id, l FROM 'l.csv'"), [format!("7,{text}")], "{list}");
    }
    place.rows("COPY (SELECT MAP {'a': 1} AS m) TO 'm.arrow'");
    for (command, column) in [
        ("import m.arrow x.csv", "m"),
        ("score --model m.labelflow t.parquet --scores -o x.csv", "label_scores"),
        ("score --model m.labelflow t.parquet --sets 2 -o x.csv", "label_sets"),
    ] {
        let message = format!(
            "error: column `{column}` holds maps, structs or lists of them, which do not fit into CSV: write .parquet, .json, .arrow or .arrows"
        );
        assert_eq!(place.failure(&split(command)), (2, message), "{command}");
        assert!(!place.path("x.csv").exists(), "{command}");
    }
}

/// A label that holds what stands between labels would come back as two.
#[test]
fn csv_refuses_a_label_that_would_be_read_as_two() {
    let place = Workplace::new();
    place.rows("COPY (SELECT 1.0 AS x, ['a;b', 'c'] AS labels) TO 's.parquet'");
    let message = "error: column `labels`: `a;b` holds the `;` that stands between the items of a list in CSV: choose a format that has lists, such as JSON";
    for command in [
        &["import", "s.parquet", "s.csv"][..],
        &["sql", "SELECT labels FROM 's.parquet'", "--format", "csv"],
    ] {
        let output = place.run(command);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.trim_end()), (Some(2), message), "{command:?}");
    }
    assert_eq!(place.files("."), ["s.parquet"]);
    place.ok(&split("import s.parquet s.json"));
    assert_eq!(place.rows("SELECT labels[1] = 'a;b', labels[2] FROM 's.json'"), ["true,c"]);
    // What is no text may hold anything.
    let nested = ["sql", "SELECT [['a;b'], ['c']] AS l, [{x: ';'}] AS s", "--format", "csv"];
    assert_eq!(place.ok(&nested), "l,s\na;b;c,{x: ;}\n");
}

/// Standard output that takes no more is a failure, whoever prints.
#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_told() {
    let place = Workplace::with_data();
    for command in ["describe t.parquet", "algorithms", "evaluate t.parquet --folds 2"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let program = env!("CARGO_BIN_EXE_labelflow");
        let mut run = Command::new(program);
        let output =
            run.args(split(command)).current_dir(place.dir()).stdout(full).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command}: {text}");
        let told = "error: standard output: No space left on device (os error 28)";
        assert_eq!(text.lines().last(), Some(told), "{command}");
    }
}

/// `COPY` writes what the other commands write.
#[test]
fn copy_has_the_format_of_the_extension() {
    let place = Workplace::with_data();
    let wanted = place.rows("SELECT * FROM 't.parquet' ORDER BY id");
    for file in ["x.parquet", "x.json", "x.jsonl", "x.ndjson", "x.arrow", "x.arrows"] {
        let copy = format!("COPY (SELECT * FROM 't.parquet' ORDER BY id) TO '{file}'");
        assert_eq!(place.rows(&copy), ["200"], "{file}");
        let columns = "id, f0, f1, f2, f3, labels";
        let rows = place.rows(&format!("SELECT {columns} FROM '{file}' ORDER BY id"));
        assert_eq!(rows, wanted, "{file}");
        let plan = place.ok(&["sql", &format!("EXPLAIN {copy}")]);
        assert!(plan.contains("CopyTo: "), "{file}: {plan}");
    }
    // A stream, as its name says, and not a file.
    place.ok(&split("import t.parquet i.arrows"));
    for file in ["i.arrows", "x.arrows"] {
        assert_eq!(place.bytes(file)[..4], [0xff; 4], "{file}");
    }
    assert_eq!(place.bytes("x.arrow")[..6], *b"ARROW1");
    place.write("x.arrows", "old");
    let before = place.files(".");
    for (copy, message) in [
        (
            "COPY (SELECT 1 / (id - 199) AS x FROM 't.parquet') TO 'x.arrows'",
            "Arrow error: Divide by zero error",
        ),
        (
            "COPY (SELECT 1 AS x) TO 'no/x.arrows'",
            "the directory `no` of output `no/x.arrows` does not exist: create it first",
        ),
        (
            "COPY (SELECT 1 AS x) TO 'file:///tmp/x.arrows'",
            "output `file:///tmp/x.arrows`: .arrows is written to a path and not to a URL: write .arrow \
             or .parquet",
        ),
        (
            "COPY (SELECT 1 AS x) TO 'x.svm'",
            "output `x.svm`: give the file one of the extensions .parquet, .csv, .json, .jsonl, \
             .arrow, .arrows",
        ),
        (
            "COPY (SELECT 1 AS x) TO 'x.labelflow'",
            "output `x.labelflow`: a model file is written by `labelflow fit` and `labelflow merge`; \
             models among rows are kept in a column of .parquet, .arrow or .arrows",
        ),
    ] {
        assert_eq!(place.failure(&["sql", copy]), (2, format!("error: {message}")), "{copy}");
        assert_eq!((place.files("."), place.bytes("x.arrows")), (before.clone(), b"old".to_vec()));
    }
}
