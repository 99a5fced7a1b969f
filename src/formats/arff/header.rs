//! The part of an ARFF file before the data: its name and its attributes.

use std::collections::BTreeMap;

use super::attribute::{Attribute, Kind};
use super::lexer::{Cursor, Within};
use crate::error::{Error, Result};
use crate::formats::lines::Lines;
use crate::formats::shown;

/// What the header declares.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) relation: String,
    pub(super) attributes: Vec<Attribute>,
}

impl Header {
    /// Reads up to and with the `@data` line.
    pub(super) fn read(lines: &mut Lines) -> Result<Header> {
        let mut header = Header { relation: String::new(), attributes: Vec::new() };
        let mut seen = BTreeMap::new();
        while lines.advance()? {
            match declaration(lines.current()).map_err(|e| lines.locate(e))? {
                Declaration::Relation(name) => header.relation = name,
                Declaration::Attribute(attribute) => {
                    if let Some(first) = seen.insert(attribute.name.clone(), lines.number()) {
                        return Err(lines.locate(Error::data(format!(
                            "attribute `{}` is already declared in line {first}; rename one",
                            attribute.name
                        ))));
                    }
                    header.attributes.push(attribute);
                }
                Declaration::Data if header.attributes.is_empty() => {
                    return Err(lines.locate(Error::data(
                        "no attribute is declared before `@data`; declare each by `@attribute`",
                    )));
                }
                Declaration::Data => return Ok(header),
            }
        }
        Err(lines.name_file(Error::data("has no `@data` line; add it before the first row")))
    }
}

enum Declaration {
    Relation(String),
    Attribute(Attribute),
    Data,
}

fn declaration(line: &str) -> Result<Declaration> {
    let mut cursor = Cursor::new(line);
    let keyword = cursor.word();
    cursor.skip_blanks();
    if keyword.eq_ignore_ascii_case("@attribute") {
        attribute(&mut cursor).map(Declaration::Attribute)
    } else if keyword.eq_ignore_ascii_case("@relation") {
        Ok(Declaration::Relation(cursor.remainder()?.into_owned()))
    } else if keyword.eq_ignore_ascii_case("@data") {
        Ok(Declaration::Data)
    } else {
        Err(Error::data(format!(
            "expected `@relation`, `@attribute` or `@data`, got `{}`; correct the line",
            shown(line)
        )))
    }
}

fn attribute(cursor: &mut Cursor<'_>) -> Result<Attribute> {
    let name = cursor.name()?.into_owned();
    if name.is_empty() {
        return Err(Error::data("an attribute has no name; write `@attribute name type`"));
    }
    cursor.skip_blanks();
    let kind = kind(cursor).map_err(|e| e.context(format_args!("attribute `{name}`")))?;
    Ok(Attribute { name, kind })
}

fn kind(cursor: &mut Cursor<'_>) -> Result<Kind> {
    let kind = if cursor.eat(b'{') {
        Kind::nominal(nominal_values(cursor)?)
    } else {
        let word = cursor.word();
        match word.to_ascii_lowercase().as_str() {
            "numeric" | "real" | "integer" => Kind::Number,
            "string" => Kind::Text,
            // A format may follow; the text is kept as written.
            "date" => return Ok(Kind::Text),
            "relational" => {
                return Err(Error::unsupported(
                    "relational attributes are not supported; flatten the file to one row each",
                ));
            }
            _ => {
                return Err(Error::data(format!(
                    "unknown type `{}`; use numeric, real, integer, string, date or {{a,b,...}}",
                    shown(word)
                )));
            }
        }
    };
    cursor.skip_blanks();
    if cursor.peek() == Some(b'{') {
        return Err(Error::unsupported("attribute weights are not supported; delete the weight"));
    }
    if !cursor.at_end() {
        let rest = cursor.shown();
        return Err(Error::data(format!("`{rest}` follows the type; put names in quotes")));
    }
    Ok(kind)
}

fn nominal_values(cursor: &mut Cursor<'_>) -> Result<Vec<String>> {
    let mut values = Vec::new();
    cursor.skip_blanks();
    if cursor.eat(b'}') {
        return Ok(values);
    }
    loop {
        let value = cursor.value(Within::Braces)?;
        if value.is_absent() {
            return Err(Error::data(format!(
                "declared value {} is empty or the set is not closed; write {{a,b,...}}",
                values.len() + 1
            )));
        }
        values.push(value.text.into_owned());
        let tab = cursor.skip_blanks();
        if cursor.eat(b'}') {
            return Ok(values);
        }
        if !cursor.eat(b',') && (!tab || cursor.at_end()) {
            return Err(Error::data(format!(
                "expected a comma or the closing brace at `{}`; write {{a,b,...}}",
                cursor.shown()
            )));
        }
        cursor.skip_blanks();
    }
}
