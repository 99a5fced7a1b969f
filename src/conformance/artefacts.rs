//! Bytes of models: lossless, stable, and damage is an error.

use super::subject::{bytes, ensure, refused, text};
use super::{Answers, Subject};
use crate::data::Space;
use crate::error::ErrorKind;
use crate::stats::StateWriter;

/// Rows of the models that are damaged: they are opened once per byte or bit, so they are small.
const FEW: usize = 6;

pub(super) fn bytes_and_back_are_lossless(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let (model, expected) = subject.learn_and_answer(table)?;
        let stored = bytes(&model)?;
        let back = subject.open(&stored).map_err(|e| table.say(e))?;
        ensure(bytes(&back)? == stored, || table.say("bytes read and written are other bytes"))?;
        let same = back.rows() == model.rows()
            && back.spec() == model.spec()
            && back.space() == model.space();
        ensure(same, || table.say("rows, spec, labels or features differ after reading"))?;
        let found = Answers::of(&back, &table.features)?;
        ensure(found == expected, || table.say("the model says other things after reading"))?;
        let most = model.space().labels.len();
        let same = back.insight(most) == model.insight(most);
        ensure(same, || table.say("the insight differs after reading"))?;
    }
    Ok(())
}

pub(super) fn equal_rows_give_equal_bytes(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let trainer = subject.observed(&[table])?;
        let first = bytes(&trainer.finish().map_err(text)?)?;
        let again = bytes(&trainer.finish().map_err(text)?)?;
        ensure(first == again, || table.say("a trainer finished twice gives other bytes"))?;
        let anew = bytes(&subject.learn(table)?)?;
        ensure(first == anew, || table.say("the same rows learned anew give other bytes"))?;
    }
    Ok(())
}

pub(super) fn truncated_bytes_are_corrupt(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let stored = bytes(&subject.learn(&table.slice(0, FEW))?)?;
        for end in 0..stored.len() {
            let what = format!("the first {end} of {} bytes", stored.len());
            refused(subject.open(&stored[..end]), ErrorKind::Corrupt, &what)
                .map_err(|e| table.say(e))?;
        }
    }
    Ok(())
}

pub(super) fn flipped_bits_are_corrupt(subject: &Subject) -> Result<(), String> {
    for (t, table) in subject.tables().iter().enumerate() {
        let stored = bytes(&subject.learn(&table.slice(0, FEW))?)?;
        let mut damaged = stored.clone();
        for i in 0..stored.len() {
            // Every bit of the first model, and one of every byte of the others.
            let all = if t == 0 { 0..8 } else { i % 8..i % 8 + 1 };
            for bit in all.map(|bit| 1 << bit) {
                damaged[i] ^= bit;
                refused(
                    subject.open(&damaged),
                    ErrorKind::Corrupt,
                    &format!("bit {bit} of byte {i}"),
                )
                .map_err(|e| table.say(e))?;
                damaged[i] ^= bit;
            }
        }
    }
    Ok(())
}

pub(super) fn a_foreign_state_is_corrupt(subject: &Subject) -> Result<(), String> {
    let resume = subject.algorithm().resume;
    for table in subject.tables() {
        let model = subject.learn(table)?;
        let state = model.learner().encode().map_err(text)?;
        let nowhere = resume(subject.spec(), &Space::default(), &state);
        refused(nowhere, ErrorKind::Corrupt, "a state with labels that the model does not have")
            .map_err(|e| table.say(e))?;
        let mut other = StateWriter::default();
        other.f64s("a field of another algorithm", [1.0, 2.0]);
        let other = resume(subject.spec(), model.space(), &other.finish());
        refused(other, ErrorKind::Corrupt, "the state of another algorithm")
            .map_err(|e| table.say(e))?;
    }
    Ok(())
}
