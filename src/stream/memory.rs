//! The places in a stream at which something is forgotten, and the blocks of a window.

use super::{Forgetting, Span};
use crate::data::{Remap, Rows, Space};
use crate::error::Result;
use crate::models::{Decay, Learner, Trainer};

/// What forgetting needs to know of the past.
#[derive(Debug)]
pub(super) enum Memory {
    /// Nothing is forgotten.
    Whole,
    /// All weights are those at the beginning of step `landmark`.
    Fading { half_life: Span, step: i64, landmark: Option<i64> },
    /// The rows of the last blocks.
    Sliding(Box<Sliding>),
}

/// A window as a queue of blocks: two stacks, so that every block is merged a few times only and
/// nothing is ever subtracted.
#[derive(Debug)]
pub(super) struct Sliding {
    step: i64,
    /// How many blocks the window has.
    blocks: i64,
    /// The block that rows are added to now.
    pub(super) open: Option<Block>,
    /// The oldest blocks, newest first, each merged with those before it in this list.
    pub(super) front: Vec<Block>,
    /// The blocks after those, oldest first.
    pub(super) back: Vec<Block>,
}

/// The rows of a piece of the stream.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) index: i64,
    pub(super) rows: u64,
    pub(super) learner: Box<dyn Learner>,
}

/// What a row found when it came.
pub(super) enum Arrival {
    /// The weights and the window are as they were.
    InPlace,
    /// Something was forgotten before the row.
    Forgot,
    /// The row is late and counts this much.
    Late(f64),
}

impl Memory {
    /// What `trainer`, which is to forget so from now on, needs to know.
    pub(super) fn new(forgetting: &Forgetting, trainer: &mut Trainer) -> Self {
        let step = forgetting.step();
        let mut memory = match *forgetting {
            Forgetting::Never => Memory::Whole,
            Forgetting::Decay { half_life } => Memory::Fading { half_life, step, landmark: None },
            Forgetting::Window { length } => {
                // Whole blocks only: the window never holds more than it says.
                let blocks = length.length() / step;
                let (front, back) = (Vec::new(), Vec::new());
                Memory::Sliding(Box::new(Sliding { step, blocks, open: None, front, back }))
            }
        };
        memory.adopt(trainer);
        memory
    }

    /// Forgets what is due before a row at `position` (a row number, or a time) is learned.
    pub(super) fn arrive(&mut self, position: i64, trainer: &mut Trainer) -> Result<Arrival> {
        match self {
            Memory::Whole => Ok(Arrival::InPlace),
            Memory::Fading { half_life, step, landmark } => {
                let at = position.div_euclid(*step);
                let from = *landmark.get_or_insert(at);
                let steps = at.saturating_sub(from) as f64;
                let weight = (-steps.abs() * *step as f64 / half_life.length() as f64).exp2();
                if steps > 0.0 {
                    trainer.decay(weight)?;
                    *landmark = Some(at);
                }
                trainer.fades(match *half_life {
                    Span::Rows(_) => Decay::Stream,
                    Span::Time(half_life) => {
                        let at = at.max(from).saturating_mul(*step);
                        Decay::Time { half_life, landmark: at }
                    }
                });
                Ok(match steps {
                    steps if steps > 0.0 => Arrival::Forgot,
                    steps if steps < 0.0 => Arrival::Late(weight),
                    _ => Arrival::InPlace,
                })
            }
            Memory::Sliding(window) => window.arrive(position, trainer),
        }
    }

    /// Takes note of a row that was learned.
    pub(super) fn learned(&mut self, row: &Rows, space: &Space) -> Result<()> {
        if let Memory::Sliding(window) = self
            && let Some(open) = &mut window.open
        {
            open.learner.observe(row, space)?;
            open.rows += 1;
        }
        Ok(())
    }

    /// Renumbers what is kept.
    pub(super) fn remap(&mut self, ids: &Remap) {
        if let Memory::Sliding(window) = self {
            let blocks = window.front.iter_mut().chain(&mut window.back).chain(&mut window.open);
            blocks.for_each(|b| b.learner = b.learner.remap(ids));
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap_size(&self) -> usize {
        match self {
            Memory::Sliding(window) => {
                let blocks = window.front.iter().chain(&window.back).chain(&window.open);
                blocks.map(|b| b.learner.heap_size()).sum()
            }
            _ => 0,
        }
    }

    /// Takes the time of weights from `trainer`, where they have faded by event time as here. What
    /// has faded otherwise means something in this stream only.
    pub(super) fn adopt(&mut self, trainer: &mut Trainer) {
        match (self, trainer.faded()) {
            (_, None) => {}
            (
                Memory::Fading { half_life: Span::Time(half_life), step, landmark },
                Some(Decay::Time { half_life: known, landmark: at }),
            ) if *half_life == known => *landmark = Some(at.div_euclid(*step)),
            _ => trainer.fades(Decay::Stream),
        }
    }
}

impl Sliding {
    fn arrive(&mut self, position: i64, trainer: &mut Trainer) -> Result<Arrival> {
        let index = position.div_euclid(self.step);
        match &self.open {
            Some(open) if index <= open.index => return Ok(Arrival::InPlace),
            None => {
                // What was known at the start, if anything, is a block of its own.
                if trainer.rows() > 0 {
                    let learner = copy(trainer.learner(), trainer.space());
                    self.back.push(Block { index, rows: trainer.rows(), learner });
                }
                self.open = Some(Block { index, rows: 0, learner: trainer.fresh()? });
                return Ok(Arrival::InPlace);
            }
            Some(_) => {}
        }
        let next = Block { index, rows: 0, learner: trainer.fresh()? };
        if let Some(closed) = self.open.replace(next) {
            self.back.push(closed);
        }
        self.expire(index, trainer.space())?;
        let mut learner = trainer.fresh()?;
        let mut rows = 0;
        for block in self.front.last().into_iter().chain(&self.back) {
            learner.merge(&*block.learner)?;
            rows += block.rows;
        }
        trainer.replace(learner, rows);
        Ok(Arrival::Forgot)
    }

    /// Drops the blocks that are no longer in the window when block `index` begins.
    fn expire(&mut self, index: i64, space: &Space) -> Result<()> {
        let gone = |block: &Block| block.index <= index - self.blocks;
        while self.front.last().is_some_and(gone) {
            self.front.pop();
        }
        if !self.front.is_empty() || !self.back.first().is_some_and(gone) {
            return Ok(());
        }
        self.back.retain(|block| !gone(block));
        for block in self.back.drain(..).rev() {
            let merged = match self.front.last() {
                None => block,
                Some(later) => {
                    let mut learner = copy(&*block.learner, space);
                    learner.merge(&*later.learner)?;
                    Block { index: block.index, rows: block.rows + later.rows, learner }
                }
            };
            self.front.push(merged);
        }
        Ok(())
    }
}

/// The same knowledge once more.
fn copy(learner: &dyn Learner, space: &Space) -> Box<dyn Learner> {
    learner.remap(&Remap::identity(space))
}
