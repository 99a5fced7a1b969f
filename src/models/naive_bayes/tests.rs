//! NaiBX against brute force, and what the common suite cannot say.

mod agreement;
mod behaviour;
mod brute;
mod edges;
mod insight;

use super::fit::NaiveBayes;
use crate::data::{Id, LabelId};
use crate::math::Sequence as Dice;
use crate::models::{Model, Registry, Trainer};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Float64Builder, ListArray, ListBuilder,
    MapBuilder, StringArray, StringBuilder, StructArray,
};
use arrow::datatypes::{Field, Float64Type};
use brute::{Brute, Kind};
use std::sync::Arc;

/// The words rows may hold.
const WORDS: [&str; 5] = ["ant", "bee", "cat", "dog", "eel"];
const CITIES: [&str; 3] = ["oslo", "paris", "rome"];

/// What the `words` of a row are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Words {
    /// A list of texts: counts.
    Tokens,
    /// A map to numbers: Gaussian, absent is zero.
    Numbers,
    /// A map to flags: Bernoulli, absent is false.
    Flags,
}

/// A row of the table of these tests; `None` is NULL.
#[derive(Debug, Clone)]
struct Row {
    x: [Option<f64>; 2],
    flag: Option<bool>,
    city: Option<usize>,
    /// By word, `None` is a NULL in a map; the whole may be NULL.
    words: Option<Vec<(usize, Option<f64>)>>,
    labels: Vec<usize>,
}

/// Random rows whose features depend on their labels.
fn random_rows(dice: &mut Dice, len: usize, labels: usize, missing: f64, words: Words) -> Vec<Row> {
    (0..len)
        .map(|_| {
            let set: Vec<usize> = (0..labels).filter(|_| dice.uniform() < 0.4).collect();
            let shift: f64 = set.iter().map(|&y| (y as f64 - 1.5) * 0.7).sum();
            let x = [0, 1].map(|_| dice.unless(missing, |d| shift + 4.0 * d.uniform() - 2.0));
            let entries = dice.unless(missing, |d| {
                let mut entries: Vec<(usize, Option<f64>)> = Vec::new();
                for word in 0..WORDS.len() {
                    if d.uniform() < 0.5 {
                        let value = match words {
                            Words::Tokens => Some((1 + d.below(3)) as f64),
                            Words::Numbers => {
                                d.unless(missing, |d| shift + 0.2 + 3.0 * d.uniform())
                            }
                            Words::Flags => d.unless(missing, |d| f64::from(d.uniform() < 0.7)),
                        };
                        entries.push((word, value));
                    }
                }
                entries
            });
            let flag = dice.unless(missing, |d| d.uniform() < 0.3 + 0.1 * set.len() as f64);
            let city = dice.unless(missing, |d| (d.below(2) + set.len()) % CITIES.len());
            Row { x, flag, city, words: entries, labels: set }
        })
        .collect()
}

fn columns(columns: Vec<(&str, ArrayRef)>) -> ArrayRef {
    let named = columns
        .into_iter()
        .map(|(n, a)| (Arc::new(Field::new(n, a.data_type().clone(), true)), a))
        .collect::<Vec<_>>();
    Arc::new(StructArray::from(named))
}

fn token_lists<'a>(rows: impl IntoIterator<Item = Option<Vec<&'a str>>>) -> ArrayRef {
    let mut b = ListBuilder::new(StringBuilder::new());
    rows.into_iter().for_each(|r| b.append_option(r.map(|r| r.into_iter().map(Some))));
    Arc::new(b.finish())
}

fn number_maps<'a>(
    rows: impl IntoIterator<Item = Option<Vec<(&'a str, Option<f64>)>>>,
) -> ArrayRef {
    let mut b = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
    for row in rows {
        for (key, value) in row.iter().flatten() {
            b.keys().append_value(key);
            b.values().append_option(*value);
        }
        b.append(row.is_some()).unwrap();
    }
    Arc::new(b.finish())
}

fn word_array(rows: &[Row], words: Words) -> ArrayRef {
    let named = |r: &Row| {
        r.words.as_ref().map(|e| e.iter().map(|&(w, v)| (WORDS[w], v)).collect::<Vec<_>>())
    };
    match words {
        Words::Tokens => token_lists(rows.iter().map(|r| {
            let repeat = |(w, n): &(&'static str, Option<f64>)| vec![*w; n.unwrap_or(0.0) as usize];
            named(r).map(|e| e.iter().flat_map(repeat).collect())
        })),
        Words::Numbers => number_maps(rows.iter().map(named)),
        Words::Flags => {
            let mut b =
                MapBuilder::new(None, StringBuilder::new(), arrow::array::BooleanBuilder::new());
            for row in rows {
                for (key, value) in named(row).iter().flatten() {
                    b.keys().append_value(key);
                    b.values().append_option(value.map(|v| v != 0.0));
                }
                b.append(row.words.is_some()).unwrap();
            }
            Arc::new(b.finish())
        }
    }
}

fn features(rows: &[Row], words: Words) -> ArrayRef {
    let x = |i: usize| Arc::new(rows.iter().map(|r| r.x[i]).collect::<Float64Array>()) as ArrayRef;
    let city = rows.iter().map(|r| r.city.map(|c| CITIES[c])).collect::<StringArray>();
    columns(vec![
        ("x0", x(0)),
        ("city", Arc::new(city)),
        ("words", word_array(rows, words)),
        ("flag", Arc::new(rows.iter().map(|r| r.flag).collect::<BooleanArray>())),
        ("x1", x(1)),
    ])
}

/// Label sets as names whose order is that of their numbers.
fn label_lists(sets: impl IntoIterator<Item = impl IntoIterator<Item = usize>>) -> ArrayRef {
    let mut b = ListBuilder::new(StringBuilder::new());
    for set in sets {
        b.append_value(set.into_iter().map(|y| Some(format!("l{y}"))));
    }
    Arc::new(b.finish())
}

fn labels(rows: &[Row]) -> ArrayRef {
    label_lists(rows.iter().map(|r| r.labels.clone()))
}

fn learn(spec: &str, labels: &ArrayRef, features: &ArrayRef) -> Model {
    let mut trainer = Trainer::try_new(&Registry::default(), spec).unwrap();
    trainer.observe(labels, features).unwrap();
    trainer.finish().unwrap()
}

fn train(spec: &str, rows: &[Row], words: Words) -> Model {
    learn(spec, &labels(rows), &features(rows, words))
}

fn state(model: &Model) -> &NaiveBayes {
    model.learner().as_any().downcast_ref().unwrap()
}

/// Log-odds, row by row, labels in name order.
fn log_odds(model: &Model, features: &ArrayRef) -> Vec<Vec<f64>> {
    let mut out = Vec::new();
    model.scorer().unwrap().score(&model.read(features).unwrap(), &mut out).unwrap();
    out.chunks_exact(model.space().labels.len()).map(<[f64]>::to_vec).collect()
}

fn sets(lists: &ListArray) -> Vec<Vec<String>> {
    let names = |list: ArrayRef| {
        list.as_string::<i32>().iter().flatten().map(str::to_string).collect::<Vec<_>>()
    };
    lists.iter().map(|list| list.map(names).unwrap_or_default()).collect()
}

fn predicted(model: &Model, features: &ArrayRef) -> Vec<Vec<String>> {
    sets(&model.predict(features).unwrap())
}

/// The scores of every row through the public interface, best first.
fn scored(model: &Model, features: &ArrayRef) -> Vec<Vec<(String, f64)>> {
    let lists = model.score(features).unwrap();
    let pairs = |list: ArrayRef| {
        let pairs = list.as_struct();
        let names = pairs.column(0).as_string::<i32>().iter().flatten().map(str::to_string);
        let scores = pairs.column(1).as_primitive::<Float64Type>().values().to_vec();
        names.zip(scores).collect::<Vec<_>>()
    };
    lists.iter().map(|list| list.map(pairs).unwrap_or_default()).collect()
}

/// Every label is scored, finitely, from 0 to 1, and every set can be read.
#[track_caller]
fn assert_sane(model: &Model, features: &ArrayRef) {
    for row in log_odds(model, features) {
        assert!(row.iter().all(|s| s.is_finite()), "{row:?}");
    }
    for row in scored(model, features) {
        assert_eq!(row.len(), model.space().labels.len());
        assert!(row.iter().all(|(_, p)| (0.0..=1.0).contains(p)), "{row:?}");
    }
    assert_eq!(predicted(model, features).len(), features.len());
    for row in model.rank_sets(features, 8).unwrap() {
        assert!(row.iter().all(|s| (0.0..=1.0 + 1e-9).contains(&s.probability)), "{row:?}");
    }
}

/// The rows as a full matrix for brute force: absent words are zeros, unknown ones are missing.
fn matrix(rows: &[Row], words: Words, known: &[bool]) -> Vec<Vec<Option<f64>>> {
    let cells = |row: &Row| {
        let word = |w: usize| match &row.words {
            Some(entries) if known[w] => {
                entries.iter().find(|e| e.0 == w).map_or(Some(0.0), |e| e.1)
            }
            _ => None,
        };
        let mut cells = vec![row.x[0], row.x[1], row.flag.map(f64::from)];
        cells.push(row.city.map(|c| c as f64));
        cells.extend((0..WORDS.len()).map(word));
        cells
    };
    debug_assert!(
        words != Words::Tokens
            || rows.iter().all(|r| r.words.iter().flatten().all(|e| e.1.is_some()))
    );
    rows.iter().map(cells).collect()
}

/// Brute force over `train`, and the matrix of `test` that it takes.
fn brute(train: &[Row], test: &[Row], words: Words, s: f64) -> (Brute, Vec<Vec<Option<f64>>>) {
    // A word that is zero wherever it stands was never met.
    let met = |w: usize| {
        train.iter().any(|r| r.words.iter().flatten().any(|e| e.0 == w && e.1 != Some(0.0)))
    };
    let known: Vec<bool> = (0..WORDS.len()).map(met).collect();
    let of_word = match words {
        Words::Tokens => Kind::Multinomial,
        Words::Numbers => Kind::Gaussian,
        Words::Flags => Kind::Bernoulli,
    };
    let mut kinds = vec![Kind::Gaussian, Kind::Gaussian, Kind::Bernoulli, Kind::Categorical];
    kinds.extend(known.iter().map(|k| if *k { of_word } else { Kind::Unknown }));
    let mut names: Vec<usize> = train.iter().flat_map(|r| r.labels.clone()).collect();
    names.sort_unstable();
    names.dedup();
    let number = |y: &usize| names.binary_search(y).unwrap();
    let sets = train.iter().map(|r| r.labels.iter().map(number).collect()).collect();
    let x = matrix(train, words, &known);
    let mut test = matrix(test, words, &known);
    // A city never seen in training is unknown.
    let cities: Vec<Option<f64>> = x.iter().map(|r| r[3]).collect();
    test.iter_mut().filter(|r| !cities.contains(&r[3])).for_each(|r| r[3] = None);
    (Brute { kinds, x, sets, labels: names.len(), s }, test)
}
