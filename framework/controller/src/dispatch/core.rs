//! What all shards and workers of one controller share; it outlives every incarnation of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use boatswain_cache::{Key, Object, View};
use boatswain_supervision::Entropy;
use dashmap::DashMap;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ObjectReference;

use super::{Closing, Ended, InFlight, Permits, Retries};
use crate::{
    context::{Context, Surroundings},
    telemetry::ControllerMetrics,
};

/// A reconciler with its kind erased, so that actors need not know it.
pub(crate) trait Runner: Send + Sync {
    /// Runs the key of `cx` once.
    fn run(self: Arc<Self>, cx: Context) -> BoxFuture<'static, Ended>;

    /// Every key that exists now, to rebuild a shard from and to look at each again at the resync.
    fn keys(&self) -> Vec<Key>;

    /// What an Event on the key's object refers to; `None` when there is none in the cache.
    fn reference(&self, key: &Key) -> Option<ObjectReference>;
}

pub(crate) struct DispatchCore {
    pub(crate) name: String,
    pub(crate) surroundings: Arc<Surroundings>,
    pub(crate) runner: Arc<dyn Runner>,
    pub(crate) in_flight: InFlight,
    pub(crate) permits: Permits,
    pub(crate) retries: Retries,
    /// How long one reconcile may take.
    pub(crate) deadline: Duration,
    /// Every cache the reconciler reads: no key runs before all of them have been synced.
    pub(crate) caches: Vec<View>,
    /// Whether they have been: what is added to them later holds up nobody.
    pub(crate) ready: AtomicBool,
    pub(crate) departed: Departed,
    pub(crate) metrics: ControllerMetrics,
    pub(crate) entropy: Entropy,
    /// How many incarnations each shard has had, over every rebuild of the tree around it.
    pub(crate) epochs: Box<[AtomicU32]>,
    pub(crate) closing: Closing,
}

impl DispatchCore {
    /// Whether runs may start: the caches hold what a reconciler must see, and the manager does not stop.
    pub(crate) fn is_open(&self) -> bool {
        let ready = || {
            let ready = self.ready.load(Relaxed) || self.caches.iter().all(View::synced);
            if ready {
                self.ready.store(true, Relaxed);
            }
            ready
        };
        self.closing.end().is_none() && ready()
    }

    /// Whether keys run although an informer that was added later is not synced yet.
    pub(crate) fn is_ahead(&self) -> bool {
        self.ready.load(Relaxed) && !self.caches.iter().all(View::synced)
    }

    pub(crate) async fn wait_ready(&self) {
        for cache in &self.caches {
            cache.wait_synced().await;
        }
    }

    pub(crate) fn shards(&self) -> usize {
        self.epochs.len()
    }

    /// How many incarnations of this shard there were before the one that asks. They took their cells with them.
    pub(crate) fn next_epoch(&self, shard: usize) -> u32 {
        self.epochs[shard].fetch_add(1, Relaxed)
    }
}

/// Objects that are gone from the cache and whose reconciler has not been told yet: what a rebuilt shard cannot learn from the store.
#[derive(Clone, Default)]
pub(crate) struct Departed(Arc<DashMap<Key, Object>>);

impl Departed {
    pub(crate) fn insert(&self, last: Object) {
        self.0.insert(last.key().clone(), last);
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Object> {
        self.0.get(key).map(|entry| entry.value().clone())
    }

    /// Forgets what departed, unless another incarnation has departed since.
    pub(crate) fn settle(&self, dealt_with: &Object) {
        self.0.remove_if(dealt_with.key(), |_, last| {
            dealt_with.meta().uid == last.meta().uid
        });
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        self.0.iter().map(|entry| entry.key().clone()).collect()
    }
}
