//! labelflow as SQL functions of DataFusion.
//!
//! [`register_all`] adds them to a session; [`session`] makes a session that also knows files as
//! tables. No algorithm is named here: functions find them through the registry.

mod cache;
mod call;
mod error;
mod footer;
mod info;
mod learn;
mod merge;
mod metrics;
mod model_argument;
mod ordered;
mod pack;
mod pages;
mod parquet;
mod pieces;
mod query;
mod rank_metrics;
mod scans;
mod scoring;
mod session;
mod spills;
mod split;
mod tables;
mod train;
mod weight;

pub use error::{from_datafusion, to_datafusion};
pub(crate) use query::RowsRead;
pub use query::{Progress, RunningQuery, run_each, run_to_end};
pub use session::{SessionOptions, session};
pub use tables::{FileOptions, FileTables, Gap, enable_file_tables};

use crate::models::Registry;
use cache::ModelCache;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use datafusion::prelude::SessionContext;
use std::sync::Arc;

/// Rows of a batch, and of a page that is written, unless a session has others.
const BATCH: usize = 8192;

/// The type of a column of label sets.
fn label_lists() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)))
}

/// How many threads run the tasks of a query; 1 where there is no runtime.
fn workers() -> usize {
    tokio::runtime::Handle::try_current().map_or(1, |h| h.metrics().num_workers())
}

/// The names of all functions that [`register_all`] adds.
pub fn function_names() -> Vec<&'static str> {
    call::names()
}

/// Adds every labelflow function to `ctx`.
///
/// # Examples
///
/// ```
/// use datafusion::prelude::SessionContext;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let ctx = SessionContext::new();
/// labelflow::sql::register_all(&ctx);
/// let rows = ctx
///     .sql(
///         "WITH t(x, labels) AS (VALUES (0.0, ['low']), (0.2, ['low']), (9.0, ['high']), (9.1, ['high']))
///          SELECT predict_labels((SELECT train_labels('naibx', labels, x) FROM t), x) AS tags
///          FROM (SELECT 8.8 AS x)",
///     )
///     .await?
///     .collect()
///     .await?;
/// let text = datafusion::arrow::util::pretty::pretty_format_batches(&rows)?.to_string();
/// assert!(text.contains("[high]"));
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// # }).unwrap();
/// ```
pub fn register_all(ctx: &SessionContext) {
    register_with(ctx, Registry::default());
}

/// As [`register_all`], with the algorithms of `registry`.
pub fn register_with(ctx: &SessionContext, registry: Registry) {
    let cache = Arc::new(ModelCache::new(registry, ctx.runtime_env()));
    for function in scoring::functions(&cache) {
        ctx.register_udf(ScalarUDF::from(function));
    }
    ctx.register_udf(ScalarUDF::from(split::SplitLabels::new()));
    ctx.register_udf(ScalarUDF::from(info::ModelInfo::new(&cache)));
    ctx.register_udf(ScalarUDF::from(weight::RowWeight::new()));
    for function in merge::scalars(&cache) {
        ctx.register_udf(ScalarUDF::from(function));
    }
    ctx.register_udaf(AggregateUDF::from(train::TrainLabels::new(&cache)));
    ctx.register_udaf(AggregateUDF::from(merge::MergeModels::new(&cache)));
    ctx.register_udwf(WindowUDF::from(learn::LearnAndPredict::new(&cache)));
    for function in metrics::functions() {
        ctx.register_udaf(AggregateUDF::from(function));
    }
    for function in rank_metrics::functions() {
        ctx.register_udaf(AggregateUDF::from(function));
    }
    pack::install(ctx, &cache);
}
