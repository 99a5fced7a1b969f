//! One model per group.

use super::batch::Batch;
use super::{Plan, outward, rows_type};
use crate::error::Result;
use crate::models::{GroupedTrainer, Model, Trainer};
use crate::store::{ModelReader, ModelWriter};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewBuilder, BooleanArray, ListArray, UInt32Array,
    new_null_array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::prep_null_mask_filter;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use std::sync::Arc;

/// Bytes of rows per group that are waited for before they are learned: about a small model.
const BYTES_PER_GROUP: usize = 16 << 10;
/// Bytes of rows that are waited for at least, and at most.
const MIN_BYTES: usize = 4 << 20;
const MAX_BYTES: usize = 256 << 20;

/// One model per group.
///
/// With many groups a batch has few rows of each. So rows wait until there are as many bytes of
/// them as the models would take, and are learned group by group. A group that has not begun to
/// learn gives its rows as its state: they are less than a model, and learned on the other side.
pub(super) struct ManyModels {
    plan: Plan,
    models: GroupedTrainer,
    waiting: Vec<Batch>,
    /// The group of each waiting row.
    groups: Vec<usize>,
    bytes: usize,
    writer: ModelWriter,
}

impl ManyModels {
    pub(super) fn try_new(plan: Plan) -> Result<Self> {
        let models = GroupedTrainer::try_new(plan.algorithm, plan.spec.clone())?;
        Ok(ManyModels {
            plan,
            models,
            waiting: Vec::new(),
            groups: Vec::new(),
            bytes: 0,
            writer: ModelWriter::default(),
        })
    }

    fn wait(&mut self, rows: Batch, groups: impl IntoIterator<Item = usize>) -> Result<()> {
        self.bytes += rows.bytes();
        self.groups.extend(groups);
        self.waiting.push(rows);
        if self.bytes > (self.models.groups() * BYTES_PER_GROUP).clamp(MIN_BYTES, MAX_BYTES) {
            self.learn(0)?;
        }
        Ok(())
    }

    /// Takes the waiting rows, group by group in the order in which they came.
    fn sorted(&mut self) -> Result<Option<(Batch, Vec<usize>)>> {
        let batches = std::mem::take(&mut self.waiting);
        let groups = std::mem::take(&mut self.groups);
        self.bytes = 0;
        let Some(rows) = Batch::concat(&batches)? else { return Ok(None) };
        if groups.is_sorted() {
            return Ok(Some((rows, groups)));
        }
        let mut next = vec![0u32; self.models.groups() + 1];
        groups.iter().for_each(|&g| next[g + 1] += 1);
        (1..next.len()).for_each(|g| next[g] += next[g - 1]);
        let mut order = vec![0u32; groups.len()];
        for (row, &group) in groups.iter().enumerate() {
            order[next[group] as usize] = row as u32;
            next[group] += 1;
        }
        let groups = order.iter().map(|&row| groups[row as usize]).collect();
        Ok(Some((rows.take(&UInt32Array::from(order))?, groups)))
    }

    /// Learns the waiting rows. Rows that have to wait for the length of a vector go on waiting, but
    /// for those of the first `last` groups, for which no more rows come.
    fn learn(&mut self, last: usize) -> Result<()> {
        let Some((mut rows, mut groups)) = self.sorted()? else { return Ok(()) };
        let waits = self.models.must_wait(&rows.features)?;
        if waits {
            let end = groups.partition_point(|&g| g < last);
            self.waiting = vec![rows.slice(end, groups.len() - end)?];
            self.groups = groups.split_off(end);
            rows = rows.slice(0, end)?;
        }
        let weights = rows.weights.as_ref();
        self.models.observe(&rows.labels, &rows.features, weights, &groups)?;
        if waits {
            self.models.forget_columns();
        }
        Ok(())
    }

    fn count(&self, emit: EmitTo) -> usize {
        match emit {
            EmitTo::All => self.models.groups(),
            EmitTo::First(n) => n,
        }
    }

    fn take_models(
        &mut self,
        emit: EmitTo,
        ending: fn(Trainer) -> Result<Model>,
    ) -> Result<ArrayRef> {
        let count = self.count(emit);
        self.learn(count)?;
        let mut out = BinaryViewBuilder::with_capacity(count);
        for trainer in self.models.take(count) {
            match trainer.filter(|t| t.rows() > 0) {
                Some(trainer) => out.append_value(self.writer.to_bytes(&ending(*trainer)?)?),
                None => out.append_null(),
            }
        }
        Ok(Arc::new(out.finish()))
    }

    /// The rows of the first `count` groups as lists; the others go on waiting.
    fn take_rows(&mut self, count: usize) -> Result<ArrayRef> {
        let taken = self.sorted()?;
        drop(self.models.take(count));
        let Some((rows, groups)) = taken else {
            return Ok(new_null_array(&rows_type(&self.plan.row), count));
        };
        let end = groups.partition_point(|&g| g < count);
        if end < groups.len() {
            let rest = rows.slice(end, groups.len() - end)?;
            self.wait(rest, groups[end..].iter().map(|g| g - count))?;
        }
        let mut lengths = vec![0; count];
        groups[..end].iter().for_each(|&g| lengths[g] += 1);
        let present = NullBuffer::from_iter(lengths.iter().map(|&n| n > 0));
        let rows = rows.slice(0, end)?.to_rows(&self.plan.row)?;
        let offsets = OffsetBuffer::from_lengths(lengths);
        let list = ListArray::try_new(item(&self.plan.row), offsets, Arc::new(rows), Some(present));
        Ok(Arc::new(list?))
    }

    fn take_state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let count = self.count(emit);
        if (0..count).any(|group| self.models.has(group)) {
            let models = self.take_models(emit, Trainer::into_state)?;
            return Ok(vec![models, new_null_array(&rows_type(&self.plan.row), count)]);
        }
        Ok(vec![new_null_array(&DataType::BinaryView, count), self.take_rows(count)?])
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        let models = states[0].as_binary_view();
        let plan = &self.plan;
        let mut reader = ModelReader::default();
        for i in (0..models.len()).filter(|&i| models.is_valid(i)) {
            self.models.change(groups[i], |t| plan.merge_bytes(t, models.value(i), &mut reader))?;
        }
        if states[1].null_count() < states[1].len() {
            let (rows, groups) = Batch::of_lists(states[1].as_list(), groups)?;
            self.wait(rows, groups)?;
        }
        Ok(())
    }
}

/// The items of a list of kept rows.
pub(super) fn item(row: &Fields) -> Arc<Field> {
    Arc::new(Field::new_list_field(DataType::Struct(row.clone()), true))
}

/// The rows that pass, with NULL as false.
fn passing(filter: &BooleanArray) -> BooleanArray {
    if filter.null_count() > 0 { prep_null_mask_filter(filter) } else { filter.clone() }
}

impl GroupsAccumulator for ManyModels {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> DataFusionResult<()> {
        self.models.grow(total_num_groups);
        let rows = Batch::of_arguments(values).map_err(outward)?;
        let waits = match filter.map(passing) {
            None => self.wait(rows, group_indices.iter().copied()),
            Some(keep) => rows.filter(&keep).and_then(|rows| {
                let kept = group_indices.iter().zip(keep.values()).filter(|(_, keep)| *keep);
                self.wait(rows, kept.map(|(&group, _)| group))
            }),
        };
        waits.map_err(outward)
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> DataFusionResult<()> {
        self.models.grow(total_num_groups);
        self.merge(values, group_indices).map_err(outward)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> DataFusionResult<ArrayRef> {
        self.take_models(emit_to, Trainer::into_finished).map_err(outward)
    }

    fn state(&mut self, emit_to: EmitTo) -> DataFusionResult<Vec<ArrayRef>> {
        self.take_state(emit_to).map_err(outward)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> DataFusionResult<Vec<ArrayRef>> {
        let rows = Batch::of_arguments(values).map_err(outward)?;
        let len = rows.len();
        let rows = rows.to_rows(&self.plan.row).map_err(outward)?;
        let kept = filter.map(|f| NullBuffer::new(passing(f).values().clone()));
        let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(1, len));
        let lists = ListArray::try_new(item(&self.plan.row), offsets, Arc::new(rows), kept)?;
        Ok(vec![new_null_array(&DataType::BinaryView, len), Arc::new(lists)])
    }

    fn size(&self) -> usize {
        self.models.heap_size() + self.bytes + self.groups.capacity() * size_of::<usize>()
    }
}
