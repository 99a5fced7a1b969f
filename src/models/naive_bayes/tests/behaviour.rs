//! Batches, cuts, merging, forgetting, sizes and decisions.

use super::*;
use crate::stats::{FeatureStats, Grouping};
use arrow::array::{Int64Array, UInt32Array};
use arrow::compute::take;

fn table(seed: u64, len: usize) -> Vec<Row> {
    random_rows(&mut Dice(seed), len, 5, 0.15, Words::Tokens)
}

/// A table in whose halves all labels, words and cities occur.
fn halves() -> (Vec<Row>, Vec<Row>) {
    let rows = table(3, 80);
    (rows[..40].to_vec(), rows[40..].to_vec())
}

#[track_caller]
fn assert_near(a: &[Vec<f64>], b: &[Vec<f64>], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().flatten().zip(b.iter().flatten()) {
        assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{a} for {b}");
    }
}

#[track_caller]
fn assert_same_counts(a: &Model, b: &Model) {
    let (a, b) = (state(a), state(b));
    assert_eq!(a.labels, b.labels);
    assert_eq!(a.sizes, b.sizes);
    assert_eq!(a.pairs, b.pairs);
    assert_eq!(a.size_given_label, b.size_given_label);
    assert_same_feature_counts(&a.by_label, &b.by_label);
    assert_same_feature_counts(&a.by_size, &b.by_size);
}

#[track_caller]
fn assert_same_feature_counts<G: Grouping>(a: &FeatureStats<G>, b: &FeatureStats<G>) {
    assert_eq!(a.counts(), b.counts());
    assert_eq!(a.missing(), b.missing());
    assert_eq!(a.values(), b.values());
    for g in 0..=5 {
        assert_eq!((a.rows(g), a.open_rows(g, 0)), (b.rows(g), b.open_rows(g, 0)));
        (0..2).for_each(|d| assert_eq!(a.dense().get(g, d).n, b.dense().get(g, d).n));
    }
}

#[test]
fn a_batch_equals_its_rows_in_any_order() {
    for words in [Words::Tokens, Words::Numbers, Words::Flags] {
        let mut dice = Dice(11);
        let model = train("naibx", &random_rows(&mut dice, 60, 5, 0.1, words), words);
        // More rows than one matrix product takes.
        let test = random_rows(&mut dice, 300, 5, 0.1, words);
        let batch = features(&test, words);
        let (sets, odds) = (predicted(&model, &batch), log_odds(&model, &batch));
        for (r, row) in test.iter().enumerate() {
            let one = features(std::slice::from_ref(row), words);
            assert_eq!(predicted(&model, &one)[0], sets[r], "row {r}");
            assert_near(&log_odds(&model, &one), &odds[r..=r], 1e-12);
            let slice = batch.slice(r, 1);
            assert_eq!(predicted(&model, &slice)[0], sets[r], "slice {r}");
        }
        let order: Vec<u32> = (0..300).map(|i| (i * 7 + 5) % 300).collect();
        let shuffled = take(&batch, &UInt32Array::from(order.clone()), None).unwrap();
        let found = predicted(&model, &shuffled);
        for (to, &from) in order.iter().enumerate() {
            assert_eq!(found[to], sets[from as usize]);
        }
    }
}

#[test]
fn training_rows_may_come_in_any_cut_and_order() {
    let rows = table(5, 60);
    let test = features(&table(6, 40), Words::Tokens);
    let whole = train("naibx", &rows, Words::Tokens);
    let mut turned = rows.clone();
    turned.reverse();
    for (rows, size) in [(&rows, 1), (&rows, 7), (&turned, 60), (&turned, 13)] {
        let mut trainer = Trainer::try_new(&Registry::default(), "naibx").unwrap();
        for part in rows.chunks(size) {
            trainer.observe(&labels(part), &features(part, Words::Tokens)).unwrap();
        }
        let model = trainer.finish().unwrap();
        assert_eq!(model.rows(), 60);
        assert_eq!(model.space(), whole.space());
        assert_same_counts(&model, &whole);
        assert_eq!(predicted(&model, &test), predicted(&whole, &test));
        assert_near(&log_odds(&model, &test), &log_odds(&whole, &test), 1e-9);
    }
}

#[test]
fn merged_halves_equal_the_whole() {
    let (first, second) = halves();
    let test = features(&table(6, 60), Words::Tokens);
    let whole = train("naibx", &[first.clone(), second.clone()].concat(), Words::Tokens);
    let (a, b) = (train("naibx", &first, Words::Tokens), train("naibx", &second, Words::Tokens));
    for (a, b) in [(&a, &b), (&b, &a)] {
        let mut trainer = Trainer::try_new(&Registry::default(), "naibx").unwrap();
        trainer.merge(a).unwrap();
        trainer.merge(b).unwrap();
        let merged = trainer.finish().unwrap();
        assert_eq!((merged.rows(), merged.space()), (80, whole.space()));
        assert_same_counts(&merged, &whole);
        assert_eq!(predicted(&merged, &test), predicted(&whole, &test));
        assert_near(&log_odds(&merged, &test), &log_odds(&whole, &test), 1e-9);
    }
}

#[test]
fn merging_matches_labels_and_words_by_name() {
    let row = |word: usize, label: usize| Row {
        x: [Some(word as f64), Some(label as f64)],
        flag: Some(word == 1),
        city: Some(word),
        words: Some(vec![(word, Some(2.0))]),
        labels: vec![label],
    };
    let first = vec![row(2, 3), row(2, 3), row(1, 1)];
    let second = vec![row(0, 2), row(1, 1), row(0, 0)];
    let whole = train("naibx", &[first.clone(), second.clone()].concat(), Words::Tokens);
    let mut trainer = train("naibx", &first, Words::Tokens).reopen().unwrap();
    trainer.merge(&train("naibx", &second, Words::Tokens)).unwrap();
    let merged = trainer.finish().unwrap();
    assert_eq!(merged.space(), whole.space());
    assert_same_counts(&merged, &whole);
}

#[test]
fn forgetting_a_half_restores_the_other() {
    let (first, second) = halves();
    let test = features(&table(6, 60), Words::Tokens);
    let (a, b) = (train("naibx", &first, Words::Tokens), train("naibx", &second, Words::Tokens));
    assert_eq!(a.space(), b.space(), "both halves know all names");
    let mut trainer = a.reopen().unwrap();
    trainer.merge(&b).unwrap();
    trainer.forget(&b).unwrap();
    assert_eq!(trainer.rows(), 40);
    let restored = trainer.finish().unwrap();
    assert_same_counts(&restored, &a);
    assert_eq!(predicted(&restored, &test), predicted(&a, &test));
    assert_near(&log_odds(&restored, &test), &log_odds(&a, &test), 1e-6);
}

#[test]
fn a_refused_forget_changes_nothing() {
    let (first, second) = halves();
    let (a, b) = (train("naibx", &first, Words::Tokens), train("naibx", &second, Words::Tokens));
    let mut trainer = a.reopen().unwrap();
    assert!(trainer.forget(&b).is_err());
    let same = trainer.finish().unwrap();
    assert_eq!(state(&same), state(&a));
    assert_eq!((same.rows(), same.space()), (a.rows(), a.space()));
}

#[test]
fn decay_scales_counts_and_a_wrong_factor_is_refused() {
    let (first, _) = halves();
    let a = train("naibx", &first, Words::Tokens);
    let mut trainer = a.reopen().unwrap();
    trainer.decay(0.25).unwrap();
    assert!(trainer.decay(1.5).is_err() && trainer.decay(f64::NAN).is_err());
    let decayed = trainer.finish().unwrap();
    for y in LabelId::all(5) {
        assert_eq!(state(&decayed).labels.get(y), 0.25 * state(&a).labels.get(y));
        assert_eq!(state(&decayed).by_label.rows(y.0), 0.25 * state(&a).by_label.rows(y.0));
    }
    assert_eq!(state(&decayed).sizes.total(), 10.0);
    assert_sane(&decayed, &features(&first, Words::Tokens));
}

#[test]
fn a_fixed_size_is_kept() {
    let (rows, test) = halves();
    let batch = features(&test, Words::Tokens);
    for (spec, size) in [
        ("naibx(size=3)", 3),
        ("naibx(size=0)", 0),
        ("naibx(size=1, sets=4)", 1),
        ("naibx(size=3, sets=4)", 3),
        ("naibx(size=99)", 5),
        ("naibx(decide=top(2))", 2),
    ] {
        let model = train(spec, &rows, Words::Tokens);
        for set in predicted(&model, &batch) {
            assert_eq!(set.len(), size, "{spec}");
            assert!(set.is_sorted_by(|a, b| a < b), "{spec}: {set:?}");
        }
    }
}

#[test]
fn a_given_size_follows_its_column_and_is_no_feature() {
    let (rows, test) = halves();
    let with_size = |rows: &[Row], sizes: Vec<Option<i64>>| {
        let plain = features(rows, Words::Tokens);
        let fields = plain.as_struct();
        let mut all: Vec<(&str, ArrayRef)> =
            fields.column_names().into_iter().zip(fields.columns().iter().cloned()).collect();
        all.insert(2, ("how_many", Arc::new(Int64Array::from(sizes))));
        columns(all)
    };
    let sizes = |len: usize| (0..len).map(|i| Some(i as i64 % 4)).collect::<Vec<_>>();
    let spec = "naibx(size=given(how_many))";
    let model = learn(spec, &labels(&rows), &with_size(&rows, sizes(40)));
    assert_eq!(model.space().features, train("naibx", &rows, Words::Tokens).space().features);
    for (r, set) in predicted(&model, &with_size(&test, sizes(40))).iter().enumerate() {
        assert_eq!(set.len(), r % 4);
        let fixed = train(&format!("naibx(size={})", r % 4), &rows, Words::Tokens);
        assert_eq!(*set, predicted(&fixed, &features(&test[r..=r], Words::Tokens))[0]);
    }
    let ranked = model.rank_sets(&with_size(&test, sizes(40)), 3).unwrap();
    assert!(ranked.iter().enumerate().all(|(r, s)| s.iter().all(|s| s.labels.len() == r % 4)));
    let error = model.predict(&features(&test, Words::Tokens)).unwrap_err();
    assert!(error.to_string().contains("`how_many`"), "{error}");
}

#[test]
fn empty_sets_are_predicted_only_where_allowed() {
    // Rows without labels lie at 0, rows with one at 10.
    let x =
        |values: Vec<f64>| columns(vec![("x", Arc::new(Float64Array::from(values)) as ArrayRef)]);
    let near = |at: f64| [at - 0.2, at - 0.1, at + 0.1, at + 0.2];
    let (train_x, test) = (x([near(0.0), near(10.0)].concat()), x(vec![0.0, 10.0]));
    let some = label_lists([vec![], vec![], vec![], vec![], vec![0], vec![0], vec![1], vec![1]]);
    let none_empty = label_lists([
        vec![0],
        vec![0],
        vec![1],
        vec![1],
        vec![0, 1],
        vec![0, 1],
        vec![0, 1],
        vec![0, 1],
    ]);
    let lengths = |spec: &str, labels: &ArrayRef| {
        let model = learn(spec, labels, &train_x);
        predicted(&model, &test).iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(lengths("naibx", &some), [0, 1]);
    assert_eq!(lengths("naibx(allow_empty=auto)", &some), [0, 1]);
    assert_eq!(lengths("naibx(allow_empty=true)", &some), [0, 1]);
    assert_eq!(lengths("naibx(allow_empty=false)", &some), [1, 1]);
    assert_eq!(lengths("naibx(allow_empty=false, sets=9)", &some), [1, 1]);
    assert_eq!(lengths("naibx", &none_empty), [1, 2]);
    // Allowed but never seen: it is a candidate of the beam.
    let sets_of = |spec: &str| {
        let model = learn(spec, &none_empty, &train_x);
        let ranked = model.rank_sets(&test, 99).unwrap();
        ranked[0].iter().any(|s| s.labels.is_empty())
    };
    assert!(sets_of("naibx(allow_empty=true)"));
    assert!(!sets_of("naibx") && !sets_of("naibx(allow_empty=false)"));
}

#[test]
fn decisions_agree_with_scores() {
    let (rows, test) = halves();
    let batch = features(&test, Words::Tokens);
    let (half, high, top) = ("decide=threshold(0.5)", "decide=threshold(0.9)", "decide=top(2)");
    let model = |rule: &str| train(&format!("naibx({rule})"), &rows, Words::Tokens);
    let scores = scored(&model("smoothing=1"), &batch);
    let expected = |keep: &dyn Fn(usize, f64) -> bool| -> Vec<Vec<String>> {
        let of_row = |row: &Vec<(String, f64)>| {
            let kept = row.iter().enumerate().filter(|(i, (_, p))| keep(*i, *p));
            let mut names: Vec<String> = kept.map(|(_, (name, _))| name.clone()).collect();
            names.sort();
            names
        };
        scores.iter().map(of_row).collect()
    };
    assert!(scores.iter().all(|row| row.is_sorted_by(|a, b| a.1 >= b.1)));
    assert_eq!(predicted(&model(half), &batch), expected(&|_, p| p >= 0.5));
    assert_eq!(predicted(&model(high), &batch), expected(&|_, p| p >= 0.9));
    assert_eq!(predicted(&model(top), &batch), expected(&|i, _| i < 2));
    let never_empty = "decide=threshold(0.99), allow_empty=false";
    assert!(expected(&|_, p| p >= 0.99).iter().any(Vec::is_empty));
    assert_eq!(predicted(&model(never_empty), &batch), expected(&|i, p| i == 0 || p >= 0.99));
    // As many labels as the cascade picks, but by their scores.
    let cascade = predicted(&model("smoothing=1"), &batch);
    let by_size = predicted(&model("decide=size"), &batch);
    for (row, set) in by_size.iter().enumerate() {
        let mut best: Vec<String> =
            scores[row][..cascade[row].len()].iter().map(|(name, _)| name.clone()).collect();
        best.sort();
        assert_eq!(*set, best, "row {row}");
    }
    assert_eq!(predicted(&model("decide=size, size=2"), &batch), expected(&|i, _| i < 2));
    let best = sets(&model(top).top(&batch, 3).unwrap());
    for (names, row) in best.iter().zip(&scores) {
        assert_eq!(*names, row[..3].iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    }
}

#[test]
fn scores_are_the_sigmoid_of_log_odds() {
    let (rows, test) = halves();
    let batch = features(&test, Words::Tokens);
    let model = train("naibx", &rows, Words::Tokens);
    for (row, odds) in scored(&model, &batch).iter().zip(log_odds(&model, &batch)) {
        for (name, p) in row {
            let y = model.space().labels.get(name).unwrap().index();
            assert!((p - 1.0 / (1.0 + (-odds[y]).exp())).abs() < 1e-15);
        }
    }
}

#[test]
fn sizes_from_labels_differ_from_predicted_ones() {
    let test = features(&table(6, 200), Words::Tokens);
    let of = |spec: &str| predicted(&train(spec, &table(5, 60), Words::Tokens), &test);
    assert_ne!(of("naibx(size=labels)"), of("naibx(size=predicted)"));
}

#[test]
fn a_threshold_may_be_written_as_a_whole_number() {
    for p in [0, 1] {
        assert!(
            Registry::default().resolve(&format!("naibx(decide=threshold({p}))")).is_ok(),
            "{p}"
        );
    }
}

#[test]
fn equal_numbers_make_equal_specs() {
    let canonical = |s: &str| Registry::default().resolve(s).unwrap().1.to_string();
    assert_eq!(canonical("naibx(smoothing=1.0)"), canonical("naibx(smoothing=1)"));
    assert_eq!(canonical("naibx(smoothing=2.0)"), canonical("naibx(smoothing=2)"));
}

#[test]
fn parameters_that_do_nothing_are_refused() {
    for (parameters, said) in [
        ("decide=threshold(0.5), size=3", "`size` does nothing with `decide=threshold(0.5)`"),
        ("decide=top(2), size=labels", "`size` does nothing with `decide=top(2)`"),
        ("decide=size, sets=4", "`sets` does nothing with `decide=size`"),
        ("decide=top(2), allow_empty=false", "`allow_empty` does nothing with `decide=top(2)`"),
        ("decide=threshold(0.5), allow_empty=true", "`allow_empty` does nothing with `decide="),
        ("size=3, allow_empty=false", "`allow_empty` does nothing with `size=3`"),
        ("size=given(n), allow_empty=true", "`allow_empty` does nothing with `size=given(n)`"),
    ] {
        let spec = format!("naibx({parameters})");
        let error = Trainer::try_new(&Registry::default(), &spec).unwrap_err().to_string();
        assert!(error.contains(said) && error.ends_with(": leave it out"), "{spec}: {error}");
    }
    for parameters in
        ["decide=size, size=labels", "size=2, sets=4", "decide=size, allow_empty=true"]
    {
        assert!(Trainer::try_new(&Registry::default(), &format!("naibx({parameters})")).is_ok());
    }
}

#[test]
fn keys_that_are_absent_elsewhere_tell() {
    // Every row with label 0 has the key, and one in four of the others, with the same values.
    let telling = |unit: f64| {
        let mut words = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
        for row in 0..16 {
            if row < 8 || row % 4 == 0 {
                words.keys().append_value("key");
                words.values().append_value(unit * f64::from(1 + row % 2));
            }
            words.append(true).unwrap();
        }
        let words: ArrayRef = Arc::new(words.finish());
        let labels = label_lists((0..16).map(|row| vec![usize::from(row >= 8)]));
        learn("naibx", &labels, &words).insight(3).telling
    };
    let (small, large) = (telling(0.001), telling(1000.0));
    let weight = small[0][0].1;
    assert!(small[0][0].0 == "key" && weight > 1.0, "{small:?}");
    assert!((large[0][0].1 - weight).abs() < 1e-9, "{large:?}");
}

/// What the documents say of `sets`: it is how wide the search is, not how many sets come out.
#[test]
fn a_search_of_two_is_one_of_twenty() {
    let rows = table(9, 120);
    let x = features(&rows, Words::Tokens);
    let trained = |sets: usize| train(&format!("naibx(sets={sets})"), &rows, Words::Tokens);
    let wide = trained(20);
    for sets in [2, 7] {
        assert_eq!(predicted(&trained(sets), &x), predicted(&wide, &x), "sets={sets}");
    }
    let five = |model: &Model| model.rank_sets(&x, 5).unwrap();
    assert!(five(&trained(1)).iter().all(|ranked| ranked.len() == 5));
    assert_eq!(five(&trained(1)), five(&wide));
}
