//! An attribute of an ARFF file: its name, what values it takes, how a value is read.

use crate::error::{Error, Result};
use crate::formats::shown;

/// A declared attribute.
#[derive(Debug, Clone)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// The values an attribute takes.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// `numeric`, `real` or `integer`.
    Number,
    /// The nominal set of `0` and `1`; `first` is the value declared first.
    Flag {
        /// What a sparse row means that does not list the attribute.
        first: bool,
    },
    /// Any other nominal set.
    Nominal(NominalSet),
    /// `string` or `date`, kept as written.
    Text,
}

/// The declared values of a nominal attribute.
#[derive(Debug, Clone)]
pub(super) struct NominalSet {
    /// What a sparse row means that does not list the attribute.
    pub(super) first: Option<String>,
    /// All values in byte order.
    sorted: Vec<String>,
}

impl Kind {
    /// The kind of a nominal attribute with these values, in declared order.
    pub(super) fn nominal(values: Vec<String>) -> Self {
        match values.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["0", "1"] => return Kind::Flag { first: false },
            ["1", "0"] => return Kind::Flag { first: true },
            _ => {}
        }
        let first = values.first().cloned();
        let mut sorted = values;
        sorted.sort_unstable();
        sorted.dedup();
        Kind::Nominal(NominalSet { first, sorted })
    }
}

impl NominalSet {
    fn contains(&self, text: &str) -> bool {
        self.sorted.binary_search_by(|v| v.as_str().cmp(text)).is_ok()
    }
}

impl Attribute {
    /// Reads `text` as a number.
    pub(super) fn number(&self, text: &str) -> Result<f64> {
        text.parse().map_err(|_| {
            self.error(text, "is not a number; write a number, or `?` when it is missing")
        })
    }

    /// Reads `text` as one of `0` and `1`.
    pub(super) fn flag(&self, text: &str) -> Result<bool> {
        match text {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(self.undeclared(text, "0, 1")),
        }
    }

    /// Checks that `text` is one of the declared values, if any are declared.
    pub(super) fn check_declared(&self, text: &str) -> Result<()> {
        match &self.kind {
            Kind::Nominal(set) if !set.contains(text) => {
                let first: Vec<&str> = set.sorted.iter().take(5).map(String::as_str).collect();
                let more = if set.sorted.len() > 5 { ", ..." } else { "" };
                Err(self.undeclared(text, &format!("{}{more}", first.join(", "))))
            }
            _ => Ok(()),
        }
    }

    /// Reads `text` as the state of a label: on or off.
    pub(super) fn label(&self, text: &str) -> Result<bool> {
        let state = match &self.kind {
            Kind::Flag { .. } => return self.flag(text),
            Kind::Number => match text.parse::<f64>() {
                Ok(1.0) => Some(true),
                Ok(0.0) => Some(false),
                _ => None,
            },
            Kind::Nominal(_) => {
                self.check_declared(text)?;
                switch(text)
            }
            Kind::Text => None,
        };
        state.ok_or_else(|| self.error(text, "is no label state; write 0, 1 or `?`"))
    }

    /// The state of a label that a sparse row does not list, or an error when the attribute
    /// cannot be a label.
    pub(super) fn unlisted_label(&self) -> Result<bool> {
        match &self.kind {
            Kind::Number => Ok(false),
            Kind::Flag { first } => Ok(*first),
            Kind::Nominal(set) if set.sorted.iter().all(|v| switch(v).is_some()) => {
                Ok(set.first.as_deref().and_then(switch).unwrap_or(false))
            }
            Kind::Nominal(_) | Kind::Text => Err(Error::data(format!(
                "attribute `{}` is named as a label but does not take the values 0 and 1; \
                 declare it as {{0,1}}, or leave it out of the labels",
                self.name
            ))),
        }
    }

    fn undeclared(&self, text: &str, declared: &str) -> Error {
        self.error(
            text,
            &format!("is not among the declared values {{{declared}}}; correct it or declare it"),
        )
    }

    fn error(&self, text: &str, what: &str) -> Error {
        Error::data(format!("attribute `{}`: the value `{}` {what}", self.name, shown(text)))
    }
}

/// What the nominal value of a label means.
fn switch(text: &str) -> Option<bool> {
    let is = |words: [&str; 3]| words.iter().any(|w| text.eq_ignore_ascii_case(w));
    if is(["1", "true", "yes"]) {
        Some(true)
    } else if is(["0", "false", "no"]) {
        Some(false)
    } else {
        None
    }
}
