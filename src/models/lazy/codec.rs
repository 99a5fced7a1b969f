//! The state of a lazy learner as an Arrow row.

use super::super::{CheckedSpec, Learner};
use super::fit::Lazy;
use super::params::{Method, Params};
use super::posterior::PosteriorCounts;
use crate::data::Space;
use crate::error::Result;
use crate::stats::{RowStore, StateReader, StateWriter};
use arrow::array::StructArray;
use std::sync::Arc;

pub(super) fn encode(state: &Lazy) -> Result<StructArray> {
    let mut writer = StateWriter::default();
    writer.nested("rows", state.store.encode()?);
    if state.params.counts() {
        writer.nested("neighbours", PosteriorCounts::encode(state.counts.as_deref())?);
    }
    writer.finish()
}

pub(super) fn resume(
    spec: &CheckedSpec,
    method: Method,
    space: &Space,
    row: &StructArray,
) -> Result<Box<dyn Learner>> {
    let params = Params::try_new(spec, method)?;
    let reader = StateReader::new(row);
    let store = RowStore::decode(params.keep, space, reader.nested("rows")?)?;
    let counts = if params.counts() {
        let (table, row) = (store.table(), reader.nested("neighbours")?);
        let k = params.asked(&table);
        PosteriorCounts::decode(&table, space.labels.len(), k, row)?.map(Arc::new)
    } else {
        None
    };
    Ok(Box::new(Lazy { params, store, counts }))
}
