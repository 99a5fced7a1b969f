//! One model per group.

use super::batch::Batch;
use super::column::ModelColumn;
use super::sorted::Sorted;
use super::{Plan, outward, rows_type};
use crate::error::Result;
use crate::models::{GroupedTrainer, Model, Trainer};
use crate::store::{ModelReader, ModelWriter};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListArray, new_null_array};
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
    /// Bytes of rows that wait for the length of a vector, however many they are.
    held: usize,
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
            held: 0,
            writer: ModelWriter::default(),
        })
    }

    fn wait(&mut self, rows: Batch, groups: impl IntoIterator<Item = usize>) -> Result<()> {
        self.bytes += rows.bytes();
        self.groups.extend(groups);
        self.waiting.push(rows);
        if self.bytes > (self.models.groups() * BYTES_PER_GROUP).clamp(MIN_BYTES, MAX_BYTES) {
            self.learn(0, |_| Ok(()))?;
        }
        Ok(())
    }

    /// Takes the waiting rows, group by group in the order in which they came.
    fn sorted(&mut self) -> Sorted {
        (self.bytes, self.held) = (0, 0);
        let (batches, groups) =
            (std::mem::take(&mut self.waiting), std::mem::take(&mut self.groups));
        Sorted::new(batches, groups, self.models.groups())
    }

    /// Learns the waiting rows, and hands over the first `last` groups, for which no more rows come,
    /// one after the other. Rows of other groups that have to wait for the length of a vector go on
    /// waiting.
    fn learn(
        &mut self,
        last: usize,
        mut done: impl FnMut(Option<Box<Trainer>>) -> Result<()>,
    ) -> Result<()> {
        let mut rows = self.sorted();
        let waits = self.declare(&rows)?;
        if waits {
            let end = rows.groups.partition_point(|&g| g < last);
            self.waiting = Vec::from_iter(rows.rows(end..rows.groups.len())?);
            self.groups = rows.groups.split_off(end);
            self.held = self.waiting.iter().map(Batch::bytes).sum();
        }
        let mut next = 0;
        for range in rows.chunks() {
            let Some(chunk) = rows.rows(range.clone())? else { continue };
            let groups = &rows.groups[range];
            self.models.observe(&chunk.labels, &chunk.features, chunk.weights.as_ref(), groups)?;
            // What is complete goes at once: the next groups learn in its memory.
            let open = groups.last().map_or(0, |&g| g.min(last));
            (next..open).try_for_each(|group| done(self.models.take_one(group)))?;
            next = next.max(open);
        }
        if waits {
            self.models.forget_columns();
        }
        (next..last).try_for_each(|group| done(self.models.take_one(group)))?;
        self.models.shift(last);
        Ok(())
    }

    /// Lets waiting rows decide what the columns are, if that is open; whether rows have to wait for
    /// the length of a vector.
    fn declare(&mut self, rows: &Sorted) -> Result<bool> {
        let Some(first) = rows.batches.iter().find(|batch| batch.len() > 0) else {
            return Ok(false);
        };
        if !self.models.must_wait(&first.features)? {
            self.models.declare(&first.features)?;
            return Ok(false);
        }
        let Some(all) = rows.rows(0..rows.groups.len())? else { return Ok(false) };
        let waits = self.models.must_wait(&all.features)?;
        if !waits {
            self.models.declare(&all.features)?;
        }
        Ok(waits)
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
        let mut writer = std::mem::take(&mut self.writer);
        let mut models = ModelColumn::new(count);
        self.learn(count, |trainer| match trainer.filter(|t| t.rows() > 0) {
            Some(trainer) => {
                let model = ending(*trainer)?;
                models.push(|out| writer.write(&model, out))
            }
            None => models.push_null(),
        })?;
        self.writer = writer;
        models.finish()
    }

    /// The rows of the first `count` groups as lists; the others go on waiting.
    fn take_rows(&mut self, count: usize) -> Result<ArrayRef> {
        let sorted = self.sorted();
        self.models.shift(count);
        let end = sorted.groups.partition_point(|&g| g < count);
        if let Some(rest) = sorted.rows(end..sorted.groups.len())? {
            self.wait(rest, sorted.groups[end..].iter().map(|g| g - count))?;
        }
        let mut lengths = vec![0; count];
        sorted.groups[..end].iter().for_each(|&g| lengths[g] += 1);
        let present = NullBuffer::from_iter(lengths.iter().map(|&n| n > 0));
        let Some(rows) = sorted.rows(0..end)? else {
            return Ok(new_null_array(&rows_type(&self.plan.row), count));
        };
        let rows = rows.to_rows(&self.plan.row)?;
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
        let groups = self.groups.capacity() * size_of::<usize>();
        let models = self.models.heap_size() + self.models.ending_size();
        models + self.bytes + self.held + groups
    }
}
