//! A column of models in the making.

use crate::error::{Error, Result};
use datafusion::arrow::array::{ArrayRef, BinaryViewBuilder};
use datafusion::arrow::buffer::Buffer;
use std::sync::Arc;

/// Bytes of models in one buffer of the column.
const BLOCK: usize = 2 << 20;

/// Models that are written to the buffers of their column, one after the other.
pub(super) struct ModelColumn {
    column: BinaryViewBuilder,
    block: Vec<u8>,
    /// Where the models in `block` begin and how long they are; `None` is NULL.
    views: Vec<Option<(u32, u32)>>,
}

impl ModelColumn {
    /// A column of about `count` models.
    pub(super) fn new(count: usize) -> Self {
        let column = BinaryViewBuilder::with_capacity(count);
        ModelColumn { column, block: Vec::new(), views: Vec::new() }
    }

    /// Adds the model that `write` appends to the bytes it is given.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        let start = self.block.len();
        write(&mut self.block)?;
        if self.block.len() > i32::MAX as usize {
            return Err(Error::limit("a model in SQL has less than 2 GiB: keep it in a file"));
        }
        self.views.push(Some((start as u32, (self.block.len() - start) as u32)));
        if self.block.len() >= BLOCK {
            let next = Vec::with_capacity(self.block.capacity());
            self.close(next)?;
        }
        Ok(())
    }

    pub(super) fn push_null(&mut self) -> Result<()> {
        self.views.push(None);
        Ok(())
    }

    /// Hands what was written to the column, and goes on with `next`.
    fn close(&mut self, next: Vec<u8>) -> Result<()> {
        let mut block = std::mem::replace(&mut self.block, next);
        if block.len() < block.capacity() / 2 {
            block.shrink_to_fit();
        }
        let block = self.column.append_block(Buffer::from_vec(block));
        for view in self.views.drain(..) {
            match view {
                Some((start, len)) => self.column.try_append_view(block, start, len)?,
                None => self.column.append_null(),
            }
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<ArrayRef> {
        self.close(Vec::new())?;
        Ok(Arc::new(self.column.finish()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::AsArray;

    #[test]
    fn models_and_nulls_stand_in_their_order() {
        let bytes = |i: usize| (i % 7 != 3).then(|| vec![i as u8; 10 + i * 97 % 30_000]);
        let mut column = ModelColumn::new(1000);
        for i in 0..1000 {
            match bytes(i) {
                Some(bytes) => column.push(|out| {
                    out.extend_from_slice(&bytes);
                    Ok(())
                }),
                None => column.push_null(),
            }
            .unwrap();
        }
        let column = column.finish().unwrap();
        let column = column.as_binary_view();
        assert!(column.data_buffers().len() > 3);
        assert!(
            column.iter().eq((0..1000).map(bytes).collect::<Vec<_>>().iter().map(Option::as_deref))
        );
    }
}
