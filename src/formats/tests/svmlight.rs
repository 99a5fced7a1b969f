//! svmlight text, row by row.

use super::labels;
use crate::error::{ErrorKind, Result};
use crate::formats::SvmlightReader;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type};

fn read(text: &str, rows: usize) -> Result<Vec<RecordBatch>> {
    let text = std::io::Cursor::new(text.as_bytes().to_vec());
    SvmlightReader::new("t.svm", text).with_batch_size(rows).collect()
}

fn entries(batch: &RecordBatch) -> Vec<Vec<(i64, f64)>> {
    let maps = batch.column(0).as_map();
    let keys = maps.keys().as_primitive::<Int64Type>();
    let values = maps.values().as_primitive::<Float64Type>();
    let row = |w: &[i32]| {
        (w[0] as usize..w[1] as usize).map(|i| (keys.value(i), values.value(i))).collect()
    };
    maps.value_offsets().windows(2).map(row).collect()
}

#[test]
fn the_first_comment_of_a_line_ends_it() {
    let batches = read("a 1:1\t# one # two\nb 2:1 # one\t# 3:x\nc#d 3:1\n", 100).unwrap();
    assert_eq!(labels(&batches[0]), ["a", "b", "c#d"].map(|s| Some(s.to_string())));
    assert_eq!(entries(&batches[0]), [[(1, 1.0)], [(2, 1.0)], [(3, 1.0)]]);
}

#[test]
fn rows_have_labels_and_entries() {
    let text = "\u{feff}# made by hand\n1,3 2:0.5 7:-1e3\r\n\n 4:1 # nothing on\nsport\t0:2\n? 1:1\n2,2 9:0 8:+3\n";
    let batches = read(text, 100).unwrap();
    assert_eq!(batches.len(), 1);
    let sets = ["1|3", "", "sport", "?", "2|2"].map(|s| (s != "?").then(|| s.to_string()));
    assert_eq!(labels(&batches[0]), sets);
    assert_eq!(
        entries(&batches[0]),
        [
            vec![(2, 0.5), (7, -1000.0)],
            vec![(4, 1.0)],
            vec![(0, 2.0)],
            vec![(1, 1.0)],
            vec![(8, 3.0)]
        ]
    );
}

#[test]
fn batches_end_at_their_size() {
    let batches = read("3 4 2\n1 1:1\n2 1:1\n1,2\n", 2).unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(batches[1].column(0).len(), 1);
    assert!(read("", 2).unwrap().is_empty());
    assert!(read("3 4 2\n", 2).unwrap().is_empty());
}

#[test]
fn entries_may_be_in_any_order() {
    assert_eq!(entries(&read("1 9:1 3:2\n", 9).unwrap()[0]), [vec![(9, 1.0), (3, 2.0)]]);
}

#[test]
fn mistakes_name_the_line() {
    for (line, sentence) in [
        ("1 2", "`2` is no feature; write index:value, and labels as a,b,c without blanks"),
        ("1, 3 2:1", "a label of `1,` is empty; write labels as a,b,c"),
        ("1 -2:1", "the index of `-2:1` is no whole number from 0; write index:value"),
        ("1 qid:1", "the index of `qid:1` is no whole number from 0; write index:value"),
        ("1 :1", "the index of `:1` is no whole number from 0; write index:value"),
        (
            "1 99999999999999999999:1",
            "the index of `99999999999999999999:1` is no whole number from 0; write index:value",
        ),
        ("1 2:", "the value of `2:` is no number; write index:value"),
        ("1 2:a", "the value of `2:a` is no number; write index:value"),
        ("1 2:1 3:1 2:2", "index 2 stands twice; list each feature once"),
    ] {
        let error = read(&format!("1 1:1\n{line}\n1 1:1\n"), 100).unwrap_err();
        assert_eq!(error.to_string(), format!("file `t.svm`, line 2: {sentence}"));
        assert_eq!(error.kind(), ErrorKind::Data);
    }
    let bytes = std::io::Cursor::new(b"1 1:1\n\xff\n".to_vec());
    let error = SvmlightReader::new("t.svm", bytes).collect::<Result<Vec<_>>>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "file `t.svm`, line 2: not UTF-8 text; convert the file to UTF-8"
    );
}

/// The same rows as a sparse ARFF file give the same model.
#[test]
fn svmlight_and_sparse_arff_give_the_same_model() {
    use crate::models::{Registry, Trainer};
    let arff = super::read(
        "@relation 'r: -C 2'\n@attribute 1 {0,1}\n@attribute 2 {0,1}\n@attribute 3 numeric\n\
         @attribute 4 numeric\n@data\n{0 1, 2 0.5}\n{0 1, 1 1, 3 2}\n{2 -1.25, 3 ?}\n{1 1}\n",
        &[],
    );
    let svm = read("1 3:0.5\n1,2 4:2\n3:-1.25 4:nan\n2\n", 100).unwrap();
    let model = |batch: &RecordBatch| {
        let mut trainer = Trainer::try_new(&Registry::default(), "naibx").unwrap();
        trainer.observe_batch(batch, "labels").unwrap();
        crate::store::to_bytes(&trainer.finish().unwrap()).unwrap()
    };
    assert_eq!(model(&arff), model(&svm[0]));
}
