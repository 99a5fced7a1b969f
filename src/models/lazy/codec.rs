//! The state of a lazy learner as an Arrow row.

use super::super::{CheckedSpec, Learner};
use super::fit::Lazy;
use super::params::{Method, Params};
use crate::data::Space;
use crate::error::{Error, Result};
use crate::stats::{RowStore, StateReader, StateWriter};
use arrow::array::StructArray;

pub(super) fn encode(state: &Lazy) -> Result<StructArray> {
    let mut writer = StateWriter::default();
    writer.nested("rows", state.store.encode()?);
    writer.finish()
}

pub(super) fn resume(
    spec: &CheckedSpec,
    method: Method,
    space: &Space,
    row: &StructArray,
) -> Result<Box<dyn Learner>> {
    let params = Params::try_new(spec, method)?;
    let store = RowStore::decode(params.keep, space, StateReader::new(row).nested("rows")?)?;
    Ok(Box::new(Lazy { params, store }))
}

/// Fitting gives one scorer per learner.
pub(super) fn nothing() -> Error {
    Error::internal("fitting a lazy learner gave nothing")
}
