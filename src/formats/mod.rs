//! Data files that only this field uses, as streams of Arrow record batches.
//!
//! Use this module for WEKA's ARFF, the format nearly all published multi-label data sets come in,
//! with the label attributes named by a Mulan XML list or a MEKA header. Parquet, CSV and Arrow
//! files do not pass through here: DataFusion reads them.
//!
//! - [`ArffReader`] reads dense and sparse ARFF and states the columns it makes of them.
//! - [`LabelSource`] says where the names of the label attributes come from.
//! - [`mulan_xml::read_labels`] reads a label list on its own.

mod arff;
mod label_source;
pub mod mulan_xml;

pub use arff::ArffReader;
pub use label_source::LabelSource;

pub use crate::data::LABELS_METADATA_KEY;

#[cfg(test)]
mod tests;
