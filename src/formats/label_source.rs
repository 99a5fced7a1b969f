//! Where the names of the label attributes come from.

use std::path::{Path, PathBuf};

use super::mulan_xml;
use crate::error::Result;

/// Says which attributes of a file are labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LabelSource {
    /// What lies beside or inside the file, the first of these that exists.
    ///
    /// 1. A Mulan list of the same stem: `x.xml` for `x.arff`.
    /// 2. For `x-train.arff` and `x-test.arff`, the list they share: `x.xml`.
    /// 3. MEKA's `-C n` in the relation name: the first `n` attributes, or the last `-n`.
    #[default]
    Auto,
    /// This Mulan list.
    Xml(PathBuf),
    /// These attributes, in this order.
    Names(Vec<String>),
}

/// Label names, and in words where they were found.
pub(super) struct NamedLabels {
    pub(super) names: Vec<String>,
    pub(super) origin: String,
}

impl LabelSource {
    /// The label names for the file at `path`, or `None` when only its header can tell.
    pub(super) fn named_labels(&self, path: &Path) -> Result<Option<NamedLabels>> {
        let xml = match self {
            LabelSource::Names(names) => {
                let origin = "the given list".to_string();
                return Ok(Some(NamedLabels { names: names.clone(), origin }));
            }
            LabelSource::Xml(xml) => xml.clone(),
            LabelSource::Auto => match list_beside(path) {
                Some(xml) => xml,
                None => return Ok(None),
            },
        };
        let origin = format!("the label list `{}`", xml.display());
        Ok(Some(NamedLabels { names: mulan_xml::read_labels(&xml)?, origin }))
    }
}

/// The Mulan list that belongs to the file at `path` by its name.
fn list_beside(path: &Path) -> Option<PathBuf> {
    let own = path.with_extension("xml");
    if own.is_file() {
        return Some(own);
    }
    let stem = path.file_stem()?.to_str()?;
    let whole = stem.strip_suffix("-train").or_else(|| stem.strip_suffix("-test"))?;
    let shared = path.with_file_name(format!("{whole}.xml"));
    shared.is_file().then_some(shared)
}
