//! What all shards and workers of one controller share; it outlives every incarnation of them.

use std::{sync::Arc, time::Duration};

use boatswain_cache::{InformerCore, Key};
use boatswain_supervision::Entropy;
use boatswain_workqueue::Verdict;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ObjectReference;

use super::{Departed, Ended, Gate, LetGo, Pacing, Permits, Retries};
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
    pub(crate) departed: Departed,
    pub(crate) metrics: ControllerMetrics,
    pub(crate) entropy: Entropy,
    pub(crate) shards: usize,
    pub(crate) gate: Gate,
}

impl DispatchCore {
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
}
