//! What all shards and workers of one controller share; it outlives every incarnation of them.

use std::{sync::Arc, time::Duration};

use boatswain_cache::{InformerCore, Key, Object, ReadError, View};
use boatswain_supervision::Entropy;
use boatswain_workqueue::{Lane, Verdict};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ObjectReference;
use tokio::runtime::Handle;

use super::{Complaints, Departed, Ended, Gate, LetGo, Pacing, Permits, Retries, Sick};
use crate::{
    context::{Context, Surroundings},
    explain::{Heards, Journals, ReconcileId},
    reconcile::Causes,
    telemetry::ControllerMetrics,
    trigger::guarded,
};

/// Says how urgent changes of an object are.
pub(crate) type Priority = Box<dyn Fn(&Object) -> Lane + Send + Sync>;

/// A reconciler with its kind erased, so that actors need not know it.
pub(crate) trait Runner: Send + Sync {
    /// Runs the key of `cx` once.
    fn run(&self, cx: Context) -> BoxFuture<'_, Ended>;

    /// Every key that exists now, to rebuild a shard from.
    fn keys(&self) -> Vec<Key>;

    /// Where the objects are that it runs for.
    fn stores(&self) -> Arc<[Arc<InformerCore>]>;

    /// What the cache has of the key's object, not decoded.
    fn look(&self, key: &Key) -> Result<Option<Object>, ReadError>;

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
    pub(crate) complaints: Complaints,
    /// How long one reconcile may take.
    pub(crate) deadline: Duration,
    pub(crate) departed: Departed,
    pub(crate) metrics: ControllerMetrics,
    pub(crate) entropy: Entropy,
    pub(crate) shards: usize,
    /// Every cache the reconciler reads: they run, and the gate knows of them, while these are kept.
    pub(crate) _caches: Arc<Vec<View>>,
    pub(crate) gate: Gate,
    pub(crate) sick: Arc<Sick>,
    /// Where its reconciles run; in place if there is none.
    pub(crate) pool: Option<Handle>,
    /// How urgent changes of an object are, where the author says so.
    pub(crate) priority: Option<Priority>,
    /// Of each shard, written at the end of its runs.
    pub(crate) journals: Journals,
    pub(crate) heards: Heards,
    /// Where the numbers of runs begin.
    pub(crate) first_run: u64,
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

    /// How urgent `key` is that would stand in `lane`.
    pub(crate) fn rank(&self, key: &Key, lane: Lane) -> Lane {
        let Some(priority) = &self.priority else {
            return lane;
        };
        // the store, not its lister: while the first list is read, that has nothing to say yet
        let stores = self.runner.stores();
        let Some(object) = stores.iter().find_map(|store| store.get(key)) else {
            return lane;
        };
        match (guarded(|| priority(&object)), lane) {
            (Ok(Lane::User), _) => Lane::User,
            (Ok(Lane::Low), Lane::Normal) => Lane::Low,
            (Ok(_), lane) => lane,
            (Err(panicked), lane) => {
                self.metrics.priority_failed();
                let controller = &self.name;
                tracing::debug!(%controller, %key, "it is not known how urgent the key is: {panicked}");
                lane
            }
        }
    }

    /// Keys with the lanes they are worth.
    pub(crate) fn ranked(
        &self,
        keys: impl Iterator<Item = (Key, Lane, Causes)>,
    ) -> impl Iterator<Item = (Key, Lane, Causes)> {
        keys.map(|(key, lane, causes)| {
            let lane = self.rank(&key, lane);
            (key, lane, causes)
        })
    }

    /// A name for the next run of a shard.
    pub(crate) fn next_run(&self, shard: usize) -> ReconcileId {
        let number = self.metrics.tally(shard).begin() * self.shards as u64 + shard as u64;
        ReconcileId::of(self.first_run.wrapping_add(number))
    }
}
