//! Where the messages of an Arrow IPC stream begin and end.

use arrow::ipc::{MessageHeader, root_as_message};
use std::io::{ErrorKind, Read, Result};

/// What marks the beginning of a message.
const MARKER: [u8; 4] = [0xff; 4];

/// Passes bytes on to a reader of Arrow IPC and keeps track of its messages.
///
/// After an error of the reader it knows whether a whole message was taken, so that the next one can
/// be read; and after the end of a stream, whether another follows.
pub(crate) struct Framed<R> {
    input: Option<R>,
    /// Bytes that the input still has, where that is known.
    room: Option<u64>,
    /// The first byte of the next stream, when it was looked at.
    ahead: Option<u8>,
    part: Part,
    /// Bytes of the part that are still to come.
    left: u64,
    /// The bytes of the part so far; those of a body are not kept.
    seen: Vec<u8>,
    /// Whether the last message was a batch: others are needed for what follows.
    batch: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A marker, or a length where there are no markers.
    Marker,
    Length,
    Metadata,
    Body,
    /// The metadata says nothing about the body.
    Unknown,
}

impl<R: Read> Framed<R> {
    pub(super) fn new(input: R) -> Self {
        let (ahead, room, seen) = (None, None, Vec::new());
        Framed { input: Some(input), room, ahead, part: Part::Marker, left: 4, seen, batch: false }
    }

    /// As [`Framed::new`], of an input with so many bytes: a message that claims to be longer is an
    /// error before the reader makes room for it.
    pub(crate) fn within(input: R, bytes: u64) -> Self {
        Framed { room: Some(bytes), ..Framed::new(input) }
    }

    /// Whether a message or a stream ended with the last byte.
    pub(crate) fn between_messages(&self) -> bool {
        self.part == Part::Marker && self.left == 4
    }

    /// Whether a batch ended with the last byte.
    pub(super) fn after_batch(&self) -> bool {
        self.between_messages() && self.batch
    }

    /// Whether anything follows.
    pub(crate) fn more(&mut self) -> Result<bool> {
        let mut byte = [0];
        while self.ahead.is_none() {
            match self.input.as_mut().map_or(Ok(0), |input| input.read(&mut byte)) {
                Ok(0) => return Ok(false),
                Ok(_) => self.ahead = Some(byte[0]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }

    /// The input from here on, for a new reader.
    pub(super) fn rest(&mut self) -> Option<Self> {
        let ahead = self.ahead.take();
        self.input.take().map(|input| Framed { ahead, ..Framed::new(input) })
    }

    fn enter(&mut self, part: Part, left: u64) {
        (self.part, self.left) = (part, left);
        self.seen.clear();
    }

    fn passed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let here = self.left.min(bytes.len() as u64) as usize;
            if self.part == Part::Unknown {
                return;
            }
            if self.part != Part::Body {
                self.seen.extend_from_slice(&bytes[..here]);
            }
            bytes = &bytes[here..];
            self.left -= here as u64;
            if self.left == 0 {
                self.end_part();
            }
        }
    }

    fn end_part(&mut self) {
        let length = || <[u8; 4]>::try_from(&self.seen[..]).map_or(-1, i32::from_le_bytes);
        match self.part {
            Part::Marker if self.seen == MARKER => self.enter(Part::Length, 4),
            Part::Marker | Part::Length => match length() {
                0 => self.enter(Part::Marker, 4),
                length if length > 0 => self.enter(Part::Metadata, length as u64),
                _ => self.part = Part::Unknown,
            },
            Part::Metadata => {
                let message = root_as_message(&self.seen).ok();
                let header = message.map(|m| m.header_type());
                let body = message.map(|m| m.bodyLength());
                self.batch = header == Some(MessageHeader::RecordBatch);
                match body.and_then(|body| u64::try_from(body).ok()) {
                    Some(0) => self.enter(Part::Marker, 4),
                    Some(body) => self.enter(Part::Body, body),
                    None => self.part = Part::Unknown,
                }
            }
            Part::Body | Part::Unknown => self.enter(Part::Marker, 4),
        }
    }
}

impl<R: Read> Read for Framed<R> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let read = match (self.ahead.take(), out.first_mut(), &mut self.input) {
            (Some(byte), Some(first), _) => {
                *first = byte;
                1
            }
            (ahead, None, _) => {
                self.ahead = ahead;
                0
            }
            (None, Some(_), Some(input)) => input.read(out)?,
            (None, Some(_), None) => 0,
        };
        self.passed(&out[..read]);
        if let Some(room) = &mut self.room {
            *room = room.saturating_sub(read as u64);
            if matches!(self.part, Part::Metadata | Part::Body) && self.left > *room {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(read)
    }
}
