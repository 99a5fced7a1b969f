//! How much of the past counts.

use crate::error::{Error, Result};

/// A length of a stream: in learned rows, or in event time.
///
/// The unit of event time is that of the times given with the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// Learned rows.
    Rows(u64),
    /// Event time.
    Time(i64),
}

impl Span {
    /// The length as a number of rows or units of time.
    pub(super) fn length(self) -> i64 {
        match self {
            Span::Rows(rows) => i64::try_from(rows).unwrap_or(i64::MAX),
            Span::Time(time) => time,
        }
    }
}

/// What is kept of the past.
///
/// Both ways of forgetting go in steps at fixed places of the stream (every so many rows from its
/// beginning, or at fixed times), so that results do not depend on batches or restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Forgetting {
    /// Everything.
    #[default]
    Never,
    /// Weights halve with every half-life, in 64 steps (rows of one step count alike).
    ///
    /// With event time, a late row counts as much as if it had come in time.
    Decay {
        /// The half-life.
        half_life: Span,
    },
    /// The last rows, in blocks of a 32nd of the window: what leaves, leaves without a trace.
    ///
    /// With event time, a late row counts with the block in which it arrives.
    Window {
        /// The length of the window: at most so many rows or so much time is known.
        length: Span,
    },
}

/// Steps of a half-life.
const STEPS: i64 = 64;
/// Blocks of a window.
const BLOCKS: i64 = 32;

impl Forgetting {
    /// Whether it goes by event time.
    pub fn needs_time(&self) -> bool {
        matches!(self.span(), Some(Span::Time(_)))
    }

    fn span(&self) -> Option<Span> {
        match self {
            Forgetting::Never => None,
            Forgetting::Decay { half_life: span } | Forgetting::Window { length: span } => {
                Some(*span)
            }
        }
    }

    /// The length of one step or block.
    pub(super) fn step(&self) -> i64 {
        match self {
            Forgetting::Never => i64::MAX,
            Forgetting::Decay { half_life } => (half_life.length() / STEPS).max(1),
            Forgetting::Window { length } => (length.length() / BLOCKS).max(1),
        }
    }

    /// The length of a block of a window of rows.
    pub(super) fn block_rows(&self) -> Option<u64> {
        match self {
            Forgetting::Window { length: Span::Rows(_) } => u64::try_from(self.step()).ok(),
            _ => None,
        }
    }

    /// # Errors
    ///
    /// A half-life or a window without a length.
    pub(super) fn check(&self) -> Result<()> {
        if self.span().is_some_and(|span| span.length() <= 0) {
            return Err(Error::usage("a half-life or a window must be longer than nothing"));
        }
        Ok(())
    }
}
