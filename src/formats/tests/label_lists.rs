//! Where the labels come from: lists beside the file, given names, MEKA headers.

use std::fs;
use std::path::Path;

use super::{failure, labels, open, read, some};
use crate::error::{ErrorKind, Result};
use crate::formats::{ArffReader, LabelSource, mulan_xml};

const PLAIN: &str = "@relation r\n@attribute a {0,1}\n@attribute b {0,1}\n@attribute c {0,1}\n\
                     @data\n1,1,0\n";

fn xml(names: &[&str]) -> String {
    let labels: String = names.iter().map(|n| format!("<label name=\"{n}\"></label>")).collect();
    format!(
        "<?xml version=\"1.0\"?>\n\
         <labels xmlns=\"http://mulan.sourceforge.net/labels\">{labels}</labels>"
    )
}

fn declared(path: &Path, source: &LabelSource) -> Result<Vec<String>> {
    Ok(ArffReader::try_open(path, source)?.declared_labels().to_vec())
}

#[test]
fn auto_finds_the_list_beside_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for name in ["x.arff", "x-train.arff", "x-test.arff", "y-train.arff"] {
        fs::write(at(name), PLAIN).unwrap();
    }
    fs::write(at("x.xml"), xml(&["c", "a"])).unwrap();
    for name in ["x.arff", "x-train.arff", "x-test.arff"] {
        assert_eq!(declared(&at(name), &LabelSource::Auto).unwrap(), ["c", "a"], "{name}");
    }
    fs::write(at("x-train.xml"), xml(&["b"])).unwrap();
    assert_eq!(declared(&at("x-train.arff"), &LabelSource::Auto).unwrap(), ["b"]);
    let error = declared(&at("y-train.arff"), &LabelSource::Auto).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("y-train.arff`: does not say which attributes are labels"));
    assert!(error.to_string().contains("`--labels-xml FILE`"), "{error}");
    let given = LabelSource::Xml(at("x.xml"));
    assert_eq!(declared(&at("y-train.arff"), &given).unwrap(), ["c", "a"]);
    let names = LabelSource::Names(vec!["b".into(), "a".into()]);
    assert_eq!(declared(&at("x.arff"), &names).unwrap(), ["b", "a"]);
}

#[test]
fn a_list_wins_over_a_meka_header() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.arff");
    fs::write(&path, PLAIN.replace("@relation r", "@relation 'm: -C 2'")).unwrap();
    assert_eq!(declared(&path, &LabelSource::Auto).unwrap(), ["a", "b"]);
    fs::write(path.with_extension("xml"), xml(&["c"])).unwrap();
    assert_eq!(declared(&path, &LabelSource::Auto).unwrap(), ["c"]);
}

#[test]
fn labels_that_are_no_attributes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.arff");
    fs::write(&path, PLAIN).unwrap();
    fs::write(path.with_extension("xml"), xml(&["a", "zebra"])).unwrap();
    let error = declared(&path, &LabelSource::Auto).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let message = error.to_string();
    assert!(message.contains("x.arff`: the label list `"), "{message}");
    assert!(message.contains("x.xml` names the label `zebra`, which is no attribute"), "{message}");
}

#[test]
fn files_that_do_not_exist_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("none.arff");
    let error = declared(&path, &LabelSource::Auto).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("none.arff"), "{error}");
    fs::write(&path, PLAIN).unwrap();
    let error = declared(&path, &LabelSource::Xml(directory.path().join("no.xml"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("no.xml"), "{error}");
}

#[test]
fn given_names_are_checked() {
    let message = |names: &[&str]| failure(PLAIN, names).to_string();
    assert_eq!(
        message(&["a", "a"]),
        "file `t.arff`: the given list names the label `a` twice; delete one"
    );
    assert!(
        message(&["q"])
            .contains("the given list names the label `q`, which is no attribute of the file")
    );
    let none: Vec<String> = Vec::new();
    let error = ArffReader::try_new("t.arff", PLAIN.as_bytes(), Some(&none)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let text = "@attribute a {u,v}\n@attribute s string\n@data\n";
    for name in ["a", "s"] {
        let expected = format!("attribute `{name}` is named as a label but does not take");
        assert!(failure(text, &[name]).to_string().contains(&expected));
    }
}

#[test]
fn meka_headers_count_labels_from_either_end() {
    let with = |relation: &str| PLAIN.replace("@relation r", &format!("@relation {relation}"));
    for (relation, names) in [
        ("'Music: -C 2'", vec!["a", "b"]),
        ("'Music: -C -2'", vec!["b", "c"]),
        ("'Slashdot: -C 1 -split-number 1891' %50", vec!["a"]),
        ("'L: -C 2-weka.filters.unsupervised.attribute.Reorder-R76-last,first-75'", vec!["a", "b"]),
        ("\"x:-C\t1\"", vec!["a"]),
        ("Music: -C 3 % six", vec!["a", "b", "c"]),
        ("Music: -C 3\t% not -C 2 % nor -C 1", vec!["a", "b", "c"]),
    ] {
        assert_eq!(open(&with(relation), &[]).unwrap().declared_labels(), names, "{relation}");
    }
    for relation in ["'M: -C 0'", "'M: -C 4'", "'M: -C -4'"] {
        let error = failure(&with(relation), &[]);
        assert!(error.to_string().contains("does not fit the 3 attributes"), "{error}");
    }
    for relation in ["r", "M\t% -C 1 % two", "'M -c 2'", "'M-C 2'", "'M -C x'", "'M -Cost 2'"] {
        let error = failure(&with(relation), &[]);
        assert!(error.to_string().contains("does not say which attributes are labels"), "{error}");
    }
    assert_eq!(labels(&read(&with("'M: -C -2'"), &[])), some(&["b"]));
}

#[test]
fn xml_lists_may_be_nested() {
    let text = "<labels><label name='a'><label name='b &amp; c'/></label><other/>\
                <label name=\"Swainson's\"/></labels>";
    assert_eq!(mulan_xml::parse_labels(text).unwrap(), ["a", "b & c", "Swainson's"]);
    let kind = |text: &str| mulan_xml::parse_labels(text).unwrap_err().kind();
    assert_eq!(kind("<labels><label name='a'>"), ErrorKind::Corrupt);
    assert_eq!(kind("<labels/>"), ErrorKind::Data);
    assert_eq!(kind("<labels><label/></labels>"), ErrorKind::Data);
}
