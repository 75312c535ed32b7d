//! Read your writes: what a key's last run wrote, and whether the caches show it yet.

use std::{
    collections::HashMap,
    sync::{Arc, RwLock},
};

use boatswain_cache::{InformerCore, Key, Kind, Version};
use dashmap::DashMap;

/// Writes of one run that are remembered; a run that writes more waits for these.
const REMEMBERED: usize = 64;

#[derive(Clone, Default)]
pub(crate) struct Writes {
    caches: Arc<RwLock<HashMap<Kind, Vec<Arc<InformerCore>>>>>,
    by_key: Arc<DashMap<Key, Vec<Written>>>,
}

#[derive(Clone)]
struct Written {
    cache: Arc<InformerCore>,
    object: Key,
    version: Version,
}

impl Writes {
    /// Over the caches of the kinds a controller reads. A kind without a cache is not waited for.
    pub(crate) fn new(caches: HashMap<Kind, Vec<Arc<InformerCore>>>) -> Self {
        Self {
            caches: Arc::new(RwLock::new(caches)),
            by_key: Arc::default(),
        }
    }

    /// Remembers that the run of `key` wrote `object` of `kind` at `version`.
    pub(crate) fn record(&self, key: &Key, kind: &Kind, object: &Key, version: Version) {
        let caches = self
            .caches
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(cache) = caches
            .get(kind)
            .into_iter()
            .flatten()
            .find(|cache| cache.scope().contains(object.namespace()))
        else {
            return;
        };
        let written = Written {
            cache: cache.clone(),
            object: object.clone(),
            version,
        };
        let mut writes = self.by_key.entry(key.clone()).or_default();
        if writes.len() < REMEMBERED {
            writes.push(written);
        }
    }

    /// Waits until the caches show what the last run of `key` wrote.
    ///
    /// # Cancellation safety
    ///
    /// Dropped while waiting it forgets the writes: the caller's bound has passed.
    pub(crate) async fn barrier(&self, key: &Key) {
        let Some((_, writes)) = self.by_key.remove(key) else {
            return;
        };
        for write in writes {
            write.cache.wait_for(&write.object, &write.version).await;
        }
    }
}
