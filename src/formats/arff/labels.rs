//! Which attributes are labels, and in what order.

use std::collections::BTreeMap;

use super::attribute::Attribute;
use super::header::Header;
use crate::error::{Error, Result};
use crate::formats::label_source::NamedLabels;

/// The positions of the label attributes, in declared order.
///
/// Without `named` labels the relation name must tell, as MEKA writes it.
pub(super) fn label_positions(header: &Header, named: Option<&NamedLabels>) -> Result<Vec<usize>> {
    let positions = match named {
        Some(named) => by_name(&header.attributes, named)?,
        None => by_relation(header)?,
    };
    for attribute in positions.iter().filter_map(|&p| header.attributes.get(p)) {
        attribute.unlisted_label()?;
    }
    Ok(positions)
}

fn by_name(attributes: &[Attribute], named: &NamedLabels) -> Result<Vec<usize>> {
    let NamedLabels { names, origin } = named;
    if names.is_empty() {
        return Err(Error::usage(format!("{origin} names no label; name at least one")));
    }
    let mut places: BTreeMap<&str, Option<usize>> =
        attributes.iter().enumerate().map(|(p, a)| (a.name.as_str(), Some(p))).collect();
    let mut positions = Vec::with_capacity(names.len());
    for name in names {
        match places.get_mut(name.as_str()).map(Option::take) {
            Some(Some(position)) => positions.push(position),
            Some(None) => {
                return Err(Error::data(format!(
                    "{origin} names the label `{name}` twice; delete one"
                )));
            }
            None => {
                return Err(Error::not_found(format!(
                    "{origin} names the label `{name}`, which is no attribute of the file; \
                     correct the name or choose another list"
                )));
            }
        }
    }
    Ok(positions)
}

fn by_relation(header: &Header) -> Result<Vec<usize>> {
    let total = header.attributes.len();
    let Some(count) = meka_label_count(&header.relation) else {
        return Err(Error::usage(
            "does not say which attributes are labels; name them with `--labels-xml FILE`, \
             or put an `.xml` list of the same name beside it",
        ));
    };
    let labels = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if labels == 0 || labels > total {
        return Err(Error::data(format!(
            "`-C {count}` in the relation name does not fit the {total} attributes; \
             correct it or name the labels with `--labels-xml FILE`"
        )));
    }
    Ok(if count > 0 { (0..labels).collect() } else { (total - labels..total).collect() })
}

/// The number after the option `-C` in a MEKA relation name: `'Music: -C 6'`.
///
/// WEKA's filters append text without a space (`-C 75-weka.filters`), so the digits end it.
fn meka_label_count(relation: &str) -> Option<i64> {
    let mut before = ' ';
    for (at, c) in relation.char_indices() {
        if c == '-' && matches!(before, ' ' | '\t' | ':') {
            let option = relation.get(at..)?.strip_prefix("-C");
            let argument = option.filter(|o| o.starts_with([' ', '\t'])).map(str::trim_start);
            if let Some(argument) = argument {
                let unsigned = argument.strip_prefix('-').unwrap_or(argument);
                let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
                return argument.get(..argument.len() - unsigned.len() + digits)?.parse().ok();
            }
        }
        before = c;
    }
    None
}
