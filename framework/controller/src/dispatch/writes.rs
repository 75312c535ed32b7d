//! Read your writes: what a key's last run wrote, and whether the caches show it yet.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use boatswain_cache::{InformerCore, Key, Kind, Version, View};
use dashmap::DashMap;

/// Writes of one run that are remembered; a run that writes more waits for these.
const REMEMBERED: usize = 64;

/// Keys that are remembered before the first look for those that need not be.
const SWEEP: usize = 1024;

pub(crate) struct Writes {
    caches: Vec<View>,
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
    /// Over the caches a controller reads. A kind without a cache is not waited for.
    pub(crate) fn new(caches: Vec<View>) -> Self {
        Self {
            caches,
            by_key: DashMap::new(),
            sweep: SWEEP.into(),
        }
    }

    /// Remembers that the run of `key` wrote `object` of `kind` at `version`, with these labels.
    pub(crate) fn record(
        &self,
        key: &Key,
        kind: &Kind,
        object: &Key,
        labels: &BTreeMap<String, String>,
        version: &Version,
    ) {
        // what neither was nor is selected will never show
        let shows = |cache: &Arc<InformerCore>| {
            cache.kind() == kind
                && cache.scope().contains(object.namespace())
                && (cache.get(object).is_some() || cache.selection().meets_labels(labels))
        };
        let mut written = Vec::new();
        for view in &self.caches {
            let cores = view.cores();
            let caches = cores.iter().filter(|cache| shows(cache));
            written.extend(caches.map(|cache| Written {
                cache: cache.clone(),
                object: object.clone(),
                version: version.clone(),
            }));
        }
        if written.is_empty() {
            return;
        }
        {
            let mut writes = self.by_key.entry(key.clone()).or_default();
            let room = REMEMBERED.saturating_sub(writes.len());
            writes.extend(written.into_iter().take(room));
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
