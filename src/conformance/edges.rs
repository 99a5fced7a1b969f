//! Tables at the edge: nothing, one, always, NULL, constant, huge, never seen.

use super::answers::same_models;
use super::subject::{bytes, ensure, refused, text, trainer_bytes};
use super::table::{columns, lists, noise, number_maps};
use super::{Answers, Subject, TOLERANCE, Table};
use crate::error::ErrorKind;
use arrow::array::{Array, ArrayRef, BooleanArray, Float64Array, StringArray, new_null_array};
use arrow::compute::concat;
use std::sync::Arc;

pub(super) fn zero_rows_are_no_model(subject: &Subject) -> Result<(), String> {
    refused(subject.trainer()?.finish(), ErrorKind::Data, "a model of nothing")?;
    for table in subject.tables() {
        let trainer = subject.observed(&[&table.slice(0, 0)])?;
        refused(trainer.finish(), ErrorKind::Data, "a model of zero rows")
            .map_err(|e| table.say(e))?;
        let mut trainer = subject.observed(&[table])?;
        let (before, none) = (trainer_bytes(&trainer)?, table.slice(0, 0));
        trainer.observe(&none.labels, &none.features).map_err(|e| table.say(e))?;
        let same = trainer_bytes(&trainer)? == before;
        ensure(same, || table.say("a batch of zero rows changes the trainer"))?;
    }
    Ok(())
}

pub(super) fn zero_rows_are_scored(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let model = subject.learn(table)?;
        Answers::of(&model, &table.features.slice(0, 0)).map_err(|e| table.say(e))?;
    }
    Ok(())
}

pub(super) fn one_row_is_enough(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        sane(subject, &table.slice(0, 1), &table.features)?;
    }
    Ok(())
}

pub(super) fn one_label_is_enough(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let on: Vec<_> = (0..table.len()).map(|_| Some(vec!["only"])).collect();
        sane(subject, &table.with_sets(&on), &table.features)?;
        let at_times: Vec<_> = table.sets().iter().map(|set| Some(only_if(set))).collect();
        sane(subject, &table.with_sets(&at_times), &table.features)?;
    }
    Ok(())
}

fn only_if(set: &[String]) -> Vec<&'static str> {
    if set.iter().any(|label| label == "label_00") { vec!["only"] } else { Vec::new() }
}

pub(super) fn always_on_labels_are_learned(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let with = |set: Vec<String>| Some([vec!["always".to_string()], set].concat());
        let table = table.with_sets(&table.sets().into_iter().map(with).collect::<Vec<_>>());
        let answers = sane(subject, &table, &table.features)?;
        let score =
            |row: &Vec<(String, f64)>| row.iter().find(|s| s.0 == "always").map_or(0.0, |s| s.1);
        let low = answers.scores.iter().map(score).position(|score| score < 0.5);
        ensure(low.is_none(), || {
            table.say(format!("row {low:?}: a label that is always there scores below one half"))
        })?;
    }
    Ok(())
}

pub(super) fn empty_sets_are_learned(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let none: Vec<Option<Vec<String>>> = vec![Some(Vec::new()); table.len()];
        let answers = sane(subject, &table.with_sets(&none), &table.features)?;
        ensure(answers.sets.iter().all(Vec::is_empty), || table.say("labels out of nowhere"))?;
        // A row without labels is a row: it is counted.
        let half = |(row, set)| Some(if row % 2 == 0 { Vec::new() } else { set });
        let half = table.sets().into_iter().enumerate().map(half).collect::<Vec<_>>();
        let table = table.with_sets(&half);
        sane(subject, &table, &table.features)?;
        let rows = subject.learn(&table)?.rows();
        ensure(rows == table.len() as u64, || table.say(format!("{rows} rows were learned")))?;
    }
    Ok(())
}

pub(super) fn new_labels_may_appear(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let (first, rest) = (table.slice(0, 80), table.slice(80, table.len() - 80));
        let renamed = |set: Vec<String>| Some(set.iter().map(|l| l.replace("_00", "_0")).collect());
        let rest =
            rest.with_sets::<String>(&rest.sets().into_iter().map(renamed).collect::<Vec<_>>());
        let (a, b) = (subject.state(&first)?, subject.state(&rest)?);
        let whole = subject.learn(&first.then(&rest)?)?;
        let in_turn = subject.observed(&[&first, &rest])?;
        for trainer in [in_turn, subject.merged(&[&a, &b])?, subject.merged(&[&b, &a])?] {
            let model = trainer.finish().map_err(text)?;
            same_models(&whole, &model, &table.features, TOLERANCE).map_err(|e| table.say(e))?;
        }
    }
    Ok(())
}

pub(super) fn unseen_features_are_scored(subject: &Subject) -> Result<(), String> {
    let strange = |n: usize| vec![Some(vec!["never seen", "nor this"]); n];
    if let Some(table) = subject.table("tokens") {
        sane(subject, table, &lists(&strange(3)))?;
    }
    if let Some(table) = subject.table("maps") {
        let row = || vec![("never seen".to_string(), 2.0), ("key1".to_string(), 1.0)];
        sane(subject, table, &number_maps([row(), row(), Vec::new()]).map_err(text)?)?;
    }
    if let Some(table) = subject.table("texts") {
        let text = || -> ArrayRef { Arc::new(StringArray::from(vec!["never seen"; 3])) };
        let names = ["c0", "c1", "c2", "c3", "c4"];
        sane(subject, table, &columns(names.map(|name| (name, text())).to_vec()))?;
    }
    for table in subject.tables() {
        // Learned from the first rows only, the others hold names that are new.
        sane(subject, &table.slice(0, 4), &table.features)?;
    }
    Ok(())
}

pub(super) fn huge_values_keep_scores_finite(subject: &Subject) -> Result<(), String> {
    let huge = |row: usize| [1e300, -1e300, 1e-300, 0.0, f64::MAX, f64::MIN, 1e160][row % 7];
    let mut cases: Vec<(&Table, ArrayRef)> = Vec::new();
    if let Some((table, all)) = subject.table("numbers").and_then(|t| Some((t, t.columns()?))) {
        let number = |i: usize| move |row: usize| huge(row + i * (1 + row / 7));
        let values = |i: usize| -> ArrayRef {
            Arc::new(Float64Array::from_iter_values((0..table.len()).map(number(i))))
        };
        let names = all.column_names();
        cases.push((
            table,
            columns(names.into_iter().enumerate().map(|(i, n)| (n, values(i))).collect()),
        ));
    }
    if let Some(table) = subject.table("maps") {
        let sign = if accepts_negative(subject, table) { 1.0 } else { 0.0 };
        let value = |row: usize| if huge(row) < 0.0 { sign * huge(row) } else { huge(row) };
        let entries = |row: usize| {
            let key = |i: usize| (format!("key{i}"), value(row + i * (1 + row / 7)));
            (0..5).filter(|i| !(row + i).is_multiple_of(3)).map(key).collect::<Vec<_>>()
        };
        cases.push((table, number_maps((0..table.len()).map(entries)).map_err(text)?));
    }
    for (table, huge) in cases {
        let learned_from = table.with_features(Arc::clone(&huge));
        sane(subject, table, &huge).map_err(|e| format!("huge values scored: {e}"))?;
        sane(subject, &learned_from, &huge).map_err(|e| format!("huge values learned: {e}"))?;
        sane(subject, &learned_from, &table.features)
            .map_err(|e| format!("huge values learned, common ones scored: {e}"))?;
        let both = concat(&[&table.features, &huge]).map_err(|e| e.to_string())?;
        let sets = [table.sets(), table.sets()].concat();
        let both =
            table.with_features(both).with_sets(&sets.into_iter().map(Some).collect::<Vec<_>>());
        sane(subject, &both, &both.features).map_err(|e| format!("huge and common values: {e}"))?;
    }
    Ok(())
}

/// Counts refuse numbers below zero by contract.
fn accepts_negative(subject: &Subject, table: &Table) -> bool {
    let row = number_maps([vec![("key0".to_string(), -1.0)]]);
    row.is_ok_and(|row| {
        let labels = table.labels.slice(0, 1);
        subject.trainer().is_ok_and(|mut trainer| trainer.observe(&labels, &row).is_ok())
    })
}

pub(super) fn infinite_values_are_refused(subject: &Subject) -> Result<(), String> {
    for name in ["numbers", "mixed"] {
        let Some(table) = subject.table(name) else { continue };
        let Some(all) = table.columns() else { continue };
        let mut named: Vec<(&str, ArrayRef)> =
            all.column_names().into_iter().zip(all.columns().to_vec()).collect();
        let mut values = vec![1.0; table.len()];
        values[table.len() / 2] = f64::NEG_INFINITY;
        let column = named[0].0;
        named[0].1 = Arc::new(Float64Array::from(values));
        let infinite = columns(named);
        let mut trainer = subject.observed(&[table])?;
        let (model, before) = (trainer.finish().map_err(text)?, trainer_bytes(&trainer)?);
        let mut sets: Vec<Option<Vec<String>>> = table.sets().into_iter().map(Some).collect();
        sets[0] = Some(vec!["a label of the refused batch".to_string()]);
        let batch = table.with_features(Arc::clone(&infinite)).with_sets(&sets);
        for (what, result) in [
            ("learning an infinite value", trainer.observe(&batch.labels, &batch.features)),
            ("scoring an infinite value", model.predict(&infinite).map(drop)),
        ] {
            let error = refused(result, ErrorKind::Data, what).map_err(|e| table.say(e))?;
            let named = error.to_string().contains(&format!("`{column}`"));
            ensure(named, || table.say(format!("{what} gives `{error}`: column `{column}`?")))?;
        }
        let same = trainer_bytes(&trainer)? == before;
        ensure(same, || table.say("the refused batch has changed the trainer"))?;
    }
    Ok(())
}

pub(super) fn nulls_are_learned_and_scored(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let nulls = |array: &ArrayRef| new_null_array(array.data_type(), array.len());
        let model = subject.learn(table)?;
        let mut missing = vec![nulls(&table.features)];
        if let Some(all) = table.columns() {
            let each = all.column_names().into_iter().zip(all.columns().iter().map(nulls));
            missing.push(columns(each.collect()));
        }
        for missing in missing {
            let say = |e: String| table.say(format!("features all NULL: {e}"));
            let answers = Answers::of(&model, &missing).map_err(say)?;
            // Rows that say nothing are alike.
            let first = answers.take(&vec![0; table.len()]);
            first.agree(&answers, TOLERANCE).map_err(say)?;
            // Rows of NULLs among others, and alone after others.
            let mixed = concat(&[&table.features, &missing]).map_err(|e| e.to_string())?;
            let sets = [table.sets(), table.sets()].concat().into_iter().map(Some);
            let mixed = table.with_features(mixed).with_sets(&sets.collect::<Vec<_>>());
            let order = mixed.shuffled();
            sane(subject, &mixed.take(&order)?, &mixed.features)?;
            sane(subject, &table.with_features(missing), &table.features).map_err(say)?;
        }
    }
    Ok(())
}

pub(super) fn constant_features_are_learned(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let constant = table.take(&vec![0; table.len()])?.features;
        sane(subject, &table.with_features(Arc::clone(&constant)), &constant)?;
        sane(subject, &table.with_features(constant), &table.features)?;
    }
    let Some(table) = subject.table("mixed").or_else(|| subject.table("numbers")) else {
        return Ok(());
    };
    let n = table.len();
    for (number, flag) in [(0.0, false), (0.1, true), (1e300, true)] {
        let mut named = vec![
            ("number", Arc::new(Float64Array::from(vec![number; n])) as ArrayRef),
            ("flag", Arc::new(BooleanArray::from(vec![flag; n]))),
        ];
        let varied = (0..n).map(|row| (noise(row as u64) % 100) as f64);
        named.push(("varied", Arc::new(Float64Array::from_iter_values(varied))));
        let features = columns(named);
        sane(subject, &table.with_features(Arc::clone(&features)), &features)?;
    }
    Ok(())
}

/// Learns from `table` and answers for `features`; models are stored and read on the way.
fn sane(subject: &Subject, table: &Table, features: &ArrayRef) -> Result<Answers, String> {
    let model = subject.learn(table)?;
    let stored = bytes(&model).map_err(|e| table.say(e))?;
    let model = subject.open(&stored).map_err(|e| table.say(format!("read back: {e:?}")))?;
    Answers::of(&model, features).map_err(|e| table.say(e))
}
