//! Multi-label classification as a stage in a data pipeline.
//!
//! Rows have features and a *set* of labels. A model learns from them in one pass by keeping
//! sufficient statistics, and predicts a set for new rows. Models are values: they are merged,
//! subtracted, stored in a column or a file.
//!
//! # Where to start
//!
//! - In SQL: [`sql::register_all`] adds `train_labels`, `predict_labels` and the other functions to a
//!   DataFusion session.
//! - In Rust: [`models::Trainer`] learns from Arrow arrays, [`models::Model`] predicts,
//!   [`store`] keeps models as bytes and files, [`evaluate`] compares algorithms.
//! - On streams: [`stream::OnlineLearner`] predicts each row before it learns it.
//! - To add an algorithm: [`models::Algorithm`] is the contract, [`conformance`] checks it.
//!
//! Without the features `sql` and `cli` the crate builds on Arrow alone.
//!
//! # Examples
//!
//! ```
//! use arrow::array::{ArrayRef, AsArray, Float64Array, ListBuilder, StringBuilder, StructArray};
//! use labelflow::models::{Registry, Trainer};
//! use std::sync::Arc;
//!
//! let x: ArrayRef = Arc::new(Float64Array::from(vec![0.0, 0.2, 9.0, 9.1]));
//! let features: ArrayRef = Arc::new(StructArray::try_from(vec![("x", x)])?);
//! let mut labels = ListBuilder::new(StringBuilder::new());
//! labels.append_value([Some("low")]);
//! labels.append_value([Some("low"), Some("rare")]);
//! labels.append_value([Some("high")]);
//! labels.append_value([Some("high")]);
//! let labels: ArrayRef = Arc::new(labels.finish());
//!
//! let mut trainer = Trainer::try_new(&Registry::default(), "naibx")?;
//! trainer.observe(&labels, &features)?;
//! let predicted = trainer.finish()?.predict(&features)?;
//! assert_eq!(predicted.value(3).as_string::<i32>().value(0), "high");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
pub mod stream;

pub use error::{Error, ErrorKind, Result};
