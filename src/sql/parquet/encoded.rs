//! What is encoded, on its way to the file.

use crate::sql::tables::{Buffer, Buffers, Bytes};
use std::io::{self, Write};
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that go to a local file at a time. Other stores ask for larger parts.
pub(super) const LOCAL_PART: usize = 1 << 20;
/// Parts that are on their way at a time.
pub(super) const PARTS: usize = 8;

/// Collects what is written, in buffers that serve again when they are in the file.
#[derive(Clone)]
pub(super) struct Encoded(Arc<Mutex<Parts>>);

struct Parts {
    buffers: Arc<Buffers>,
    full: Vec<Bytes>,
    open: Option<Buffer>,
}

impl Encoded {
    pub(super) fn new() -> Self {
        // A long column takes more at a time, which are not kept.
        let buffers = Arc::new(Buffers::keeping(2 * PARTS * LOCAL_PART));
        Encoded(Arc::new(Mutex::new(Parts { buffers, full: Vec::new(), open: None })))
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parts that are full.
    pub(super) fn full(&self) -> Vec<Bytes> {
        take(&mut self.parts().full)
    }

    /// All that is written.
    pub(super) fn rest(&self) -> Vec<Bytes> {
        let last = self.parts().open.take().map(Bytes::from_owner);
        self.full().into_iter().chain(last).collect()
    }
}

impl Write for Encoded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut parts = self.parts();
        let mut open = parts.open.take().unwrap_or_else(|| parts.buffers.empty(LOCAL_PART));
        let written = open.push(bytes);
        match open.is_full() {
            true => parts.full.push(Bytes::from_owner(open)),
            false => parts.open = Some(open),
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
