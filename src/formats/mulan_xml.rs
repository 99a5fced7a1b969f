//! Mulan's XML list of label attributes.
//!
//! ```xml
//! <labels xmlns="http://mulan.sourceforge.net/labels">
//!   <label name="sports"><label name="football"/></label>
//! </labels>
//! ```

use std::path::Path;

use crate::error::{Error, Result};

/// Returns the names of all `label` elements of the file at `path`, in document order.
///
/// Nested elements (Mulan's label hierarchies) count like top-level ones, a parent before its
/// children. Namespaces are ignored. Whether the names are attributes of a data file is checked by
/// the reader of that file.
///
/// # Errors
///
/// When the file cannot be read, is not well-formed XML, holds a `label` without a `name`, or holds
/// no `label` at all.
pub fn read_labels(path: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Error::io(format!("label list `{}`", path.display()), e))?;
    parse_labels(&text).map_err(|e| e.context(format!("label list `{}`", path.display())))
}

/// The label names in the XML document `text`.
pub(super) fn parse_labels(text: &str) -> Result<Vec<String>> {
    let document = roxmltree::Document::parse(text).map_err(|e| {
        Error::corrupt(format!("not well-formed XML ({e}); mend it")).with_source(e)
    })?;
    let mut names = Vec::new();
    for node in document.descendants().filter(|n| n.tag_name().name() == "label") {
        let name = node.attribute("name").ok_or_else(|| {
            Error::data(format!("`label` element {} has no `name`; add it", names.len() + 1))
        })?;
        names.push(name.to_string());
    }
    if names.is_empty() {
        return Err(Error::data("holds no `label` element; name each label attribute by one"));
    }
    Ok(names)
}
