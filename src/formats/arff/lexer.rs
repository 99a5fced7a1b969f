//! The tokens of one ARFF line: words, values, quotes and separators.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::formats::lines::without_comment;
use crate::formats::shown;

/// What encloses a value, and with it what ends one that is not quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    /// A dense row: a comma, a tab or the end of the line.
    Row,
    /// A nominal set or a sparse row: also the closing brace.
    Braces,
}

/// A value without its quotes and escapes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Value<'a> {
    pub(super) text: Cow<'a, str>,
    quoted: bool,
}

impl Value<'_> {
    /// The text, or `None` for a bare `?`.
    pub(super) fn known(&self) -> Option<&str> {
        if !self.quoted && self.text == "?" { None } else { Some(&self.text) }
    }

    /// Whether there is nothing where a value should be (`''` is a value).
    pub(super) fn is_absent(&self) -> bool {
        !self.quoted && self.text.is_empty()
    }
}

/// A place in a line, moved on by each token.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        Cursor { rest: line }
    }

    /// The next byte.
    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.as_bytes().first().copied()
    }

    /// Whether only a comment is left, or nothing.
    pub(super) fn at_end(&self) -> bool {
        matches!(self.peek(), None | Some(b'%'))
    }

    /// What is left, short enough for a message.
    pub(super) fn shown(&self) -> Cow<'a, str> {
        shown(self.rest)
    }

    /// Moves over spaces and tabs; tells whether a tab was among them.
    pub(super) fn skip_blanks(&mut self) -> bool {
        let end = self.find(|b| !matches!(b, b' ' | b'\t'));
        self.take(end).contains('\t')
    }

    /// Moves over `byte` (ASCII) if it comes next.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.take(1);
        }
        found
    }

    /// The bytes up to a blank or an opening brace.
    pub(super) fn word(&mut self) -> &'a str {
        let end = self.find(|b| matches!(b, b' ' | b'\t' | b'{'));
        self.take(end)
    }

    /// The decimal digits that come next.
    pub(super) fn digits(&mut self) -> &'a str {
        let end = self.find(|b| !b.is_ascii_digit());
        self.take(end)
    }

    /// A quoted or bare name; a bare one ends at a blank or an opening brace.
    pub(super) fn name(&mut self) -> Result<Cow<'a, str>> {
        match self.peek() {
            Some(quote @ (b'\'' | b'"')) => self.quoted(quote),
            _ => Ok(Cow::Borrowed(self.word())),
        }
    }

    /// A quoted or bare value. A bare one may hold spaces; those around it are dropped.
    pub(super) fn value(&mut self, within: Within) -> Result<Value<'a>> {
        match self.peek() {
            Some(quote @ (b'\'' | b'"')) => Ok(Value { text: self.quoted(quote)?, quoted: true }),
            _ => Ok(Value { text: Cow::Borrowed(self.bare(within)), quoted: false }),
        }
    }

    /// What is left as one quoted or bare text, without a trailing comment.
    pub(super) fn remainder(&mut self) -> Result<Cow<'a, str>> {
        match self.peek() {
            Some(quote @ (b'\'' | b'"')) => self.quoted(quote),
            _ => {
                let text = self.take(self.rest.len());
                Ok(Cow::Borrowed(without_comment(text, '%').trim_end()))
            }
        }
    }

    /// Moves over what separates two values of a dense row: a comma with blanks around it, or a
    /// tab. False at the end of the row.
    pub(super) fn separator(&mut self) -> Result<bool> {
        let tab = self.skip_blanks();
        if self.eat(b',') {
            self.skip_blanks();
            return Ok(true);
        }
        if self.at_end() {
            return Ok(false);
        }
        if tab { Ok(true) } else { Err(unseparated(self)) }
    }

    fn bare(&mut self, within: Within) -> &'a str {
        let braces = within == Within::Braces;
        let mut after_blank = true;
        let end = self.find(|b| {
            let ends = match b {
                b',' | b'\t' => true,
                b'}' => braces,
                b'%' => after_blank,
                _ => false,
            };
            after_blank = b == b' ';
            ends
        });
        self.take(end).trim_end_matches(' ')
    }

    fn quoted(&mut self, quote: u8) -> Result<Cow<'a, str>> {
        let mut body = self.clone();
        body.take(1);
        let plain = body.find(|b| b == quote || b == b'\\');
        let start = body.take(plain);
        if body.eat(quote) {
            *self = body;
            return Ok(Cow::Borrowed(start));
        }
        let mut text = String::from(start);
        let mut chars = body.rest.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some('n') => text.push('\n'),
                    Some('r') => text.push('\r'),
                    Some('t') => text.push('\t'),
                    Some(other) => text.push(other),
                    None => break,
                },
                c if c == char::from(quote) => {
                    self.rest = chars.as_str();
                    return Ok(Cow::Owned(text));
                }
                c => text.push(c),
            }
        }
        let message = format!("the quote that opens at `{}` is not closed; close it", self.shown());
        Err(Error::data(message))
    }

    /// The offset of the first byte that `stops`, or of the end.
    fn find(&self, stops: impl FnMut(u8) -> bool) -> usize {
        self.rest.bytes().position(stops).unwrap_or(self.rest.len())
    }

    /// Moves on by `length` bytes, which end at an ASCII byte or the end of the line.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }
}

/// The error for two values with nothing between them.
fn unseparated(cursor: &Cursor<'_>) -> Error {
    let rest = cursor.shown();
    Error::data(format!("expected a comma before `{rest}`; separate the values by commas"))
}
