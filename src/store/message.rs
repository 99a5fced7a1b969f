//! Record batches as messages of Arrow's IPC format, for many small batches of one schema.
//!
//! Such messages differ in a few numbers and in their body. So the first is written by Arrow, and
//! its metadata serves the others with these numbers put anew; and arrays are made of the buffers of
//! a message directly. What is not laid out as here is left to Arrow.

use arrow::array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, ListArray, PrimitiveArray,
    RecordBatch, StringArray, StructArray,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, DataType, SchemaRef};
use arrow::ipc::{self, FieldNode, root_as_message};
use std::sync::Arc;

/// What stands before the metadata: a marker and the length of the metadata.
pub(super) const PREFIX: usize = 8;
/// Buffers begin at multiples of this.
pub(super) const ALIGNMENT: usize = 8;

/// The message of a batch but for its body, and where its numbers stand.
pub(super) struct Message {
    rows: usize,
    bytes: Vec<u8>,
    nodes: usize,
    buffers: usize,
    body_length: usize,
    layout: Layout,
}

impl Message {
    /// What is common to the messages of the schema of `batch`, which Arrow wrote as `written`.
    /// `None` where that is not laid out as expected.
    pub(super) fn learn(batch: &RecordBatch, written: &[u8]) -> Option<Self> {
        let mut layout = Layout::default();
        layout.add_batch(batch)?;
        let bytes = written.get(..written.len().checked_sub(layout.body.len())?)?.to_vec();
        let find = |part: &[u8]| bytes.windows(part.len().max(1)).position(|w| w == part);
        let table = root_as_message(bytes.get(PREFIX..)?).ok()?._tab;
        let at = usize::from(table.vtable().get(ipc::Message::VT_BODYLENGTH));
        let mut message = Message {
            rows: batch.num_rows(),
            nodes: find(&layout.nodes)?,
            buffers: find(&layout.buffers)?,
            body_length: PREFIX + table.loc() + at,
            bytes,
            layout,
        };
        let mut again = Vec::new();
        message.write(batch, &mut again)?;
        (again == written).then_some(message)
    }

    /// About how many bytes the next message has.
    pub(super) fn len_hint(&self) -> usize {
        self.bytes.len() + self.layout.body.len() + self.layout.body.len() / 4
    }

    /// Appends the message of `batch`, which has the schema that was learned.
    pub(super) fn write(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Option<()> {
        self.layout.clear();
        self.layout.add_batch(batch)?;
        if batch.num_rows() != self.rows {
            return None;
        }
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

/// The arrays of a batch in the order of the format: their lengths, where their buffers are, and
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

    fn add_batch(&mut self, batch: &RecordBatch) -> Option<()> {
        batch.columns().iter().try_for_each(|column| self.add(column))
    }

    fn add(&mut self, array: &ArrayRef) -> Option<()> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        let null_count = nulls.map_or(0, NullBuffer::null_count);
        self.nodes.extend_from_slice(&(array.len() as i64).to_le_bytes());
        self.nodes.extend_from_slice(&(null_count as i64).to_le_bytes());
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
            DataType::Float64 => self.buffer(array.as_primitive::<Float64Type>().values().inner()),
            DataType::UInt32 => self.buffer(array.as_primitive::<UInt32Type>().values().inner()),
            DataType::UInt64 => self.buffer(array.as_primitive::<UInt64Type>().values().inner()),
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

    fn buffer(&mut self, bytes: &[u8]) {
        self.buffers.extend_from_slice(&(self.body.len() as i64).to_le_bytes());
        self.buffers.extend_from_slice(&(bytes.len() as i64).to_le_bytes());
        self.body.extend_from_slice(bytes);
        self.body.resize(self.body.len().next_multiple_of(ALIGNMENT), 0);
    }
}

/// The batch of the message at the start of `bytes`, whose metadata is `metadata` bytes long.
/// `None` when Arrow has to read it, or to say what is wrong with it.
pub(super) fn read(bytes: &Buffer, metadata: usize, schema: &SchemaRef) -> Option<RecordBatch> {
    let message = root_as_message(bytes.get(PREFIX..PREFIX + metadata)?).ok()?;
    let batch = message.header_as_record_batch()?;
    if batch.compression().is_some() || batch.length() != 1 {
        return None;
    }
    let body = bytes.slice(PREFIX + metadata);
    let mut parts = Parts { nodes: batch.nodes()?.iter(), buffers: batch.buffers()?.iter(), body };
    let columns = schema.fields().iter().map(|field| parts.array(field.data_type()));
    RecordBatch::try_new(Arc::clone(schema), columns.collect::<Option<_>>()?).ok()
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
            DataType::Float64 => self.primitive::<Float64Type>(len, nulls)?,
            DataType::UInt32 => self.primitive::<UInt32Type>(len, nulls)?,
            DataType::UInt64 => self.primitive::<UInt64Type>(len, nulls)?,
            _ => return None,
        })
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
