//! One model over all rows, and one over a sliding frame.

use super::super::from_datafusion;
use super::batch::Batch;
use super::many::item;
use super::{Ending, Plan, outward, rows_type};
use crate::error::Result;
use crate::models::Trainer;
use crate::store::{self, ModelReader};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::common::ScalarValue;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::Accumulator;
use std::collections::VecDeque;
use std::sync::Arc;

/// Rows that are learned together. Moments are summed block by block, so with blocks of one length
/// the last digits do not depend on the batches in which a file happens to be read.
const BLOCK: usize = 2048;

/// One model over all rows.
#[derive(Debug)]
pub(super) struct OneModel {
    plan: Plan,
    trainer: Trainer,
    /// The rows of the block that is not full yet.
    open: Vec<Batch>,
    open_rows: usize,
}

impl OneModel {
    pub(super) fn try_new(plan: Plan) -> Result<Self> {
        let trainer = plan.trainer()?;
        Ok(OneModel { plan, trainer, open: Vec::new(), open_rows: 0 })
    }

    fn update(&mut self, mut rows: Batch) -> Result<()> {
        while self.open_rows + rows.len() >= BLOCK {
            let missing = BLOCK - self.open_rows;
            self.open.push(rows.slice(0, missing)?);
            rows = rows.slice(missing, rows.len() - missing)?;
            self.close()?;
        }
        if rows.len() > 0 {
            self.open_rows += rows.len();
            self.open.push(rows);
        }
        Ok(())
    }

    /// Learns the rows of the open block.
    fn close(&mut self) -> Result<()> {
        let rows = Batch::concat(&std::mem::take(&mut self.open))?;
        self.open_rows = 0;
        rows.map_or(Ok(()), |rows| observe(&mut self.trainer, &rows))
    }

    fn model(&mut self, ending: Ending) -> Result<ScalarValue> {
        self.close()?;
        model_value(&self.trainer, ending)
    }

    /// What was learned; rows that wait for the length of a vector go on as rows.
    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.close()?;
        let waiting = self.trainer.take_waiting().into_iter();
        let waiting =
            waiting.map(|(labels, features, weights)| Batch { labels, features, weights });
        let rows = match Batch::concat(&waiting.collect::<Vec<_>>())? {
            None => {
                ScalarValue::try_new_null(&rows_type(&self.plan.row)).map_err(from_datafusion)?
            }
            Some(rows) => {
                let offsets = OffsetBuffer::from_lengths([rows.len()]);
                let rows = Arc::new(rows.to_rows(&self.plan.row)?);
                let list = ListArray::try_new(item(&self.plan.row), offsets, rows, None)?;
                ScalarValue::List(Arc::new(list))
            }
        };
        Ok(vec![model_value(&self.trainer, Trainer::state)?, rows])
    }

    fn merge(&mut self, states: &[ArrayRef]) -> Result<()> {
        let models = states[0].as_binary_view();
        let mut reader = ModelReader::default();
        for i in (0..models.len()).filter(|&i| models.is_valid(i)) {
            self.plan.merge_bytes(&mut self.trainer, models.value(i), &mut reader)?;
        }
        if states[1].null_count() < states[1].len() {
            let groups = vec![0; states[1].len()];
            let (rows, _) = Batch::of_lists(states[1].as_list(), &groups)?;
            observe(&mut self.trainer, &rows)?;
        }
        Ok(())
    }
}

fn observe(trainer: &mut Trainer, rows: &Batch) -> Result<()> {
    trainer.observe_weighted(&rows.labels, &rows.features, rows.weights.as_ref())
}

/// What `trainer` has learned, NULL when nothing.
fn model_value(trainer: &Trainer, ending: Ending) -> Result<ScalarValue> {
    let settled = trainer.settled()?;
    let trainer = settled.as_ref().unwrap_or(trainer);
    let bytes = match trainer.rows() {
        0 => None,
        _ => Some(store::to_bytes(&ending(trainer)?)?),
    };
    Ok(ScalarValue::BinaryView(bytes))
}

impl Accumulator for OneModel {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DataFusionResult<()> {
        Batch::of_arguments(values).and_then(|rows| self.update(rows)).map_err(outward)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DataFusionResult<()> {
        self.merge(states).map_err(outward)
    }

    fn state(&mut self) -> DataFusionResult<Vec<ScalarValue>> {
        self.state().map_err(outward)
    }

    fn evaluate(&mut self) -> DataFusionResult<ScalarValue> {
        self.model(Trainer::finish).map_err(outward)
    }

    fn size(&self) -> usize {
        let open: usize = self.open.iter().map(Batch::bytes).sum();
        size_of_val(self) + self.trainer.heap_size() + self.trainer.ending_size() + open
    }
}

/// The model of the rows in a frame whose start moves.
///
/// Moments cannot be taken back without losing digits, and some algorithms cannot forget at all. So
/// the rows of the frame are kept and learned anew for each model: exact for every algorithm, at
/// the cost of the frame per row.
#[derive(Debug)]
pub(super) struct SlidingModel {
    plan: Plan,
    rows: VecDeque<Batch>,
    bytes: usize,
}

impl SlidingModel {
    pub(super) fn new(plan: Plan) -> Self {
        SlidingModel { plan, rows: VecDeque::new(), bytes: 0 }
    }

    fn drop_first(&mut self, mut count: usize) -> Result<()> {
        while let Some(first) = self.rows.pop_front() {
            self.bytes = self.bytes.saturating_sub(first.bytes());
            if first.len() > count {
                let rest = first.slice(count, first.len() - count)?;
                self.bytes += rest.bytes();
                self.rows.push_front(rest);
                return Ok(());
            }
            count -= first.len();
        }
        Ok(())
    }

    fn model(&mut self) -> Result<ScalarValue> {
        let mut trainer = self.plan.trainer()?;
        if let Some(rows) = Batch::concat(self.rows.make_contiguous())? {
            self.rows = VecDeque::from([rows.clone()]);
            observe(&mut trainer, &rows)?;
        }
        model_value(&trainer, Trainer::finish)
    }
}

impl Accumulator for SlidingModel {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DataFusionResult<()> {
        let rows = Batch::of_arguments(values).map_err(outward)?;
        if rows.len() > 0 {
            self.bytes += rows.bytes();
            self.rows.push_back(rows);
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> DataFusionResult<()> {
        self.drop_first(values[1].len()).map_err(outward)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> DataFusionResult<()> {
        Err(outward(crate::Error::internal("a frame is not merged")))
    }

    fn state(&mut self) -> DataFusionResult<Vec<ScalarValue>> {
        Err(outward(crate::Error::internal("a frame has no partial state")))
    }

    fn evaluate(&mut self) -> DataFusionResult<ScalarValue> {
        self.model().map_err(outward)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes
    }
}
