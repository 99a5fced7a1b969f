//! What trainers and models take from each other.

use super::super::bounds::check_bounds;
use super::{Decay, Learner, Model, Trainer};
use crate::data::{Remap, Space};
use crate::error::{Error, Result};

impl Trainer {
    /// The same trainer, whose weights have faded so.
    pub(in crate::models) fn with_decay(mut self, decay: Option<Decay>) -> Self {
        self.decay = decay;
        self
    }

    /// How weights have faded.
    pub(crate) fn faded(&self) -> Option<Decay> {
        self.decay
    }

    /// Takes note of how weights have faded; what belongs to one stream stays there.
    pub(crate) fn fades(&mut self, decay: Decay) {
        if self.decay != Some(Decay::Stream) {
            self.decay = Some(decay);
        }
    }

    /// Adds what `model` has seen. Where both forgot by event time, the weights of both are brought
    /// to the later of their times.
    ///
    /// # Errors
    ///
    /// Models of other specs or other columns, or that forgot otherwise; this trainer then stays as
    /// it was.
    pub fn merge(&mut self, model: &Model) -> Result<()> {
        self.check_spec(model)?;
        let (decay, mine, theirs) = self.align(model)?;
        let ids = self.widen(model.space())?;
        if theirs == 1.0 && ids.is_identity() {
            self.change(mine, |learner| learner.merge(model.learner()))?;
        } else {
            let part = scaled(model.learner(), &ids, theirs)?;
            self.change(mine, |learner| learner.merge(&*part))?;
        }
        self.decay = decay;
        self.rows_seen = self.rows_seen.saturating_add(model.rows());
        self.observe_waiting()
    }

    /// Changes the learner, its weights multiplied by `factor` first; on an error it stays as it was.
    fn change(
        &mut self,
        factor: f64,
        change: impl FnOnce(&mut dyn Learner) -> Result<()>,
    ) -> Result<()> {
        if factor == 1.0 {
            return change(&mut *self.learner);
        }
        let mut faded = scaled(&*self.learner, &Remap::identity(&self.space), factor)?;
        change(&mut *faded)?;
        self.learner = faded;
        Ok(())
    }

    /// The decay of this and `model` together, and the factor for each.
    fn align(&self, model: &Model) -> Result<(Option<Decay>, f64, f64)> {
        if self.rows_seen == 0 && self.decay.is_none() {
            return Ok((model.decay(), 1.0, 1.0));
        }
        Decay::align(self.decay, model.decay())
    }

    /// Makes room for the names of `other`, within the bounds; on an error nothing changes.
    fn widen(&mut self, other: &Space) -> Result<Remap> {
        let mut space = self.space.clone();
        let ids = space.absorb(other)?;
        check_bounds(&space, &self.reader.options)?;
        self.space = space;
        Ok(ids)
    }

    /// Takes away what `model` has seen.
    ///
    /// # Errors
    ///
    /// What was never added, what would lose more than six digits, algorithms that cannot forget,
    /// models whose weights have faded differently.
    pub fn forget(&mut self, model: &Model) -> Result<()> {
        self.check_spec(model)?;
        let (decay, mine, theirs) = self.align(model)?;
        let mut space = self.space.clone();
        let ids = space.absorb(model.space())?;
        let part = scaled(model.learner(), &ids, theirs)?;
        self.change(mine, |learner| learner.forget(&*part))?;
        (self.space, self.decay) = (space, decay);
        self.rows_seen = self.rows_seen.saturating_sub(model.rows());
        Ok(())
    }

    /// Multiplies all weights by `factor`.
    ///
    /// # Errors
    ///
    /// A factor outside 0 to 1, algorithms that cannot decay.
    pub fn decay(&mut self, factor: f64) -> Result<()> {
        if !(0.0..=1.0).contains(&factor) {
            return Err(Error::usage(format!("a decay factor is from 0 to 1, not {factor}")));
        }
        self.learner.decay(factor)
    }

    fn check_spec(&self, model: &Model) -> Result<()> {
        if self.spec.canonical() != model.spec().canonical() {
            return Err(Error::incompatible(format!(
                "models of different specs do not fit together: `{}` and `{}`; train them alike",
                self.spec,
                model.spec()
            )));
        }
        Ok(())
    }
}

/// What `learner` knows under new numbers, its weights multiplied by `factor`.
fn scaled(learner: &dyn Learner, ids: &Remap, factor: f64) -> Result<Box<dyn Learner>> {
    let mut scaled = learner.remap(ids);
    if factor < 1.0 {
        scaled.decay(factor)?;
    }
    Ok(scaled)
}
