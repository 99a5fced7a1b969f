//! A description in the making: a learner that only counts.

use crate::data::{FeatureOptions, Id, Remap, Rows, Space, Used};
use crate::error::{Error, Result};
use crate::models::{Algorithm, Capabilities, CheckedSpec, Insight, Learner, Scorer, same_kind};
use crate::stats::{SetCounts, State, Statistic};
use std::any::Any;

/// Counts label sets and collects the names of features; its models describe and do not predict.
///
/// It is in no registry: a session or a [`Trainer`](crate::models::Trainer) that describes data is
/// given it by [`Registry::with`](crate::models::Registry::with).
pub const DESCRIBE: Algorithm = Algorithm {
    name: "describe",
    summary: "counts label sets and features; does not predict",
    parameters: &[],
    capabilities: |_| Capabilities {
        forgets: false,
        decays: false,
        ranks_sets: false,
        reopens: true,
    },
    reference: "",
    features: |_| Ok(FeatureOptions::default()),
    start: |_| Ok(Box::<Describer>::default()),
    resume,
};

/// What a description is derived from.
#[derive(Debug, Default)]
pub(super) struct Describer {
    pub(super) sets: SetCounts,
}

fn resume(_: &CheckedSpec, space: &Space, state: &State) -> Result<Box<dyn Learner>> {
    let sets = SetCounts::decode(state)?;
    let known = space.labels.len();
    if sets.entries().iter().any(|(set, _)| set.last().is_some_and(|y| y.index() >= known)) {
        return Err(Error::corrupt("the description counts labels that it does not have"));
    }
    Ok(Box::new(Describer { sets }))
}

impl Learner for Describer {
    fn observe(&mut self, rows: &Rows, space: &Space) -> Result<()> {
        self.sets.observe(rows, &space.features);
        Ok(())
    }

    fn merge(&mut self, other: &dyn Learner) -> Result<()> {
        self.sets.merge(&same_kind::<Describer>(other)?.sets);
        Ok(())
    }

    fn used(&self, space: &Space) -> Used {
        Used::all(space)
    }

    fn remap(&self, ids: &Remap) -> Box<dyn Learner> {
        Box::new(Describer { sets: self.sets.remap(ids) })
    }

    fn encode(&self) -> Result<State> {
        Ok(self.sets.encode())
    }

    fn fit(&self, _: &Space) -> Result<Box<dyn Scorer>> {
        Err(Error::unsupported("a description does not predict: fit a model"))
    }

    fn insight(&self, _: &Space, _: usize) -> Insight {
        Insight::default()
    }

    fn heap_size(&self) -> usize {
        self.sets.heap_size()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
