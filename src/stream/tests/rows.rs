//! Row-exact answers.

use super::*;
use crate::conformance;
use crate::data::{FeatureOptions, Remap, Rows, Space, Used};
use crate::error::{Error, ErrorKind, Result};
use crate::models::{Algorithm, Capabilities, Insight, Learner, Peer, Scorer, Trainer};

/// What a model refitted after every row answers.
fn refitted(table: &Table, spec: &str) -> Vec<Vec<String>> {
    let mut trainer = Trainer::try_new(&Registry::default(), spec).unwrap();
    let mut answers = Vec::new();
    for row in 0..table.len() {
        let one = table.slice(row, 1);
        let answer = match trainer.finish() {
            Ok(model) => named(&model.predict(&one.features).unwrap()).remove(0),
            Err(_) => Vec::new(),
        };
        answers.push(answer);
        trainer.observe(&one.labels, &one.features).unwrap();
    }
    answers
}

const SPECS: [&str; 6] = [
    "naibx",
    "naibx(size=labels)",
    "naibx(size=2)",
    "naibx(allow_empty=true)",
    "naibx(allow_empty=false)",
    "naibx(smoothing=0.01)",
];

#[test]
fn answers_are_those_of_a_model_refitted_after_every_row() {
    for spec in SPECS {
        for (seed, missing) in [(1, 0.0), (2, 0.2), (3, 0.0)] {
            let table = numbers(seed, 300, 9, missing);
            let expected = refitted(&table, spec);
            let found = table.answers(spec, OnlineOptions::default(), 64);
            for (row, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert_eq!(found, expected, "{spec}, seed {seed}, row {row}");
            }
            assert!(expected.iter().filter(|set| set.len() > 1).count() > 50);
        }
    }
}

#[test]
fn outliers_and_far_values_do_not_part_the_ways() {
    let table = numbers(5, 300, 6, 0.0);
    let values = table.features.as_struct();
    let mut wild: Vec<f64> =
        values.column(3).as_primitive::<arrow::datatypes::Float64Type>().values().to_vec();
    (wild[40], wild[120], wild[200]) = (1e10, -1e150, 1e-300);
    let mut named_columns: Vec<(String, ArrayRef)> = Vec::new();
    for d in 0..5 {
        let column = if d == 3 {
            Arc::new(Float64Array::from(wild.clone())) as ArrayRef
        } else {
            Arc::clone(values.column(d))
        };
        named_columns.push((format!("f{d}"), column));
    }
    let table = Table { labels: table.labels, features: columns(named_columns) };
    assert_eq!(table.answers("naibx", OnlineOptions::default(), 50), refitted(&table, "naibx"));
}

#[test]
fn every_kind_of_feature_answers_as_a_refitted_model() {
    let subject = conformance::Subject::try_new(&Registry::default(), "naibx").unwrap();
    let every = OnlineOptions { update_every: Some(1), ..OnlineOptions::default() };
    for table in subject.tables() {
        let name = table.name;
        let table =
            Table { labels: Arc::clone(&table.labels), features: Arc::clone(&table.features) };
        assert_eq!(table.answers("naibx", every, 16), refitted(&table, "naibx"), "{name}");
    }
}

#[test]
fn batches_of_1_7_and_8192_rows_give_the_same_answers() {
    let table = numbers(4, 2000, 9, 0.05);
    let every = OnlineOptions { update_every: Some(100), ..OnlineOptions::default() };
    let scored = OnlineOptions { scores: true, ..OnlineOptions::default() };
    for options in [OnlineOptions::default(), every, scored] {
        let (whole, learner) = table.run("naibx", options, 8192, None);
        for size in [1, 7] {
            let (cut, other) = table.run("naibx", options, size, None);
            assert_eq!(cut, whole, "{options:?} {size}");
            let bytes = |l: &OnlineLearner| crate::store::to_bytes(&l.model().unwrap()).unwrap();
            assert_eq!(bytes(&learner), bytes(&other));
        }
    }
}

#[test]
fn labels_of_a_row_are_not_seen_before_its_answer() {
    // The label is the row's own secret: only an answer that peeks could contain it.
    let sets = (0..50).map(|i| Some(vec![format!("secret{i}")]));
    let x: ArrayRef = Arc::new(Float64Array::from_iter_values((0..50).map(f64::from)));
    let table = Table { labels: label_lists(sets), features: columns(vec![("x".into(), x)]) };
    for (i, answer) in table.answers("naibx", OnlineOptions::default(), 50).iter().enumerate() {
        assert!(!answer.contains(&format!("secret{i}")), "{i}: {answer:?}");
    }
}

#[test]
fn versions_count_the_rows_learned() {
    let table = numbers(6, 40, 4, 0.0);
    let every = OnlineOptions { update_every: Some(10), ..OnlineOptions::default() };
    let mut learner = OnlineLearner::try_new(&Registry::default(), "naibx", every).unwrap();
    let found = learner.learn_and_predict(&table.labels, &table.features, None).unwrap();
    let mut learned = 0;
    let mut version = 0;
    for row in 0..40 {
        assert_eq!(found.versions[row], version);
        if table.labels.is_valid(row) {
            learned += 1;
            if [1, 2, 4, 8, 10, 20, 30, 40].contains(&learned) {
                version = learned;
            }
        }
    }
    assert_eq!(learner.learned(), learned);
}

#[test]
fn a_refused_batch_is_not_learned_in_part() {
    let good = numbers(7, 30, 4, 0.0);
    let mut learner =
        OnlineLearner::try_new(&Registry::default(), "naibx", OnlineOptions::default()).unwrap();
    learner.learn_and_predict(&good.labels, &good.features, None).unwrap();
    let before = crate::store::to_bytes(&learner.model().unwrap()).unwrap();
    for bad_row in [0, 29] {
        for labelled in [true, false] {
            let mut x = vec![0.5; 30];
            x[bad_row] = f64::INFINITY;
            let mut named_columns =
                vec![("f0".to_string(), Arc::new(Float64Array::from(x)) as ArrayRef)];
            for d in 1..5 {
                named_columns
                    .push((format!("f{d}"), Arc::clone(good.features.as_struct().column(d))));
            }
            let sets = (0..30).map(|i| (labelled || i != bad_row).then(|| vec!["new".to_string()]));
            let error = learner
                .learn_and_predict(&label_lists(sets), &columns(named_columns), None)
                .unwrap_err();
            assert!(error.to_string().contains("`f0` holds an infinite value"), "{error}");
            assert_eq!(crate::store::to_bytes(&learner.model().unwrap()).unwrap(), before);
        }
    }
}

#[test]
fn scores_do_not_change_answers() {
    let table = numbers(8, 1500, 6, 0.05);
    let scored = OnlineOptions { scores: true, ..OnlineOptions::default() };
    let plain = table.answers("naibx", OnlineOptions::default(), 100);
    let (with_scores, learner) = table.run("naibx", scored, 100, None);
    assert_eq!(with_scores, plain);
    assert_eq!((learner.update_every(), learner.scores_every()), (Some(1), Some(1000)));
    let mut learner = OnlineLearner::try_new(&Registry::default(), "naibx", scored).unwrap();
    let found = learner.learn_and_predict(&table.labels, &table.features, None).unwrap();
    let scores = found.scores.unwrap();
    // Those of the last model that was derived: of the first 1000 learned rows.
    let mut trainer = Trainer::try_new(&Registry::default(), "naibx").unwrap();
    let (mut row, mut learned) = (0, 0);
    while learned < 1000 {
        let one = table.slice(row, 1);
        trainer.observe(&one.labels, &one.features).unwrap();
        (row, learned) = (row + 1, learned + usize::from(table.labels.is_valid(row)));
    }
    let last = table.slice(table.len() - 20, 20);
    let expected = trainer.finish().unwrap().score(&last.features).unwrap();
    assert_eq!(scores.slice(table.len() - 20, 20), expected);
}

/// NaiBX whose parameters cannot be derived from 20 to 29 rows, and that refuses row 45.
#[derive(Debug)]
struct Moody(Box<dyn Learner>, usize);

impl Learner for Moody {
    fn observe(&mut self, rows: &Rows, space: &Space) -> Result<()> {
        if self.1 == 45 {
            return Err(Error::data("a row it does not like"));
        }
        self.1 += rows.len;
        self.0.observe(rows, space)
    }

    fn merge(&mut self, _: &dyn Learner) -> Result<()> {
        Err(Error::unsupported("it is moody"))
    }

    fn used(&self, space: &Space) -> Used {
        self.0.used(space)
    }

    fn remap(&self, ids: &Remap) -> Box<dyn Learner> {
        Box::new(Moody(self.0.remap(ids), self.1))
    }

    fn encode(&self) -> Result<crate::stats::State> {
        self.0.encode()
    }

    fn close(&self, _: &Space) -> Result<Option<Peer>> {
        match (20..30).contains(&self.1) {
            true => Err(Error::data("a bad mood")),
            false => Ok(None),
        }
    }

    fn fit(&self, space: &Space) -> Result<Box<dyn Scorer>> {
        self.0.fit(space)
    }

    fn insight(&self, space: &Space, most: usize) -> Insight {
        self.0.insight(space, most)
    }

    fn heap_size(&self) -> usize {
        self.0.heap_size()
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

const MOODY: Algorithm = Algorithm {
    name: "moody",
    summary: "fails now and then",
    parameters: &[],
    capabilities: |_| Capabilities {
        forgets: false,
        decays: false,
        ranks_sets: false,
        reopens: true,
    },
    reference: "a test",
    features: |_| Ok(FeatureOptions::default()),
    start: |_| {
        let (naibx, spec) = Registry::default().resolve("naibx")?;
        Ok(Box::new(Moody((naibx.start)(&spec)?, 0)))
    },
    resume: |_, _, _| Err(Error::unsupported("it is moody")),
};

#[test]
fn the_old_parameters_stay_when_new_ones_cannot_be_derived() {
    let registry = Registry::default().with(MOODY);
    let table = numbers(9, 40, 4, 0.0);
    let labels = label_lists((0..40).map(|i| Some(vec![format!("l{}", i % 3)])));
    let every = OnlineOptions { update_every: Some(10), ..OnlineOptions::default() };
    let mut learner = OnlineLearner::try_new(&registry, "moody", every).unwrap();
    let found = learner.learn_and_predict(&labels, &table.features, None).unwrap();
    assert_eq!((found.versions[19], found.versions[20], found.versions[29]), (10, 10, 10));
    assert_eq!(found.versions[30..], [30; 10]);
    assert_eq!(learner.take_unfitted().unwrap().to_string(), "a bad mood");
    assert!(learner.take_unfitted().is_none());
}

#[test]
fn what_fails_after_a_row_was_learned_is_no_fault_of_the_batch() {
    let registry = Registry::default().with(MOODY);
    let table = numbers(9, 60, 4, 0.0);
    let labels = label_lists((0..60).map(|i| Some(vec![format!("l{}", i % 3)])));
    let mut learner = OnlineLearner::try_new(&registry, "moody", OnlineOptions::default()).unwrap();
    let error = learner.learn_and_predict(&labels, &table.features, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert_eq!(error.to_string(), "after 45 rows of the batch: a row it does not like");
    // Of a batch of which nothing was learned, the row is at fault.
    let one = table.slice(0, 1);
    let error = learner.learn_and_predict(&labels.slice(0, 1), &one.features, None).unwrap_err();
    assert_eq!((error.kind(), learner.learned()), (ErrorKind::Data, 45));
}
