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
}

/// Vectors of every kind and format give one model, which answers as columns named 0, 1, ... do;
/// tokens give the model of a map of counts.
#[test]
fn vectors_and_tokens_of_every_format_give_one_model() {
    let place = workplace();
    let copy = |columns: &str, file: &str| {
        place.rows(&format!(
            "COPY (SELECT {columns}, labels FROM 't.parquet' ORDER BY id) TO '{file}'"
        ));
    };
    copy("[f0, f1, f2, f3] AS v", "list.parquet");
    copy("arrow_cast([f0, f1, f2, f3], 'LargeList(Float64)') AS v", "large.parquet");
    copy("arrow_cast([f0, f1, f2, f3], 'FixedSizeList(4, Float64)') AS v", "fixed.parquet");
    let vector = model(&place, &["list.parquet"]);
    for name in ["list", "large", "fixed"] {
        let first = format!("{name}.parquet");
        assert_eq!(model(&place, &[&first]), vector, "{first}");
        for extension in ["json", "jsonl", "arrow", "arrows"] {
            let file = format!("{name}.{extension}");
            place.ok(&["import", &first, &file]);
            assert_eq!(model(&place, &[&file]), vector, "{file}");
        }
    }
    place.write("vector.labelflow", vector);
    copy("f0 AS \"0\", f1 AS \"1\", f2 AS \"2\", f3 AS \"3\"", "columns.parquet");
    let columns = model(&place, &["columns.parquet"]);
    for extension in ["csv", "json", "arrow", "arrows"] {
        let file = format!("columns.{extension}");
        place.ok(&["import", "columns.parquet", &file]);
        assert_eq!(model(&place, &[&file]), columns, "{file}");
    }
    write_arff(&place, "named.arff", &table(&place));
    let text = String::from_utf8(place.bytes("named.arff")).unwrap();
    place.write("numbered.arff", text.replace("@attribute f", "@attribute "));
    assert_eq!(model(&place, &["numbered.arff"]), columns, "ARFF");
    place.write("columns.labelflow", columns);
    let answers = |model: &str, file: &str| {
        place.ok(&["score", "--model", model, file, "--scores", "-o", "s.parquet"]);
        place.ok(&["sql", "SELECT predicted_labels, label_scores FROM 's.parquet'"])
    };
    assert_eq!(
        answers("vector.labelflow", "list.parquet"),
        answers("columns.labelflow", "columns.parquet")
    );
    // Counts: tokens and maps are the same evidence.
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
    for (from, file) in [
        ("map.parquet", "map.parquet"),
        ("map.parquet", "map.arrow"),
        ("map.parquet", "map.arrows"),
        ("tokens.parquet", "tokens.json"),
        ("tokens.parquet", "tokens.arrow"),
        ("tokens.parquet", "tokens.arrows"),
    ] {
        if from != file {
            place.ok(&["import", from, file]);
        }
        assert_eq!(model(&place, &[&[file], &multinomial[..]].concat()), counted, "{file}");
    }
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
    // However the files are named.
    for dir in ["d", "hive", "hive/day=1", "hive/day=2"] {
        std::fs::create_dir(place.path(dir)).unwrap();
    }
    for file in ["d/a.csv", "d/b.csv", "hive/day=1/a.csv", "hive/day=2/a.csv"] {
        std::fs::copy(place.path("t.csv"), place.path(file)).unwrap();
    }
    for input in ["d", "d/", "d/*", "d/*.cs*", "d/?.csv", "hive"] {
        let rows = |meaning: &str| {
            model(&place, &[input, "--labels", "tags", "--empty-labels", meaning]);
            place.rows("SELECT model_info('m.labelflow')['rows']")
        };
        assert_eq!(
            (rows("none"), rows("unlabelled")),
            (vec!["8".into()], vec!["4".into()]),
            "{input}"
        );
    }
    // Imported, they are known to be none, or not known.
    for (meaning, unlabelled) in [("none", "0"), ("unlabelled", "2")] {
        place.ok(&[
            "import",
            "d/a.csv",
            "i.parquet",
            "--labels",
            "tags",
            "--empty-labels",
            meaning,
        ]);
        let found = place.rows("SELECT tags, x FROM 'i.parquet' ORDER BY x");
        assert_eq!(found, ["a;b,1", ",2", "b,3", ",4"], "{meaning}");
        let count = "SELECT count(*) FROM 'i.parquet' WHERE tags IS NULL";
        assert_eq!(place.rows(count), [unlabelled], "{meaning}");
    }
    // Labels that look like numbers are labels all the same.
    place.write("n.csv", "x,tags\n1,7\n2,8\n3,\n");
    model(&place, &["n.csv", "--labels", "tags"]);
    assert_eq!(place.rows("SELECT model_info('m.labelflow')['labels']"), ["7;8"]);
    place.write("zeros.csv", "x,tags\n1,007|08\n2,9\n");
    place.ok(&split("import zeros.csv zeros.parquet --labels tags --separator |"));
    assert_eq!(place.rows("SELECT tags FROM 'zeros.parquet'"), ["007;08", "9"]);
}

/// Two megabytes of texts with line breaks, commas and quotes in them.
#[test]
fn line_breaks_inside_quotes_end_no_row() {
    let place = Workplace::new();
    let row = |i: usize| {
        format!(
            "{i},\"first {i}\n{i},no row,b\nsaid \"\"so\"\" {}\",{}\n",
            "x".repeat(60),
            ["a", "b"][i % 2]
        )
    };
    place
        .write("t.csv", "id,text,labels\n".to_string() + &(0..20_000).map(row).collect::<String>());
    assert!(place.bytes("t.csv").len() > 2_000_000);
    let query = "SELECT count(*) AS n, sum(id) AS s, count(DISTINCT text) AS t, \
                 count(*) FILTER (WHERE labels = 'a') AS a FROM 't.csv'";
    for threads in ["1", "2", "4"] {
        let rows = place.ok(&["sql", query, "--format", "csv", "--threads", threads]);
        assert_eq!(rows, "n,s,t,a\n20000,199990000,20000,10000\n", "{threads}");
        place.ok(&["fit", "t.csv", "--threads", threads, "-o", "m.labelflow"]);
        let info = "SELECT model_info('m.labelflow')['rows'], model_info('m.labelflow')['labels']";
        assert_eq!(place.rows(info), ["20000,a;b"], "{threads}");
    }
    // Files without such texts are read by several threads, quotes or not.
    let row = |i: usize| format!("{i},\"{i}, said \"\"so\"\" {}\",a\n", "x".repeat(60));
    place
        .write("p.csv", "id,text,labels\n".to_string() + &(0..20_000).map(row).collect::<String>());
    let plan = place.ok(&["sql", "EXPLAIN SELECT id FROM 'p.csv'", "--threads", "2"]);
    assert!(plan.contains("file_groups={2 groups"), "{plan}");
    let sum = ["sql", "SELECT count(*), sum(id) FROM 'p.csv'", "--threads", "2", "--format", "csv"];
    assert_eq!(place.ok(&sum).lines().last(), Some("20000,199990000"));
}

/// Files in the making, and notes of other programs, are no data.
#[test]
fn hidden_files_are_no_data() {
    let place = workplace();
    std::fs::create_dir_all(place.path("flat")).unwrap();
    std::fs::create_dir_all(place.path("hive/day=1/_temporary")).unwrap();
    std::fs::create_dir_all(place.path(".secret")).unwrap();
    let table = place.bytes("t.parquet");
    for file in
        ["flat/a.parquet", "hive/day=1/a.parquet", ".secret/a.parquet", ".secret/.b.parquet"]
    {
        place.write(file, &table);
    }
    for file in [
        "flat/.part-0000000001.parquet",
        "flat/_b.parquet",
        "flat/.x.csv",
        "hive/day=1/.b.parquet",
        "hive/day=1/_temporary/c.parquet",
        "hive/_metadata.parquet",
    ] {
        place.write(file, &table[..1000]);
    }
    for input in
        ["flat", "flat/", "flat/*", "flat/*.parquet", "hive", ".secret", ".secret/*.parquet"]
    {
        assert_eq!(place.rows(&format!("SELECT count(*) FROM '{input}'")), ["300"], "{input}");
        place.ok(&["fit", input, "-o", "m.labelflow"]);
        assert_eq!(place.rows("SELECT model_info('m.labelflow')['rows']"), ["300"], "{input}");
    }
    // What is named itself is read.
    assert_eq!(place.rows("SELECT count(*) FROM '.secret/.b.parquet'"), ["300"]);
    // ARFF and svmlight too.
    std::fs::create_dir(place.path("svm")).unwrap();
    place.write("svm/a.svm", "a 1:1\nb 2:1\n");
    place.write("svm/.b.svm", "a 1:\n");
    assert_eq!(place.rows("SELECT count(*) FROM 'svm'"), ["2"]);
}

/// A feature called `labels` does not take the place of the label list.
#[test]
fn an_attribute_called_labels_is_a_feature() {
    let place = Workplace::new();
    place.write(
        "x.arff",
        "@relation 'x: -C 2'\n@attribute y {0,1}\n@attribute z {0,1}\n\
         @attribute labels {p,q}\n@attribute n numeric\n@data\n1,0,p,1\n0,1,q,2\n",
    );
    model(&place, &["x.arff"]);
    let info = "SELECT model_info('m.labelflow')['labels'], model_info('m.labelflow')['features']";
    assert_eq!(place.rows(info), ["y;z,labels_;n"]);
}

/// A list of labels that lies elsewhere can be named by every command that reads ARFF.
#[test]
fn sql_takes_a_list_of_labels() {
    let place = Workplace::new();
    place.write(
        "x.arff",
        "@relation x\n@attribute n numeric\n@attribute y {0,1}\n@data\n1,1\n2,0\n",
    );
    place.write("other.xml", "<labels><label name=\"y\"/></labels>");
    let query = ["sql", "SELECT n, labels FROM 'x.arff'", "--format", "csv"];
    assert_eq!(place.failure(&query).0, 2);
    let named = [&query[..], &["--labels-xml", "other.xml"]].concat();
    assert_eq!(place.ok(&named), "n,labels\n1.0,y\n2.0,\n");
}

/// A directory is looked at anew by every query.
#[test]
fn new_files_of_a_directory_are_seen() {
    let place = workplace();
    let copy = |n: u32| format!("COPY (SELECT * FROM 't.parquet') TO 'd/{n}.parquet'");
    std::fs::create_dir(place.path("d")).unwrap();
    let count = "SELECT count(*) AS n FROM 'd'";
    let script = [copy(1), count.into(), copy(2), count.into()].join("; ");
    let printed = place.ok(&["sql", &script, "--format", "csv"]);
    let counts: Vec<&str> = printed.lines().filter(|l| *l == "600").collect();
    assert_eq!(counts, ["600"], "{printed}");
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
    let base = |spec| model(&place, &["c.parquet", "--algorithm", spec]);
    let option =
        ["c.parquet", "--algorithm", "br(base=naive_bayes(smoothing=2))", "--counts", "w_*"];
    assert_eq!(model(&place, &option), base("br(base=naive_bayes(smoothing=2, counts='w_*'))"),);
    assert_ne!(model(&place, &option), base("br(base=naive_bayes(smoothing=2))"));
    let rows = ["fit", "c.parquet", "--counts", "w_*", "--algorithm", "br", "-o", "x"];
    let (code, text) = place.failure(&rows);
    assert_eq!(code, 2);
    assert!(text.contains("--counts: `br` does not tell counts from other numbers"), "{text}");
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
    write_arff(&place, "t.arff", &table(&place));
    for file in ["t.csv", "t.json", "t.jsonl", "t.ndjson", "t.arrow", "t.arrows"] {
        place.ok(&["import", "t.parquet", file]);
    }
    for file in ["t.csv", "t.json", "t.jsonl", "t.ndjson", "t.arrow", "t.arrows", "t.arff"] {
        every_command(&place, "m.labelflow", "t.parquet", file);
        for output in ["s.csv", "s.json", "s.arrow", "s.arrows", "s.jsonl"] {
            place.ok(&["score", "--model", "m.labelflow", file, "-o", output]);
            assert_eq!(
                place.rows(&format!("SELECT count(*) FROM '{output}'")),
                ["300"],
                "{output}"
            );
        }
    }
    // Sparse rows: svmlight, sparse ARFF, and maps.
    let svm =
        (0..60).map(|i| format!("{} {}:{}.5 7:1\n", ["a", "a,b", "b"][i % 3], i % 3, i % 5 + 1));
    place.write("s.svm", svm.collect::<String>());
    place.ok(&split("import s.svm maps.parquet"));
    place.ok(&split("fit maps.parquet -o maps.labelflow"));
    for file in ["x.svm", "x.libsvm", "x.svmlight", "maps.arrow", "maps.arrows"] {
        match file.starts_with('x') {
            true => drop(std::fs::copy(place.path("s.svm"), place.path(file)).unwrap()),
            false => drop(place.ok(&["import", "s.svm", file])),
        }
        every_command(&place, "maps.labelflow", "maps.parquet", file);
    }
}

/// Runs every command on `file` and on `known`, which holds the same rows as Parquet.
fn every_command(place: &Workplace, trained: &str, known: &str, file: &str) {
    let both = |run: &dyn Fn(&str) -> Vec<String>| assert_eq!(run(file), run(known), "{file}");
    let predicted = |of: &str| {
        place.rows(&format!("SELECT array_to_string(predicted_labels, ';') FROM '{of}'"))
    };
    assert_eq!(model(place, &[file]), model(place, &[known]), "fit {file}");
    both(&|input| {
        place.ok(&["score", "--model", trained, input, "-o", "scored.parquet"]);
        predicted("scored.parquet")
    });
    both(&|input| {
        let output = place.run(&["stream", "--model", trained, input]);
        assert!(output.status.success(), "stream {input}");
        place.write("streamed.arrows", output.stdout);
        predicted("streamed.arrows")
    });
    both(&|input| {
        place.ok(&["import", input, "imported.parquet"]);
        model(place, &["imported.parquet"]);
        place.rows("SELECT model_info('m.labelflow')['digest']")
    });
    both(&|input| place.rows(&format!("SELECT count(*) FROM '{input}'")));
    both(&|input| {
        let mut lines = place.json(&["describe", input, "--format", "json"]);
        lines.iter_mut().for_each(|l| l["dataset"] = "".into());
        lines.iter().map(|l| l.to_string()).collect()
    });
    both(&|input| {
        let lines = place.json(&["evaluate", input, "--folds", "2", "--format", "json"]);
        let timed = |l: &&serde_json::Value| !l["metric"].as_str().unwrap().ends_with("seconds");
        lines.iter().filter(timed).map(|l| format!("{} {}", l["metric"], l["mean"])).collect()
    });
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
