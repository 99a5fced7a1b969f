//! Stores whose listings pass over hidden names, and whose local files are read into buffers that serve
//! again.

use super::buffers::LocalRanges;
use async_trait::async_trait;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The bytes of an object.
pub(in crate::sql) type Bytes = <PutPayload as IntoIterator>::Item;

/// The store at `url`, from now on without hidden names in its listings.
///
/// Names that begin with `.` or `_` are files in the making or notes of other programs
/// (`.part-7.parquet`, `_SUCCESS`): no data. A file that is named itself is read whatever its name.
pub(super) fn hide(runtime: &RuntimeEnv, url: &ObjectStoreUrl) -> DataFusionResult<()> {
    let store = runtime.object_store(url)?;
    if !store.to_string().starts_with(NAME) {
        let local = is_local(&store).then(LocalRanges::default);
        runtime.register_object_store(url.as_ref(), Arc::new(VisibleFiles { store, local }));
    }
    Ok(())
}

/// Whether `store` has the files of this machine, under their names.
pub(in crate::sql) fn is_local(store: &Arc<dyn ObjectStore>) -> bool {
    let (name, local) = (store.to_string(), LocalFileSystem::new().to_string());
    name == local || name == format!("{NAME}({local})")
}

/// How such a store is printed.
const NAME: &str = "VisibleFiles";

#[derive(Debug)]
struct VisibleFiles {
    store: Arc<dyn ObjectStore>,
    /// Reads the files of this machine.
    local: Option<LocalRanges>,
}

impl fmt::Display for VisibleFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME}({})", self.store)
    }
}

/// Whether a name below `prefix` is hidden; `_column=value` is a partition.
fn is_hidden(path: &Path, prefix: Option<&Path>) -> bool {
    let skip = prefix.map_or(0, |p| p.parts().count());
    path.parts().skip(skip).any(|part| {
        let name = part.as_ref();
        name.starts_with('.') || (name.starts_with('_') && !name.contains('='))
    })
}

#[async_trait]
impl ObjectStore for VisibleFiles {
    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let below = prefix.cloned();
        let visible =
            move |m: &ObjectMeta| futures::future::ready(!is_hidden(&m.location, below.as_ref()));
        self.store.list(prefix).try_filter(visible).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let mut found = self.store.list_with_delimiter(prefix).await?;
        found.objects.retain(|m| !is_hidden(&m.location, prefix));
        found.common_prefixes.retain(|p| !is_hidden(p, prefix));
        Ok(found)
    }

    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        self.store.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.store.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.store.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if let Some(local) = &self.local
            && let Some(bytes) = local.read(location, ranges).await
        {
            return Ok(bytes);
        }
        self.store.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.store.delete_stream(locations)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.store.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.store.rename_opts(from, to, options).await
    }
}
