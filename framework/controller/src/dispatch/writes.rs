//! Read your writes: what a key's last run wrote, and whether the caches show it yet.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use boatswain_cache::{InformerCore, Key, Kind, Version};
use dashmap::DashMap;

/// Writes of one run that are remembered; a run that writes more waits for these.
const REMEMBERED: usize = 64;

/// Keys that are remembered before the first look for those that need not be.
const SWEEP: usize = 1024;

pub(crate) struct Writes {
    caches: HashMap<Kind, Vec<Arc<InformerCore>>>,
    by_key: DashMap<Key, Vec<Written>>,
    /// As many keys as this are looked through for those whose writes the caches show: most of them never run again.
    sweep: AtomicUsize,
}

struct Written {
    cache: Arc<InformerCore>,
    object: Key,
    version: Version,
}

impl Writes {
    /// Over the caches of the kinds a controller reads. A kind without a cache is not waited for.
    pub(crate) fn new(caches: HashMap<Kind, Vec<Arc<InformerCore>>>) -> Self {
        Self {
            caches,
            by_key: DashMap::new(),
            sweep: SWEEP.into(),
        }
    }

    /// Remembers that the run of `key` wrote `object` of `kind` at `version`.
    pub(crate) fn record(&self, key: &Key, kind: &Kind, object: &Key, version: Version) {
        let Some(cache) = self
            .caches
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
        {
            let mut writes = self.by_key.entry(key.clone()).or_default();
            if writes.len() < REMEMBERED {
                writes.push(written);
            }
        }
        if self.by_key.len() >= self.sweep.load(Relaxed) {
            self.by_key
                .retain(|_, writes| !writes.iter().all(Written::is_seen));
            self.sweep.store(SWEEP.max(self.by_key.len() * 2), Relaxed);
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
            // where the cache can never show it there is nothing to wait for
            let _ = write.cache.wait_for(&write.object, &write.version).await;
        }
    }
}

impl Written {
    fn is_seen(&self) -> bool {
        self.cache.has_reached(&self.object, &self.version)
    }
}
