//! What the rules for scans of Parquet files share.

use super::footer::PackedFooter;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::physical_plan::parquet::metadata::CachedParquetMetaData;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::cache::cache_manager::{
    CachedFileMetadataEntry, FileMetadata, FileMetadataCache,
};
use datafusion::object_store::ObjectMeta;
use datafusion::parquet::file::metadata::{FileMetaData, ParquetMetaData};
use datafusion::physical_plan::ExecutionPlan;
use std::any::Any;
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

/// The footer of a file, as the session keeps it.
#[derive(Clone)]
pub(super) enum Footer {
    /// As DataFusion has read it.
    Read(Arc<ParquetMetaData>),
    /// For files that are read page by page.
    Packed(Arc<PackedFooter>),
}

impl Footer {
    /// That of `file`, if it was read already and the file is still the same.
    pub(super) fn of(kept: &Arc<FileMetadataCache>, file: &ObjectMeta) -> Option<Self> {
        let entry = kept.get(&file.location)?;
        if !entry.is_valid_for(file) {
            return None;
        }
        let footer = entry.file_metadata;
        if let Some(read) = footer.as_any().downcast_ref::<CachedParquetMetaData>() {
            return Some(Footer::Read(Arc::clone(read.parquet_metadata())));
        }
        let packed: Arc<dyn Any + Send + Sync> = footer;
        packed.downcast().ok().map(Footer::Packed)
    }

    /// What is said of the file as a whole.
    pub(super) fn file(&self) -> &FileMetaData {
        match self {
            Footer::Read(footer) => footer.file_metadata(),
            Footer::Packed(footer) => footer.file(),
        }
    }

    /// How many rows each row group has; `None` where the footer makes no sense.
    pub(super) fn rows(&self) -> Option<Vec<usize>> {
        match self {
            Footer::Read(footer) => {
                footer.row_groups().iter().map(|g| usize::try_from(g.num_rows()).ok()).collect()
            }
            Footer::Packed(footer) => Some(footer.rows().collect()),
        }
    }

    /// Bytes it takes in memory.
    pub(super) fn memory_size(&self) -> usize {
        match self {
            Footer::Read(footer) => footer.memory_size(),
            Footer::Packed(footer) => footer.memory_size(),
        }
    }

    /// What `look` says of each row group: it is told the row group's place in a footer, which may have
    /// no other.
    pub(super) fn groups<T>(
        &self,
        look: impl Fn(&ParquetMetaData, usize) -> Option<T>,
    ) -> Option<Vec<T>> {
        match self {
            Footer::Read(footer) => (0..footer.num_row_groups()).map(|g| look(footer, g)).collect(),
            Footer::Packed(footer) => {
                let single = |g| look(&footer.unpack(g..g + 1).ok()?, 0);
                (0..footer.rows().len()).map(single).collect()
            }
        }
    }
}

/// Lets the session keep `footer` for `file`, and not the one that DataFusion has read.
///
/// DataFusion takes that for a footer it has not read: when it needs one, it reads it again.
pub(super) fn keep(kept: &Arc<FileMetadataCache>, file: &ObjectMeta, footer: &Arc<PackedFooter>) {
    let entry = CachedFileMetadataEntry::new(file.clone(), Arc::clone(footer) as _);
    kept.put(&file.location, entry);
}
