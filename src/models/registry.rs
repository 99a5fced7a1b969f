//! The list of algorithms.

use super::params::did_you_mean;
use super::{Algorithm, Allowed, CheckedSpec, Choice, Spec, chains, lazy, naive_bayes};
use crate::error::{Error, Result};

/// The algorithms that specs can name.
///
/// # Examples
///
/// ```
/// use labelflow::models::Registry;
///
/// let registry = Registry::default();
/// let (algorithm, spec) = registry.resolve("naibx(smoothing=1)").unwrap();
/// assert_eq!(algorithm.name, "naibx");
/// assert_eq!(spec.to_string(), "naibx");
/// let error = registry.resolve("nabx").unwrap_err();
/// assert!(error.to_string().contains("did you mean `naibx`"));
/// ```
#[derive(Debug, Clone)]
pub struct Registry {
    algorithms: Vec<Algorithm>,
}

impl Default for Registry {
    /// The algorithms labelflow brings.
    fn default() -> Self {
        let algorithms = vec![
            naive_bayes::ALGORITHM,
            lazy::BRKNN,
            lazy::BRKNN_A,
            lazy::BRKNN_B,
            lazy::LPKNN,
            lazy::MLKNN,
            chains::BR,
            chains::CC,
            chains::ECC,
            chains::PCC,
        ];
        Registry { algorithms }
    }
}

impl Registry {
    /// This registry and one more algorithm, which replaces one of the same name.
    #[must_use]
    pub fn with(mut self, algorithm: Algorithm) -> Self {
        self.algorithms.retain(|a| a.name != algorithm.name);
        self.algorithms.push(algorithm);
        self
    }

    /// All algorithms in order of registration.
    pub fn algorithms(&self) -> &[Algorithm] {
        &self.algorithms
    }

    /// The things that parameters can name and that have parameters of their own, such as base
    /// learners, each once: the name of the parameter, and the choice.
    pub fn choices(&self) -> Vec<(&'static str, Choice)> {
        let mut all: Vec<(&'static str, Choice)> = Vec::new();
        for parameter in self.algorithms.iter().flat_map(|a| a.parameters) {
            let Allowed::Choice(choices) = parameter.allowed else { continue };
            for choice in choices {
                if !all.iter().any(|(name, c)| (*name, c.name) == (parameter.name, choice.name)) {
                    all.push((parameter.name, *choice));
                }
            }
        }
        all
    }

    /// The algorithm a spec names, and the spec checked against its parameters.
    ///
    /// # Errors
    ///
    /// Unknown names and parameters list the valid ones and suggest the nearest.
    pub fn resolve(&self, spec: &str) -> Result<(Algorithm, CheckedSpec)> {
        self.resolve_parsed(&spec.parse()?)
    }

    /// As [`Registry::resolve`], for a spec that is parsed already.
    pub fn resolve_parsed(&self, spec: &Spec) -> Result<(Algorithm, CheckedSpec)> {
        let algorithm = self.find(&spec.name)?;
        Ok((algorithm, CheckedSpec::try_new(spec, algorithm.parameters)?))
    }

    /// The algorithm of this name.
    ///
    /// # Errors
    ///
    /// An unknown name lists the valid ones and suggests the nearest.
    pub fn find(&self, name: &str) -> Result<Algorithm> {
        let names = || self.algorithms.iter().map(|a| a.name);
        self.algorithms.iter().find(|a| a.name == name).copied().ok_or_else(|| {
            Error::usage(format!(
                "there is no algorithm `{name}`{}; there are: {}",
                did_you_mean(name, names()),
                names().collect::<Vec<_>>().join(", ")
            ))
        })
    }
}
