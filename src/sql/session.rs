//! Sessions with everything labelflow brings.

use super::error::from_datafusion;
use super::ordered::PredictInOrder;
use super::pages::PageByPage;
use super::parquet::WriteByColumn;
use super::pieces::SharedPieces;
use super::spills::SpillFiles;
use super::{BATCH, FileOptions, enable_file_tables, register_with};
use crate::error::Result;
use crate::models::Registry;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::sync::Arc;

/// Bytes of footers that are kept at most. A file with a larger one is not cut where pages begin, and not
/// read page by page: this is that of a hundred million rows of a hundred columns.
const FOOTERS: usize = 256 << 20;

/// The settings of a [`session`].
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// How many partitions a scan is cut into; 0 is one per core.
    pub partitions: usize,
    /// Rows of a batch.
    pub batch_size: usize,
    /// Bytes that queries may take in memory; `None` is no bound. Footers of Parquet files are kept besides, in
    /// at most half as much.
    pub memory_limit: Option<usize>,
    /// The algorithms that can be named.
    pub registry: Registry,
    /// How files become tables.
    pub files: FileOptions,
}

impl Default for SessionOptions {
    fn default() -> Self {
        SessionOptions {
            partitions: 0,
            batch_size: BATCH,
            memory_limit: None,
            registry: Registry::default(),
            files: FileOptions::default(),
        }
    }
}

/// A session with all labelflow functions and with files as tables (`FROM 'train.parquet'`).
///
/// # Errors
///
/// When DataFusion refuses the settings.
pub fn session(options: &SessionOptions) -> Result<SessionContext> {
    let mut config = SessionConfig::new()
        .with_batch_size(options.batch_size.max(1))
        .set_usize("datafusion.execution.parquet.max_row_group_size", 65_536)
        // As many rows as a batch: a part of a row group is read without pages of the next part.
        .set_usize("datafusion.execution.parquet.data_page_row_count_limit", BATCH)
        .with_information_schema(true);
    if options.partitions > 0 {
        config = config.with_target_partitions(options.partitions);
    }
    let footers = options.memory_limit.map_or(FOOTERS, |bytes| FOOTERS.min(bytes / 2));
    // A directory is listed anew by every query: files come and go.
    let mut runtime = RuntimeEnvBuilder::new()
        .with_object_list_cache_limit(0)
        .with_metadata_cache_limit(footers)
        .with_disk_manager_builder(SpillFiles::builder().map_err(from_datafusion)?);
    if let Some(bytes) = options.memory_limit {
        runtime = runtime.with_memory_limit(bytes, 1.0);
    }
    let runtime = runtime.build_arc().map_err(from_datafusion)?;
    let mut rules = PredictInOrder::among_others(&runtime);
    rules.push(Arc::new(WriteByColumn));
    rules.push(Arc::new(SharedPieces(Arc::clone(&runtime))));
    rules.push(Arc::new(PageByPage(Arc::clone(&runtime))));
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_physical_optimizer_rules(rules)
        .build();
    let ctx = SessionContext::new_with_state(state);
    register_with(&ctx, options.registry.clone());
    enable_file_tables(&ctx, options.files.clone());
    Ok(ctx)
}
