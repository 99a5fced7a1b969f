//! The algorithm under test.

use super::{Answers, Table, table};
use crate::error::{Error, ErrorKind, Result};
use crate::models::{Algorithm, Capabilities, CheckedSpec, Model, Registry, Trainer};
use crate::store::{from_bytes, to_bytes};

/// An algorithm with its parameters, and the tables it accepts.
#[derive(Debug)]
pub struct Subject {
    registry: Registry,
    algorithm: Algorithm,
    spec: CheckedSpec,
    tables: Vec<Table>,
    refused: Vec<(&'static str, Error)>,
}

impl Subject {
    /// The subject `spec` names.
    ///
    /// # Errors
    ///
    /// A spec the registry does not know.
    pub fn try_new(registry: &Registry, spec: &str) -> Result<Self> {
        let (algorithm, spec) = registry.resolve(spec)?;
        let registry = registry.clone();
        let (tables, refused) = (Vec::new(), Vec::new());
        let mut subject = Subject { registry, algorithm, spec, tables, refused };
        for table in table::all()? {
            match subject.try_learn(&table) {
                Ok(_) => subject.tables.push(table),
                Err(error) => subject.refused.push((table.name, error)),
            }
        }
        Ok(subject)
    }

    /// The registry it comes from.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The algorithm.
    pub fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// What it can do with this spec.
    pub fn capabilities(&self) -> Capabilities {
        (self.algorithm.capabilities)(&self.spec)
    }

    /// Its spec.
    pub fn spec(&self) -> &CheckedSpec {
        &self.spec
    }

    /// The tables it learns from.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// The table of this name, if it is accepted.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|t| t.name == name)
    }

    /// The tables it refused for other reasons than that they do not fit the algorithm.
    pub(super) fn odd_refusals(&self) -> impl Iterator<Item = &(&'static str, Error)> {
        let fair = [ErrorKind::Data, ErrorKind::Unsupported];
        self.refused.iter().filter(move |(_, error)| !fair.contains(&error.kind()))
    }

    /// A trainer that has seen nothing.
    pub fn trainer(&self) -> Result<Trainer, String> {
        Trainer::start(self.algorithm, self.spec.clone()).map_err(text)
    }

    fn try_learn(&self, table: &Table) -> Result<Model> {
        let mut trainer = Trainer::start(self.algorithm, self.spec.clone())?;
        trainer.observe(&table.labels, &table.features)?;
        let model = trainer.finish()?;
        model.predict(&table.features)?;
        Ok(model)
    }

    /// The model of the rows of `table`.
    pub fn learn(&self, table: &Table) -> Result<Model, String> {
        self.observed(&[table])?.finish().map_err(text)
    }

    /// The state of the rows of `table`, which merges whether or not a finished model does.
    pub fn state(&self, table: &Table) -> Result<Model, String> {
        self.observed(&[table])?.state().map_err(text)
    }

    /// A trainer that has observed `tables` one after the other.
    pub fn observed(&self, tables: &[&Table]) -> Result<Trainer, String> {
        let mut trainer = self.trainer()?;
        for table in tables {
            trainer.observe(&table.labels, &table.features).map_err(|e| table.say(e))?;
        }
        Ok(trainer)
    }

    /// A trainer that has merged `models` from left to right.
    pub fn merged(&self, models: &[&Model]) -> Result<Trainer, String> {
        let mut trainer = self.trainer()?;
        for model in models {
            trainer.merge(model).map_err(text)?;
        }
        Ok(trainer)
    }

    /// Learns from `table` and answers for its own rows, which must be well formed.
    pub fn learn_and_answer(&self, table: &Table) -> Result<(Model, Answers), String> {
        let model = self.learn(table)?;
        let answers = Answers::of(&model, &table.features).map_err(|e| table.say(e))?;
        Ok((model, answers))
    }

    /// The model in `bytes`.
    pub fn open(&self, bytes: &[u8]) -> Result<Model> {
        from_bytes(bytes, &self.registry)
    }
}

/// The bytes of `model`.
pub(super) fn bytes(model: &Model) -> Result<Vec<u8>, String> {
    to_bytes(model).map_err(text)
}

/// The bytes of what `trainer` has learned.
pub(super) fn trainer_bytes(trainer: &Trainer) -> Result<Vec<u8>, String> {
    bytes(&trainer.state().map_err(text)?)
}

pub(super) fn text(error: Error) -> String {
    format!("{error:?}")
}

/// Whether `result` is an error of `kind`; `what` was tried.
pub(super) fn refused<T>(result: Result<T>, kind: ErrorKind, what: &str) -> Result<Error, String> {
    match result {
        Ok(_) => Err(format!("{what} is accepted, expected an error of kind {kind:?}")),
        Err(error) if error.kind() == kind => Ok(error),
        Err(error) => Err(format!("{what} gives `{error:?}`, expected an error of kind {kind:?}")),
    }
}

/// `Ok` when `holds`, else the failure.
pub(super) fn ensure(holds: bool, failure: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(failure()) }
}
