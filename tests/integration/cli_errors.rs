//! Commands that fail: what they say, how they exit, and that they leave nothing behind.

use crate::program::{Workplace, split};
use arrow::array::{RecordBatch, UInt32Array};
use arrow::ipc::reader::FileReader;
use arrow::ipc::writer::FileWriter;
use labelflow::models::Registry;
use std::io::Cursor;
use std::process::Command;
use std::sync::Arc;

/// A place with good and bad files; outputs go to `out`, which is empty.
fn workplace() -> Workplace {
    let place = Workplace::with_data();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    place.ok(&["fit", "t.parquet", "--algorithm", "naibx(smoothing=2)", "-o", "m2.labelflow"]);
    place.ok(&split("score --model m.labelflow t.parquet -o scored.parquet"));
    let model = place.bytes("m.labelflow");
    place.write("text.labelflow", "not a model\n");
    place.write("empty.labelflow", "");
    place.write("cut.labelflow", &model[..model.len() / 2]);
    let mut flipped = model.clone();
    flipped[model.len() / 2] ^= 1;
    place.write("flipped.labelflow", flipped);
    std::fs::copy(place.path("t.parquet"), place.path("table.labelflow")).unwrap();
    place.write("newer.labelflow", newer(&model));
    let table = place.bytes("t.parquet");
    place.write("cut.parquet", &table[..table.len() / 2]);
    place.write("empty.parquet", "");
    place.write(
        "long.arff",
        "@relation 'r: -C 1'\n@attribute a {0,1}\n@attribute x real\n@data\n1,2\n1,2,3\n",
    );
    place.write("bad.svm", "a 1:1\nb 2\n");
    place.write("late.csv", late_fraction());
    place.write("wide.csv", "x,labels\n1,\"a\nb\"\n2,b,c\n");
    place.write("latin.csv", b"x,labels\n1,a\n2,\xe9\n");
    place.write("open.json", "{\"x\":1,\"labels\":[\"a\"]}\n{\"x\":2\n");
    for kind in ["arrow", "arrows"] {
        place.ok(&["import", "t.parquet", &format!("t.{kind}")]);
        let whole = place.bytes(&format!("t.{kind}"));
        place.write(&format!("cut.{kind}"), &whole[..whole.len() / 2]);
    }
    std::fs::create_dir(place.path("mixed")).unwrap();
    std::fs::create_dir(place.path("heads")).unwrap();
    place.write("mixed/a.csv", "x,labels\n1,a\n");
    place.write("mixed/b.parquet", place.bytes("t.parquet"));
    place.write("heads/a.csv", "x,labels\n1,a\n");
    place.write("heads/b.csv", "labels,x\na,1\n");
    place.write("flags.csv", "x,l_a,l_b\n1,0,1\n2,1,2\n");
    std::fs::create_dir(place.path("nothing")).unwrap();
    place.ok(&["sql", "COPY (SELECT train_labels('naibx', labels, f0, f1, f2, f3) AS m FROM 't.parquet' WHERE id < 100) TO 'half.parquet'"]);
    for (file, columns) in [
        ("null_label", "f0, CASE WHEN id = 7 THEN ['a', NULL] ELSE labels END AS labels"),
        (
            "infinite",
            "f0, CASE WHEN id = 7 THEN 'Infinity'::double ELSE f1 END AS f1, f2, f3, labels",
        ),
        ("narrow", "f0, labels"),
        ("no_features", "id, labels"),
        ("unlabelled", "f0, arrow_cast(NULL, 'List(Utf8)') AS labels"),
        ("dates", "f0, DATE '2024-01-01' AS day, labels"),
    ] {
        place.rows(&format!("COPY (SELECT {columns} FROM 't.parquet') TO '{file}.parquet'"));
    }
    place.rows("COPY (SELECT * FROM 't.parquet' WHERE id < 0) TO 'no_rows.parquet'");
    std::fs::create_dir(place.path("out")).unwrap();
    place
}

/// A model file of a format version to come, with the digest that fits it.
fn newer(model: &[u8]) -> Vec<u8> {
    let reader = FileReader::try_new(Cursor::new(model), None).unwrap();
    let schema = reader.schema();
    let batch = reader.into_iter().next().unwrap().unwrap();
    let mut columns = batch.columns().to_vec();
    columns[schema.index_of("format_version").unwrap()] = Arc::new(UInt32Array::from(vec![99]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let mut writer = FileWriter::try_new(Vec::new(), &schema).unwrap();
    writer.write_metadata("labelflow.digest", format!("xxh3-128:{}", "0".repeat(32)));
    writer.write(&batch).unwrap();
    let mut bytes = writer.into_inner().unwrap();
    let digest = format!("{:032x}", labelflow::math::content_hash(0, &bytes));
    let place = bytes.windows(9).rposition(|w| w == b"xxh3-128:").unwrap() + 9;
    bytes[place..place + 32].copy_from_slice(digest.as_bytes());
    bytes
}

/// A CSV file whose column turns out to hold fractions after many whole numbers.
fn late_fraction() -> String {
    let row = |i: usize| if i < 200_000 { format!("{i},a\n") } else { format!("{i}.5,b\n") };
    "x,labels\n".to_string() + &(0..200_100).map(row).collect::<String>()
}

/// Command lines and what they say; every one is the caller's to mend.
const FAILURES: &[(&str, &str)] = &[
    // Inputs.
    ("fit no.parquet -o out/x", "file `no.parquet` does not exist: check the path"),
    (
        "fit s3://bucket/no.parquet -o out/x",
        "`s3://bucket/no.parquet`: no object store is known for `s3://bucket/`: copy the file to a disk of this machine, or embed labelflow and register the store with the session",
    ),
    (
        "fit text.labelflow -o out/x",
        "`text.labelflow`: this kind of file cannot be read: name a file, directory or pattern of .parquet, .csv, .json, .jsonl, .ndjson, .arrow, .arrows, .arff, .svm, .libsvm, .svmlight",
    ),
    (
        "fit nothing -o out/x",
        "`nothing`: there is no file in this directory, besides those whose names begin with . or _: name one with data",
    ),
    ("fit no*.csv -o out/x", "`no*.csv`: no file matches this pattern: check the path"),
    (
        "fit mixed -o out/x",
        "`mixed`: there are files of two kinds, `a.csv` and `b.parquet`: choose one kind with a pattern such as `*.csv`",
    ),
    (
        "fit heads -o out/x",
        "file `heads/b.csv` has other columns than `heads/a.csv`, or in another order: read them apart",
    ),
    (
        "fit long.arff -o out/x",
        "file `long.arff`, line 6: expected 2 values, one for each attribute, got 3; write `?` for a missing value and quote values that hold commas",
    ),
    (
        "fit bad.svm -o out/x",
        "file `bad.svm`, line 2: `2` is no feature; write index:value, and labels as a,b,c without blanks",
    ),
    (
        "fit flags.csv --labels l_* -o out/x",
        "train_labels: label column `l_b` holds 2 in row 1: a label column holds 0, 1 or NULL",
    ),
    ("fit cut.parquet -o out/x", "file `cut.parquet` is no whole Parquet file: write it again"),
    ("fit empty.parquet -o out/x", "`empty.parquet`: there are no columns: the file is empty"),
    ("fit cut.arrow -o out/x", "`cut.arrow`: the file is no whole Arrow file: write it again"),
    ("fit cut.arrows -o out/x", "`cut.arrows`: the file is no whole Arrow file: write it again"),
    (
        "fit late.csv --threads 1 -o out/x",
        "file `late.csv`, line 200002: the value '200000.5' of column `x` is no whole number, which the column is in the first 10000 rows: write the column alike in all rows",
    ),
    (
        "fit late.csv --threads 4 -o out/x",
        "file `late.csv`, line 200002: the value '200000.5' of column `x` is no whole number, which the column is in the first 10000 rows: write the column alike in all rows",
    ),
    (
        "stream --algorithm naibx --learn-only late.csv",
        "file `late.csv`, line 200002: the value '200000.5' of column `x` is no whole number, which the column is in the first 10000 rows: write the column alike in all rows",
    ),
    (
        "fit wide.csv -o out/x",
        "file `wide.csv`, line 4: expected 2 values, one for each column, got 3; quote values that hold commas or line breaks",
    ),
    (
        "fit latin.csv -o out/x",
        "file `latin.csv`, line 3: not UTF-8 text; convert the file to UTF-8",
    ),
    (
        "fit open.json -o out/x",
        "`open.json`: Not valid JSON: EOF while parsing an object at line 1 column 6; write one object on a line, and every field alike in all of them",
    ),
    (
        "fit no_rows.parquet -o out/x",
        "`no_rows.parquet` has no labelled row to learn from: it is empty, or every label list is NULL",
    ),
    (
        "fit unlabelled.parquet -o out/x",
        "`unlabelled.parquet` has no labelled row to learn from: it is empty, or every label list is NULL",
    ),
    (
        "score --model m.labelflow no.parquet -o out/x.parquet",
        "file `no.parquet` does not exist: check the path",
    ),
    (
        "stream --model m.labelflow t*.parquet",
        "`t*.parquet` does not exist: name files or directories",
    ),
    ("evaluate no.parquet", "file `no.parquet` does not exist: check the path"),
    ("import no.arff out/x.parquet", "file `no.arff` does not exist: check the path"),
    ("sql --file no.sql", "script `no.sql` does not exist: check the path"),
    // Columns.
    (
        "fit t.parquet --labels tags -o out/x",
        "`t.parquet` has no label column `tags`; name it with --labels, the columns are: id, f0, f1, f2, f3, labels",
    ),
    (
        "evaluate t.parquet --labels tags",
        "`t.parquet` has no label column `tags`; name it with --labels, the columns are: id, f0, f1, f2, f3, labels",
    ),
    (
        "fit t.parquet --features g* -o out/x",
        "no column matches `g*`; the columns are: id, f0, f1, f2, f3, labels",
    ),
    (
        "fit t.parquet --exclude g -o out/x",
        "no column matches `g`; the columns are: id, f0, f1, f2, f3, labels",
    ),
    (
        "fit no_features.parquet -o out/x",
        "there is no feature column besides labels; the columns are: id, labels",
    ),
    (
        "score --model m.labelflow narrow.parquet -o out/x.parquet",
        "predict_labels: feature `f1` of the model is missing in the input: add a column of that name",
    ),
    (
        "score --model m.labelflow scored.parquet -o out/x.parquet",
        "`scored.parquet` has a column `predicted_labels` already: rename it first",
    ),
    (
        "fit dates.parquet -o out/x",
        "train_labels: column `day` has type Date32, which cannot be a feature: exclude it or cast it to a number, text, list or map",
    ),
    // Values.
    (
        "fit null_label.parquet -o out/x",
        "train_labels: the label list of row 7 holds a NULL, [a, NULL]: remove it, or make the whole list NULL when the row is unlabelled",
    ),
    (
        "fit infinite.parquet -o out/x",
        "train_labels: feature `f1` holds an infinite value: make it NULL where it is unknown, or clip it",
    ),
    (
        "score --model m.labelflow infinite.parquet -o out/x.parquet",
        "predict_labels: feature `f1` holds an infinite value: make it NULL where it is unknown, or clip it",
    ),
    (
        "fit dates.parquet --labels day -o out/x",
        "train_labels: labels must be a list of texts or integers, or a struct of 0/1 columns, not Date32; write train_labels('algorithm', labels, features...)",
    ),
    // Algorithms.
    (
        "fit t.parquet --algorithm nabx -o out/x",
        "there is no algorithm `nabx`, did you mean `naibx`?; there are: {algorithms}",
    ),
    (
        "fit t.parquet --algorithm naibx(smoothing=0) -o out/x",
        "parameter `smoothing=0` of `naibx` is not valid: it takes a number from 0.000000001 to 1000000000",
    ),
    (
        "fit t.parquet --algorithm naibx(smothing=1) -o out/x",
        "`naibx` has no parameter `smothing`, did you mean `smoothing`?; it has: event, counts, smoothing, size, allow_empty, sets, decide, max_labels, max_features",
    ),
    (
        "fit t.parquet --algorithm naibx(sets=1..3) -o out/x",
        "parameter `sets=1..3`: a range of values can only be evaluated; give one value",
    ),
    (
        "evaluate t.parquet --algorithm nabx",
        "there is no algorithm `nabx`, did you mean `naibx`?; there are: {algorithms}",
    ),
    (
        "fit t.parquet --algorithm naibx(size=given) -o out/x",
        "`naibx(size=given)` asks for the true size of each set, which only `evaluate` knows: name a column that holds it, as in size=given(n)",
    ),
    (
        "fit t.parquet --counts wrd_* -o out/x",
        "train_labels: no feature column matches `wrd_*`, of those that hold counts; the columns are: f0, f1, f2, f3",
    ),
    (
        "evaluate t.parquet --algorithm naibx(counts='f1|wrd')",
        "no feature column matches `wrd`, of those that hold counts; the columns are: f0, f1, f2, f3",
    ),
    (
        "sql \"SELECT * FROM t.parquet\"",
        "there is no table `t.parquet`: a file stands in quotes, FROM 't.parquet'",
    ),
    // Models.
    (
        "score --model no.labelflow t.parquet -o out/x.parquet",
        "model file `no.labelflow` does not exist: check the path",
    ),
    (
        "score --model text.labelflow t.parquet -o out/x.parquet",
        "model file `text.labelflow`: this is no labelflow model, or it is cut short: use a whole model file",
    ),
    (
        "score --model empty.labelflow t.parquet -o out/x.parquet",
        "model file `empty.labelflow`: this is no labelflow model, or it is cut short: use a whole model file",
    ),
    (
        "score --model cut.labelflow t.parquet -o out/x.parquet",
        "model file `cut.labelflow`: this is no labelflow model, or it is cut short: use a whole model file",
    ),
    (
        "score --model table.labelflow t.parquet -o out/x.parquet",
        "model file `table.labelflow`: this is no labelflow model, or it is cut short: use a whole model file",
    ),
    (
        "inspect newer.labelflow",
        "model file `newer.labelflow`: the model has format version 99 and this build reads up to 2: update labelflow",
    ),
    (
        "inspect flipped.labelflow",
        "model file `flipped.labelflow`: the model is damaged: its bytes do not have the digest they carry; use a whole copy",
    ),
    (
        "merge m.labelflow flipped.labelflow -o out/x",
        "model file `flipped.labelflow`: the model is damaged: its bytes do not have the digest they carry; use a whole copy",
    ),
    (
        "merge m.labelflow m2.labelflow -o out/x",
        "model file `m2.labelflow`: models of different specs do not fit together: `naibx` and `naibx(smoothing=2)`; train them alike",
    ),
    (
        "sql \"SELECT subtract_model((SELECT m FROM 'half.parquet'), 'm.labelflow')\"",
        "subtract_model: more rows are taken away than were added: take away only what this model has learned",
    ),
    (
        "sql \"SELECT subtract_model('m.labelflow', 'm2.labelflow')\"",
        "subtract_model: models of different specs do not fit together: `naibx` and `naibx(smoothing=2)`; train them alike",
    ),
    // Outputs.
    (
        "fit t.parquet -o no/x.labelflow",
        "the directory `no` of output `no/x.labelflow` does not exist: create it first",
    ),
    ("fit t.parquet -o out", "output `out` is a directory: name a file in it"),
    (
        "score --model m.labelflow t.parquet -o no/x.parquet",
        "the directory `no` of output `no/x.parquet` does not exist: create it first",
    ),
    (
        "score --model m.labelflow t.parquet -o out/x.txt",
        "output `out/x.txt`: give the file one of the extensions .parquet, .csv, .json, .jsonl, .arrow, .arrows",
    ),
    (
        "generate out/x.txt",
        "output `out/x.txt`: give the file one of the extensions .parquet, .csv, .json, .jsonl, .arrow, .arrows",
    ),
    (
        "import t.parquet out/x.svm",
        "output `out/x.svm`: give the file one of the extensions .parquet, .csv, .json, .jsonl, .arrow, .arrows",
    ),
    (
        "import t.parquet --labels tags out/x.arrow",
        "`t.parquet` has no label column `tags`; the columns are: id, f0, f1, f2, f3, labels",
    ),
    (
        "merge m.labelflow m.labelflow -o no/x",
        "the directory `no` of output `no/x` does not exist: create it first",
    ),
    // Numbers.
    ("generate --labels 0 out/x.parquet", "parameter `labels` must be from 1 to 1000000, got 0"),
    (
        "generate --cardinality 99 out/x.parquet",
        "parameter `cardinality` must be above 0 and at most the number of labels (10), got 99",
    ),
    (
        "evaluate t.parquet --folds 1",
        "--folds is `1`: write how many, from 2 on, such as 10, or 10x5 to do it five times",
    ),
    (
        "evaluate t.parquet --folds 201",
        "--folds is 201: give a number from 2 to the number of rows, 200",
    ),
    (
        "evaluate t.parquet --folds 0.5",
        "--folds is `0.5`: write how many, from 2 on, such as 10, or 10x5 to do it five times",
    ),
    (
        "evaluate t.parquet --stratify all",
        "there is no stratification `all`; there are: none, iterative, rarest",
    ),
    (
        "describe t.parquet --labels tags",
        "`t.parquet` has no label column `tags`; name it with --labels, the columns are: id, f0, f1, f2, f3, labels",
    ),
    ("describe no.parquet", "file `no.parquet` does not exist: check the path"),
    (
        "evaluate t.parquet --split 2",
        "`2` is no split: write the share that trains, such as 0.66, or 0.66x10 to repeat it",
    ),
    ("sql SELECT --table x", "`--table x`: write it as --table name=file"),
];

#[test]
fn failures_are_one_sentence_and_leave_nothing() {
    let place = workplace();
    let before = place.files(".");
    let mut wrong = Vec::new();
    let algorithms: Vec<&str> = Registry::default().algorithms().iter().map(|a| a.name).collect();
    for (command, message) in FAILURES {
        let message = message.replace("{algorithms}", &algorithms.join(", "));
        let (code, text) = place.failure(&words(command));
        if (code, text.as_str()) != (2, format!("error: {message}").as_str()) {
            wrong.push(format!(
                "$ labelflow {command}\nexpected: error: {message}\ngot ({code}): {text}"
            ));
        }
        assert_eq!(place.files("out"), [""; 0], "labelflow {command}");
    }
    assert_eq!(place.files("."), before);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Words at spaces; what stands in quotes is one.
fn words(command: &str) -> Vec<&str> {
    let pieces = command.split('"').enumerate();
    pieces.flat_map(|(i, piece)| if i % 2 == 1 { vec![piece] } else { split(piece) }).collect()
}

/// The message is one line, whoever wrote it.
#[test]
fn errors_of_queries_are_one_line() {
    let place = Workplace::with_data();
    for query in [
        "SELECT",
        "SELECT nothing FROM 't.parquet'",
        "SELECT * FROM nothing",
        "SELECT hamming_score(labels) FROM 't.parquet'",
        "SELECT predict_labels()",
    ] {
        let (code, text) = place.failure(&["sql", query]);
        assert_eq!(code, 2, "{query}");
        assert!(text.starts_with("error: ") && text.lines().count() == 1, "{query}: {text}");
    }
}

/// Writing fails in the middle: the old file stays whole, and nothing else is left.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_old_file() {
    let place = workplace();
    place.ok(&split("generate --rows 20000 --features 4 --labels 5 --seed 3 big.parquet"));
    for name in ["keep.labelflow", "keep.parquet", "keep.csv", "keep.arrows", "keep.arrow"] {
        place.write(name, "old");
    }
    let before = place.files(".");
    for command in [
        "fit t.parquet -o keep.labelflow",
        "merge m.labelflow m.labelflow -o keep.labelflow",
        "score --model m.labelflow big.parquet -o keep.parquet",
        "score --model m.labelflow big.parquet -o keep.csv",
        "score --model m.labelflow big.parquet -o keep.arrows",
        "import big.parquet keep.arrow",
        "generate --rows 20000 keep.parquet",
    ] {
        // A limit on the size of files fails writes as a full disk does.
        let program = env!("CARGO_BIN_EXE_labelflow");
        let script = format!("trap '' XFSZ; ulimit -f 4; exec {program} {command}");
        let output =
            Command::new("sh").args(["-c", &script]).current_dir(place.dir()).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command}: {text}");
        let error = text.lines().last().unwrap_or_default();
        // Where the writing task ends before its cause is asked for, the way out is all there is.
        let told = error.contains("File too large") || error.contains("make room on the disk");
        assert!(error.starts_with("error: ") && told, "{command}: {text}");
        assert_eq!(place.files("."), before, "{command}");
        for name in ["keep.labelflow", "keep.parquet", "keep.csv", "keep.arrows", "keep.arrow"] {
            assert_eq!(place.bytes(name), b"old", "{command}");
        }
    }
}

/// What looks odd and is none of these: every command does its work.
#[test]
fn odd_rows_are_no_errors() {
    let place = Workplace::with_data();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    for (file, columns, rows) in [
        (
            "some_unlabelled",
            "f0, f1, f2, f3, CASE WHEN id % 2 = 0 THEN labels END AS labels",
            "100",
        ),
        ("unseen_labels", "f0, f1, f2, f3, ['never seen before'] AS labels", "200"),
        ("constant", "f0, 1.5 AS f1, f2, f3, labels", "200"),
        (
            "no_labels",
            "f0, f1, f2, f3, CASE WHEN id % 2 = 0 THEN labels ELSE [] END AS labels",
            "200",
        ),
        ("more_columns", "f0, f1, f2, f3, 7 AS g, labels", "200"),
        ("missing_values", "f0, CASE WHEN id % 2 = 0 THEN f1 END AS f1, f2, f3, labels", "200"),
    ] {
        place.rows(&format!("COPY (SELECT {columns} FROM 't.parquet') TO '{file}.parquet'"));
        let input = format!("{file}.parquet");
        place.ok(&["fit", &input, "-o", "n.labelflow"]);
        assert_eq!(place.rows("SELECT model_info('n.labelflow')['rows']"), [rows], "{file}");
        place.ok(&["score", "--model", "m.labelflow", &input, "-o", "s.parquet"]);
        assert_eq!(
            place.rows("SELECT count(predicted_labels) FROM 's.parquet'"),
            ["200"],
            "{file}"
        );
        place.ok(&["evaluate", &input, "--folds", "2"]);
    }
    place.rows("COPY (SELECT * FROM 't.parquet' WHERE id = 3) TO 'one.parquet'");
    place.ok(&split("fit one.parquet -o one.labelflow"));
    place.ok(&split("score --model one.labelflow t.parquet -o s.parquet"));
    assert_eq!(place.rows("SELECT count(predicted_labels) FROM 's.parquet'"), ["200"]);
    place.ok(&split("score --model m.labelflow one.parquet -o s.parquet"));
    assert_eq!(place.rows("SELECT count(predicted_labels) FROM 's.parquet'"), ["1"]);
}

/// A query that fails over good files does not blame them.
#[test]
fn files_are_not_blamed_for_queries() {
    let place = Workplace::with_data();
    for file in ["t.parquet", "t.csv", "t.json", "t.arrow", "t.arrows"] {
        if file != "t.parquet" {
            place.ok(&["import", "t.parquet", file]);
        }
        let query = format!("SELECT max(1 / (id - id)) FROM '{file}'");
        let (code, text) = place.failure(&["sql", &query]);
        assert_eq!(
            (code, text.as_str()),
            (2, "error: Arrow error: Divide by zero error"),
            "{file}"
        );
    }
    // A column that is not read may hold what it likes.
    let rows = (0..10_000).map(|i| format!("{i},{i}\n")).collect::<String>();
    place.write("two.csv", format!("x,y\n{rows}1,y\nx,2\n"));
    let (_, text) = place.failure(&["sql", "SELECT max(x) FROM 'two.csv'"]);
    assert!(
        text.starts_with("error: file `two.csv`, line 10003: the value 'x' of column `x`"),
        "{text}"
    );
}

#[test]
fn decay_by_a_text_is_refused() {
    let place = Workplace::with_data();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    let (code, text) = place.failure(&["sql", "SELECT decay_model('m.labelflow', 'half')"]);
    assert_eq!(code, 2);
    assert!(text.contains("decay_model: "), "{text}");
}

#[test]
fn bad_usage_is_one_sentence() {
    let place = Workplace::with_data();
    for (command, message) in [
        ("nothing", "unrecognized subcommand 'nothing'"),
        ("fit t.parquet", "the following required arguments were not provided: --output <FILE>"),
        (
            "fit t.parquet --threads x -o m",
            "invalid value 'x' for '--threads <N>': invalid digit found in string",
        ),
        ("merge -o x", "the following required arguments were not provided: <MODEL>..."),
        (
            "score --top -1",
            "unexpected argument '-1' found; tip: to pass '-1' as a value, use '-- -1'",
        ),
        (
            "describe t.parquet --format x",
            "invalid value 'x' for '--format <FORMAT>' [possible values: table, csv, json]",
        ),
    ] {
        let expected = format!("error: {message}; for more information, try '--help'");
        assert_eq!(place.failure(&split(command)), (2, expected), "{command}");
    }
    // Without any argument, help is what is wanted.
    let (code, text) = place.failure(&[]);
    assert!(code == 2 && text.contains("Usage: labelflow <COMMAND>"), "{text}");
}

#[test]
fn an_old_output_stays_whole() {
    let place = workplace();
    place.write("keep.labelflow", "old");
    place.write("keep.parquet", "old");
    for command in [
        "fit infinite.parquet -o keep.labelflow",
        "fit null_label.parquet -o keep.labelflow",
        "merge m.labelflow m2.labelflow -o keep.labelflow",
        "score --model m.labelflow infinite.parquet -o keep.parquet",
        "score --model m.labelflow narrow.parquet -o keep.parquet",
        "import no.arff keep.parquet",
    ] {
        place.failure(&split(command));
        assert_eq!(place.bytes("keep.labelflow"), b"old", "{command}");
        assert_eq!(place.bytes("keep.parquet"), b"old", "{command}");
    }
    // And is replaced when the command works.
    place.ok(&split("fit t.parquet -o keep.labelflow"));
    assert_eq!(place.bytes("keep.labelflow"), place.bytes("m.labelflow"));
}
