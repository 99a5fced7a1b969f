//! Rows of the data section, dense and sparse.

use super::columns::Columns;
use super::lexer::{Cursor, Within};
use crate::error::{Error, Result};

/// Whether `line` is a sparse row: `{0 1, 4 2.5}`.
pub(super) fn is_sparse(line: &str) -> bool {
    line.starts_with('{')
}

/// Reads `line` as one row into `columns`.
pub(super) fn read_row(line: &str, columns: &mut Columns) -> Result<()> {
    let mut cursor = Cursor::new(line);
    columns.begin_row();
    if cursor.eat(b'{') {
        sparse(&mut cursor, columns)?;
    } else {
        dense(&mut cursor, columns)?;
    }
    columns.end_row()
}

fn dense(cursor: &mut Cursor<'_>, columns: &mut Columns) -> Result<()> {
    let expected = columns.attribute_count();
    let mut got = 0;
    // A value lost in the middle shifts the rest into wrong attributes: the number of values is
    // the better message, so the first bad value waits until they are counted.
    let mut failed = Ok(());
    loop {
        if cursor.peek() == Some(b'{') {
            return Err(weight());
        }
        let value = cursor.value(Within::Row)?;
        if failed.is_ok() && got < expected {
            failed = match value.is_absent() {
                true => Err(empty(columns.attribute_name(got))),
                false => columns.put(got, value.known()),
            };
        }
        got += 1;
        if !cursor.separator()? {
            break;
        }
    }
    if got != expected {
        return Err(Error::data(format!(
            "expected {expected} values, one for each attribute, got {got}; \
             write `?` for a missing value and quote values that hold commas"
        )));
    }
    failed
}

fn sparse(cursor: &mut Cursor<'_>, columns: &mut Columns) -> Result<()> {
    let mut next = 0;
    cursor.skip_blanks();
    if cursor.eat(b'}') {
        return after_braces(cursor);
    }
    loop {
        let position = index(cursor, next, columns.attribute_count())?;
        next = position + 1;
        cursor.skip_blanks();
        let value = cursor.value(Within::Braces)?;
        if value.is_absent() {
            return Err(empty(columns.attribute_name(position)));
        }
        columns.put(position, value.known())?;
        cursor.skip_blanks();
        if cursor.eat(b'}') {
            return after_braces(cursor);
        }
        if !cursor.eat(b',') {
            return Err(Error::data(format!(
                "expected a comma or the closing brace at `{}`; write {{index value, ...}}",
                cursor.shown()
            )));
        }
        cursor.skip_blanks();
    }
}

/// The position of an attribute, at least `next` and below `count`.
fn index(cursor: &mut Cursor<'_>, next: usize, count: usize) -> Result<usize> {
    let digits = cursor.digits();
    if digits.is_empty() {
        return Err(Error::data(format!(
            "expected the index of an attribute at `{}`; write {{index value, ...}}",
            cursor.shown()
        )));
    }
    // Digits that do not parse are too many for any index.
    let position = digits.parse::<usize>().unwrap_or(usize::MAX);
    if position >= count {
        return Err(Error::data(format!(
            "index {digits} is out of range; the {count} attributes are numbered 0 to {}",
            count.saturating_sub(1)
        )));
    }
    if position < next {
        return Err(Error::data(format!(
            "index {position} comes after index {}; list each attribute once, in ascending order",
            next - 1
        )));
    }
    Ok(position)
}

fn after_braces(cursor: &mut Cursor<'_>) -> Result<()> {
    cursor.skip_blanks();
    if cursor.at_end() {
        return Ok(());
    }
    cursor.eat(b',');
    cursor.skip_blanks();
    match cursor.peek() {
        Some(b'{') => Err(weight()),
        _ => Err(Error::data(format!(
            "`{}` follows the closing brace; write one row on a line",
            cursor.shown()
        ))),
    }
}

fn empty(attribute: &str) -> Error {
    Error::data(format!(
        "attribute `{attribute}`: the value is empty; write `?` when it is missing"
    ))
}

fn weight() -> Error {
    Error::unsupported("instance weights are not supported; delete the `{weight}` after the row")
}
