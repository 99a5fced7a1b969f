//! Columns that a command needs and does not find, or is told to do without.

use crate::program::{Workplace, split};

/// `t.parquet` and its model `m.labelflow`, and in each directory `a` with all columns beside `b`,
/// which lacks the one that the directory is called after. `extra` is in `a` alone.
fn workplace(extension: &str) -> Workplace {
    let place = Workplace::with_data();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    for lacking in ["f1", "labels", "extra"] {
        std::fs::create_dir(place.path(lacking)).unwrap();
        let all = ["id", "f0", "f1", "f2", "f3", "labels"];
        let some: Vec<&str> = all.into_iter().filter(|column| *column != lacking).collect();
        let whole = if lacking == "extra" { "*, 1.5 AS extra" } else { "*" };
        for (columns, rows, file) in
            [(whole, "id < 120", "a"), (&some.join(", "), "id >= 120", "b")]
        {
            place.rows(&format!(
                "COPY (SELECT {columns} FROM 't.parquet' WHERE {rows} ORDER BY id) TO 'x.parquet'"
            ));
            place.ok(&["import", "x.parquet", &format!("{lacking}/{file}.{extension}")]);
        }
    }
    place
}

/// In files whose columns are declared to hold no NULL, too: those of `t.parquet` are.
#[test]
fn a_file_that_lacks_a_used_column_is_refused() {
    let place = workplace("parquet");
    let exclude = "leave the column out with `--exclude f1`, or leave the file out";
    let add = "leave the file out, or add the column, NULL where labels are not known";
    let need = "the model needs it: add it, or leave the file out";
    for (command, column, input, way_out) in [
        ("fit -o x f1", "f1", "f1", exclude),
        ("fit -o x --features f1 f1/*", "f1", "f1/*", exclude),
        ("evaluate --folds 2 f1", "f1", "f1", exclude),
        ("evaluate t.parquet --test f1", "f1", "f1", exclude),
        ("describe f1", "f1", "f1", exclude),
        ("fit -o x labels", "labels", "labels", add),
        ("evaluate --folds 2 labels", "labels", "labels", add),
        ("describe labels/", "labels", "labels/", add),
        ("score --model m.labelflow -o x.parquet f1", "f1", "f1", need),
    ] {
        let expected = format!(
            "error: file `{column}/b.parquet` has no column `{column}`, which other files of \
             `{input}` have: {way_out}"
        );
        assert_eq!(place.failure(&split(command)), (2, expected), "{command}");
    }
}

/// A column that is not used may be anywhere, and is NULL where it is not.
#[test]
fn a_column_that_is_not_used_may_be_missing() {
    let place = workplace("parquet");
    place.ok(&split("fit --threads 1 t.parquet --exclude f1 -o three.labelflow"));
    place.ok(&split("fit --threads 1 f1 --exclude f1 -o gap.labelflow"));
    assert_eq!(place.bytes("gap.labelflow"), place.bytes("three.labelflow"));
    place.ok(&split("describe f1 --exclude f1"));
    place.ok(&split("score --model m.labelflow labels -o s.parquet"));
    let counts = "SELECT count(*), count(labels), count(predicted_labels) FROM 's.parquet'";
    assert_eq!(place.rows(counts), ["200,120,200"]);
    place.ok(&split("score --model m.labelflow extra -o s.parquet"));
    let counts = "SELECT count(*), count(extra), sum(extra) FROM 's.parquet'";
    assert_eq!(place.rows(counts), ["200,120,180.0"]);
    let counts = "SELECT count(*), count(f1), count(labels) FROM 'f1'";
    assert_eq!(place.rows(counts), ["200,120,200"]);
    place.ok(&split("import f1 f1.json"));
    // What stands in the names of directories is in no file.
    for day in ["days/day=1", "days/day=2"] {
        std::fs::create_dir_all(place.path(day)).unwrap();
        std::fs::copy(place.path("t.parquet"), place.path(day).join("t.parquet")).unwrap();
    }
    place.ok(&split("fit days -o days.labelflow"));
    let features = place.rows("SELECT model_info('days.labelflow')['features']");
    assert_eq!(features, ["day;f0;f1;f2;f3"]);
}

/// DataFusion reads the columns of Arrow files by their places.
#[test]
fn arrow_files_have_the_same_columns_in_one_order() {
    let way_out = "Arrow files are read by the places of columns, so write them alike, or as \
                   Parquet, or read them apart";
    for extension in ["arrow", "arrows"] {
        let place = workplace(extension);
        std::fs::create_dir(place.path("order")).unwrap();
        for (file, columns) in [("a", "f0, f1, labels"), ("b", "f0, f1, labels"), ("c", "f1, f0")] {
            place.rows(&format!("COPY (SELECT {columns} FROM 't.parquet') TO 'x.parquet'"));
            place.ok(&["import", "x.parquet", &format!("order/{file}.{extension}")]);
        }
        for (table, file, what) in [
            ("f1", "f1/b", "column `f2` where `f1/a.EXT` has `f1`"),
            ("labels", "labels/b", "no column `labels`, which `labels/a.EXT` has"),
            ("extra", "extra/b", "no column `extra`, which `extra/a.EXT` has"),
            ("order", "order/c", "column `f1` where `order/a.EXT` has `f0`"),
        ] {
            let what = what.replace("EXT", extension);
            let expected = format!("error: file `{file}.{extension}` has {what}: {way_out}");
            let query = format!("SELECT f0 FROM '{table}'");
            for command in [
                &["sql", query.as_str()][..],
                &["fit", table, "-o", "x"],
                &["describe", table],
                &["evaluate", table],
                &["score", "--model", "m.labelflow", table, "-o", "x.parquet"],
            ] {
                assert_eq!(place.failure(command), (2, expected.clone()), "{command:?}");
            }
        }
        std::fs::remove_file(place.path(&format!("order/c.{extension}"))).unwrap();
        assert_eq!(place.rows("SELECT count(f1) FROM 'order'"), ["400"], "{extension}");
    }
}

/// JSON leaves out NULLs: a field that no row of a file has is NULL there.
#[test]
fn a_field_of_json_may_be_missing_anywhere() {
    let place = workplace("json");
    for (input, rows) in [("f1", "200"), ("labels", "120"), ("extra", "200")] {
        place.ok(&["fit", input, "-o", "x.labelflow"]);
        assert_eq!(place.rows("SELECT model_info('x.labelflow')['rows']"), [rows], "{input}");
    }
    place.ok(&split("score --model m.labelflow f1 -o s.parquet"));
}

/// `score` has the options of `fit`; what they say has to agree with the model.
#[test]
fn options_that_would_do_nothing_in_score_are_refused() {
    let place = Workplace::with_data();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    let score = |options: &str| {
        split("score --model m.labelflow t.parquet -o s.parquet")
            .into_iter()
            .chain(split(options))
            .map(String::from)
            .collect::<Vec<_>>()
    };
    let names = "the columns are: id, f0, f1, f2, f3, labels";
    let needs = |column: &str, option: &str| {
        format!(
            "the model needs column `{column}`, which {option} leaves out: score with it, or fit a \
             model without it"
        )
    };
    for (options, message) in [
        ("--exclude f1", needs("f1", "--exclude")),
        ("--exclude f*", format!("there is no feature column besides labels; {names}")),
        ("--features f0", needs("f1", "--features")),
        ("--features f* --exclude *2", needs("f2", "--exclude")),
        ("--labels f3", needs("f3", "--labels")),
        ("--labels nope", format!("no column matches `nope`; {names}")),
        ("--labels labels --labels l_*", format!("no column matches `l_*`; {names}")),
        ("--exclude nope", format!("no column matches `nope`; {names}")),
    ] {
        let words = score(options);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(place.failure(&words), (2, format!("error: {message}")), "{options}");
    }
    for options in ["", "--labels labels", "--features f*", "--exclude id --exclude labels"] {
        let words = score(options);
        place.ok(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let count = place.rows("SELECT count(predicted_labels) FROM 's.parquet'");
        assert_eq!(count, ["200"], "{options}");
    }
    // Columns that the model does not know may be left out, and need not be there.
    place.rows("COPY (SELECT f0, f1, f2, f3, 7 AS g FROM 't.parquet') TO 'new.parquet'");
    place.ok(&split("score --model m.labelflow new.parquet --exclude g -o s.parquet"));
    // Which column is the vector, and which text holds labels, has to be told.
    place.rows(
        "COPY (SELECT [f0, f1] AS v, array_to_string(labels, ';') AS tags FROM 't.parquet') \
         TO 'vector.parquet'",
    );
    place.ok(&split("fit vector.parquet --labels tags -o v.labelflow"));
    let command = split("score --model v.labelflow vector.parquet -o s.parquet");
    place.failure(&command);
    place.ok(&[&command[..], &["--labels", "tags"]].concat());
    place.write("codes.csv", "f0,f1,f2,f3,code\n1,2,3,4,007\n");
    place.ok(&split("score --model m.labelflow codes.csv --labels code -o s.csv"));
    assert!(String::from_utf8(place.bytes("s.csv")).unwrap().contains(",007,"));
}

/// The attributes of a sparse file are keys of maps.
#[test]
fn keys_are_not_chosen_one_by_one() {
    let place = Workplace::new();
    place.write(
        "s.arff",
        "@relation 'r: -C 1'\n@attribute l {0,1}\n@attribute abdominal numeric\n\
         @attribute b {0,1}\n@data\n{0 1, 1 3}\n{2 1}\n",
    );
    let keys = "such as the attributes of a sparse ARFF file, cannot be chosen one by one";
    for option in ["--exclude", "--features"] {
        let expected = format!(
            "error: no column matches `abdominal`; the columns are: features, flags, labels; the \
             keys of `features` and `flags`, {keys}"
        );
        let command = ["fit", "s.arff", option, "abdominal", "-o", "x"];
        assert_eq!(place.failure(&command), (2, expected));
    }
    place.ok(&split("fit s.arff --exclude flags -o x"));
    assert_eq!(place.rows("SELECT model_info('x')['features']"), ["abdominal"]);
}
