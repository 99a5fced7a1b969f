//! Models of a session, decoded once.

mod object;

use crate::error::{Error, Result};
use crate::math::FixedState;
use crate::models::{Model, Registry};
use crate::store::ModelReader;
use datafusion::arrow::buffer::Buffer;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Bytes kept before the least recently used models go.
const MAX_BYTES: usize = 512 << 20;
/// At most this part of the memory that a session may take.
const MAX_SHARE: usize = 4;

/// Decoded models by digest, and digests of model files by name.
pub(super) struct ModelCache {
    registry: Registry,
    /// Where the object stores of the session are known.
    runtime: Arc<RuntimeEnv>,
    inner: Mutex<Inner>,
    /// Knows the schema of the last model, which the next is likely to have too.
    reader: Mutex<ModelReader>,
}

#[derive(Debug)]
struct Inner {
    models: HashMap<String, Entry, FixedState>,
    /// Models by the place of their bytes in memory. The buffer is held, so that the place stays
    /// theirs: bytes that were checked once need not be checked again.
    seen: HashMap<(usize, usize), (Buffer, Arc<Model>), FixedState>,
    files: HashMap<String, (Stamp, String), FixedState>,
    bytes: usize,
    most: usize,
    /// What the memory pool of the session knows of these bytes.
    reserved: MemoryReservation,
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
pub(super) enum Stamp {
    /// A file of this machine: when it was changed, and its length.
    File(Option<SystemTime>, u64),
    /// An object: when it was changed, its length and its tag.
    Object(String, u64, Option<String>),
}

impl std::fmt::Debug for ModelCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelCache").field("registry", &self.registry).finish_non_exhaustive()
    }
}

pub(super) fn is_url(name: &str) -> bool {
    name.contains("://")
}

impl ModelCache {
    pub(super) fn new(registry: Registry, runtime: Arc<RuntimeEnv>) -> Self {
        let pool = &runtime.memory_pool;
        let most = match pool.memory_limit() {
            MemoryLimit::Finite(limit) => MAX_BYTES.min(limit / MAX_SHARE),
            _ => MAX_BYTES,
        };
        let inner = Inner {
            models: HashMap::default(),
            seen: HashMap::default(),
            files: HashMap::default(),
            bytes: 0,
            most,
            reserved: MemoryConsumer::new("labelflow models").register(pool),
            clock: 0,
        };
        ModelCache { registry, runtime, inner: Mutex::new(inner), reader: Mutex::default() }
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The model in `bytes`; known by its digest, so that equal bytes are decoded once. Bytes that
    /// are damaged are never taken for the model whose digest they carry.
    pub(super) fn decode(&self, bytes: &[u8]) -> Result<Arc<Model>> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let checked = reader.check(bytes)?;
        if let Some(model) = self.lock().get(checked.digest) {
            return Ok(model);
        }
        let model = Arc::new(reader.read_checked(&checked, &self.registry)?);
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = reader;
        self.lock().put(checked.digest, &model);
        Ok(model)
    }

    /// As [`ModelCache::decode`], for bytes in `buffer`: they are looked at once as long as they are
    /// in the same place.
    pub(super) fn decode_in(&self, bytes: &[u8], buffer: &Buffer) -> Result<Arc<Model>> {
        let place = (bytes.as_ptr() as usize, bytes.len());
        if let Some((_, model)) = self.lock().seen.get(&place) {
            return Ok(Arc::clone(model));
        }
        let model = self.decode(bytes)?;
        self.lock().remember(place, buffer, &model);
        Ok(model)
    }

    /// The model called `name`: a path or a URL.
    ///
    /// A file is read again when it has changed. An object is not looked at again for each batch:
    /// [`ModelCache::refresh`] does that once, when a query is planned.
    pub(super) fn open(&self, name: &str) -> Result<Arc<Model>> {
        if is_url(name) {
            return match self.known(name, None) {
                Some(model) => Ok(model),
                None => self.read_object(name),
            };
        }
        let what = || format!("model file `{name}`");
        let meta = std::fs::metadata(name).map_err(|e| Error::io(what(), e))?;
        let stamp = Stamp::File(meta.modified().ok(), meta.len());
        if let Some(model) = self.known(name, Some(&stamp)) {
            return Ok(model);
        }
        let bytes = std::fs::read(Path::new(name)).map_err(|e| Error::io(what(), e))?;
        self.keep(name, stamp, &bytes)
    }

    /// Reads the model called `name` again if it is an object that has changed.
    pub(super) fn refresh(&self, name: &str) -> Result<()> {
        if is_url(name) { self.read_object(name).map(drop) } else { Ok(()) }
    }

    fn read_object(&self, url: &str) -> Result<Arc<Model>> {
        let known = self.lock().files.get(url).map(|f| f.0.clone());
        match object::read(&self.runtime, url, known.as_ref())? {
            None => match self.known(url, None) {
                Some(model) => Ok(model),
                // It left the cache since.
                None => {
                    self.lock().files.remove(url);
                    self.read_object(url)
                }
            },
            Some((stamp, bytes)) => self.keep(url, stamp, &bytes),
        }
    }

    /// The model last read under this name, if it is still there and, where asked, unchanged.
    fn known(&self, name: &str, stamp: Option<&Stamp>) -> Option<Arc<Model>> {
        let mut inner = self.lock();
        let (seen, digest) = inner.files.get(name)?;
        if stamp.is_some_and(|stamp| stamp != seen) {
            return None;
        }
        let digest = digest.clone();
        inner.get(&digest)
    }

    fn keep(&self, name: &str, stamp: Stamp, bytes: &[u8]) -> Result<Arc<Model>> {
        let model = self.decode(bytes).map_err(|e| e.context(format!("model file `{name}`")))?;
        let digest = model.digest().unwrap_or_default().to_string();
        self.lock().files.insert(name.to_string(), (stamp, digest));
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
        self.bound();
    }

    /// Takes note of where the bytes of a model stand.
    fn remember(&mut self, place: (usize, usize), buffer: &Buffer, model: &Arc<Model>) {
        self.bytes += place.1;
        if self.seen.insert(place, (buffer.clone(), Arc::clone(model))).is_some() {
            self.bytes -= place.1;
        }
        self.bound();
    }

    /// Keeps within the bound and within what the memory pool grants.
    fn bound(&mut self) {
        if self.bytes > self.most {
            self.evict();
        }
        if self.reserved.try_resize(self.bytes).is_err() {
            self.models.clear();
            self.seen.clear();
            self.bytes = 0;
            self.reserved.free();
        }
    }

    /// Drops the older half of the models, and all places.
    fn evict(&mut self) {
        self.seen.clear();
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
