//! What people ask for: keys to be run, hurried or unparked.
//!
//! Orders outlive every actor. A shard is told that there are some and takes them one by one, so that the one that crashes it is the only one lost.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, Weak},
    time::Instant,
};

use boatswain_cache::Key;
use boatswain_supervision::Clock;
use boatswain_workqueue::Lane;

use super::{DispatchCore, Gate, InFlight, ParkedKey, Pause, ShardView, Shut, Sick, shard_of};

use crate::{leader::Role, sync::lock, trigger::Quarantine};

/// What is asked for of one key; what is asked twice is asked once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) unpark: bool,
    pub(super) promote: Option<Lane>,
    pub(super) enqueue: bool,
}

/// The orders of one shard.
#[derive(Default)]
pub(super) struct Orders(Mutex<BTreeMap<Key, Order>>);

impl Orders {
    fn give(&self, key: &Key, change: impl FnOnce(&mut Order)) {
        change(lock(&self.0).entry(key.clone()).or_default());
    }

    pub(super) fn next(&self) -> Option<(Key, Order)> {
        lock(&self.0).pop_first()
    }
}

/// A controller as those see it who look after it; cheap to clone, usable from any thread.
///
/// What it asks for is done by the controller's shards as soon as they come to it, after a crash if need be. Of one key each thing is asked for at
/// most once at a time, so that asking again and again costs no memory.
#[derive(Clone)]
pub struct ControllerHandle {
    pub(crate) name: String,
    pub(crate) views: Vec<ShardView>,
    pub(crate) gate: Gate,
    pub(crate) sick: Arc<Sick>,
    pub(crate) clock: Clock,
    /// Gone when the manager has ended.
    pub(crate) core: Weak<DispatchCore>,
    pub(crate) in_flight: InFlight,
    /// Of the watches of the controller's own kind.
    pub(crate) quarantines: Vec<Arc<Quarantine>>,
}

impl ControllerHandle {
    /// What the controller is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The keys that are parked, by name.
    pub fn parked(&self) -> Vec<ParkedKey> {
        let parked = self.views.iter().flat_map(|view| view.parked.read());
        let mut parked: Vec<_> = parked.collect();
        parked.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        parked
    }

    /// Runs a parked key at once, as one that has never failed. A key that is not parked is left alone.
    pub fn unpark(&self, key: &Key) {
        self.order(key, |order| order.unpark = true);
    }

    /// [Unparks](Self::unpark) every key that is parked now.
    pub fn unpark_all(&self) {
        for parked in self.parked() {
            self.unpark(&parked.key);
        }
    }

    /// Makes the next run of `key` as urgent as `lane` and ends its wait, that of its backoff, too; a parked key is forgiven and runs. An idle key is
    /// left alone.
    pub fn promote(&self, key: &Key, lane: Lane) {
        self.order(key, |order| order.promote = order.promote.max(Some(lane)));
    }

    /// Runs `key` as if its object had changed, in the lane of those somebody waits for: a key that backs off goes on doing so. A key without an
    /// object is told as [gone](crate::Reconciler::gone).
    pub fn enqueue(&self, key: &Key) {
        self.order(key, |order| order.enqueue = true);
    }

    /// Lets no run begin until it is [resumed](Self::resume); `by` says who asks for that, or why, to whoever wonders. Runs that go on end as
    /// they would, and keys are collected and coalesced all the while. The pause lasts as long as the process, whatever crashes.
    ///
    /// One that is paused already stays so since then; what is said now replaces what was said then. That pause is returned as it was.
    pub fn pause(&self, by: impl Into<String>) -> Option<Pause> {
        let since = jiff::Timestamp::try_from(self.clock.wall()).unwrap_or(jiff::Timestamp::MAX);
        let by = by.into();
        let pause = Pause {
            by: by.clone(),
            since,
        };
        let before = self.gate.set_pause(Some(pause));
        match &before {
            None => tracing::warn!(controller = %self.name, by, "paused"),
            Some(before) => {
                tracing::warn!(controller = %self.name, by, since = %before.since, before = before.by, "paused already");
            }
        }
        before
    }

    /// Ends a [pause](Self::pause). Where there is none nothing happens.
    pub fn resume(&self) {
        if self.gate.pause().is_some() {
            tracing::warn!(controller = %self.name, "resumed");
            self.gate.set_pause(None);
            self.look();
        }
    }

    /// By whom and since when it is paused; `None` while it is not.
    pub fn paused(&self) -> Option<Pause> {
        self.gate.pause()
    }

    /// Why no run begins at present; `None` while they may.
    pub fn shut(&self) -> Option<Shut> {
        self.gate.shut()
    }

    /// Makes it a standby, of which no run begins, or its end.
    #[cfg(feature = "testing")]
    pub fn standby(&self, standby: bool) {
        self.play(if standby {
            Role::Standby
        } else {
            Role::Leader(0)
        });
    }

    /// Why it does not work as it should: an informer that it reads is refused what it asks for, or has not synced yet, or its reconciler panics on many
    /// keys. `None` while all is well.
    pub fn degraded(&self) -> Option<String> {
        let mut why = self.gate.cache_troubles();
        why.extend(self.sick.why());
        (!why.is_empty()).then(|| why.join("; "))
    }

    /// No run begins any more; those that run have until `end`.
    pub(crate) fn close(&self, end: Instant) {
        self.gate.close(end);
        self.look();
    }

    pub(crate) fn play(&self, role: Role) {
        let standby = role == Role::Standby;
        self.gate.set_standby(standby);
        if !standby {
            // after the gate: what is turned away until then is looked at now
            self.views.iter().for_each(ShardView::promote);
        }
        self.look();
    }

    /// Whether any of its reconciles still runs.
    pub(crate) fn is_busy(&self) -> bool {
        self.views
            .iter()
            .any(|view| view.look(|queue| queue.running() > 0))
    }

    /// Wakes every shard.
    fn look(&self) {
        self.views.iter().for_each(|view| view.bell.ring());
    }

    fn order(&self, key: &Key, change: impl FnOnce(&mut Order)) {
        if let Some(view) = self.views.get(shard_of(key, self.views.len())) {
            view.orders.give(key, change);
            view.bell.ring();
        }
    }
}
