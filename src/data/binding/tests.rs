use super::*;
use crate::data::{FeatureId, FeatureKind, MISSING_CATEGORY, ValueId};
use arrow::array::{
    Array, BooleanArray, Float64Array, Int32Array, ListBuilder, MapBuilder, StringArray,
    StringBuilder, StructArray,
};
use arrow::array::{Float64Builder, Int64Array};
use arrow::datatypes::Field;
use std::sync::Arc;

fn columns(columns: Vec<(&str, ArrayRef)>) -> ArrayRef {
    Arc::new(StructArray::from(
        columns
            .into_iter()
            .map(|(n, a)| (Arc::new(Field::new(n, a.data_type().clone(), true)), a))
            .collect::<Vec<_>>(),
    ))
}

fn learn(root: &ArrayRef, options: &FeatureOptions) -> Result<(Space, Rows)> {
    let mut space = Space::default();
    let binding = Binding::declare(root, options, &mut space)?;
    let mut rows = Rows::default();
    binding.read_growing(root, &mut space.features, &mut rows)?;
    Ok((space, rows))
}

#[test]
fn mixed_columns_go_to_their_families() {
    let root = columns(vec![
        ("b", Arc::new(Float64Array::from(vec![Some(1.5), None])) as ArrayRef),
        ("a", Arc::new(Int32Array::from(vec![3, 4]))),
        ("flag", Arc::new(BooleanArray::from(vec![Some(true), None]))),
        ("city", Arc::new(StringArray::from(vec![Some("rome"), None]))),
    ]);
    let (space, rows) = learn(&root, &FeatureOptions::default()).unwrap();
    assert_eq!(space.features.dense_name(0), "a");
    assert_eq!(rows.dense_row(0), [3.0, 1.5]);
    assert_eq!(rows.dense_row(1)[0], 4.0);
    assert!(rows.dense_row(1)[1].is_nan() && rows.dense_missing);
    assert_eq!(rows.sparse.row(0), (&[0].map(FeatureId)[..], &[1.0][..]));
    assert!(rows.sparse.row(1).1[0].is_nan());
    assert_eq!(rows.category_row(0), [ValueId(0)]);
    assert_eq!(rows.category_row(1), [MISSING_CATEGORY]);
    assert_eq!(space.features.value(ValueId(0)), Some(("city", "rome")));
}

#[test]
fn columns_are_matched_by_name_and_missing_ones_are_named() {
    let one = columns(vec![
        ("x", Arc::new(Float64Array::from(vec![1.0])) as ArrayRef),
        ("y", Arc::new(Float64Array::from(vec![2.0]))),
    ]);
    let (space, _) = learn(&one, &FeatureOptions::default()).unwrap();
    let other = columns(vec![
        ("y", Arc::new(Int64Array::from(vec![20])) as ArrayRef),
        ("extra", Arc::new(StringArray::from(vec!["?"]))),
        ("x", Arc::new(Float64Array::from(vec![10.0]))),
    ]);
    let options = FeatureOptions::default();
    let binding = Binding::try_new(other.data_type(), &options, &space.features).unwrap();
    let mut rows = Rows::default();
    binding.read(&other, &space.features, &mut rows).unwrap();
    assert_eq!(rows.dense_row(0), [10.0, 20.0]);
    let short = columns(vec![("x", Arc::new(Float64Array::from(vec![1.0])) as ArrayRef)]);
    let error = Binding::try_new(short.data_type(), &options, &space.features).unwrap_err();
    assert!(error.to_string().contains("feature `y` of the model is missing"), "{error}");
}

#[test]
fn tokens_count_and_null_lists_are_absent() {
    let mut b = ListBuilder::new(StringBuilder::new());
    b.append_value([Some("go"), Some("rust"), Some("go")]);
    b.append_null();
    let root: ArrayRef = Arc::new(b.finish());
    let (space, rows) = learn(&root, &FeatureOptions::default()).unwrap();
    assert_eq!(space.features.sparse_kind(FeatureId(0)), FeatureKind::Count);
    assert_eq!(rows.sparse.row(0), (&[0, 1].map(FeatureId)[..], &[2.0, 1.0][..]));
    assert!(rows.has_open(0, 0) && !rows.has_open(1, 0));
    let binary = FeatureOptions { force: Some(FeatureKind::Binary), ..Default::default() };
    let (_, rows) = learn(&root, &binary).unwrap();
    assert_eq!(rows.sparse.row(0), (&[0, 1].map(FeatureId)[..], &[1.0, 1.0][..]));
}

#[test]
fn maps_stay_sparse_and_unknown_keys_are_left_out() {
    let mut b = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
    b.keys().append_value("w1");
    b.values().append_value(2.0);
    b.keys().append_value("w0");
    b.values().append_value(0.0);
    b.append(true).unwrap();
    let root: ArrayRef = Arc::new(b.finish());
    let (space, rows) = learn(&root, &FeatureOptions::default()).unwrap();
    assert_eq!(rows.sparse.row(0), (&[0].map(FeatureId)[..], &[2.0][..]));
    let mut b = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
    b.keys().append_value("new");
    b.values().append_value(1.0);
    b.append(true).unwrap();
    let new: ArrayRef = Arc::new(b.finish());
    let options = FeatureOptions::default();
    let binding = Binding::try_new(new.data_type(), &options, &space.features).unwrap();
    let mut rows = Rows::default();
    binding.read(&new, &space.features, &mut rows).unwrap();
    assert_eq!(rows.sparse.entries(), 0);
}

#[test]
fn vectors_are_dense_and_keep_their_length() {
    let list = |rows: Vec<Vec<f64>>| -> ArrayRef {
        let mut b = ListBuilder::new(Float64Builder::new());
        rows.into_iter().for_each(|r| b.append_value(r.into_iter().map(Some)));
        Arc::new(b.finish())
    };
    let good = list(vec![vec![1.0, 2.0], vec![3.0, 4.0]]);
    let (space, rows) = learn(&good, &FeatureOptions::default()).unwrap();
    assert_eq!(space.features.dense_len(), 2);
    assert_eq!(rows.dense_row(1), [3.0, 4.0]);
    let error = learn(&list(vec![vec![1.0, 2.0], vec![3.0]]), &FeatureOptions::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("the list of numbers holds a vector of 1 numbers, [3]"), "{error}");
    let named = columns(vec![("v", list(vec![vec![1.0, 2.0], vec![0.0, f64::INFINITY]]))]);
    let error = learn(&named, &FeatureOptions::default()).unwrap_err();
    assert!(error.to_string().contains("feature `v.1` holds an infinite value"), "{error}");
    let good = columns(vec![("v", list(vec![vec![1.0, 2.0]]))]);
    let (space, _) = learn(&good, &FeatureOptions::default()).unwrap();
    let other = columns(vec![("w", list(vec![vec![1.0, 2.0]]))]);
    let binding = Binding::try_new(other.data_type(), &FeatureOptions::default(), &space.features);
    let error = binding.unwrap_err().to_string();
    assert!(error.starts_with("column `v` of the model is missing in the input"), "{error}");
    let named = columns(vec![("v", list(vec![vec![1.0; 6], vec![0.5; 5]]))]);
    let error = learn(&named, &FeatureOptions::default()).unwrap_err().to_string();
    let text = "column `v` holds a vector of 5 numbers, [0.5, 0.5, 0.5, 0.5, ...], where 6 are";
    assert!(error.starts_with(text), "{error}");
}

#[test]
fn infinity_and_unusable_types_name_the_column() {
    let root = columns(vec![("x", Arc::new(Float64Array::from(vec![f64::INFINITY])) as ArrayRef)]);
    let error = learn(&root, &FeatureOptions::default()).unwrap_err();
    assert!(error.to_string().contains("feature `x` holds an infinite value"), "{error}");
    let dates: ArrayRef = Arc::new(arrow::array::Date32Array::from(vec![1]));
    let error = learn(&columns(vec![("day", dates)]), &FeatureOptions::default()).unwrap_err();
    assert!(error.to_string().contains("column `day` has type Date32"), "{error}");
}

#[test]
fn prefixes_keep_two_token_columns_apart() {
    let tokens = || -> ArrayRef {
        let mut b = ListBuilder::new(StringBuilder::new());
        b.append_value([Some("rust")]);
        Arc::new(b.finish())
    };
    let root = columns(vec![("title", tokens()), ("body", tokens())]);
    let (space, rows) = learn(&root, &FeatureOptions::default()).unwrap();
    assert_eq!(space.features.sparse_len(), 2);
    assert_eq!(space.features.sparse_name(FeatureId(0)), "title.rust");
    assert_eq!(rows.sparse.row(0).0, [0, 1].map(FeatureId));
}

#[test]
fn a_number_is_one_category_whatever_its_type() {
    let options = FeatureOptions { force: Some(FeatureKind::Category), ..Default::default() };
    let decimal = arrow::array::Decimal128Array::from(vec![100, 150, 0, -10]);
    let decimal = decimal.with_precision_and_scale(9, 2).unwrap();
    let columns_of: Vec<ArrayRef> = vec![
        Arc::new(Float64Array::from(vec![1.0, 1.5, -0.0, f64::NAN, 1e300, 1e-300])),
        Arc::new(arrow::array::Float32Array::from(vec![1.0, 1.5, 0.0])),
        Arc::new(Int64Array::from(vec![1, i64::MAX])),
        Arc::new(decimal),
    ];
    let texts = |column: ArrayRef| -> Vec<Option<String>> {
        let (space, rows) = learn(&columns(vec![("c", column)]), &options).unwrap();
        let text = |&v: &ValueId| space.features.value(v).map(|(_, text)| text.to_string());
        rows.categories.iter().map(text).collect()
    };
    let known = |texts: &[&str]| texts.iter().map(|t| Some(t.to_string())).collect::<Vec<_>>();
    let mut floats = known(&["1", "1.5", "0", "", "1e300", "1e-300"]);
    floats[3] = None;
    let mut columns_of = columns_of.into_iter().map(texts);
    assert_eq!(columns_of.next(), Some(floats));
    assert_eq!(columns_of.next(), Some(known(&["1", "1.5", "0"])));
    assert_eq!(columns_of.next(), Some(known(&["1", "9223372036854775807"])));
    assert_eq!(columns_of.next(), Some(known(&["1", "1.5", "0", "-0.1"])));
}

#[test]
fn a_binary_key_that_stands_twice_is_present_once() {
    let mut b = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
    for (key, value) in [("b", 1.0), ("a", 3.0), ("b", f64::NAN), ("a", 2.0), ("c", 0.0)] {
        b.keys().append_value(key);
        b.values().append_value(value);
    }
    b.append(true).unwrap();
    let root: ArrayRef = Arc::new(b.finish());
    let options = FeatureOptions { force: Some(FeatureKind::Binary), ..Default::default() };
    let (space, rows) = learn(&root, &options).unwrap();
    assert_eq!(rows.sparse.row(0), (&[0, 1].map(FeatureId)[..], &[1.0, 1.0][..]));
    assert_eq!(space.features.sparse_len(), 2, "a key that is zero is not learned");
}

#[test]
fn a_name_belongs_to_one_column() {
    let text = || -> ArrayRef { Arc::new(StringArray::from(vec!["rome"])) };
    let number = || -> ArrayRef { Arc::new(Float64Array::from(vec![1.0])) };
    let flag = || -> ArrayRef { Arc::new(BooleanArray::from(vec![true])) };
    let tokens = |token: &str| -> ArrayRef {
        let mut b = ListBuilder::new(StringBuilder::new());
        b.append_value([Some(token)]);
        Arc::new(b.finish())
    };
    for inner in [text(), number(), flag()] {
        for outer in [text(), number(), flag()] {
            let twice = columns(vec![("a", columns(vec![("b", inner.clone())])), ("a.b", outer)]);
            let error = learn(&twice, &FeatureOptions::default()).unwrap_err();
            assert!(error.to_string().contains("there are two features `a.b`"), "{error}");
        }
    }
    for other in [text(), number(), flag()] {
        let mixed = |token| columns(vec![("m", tokens(token)), ("m.k", other.clone())]);
        let error = learn(&mixed("k"), &FeatureOptions::default()).unwrap_err();
        let said = "feature `m.k` is a key or token of column `m`, and of another column too";
        assert!(error.to_string().contains(said), "{error}");
        // While scoring, the token is one that is not known.
        let (space, _) = learn(&mixed("z"), &FeatureOptions::default()).unwrap();
        let binding =
            Binding::try_new(mixed("k").data_type(), &FeatureOptions::default(), &space.features);
        let mut rows = Rows::default();
        binding.unwrap().read(&mixed("k"), &space.features, &mut rows).unwrap();
        let flags = usize::from(other.data_type() == &DataType::Boolean);
        assert_eq!(rows.sparse.entries(), flags);
    }
}

#[test]
fn a_given_size_is_a_whole_number() {
    let options = FeatureOptions { given_size: Some("n".to_string()), ..Default::default() };
    let with = |n: ArrayRef| {
        columns(vec![("x", Arc::new(Float64Array::from(vec![1.0])) as ArrayRef), ("n", n)])
    };
    let (_, rows) = learn(&with(Arc::new(Float64Array::from(vec![2.0]))), &options).unwrap();
    assert_eq!(rows.given_size, [2]);
    for bad in [2.7, -1.0] {
        let error = learn(&with(Arc::new(Float64Array::from(vec![bad]))), &options).unwrap_err();
        let said = format!("column `n` gives the size of the set to predict and holds {bad}");
        assert!(error.to_string().contains(&said), "{error}");
    }
    let error = learn(&with(Arc::new(StringArray::from(vec!["2"]))), &options).unwrap_err();
    assert!(error.to_string().contains("has type Utf8: cast it to a whole number"), "{error}");
}
