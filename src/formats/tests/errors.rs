//! What each mistake in a file is answered with.

use super::{failure, open};
use crate::error::ErrorKind;

const HEAD: &str = "@relation r\n@attribute a numeric\n@attribute c {red,green}\n\
                    @attribute y {0,1}\n@data\n";

/// Asserts the kind and the whole sentence of the error for a row after [`HEAD`].
fn assert_row(row: &str, kind: ErrorKind, sentence: &str) {
    let error = failure(&format!("{HEAD}1,red,0\n{row}\n"), &["y"]);
    assert_eq!(error.to_string(), format!("file `t.arff`, line 7: {sentence}"));
    assert_eq!(error.kind(), kind);
}

/// Asserts the start of the error for a header line in line 1.
fn assert_header(line: &str, kind: ErrorKind, sentence: &str) {
    let error = failure(&format!("{line}\n@attribute y {{0,1}}\n@data\n"), &["y"]);
    let expected = format!("file `t.arff`, line 1: {sentence}");
    assert!(error.to_string().starts_with(&expected), "{error} is not {expected}");
    assert_eq!(error.kind(), kind);
}

#[test]
fn too_many_or_too_few_values() {
    let end = "write `?` for a missing value and quote values that hold commas";
    for (row, got) in [("1,red", 2), ("1,red,0,5", 4), ("red,0", 2), ("1,,0,0", 4)] {
        let sentence = format!("expected 3 values, one for each attribute, got {got}; {end}");
        assert_row(row, ErrorKind::Data, &sentence);
    }
}

#[test]
fn values_that_do_not_fit_their_attribute() {
    let undeclared = |attribute: &str, value: &str, set: &str| {
        format!(
            "attribute `{attribute}`: the value `{value}` is not among the declared values \
             {{{set}}}; correct it or declare it"
        )
    };
    let number = "attribute `a`: the value `x1` is not a number; \
                  write a number, or `?` when it is missing";
    for (row, sentence) in [
        ("1,blue,0", undeclared("c", "blue", "green, red")),
        ("{1 blue}", undeclared("c", "blue", "green, red")),
        ("x1,red,0", number.into()),
        ("{0 x1}", number.into()),
        ("1,red,2", undeclared("y", "2", "0, 1")),
        (",red,0", "attribute `a`: the value is empty; write `?` when it is missing".into()),
        ("1,red,", "attribute `y`: the value is empty; write `?` when it is missing".into()),
        ("{0}", "attribute `a`: the value is empty; write `?` when it is missing".into()),
    ] {
        assert_row(row, ErrorKind::Data, &sentence);
    }
}

#[test]
fn numeric_labels_are_0_or_1() {
    let text = "@attribute a numeric\n@attribute y numeric\n@data\n1,0.5\n";
    assert_eq!(
        failure(text, &["y"]).to_string(),
        "file `t.arff`, line 4: attribute `y`: the value `0.5` is no label state; write 0, 1 or `?`"
    );
}

#[test]
fn sparse_rows_out_of_order_or_range() {
    let order = "list each attribute once, in ascending order";
    for (row, sentence) in [
        ("{2 1,0 1}", format!("index 0 comes after index 2; {order}")),
        ("{0 1,0 1}", format!("index 0 comes after index 0; {order}")),
        ("{3 1}", "index 3 is out of range; the 3 attributes are numbered 0 to 2".into()),
        (
            "{99999999999999999999999 1}",
            "index 99999999999999999999999 is out of range; the 3 attributes are numbered 0 to 2"
                .into(),
        ),
        ("{a 1}", "expected the index of an attribute at `a 1}`; write {index value, ...}".into()),
        (
            "{-1 1}",
            "expected the index of an attribute at `-1 1}`; write {index value, ...}".into(),
        ),
        ("{0 1,}", "expected the index of an attribute at `}`; write {index value, ...}".into()),
        ("{0 1", "expected a comma or the closing brace at ``; write {index value, ...}".into()),
        ("{0 1} x", "`x` follows the closing brace; write one row on a line".into()),
    ] {
        assert_row(row, ErrorKind::Data, &sentence);
    }
}

#[test]
fn weights_are_not_supported() {
    let sentence = "instance weights are not supported; delete the `{weight}` after the row";
    for row in ["1,red,0,{5}", "1,red,0, {5}", "{0 1}, {5}", "{0 1} {5}"] {
        assert_row(row, ErrorKind::Unsupported, sentence);
    }
    assert_header(
        "@attribute a numeric {5}",
        ErrorKind::Unsupported,
        "attribute `a`: attribute weights",
    );
}

#[test]
fn quotes_must_be_closed_and_values_separated() {
    assert_row(
        "1,'red,0",
        ErrorKind::Data,
        "the quote that opens at `'red,0` is not closed; close it",
    );
    assert_row(
        "1,'red\\",
        ErrorKind::Data,
        "the quote that opens at `'red\\` is not closed; close it",
    );
    assert_row(
        "1,'red'0",
        ErrorKind::Data,
        "expected a comma before `0`; separate the values by commas",
    );
}

#[test]
fn headers_that_are_malformed() {
    for (line, kind, sentence) in [
        ("hello", ErrorKind::Data, "expected `@relation`, `@attribute` or `@data`, got `hello`"),
        ("@attribute", ErrorKind::Data, "an attribute has no name"),
        ("@attribute a", ErrorKind::Data, "attribute `a`: unknown type ``; use numeric"),
        ("@attribute a word", ErrorKind::Data, "attribute `a`: unknown type `word`; use numeric"),
        ("@attribute a b numeric", ErrorKind::Data, "attribute `a`: unknown type `b`; use numeric"),
        ("@attribute a numeric b", ErrorKind::Data, "attribute `a`: `b` follows the type"),
        (
            "@attribute a {x,y",
            ErrorKind::Data,
            "attribute `a`: expected a comma or the closing brace",
        ),
        ("@attribute a {x,,y}", ErrorKind::Data, "attribute `a`: declared value 2 is empty"),
        ("@attribute 'a {x}", ErrorKind::Data, "the quote that opens at `'a {x}` is not closed"),
        ("@attribute a relational", ErrorKind::Unsupported, "attribute `a`: relational attributes"),
        ("@data", ErrorKind::Data, "no attribute is declared before `@data`"),
    ] {
        assert_header(line, kind, sentence);
    }
}

#[test]
fn attributes_declared_twice() {
    let text = "@attribute a numeric\n@attribute 'a' string\n@data\n";
    assert_eq!(
        failure(text, &["a"]).to_string(),
        "file `t.arff`, line 2: attribute `a` is already declared in line 1; rename one"
    );
}

#[test]
fn a_file_without_data() {
    for text in ["@relation r\n@attribute y {0,1}\n", "", "% only\n"] {
        assert_eq!(
            failure(text, &["y"]).to_string(),
            "file `t.arff`: has no `@data` line; add it before the first row"
        );
    }
}

#[test]
fn bytes_that_are_not_utf8() {
    let bytes: &[u8] = b"@attribute a string\n@attribute y {0,1}\n@data\n\xe9,1\n";
    let error = super::ArffReader::try_new("t.arff", bytes, Some(&["y".to_string()])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "file `t.arff`, line 4: not UTF-8 text; convert the file to UTF-8"
    );
}

#[test]
fn long_values_are_cut_in_messages() {
    let error = failure(&format!("{HEAD}{},red,0\n", "x".repeat(5000)), &["y"]);
    assert!(error.to_string().len() < 200, "{error}");
}

#[test]
fn nothing_comes_after_an_error() {
    let mut reader = open(&format!("{HEAD}1,red,0\nbad\n1,red,0\n"), &["y"]).unwrap();
    assert!(reader.next().unwrap().is_err());
    assert!(reader.next().is_none());
    let mut reader = open(&format!("{HEAD}1,red,0\nbad\n"), &["y"]).unwrap().with_batch_size(1);
    assert_eq!(reader.next().unwrap().unwrap().num_rows(), 1);
    assert!(reader.next().unwrap().is_err());
    assert!(reader.next().is_none());
}
