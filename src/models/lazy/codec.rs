//! The state of a lazy learner as an Arrow row.

use super::super::{CheckedSpec, Learner};
use super::fit::Lazy;
use super::params::{Method, Params};
use super::posterior::PosteriorCounts;
use crate::data::Space;
use crate::error::Result;
use crate::stats::{RowStore, State, StateReader, StateWriter};
use std::sync::Arc;

pub(super) fn encode(state: &Lazy) -> Result<State> {
    let mut writer = StateWriter::default();
    writer.nested("rows", state.store.encode()?);
    if state.params.counts() {
        writer.nested("neighbours", PosteriorCounts::encode(state.counts.as_deref()));
    }
    Ok(writer.finish())
}

pub(super) fn resume(
    spec: &CheckedSpec,
    method: Method,
    space: &Space,
    state: &State,
) -> Result<Box<dyn Learner>> {
    let params = Params::try_new(spec, method)?;
    let reader = StateReader::new(state);
    let store = RowStore::decode(params.keep, space, reader.nested("rows")?)?;
    let counts = if params.counts() {
        let (table, state) = (store.table(), reader.nested("neighbours")?);
        let k = params.asked(&table);
        PosteriorCounts::decode(&table, space.labels.len(), k, state)?.map(Arc::new)
    } else {
        None
    };
    Ok(Box::new(Lazy { params, store, counts }))
}
