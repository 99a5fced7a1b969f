//! ARFF, the text format of WEKA, Mulan and MEKA, as record batches.
//!
//! A file goes through these stops: `lines` (text with line numbers), [`header`] (attributes),
//! [`labels`] (which of them are labels), [`layout`] (schema, and a slot for every attribute),
//! then per line [`rows`] (tokens of a dense or sparse row) into [`columns`] (Arrow builders).
//!
//! Reference: <https://waikato.github.io/weka-wiki/formats_and_processing/arff_stable/>

mod attribute;
mod columns;
mod header;
mod labels;
mod layout;
mod lexer;
mod reader;
mod rows;

pub use reader::ArffReader;
