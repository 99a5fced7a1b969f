//! States written and read by name.

use super::state::{Part, State};
use crate::error::{Error, Result};
use std::borrow::Cow;

/// Builds a state, part by part.
#[derive(Debug, Default)]
pub struct StateWriter {
    state: State,
}

impl StateWriter {
    /// Adds a list of numbers.
    pub fn f64s(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = f64>,
    ) {
        self.state.push(name, Part::Numbers(values.into_iter().collect()));
    }

    /// Adds a list of whole numbers.
    pub fn u32s(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = u32>,
    ) {
        self.state.push(name, Part::WholeNumbers(values.into_iter().collect()));
    }

    /// Adds a state inside this one.
    pub fn nested(&mut self, name: impl Into<Cow<'static, str>>, state: State) {
        self.state.push(name, Part::State(state));
    }

    /// Adds a state inside this one where there is one; else it is left out.
    pub fn optional(&mut self, name: impl Into<Cow<'static, str>>, state: Option<State>) {
        if let Some(state) = state {
            self.nested(name, state);
        }
    }

    /// The state.
    pub fn finish(self) -> State {
        self.state
    }
}

/// Reads a state, part by part; whatever does not fit is `Corrupt`.
#[derive(Debug, Clone, Copy)]
pub struct StateReader<'a> {
    state: &'a State,
}

impl<'a> StateReader<'a> {
    /// A reader of `state`.
    pub fn new(state: &'a State) -> Self {
        StateReader { state }
    }

    /// The list of numbers called `name`.
    pub fn f64s(&self, name: &str) -> Result<&'a [f64]> {
        match self.state.get(name) {
            Some(Part::Numbers(values)) => Ok(values),
            _ => Err(unfit(name)),
        }
    }

    /// The list of whole numbers called `name`.
    pub fn u32s(&self, name: &str) -> Result<&'a [u32]> {
        match self.state.get(name) {
            Some(Part::WholeNumbers(values)) => Ok(values),
            _ => Err(unfit(name)),
        }
    }

    /// The state called `name` inside this one.
    pub fn nested(&self, name: &str) -> Result<&'a State> {
        self.optional(name)?.ok_or_else(|| unfit(name))
    }

    /// The state called `name` inside this one, where it is not left out.
    pub fn optional(&self, name: &str) -> Result<Option<&'a State>> {
        match self.state.get(name) {
            None => Ok(None),
            Some(Part::State(state)) => Ok(Some(state)),
            Some(_) => Err(unfit(name)),
        }
    }
}

fn unfit(name: &str) -> Error {
    Error::corrupt(format!("the model's field `{name}` is missing or of another type"))
}
