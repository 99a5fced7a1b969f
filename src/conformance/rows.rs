//! What must not matter: batches, the order of rows, columns and labels, what is unknown.

use super::answers::same_models;
use super::subject::{bytes, ensure, refused, text};
use super::table::columns;
use super::{Answers, Subject, TOLERANCE, Table};
use crate::error::ErrorKind;
use arrow::array::{Array, ArrayRef, Float64Array, StringArray, StructArray};
use arrow::compute::concat;
use std::sync::Arc;

pub(super) fn learning_row_by_row_equals_batch(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let rows: Vec<Table> = (0..table.len()).map(|row| table.slice(row, 1)).collect();
        let trainer = subject.observed(&rows.iter().collect::<Vec<_>>())?;
        let model = trainer.finish().map_err(text)?;
        let whole = subject.learn(table)?;
        same_models(&whole, &model, &table.features, TOLERANCE).map_err(|e| table.say(e))?;
    }
    Ok(())
}

pub(super) fn learning_shuffled_equals_batch(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let model = subject.learn(&table.take(&table.shuffled())?)?;
        let whole = subject.learn(table)?;
        same_models(&whole, &model, &table.features, TOLERANCE).map_err(|e| table.say(e))?;
    }
    Ok(())
}

pub(super) fn scoring_row_by_row_equals_batch(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let (model, expected) = subject.learn_and_answer(table)?;
        for row in 0..table.len() {
            let alone = Answers::of(&model, &table.features.slice(row, 1))?;
            expected
                .take(&[row as u32])
                .agree(&alone, TOLERANCE)
                .map_err(|e| table.say(format!("row {row} alone: {e}")))?;
        }
    }
    Ok(())
}

pub(super) fn scoring_shuffled_equals_batch(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let (model, expected) = subject.learn_and_answer(table)?;
        let order = table.shuffled();
        let shuffled = Answers::of(&model, &table.take(&order)?.features)?;
        expected.take(&order).agree(&shuffled, TOLERANCE).map_err(|e| table.say(e))?;
    }
    Ok(())
}

pub(super) fn column_order_is_irrelevant(subject: &Subject) -> Result<(), String> {
    for (table, all) in with_columns(subject) {
        let (model, expected) = subject.learn_and_answer(table)?;
        let mut turned = all;
        turned.reverse();
        let turned = table.with_features(columns(turned));
        let other = subject.learn(&turned)?;
        let same = bytes(&other)? == bytes(&model)?;
        ensure(same, || table.say("another order of columns gives other bytes"))?;
        let found = Answers::of(&model, &turned.features)?;
        expected.agree(&found, 0.0).map_err(|e| table.say(e))?;
    }
    Ok(())
}

pub(super) fn extra_columns_are_ignored(subject: &Subject) -> Result<(), String> {
    for (table, mut all) in with_columns(subject) {
        let (model, expected) = subject.learn_and_answer(table)?;
        let infinite: ArrayRef = Arc::new(Float64Array::from(vec![f64::INFINITY; table.len()]));
        let text: ArrayRef = Arc::new(StringArray::from(vec!["more"; table.len()]));
        all.insert(0, ("an_extra_number", infinite));
        all.push(("an_extra_text", text));
        let found = Answers::of(&model, &columns(all)).map_err(|e| table.say(e))?;
        expected.agree(&found, 0.0).map_err(|e| table.say(e))?;
    }
    Ok(())
}

pub(super) fn a_missing_column_is_named(subject: &Subject) -> Result<(), String> {
    for (table, all) in with_columns(subject) {
        let model = subject.learn(table)?;
        for i in 0..all.len() {
            let mut rest = all.clone();
            let (name, _) = rest.remove(i);
            let what = format!("input without column `{name}`");
            let result = model.predict(&columns(rest));
            let error = refused(result, ErrorKind::Data, &what).map_err(|e| table.say(e))?;
            // Of a struct, one of its fields is named.
            let named = |end: char| error.to_string().contains(&format!("`{name}{end}"));
            ensure(named('`') || named('.'), || {
                table.say(format!("{what} gives `{error}`, which does not name it"))
            })?;
        }
    }
    Ok(())
}

pub(super) fn label_arrival_order_is_irrelevant(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let mut sets = table.sets();
        sets.iter_mut().for_each(|set| set.reverse());
        let turned = table.with_sets(&sets.into_iter().map(Some).collect::<Vec<_>>());
        let same = bytes(&subject.learn(&turned)?)? == bytes(&subject.learn(table)?)?;
        ensure(same, || table.say("another order of labels in a row gives other bytes"))?;
    }
    Ok(())
}

pub(super) fn relabelling_permutes(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let (model, expected) = subject.learn_and_answer(table)?;
        let names: Vec<String> = model.space().labels.names().map(str::to_string).collect();
        // Name order turns around, so that every label gets another number.
        let new_name = |label: &String| {
            let id = names.iter().position(|n| n == label).unwrap_or(names.len());
            format!("z{:03}", names.len() - id)
        };
        let renamed: Vec<_> =
            table.sets().iter().map(|set| Some(set.iter().map(new_name).collect())).collect();
        let (_, found) = subject.learn_and_answer(&table.with_sets::<String>(&renamed))?;
        let mut expected = expected;
        for set in &mut expected.sets {
            *set = set.iter().map(new_name).collect();
            set.sort_unstable();
        }
        expected.scores.iter_mut().flatten().for_each(|s| s.0 = new_name(&s.0));
        expected.agree(&found, TOLERANCE).map_err(|e| table.say(e))?;
    }
    Ok(())
}

pub(super) fn repeated_labels_count_once(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let twice: Vec<_> = table
            .sets()
            .iter()
            .map(|set| Some([set.as_slice(), set.as_slice()].concat()))
            .collect();
        let same =
            bytes(&subject.learn(&table.with_sets(&twice))?)? == bytes(&subject.learn(table)?)?;
        ensure(same, || table.say("a label that stands twice in a row counts twice"))?;
    }
    Ok(())
}

pub(super) fn unlabelled_rows_are_not_learned(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let labelled: Vec<u32> = (0..table.len() as u32).filter(|row| row % 3 != 1).collect();
        let some: Vec<Option<Vec<String>>> = table
            .sets()
            .into_iter()
            .enumerate()
            .map(|(row, set)| (row % 3 != 1).then_some(set))
            .collect();
        let model = subject.learn(&table.with_sets(&some))?;
        let expected = subject.learn(&table.take(&labelled)?)?;
        same_models(&expected, &model, &table.features, TOLERANCE).map_err(|e| table.say(e))?;

        let none: Vec<Option<Vec<String>>> = vec![None; table.len()];
        let trainer = subject.observed(&[&table.with_sets(&none)])?;
        refused(trainer.finish(), ErrorKind::Data, "a table without a labelled row")
            .map_err(|e| table.say(e))?;
        let twice = concat(&[&table.features, &table.features]).map_err(|e| e.to_string())?;
        let sets = table.sets().into_iter().map(Some).chain(none).collect::<Vec<_>>();
        let model = subject.learn(&table.with_features(twice).with_sets(&sets))?;
        same_models(&subject.learn(table)?, &model, &table.features, TOLERANCE)
            .map_err(|e| table.say(e))?;
    }
    Ok(())
}

/// The tables whose features are columns, with their columns.
fn with_columns(subject: &Subject) -> impl Iterator<Item = (&Table, Vec<(&str, ArrayRef)>)> {
    let all = |s: &'_ StructArray| s.columns().to_vec();
    subject.tables().iter().filter_map(move |table| {
        let columns = table.columns()?;
        let names = columns.column_names();
        Some((table, names.into_iter().zip(all(columns)).collect()))
    })
}
