//! Predictions that no spec makes: what the programs of the papers did otherwise.

use crate::hinge;
use crate::meka::Random;
use crate::weka::{self, Parent, Table};
use arrow::array::{Array, ArrayRef, BooleanArray, ListBuilder, StringBuilder, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use labelflow::Result;
use labelflow::data::{Id, LabelId, LabelSets, Vocabulary};
use labelflow::evaluate::Dataset;
use labelflow::math::content_hash;
use labelflow::models::{Registry, Trainer, root, split_columns};
use std::sync::Arc;

/// One chain, or several that vote, link by link.
///
/// Of several, each has an order and a bag of rows of its own.
#[derive(Clone, Copy)]
pub struct Chains {
    pub link: Link,
    pub chains: u64,
    pub draws: Draws,
    /// How many rows without its label a link leaves out: at most this share of all rows.
    pub left_out: f64,
}

/// Where the order of a chain comes from, and its bag of rows.
#[derive(Clone, Copy, PartialEq)]
pub enum Draws {
    /// From hashes; the order of the first chain is that of `cc`.
    Own,
    /// From the generator of MEKA, with the seeds that it has when none is given.
    Meka,
}

/// The classifier of one label.
#[derive(Clone, Copy)]
pub enum Link {
    /// What this spec makes of a single label.
    Spec(&'static str),
    /// A support vector machine with the plain hinge.
    Hinge,
    /// Naive Bayes with Weka's Gaussian.
    Weka,
}

impl Chains {
    /// What a table says.
    pub fn name(&self) -> String {
        let link = match self.link {
            Link::Spec(spec) => format!("`{spec}`"),
            Link::Hinge => "the plain hinge".to_string(),
            Link::Weka => "Weka's Gaussian".to_string(),
        };
        let chains = match self.chains {
            1 => "a chain".to_string(),
            chains => format!("{chains} chains"),
        };
        let rows = if self.left_out > 0.0 { ", rows left out" } else { "" };
        let draws = match (self.draws, self.chains) {
            (Draws::Own, _) => "",
            (Draws::Meka, 1) => ", in MEKA's order",
            (Draws::Meka, _) => ", in MEKA's orders and bags",
        };
        format!("{chains} of {link}{rows}{draws}")
    }

    /// The label sets of `test`.
    pub fn predict(
        &self,
        registry: &Registry,
        train: &RecordBatch,
        test: &RecordBatch,
    ) -> Result<LabelSets> {
        let known = Dataset::try_new("train", std::slice::from_ref(train), "labels")?;
        let labels = known.universe();
        let tables = match self.link {
            Link::Hinge | Link::Weka => Some(Table::pair(train, test)?),
            Link::Spec(_) => None,
        };
        let mut votes = vec![vec![0; labels.len()]; test.num_rows()];
        for chain in 1..=self.chains {
            let order = self.order(chain, labels);
            let bag = self.bag(chain, known.len());
            let mut parents: Vec<Parent> = Vec::new();
            for y in order {
                let target: Vec<bool> = known.truth().iter().map(|set| set.contains(&y)).collect();
                let sample = self.sample(u64::from(y.0), &bag, &target);
                let predicted = match (self.link, &tables) {
                    (Link::Spec(spec), _) => {
                        let trainer = Trainer::try_new(registry, spec)?;
                        link(trainer, (train, test), &parents, &target, &sample)?
                    }
                    (Link::Hinge, Some(tables)) => {
                        hinge::predict(tables, &parents, &target, &sample)
                    }
                    (Link::Weka, Some(tables)) => weka::predict(tables, &parents, &target, &sample),
                    (_, None) => Vec::new(),
                };
                let on = votes.iter_mut().zip(&predicted).filter(|(_, on)| **on);
                on.for_each(|(votes, _)| votes[y.index()] += 1);
                let name = format!("label {}", labels.name(y));
                parents.push(Parent { name, train: target, test: predicted });
            }
        }
        let mut sets = LabelSets::default();
        for votes in votes {
            let votes = labels.ids().zip(votes);
            sets.push(votes.filter(|(_, votes)| 2 * votes >= self.chains).map(|v| v.0));
        }
        Ok(sets)
    }

    /// The labels as a chain has them.
    fn order(&self, chain: u64, labels: &Vocabulary<LabelId>) -> Vec<LabelId> {
        match self.draws {
            Draws::Own => {
                let mut order: Vec<LabelId> = labels.ids().collect();
                order.sort_by_key(|&y| (content_hash(chain, labels.name(y).as_bytes()), y));
                order
            }
            Draws::Meka => {
                // A chain alone has the seed 0, those of an ensemble are counted from 1.
                let seed = if self.chains == 1 { 0 } else { chain };
                Random::new(seed).shuffled(labels.len()).into_iter().map(LabelId).collect()
            }
        }
    }

    /// The rows that a chain learns from.
    fn bag(&self, chain: u64, rows: usize) -> Vec<u32> {
        if self.chains > 1 && self.draws == Draws::Meka {
            return Random::new(chain).bag(rows);
        }
        let draw = |r: u32| match self.chains {
            1 => r,
            _ => (content_hash(chain, &r.to_le_bytes()) % rows as u128) as u32,
        };
        (0..rows as u32).map(draw).collect()
    }

    /// The rows of `bag` that a link learns from.
    fn sample(&self, seed: u64, bag: &[u32], target: &[bool]) -> Vec<u32> {
        let mut left = (bag.len() as f64 * self.left_out).round() as usize;
        let mut places: Vec<usize> = (0..bag.len()).collect();
        places.sort_by_key(|place| content_hash(seed, &place.to_le_bytes()));
        let mut keep = |row: &u32| {
            let out = left > 0 && !target[*row as usize];
            left -= usize::from(out);
            !out
        };
        let mut sample: Vec<u32> =
            places.into_iter().map(|place| bag[place]).filter(&mut keep).collect();
        sample.sort_unstable();
        sample
    }
}

/// Which rows of `test` have a label, that the rows `sample` of `train` have as `target` says.
fn link(
    mut trainer: Trainer,
    (train, test): (&RecordBatch, &RecordBatch),
    parents: &[Parent],
    target: &[bool],
    sample: &[u32],
) -> Result<Vec<bool>> {
    if !sample.iter().any(|&r| target[r as usize]) {
        return Ok(vec![false; test.num_rows()]);
    }
    let mut labels = ListBuilder::new(StringBuilder::new());
    for &r in sample {
        if target[r as usize] {
            labels.values().append_value("on");
        }
        labels.append(true);
    }
    let labels: ArrayRef = Arc::new(labels.finish());
    let learn = with_parents(train, parents, |parent| &parent.train)?;
    trainer.observe(&labels, &take(&learn, &UInt32Array::from(sample.to_vec()), None)?)?;
    let ask = with_parents(test, parents, |parent| &parent.test)?;
    let sets = trainer.finish()?.predict(&ask)?;
    Ok((0..sets.len()).map(|r| sets.value_length(r) > 0).collect())
}

/// The features of `batch` and a flag for each parent.
fn with_parents(
    batch: &RecordBatch,
    parents: &[Parent],
    of: impl Fn(&Parent) -> &Vec<bool>,
) -> Result<ArrayRef> {
    let schema = batch.schema();
    let labels = schema.index_of("labels")?;
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (i, field) in schema.fields().iter().enumerate().filter(|(i, _)| *i != labels) {
        fields.push(Arc::clone(field));
        columns.push(Arc::clone(batch.column(i)));
    }
    for parent in parents {
        fields.push(Arc::new(Field::new(&parent.name, DataType::Boolean, false)));
        columns.push(Arc::new(BooleanArray::from(of(parent).clone())));
    }
    Ok(root(&RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?))
}

/// Which labels a row gets from the scores of a model.
#[derive(Clone, Copy)]
pub enum Rule {
    /// Those that the model predicts, or the most probable one where that is none.
    NeverEmpty,
    /// Those from a threshold on, the same for all labels and rows, with which the rows have as many
    /// labels as those that train. MEKA finds it on the rows that are tested, without their labels.
    Cardinality,
}

/// The sets that the rule makes of the scores of `spec`.
pub fn ruled(
    registry: &Registry,
    rule: Rule,
    spec: &str,
    train: &RecordBatch,
    test: &RecordBatch,
) -> Result<LabelSets> {
    let mut trainer = Trainer::try_new(registry, spec)?;
    trainer.observe_batch(train, "labels")?;
    let model = trainer.finish()?;
    let known = Dataset::try_new("train", std::slice::from_ref(train), "labels")?;
    let ids: Vec<Option<LabelId>> =
        model.space().labels.names().map(|name| known.universe().get(name)).collect();
    let rows = model.read(&split_columns(test, "labels")?.1)?;
    let (mut sets, mut scores) = (LabelSets::default(), Vec::new());
    let scorer = model.scorer()?;
    scorer.predict(&rows, &mut sets)?;
    scorer.score(&rows, &mut scores)?;
    // From log-odds to probabilities, or to shares of votes.
    scores.iter_mut().for_each(|score| *score = 1.0 / (1.0 + (-*score).exp()));
    let labels: usize = known.truth().iter().map(|set| set.len()).sum();
    let least = threshold(&scores, labels as f64 / known.len() as f64 * sets.len() as f64);
    let mut out = LabelSets::default();
    for (set, scores) in sets.iter().zip(scores.chunks(ids.len().max(1))) {
        let best =
            (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]).then(b.cmp(&a)));
        let places: Vec<usize> = match rule {
            Rule::NeverEmpty if set.is_empty() => best.into_iter().collect(),
            Rule::NeverEmpty => set.iter().map(|y| y.index()).collect(),
            Rule::Cardinality => (0..scores.len()).filter(|&y| scores[y] >= least).collect(),
        };
        let mut set: Vec<LabelId> = places.into_iter().filter_map(|y| ids[y]).collect();
        set.sort_unstable();
        out.push(set);
    }
    Ok(out)
}

/// The threshold that `labels` of the scores reach.
fn threshold(scores: &[f64], labels: f64) -> f64 {
    let mut sorted = scores.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let first = sorted.len().saturating_sub(labels.round() as usize);
    let at = |place: usize| sorted.get(place).or(sorted.last()).copied().unwrap_or(0.5);
    ((at(first) + at(first + 1)) / 2.0).max(1e-5)
}
