//! Models of a session, decoded once.

use crate::error::{Error, Result};
use crate::math::FixedState;
use crate::models::{Model, Registry};
use crate::store;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Bytes of decoded models kept before the least recently used go.
const MAX_BYTES: usize = 512 << 20;

/// Decoded models by digest, and digests of model files by path.
#[derive(Debug)]
pub(super) struct ModelCache {
    registry: Registry,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    models: HashMap<String, Entry, FixedState>,
    files: HashMap<String, FileEntry, FixedState>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    model: Arc<Model>,
    bytes: usize,
    used: u64,
}

/// What a file looked like when it was read.
#[derive(Debug, Clone, PartialEq)]
struct FileEntry {
    modified: Option<SystemTime>,
    len: u64,
    digest: String,
}

impl ModelCache {
    pub(super) fn new(registry: Registry) -> Self {
        ModelCache { registry, inner: Mutex::default() }
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The model in `bytes`; known by its digest, so that equal bytes are decoded once.
    pub(super) fn decode(&self, bytes: &[u8]) -> Result<Arc<Model>> {
        let digest = store::digest_of(bytes)?;
        if let Some(model) = self.lock().get(digest) {
            return Ok(model);
        }
        let model = Arc::new(store::from_bytes(bytes, &self.registry)?);
        self.lock().put(digest, &model);
        Ok(model)
    }

    /// The model in the file `path`, read again only when the file has changed.
    pub(super) fn open(&self, path: &str) -> Result<Arc<Model>> {
        let name = || format!("model file `{path}`");
        let meta = std::fs::metadata(path).map_err(|e| Error::io(name(), e))?;
        let (modified, len) = (meta.modified().ok(), meta.len());
        {
            let mut inner = self.lock();
            let known = inner.files.get(path).filter(|f| f.modified == modified && f.len == len);
            if let Some(digest) = known.map(|f| f.digest.clone())
                && let Some(model) = inner.get(&digest)
            {
                return Ok(model);
            }
        }
        let bytes = std::fs::read(Path::new(path)).map_err(|e| Error::io(name(), e))?;
        let model = self.decode(&bytes).map_err(|e| e.context(name()))?;
        let digest = store::digest_of(&bytes)?.to_string();
        self.lock().files.insert(path.to_string(), FileEntry { modified, len, digest });
        Ok(model)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn get(&mut self, digest: &str) -> Option<Arc<Model>> {
        self.clock += 1;
        let clock = self.clock;
        let entry = self.models.get_mut(digest)?;
        entry.used = clock;
        Some(Arc::clone(&entry.model))
    }

    fn put(&mut self, digest: &str, model: &Arc<Model>) {
        let bytes = model.heap_size();
        self.clock += 1;
        let entry = Entry { model: Arc::clone(model), bytes, used: self.clock };
        self.bytes += bytes;
        if let Some(old) = self.models.insert(digest.to_string(), entry) {
            self.bytes -= old.bytes;
        }
        if self.bytes > MAX_BYTES {
            self.evict();
        }
    }

    /// Drops the older half.
    fn evict(&mut self) {
        let mut ages: Vec<u64> = self.models.values().map(|e| e.used).collect();
        ages.sort_unstable();
        let cut = ages.get(ages.len() / 2).copied().unwrap_or(0);
        self.models.retain(|_, e| e.used >= cut);
        self.bytes = self.models.values().map(|e| e.bytes).sum();
    }
}

/// A cache shared by the functions of a session; functions are equal when they share it.
#[derive(Debug, Clone)]
pub(super) struct SharedCache(pub(super) Arc<ModelCache>);

impl PartialEq for SharedCache {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SharedCache {}

impl Hash for SharedCache {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}
