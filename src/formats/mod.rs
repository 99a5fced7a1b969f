//! Data files as streams of Arrow record batches.
//!
//! Use this module for WEKA's ARFF, the format nearly all published multi-label data sets come in,
//! with the label attributes named by a Mulan XML list or a MEKA header, and for multi-label
//! svmlight text, and for Arrow files in builds without `sql`. With it, Parquet, CSV, JSON and Arrow
//! files do not pass through here: DataFusion reads them.
//!
//! - [`FileReader`] opens a file by its extension.
//! - [`ArffReader`] reads dense and sparse ARFF and states the columns it makes of them.
//! - [`ArrowReader`] reads Arrow IPC files and streams.
//! - [`SvmlightReader`] reads svmlight, also known as LIBSVM.
//! - [`LabelSource`] says where the names of the label attributes come from.
//! - [`mulan_xml::read_labels`] reads a label list on its own.

mod arff;
mod arrow_file;
mod file_reader;
mod label_source;
mod lines;
mod maps;
pub mod mulan_xml;
mod svmlight;

pub use arff::ArffReader;
pub use arrow_file::ArrowReader;
pub use file_reader::FileReader;
pub use label_source::LabelSource;
pub use svmlight::SvmlightReader;

pub use crate::data::LABELS_METADATA_KEY;

use std::borrow::Cow;

/// The rows of a batch unless the reader is told otherwise.
const DEFAULT_BATCH_SIZE: usize = 8192;

/// `text`, cut to a length that suits a message.
fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(40) {
        Some((end, _)) => Cow::Owned(format!("{}...", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests;
