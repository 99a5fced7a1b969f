//! The same rows in every Arrow encoding give the same model and the same answers.

use crate::data::split_labels;
use crate::error::Result;
use crate::models::{Model, Registry, Trainer};
use crate::store;
use arrow::array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Float64Builder, Int32Array,
    ListBuilder, MapArray, MapBuilder, MapFieldNames, NullArray, RunArray, StringArray,
    StringBuilder, StructArray, make_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, Field, Fields, Int32Type};
use std::sync::Arc;

const ROWS: usize = 12;

fn item(data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(data_type, true))
}

fn dictionary_type(key: DataType, value: DataType) -> DataType {
    DataType::Dictionary(Box::new(key), Box::new(value))
}

fn run_type(value: DataType) -> DataType {
    let ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
    DataType::RunEndEncoded(ends, Arc::new(Field::new("values", value, true)))
}

/// `array` as a dictionary that holds its rows backwards, so that keys matter.
fn dictionary(array: &ArrayRef) -> ArrayRef {
    let last = array.len() as u32 - 1;
    let backwards = arrow::array::UInt32Array::from_iter_values((0..=last).rev());
    let values = arrow::compute::take(array, &backwards, None).unwrap();
    let keys = Int32Array::from_iter_values((0..=last as i32).rev());
    Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values).unwrap())
}

/// `array` as runs of one row each.
fn runs(array: &ArrayRef) -> ArrayRef {
    let ends = Int32Array::from_iter_values(1..=array.len() as i32);
    Arc::new(RunArray::<Int32Type>::try_new(&ends, array.as_ref()).unwrap())
}

/// `array` as a slice of a longer one.
fn sliced(array: &ArrayRef) -> ArrayRef {
    let longer = concat(&[&array.slice(3, 4), array, &array.slice(0, 2)]).unwrap();
    longer.slice(4, array.len())
}

/// `array` and its forms: as other list types, dictionaries, runs, slices.
fn forms(array: &ArrayRef, items: &[DataType]) -> Vec<ArrayRef> {
    let mut forms = vec![Arc::clone(array), dictionary(array), runs(array), sliced(array)];
    forms.push(sliced(&dictionary(array)));
    forms.push(runs(array).slice(0, array.len()));
    for data_type in items {
        let list = cast(array, &DataType::List(item(data_type.clone()))).unwrap();
        for wrap in
            [DataType::List, DataType::LargeList, DataType::ListView, DataType::LargeListView]
        {
            let form = cast(&list, &wrap(item(data_type.clone()))).unwrap();
            assert_eq!(form.data_type(), &wrap(item(data_type.clone())));
            forms.push(sliced(&form));
            forms.push(form);
        }
    }
    forms
}

fn texts() -> Vec<DataType> {
    vec![
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Utf8View,
        dictionary_type(DataType::Int8, DataType::Utf8),
        dictionary_type(DataType::UInt32, DataType::Utf8View),
        run_type(DataType::Utf8),
    ]
}

fn numbers() -> Vec<DataType> {
    vec![
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt8,
        DataType::UInt16,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Float16,
        DataType::Float32,
        DataType::Float64,
        DataType::Decimal32(6, 2),
        DataType::Decimal64(12, 3),
        DataType::Decimal128(20, 4),
        DataType::Decimal256(40, 5),
        dictionary_type(DataType::Int16, DataType::Int32),
        run_type(DataType::Float32),
    ]
}

fn lists(rows: &[Option<&str>]) -> ArrayRef {
    let mut b = ListBuilder::new(StringBuilder::new());
    for row in rows {
        match row {
            Some(row) => b.append_value(row.split_whitespace().map(Some)),
            None => b.append_null(),
        }
    }
    Arc::new(b.finish())
}

/// Sets of digits, so that they can be integers too.
fn label_lists() -> ArrayRef {
    lists(&[
        Some("1"),
        Some("1 2"),
        Some("2"),
        None,
        Some(""),
        Some("2 1"),
        Some("3"),
        Some("1 3"),
        Some(""),
        Some("3 2"),
        None,
        Some("1"),
    ])
}

fn x() -> ArrayRef {
    let values = [3, 4, 9, 7, 1, 5, 12, 11, 0, 10, 2, 4];
    Arc::new(Float64Array::from_iter(
        values.iter().enumerate().map(|(i, &v)| (i != 5).then_some(f64::from(v))),
    ))
}

fn columns(columns: Vec<(&str, ArrayRef)>) -> ArrayRef {
    let fields: Fields =
        columns.iter().map(|(n, a)| Field::new(*n, a.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, a)| a).collect();
    Arc::new(StructArray::try_new(fields, arrays, None).unwrap())
}

fn learn(labels: &ArrayRef, features: &ArrayRef) -> Result<Model> {
    let mut trainer = Trainer::try_new(&Registry::default(), "naibx")?;
    trainer.observe(labels, features)?;
    trainer.finish()
}

/// Every pair of labels and features gives the bytes and the answers of the first pair.
fn assert_same(labels: &[ArrayRef], features: &[ArrayRef]) {
    let first = learn(&labels[0], &features[0]).unwrap();
    let bytes = store::to_bytes(&first).unwrap();
    let scores = first.score(&features[0]).unwrap();
    for labels in labels {
        let say = |e| format!("labels {}: {e}", labels.data_type());
        let model = learn(labels, &features[0]).map_err(say).unwrap();
        assert_eq!(store::to_bytes(&model).unwrap(), bytes, "labels {}", labels.data_type());
    }
    for features in features {
        let say = |e| format!("features {}: {e}", features.data_type());
        let model = learn(&labels[0], features).map_err(say).unwrap();
        assert_eq!(store::to_bytes(&model).unwrap(), bytes, "features {}", features.data_type());
        let again = first.score(features).map_err(say).unwrap();
        assert_eq!(again, scores, "features {}", features.data_type());
    }
}

#[test]
fn label_lists_of_every_type() {
    let texts_and_numbers = texts()
        .into_iter()
        .chain(numbers().into_iter().filter(|t| t.is_integer()))
        .collect::<Vec<_>>();
    let labels = forms(&label_lists(), &texts_and_numbers);
    assert_same(&labels, &[columns(vec![("x", x())])]);
}

#[test]
fn label_lists_of_fixed_size() {
    let pairs = lists(&["1 2", "2 3", "1 3", "2 1"].map(Some).repeat(3));
    let fixed = |t| cast(&pairs, &DataType::FixedSizeList(item(t), 2)).unwrap();
    let labels = [
        Arc::clone(&pairs),
        fixed(DataType::Utf8),
        fixed(DataType::Int16),
        sliced(&fixed(DataType::Utf8View)),
    ];
    assert_same(&labels, &[columns(vec![("x", x())])]);
}

#[test]
fn label_columns_and_texts() {
    let list = label_lists();
    let rows: Vec<Option<Vec<String>>> = (0..ROWS)
        .map(|r| {
            let list = arrow::array::AsArray::as_list::<i32>(&list);
            let names = list.value(r);
            let names = arrow::array::AsArray::as_string::<i32>(&names);
            list.is_valid(r).then(|| names.iter().flatten().map(String::from).collect())
        })
        .collect();
    let flags = |name: &str| -> ArrayRef {
        let on = |r: &Option<Vec<String>>| r.as_ref().map(|r| r.iter().any(|n| n == name));
        Arc::new(BooleanArray::from_iter(rows.iter().map(on)))
    };
    let mut labels = vec![Arc::clone(&list)];
    for data_type in numbers().into_iter().chain([DataType::Boolean, run_type(DataType::Int8)]) {
        let column = |name: &'static str| {
            let numbers = cast(&flags(name), &DataType::Int8).unwrap();
            (name, cast(&numbers, &data_type).unwrap())
        };
        labels.push(columns(vec![column("3"), column("1"), column("2")]));
    }
    labels.push(sliced(&labels[1]));
    for separator in [";", ", ", "|"] {
        let join = |r: &Option<Vec<String>>| r.as_ref().map(|r| r.join(separator));
        let plain: ArrayRef = Arc::new(StringArray::from_iter(rows.iter().map(join)));
        for data_type in texts() {
            let text = cast(&plain, &data_type).unwrap();
            labels.push(Arc::new(split_labels(&text, separator).unwrap()));
        }
    }
    assert_same(&labels, &[columns(vec![("x", x())])]);
}

#[test]
fn a_label_column_that_is_no_flag_is_named() {
    let odd = columns(vec![("on", Arc::new(Int32Array::from(vec![0, 1, 2])) as ArrayRef)]);
    let features = columns(vec![("x", x().slice(0, 3))]);
    let error = learn(&odd, &features).unwrap_err();
    assert_eq!(
        error.to_string(),
        "label column `on` holds 2 in row 2: a label column holds 0, 1 or NULL"
    );
    let text = columns(vec![("on", Arc::new(StringArray::from(vec!["0"; 3])) as ArrayRef)]);
    let error = learn(&text, &features).unwrap_err().to_string();
    assert!(error.contains("or a struct of 0/1 columns, not Struct"), "{error}");
}

#[test]
fn numbers_of_every_type() {
    let mut features = Vec::new();
    for data_type in numbers() {
        let number = cast(&x(), &data_type).unwrap();
        features.extend([&number, &sliced(&number)].map(|n| columns(vec![("x", Arc::clone(n))])));
    }
    features.push(columns(vec![("x", dictionary(&x()))]));
    features.push(columns(vec![("x", runs(&dictionary(&x())))]));
    features.push(sliced(&features[0]));
    features.push(dictionary(&features[0]));
    features.push(runs(&features[0]));
    assert_same(&[label_lists()], &features);
}

#[test]
fn flags_and_categories_of_every_type() {
    let flag: ArrayRef =
        Arc::new(BooleanArray::from_iter((0..ROWS).map(|r| (r != 4).then_some(r % 3 == 0))));
    let flags = [Arc::clone(&flag), dictionary(&flag), runs(&flag), sliced(&flag)];
    let features: Vec<_> = flags.into_iter().map(|f| columns(vec![("f", f)])).collect();
    assert_same(&[label_lists()], &features);
    let word = |r: usize| (r != 7).then_some(["red", "blue", "green"][r % 3]);
    let word: ArrayRef = Arc::new(StringArray::from_iter((0..ROWS).map(word)));
    let mut features: Vec<ArrayRef> = Vec::new();
    for data_type in texts() {
        let text = cast(&word, &data_type).unwrap();
        features.extend([&text, &sliced(&text)].map(|t| columns(vec![("w", Arc::clone(t))])));
    }
    features.extend([dictionary(&word), runs(&word)].map(|w| columns(vec![("w", w)])));
    assert_same(&[label_lists()], &features);
}

#[test]
fn structs_within_structs() {
    let y: ArrayRef = Arc::new(Int32Array::from_iter_values(0..ROWS as i32));
    let flat = columns(vec![("s.x", x()), ("s.t.y", Arc::clone(&y))]);
    let inner = columns(vec![("y", y)]);
    let nested = columns(vec![("s", columns(vec![("t", inner), ("x", x())]))]);
    assert_same(&[label_lists()], &[flat, nested]);
}

/// A NULL struct makes its fields NULL, whatever they are.
#[test]
fn a_null_struct_is_null_fields() {
    let nulls = NullBuffer::from_iter((0..ROWS).map(|r| r != 2 && r != 6));
    let empty: ArrayRef = Arc::new(NullArray::new(ROWS));
    let with_nulls = |array: &ArrayRef| {
        let nulls = NullBuffer::union(Some(&nulls), array.logical_nulls().as_ref());
        make_array(array.to_data().into_builder().nulls(nulls).build().unwrap())
    };
    let fields = |x: ArrayRef| vec![("x", x), ("empty", Arc::clone(&empty))];
    let plain = columns(fields(with_nulls(&x())));
    let mut features = vec![plain];
    for x in [x(), runs(&x()), dictionary(&x())] {
        let inner = columns(fields(x));
        let data = inner.to_data().into_builder().nulls(Some(nulls.clone()));
        features.push(make_array(data.build().unwrap()));
    }
    assert_same(&[label_lists()], &features);
}

#[test]
fn vectors_of_every_type() {
    let mut b = ListBuilder::new(Float64Builder::new());
    for row in 0..ROWS {
        let vector = [row % 4, 5, (row * row) % 7].map(|v| Some(v as f64));
        if row == 3 { b.append_null() } else { b.append_value(vector) }
    }
    let list: ArrayRef = Arc::new(b.finish());
    let mut features = forms(&list, &numbers());
    for data_type in numbers() {
        let fixed = cast(&list, &DataType::FixedSizeList(item(data_type), 3)).unwrap();
        features.extend([sliced(&fixed), fixed]);
    }
    assert_same(&[label_lists()], &features);
}

#[test]
fn tokens_of_every_type() {
    let list =
        lists(&["a b", "b", "a a c", "", "c", "c b", "a", "d", "b b b", "a d", "c", "a"].map(Some));
    assert_same(&[label_lists()], &forms(&list, &texts()));
    let pairs = lists(&["a b", "b c", "c c", "a c"].map(Some).repeat(3));
    let fixed = cast(&pairs, &DataType::FixedSizeList(item(DataType::Utf8), 2)).unwrap();
    assert_same(&[label_lists()], &[pairs, fixed]);
}

fn map() -> MapArray {
    let names = MapFieldNames { entry: "entries".into(), key: "key".into(), value: "value".into() };
    let mut b = MapBuilder::new(Some(names), StringBuilder::new(), Float64Builder::new());
    for row in 0..ROWS {
        for key in [row % 3, 3 + row % 2, 9] {
            b.keys().append_value(key.to_string());
            b.values().append_option((row != 5 || key != 9).then_some((row * key % 5) as f64));
        }
        b.append(row != 6).unwrap();
    }
    b.finish()
}

#[test]
fn maps_of_every_type() {
    let map = map();
    let root: ArrayRef = Arc::new(map.clone());
    let mut features = vec![Arc::clone(&root), sliced(&root), dictionary(&root), runs(&root)];
    let mut keys = texts();
    keys.extend(numbers().into_iter().filter(|t| t.is_integer()));
    let value_types = numbers();
    for (i, key_type) in keys.into_iter().enumerate() {
        let value_type = value_types[i % value_types.len()].clone();
        let keys = cast(map.keys(), &key_type).unwrap();
        let values = cast(map.values(), &value_type).unwrap();
        let fields = Fields::from(vec![
            Field::new("key", key_type, false),
            Field::new("value", value_type, true),
        ]);
        let entries = StructArray::try_new(fields, vec![keys, values], None).unwrap();
        let field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
        let offsets = map.offsets().clone();
        let form = MapArray::try_new(field, offsets, entries, map.nulls().cloned(), false).unwrap();
        let form: ArrayRef = Arc::new(form);
        features.extend([sliced(&form), form]);
    }
    assert_same(&[label_lists()], &features);
}

/// Columns named by a pattern are counts, beside numbers that are not; maps and lists too.
#[test]
fn counts_are_chosen_by_name() {
    use crate::data::FeatureKind::{Count, Numeric};
    let y: ArrayRef = Arc::new(Int32Array::from_iter_values(0..ROWS as i32));
    let features =
        columns(vec![("x", x()), ("w_1", Arc::clone(&y)), ("w_2", y), ("m", Arc::new(map()))]);
    let kinds = |spec: &str| -> Result<Vec<_>> {
        let mut trainer = Trainer::try_new(&Registry::default(), spec)?;
        trainer.observe(&label_lists(), &features)?;
        let all = trainer.finish()?.space().features.features();
        Ok(all.into_iter().map(|f| (f.name, f.kind)).collect())
    };
    let of =
        |spec: &str, name: &str| kinds(spec).unwrap().into_iter().find(|k| k.0 == name).unwrap().1;
    for (name, kind) in [("x", Numeric), ("w_1", Count), ("w_2", Count), ("m.9", Count)] {
        assert_eq!(of("naibx(counts='w_*|m')", name), kind, "{name}");
        assert_eq!(of("naibx(event=gaussian, counts='w_*|m')", name), kind, "{name}");
    }
    assert_eq!(of("naibx(counts='w_1')", "w_2"), Numeric);
}
