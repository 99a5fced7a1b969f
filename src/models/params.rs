//! Parameters of algorithms: declared once, checked once.

use super::{Spec, Value};
use crate::error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// A parameter that a spec may set.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The value when the spec does not set it, as it would be typed.
    pub default: &'static str,
    /// The values it takes.
    pub allowed: Allowed,
    /// What it does, for help texts.
    pub help: &'static str,
}

/// The values a parameter takes.
#[derive(Debug, Clone, Copy)]
pub enum Allowed {
    /// A whole number in a range.
    Int(i64, i64),
    /// A number in a range.
    Float(f64, f64),
    /// One of several words.
    Words(&'static [&'static str]),
    /// What a function accepts, described for people.
    Custom(&'static str, fn(&Value) -> bool),
    /// One of several things that have parameters of their own, such as a base learner.
    Choice(&'static [Choice]),
}

/// One of the things a parameter can name, typed as a spec: `logistic`, `logistic(lambda=1)`.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// Its name.
    pub name: &'static str,
    /// What it is, for help texts.
    pub help: &'static str,
    /// The parameters it takes.
    pub parameters: &'static [Parameter],
}

impl Choice {
    fn names(choices: &[Choice]) -> String {
        choices.iter().map(|c| c.name).collect::<Vec<_>>().join(", ")
    }

    /// The choice among `choices` that `value` names, with its parameters checked.
    ///
    /// # Errors
    ///
    /// As [`CheckedSpec::try_new`]; an unknown name lists the valid ones.
    fn resolve(choices: &[Choice], value: &Value) -> Result<CheckedSpec> {
        let spec = match value {
            Value::Word(name) => Spec { name: name.clone(), args: Vec::new() },
            Value::Call(spec) => spec.clone(),
            other => {
                let names = Choice::names(choices);
                return Err(Error::usage(format!("`{other}` is no name; there are: {names}")));
            }
        };
        let choice = choices.iter().find(|c| c.name == spec.name).ok_or_else(|| {
            Error::usage(format!(
                "there is no `{}`{}; there are: {}",
                spec.name,
                did_you_mean(&spec.name, choices.iter().map(|c| c.name)),
                Choice::names(choices)
            ))
        })?;
        CheckedSpec::try_new(&spec, choice.parameters)
    }
}

impl Allowed {
    /// `value` in its one form: a number parameter holds a number with a fraction, a choice what
    /// differs from its defaults.
    fn normal(&self, value: Value) -> Result<Value> {
        Ok(match (self, &value) {
            (Allowed::Float(..), Value::Int(n)) => Value::Float(*n as f64),
            (Allowed::Choice(choices), _) => {
                let spec = Arc::unwrap_or_clone(Choice::resolve(choices, &value)?.canonical);
                if spec.args.is_empty() { Value::Word(spec.name) } else { Value::Call(spec) }
            }
            _ => value,
        })
    }

    fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Allowed::Int(low, high), Value::Int(n)) => (low..=high).contains(&n),
            (Allowed::Float(low, high), Value::Float(x)) => (low..=high).contains(&x),
            (Allowed::Words(words), Value::Word(word)) => words.contains(&word.as_str()),
            (Allowed::Custom(_, accepts), value) => accepts(value),
            // Checked when it was brought into its one form.
            (Allowed::Choice(_), _) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowed::Int(low, i64::MAX) => write!(f, "a whole number from {low}"),
            Allowed::Int(low, high) => write!(f, "a whole number from {low} to {high}"),
            Allowed::Float(low, high) => write!(f, "a number from {low} to {high}"),
            Allowed::Words(words) => f.write_str(&words.join("|")),
            Allowed::Custom(text, _) => f.write_str(text),
            Allowed::Choice(choices) => {
                let text = |c: &Choice| match c.parameters {
                    [] => c.name.to_string(),
                    _ => format!("{}(...)", c.name),
                };
                f.write_str(&choices.iter().map(text).collect::<Vec<_>>().join("|"))
            }
        }
    }
}

/// A spec whose parameters are all known and in range; values not set have their defaults.
///
/// Only this type can start a learner, so unchecked parameters cannot be used.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedSpec {
    // Shared: every model of a table of models has one.
    canonical: Arc<Spec>,
    values: Arc<[(&'static str, Value)]>,
}

impl CheckedSpec {
    /// Checks `spec` against `parameters`.
    ///
    /// # Errors
    ///
    /// An unknown parameter lists the valid ones and suggests the nearest; a value out of range
    /// names the range.
    pub fn try_new(spec: &Spec, parameters: &'static [Parameter]) -> Result<Self> {
        for (name, value) in &spec.args {
            let Some(name) = name else {
                return Err(Error::usage(format!(
                    "spec `{spec}`: `{value}` has no name; write it as parameter=value with one of: {}",
                    list(parameters)
                )));
            };
            if !parameters.iter().any(|p| p.name == name) {
                let known = parameters.iter().map(|p| p.name);
                return Err(Error::usage(format!(
                    "`{}` has no parameter `{name}`{}; it has: {}",
                    spec.name,
                    did_you_mean(name, known),
                    list(parameters)
                )));
            }
        }
        let mut values = Vec::new();
        let mut canonical = Spec { name: spec.name.clone(), args: Vec::new() };
        for p in parameters {
            let default = p.allowed.normal(parse_default(p)?)?;
            let set = spec.args.iter().find(|(n, _)| n.as_deref() == Some(p.name)).map(|(_, v)| v);
            let value = p.allowed.normal(set.unwrap_or(&default).clone());
            let value = &value.map_err(|e| e.context(format!("parameter `{}`", p.name)))?;
            if value.has_range() {
                return Err(Error::usage(format!(
                    "parameter `{}={value}`: a range of values can only be evaluated; give one value",
                    p.name
                )));
            }
            if !p.allowed.accepts(value) {
                return Err(Error::usage(format!(
                    "parameter `{}={value}` of `{}` is not valid: it takes {}",
                    p.name, spec.name, p.allowed
                )));
            }
            if *value != default {
                canonical.args.push((Some(p.name.to_string()), value.clone()));
            }
            values.push((p.name, value.clone()));
        }
        Ok(CheckedSpec { canonical: Arc::new(canonical), values: values.into() })
    }

    /// The spec with what differs from the defaults, in declared order: equal specs print equally.
    pub fn canonical(&self) -> &Spec {
        &self.canonical
    }

    /// The value of a declared parameter.
    pub fn value(&self, name: &str) -> Result<&Value> {
        self.values
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, v)| v)
            .ok_or_else(|| Error::internal(format!("parameter `{name}` is read but not declared")))
    }

    /// Whether a parameter differs from its default.
    pub fn is_set(&self, name: &str) -> bool {
        self.canonical.args.iter().any(|(n, _)| n.as_deref() == Some(name))
    }

    /// The value of a number parameter.
    pub fn number(&self, name: &str) -> Result<f64> {
        match self.value(name)? {
            Value::Int(n) => Ok(*n as f64),
            Value::Float(x) => Ok(*x),
            other => Err(Error::internal(format!("parameter `{name}` holds `{other}`, no number"))),
        }
    }

    /// The value of a whole-number parameter.
    pub fn whole(&self, name: &str) -> Result<usize> {
        match self.value(name)? {
            Value::Int(n) if *n >= 0 => Ok(*n as usize),
            other => {
                Err(Error::internal(format!("parameter `{name}` holds `{other}`, no whole number")))
            }
        }
    }

    /// The choice that a parameter names, with its own parameters.
    pub fn choice(&self, name: &str, choices: &'static [Choice]) -> Result<CheckedSpec> {
        Choice::resolve(choices, self.value(name)?)
    }

    /// The value of a word parameter.
    pub fn word(&self, name: &str) -> Result<&str> {
        match self.value(name)? {
            Value::Word(word) => Ok(word),
            other => Err(Error::internal(format!("parameter `{name}` holds `{other}`, no word"))),
        }
    }
}

impl fmt::Display for CheckedSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.canonical)
    }
}

impl Spec {
    /// The part of this spec, itself or a thing that one of its `parameters` names, that has a
    /// parameter `name`.
    pub fn part_with(&mut self, name: &str, parameters: &[Parameter]) -> Option<&mut Spec> {
        if parameters.iter().any(|p| p.name == name) {
            return Some(self);
        }
        for (argument, value) in &mut self.args {
            let named = parameters.iter().find(|p| argument.as_deref() == Some(p.name));
            let Some(Allowed::Choice(choices)) = named.map(|p| p.allowed) else { continue };
            if let Value::Word(word) = value {
                *value = Value::Call(Spec { name: word.clone(), args: Vec::new() });
            }
            let Value::Call(spec) = value else { continue };
            let choice = choices.iter().find(|c| c.name == spec.name);
            if let Some(part) = choice.and_then(|c| spec.part_with(name, c.parameters)) {
                return Some(part);
            }
        }
        None
    }
}

/// Defaults are typed like values, so that help texts, specs and code cannot differ.
fn parse_default(p: &Parameter) -> Result<Value> {
    let spec: Spec = format!("d(v={})", p.default).parse()?;
    spec.args.into_iter().next().map(|a| a.1).ok_or_else(|| Error::internal("an empty default"))
}

fn list(parameters: &[Parameter]) -> String {
    if parameters.is_empty() {
        return "no parameters".to_string();
    }
    parameters.iter().map(|p| p.name).collect::<Vec<_>>().join(", ")
}

/// `, did you mean ...?` when a known name is near.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    known
        .map(|k| (strsim::damerau_levenshtein(&name.to_lowercase(), k), k))
        .filter(|(distance, k)| *distance <= 1 + k.len() / 3)
        .min()
        .map_or_else(String::new, |(_, k)| format!(", did you mean `{k}`?"))
}
