//! The names of generated labels, and columns of them.

use std::sync::Arc;

use arrow::array::{ListArray, StringArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef};

use super::labels::LabelSets;
use crate::data::{Id, LabelId};
use crate::error::Result;

/// The names `label_00`, `label_01`, ...: all of one length, so that the order of names is the order of ids.
#[derive(Debug, Clone)]
pub(super) struct LabelNames {
    /// All names, one after the other.
    bytes: Vec<u8>,
    /// The length of each.
    width: usize,
}

impl LabelNames {
    /// The names of `labels >= 1` labels.
    pub(super) fn new(labels: usize) -> Self {
        let digits = (labels - 1).to_string().len().max(2);
        let names: Vec<String> = (0..labels).map(|id| format!("label_{id:0digits$}")).collect();
        LabelNames { bytes: names.concat().into_bytes(), width: "label_".len() + digits }
    }

    /// The type of the elements of a label list.
    pub(super) fn item() -> FieldRef {
        Arc::new(Field::new("item", DataType::Utf8, true))
    }

    /// The name of label `id`.
    pub(super) fn name(&self, id: LabelId) -> String {
        let start = id.index() * self.width;
        String::from_utf8_lossy(&self.bytes[start..start + self.width]).into_owned()
    }

    /// The most labels that one column can hold with its 32-bit offsets.
    pub(super) fn most(&self) -> usize {
        i32::MAX as usize / self.width
    }

    /// One list of names for each row, with at most [`most`](Self::most) names in all.
    pub(super) fn lists(&self, sets: &LabelSets) -> Result<ListArray> {
        let ids = sets.ids();
        let mut bytes = Vec::with_capacity(ids.len() * self.width);
        for id in ids {
            let start = id.index() * self.width;
            bytes.extend_from_slice(&self.bytes[start..start + self.width]);
        }
        let lengths = OffsetBuffer::from_lengths(std::iter::repeat_n(self.width, ids.len()));
        let names = StringArray::try_new(lengths, bytes.into(), None)?;
        let offsets = OffsetBuffer::from_lengths(sets.sizes());
        Ok(ListArray::try_new(Self::item(), offsets, Arc::new(names), None)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_like_ids() {
        for (labels, first, last) in [
            (1, "label_00", "label_00"),
            (100, "label_00", "label_99"),
            (101, "label_000", "label_100"),
            (12_345, "label_00000", "label_12344"),
        ] {
            let names = LabelNames::new(labels);
            let all: Vec<&[u8]> = names.bytes.chunks(names.width).collect();
            assert_eq!((all[0], all[labels - 1]), (first.as_bytes(), last.as_bytes()));
            assert!(all.windows(2).all(|w| w[0] < w[1]));
        }
    }
}
