//! Model rows as messages of Arrow's IPC format, for many small models of one schema.
//!
//! Such messages differ in a few numbers and in their body. So the first is written by Arrow, and
//! its metadata serves the others with these numbers put anew; and states are written to and read
//! from the body of a message without arrays in between. What is not laid out as here is left to
//! Arrow.

use super::row::Row;
use crate::stats::{Part, State};
use arrow::array::types::UInt32Type;
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, ListArray, PrimitiveArray,
    StringArray, StructArray,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, DataType, Fields, SchemaRef};
use arrow::ipc::{self, FieldNode, root_as_message};
use std::sync::Arc;

/// What stands before the metadata: a marker and the length of the metadata.
pub(super) const PREFIX: usize = 8;
/// Buffers begin at multiples of this.
pub(super) const ALIGNMENT: usize = 8;

/// The message of a row but for its body, and where its numbers stand.
pub(super) struct Message {
    bytes: Vec<u8>,
    nodes: usize,
    buffers: usize,
    body_length: usize,
    layout: Layout,
}

impl Message {
    /// What is common to the messages of rows with the columns of `row`, which Arrow wrote as
    /// `written`. `None` where that is not laid out as expected.
    pub(super) fn learn(row: &Row, written: &[u8]) -> Option<Self> {
        let mut layout = Layout::default();
        layout.add_row(row)?;
        let bytes = written.get(..written.len().checked_sub(layout.body.len())?)?.to_vec();
        let find = |part: &[u8]| bytes.windows(part.len().max(1)).position(|w| w == part);
        let table = root_as_message(bytes.get(PREFIX..)?).ok()?._tab;
        let at = usize::from(table.vtable().get(ipc::Message::VT_BODYLENGTH));
        let mut message = Message {
            nodes: find(&layout.nodes)?,
            buffers: find(&layout.buffers)?,
            body_length: PREFIX + table.loc() + at,
            bytes,
            layout,
        };
        let mut again = Vec::new();
        message.write(row, &mut again)?;
        (again == written).then_some(message)
    }

    /// About how many bytes the next message has.
    pub(super) fn len_hint(&self) -> usize {
        self.bytes.len() + self.layout.body.len() + self.layout.body.len() / 4
    }

    /// Appends the message of `row`, which has the columns that were learned.
    pub(super) fn write(&mut self, row: &Row, out: &mut Vec<u8>) -> Option<()> {
        self.layout.clear();
        self.layout.add_row(row)?;
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let body_length = (self.layout.body.len() as i64).to_le_bytes();
        let parts = [
            (self.nodes, &self.layout.nodes[..]),
            (self.buffers, &self.layout.buffers[..]),
            (self.body_length, &body_length[..]),
        ];
        for (at, part) in parts {
            out.get_mut(start + at..start + at + part.len())?.copy_from_slice(part);
        }
        out.extend_from_slice(&self.layout.body);
        Some(())
    }
}

/// The columns of a row in the order of the format: their lengths, where their buffers are, and
/// the buffers.
#[derive(Default)]
struct Layout {
    nodes: Vec<u8>,
    buffers: Vec<u8>,
    body: Vec<u8>,
}

impl Layout {
    fn clear(&mut self) {
        self.nodes.clear();
        self.buffers.clear();
        self.body.clear();
    }

    fn add_row(&mut self, row: &Row) -> Option<()> {
        row.head.columns().try_for_each(|column| self.add(column))?;
        self.node(1, 0);
        self.buffer(&[]);
        self.buffer(&row.rows.to_le_bytes());
        self.add_state(&row.state)
    }

    fn add_state(&mut self, state: &State) -> Option<()> {
        self.node(1, 0);
        self.buffer(&[]);
        state.parts().iter().try_for_each(|(_, part)| match part {
            Part::Numbers(values) => self.add_list(values.len(), values.inner()),
            Part::WholeNumbers(values) => self.add_list(values.len(), values.inner()),
            Part::State(state) => self.add_state(state),
        })
    }

    /// One list of all `len` values in `bytes`.
    fn add_list(&mut self, len: usize, bytes: &[u8]) -> Option<()> {
        let mut offsets = [0; 8];
        offsets[4..].copy_from_slice(&i32::try_from(len).ok()?.to_le_bytes());
        self.node(1, 0);
        self.buffer(&[]);
        self.buffer(&offsets);
        self.node(len, 0);
        self.buffer(&[]);
        self.buffer(bytes);
        Some(())
    }

    fn add(&mut self, array: &ArrayRef) -> Option<()> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        self.node(array.len(), nulls.map_or(0, NullBuffer::null_count));
        match nulls {
            Some(nulls) => self.buffer(&nulls.inner().sliced()),
            None => self.buffer(&[]),
        }
        match array.data_type() {
            DataType::Struct(_) => {
                array.as_struct().columns().iter().try_for_each(|column| self.add(column))?;
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                self.offsets(list.offsets(), list.values().len())?;
                self.add(list.values())?;
            }
            DataType::Utf8 => {
                let texts = array.as_string::<i32>();
                self.offsets(texts.offsets(), texts.values().len())?;
                self.buffer(texts.values());
            }
            DataType::Boolean => self.buffer(&array.as_boolean().values().sliced()),
            DataType::UInt32 => self.buffer(array.as_primitive::<UInt32Type>().values().inner()),
            _ => return None,
        }
        Some(())
    }

    /// Offsets into all of `len` values; Arrow cuts and shifts others.
    fn offsets(&mut self, offsets: &OffsetBuffer<i32>, len: usize) -> Option<()> {
        let whole = offsets.first() == Some(&0) && offsets.last().map(|&o| o as usize) == Some(len);
        self.buffer(offsets.inner().inner());
        whole.then_some(())
    }

    fn node(&mut self, len: usize, null_count: usize) {
        self.nodes.extend_from_slice(&(len as i64).to_le_bytes());
        self.nodes.extend_from_slice(&(null_count as i64).to_le_bytes());
    }

    fn buffer(&mut self, bytes: &[u8]) {
        self.buffers.extend_from_slice(&(self.body.len() as i64).to_le_bytes());
        self.buffers.extend_from_slice(&(bytes.len() as i64).to_le_bytes());
        self.body.extend_from_slice(bytes);
        self.body.resize(self.body.len().next_multiple_of(ALIGNMENT), 0);
    }
}

/// The columns before the rows of a model row, as they stand in a message: how long its arrays are,
/// where their buffers are, and the buffers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct HeadBytes {
    nodes: Vec<u8>,
    buffers: Vec<u8>,
    body: Vec<u8>,
}

/// A message that was read.
pub(super) struct Read {
    /// The columns before the rows, unless they are those that were expected.
    pub(super) head: Option<(Vec<ArrayRef>, Option<HeadBytes>)>,
    pub(super) rows: u64,
    pub(super) state: State,
}

/// The row in the message at the start of `bytes`, whose metadata is `metadata` bytes long; `same`
/// are the columns that its first columns are likely to be.
/// `None` when Arrow has to read it, or to say what is wrong with it.
pub(super) fn read(
    bytes: &Buffer,
    metadata: usize,
    schema: &SchemaRef,
    same: Option<&HeadBytes>,
) -> Option<Read> {
    let message = root_as_message(bytes.get(PREFIX..PREFIX + metadata)?).ok()?;
    let batch = message.header_as_record_batch()?;
    if batch.compression().is_some() || batch.length() != 1 {
        return None;
    }
    let [head @ .., rows, state] = &schema.fields()[..] else { return None };
    let DataType::Struct(state_fields) = state.data_type() else { return None };
    if rows.name() != "rows" || rows.data_type() != &DataType::UInt64 || state.name() != "state" {
        return None;
    }
    let (nodes, buffers) = (batch.nodes()?, batch.buffers()?);
    let body = bytes.slice(PREFIX + metadata);
    let (head_nodes, head_buffers) = head.iter().fold((0, 0), |(nodes, buffers), field| {
        let (n, b) = size(field.data_type());
        (nodes + n, buffers + b)
    });
    let node_bytes = nodes.bytes().get(..head_nodes * size_of::<FieldNode>())?;
    let buffer_bytes = buffers.bytes().get(..head_buffers * size_of::<ipc::Buffer>())?;
    let mut ends = buffers.iter().take(head_buffers).map(|b| b.offset().checked_add(b.length()));
    let end = ends.try_fold(0, |last, end| Some(end?.max(last)))?;
    let head_body = body.get(..usize::try_from(end).ok()?)?;
    let is_same = same.is_some_and(|same| {
        same.nodes == node_bytes && same.buffers == buffer_bytes && same.body == head_body
    });
    let mut parts = Parts { nodes: nodes.iter(), buffers: buffers.iter(), body: body.clone() };
    let columns = if is_same {
        parts.nodes.nth(head_nodes.checked_sub(1)?)?;
        parts.buffers.nth(head_buffers.checked_sub(1)?)?;
        None
    } else {
        let columns = head.iter().map(|field| parts.array(field.data_type()));
        Some(columns.collect::<Option<Vec<_>>>()?)
    };
    let rows = parts.values::<u64>(1)?;
    let state = parts.state(state_fields)?;
    let head = columns.map(|columns| {
        let (nodes, buffers) = (node_bytes.to_vec(), buffer_bytes.to_vec());
        (columns, Some(HeadBytes { nodes, buffers, body: head_body.to_vec() }))
    });
    Some(Read { head, rows: rows[0], state })
}

/// How many nodes and buffers an array of this type has in a message.
fn size(data_type: &DataType) -> (usize, usize) {
    match data_type {
        DataType::Struct(fields) => fields.iter().fold((1, 1), |(nodes, buffers), field| {
            let (n, b) = size(field.data_type());
            (nodes + n, buffers + b)
        }),
        DataType::List(item) => {
            let (nodes, buffers) = size(item.data_type());
            (nodes + 1, buffers + 2)
        }
        DataType::Utf8 => (1, 3),
        _ => (1, 2),
    }
}

/// What is left of a message.
struct Parts<N, B> {
    nodes: N,
    buffers: B,
    body: Buffer,
}

impl<'a, N, B> Parts<N, B>
where
    N: Iterator<Item = &'a FieldNode>,
    B: Iterator<Item = &'a ipc::Buffer>,
{
    fn array(&mut self, data_type: &DataType) -> Option<ArrayRef> {
        let node = self.nodes.next()?;
        let len = usize::try_from(node.length()).ok()?;
        let validity = self.buffer()?;
        let nulls = match node.null_count() {
            0 => None,
            count => {
                let nulls = NullBuffer::new(bits(validity, len)?);
                Some(nulls).filter(|nulls| nulls.null_count() as i64 == count)
            }
        };
        Some(match data_type {
            DataType::Struct(fields) => {
                let columns = fields.iter().map(|field| self.array(field.data_type()));
                let columns = columns.collect::<Option<_>>()?;
                Arc::new(StructArray::try_new(fields.clone(), columns, nulls).ok()?)
            }
            DataType::List(item) => {
                let offsets = self.offsets(len)?;
                let values = self.array(item.data_type())?;
                Arc::new(ListArray::try_new(Arc::clone(item), offsets, values, nulls).ok()?)
            }
            DataType::Utf8 => {
                let offsets = self.offsets(len)?;
                Arc::new(StringArray::try_new(offsets, self.buffer()?, nulls).ok()?)
            }
            DataType::Boolean => Arc::new(BooleanArray::new(bits(self.buffer()?, len)?, nulls)),
            DataType::UInt32 => self.primitive::<UInt32Type>(len, nulls)?,
            _ => return None,
        })
    }

    /// A state, all lists of which are whole.
    fn state(&mut self, fields: &Fields) -> Option<State> {
        self.one()?;
        let mut state = State::default();
        for field in fields {
            let part = match field.data_type() {
                DataType::Struct(fields) => Part::State(self.state(fields)?),
                DataType::List(item) => match item.data_type() {
                    DataType::Float64 => Part::Numbers(self.list()?),
                    DataType::UInt32 => Part::WholeNumbers(self.list()?),
                    _ => return None,
                },
                _ => return None,
            };
            state.push(field.name().clone(), part);
        }
        Some(state)
    }

    /// The beginning of an array of one value that is there.
    fn one(&mut self) -> Option<()> {
        let node = self.nodes.next()?;
        self.buffers.next()?;
        (node.length() == 1 && node.null_count() == 0).then_some(())
    }

    /// The values of one list.
    fn list<T: ArrowNativeType>(&mut self) -> Option<ScalarBuffer<T>> {
        self.one()?;
        let offsets: ScalarBuffer<i32> = numbers(self.buffer()?, 2)?;
        let len = usize::try_from(offsets[1]).ok().filter(|_| offsets[0] == 0)?;
        self.values(len)
    }

    /// An array of `len` values, none of them NULL.
    fn values<T: ArrowNativeType>(&mut self, len: usize) -> Option<ScalarBuffer<T>> {
        let node = self.nodes.next()?;
        self.buffers.next()?;
        let fits = usize::try_from(node.length()) == Ok(len) && node.null_count() == 0;
        if fits { numbers(self.buffer()?, len) } else { None }
    }

    fn primitive<T: ArrowPrimitiveType>(
        &mut self,
        len: usize,
        nulls: Option<NullBuffer>,
    ) -> Option<ArrayRef> {
        let values = numbers(self.buffer()?, len)?;
        Some(Arc::new(PrimitiveArray::<T>::try_new(values, nulls).ok()?))
    }

    fn offsets(&mut self, len: usize) -> Option<OffsetBuffer<i32>> {
        let offsets: ScalarBuffer<i32> = numbers(self.buffer()?, len.checked_add(1)?)?;
        let ascending = offsets[0] >= 0 && offsets.is_sorted();
        ascending.then(|| OffsetBuffer::new(offsets))
    }

    fn buffer(&mut self) -> Option<Buffer> {
        let buffer = self.buffers.next()?;
        let start = usize::try_from(buffer.offset()).ok()?;
        let len = usize::try_from(buffer.length()).ok()?;
        let inside = start.checked_add(len)? <= self.body.len();
        inside.then(|| self.body.slice_with_length(start, len))
    }
}

fn bits(buffer: Buffer, len: usize) -> Option<BooleanBuffer> {
    (buffer.len() >= len.div_ceil(8)).then(|| BooleanBuffer::new(buffer, 0, len))
}

fn numbers<T: ArrowNativeType>(buffer: Buffer, len: usize) -> Option<ScalarBuffer<T>> {
    let fits = buffer.len() >= len.checked_mul(size_of::<T>())?;
    let aligned = buffer.as_ptr().align_offset(align_of::<T>()) == 0;
    (fits && aligned).then(|| ScalarBuffer::new(buffer, 0, len))
}
