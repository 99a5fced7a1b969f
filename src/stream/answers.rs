//! Answers of a learner in the making.

use crate::data::Vocabulary;
use crate::error::Result;
use crate::models::{LabelLists, Model};
use arrow::array::{Array, ArrayRef, AsArray, ListArray};
use arrow::compute::concat;
use std::sync::Arc;

/// What was known of each row before it was learned.
#[derive(Debug, Clone)]
pub struct Answers {
    /// The predicted label set of each row, in name order; empty before anything is known.
    pub predicted: ListArray,
    /// The probability of every label, best first, if asked for.
    pub scores: Option<ListArray>,
    /// For each row, how many rows had been learned by the parameters that answered.
    pub versions: Vec<u64>,
}

/// A model that is replaced every so many rows; `None` before the first.
#[derive(Debug)]
pub(super) struct Fitted {
    pub(super) every: u64,
    pub(super) model: Option<Box<Model>>,
    pub(super) version: u64,
}

/// Which rows of a batch have labels; `None` is all.
#[derive(Clone, Copy)]
pub(super) struct Labelled<'a> {
    pub(super) rows: Option<&'a [u32]>,
    pub(super) len: usize,
}

/// The place of a row among those with labels, or among those without.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Labelled(usize),
    Unlabelled(usize),
}

impl<'a> Labelled<'a> {
    pub(super) fn places(self) -> impl Iterator<Item = Place> + use<'a> {
        let mut labelled = 0;
        (0..self.len).map(move |row| match self.rows {
            None => Place::Labelled(row),
            Some(rows) if rows.get(labelled) == Some(&(row as u32)) => {
                labelled += 1;
                Place::Labelled(labelled - 1)
            }
            Some(_) => Place::Unlabelled(row - labelled),
        })
    }
}

/// Answers in the making.
#[derive(Default)]
pub(super) struct Found {
    lists: Vec<ArrayRef>,
    scores: Vec<ArrayRef>,
    versions: Vec<u64>,
}

impl Found {
    /// Answers with the model at hand; with empty lists when there is none yet.
    pub(super) fn answer(
        &mut self,
        fitted: &Option<Fitted>,
        scores: bool,
        rows: &ArrayRef,
    ) -> Result<()> {
        let version = fitted.as_ref().map_or(0, |fitted| fitted.version);
        self.versions.resize(self.versions.len() + rows.len(), version);
        self.lists.push(match fitted.as_ref().and_then(|fitted| fitted.model.as_ref()) {
            Some(model) => Arc::new(model.predict(rows)?),
            None => Arc::new(no_labels(rows.len()).names()?),
        });
        if scores { self.score(fitted, rows) } else { Ok(()) }
    }

    pub(super) fn score(&mut self, fitted: &Option<Fitted>, rows: &ArrayRef) -> Result<()> {
        self.scores.push(match fitted.as_ref().and_then(|fitted| fitted.model.as_ref()) {
            Some(model) => Arc::new(model.score(rows)?),
            None => Arc::new(no_labels(rows.len()).scored()?),
        });
        Ok(())
    }

    /// The scores of all rows, if there are any.
    pub(super) fn scores(&self) -> Result<Option<ListArray>> {
        if self.scores.is_empty() { Ok(None) } else { joined(&self.scores).map(Some) }
    }

    pub(super) fn finish(self) -> Result<Answers> {
        let scores = self.scores()?;
        Ok(Answers { predicted: joined(&self.lists)?, scores, versions: self.versions })
    }
}

fn joined(parts: &[ArrayRef]) -> Result<ListArray> {
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    Ok(concat(&parts)?.as_list::<i32>().clone())
}

/// The answers of a model without labels.
pub(super) fn no_labels(rows: usize) -> LabelLists {
    let mut lists = LabelLists::default();
    (0..rows).for_each(|_| lists.push(&Vocabulary::default(), [].into_iter()));
    lists
}
