//! Models in object stores.

use super::Stamp;
use crate::error::{Error, Result};
use crate::sql::from_datafusion;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::{ObjectStore, ObjectStoreExt, path::Path};
use std::sync::Arc;

/// The bytes at `url` and what they are known by; `None` when that is still `known`.
///
/// Functions are called synchronously, inside of the runtime that drives the query: waiting there
/// would stop it. So the object is read by a thread of its own.
pub(super) fn read(
    runtime: &RuntimeEnv,
    url: &str,
    known: Option<&Stamp>,
) -> Result<Option<(Stamp, Vec<u8>)>> {
    let name = || format!("model file `{url}`");
    let named = |e| from_datafusion(e).context(name());
    let place = ListingTableUrl::parse(url).map_err(named)?;
    let store = runtime.object_store(place.object_store()).map_err(named)?;
    let path = place.prefix().clone();
    let read = std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|e| Error::io(name(), e))?;
            runtime.block_on(fetch(&store, &path, known)).map_err(|e| e.context(name()))
        });
        reading.join()
    });
    read.map_err(|_| Error::internal(format!("{}: reading stopped", name())))?
}

async fn fetch(
    store: &Arc<dyn ObjectStore>,
    path: &Path,
    known: Option<&Stamp>,
) -> Result<Option<(Stamp, Vec<u8>)>> {
    let failed = |e: datafusion::object_store::Error| from_datafusion(e.into());
    let meta = store.head(path).await.map_err(failed)?;
    let stamp = Stamp::Object(meta.last_modified.to_rfc3339(), meta.size, meta.e_tag);
    if known == Some(&stamp) {
        return Ok(None);
    }
    let bytes = store.get(path).await.map_err(failed)?.bytes().await.map_err(failed)?;
    Ok(Some((stamp, bytes.to_vec())))
}
