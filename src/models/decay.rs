//! What the weights of a model that forgets are worth beside others.

use crate::error::{Error, Result};
use serde_json::{Value, json};
use std::fmt;

/// How the weights of a model have faded while it learned.
///
/// A model that never forgot has none. It stands in the metadata of the model row under
/// [`Decay::KEY`].
///
/// # Examples
///
/// ```
/// use labelflow::models::Decay;
///
/// let early = Decay::Time { half_life: 60, landmark: 0 };
/// let late = Decay::Time { half_life: 60, landmark: 120 };
/// // Two half-lives lie between them: what the early model knows counts a quarter.
/// assert_eq!(Decay::align(Some(early), Some(late))?, (Some(late), 0.25, 1.0));
/// assert!(Decay::align(Some(Decay::Stream), Some(Decay::Stream)).is_err());
/// assert!(Decay::align(Some(early), None).is_err());
/// # Ok::<(), labelflow::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decay {
    /// Row by row of one stream: beside the weights of another stream they mean nothing.
    Stream,
    /// By event time.
    Time {
        /// The time in which weights halve.
        half_life: i64,
        /// The time at which the weights are what they are.
        landmark: i64,
    },
}

impl Decay {
    /// The key in the metadata of a model row.
    pub const KEY: &'static str = "labelflow.decay";

    /// What makes the weights of two models comparable: the decay of both together, and the factor
    /// for each.
    ///
    /// # Errors
    ///
    /// `Incompatible` when nothing does.
    pub fn align(mine: Option<Decay>, theirs: Option<Decay>) -> Result<(Option<Decay>, f64, f64)> {
        match (mine, theirs) {
            (None, None) => Ok((None, 1.0, 1.0)),
            (
                Some(Decay::Time { half_life, landmark: mine }),
                Some(Decay::Time { half_life: other, landmark: theirs }),
            ) if half_life == other => {
                let landmark = mine.max(theirs);
                let weight = |from: i64| {
                    let steps = landmark.saturating_sub(from) as f64;
                    (-steps / half_life as f64).exp2()
                };
                let both = Decay::Time { half_life, landmark };
                Ok((Some(both), weight(mine), weight(theirs)))
            }
            (Some(Decay::Stream), _) | (_, Some(Decay::Stream)) => Err(Error::incompatible(
                "a model that forgot row by row counts the rows of its own stream and cannot be \
                 merged: use a half-life in event time, or none",
            )),
            _ => Err(Error::incompatible(
                "the models forgot differently and cannot be merged: use one half-life in event \
                 time for both, or none",
            )),
        }
    }

    /// The text that stands in the metadata.
    pub(crate) fn to_text(self) -> String {
        match self {
            Decay::Stream => json!({}),
            Decay::Time { half_life, landmark } => {
                json!({ "half_life": half_life, "landmark": landmark })
            }
        }
        .to_string()
    }

    /// The decay that [`Decay::to_text`] wrote.
    pub(crate) fn from_text(text: &str) -> Result<Self> {
        let value: Option<Value> = serde_json::from_str(text).ok();
        let number = |name: &str| value.as_ref()?.get(name)?.as_i64();
        match (&value, number("half_life"), number("landmark")) {
            (Some(Value::Object(none)), None, None) if none.is_empty() => Ok(Decay::Stream),
            (_, Some(half_life), Some(landmark)) if half_life > 0 => {
                Ok(Decay::Time { half_life, landmark })
            }
            _ => Err(Error::corrupt("the decay of the model cannot be read")),
        }
    }
}

impl fmt::Display for Decay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decay::Stream => {
                f.write_str("weights have faded row by row of one stream: it merges with no other")
            }
            Decay::Time { half_life, landmark } => write!(
                f,
                "weights halve every {half_life} of event time and are those at time {landmark}"
            ),
        }
    }
}
