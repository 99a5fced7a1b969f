use arrow::array::{Array, AsArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{Float64Type, Int64Type};

use super::*;
use crate::error::ErrorKind;

fn generator(rows: u64, features: usize, labels: usize, cardinality: f64, seed: u64) -> Generator {
    Generator::try_new(GeneratorOptions { rows, features, labels, cardinality, seed }).unwrap()
}

/// The label names of every row.
fn sets(batch: &RecordBatch) -> Vec<Vec<String>> {
    let lists = batch.column_by_name("labels").unwrap().as_list::<i32>();
    let names =
        |list: ArrayRef| list.as_string::<i32>().iter().map(|n| n.unwrap().to_owned()).collect();
    lists.iter().map(|list| names(list.unwrap())).collect()
}

fn message(options: GeneratorOptions) -> String {
    let error = Generator::try_new(options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    error.to_string()
}

#[test]
fn any_cut_gives_the_same_rows() {
    let generator = generator(1_000, 7, 12, 2.5, 3);
    let whole = generator.batch(0, 1_000).unwrap();
    for batch_rows in [1, 7, 333, 1_000, 4_096] {
        let parts: Vec<_> = generator.clone().batches(batch_rows).collect::<Result<_>>().unwrap();
        assert_eq!(parts.len(), 1_000usize.div_ceil(batch_rows));
        assert_eq!(concat_batches(&generator.schema(), &parts).unwrap(), whole, "{batch_rows}");
    }
    assert_eq!(generator.batch(421, 99).unwrap(), whole.slice(421, 99));
    assert_eq!(generator.batch(1_000, 0).unwrap().num_rows(), 0);
}

#[test]
fn rows_do_not_depend_on_how_many_there_are() {
    let few = generator(10, 5, 4, 1.5, 8).batch(0, 10).unwrap();
    assert_eq!(generator(1 << 40, 5, 4, 1.5, 8).batch(0, 10).unwrap(), few);
}

#[test]
fn the_seed_changes_labels_and_every_feature() {
    let [one, two] = [1, 2].map(|seed| generator(50, 6, 8, 2.0, seed).batch(0, 50).unwrap());
    assert_eq!(one.column(0), two.column(0));
    for column in 1..one.num_columns() {
        assert_ne!(one.column(column), two.column(column), "column {column}");
    }
}

#[test]
fn the_schema_names_every_column() {
    let generator = generator(3, 2, 100, 4.4, 1);
    let list = DataType::List(Arc::new(Field::new("item", DataType::Utf8, true)));
    let expected = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("f0", DataType::Float64, false),
        Field::new("f1", DataType::Float64, false),
        Field::new("labels", list, false),
    ]);
    assert_eq!(*generator.schema(), expected);
    let batch = generator.batch(1, 2).unwrap();
    assert_eq!(*batch.schema(), expected);
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().values(), &[1, 2]);
    assert_eq!(batch.column(3).null_count(), 0);
}

#[test]
fn labels_are_in_name_order_and_occur_once() {
    let sets = sets(&generator(2_000, 1, 101, 6.0, 4).batch(0, 2_000).unwrap());
    assert!(
        sets.iter()
            .flatten()
            .all(|name| name.len() == "label_000".len() && name.starts_with("label_"))
    );
    assert!(sets.iter().all(|set| set.windows(2).all(|w| w[0] < w[1])));
}

#[test]
fn the_cardinality_is_the_one_asked_for() {
    for (labels, cardinality) in [
        (10, 2.0),
        (100, 4.4),
        (8, 2.0),
        (30, 3.0),
        (6, 1.87),
        (1, 0.4),
        (1, 1.0),
        (2, 1.3),
        (5, 0.5),
        (40, 0.9),
        (6, 5.8),
        (6, 6.0),
        (50, 49.5),
        (174, 26.0),
    ] {
        let sets = sets(&generator(20_000, 1, labels, cardinality, 1).batch(0, 20_000).unwrap());
        let mean = sets.iter().map(Vec::len).sum::<usize>() as f64 / 20_000.0;
        assert!((mean / cardinality - 1.0).abs() < 0.03, "{labels} labels, {cardinality}: {mean}");
        assert_eq!(
            sets.iter().any(Vec::is_empty),
            cardinality < 1.0,
            "{labels} labels, {cardinality}"
        );
    }
}

#[test]
fn label_frequencies_are_skewed_and_all_labels_occur() {
    let sets = sets(&generator(20_000, 1, 100, 4.4, 1).batch(0, 20_000).unwrap());
    let mut counts = std::collections::BTreeMap::new();
    sets.iter().flatten().for_each(|name| *counts.entry(name.as_str()).or_insert(0usize) += 1);
    let mut counts: Vec<usize> = counts.into_values().collect();
    counts.sort_unstable();
    assert_eq!(counts.len(), 100);
    assert!(counts[0] > 50, "rarest {}", counts[0]);
    assert!(counts[99] > 5 * counts[50], "{} against {}", counts[99], counts[50]);
}

#[test]
fn features_are_finite_and_have_different_units() {
    for (features, labels, cardinality) in
        [(1, 1, 1.0), (2, 3, 0.1), (120, 100, 4.4), (3, 500, 499.0)]
    {
        let batch = generator(500, features, labels, cardinality, 2).batch(0, 500).unwrap();
        let mut spreads = Vec::new();
        for column in &batch.columns()[1..=features] {
            let values = column.as_primitive::<Float64Type>().values();
            assert!(values.iter().all(|x| x.is_finite()));
            let (low, high) =
                values.iter().fold((f64::MAX, f64::MIN), |(l, h), &x| (l.min(x), h.max(x)));
            spreads.push(high - low);
        }
        spreads.sort_by(f64::total_cmp);
        assert!(spreads[0] > 0.0);
        assert!(features < 100 || spreads[features - 1] > 1_000.0 * spreads[0]);
    }
}

#[test]
fn errors_name_the_option_its_range_and_the_value() {
    let options = GeneratorOptions::default();
    assert_eq!(
        message(GeneratorOptions { labels: 0, ..options }),
        "parameter `labels` must be from 1 to 1000000, got 0"
    );
    assert_eq!(
        message(GeneratorOptions { features: 0, ..options }),
        "parameter `features` must be from 1 to 100000, got 0"
    );
    assert_eq!(
        message(GeneratorOptions { rows: u64::MAX, ..options }),
        "parameter `rows` must be from 0 to 9223372036854775807, got 18446744073709551615"
    );
    for (cardinality, shown) in [(0.0, "0"), (-1.0, "-1"), (10.5, "10.5"), (f64::NAN, "NaN")] {
        assert_eq!(
            message(GeneratorOptions { cardinality, ..options }),
            format!(
                "parameter `cardinality` must be above 0 and at most the number of labels (10), got {shown}"
            )
        );
    }
}

#[test]
fn batches_outside_the_data_or_the_limits_are_refused() {
    let small = generator(10, 2, 3, 1.0, 1);
    let error = small.batch(8, 3).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(
        error.to_string(),
        "a batch of 3 rows from row 8 on goes beyond the 10 rows of the generator"
    );
    assert_eq!(small.batch(u64::MAX, 1).unwrap_err().kind(), ErrorKind::Usage);
    let error = generator(1 << 40, 1, 3, 1.0, 1).batch(0, 1 << 31).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(
        error.to_string(),
        "a batch with 1 features holds at most 1073741824 rows, got 2147483648; ask for smaller batches"
    );
}

#[test]
fn no_rows_give_no_batch_and_an_error_ends_the_batches() {
    assert_eq!(generator(0, 2, 3, 1.0, 1).batches(10).count(), 0);
    let items: Vec<_> = generator(5, 2, 3, 1.0, 1).batches(0).collect();
    assert_eq!(items.len(), 1);
    let error = items[0].as_ref().unwrap_err().to_string();
    assert_eq!(error, "parameter `batch_rows` must be at least 1, got 0");
}

#[test]
fn the_bytes_never_change() {
    let batch = generator(1_000, 3, 5, 1.5, 42).batch(998, 1).unwrap();
    let bits = |column| batch.column(column).as_primitive::<Float64Type>().value(0).to_bits();
    assert_eq!(
        [bits(1), bits(2), bits(3)],
        [4634387652948750501, 4595405223260045108, 13862804593014994117]
    );
    assert_eq!(sets(&batch), vec![vec!["label_01", "label_03"]]);
}

/// The Jaccard score of NaiBX on 2000 rows after 4000.
fn jaccard(features: usize, labels: usize, cardinality: f64, seed: u64) -> f64 {
    use crate::data::{LabelReader, LabelSets, Vocabulary};
    use crate::metrics::{Metric, SetMetrics};
    use crate::models::{Registry, Trainer, split_columns};
    let generator = generator(6_000, features, labels, cardinality, seed);
    let part = |start: u64, rows: usize| {
        let batch = generator.batch(start, rows).unwrap();
        let columns: Vec<usize> = (1..batch.num_columns()).collect();
        split_columns(&batch.project(&columns).unwrap(), "labels").unwrap()
    };
    let ((known, x), (truth, new)) = (part(0, 4_000), part(4_000, 2_000));
    let mut trainer = Trainer::try_new(&Registry::default(), "naibx").unwrap();
    trainer.observe(&known, &x).unwrap();
    let predicted: ArrayRef = Arc::new(trainer.finish().unwrap().predict(&new).unwrap());
    let mut names = Vocabulary::default();
    let mut sets = |lists: &ArrayRef| {
        let mut sets = LabelSets::default();
        LabelReader::read(lists, &mut sets, |n| Ok(Some(names.intern(n)))).unwrap();
        sets
    };
    let (truth, predicted) = (sets(&truth), sets(&predicted));
    let mut metrics = SetMetrics::default();
    truth.iter().zip(predicted.iter()).for_each(|(t, p)| metrics.observe(t, p));
    metrics.value(Metric::Jaccard, None).unwrap()
}

/// The promise of `generate`: classes overlap, but not so much that nothing can be learned.
#[test]
fn naibx_reaches_a_jaccard_score_of_a_half_to_four_fifths() {
    for (features, labels, cardinality, seed) in
        [(20, 10, 2.0, 1), (120, 100, 4.4, 1), (40, 30, 3.0, 2), (10, 6, 1.87, 3), (60, 50, 2.5, 4)]
    {
        let jaccard = jaccard(features, labels, cardinality, seed);
        assert!(
            (0.5..=0.8).contains(&jaccard),
            "{features} features, {labels} labels, {cardinality}: {jaccard}"
        );
    }
}

/// What the documents say of other shapes.
#[test]
fn few_labels_are_easier_and_crowded_ones_harder() {
    for (features, labels, cardinality, about) in
        [(5, 2, 1.0, 0.82), (50, 300, 10.0, 0.42), (3, 40, 5.0, 0.26)]
    {
        let jaccard = jaccard(features, labels, cardinality, 1);
        assert!(
            (jaccard - about).abs() < 0.03,
            "{features} features, {labels} labels, {cardinality}: {jaccard}"
        );
    }
}
