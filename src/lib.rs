//! Multi-label classification as a stage in a data pipeline.




pub mod data;
pub mod decide;
pub mod error;
pub mod formats;
pub mod math;
pub mod models;
pub mod stats;

pub use error::{Error, ErrorKind, Result};
