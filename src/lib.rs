//! Multi-label classification as a stage in a data pipeline.

#[cfg(feature = "cli")]
pub mod cli;
pub mod conformance;
pub mod data;
pub mod decide;
pub mod error;
pub mod evaluate;
pub mod formats;
pub mod math;
pub mod metrics;
pub mod models;
#[cfg(feature = "sql")]
pub mod sql;
pub mod stats;
pub mod store;

pub use error::{Error, ErrorKind, Result};
