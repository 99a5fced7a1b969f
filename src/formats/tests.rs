//! The corners of ARFF, each with its values.

mod arrow_file;
mod errors;
mod label_lists;
mod real_files;
mod svmlight;

use arrow::array::{Array, AsArray, ListArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type};

use super::{ArffReader, LABELS_METADATA_KEY};
use crate::error::{Error, Result};

/// A reader of `text` with these labels; none means that the header tells.
fn open(text: &str, labels: &[&str]) -> Result<ArffReader> {
    let names: Vec<String> = labels.iter().map(|l| l.to_string()).collect();
    let labels = (!names.is_empty()).then_some(names.as_slice());
    ArffReader::try_new("t.arff", std::io::Cursor::new(text.as_bytes().to_vec()), labels)
}

/// The only batch of `text`.
fn read(text: &str, labels: &[&str]) -> RecordBatch {
    let batches: Vec<_> = open(text, labels).unwrap().collect::<Result<_>>().unwrap();
    assert_eq!(batches.len(), 1);
    batches.into_iter().next().unwrap()
}

/// The error that reading `text` ends with.
fn failure(text: &str, labels: &[&str]) -> Error {
    open(text, labels).and_then(|r| r.collect::<Result<Vec<_>>>()).unwrap_err()
}

/// The names of the columns.
fn column_names(batch: &RecordBatch) -> Vec<String> {
    batch.schema().fields().iter().map(|f| f.name().clone()).collect()
}

fn numbers(batch: &RecordBatch, column: &str) -> Vec<Option<f64>> {
    batch.column_by_name(column).unwrap().as_primitive::<Float64Type>().iter().collect()
}

fn flags(batch: &RecordBatch, column: &str) -> Vec<Option<bool>> {
    batch.column_by_name(column).unwrap().as_boolean().iter().collect()
}

fn texts(batch: &RecordBatch, column: &str) -> Vec<Option<String>> {
    let column = batch.column_by_name(column).unwrap().as_string::<i32>();
    column.iter().map(|t| t.map(String::from)).collect()
}

/// The last column, one text per row: names joined by `|`.
fn labels(batch: &RecordBatch) -> Vec<Option<String>> {
    let lists: &ListArray = batch.columns().last().unwrap().as_list();
    lists
        .iter()
        .map(|list| {
            let list = list?;
            let names: Vec<&str> = list.as_string::<i32>().iter().flatten().collect();
            Some(names.join("|"))
        })
        .collect()
}

/// A map column, one text per row: `key=value` joined by `|`.
fn entries(batch: &RecordBatch, column: &str) -> Vec<String> {
    let maps = batch.column_by_name(column).unwrap().as_map();
    let row = |row: usize| {
        let pairs = maps.value(row);
        let (keys, values) = (pairs.column(0).as_string::<i32>(), pairs.column(1));
        let value = |i: usize| match values.data_type() {
            _ if values.is_null(i) => "null".to_string(),
            DataType::Boolean => values.as_boolean().value(i).to_string(),
            _ => values.as_primitive::<Float64Type>().value(i).to_string(),
        };
        let pair = |i: usize| format!("{}={}", keys.value(i), value(i));
        (0..keys.len()).map(pair).collect::<Vec<_>>().join("|")
    };
    (0..maps.len()).map(row).collect()
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|t| Some(t.to_string())).collect()
}

#[test]
fn dense_columns_have_the_type_of_their_attribute() {
    let batch = read(
        "@relation r\n@attribute a numeric\n@attribute b real\n@attribute c integer\n\
         @attribute d {1, 0}\n@attribute e {red,green}\n@attribute f string\n\
         @attribute g date \"yyyy-MM-dd\"\n@attribute y {0,1}\n@attribute z {0,1}\n@data\n\
         1.5,-2e3,7,1,green,hello,2020-01-02,0,1\n?,?,?,?,?,?,?,1,1\n0,0,0,0,red,'?','',0,0\n",
        &["z", "y"],
    );
    assert_eq!(column_names(&batch), ["a", "b", "c", "d", "e", "f", "g", "labels"]);
    assert_eq!(numbers(&batch, "a"), [Some(1.5), None, Some(0.0)]);
    assert_eq!(numbers(&batch, "b"), [Some(-2000.0), None, Some(0.0)]);
    assert_eq!(numbers(&batch, "c"), [Some(7.0), None, Some(0.0)]);
    assert_eq!(flags(&batch, "d"), [Some(true), None, Some(false)]);
    assert_eq!(texts(&batch, "e"), [Some("green".into()), None, Some("red".into())]);
    assert_eq!(texts(&batch, "f"), [Some("hello".into()), None, Some("?".into())]);
    assert_eq!(texts(&batch, "g"), [Some("2020-01-02".into()), None, Some(String::new())]);
    assert_eq!(labels(&batch), some(&["z", "z|y", ""]));
}

#[test]
fn the_labels_field_declares_labels_that_never_occur() {
    let text = "@attribute x numeric\n@attribute 'a \"b' {0,1}\n@attribute c {0,1}\n@data\n1,0,0\n";
    let reader = open(text, &["c", "a \"b"]).unwrap();
    assert_eq!(reader.declared_labels(), ["c", "a \"b"]);
    assert_eq!(reader.declared_features(), ["x"]);
    let schema = reader.schema();
    let field = schema.field(1);
    assert_eq!(field.metadata()[LABELS_METADATA_KEY], r#"["c","a \"b"]"#);
    let DataType::List(item) = field.data_type() else { panic!("{field}") };
    assert_eq!((item.name().as_str(), item.is_nullable()), ("item", true));
    assert_eq!(item.data_type(), &DataType::Utf8);
}

#[test]
fn a_missing_label_makes_the_row_unlabelled() {
    let head = "@attribute x numeric\n@attribute a {0,1}\n@attribute b {0,1}\n@data\n";
    let dense = read(&format!("{head}1,1,?\n2,?,0\n3,0,1\n"), &["a", "b"]);
    assert_eq!(labels(&dense), [None, None, Some("b".into())]);
    let sparse = read(&format!("{head}{{1 1,2 ?}}\n{{}}\n{{1 1}}\n"), &["a", "b"]);
    assert_eq!(labels(&sparse), [None, Some(String::new()), Some("a".into())]);
}

#[test]
fn label_states_may_be_words_or_numbers() {
    let batch = read(
        "@attribute a {false,TRUE}\n@attribute b {no,yes}\n@attribute c numeric\n@data\n\
         TRUE,no,1.0\nfalse,yes,0\n",
        &["a", "b", "c"],
    );
    assert_eq!(labels(&batch), some(&["a|c", "b"]));
}

#[test]
fn sparse_numbers_are_a_map_without_zeros() {
    let batch = read(
        "@relation r\n@attribute a numeric\n@attribute b real\n@attribute y {0,1}\n@data\n\
         { 0 1.5 , 2 1 }\n{}\n{0 0, 1 ?}\n{1\t-inf,2 0}\n",
        &["y"],
    );
    assert_eq!(column_names(&batch), ["features", "labels"]);
    assert_eq!(entries(&batch, "features"), ["a=1.5", "", "b=null", "b=-inf"]);
    assert_eq!(labels(&batch), some(&["y", "", "", ""]));
}

#[test]
fn sparse_flags_alone_are_the_features() {
    let batch = read(
        "@attribute y {0,1}\n@attribute a {0,1}\n@attribute b {0, 1}\n@data\n{1 1,2 ?}\n{2 0}\n",
        &["y"],
    );
    assert_eq!(column_names(&batch), ["features", "labels"]);
    assert_eq!(entries(&batch, "features"), ["a=true|b=null", ""]);
}

#[test]
fn sparse_numbers_and_flags_are_two_maps() {
    let batch = read(
        "@attribute f {0,1}\n@attribute n numeric\n@attribute y {0,1}\n@data\n{0 1,1 2}\n{2 1}\n",
        &["y"],
    );
    assert_eq!(column_names(&batch), ["features", "flags", "labels"]);
    assert_eq!(entries(&batch, "features"), ["n=2", ""]);
    assert_eq!(entries(&batch, "flags"), ["f=true", ""]);
    assert_eq!(labels(&batch), some(&["", "y"]));
}

#[test]
fn sparse_rows_default_to_the_first_nominal_value() {
    let batch = read(
        "@attribute c {red,green}\n@attribute n numeric\n@attribute s string\n@attribute o {1,0}\n\
         @attribute y {0,1}\n@attribute z {1,0}\n@data\n\
         {0 green,2 'a, b',3 0,5 0}\n{}\n{4 1,5 1}\n{0 ?,2 ?,3 ?}\n",
        &["z", "y"],
    );
    assert_eq!(column_names(&batch), ["features", "c", "s", "o", "labels"]);
    assert_eq!(
        texts(&batch, "c"),
        [Some("green".into()), Some("red".into()), Some("red".into()), None]
    );
    assert_eq!(texts(&batch, "s"), [Some("a, b".into()), None, None, None]);
    assert_eq!(flags(&batch, "o"), [Some(false), Some(true), Some(true), None]);
    assert_eq!(labels(&batch), some(&["", "z", "z|y", "z"]));
}

#[test]
fn columns_whose_name_is_taken_get_underscores() {
    let sparse = read(
        "@attribute features numeric\n@attribute features_ numeric\n@attribute flags {0,1}\n\
         @attribute labels numeric\n@attribute y {0,1}\n@data\n{0 1,2 1}\n",
        &["y"],
    );
    assert_eq!(column_names(&sparse), ["features__", "flags_", "labels"]);
    let dense = read("@attribute labels numeric\n@attribute y {0,1}\n@data\n5,1\n", &["y"]);
    assert_eq!(column_names(&dense), ["labels_", "labels"]);
    assert_eq!(numbers(&dense, "labels_"), [Some(5.0)]);
    assert_eq!(labels(&dense), some(&["y"]));
}

#[test]
fn rows_of_the_other_form_are_read() {
    let head = "@attribute a numeric\n@attribute c {u,v}\n@attribute f {0,1}\n\
                @attribute y {0,1}\n@data\n";
    let sparse = read(&format!("{head}{{0 3}}\n0,v,1,1\n7,u,0,0\n"), &["y"]);
    assert_eq!(entries(&sparse, "features"), ["a=3", "", "a=7"]);
    assert_eq!(entries(&sparse, "flags"), ["", "f=true", ""]);
    assert_eq!(texts(&sparse, "c"), some(&["u", "v", "u"]));
    assert_eq!(labels(&sparse), some(&["", "y", ""]));
    let dense = read(&format!("{head}1,v,1,0\n{{1 v,3 1}}\n{{}}\n"), &["y"]);
    assert_eq!(numbers(&dense, "a"), [Some(1.0), Some(0.0), Some(0.0)]);
    assert_eq!(texts(&dense, "c"), some(&["v", "v", "u"]));
    assert_eq!(flags(&dense, "f"), [Some(true), Some(false), Some(false)]);
    assert_eq!(labels(&dense), some(&["", "y", ""]));
}

#[test]
fn comments_case_blank_lines_line_ends_and_bom_do_not_matter() {
    let batch = read(
        "\u{feff}% about\r\n\r\n@RELATION 'r' %50\r\n  % more\r\n@Attribute a\tNUMERIC % unit\r\n\
         @ATTRIBUTE y {0,1} % label\r\n\r\n@DATA % rows\r\n% one\r\n\r\n \
         1 ,\t1 % row\r\n  2\t,0\r\n3\t1\r\n4,1",
        &["y"],
    );
    assert_eq!(numbers(&batch, "a"), [Some(1.0), Some(2.0), Some(3.0), Some(4.0)]);
    assert_eq!(labels(&batch), some(&["y", "", "y", "y"]));
}

#[test]
fn names_and_values_may_be_quoted_and_escaped() {
    let batch = read(
        "@attribute 'a b' numeric\n@attribute \"c,\\\"d\\\" %\" { 'x y' , \"p}q\", New York,é}\n\
         @attribute k/-_.%$ string\n@attribute 'Swainson\\'s Thrush' {0,1}\n@data\n\
         '1.5','x y','it\\'s\\ta \\\\ % {5}',1\n2,\"p}q\",50% off,'1'\n3, New York , ü ,0\n\
         4,é,\"\",0\n",
        &["Swainson's Thrush"],
    );
    assert_eq!(column_names(&batch), ["a b", "c,\"d\" %", "k/-_.%$", "labels"]);
    assert_eq!(numbers(&batch, "a b"), [Some(1.5), Some(2.0), Some(3.0), Some(4.0)]);
    assert_eq!(texts(&batch, "c,\"d\" %"), some(&["x y", "p}q", "New York", "é"]));
    assert_eq!(texts(&batch, "k/-_.%$"), some(&["it's\ta \\ % {5}", "50% off", "ü", ""]));
    assert_eq!(labels(&batch), some(&["Swainson's Thrush", "Swainson's Thrush", "", ""]));
}

#[test]
fn infinite_and_undefined_numbers_pass_through() {
    let batch = read(
        "@attribute a numeric\n@attribute y {0,1}\n@data\n1e400,0\n-Infinity,0\nNaN,0\n",
        &["y"],
    );
    let values = numbers(&batch, "a");
    assert_eq!(values[..2], [Some(f64::INFINITY), Some(f64::NEG_INFINITY)]);
    assert!(values[2].unwrap().is_nan());
}

#[test]
fn a_file_without_rows_has_a_dense_schema_and_no_batch() {
    let text = "@attribute a numeric\n@attribute y {0,1}\n@data\n\n% nothing\n";
    let mut reader = open(text, &["y"]).unwrap();
    assert_eq!(reader.schema().field(0).data_type(), &DataType::Float64);
    assert!(reader.next().is_none());
    assert!(reader.next().is_none());
}

#[test]
fn batches_have_the_size_asked_for() {
    let mut text = String::from("@attribute a numeric\n@attribute y {0,1}\n@data\n");
    (0..10).for_each(|i| text.push_str(&format!("{i},1\n")));
    let sizes = |rows: usize| -> Vec<usize> {
        let reader = open(&text, &["y"]).unwrap().with_batch_size(rows);
        reader.map(|b| b.unwrap().num_rows()).collect()
    };
    assert_eq!(sizes(4), [4, 4, 2]);
    assert_eq!(sizes(5), [5, 5]);
    assert_eq!(sizes(0), [1; 10]);
    let last = open(&text, &["y"]).unwrap().with_batch_size(4).last().unwrap().unwrap();
    assert_eq!(numbers(&last, "a"), [Some(8.0), Some(9.0)]);
}

#[test]
fn the_reader_can_move_to_another_thread() {
    let reader = open("@attribute a numeric\n@attribute y {0,1}\n@data\n1,1\n", &["y"]).unwrap();
    let rows = std::thread::spawn(move || reader.map(|b| b.unwrap().num_rows()).sum::<usize>());
    assert_eq!(rows.join().unwrap(), 1);
}
