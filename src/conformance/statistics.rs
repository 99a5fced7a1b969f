//! Learning is aggregation: merging, cutting, forgetting, decaying.

use super::answers::same_models;
use super::states::same_states;
use super::subject::{bytes, ensure, refused, text, trainer_bytes};
use super::{Answers, Subject, TOLERANCE, Table};
use crate::data::Used;
use crate::error::ErrorKind;
use crate::models::{Algorithm, Model, Trainer};
use arrow::array::{Array, ArrayRef, StructArray};
use arrow::datatypes::Field;
use std::sync::Arc;

/// What remains after taking moments away may have lost up to six digits.
const FORGET_TOLERANCE: f64 = 1e-6;

pub(super) fn merge_with_empty_is_identity(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let model = subject.state(table)?;
        let before = bytes(&model)?;
        let after = trainer_bytes(&subject.merged(&[&model])?)?;
        ensure(after == before, || table.say("an empty trainer merged with a model is not it"))?;

        let empty = (subject.algorithm().start)(subject.spec()).map_err(text)?;
        let everything = Used::all(model.space());
        let mut learner = model.learner().remap(&model.space().sorted(&everything).1);
        learner.merge(&*empty).map_err(text)?;
        let (algorithm, spec) = (*subject.algorithm(), subject.spec().clone());
        let merged = Model::new(algorithm, spec, model.space().clone(), model.rows(), learner);
        let same = bytes(&merged)? == before;
        ensure(same, || table.say("a model merged with an empty learner is not what it was"))?;
    }
    Ok(())
}

pub(super) fn merge_is_commutative(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let [a, b, _] = &thirds(subject, table)?;
        let (ab, ba) = (subject.merged(&[a, b])?, subject.merged(&[b, a])?);
        let (ab, ba) = (ab.finish().map_err(text)?, ba.finish().map_err(text)?);
        same_models(&ab, &ba, &table.features, TOLERANCE).map_err(|e| table.say(e))?;
    }
    Ok(())
}

pub(super) fn merge_is_associative(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let [a, b, c] = &thirds(subject, table)?;
        let ab = subject.merged(&[a, b])?.state().map_err(text)?;
        let bc = subject.merged(&[b, c])?.state().map_err(text)?;
        let left = subject.merged(&[&ab, c])?.finish().map_err(text)?;
        let right = subject.merged(&[a, &bc])?.finish().map_err(text)?;
        same_models(&left, &right, &table.features, TOLERANCE).map_err(|e| table.say(e))?;
    }
    Ok(())
}

pub(super) fn any_cut_equals_one_pass(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let whole = subject.learn(table)?;
        for cut in [vec![1], vec![37, 38], vec![2, 3, 80, 159], vec![0, 50, 50, 160]] {
            let parts = parts(table, &cut);
            let in_turn = subject.observed(&parts.iter().collect::<Vec<_>>())?;
            let in_turn = in_turn.finish().map_err(text)?;
            let say = |way: &str, e: String| table.say(format!("cut at {cut:?}, {way}: {e}"));
            same_models(&whole, &in_turn, &table.features, TOLERANCE)
                .map_err(|e| say("one batch after the other", e))?;

            // A part without rows is no model.
            let filled = parts.iter().filter(|p| !p.is_empty());
            let states = filled.map(|p| subject.state(p)).collect::<Result<Vec<_>, _>>()?;
            let merged = subject.merged(&states.iter().collect::<Vec<_>>())?;
            let merged = merged.finish().map_err(text)?;
            same_models(&whole, &merged, &table.features, TOLERANCE)
                .map_err(|e| say("merged", e))?;
        }
    }
    Ok(())
}

pub(super) fn any_merge_tree_equals_one_pass(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let whole = subject.state(table)?;
        // Parts of different sizes, so that no tree is balanced by rows.
        let parts = parts(table, &[3, 20, 21, 60, 100, 110, 150]);
        let models = parts.iter().map(|p| subject.state(p)).collect::<Result<Vec<_>, _>>()?;
        let say = |tree: &str, e: String| table.say(format!("{tree}: {e}"));
        let mut level = models;
        while level.len() > 1 {
            let merged = |pair: &[Model]| {
                subject.merged(&pair.iter().collect::<Vec<_>>())?.state().map_err(text)
            };
            level = level.chunks(2).map(merged).collect::<Result<Vec<_>, _>>()?;
        }
        for balanced in &level {
            same_states(&whole, balanced).map_err(|e| say("a balanced tree", e))?;
            same_models(&whole, balanced, &table.features, TOLERANCE)
                .map_err(|e| say("a balanced tree", e))?;
        }
        // From the right, and the later part first.
        let mut right: Option<Model> = None;
        for part in parts.iter().rev() {
            let part = subject.state(part)?;
            right = Some(match &right {
                None => part,
                Some(rest) => subject.merged(&[rest, &part])?.state().map_err(text)?,
            });
        }
        if let Some(right) = &right {
            same_states(&whole, right).map_err(|e| say("from the right", e))?;
            same_models(&whole, right, &table.features, TOLERANCE)
                .map_err(|e| say("from the right", e))?;
        }
    }
    Ok(())
}

pub(super) fn a_cut_gives_the_same_state(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let whole = subject.state(table)?;
        for cut in [vec![1], vec![37, 38], vec![2, 3, 80, 159]] {
            let parts = parts(table, &cut);
            let models = parts.iter().map(|p| subject.state(p)).collect::<Result<Vec<_>, _>>()?;
            let merged = subject.merged(&models.iter().collect::<Vec<_>>())?;
            let merged = merged.state().map_err(text)?;
            same_states(&whole, &merged)
                .map_err(|e| table.say(format!("cut at {cut:?}, merged: {e}")))?;
            let in_turn = subject.observed(&parts.iter().collect::<Vec<_>>())?;
            same_states(&whole, &in_turn.state().map_err(text)?)
                .map_err(|e| table.say(format!("cut at {cut:?}, one after the other: {e}")))?;
        }
    }
    Ok(())
}

pub(super) fn a_reopened_model_goes_on_learning(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let (first, rest) = (table.slice(0, 60), table.slice(60, table.len() - 60));
        let stored = bytes(&subject.learn(&first)?)?;
        let reopened = subject.open(&stored).and_then(|m| m.reopen()).map_err(text)?;
        let same = bytes(&reopened.finish().map_err(text)?)? == stored;
        ensure(same, || table.say("a reopened model finishes into other bytes"))?;
        let mut trainer = reopened;
        trainer.observe(&rest.labels, &rest.features).map_err(text)?;
        let model = trainer.finish().map_err(text)?;
        let whole = subject.learn(table)?;
        same_models(&whole, &model, &table.features, TOLERANCE).map_err(|e| table.say(e))?;
    }
    Ok(())
}

pub(super) fn finished_models_merge_like_states(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let (first, rest) = (table.slice(0, 60), table.slice(60, table.len() - 60));
        let models = [subject.learn(&first)?, subject.learn(&rest)?];
        let merged = subject.merged(&models.iter().collect::<Vec<_>>())?;
        let (merged, whole) = (merged.finish().map_err(text)?, subject.learn(table)?);
        same_models(&whole, &merged, &table.features, TOLERANCE).map_err(|e| table.say(e))?;
    }
    Ok(())
}

pub(super) fn a_closed_model_refuses_to_learn(subject: &Subject) -> Result<(), String> {
    let kind = ErrorKind::Unsupported;
    for table in subject.tables() {
        let stored = bytes(&subject.learn(table)?)?;
        let model = subject.open(&stored).map_err(text)?;
        let mut trainer = model.reopen().map_err(text)?;
        let observed = trainer.observe(&table.labels, &table.features);
        for (what, result) in [
            ("a closed model that learns on", observed),
            ("merging into a closed model", trainer.merge(&subject.state(table)?)),
            ("merging a closed model", subject.observed(&[table])?.merge(&model)),
        ] {
            let error = refused(result, kind, what).map_err(|e| table.say(e))?;
            ensure(error.to_string().contains("keep=all"), || {
                table.say(format!("{what} gives `{error}`, which does not say what to do"))
            })?;
        }
        if subject.capabilities().forgets {
            let result = trainer.forget(&subject.state(&table.slice(0, 40))?);
            refused(result, kind, "forgetting from a closed model").map_err(|e| table.say(e))?;
        }
        let same = bytes(&trainer.finish().map_err(text)?)? == stored;
        ensure(same, || table.say("a closed model that refused has other bytes"))?;
    }
    Ok(())
}

pub(super) fn a_state_answers_like_its_model(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let (_, expected) = subject.learn_and_answer(table)?;
        let state = subject.open(&bytes(&subject.state(table)?)?).map_err(text)?;
        let found = Answers::of(&state, &table.features)?;
        expected.agree(&found, TOLERANCE).map_err(|e| table.say(e))?;
    }
    Ok(())
}

pub(super) fn unlike_specs_refuse_to_merge(subject: &Subject) -> Result<(), String> {
    // The same algorithm under another name: only the spec tells them apart.
    let twin = Algorithm { name: "twin_of_the_subject", ..*subject.algorithm() };
    let mut spec = subject.spec().canonical().clone();
    spec.name = twin.name.to_string();
    let registry = subject.registry().clone().with(twin);
    for table in subject.tables() {
        let mut trainer = subject.observed(&[table])?;
        let mut other = Trainer::try_new(&registry, &spec.to_string()).map_err(text)?;
        other.observe(&table.labels, &table.features).map_err(text)?;
        let other = other.state().map_err(text)?;
        unchanged_by(&mut trainer, table, |trainer| {
            refused(trainer.merge(&other), ErrorKind::Incompatible, "a model of another spec")?;
            Ok(())
        })?;
    }
    Ok(())
}

pub(super) fn unlike_columns_refuse_to_merge(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let Some(columns) = table.columns() else { continue };
        let mut sets: Vec<Option<Vec<String>>> = table.sets().into_iter().map(Some).collect();
        sets[0] = Some(vec!["a label of the other model".to_string()]);
        let other = table.with_features(renamed(columns, "another_column")).with_sets(&sets);
        let other = subject.state(&other)?;
        let mut trainer = subject.observed(&[table])?;
        unchanged_by(&mut trainer, table, |trainer| {
            refused(trainer.merge(&other), ErrorKind::Incompatible, "a model of other columns")?;
            Ok(())
        })?;
    }
    Ok(())
}

pub(super) fn a_refused_batch_changes_nothing(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let mut trainer = subject.observed(&[table])?;
        let mut sets = vec![Some(vec![Some("a new label")]); table.len() - 1];
        sets.push(Some(vec![Some("another new label"), None]));
        let mut labels = arrow::array::ListBuilder::new(arrow::array::StringBuilder::new());
        sets.into_iter().for_each(|set| labels.append_option(set));
        let labels: ArrayRef = Arc::new(labels.finish());
        unchanged_by(&mut trainer, table, |trainer| {
            let what = "a batch with a NULL inside a label list";
            refused(trainer.observe(&labels, &table.features), ErrorKind::Data, what)?;
            Ok(())
        })?;
        unchanged_by(&mut trainer, table, |trainer| {
            let short = table.features.slice(1, table.len() - 1);
            let what = "a batch with more labels than features";
            refused(trainer.observe(&table.labels, &short), ErrorKind::Data, what)?;
            Ok(())
        })?;
    }
    Ok(())
}

pub(super) fn forget_undoes_observe(subject: &Subject) -> Result<(), String> {
    let mut forgotten = subject.tables().is_empty();
    for table in subject.tables() {
        let (kept, gone) = (table.slice(0, 100), table.slice(100, table.len() - 100));
        forgotten |= forgets(subject, &kept, &gone)?;
    }
    ensure(forgotten, || "no table can be forgotten".to_string())
}

pub(super) fn forgotten_names_disappear(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let (kept, gone) = (table.slice(0, 100), table.slice(100, table.len() - 100));
        let mut sets: Vec<Option<Vec<String>>> = gone.sets().into_iter().map(Some).collect();
        sets[0] = Some(vec!["a label to be forgotten".to_string()]);
        forgets(subject, &kept, &gone.with_sets(&sets))?;
    }
    Ok(())
}

/// Forgets `gone` after observing both; false when that is refused because it would lose digits.
fn forgets(subject: &Subject, kept: &Table, gone: &Table) -> Result<bool, String> {
    let mut trainer = subject.observed(&[kept, gone])?;
    let before = trainer_bytes(&trainer)?;
    match trainer.forget(&subject.state(gone)?) {
        Err(error) if error.kind() == ErrorKind::Incompatible => {
            let same = trainer_bytes(&trainer)? == before;
            ensure(same, || kept.say("forgetting is refused and changes the trainer"))?;
            return Ok(false);
        }
        result => result.map_err(|e| kept.say(e))?,
    }
    let left = trainer.finish().map_err(text)?;
    same_models(&subject.learn(kept)?, &left, &kept.features, FORGET_TOLERANCE)
        .map_err(|e| kept.say(format!("after forgetting: {e}")))?;
    subject.open(&bytes(&left)?).map_err(|e| kept.say(format!("what is left: {e:?}")))?;
    Ok(true)
}

pub(super) fn forgetting_the_unknown_is_refused(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let mut trainer = subject.observed(&[&table.slice(0, 40)])?;
        let more = subject.state(table)?;
        unchanged_by(&mut trainer, table, |trainer| {
            let result = trainer.forget(&more);
            ensure(result.is_err(), || "rows that were never added can be forgotten".to_string())
        })?;
    }
    Ok(())
}

pub(super) fn forgetting_is_refused(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let mut trainer = subject.observed(&[table])?;
        let part = subject.state(&table.slice(0, 40))?;
        unchanged_by(&mut trainer, table, |trainer| {
            refused(trainer.forget(&part), ErrorKind::Unsupported, "forgetting").map(drop)
        })?;
    }
    Ok(())
}

pub(super) fn decay_keeps_scores_finite(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let mut trainer = subject.observed(&[table])?;
        for factor in [1.0 + 1e-9, -0.5, f64::NAN] {
            let what = format!("a decay by {factor}");
            refused(trainer.decay(factor), ErrorKind::Usage, &what)?;
        }
        unchanged_by(&mut trainer, table, |trainer| trainer.decay(1.0).map_err(text))?;
        for factor in [0.5, 1e-3, 1e-300, 0.0] {
            trainer.decay(factor).map_err(text)?;
            let model = trainer.finish().map_err(text)?;
            Answers::of(&model, &table.features)
                .map_err(|e| table.say(format!("decayed by {factor}: {e}")))?;
            subject.open(&bytes(&model)?).map_err(text)?;
        }
        // What comes after counts as if nothing had been before.
        trainer.observe(&table.labels, &table.features).map_err(text)?;
        let again = Answers::of(&trainer.finish().map_err(text)?, &table.features)?;
        let (_, fresh) = subject.learn_and_answer(table)?;
        fresh
            .agree(&again, FORGET_TOLERANCE)
            .map_err(|e| table.say(format!("decayed to nothing, then learned anew: {e}")))?;
    }
    Ok(())
}

pub(super) fn decaying_is_refused(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let mut trainer = subject.observed(&[table])?;
        unchanged_by(&mut trainer, table, |trainer| {
            refused(trainer.decay(0.5), ErrorKind::Unsupported, "decaying").map(drop)
        })?;
    }
    Ok(())
}

/// Runs `action` and fails when the trainer knows anything else afterwards.
fn unchanged_by(
    trainer: &mut Trainer,
    table: &Table,
    action: impl FnOnce(&mut Trainer) -> Result<(), String>,
) -> Result<(), String> {
    let before = trainer_bytes(trainer)?;
    action(trainer).map_err(|e| table.say(e))?;
    let after = trainer_bytes(trainer)?;
    ensure(after == before, || table.say("the trainer is not what it was before the call"))
}

/// States of the first, second and last third of the rows.
fn thirds(subject: &Subject, table: &Table) -> Result<[Model; 3], String> {
    let n = table.len() / 3;
    Ok([
        subject.state(&table.slice(0, n))?,
        subject.state(&table.slice(n, n))?,
        subject.state(&table.slice(2 * n, table.len() - 2 * n))?,
    ])
}

/// The rows between the places of `cut`.
fn parts(table: &Table, cut: &[usize]) -> Vec<Table> {
    let ends = cut.iter().copied().chain([table.len()]);
    let starts = [0].into_iter().chain(cut.iter().copied());
    starts.zip(ends).map(|(start, end)| table.slice(start, end - start)).collect()
}

/// The same columns, the first under another name.
fn renamed(columns: &StructArray, name: &str) -> ArrayRef {
    let named = columns.fields().iter().zip(columns.columns()).enumerate();
    let named = named.map(|(i, (field, array))| {
        let name = if i == 0 { name } else { field.name() };
        (Arc::new(Field::new(name, array.data_type().clone(), true)), Arc::clone(array))
    });
    Arc::new(StructArray::from(named.collect::<Vec<_>>()))
}
