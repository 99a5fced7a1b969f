//! The lines of a file that say something, with their numbers.

use std::io::{BufRead, ErrorKind as IoKind, Read};

use crate::error::{Error, Result};

/// The most bytes of a line. A longer one is no text of rows, and would take all memory.
const MAX_LINE: u64 = 1 << 28;

/// Reads one line at a time into one buffer, past blank lines and comments.
pub(super) struct Lines {
    name: String,
    reader: Box<dyn BufRead + Send>,
    comment: char,
    buffer: String,
    number: u64,
}

impl Lines {
    /// The lines of `reader`, less those that begin with `comment`; `name` is for messages.
    pub(super) fn new(name: String, reader: Box<dyn BufRead + Send>, comment: char) -> Self {
        Lines { name, reader, comment, buffer: String::new(), number: 0 }
    }

    /// Moves to the next line with content; false at the end of the file.
    pub(super) fn advance(&mut self) -> Result<bool> {
        loop {
            self.buffer.clear();
            self.number += 1;
            let mut limited = self.reader.by_ref().take(MAX_LINE);
            let read = limited.read_line(&mut self.buffer);
            let cut = limited.limit() == 0;
            let length = read.map_err(|e| self.locate(read_error(e, cut)))?;
            if length == 0 {
                return Ok(false);
            }
            if cut {
                return Err(self.locate(too_long()));
            }
            if self.number == 1 && self.buffer.starts_with('\u{feff}') {
                self.buffer.remove(0);
            }
            let line = self.current();
            if !line.is_empty() && !line.starts_with(self.comment) {
                return Ok(true);
            }
        }
    }

    /// The current line without its end and the blanks around it.
    pub(super) fn current(&self) -> &str {
        self.buffer.trim_matches([' ', '\t', '\r', '\n'])
    }

    /// The number of the current line, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Names the file.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Puts the file and the line before the sentence of `error`.
    pub(super) fn locate(&self, error: Error) -> Error {
        error.context(format_args!("file `{}`, line {}", self.name, self.number))
    }

    /// Puts the file before the sentence of `error`.
    pub(super) fn name_file(&self, error: Error) -> Error {
        error.context(format_args!("file `{}`", self.name))
    }
}

/// `line` up to the first blank or tab with `mark` after it.
pub(super) fn without_comment(line: &str, mark: char) -> &str {
    let places = line.match_indices([' ', '\t']);
    let mut pieces = places.map(|(at, _)| line.split_at(at));
    let comment = pieces.find(|(_, rest)| rest.chars().nth(1) == Some(mark));
    comment.map_or(line, |(text, _)| text)
}

fn read_error(error: std::io::Error, cut: bool) -> Error {
    match error.kind() {
        // A character cut in two is no UTF-8.
        IoKind::InvalidData if cut => too_long(),
        IoKind::InvalidData => Error::data("not UTF-8 text; convert the file to UTF-8"),
        _ => Error::io("cannot be read", error),
    }
}

fn too_long() -> Error {
    Error::data(format!("has more than {} MiB; write one row on a line", MAX_LINE >> 20))
}
