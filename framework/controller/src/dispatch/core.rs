//! What all shards and workers of one controller share; it outlives every incarnation of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use boatswain_cache::{InformerCore, Key, View};
use boatswain_supervision::Entropy;
use boatswain_workqueue::Verdict;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ObjectReference;

use super::{Closing, Departed, Ended, LetGo, Pacing, Permits, Retries};
use crate::{
    context::{Context, Surroundings},
    telemetry::ControllerMetrics,
};

/// A reconciler with its kind erased, so that actors need not know it.
pub(crate) trait Runner: Send + Sync {
    /// Runs the key of `cx` once.
    fn run(&self, cx: Context) -> BoxFuture<'_, Ended>;

    /// Every key that exists now, to rebuild a shard from.
    fn keys(&self) -> Vec<Key>;

    /// Where the objects are that it runs for.
    fn stores(&self) -> Arc<[Arc<InformerCore>]>;

    /// Whether the cache knows that there is no such object.
    fn is_gone(&self, key: &Key) -> bool;

    /// What an Event on the key's object refers to; `None` when there is none in the cache.
    fn reference(&self, key: &Key) -> Option<ObjectReference>;
}

pub(crate) struct DispatchCore {
    pub(crate) name: String,
    pub(crate) surroundings: Arc<Surroundings>,
    pub(crate) runner: Arc<dyn Runner>,
    pub(crate) permits: Permits,
    pub(crate) retries: Retries,
    pub(crate) pacing: Pacing,
    /// How long one reconcile may take.
    pub(crate) deadline: Duration,
    /// Every cache the reconciler reads: no key runs before all of them have been synced.
    pub(crate) caches: Vec<View>,
    /// Whether they have been: what is added to them later holds up nobody.
    pub(crate) ready: AtomicBool,
    pub(crate) departed: Departed,
    pub(crate) metrics: ControllerMetrics,
    pub(crate) entropy: Entropy,
    pub(crate) shards: usize,
    pub(crate) closing: Closing,
}

impl DispatchCore {
    /// Whether runs may start: the caches hold what a reconciler must see, and the manager does not stop.
    pub(crate) fn is_open(&self) -> bool {
        self.closing.end().is_none() && self.is_ready()
    }

    /// Whether the caches hold, or held once, what a reconciler must see.
    pub(crate) fn is_ready(&self) -> bool {
        let ready = self.ready.load(Relaxed) || self.caches.iter().all(View::synced);
        if ready && !self.ready.load(Relaxed) {
            self.ready.store(true, Relaxed);
        }
        ready
    }

    /// What becomes of a key whose run ended so: one whose object is gone is never parked, for nothing would wake it for good. What departed is forgotten
    /// if a reconciler was told of it; what departed during the run is news, and its key is asked for or will be.
    pub(crate) fn let_go(&self, key: &Key, ended: &Ended, verdict: Verdict) -> Verdict {
        let Verdict::Park(why) = &verdict else {
            return verdict;
        };
        if !self.runner.is_gone(key) {
            return verdict;
        }
        let let_go = self.departed.let_go(key);
        if let_go == LetGo::Forgotten {
            self.metrics.departed_let_go();
        }
        if let_go != LetGo::Untold && !matches!(ended, Ended::Outcome(_)) {
            let controller = &self.name;
            tracing::error!(%controller, %key, "let go: its object is gone, and the reconciler cannot take note of that: {why}");
        }
        Verdict::Done
    }

    pub(crate) async fn wait_ready(&self) {
        for cache in &self.caches {
            cache.wait_synced().await;
        }
    }
}
