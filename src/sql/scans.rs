//! What the rules for scans of Parquet files share.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::physical_plan::parquet::metadata::CachedParquetMetaData;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// `plan` with other scans where `other` has one.
pub(super) fn replace(
    plan: Arc<dyn ExecutionPlan>,
    other: impl Fn(&DataSourceExec) -> Option<FileScanConfig>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let replaced = plan.transform_up(|node| {
        let scan = node.downcast_ref::<DataSourceExec>();
        Ok(match scan.and_then(|scan| Some((scan, other(scan)?))) {
            Some((scan, config)) => {
                let scan = scan.clone().with_data_source(Arc::new(config));
                Transformed::yes(Arc::new(scan) as _)
            }
            None => Transformed::no(node),
        })
    })?;
    Ok(replaced.data)
}

/// The footer of `file`, if it was read already and the file is still the same.
pub(super) fn footer(runtime: &RuntimeEnv, file: &PartitionedFile) -> Option<Arc<ParquetMetaData>> {
    let cache = runtime.cache_manager.get_file_metadata_cache();
    let entry = cache.get(&file.object_meta.location)?;
    if !entry.is_valid_for(&file.object_meta) {
        return None;
    }
    let footer = entry.file_metadata.as_any().downcast_ref::<CachedParquetMetaData>()?;
    Some(Arc::clone(footer.parquet_metadata()))
}
