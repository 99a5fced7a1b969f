//! The same rows in every format: the same models, the same answers.

use crate::program::{Workplace, split};

/// 300 rows in `t.parquet`, some without labels; four features, four labels.
fn workplace() -> Workplace {
    let place = Workplace::new();
    place.ok(&split(
        "generate --rows 300 --features 4 --labels 4 --cardinality 0.9 --seed 5 t.parquet",
    ));
    place
}

/// The bytes of the model of `input` with one thread.
fn model(place: &Workplace, arguments: &[&str]) -> Vec<u8> {
    let mut all = vec!["fit", "--threads", "1", "-o", "m.labelflow"];
    all.extend(arguments);
    place.ok(&all);
    place.bytes("m.labelflow")
}

/// `t.parquet` as rows of texts: f0, f1, f2, f3, and the labels.
fn table(place: &Workplace) -> Vec<Vec<String>> {
    let rows = place.rows("SELECT f0, f1, f2, f3, labels FROM 't.parquet' ORDER BY id");
    rows.iter().map(|row| row.split(',').map(String::from).collect()).collect()
}

fn labels(place: &Workplace) -> Vec<String> {
    place.rows("SELECT DISTINCT unnest(labels) AS l FROM 't.parquet' ORDER BY l")
}

/// The columns of `t.parquet` as an ARFF file.
fn write_arff(place: &Workplace, name: &str, rows: &[Vec<String>]) {
    let all = labels(place);
    let mut text = format!("@relation 't: -C -{}'\n", all.len());
    (0..4).for_each(|f| text += &format!("@attribute f{f} numeric\n"));
    all.iter().for_each(|l| text += &format!("@attribute '{l}' {{0,1}}\n"));
    text += "@data\n";
    for row in rows {
        let on: Vec<&str> = row[4].split(';').collect();
        let flags = all.iter().map(|l| if on.contains(&l.as_str()) { "1" } else { "0" });
        let values: Vec<&str> = row[..4].iter().map(String::as_str).chain(flags).collect();
        text += &format!("{}\n", values.join(","));
    }
    place.write(name, text);
}

#[test]
fn columns_of_every_format_give_one_model() {
    let place = workplace();
    let expected = model(&place, &["t.parquet"]);
    for file in ["t.csv", "t.json", "t.jsonl", "t.arrow", "t.arrows"] {
        place.ok(&["import", "t.parquet", file]);
        assert_eq!(model(&place, &[file]), expected, "{file}");
    }
    let rows = table(&place);
    write_arff(&place, "t.arff", &rows);
    assert_eq!(model(&place, &["t.arff"]), expected, "t.arff");
    place.rows(
        "COPY (SELECT named_struct('f0', f0, 'f1', f1, 'f2', f2, 'f3', f3) AS s, labels \
         FROM 't.parquet' ORDER BY id) TO 'struct.parquet'",
    );
    assert_eq!(model(&place, &["struct.parquet"]), expected, "a struct");
    // However the rows are cut into files and batches.
    for dir in ["arff.d", "parquet.d"] {
        std::fs::create_dir(place.path(dir)).unwrap();
    }
    write_arff(&place, "arff.d/a.arff", &rows[..120]);
    write_arff(&place, "arff.d/b.arff", &rows[120..]);
    for (part, range) in [("a", "id < 7"), ("b", "id BETWEEN 7 AND 200"), ("c", "id > 200")] {
        place.rows(&format!(
            "COPY (SELECT * FROM 't.parquet' WHERE {range} ORDER BY id) TO 'parquet.d/{part}.parquet'"
        ));
    }
    for input in ["arff.d", "arff.d/*.arff", "parquet.d"] {
        assert_eq!(model(&place, &[input]), expected, "{input}");
    }
}

#[test]
fn sparse_rows_of_every_format_give_one_model() {
    let place = workplace();
    let all = labels(&place);
    let (mut svm, mut arff) = (String::new(), format!("@relation 't: -C {}'\n", all.len()));
    all.iter().for_each(|l| arff += &format!("@attribute '{l}' {{0,1}}\n"));
    (0..4).for_each(|f| arff += &format!("@attribute {f} numeric\n"));
    arff += "@data\n";
    for row in table(&place) {
        let on: Vec<&str> = row[4].split(';').collect();
        let flags =
            (0..all.len()).filter(|&l| on.contains(&all[l].as_str())).map(|l| format!("{l} 1"));
        let values = (0..4).filter(|&f| row[f].starts_with('-'));
        let sparse = values.clone().map(|f| format!("{} {}", f + all.len(), row[f]));
        arff += &format!("{{{}}}\n", flags.chain(sparse).collect::<Vec<_>>().join(", "));
        let entries: Vec<String> = values.map(|f| format!("{f}:{}", row[f])).collect();
        // A row without labels and features would be a blank line.
        let labels = on.join(",");
        svm += &format!("{labels} {}\n", entries.join(" "));
    }
    // Rows with neither labels nor features cannot be written in svmlight: leave them out of both.
    let keep = |line: &&str| !line.trim().is_empty() && *line != "{}";
    place.write("t.svm", svm.lines().filter(keep).map(|l| format!("{l}\n")).collect::<String>());
    place.write("t.arff", arff.lines().filter(keep).map(|l| format!("{l}\n")).collect::<String>());
    let expected = model(&place, &["t.svm"]);
    assert_eq!(model(&place, &["t.arff"]), expected, "sparse ARFF");
    for file in ["x.parquet", "x.arrow", "x.arrows"] {
        place.ok(&["import", "t.svm", file]);
        assert_eq!(model(&place, &[file]), expected, "{file}");
    }
    for copy in ["t.libsvm", "t.svmlight"] {
        std::fs::copy(place.path("t.svm"), place.path(copy)).unwrap();
        assert_eq!(model(&place, &[copy]), expected, "{copy}");
    }
    // Counts: tokens, maps and columns are the same evidence.
    place.rows(
        "COPY (SELECT CASE WHEN f0 > 0 THEN ['a', 'a', 'b'] ELSE ['c'] END AS w, labels \
         FROM 't.parquet' ORDER BY id) TO 'tokens.parquet'",
    );
    place.rows(
        "COPY (SELECT CASE WHEN f0 > 0 THEN MAP {'a': 2, 'b': 1} ELSE MAP {'c': 1} END AS w, labels \
         FROM 't.parquet' ORDER BY id) TO 'map.parquet'",
    );
    let multinomial = ["--algorithm", "naibx(event=multinomial)"];
    let counted = model(&place, &[&["tokens.parquet"], &multinomial[..]].concat());
    assert_eq!(model(&place, &[&["map.parquet"], &multinomial[..]].concat()), counted);
}

#[test]
fn label_columns_of_every_kind_give_one_model() {
    let place = workplace();
    let expected = model(&place, &["t.parquet"]);
    let all = labels(&place);
    let text = |separator: &str| {
        format!(
            "COPY (SELECT f0, f1, f2, f3, array_to_string(labels, '{separator}') AS tags FROM 't.parquet' ORDER BY id)"
        )
    };
    place.rows(&format!("{} TO 'text.parquet'", text(";")));
    assert_eq!(model(&place, &["text.parquet", "--labels", "tags"]), expected);
    place.rows(&format!("{} TO 'bar.csv'", text(" | ")));
    let bar = model(&place, &["bar.csv", "--labels", "tags", "--separator", "|"]);
    assert_eq!(bar, expected);
    let flags = |cast: &str| {
        let flag = |l: &String| format!("array_has(labels, '{l}')::{cast} AS \"{l}\"");
        let flags: Vec<String> = all.iter().map(flag).collect();
        format!("COPY (SELECT f0, f1, f2, f3, {} FROM 't.parquet' ORDER BY id)", flags.join(", "))
    };
    let prefix = all[0].split(|c: char| c.is_ascii_digit()).next().unwrap();
    let pattern = format!("{prefix}*");
    for (cast, file) in
        [("BOOLEAN", "f.parquet"), ("TINYINT", "n.parquet"), ("INT", "n.csv"), ("BOOLEAN", "f.csv")]
    {
        place.rows(&format!("{} TO '{file}'", flags(cast)));
        assert_eq!(model(&place, &[file, "--labels", &pattern]), expected, "{file}");
    }
    let mut named = vec!["n.parquet"];
    all.iter().for_each(|l| named.extend(["--labels", l]));
    assert_eq!(model(&place, &named), expected);
}

#[test]
fn an_empty_field_of_csv_means_what_is_said() {
    let place = Workplace::new();
    place.write("t.csv", "x,tags\n1,a;b\n2,\n3,b\n4,\"\"\n");
    let rows = |options: &[&str]| {
        model(&place, &[&["t.csv", "--labels", "tags"], options].concat());
        place.rows("SELECT model_info('m.labelflow')['rows']")
    };
    assert_eq!(rows(&[]), ["4"]);
    assert_eq!(rows(&["--empty-labels", "none"]), ["4"]);
    assert_eq!(rows(&["--empty-labels", "unlabelled"]), ["2"]);
    // Labels that look like numbers are labels all the same.
    place.write("n.csv", "x,tags\n1,7\n2,8\n3,\n");
    model(&place, &["n.csv", "--labels", "tags"]);
    assert_eq!(place.rows("SELECT model_info('m.labelflow')['labels']"), ["7;8"]);
}

#[test]
fn counts_are_an_option_or_a_parameter() {
    let place = workplace();
    place.rows(
        "COPY (SELECT f0, id % 3 AS w_a, id % 2 AS w_b, labels FROM 't.parquet' ORDER BY id) TO 'c.parquet'",
    );
    let option = model(&place, &["c.parquet", "--counts", "w_*"]);
    let parameter = model(&place, &["c.parquet", "--algorithm", "naibx(counts='w_*')"]);
    assert_eq!(option, parameter);
    assert_ne!(model(&place, &["c.parquet"]), option);
    let both =
        ["fit", "c.parquet", "--counts", "w_*", "--algorithm", "naibx(counts=w_a)", "-o", "x"];
    let (code, text) = place.failure(&both);
    assert_eq!(code, 2);
    assert!(text.contains("names columns of counts, and so does --counts"), "{text}");
    place.ok(&split("evaluate c.parquet --counts w_* --folds 2"));
}

/// Every command takes every format, and rows stay in order.
#[test]
fn every_command_reads_every_format() {
    let place = workplace();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    place.ok(&split("score --model m.labelflow t.parquet -o expected.parquet"));
    let scored = "SELECT array_to_string(predicted_labels, ';') FROM ";
    let expected = place.rows(&format!("{scored} 'expected.parquet'"));
    write_arff(&place, "t.arff", &table(&place));
    for file in ["t.csv", "t.json", "t.jsonl", "t.arrow", "t.arrows"] {
        place.ok(&["import", "t.parquet", file]);
    }
    for file in ["t.csv", "t.json", "t.jsonl", "t.arrow", "t.arrows", "t.arff"] {
        for output in ["s.parquet", "s.json", "s.arrow", "s.arrows", "s.jsonl"] {
            place.ok(&["score", "--model", "m.labelflow", file, "-o", output]);
            assert_eq!(place.rows(&format!("{scored} '{output}'")), expected, "{file} {output}");
        }
        assert_eq!(place.rows(&format!("SELECT count(*) FROM '{file}'")), ["300"], "{file}");
        let report = place.json(&["evaluate", file, "--folds", "2", "--format", "json"]);
        let jaccard = report.iter().find(|r| r["metric"] == "jaccard").unwrap();
        let own = place.json(&["evaluate", "t.parquet", "--folds", "2", "--format", "json"]);
        let own = own.iter().find(|r| r["metric"] == "jaccard").unwrap();
        let (a, b) = (jaccard["mean"].as_f64().unwrap(), own["mean"].as_f64().unwrap());
        assert!((a - b).abs() < 1e-12, "{file}: {a} {b}");
    }
}

#[test]
fn directories_and_patterns_of_every_format() {
    let place = Workplace::new();
    for (extension, one, two) in [
        ("svm", "a 1:1\n", "b 2:1\nb 2:2\n"),
        ("csv", "x,labels\n1,a\n", "x,labels\n2,b\n3,b\n"),
        (
            "jsonl",
            "{\"x\":1,\"labels\":[\"a\"]}\n",
            "{\"x\":2,\"labels\":[\"b\"]}\n{\"x\":3,\"labels\":[]}\n",
        ),
        (
            "arff",
            "@relation 'r: -C 1'\n@attribute a {0,1}\n@attribute x real\n@data\n1,1\n",
            "@relation 'r: -C 1'\n@attribute a {0,1}\n@attribute x real\n@data\n1,2\n0,3\n",
        ),
    ] {
        let dir = format!("{extension}.d");
        std::fs::create_dir(place.path(&dir)).unwrap();
        place.write(&format!("{dir}/1.{extension}"), one);
        place.write(&format!("{dir}/2.{extension}"), two);
        for input in [dir.clone(), format!("{dir}/*.{extension}"), format!("{dir}/")] {
            assert_eq!(place.rows(&format!("SELECT count(*) FROM '{input}'")), ["3"], "{input}");
        }
        place.ok(&["fit", &dir, "-o", "m.labelflow"]);
        assert_eq!(place.rows("SELECT model_info('m.labelflow')['rows']"), ["3"], "{dir}");
    }
    place.write(
        "arff.d/3.arff",
        "@relation 'r: -C 1'\n@attribute b {0,1}\n@attribute x real\n@data\n1,1\n",
    );
    let (code, text) = place.failure(&split("fit arff.d -o m.labelflow"));
    assert_eq!(code, 2);
    assert!(text.contains("3.arff` has other columns or labels than"), "{text}");
}

/// URLs of files, as DataFusion reads them.
#[test]
fn urls_are_tables() {
    let place = workplace();
    let url = format!("file://{}", place.path("t.parquet").display());
    assert_eq!(place.rows(&format!("SELECT count(*) FROM '{url}'")), ["300"]);
}
