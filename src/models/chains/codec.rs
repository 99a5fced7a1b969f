//! States of binary relevance and chains as Arrow rows.

use super::super::Learner;
use super::super::base::{BinaryCounts, LinearScores};
use super::counts::CountChains;
use super::fit::{Fitted, RowChains};
use super::params::{Method, Params, Threshold};
use crate::data::{LabelId, Space};
use crate::error::{Error, Result};
use crate::stats::{Keep, LabelCounts, RowStore, State, StateReader, StateWriter, Statistic};
use std::sync::Arc;

/// Rows and fitted weights; whichever a state does not have is empty.
pub(super) fn encode_rows(state: &RowChains) -> Result<State> {
    let scores = Arc::new(LinearScores::none());
    let none = Fitted { scores, orders: Vec::new(), thresholds: Vec::new() };
    let fitted = state.fitted.as_ref().unwrap_or(&none);
    let mut writer = StateWriter::default();
    writer.nested("label_counts", state.labels.encode());
    writer.nested("rows", state.rows.encode()?);
    writer.u32s("fitted", [u32::from(state.fitted.is_some())]);
    writer.u32s("orders", fitted.orders.iter().flatten().map(|y| y.0));
    writer.f64s("thresholds", fitted.thresholds.iter().copied());
    writer.nested("linear", fitted.scores.encode());
    Ok(writer.finish())
}

pub(super) fn resume_rows(
    params: Params,
    space: &Space,
    state: &State,
) -> Result<Box<dyn Learner>> {
    let odd = || Error::corrupt("the model's orders or counts do not fit its labels");
    let reader = StateReader::new(state);
    let count = space.labels.len();
    params.check_links(count)?;
    let labels = LabelCounts::decode(reader.nested("label_counts")?)?;
    let rows = RowStore::decode(Keep::All, space, reader.nested("rows")?)?;
    if labels.as_slice().len() > count {
        return Err(odd());
    }
    let fitted = match reader.u32s("fitted")? {
        [0] => None,
        [1] => {
            let chains = if params.method == Method::Ensemble { params.chains } else { 1 };
            let tasks = chains.checked_mul(count).ok_or_else(odd)?;
            let flat = reader.u32s("orders")?;
            if flat.len() != tasks {
                return Err(odd());
            }
            let orders = if count == 0 {
                vec![Vec::new(); chains]
            } else {
                let order = |order: &[u32]| order.iter().copied().map(LabelId).collect();
                flat.chunks_exact(count).map(order).collect()
            };
            let whole = |order: &Vec<LabelId>| {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                sorted.iter().copied().eq(space.labels.ids())
            };
            let thresholds = reader.f64s("thresholds")?.to_vec();
            let expected = match params.threshold {
                Threshold::Fixed(_) => 0,
                Threshold::Tuned(_) | Threshold::Cardinality => count,
            };
            let fits = orders.iter().all(whole)
                && thresholds.len() == expected
                && thresholds.iter().all(|t| (0.0..=1.0).contains(t));
            if !fits {
                return Err(odd());
            }
            let linear = reader.nested("linear")?;
            let scores = LinearScores::decode(params.prepare, space, tasks, linear)?;
            Some(Fitted { scores: Arc::new(scores), orders, thresholds })
        }
        _ => return Err(odd()),
    };
    Ok(Box::new(RowChains { params, rows, labels, fitted }))
}

pub(super) fn encode_counts(state: &CountChains) -> Result<State> {
    let mut writer = StateWriter::default();
    writer.nested("counts", state.all.encode());
    for (bag, counts) in state.bags.iter().enumerate() {
        writer.nested(format!("bag_{bag}"), counts.encode());
    }
    Ok(writer.finish())
}

pub(super) fn resume_counts(
    params: Params,
    space: &Space,
    state: &State,
) -> Result<Box<dyn Learner>> {
    params.check_links(space.labels.len())?;
    let reader = StateReader::new(state);
    let all = BinaryCounts::decode(space, reader.nested("counts")?)?;
    let count = CountChains::new(params.clone()).bags.len();
    let bags = (0..count)
        .map(|bag| BinaryCounts::decode(space, reader.nested(&format!("bag_{bag}"))?))
        .collect::<Result<Vec<_>>>()?;
    Ok(Box::new(CountChains::from_parts(params, all, bags)))
}
