//! The actor that reads a subscription, maps changes and hands keys to their shards.

use std::{
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use actix::{Actor, AsyncContext as _, WrapFuture as _};
use boatswain_cache::{Cause, Change, Key, Object, Predicate, Subscription, View};
use boatswain_supervision::{Address, Clock, Context, Link, supervised};
use boatswain_workqueue::Lane;
use tokio::sync::Notify;

use super::{
    Mapping,
    hand::{InHand, Progress, Quarantine, Step},
    lane,
    resync::{SLICES, Slices},
    sieve::{Sieve, Worth},
    unmapped::{News, Unmapped},
};
use crate::{
    dispatch::{DispatchCore, Enqueue, Shard, hash, shard_of},
    explain::Heard,
    reconcile::Causes,
    sync::lock,
};

/// Changes mapped in one go.
const BATCH: usize = 256;
/// Keys looked at in one go for the resync.
const PAGE: usize = 256;

/// What a trigger works on; it outlives the trigger's incarnations, so that a change in hand is mapped again after a crash.
///
/// Only its trigger writes to it.
pub(crate) struct Feed {
    /// The name of what is selected.
    pub(crate) source: Arc<str>,
    subscription: Subscription,
    wake: Arc<Notify>,
    sieve: Sieve,
    pub(super) mapping: Mapping,
    pub(super) unmapped: Unmapped,
    resync: Option<Duration>,
    slices: OnceLock<Mutex<Slices>>,
    hand: Mutex<Option<InHand>>,
    pub(crate) quarantine: Arc<Quarantine>,
}

impl Feed {
    /// What `controller` hears of `view`, which is called `source`. `resync` is the period of the second look at every key, where this is the watch of the
    /// controller's own kind.
    pub(crate) fn new(
        view: &View,
        source: String,
        controller: &str,
        when: Option<Predicate>,
        mapping: Mapping,
        resync: Option<Duration>,
    ) -> Self {
        let wake = Arc::new(Notify::new());
        let notify = wake.clone();
        Self {
            source: source.into(),
            subscription: view.subscribe(controller, move || notify.notify_one()),
            wake,
            sieve: Sieve::new(when),
            mapping,
            unmapped: Unmapped::new(),
            resync,
            slices: OnceLock::new(),
            hand: Mutex::default(),
            quarantine: Arc::default(),
        }
    }
}

impl Feed {
    /// Whether it is of the controller's own objects.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.mapping, Mapping::Own)
    }
}

pub(crate) struct Trigger {
    core: Arc<DispatchCore>,
    feed: Arc<Feed>,
    shards: Arc<Vec<Address<Shard>>>,
    clock: Clock,
}

impl Trigger {
    pub(crate) fn new(
        core: Arc<DispatchCore>,
        feed: Arc<Feed>,
        shards: Arc<Vec<Address<Shard>>>,
        link: &Link,
    ) -> Self {
        let shown = feed.clone();
        link.report("quarantined", move || shown.quarantine.show());
        let shown = feed.clone();
        link.report("unmapped", move || shown.unmapped.len().into());
        Self {
            core,
            feed,
            shards,
            clock: link.clock().clone(),
        }
    }

    fn hand(&self) -> Hand {
        Hand {
            core: self.core.clone(),
            feed: self.feed.clone(),
            shards: self.shards.clone(),
            clock: self.clock.clone(),
        }
    }
}

supervised!(Trigger);

impl Actor for Trigger {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let hand = self.hand();
        ctx.spawn(async move { hand.follow().await }.into_actor(self));
        let hand = self.hand();
        ctx.spawn(async move { hand.ask().await }.into_actor(self));
        if let Some(period) = self.feed.resync {
            let hand = self.hand();
            ctx.spawn(async move { hand.resync(period).await }.into_actor(self));
        }
    }
}

/// What the trigger's futures need of it.
pub(super) struct Hand {
    pub(super) core: Arc<DispatchCore>,
    pub(super) feed: Arc<Feed>,
    pub(super) shards: Arc<Vec<Address<Shard>>>,
    pub(super) clock: Clock,
}

impl Hand {
    async fn follow(self) {
        loop {
            if self.work() {
                // let the arbiter's other actors have a turn
                tokio::task::yield_now().await;
            } else {
                self.feed.wake.notified().await;
            }
        }
    }

    /// Handles what is in hand, or else the next batch. False if there is none.
    fn work(&self) -> bool {
        let mut hand = lock(&self.feed.hand);
        if hand.is_none() {
            *hand = self.feed.subscription.take(BATCH).map(|batch| InHand {
                batch,
                progress: Progress::default(),
            });
        }
        let Some(InHand { batch, progress }) = hand.as_mut() else {
            return false;
        };
        let changes = batch.changes();
        loop {
            match progress.begin(changes.len()) {
                Step::Handle(range) => {
                    let next = changes.get(range.clone()).unwrap_or_default();
                    self.map(next);
                    progress.did(range.end);
                }
                Step::SetAside(at) => {
                    progress.did(at + 1);
                    if let Some((change, cause)) = changes.get(at) {
                        self.set_aside(change, *cause);
                    }
                }
                Step::End => break,
            }
        }
        if let Some(InHand { batch, .. }) = hand.take() {
            batch.ack();
        }
        true
    }

    fn map(&self, changes: &[(Change, Cause)]) {
        let Feed {
            mapping,
            unmapped,
            quarantine,
            ..
        } = &*self.feed;
        let mut keys = Vec::new();
        for (change, cause) in changes {
            if let (Mapping::Own, Change::Deleted { .. }) = (mapping, change) {
                self.core.surroundings.echoes.forget(change.key());
            }
            if !self.is_worth_it(change) {
                continue;
            }
            self.remember(change, *cause);
            if let (Mapping::Own, Change::Updated { old, new }) = (mapping, change) {
                let (from, to) = (&old.meta().resource_version, &new.meta().resource_version);
                self.core.surroundings.echoes.heard(change.key(), from, to);
            }
            let (lane, causes) = (lane(*cause), mapping.causes(change, *cause));
            match mapping.keys(change) {
                Some(found) => {
                    if let Some(state) = change.new().or(change.old()) {
                        self.hear(&found, state);
                    }
                    keys.extend(found.into_iter().map(|key| (key, lane, causes)));
                }
                None => {
                    let states = change.old().into_iter().chain(change.new());
                    let news = News {
                        states: states.cloned().collect(),
                        causes,
                    };
                    unmapped.add(change.key().clone(), lane, news, self.clock.now());
                }
            }
        }
        self.enqueue(keys.into_iter());
        quarantine.forget(changes.iter().map(|(change, _)| change.key()));
    }

    /// Remembers who wakes whom, for those who ask. Of the controller's own objects that is clear.
    pub(super) fn hear(&self, keys: &[Key], state: &Object) {
        if keys.is_empty() || self.feed.is_own() {
            return;
        }
        let (at, version) = (self.clock.now(), &state.meta().resource_version);
        self.core.heards.tell(keys.iter().map(|key| Heard {
            key: key.clone(),
            source: self.feed.source.clone(),
            object: state.key().clone(),
            version: version.clone(),
            at,
        }));
    }

    /// A change that kills its trigger: the key of the controller's own object runs all the same.
    fn set_aside(&self, change: &Change, cause: Cause) {
        let (controller, source) = (&self.core.name, &self.feed.source);
        tracing::error!(%controller, %source, ?change, "a change crashed its trigger twice; it is set aside");
        self.core.metrics.quarantined();
        self.feed.quarantine.insert(change);
        self.remember(change, cause);
        if let Mapping::Own = self.feed.mapping {
            let causes = self.feed.mapping.causes(change, cause);
            self.enqueue([(change.key().clone(), lane(cause), causes)].into_iter());
        }
    }

    /// Remembers the last state of an own object that is gone. What is out of sight may well exist: nobody is to clean up after it.
    fn remember(&self, change: &Change, cause: Cause) {
        let (Mapping::Own, Change::Deleted { last, .. }) = (&self.feed.mapping, change) else {
            return;
        };
        if cause == Cause::OutOfScope {
            return;
        }
        if let Some(key) = self.core.departed.insert(last.clone()) {
            let controller = &self.core.name;
            tracing::debug!(%controller, %key, "the last state of a deleted object is forgotten: too many wait for their reconciler to be told");
            self.core.metrics.departed_dropped();
        }
    }

    /// Whether the author's predicate lets the change pass; one it panics on passes.
    fn is_worth_it(&self, change: &Change) -> bool {
        let metrics = &self.core.metrics;
        match self.feed.sieve.judge(change) {
            Worth::Run => true,
            Worth::Nothing => {
                metrics.filtered();
                false
            }
            Worth::Unknown { first } => {
                metrics.predicate_failed();
                if first {
                    let (controller, object) = (&self.core.name, change.key());
                    tracing::error!(%controller, %object, "a predicate panicked; changes it panics on are taken as worth a run");
                }
                true
            }
        }
    }

    pub(super) fn enqueue(&self, keys: impl Iterator<Item = (Key, Lane, Causes)>) {
        hand_out(&self.shards, self.core.ranked(keys));
    }

    /// Enqueues every key once per period, a slice at a time; which slice a key belongs to follows from its name, so that a key is
    /// looked at in even steps without any timer of its own.
    async fn resync(self, period: Duration) {
        let begin = || Mutex::new(Slices::new(period, self.clock.now()));
        let slices = self.feed.slices.get_or_init(begin);
        loop {
            let due = lock(slices).due(self.clock.now());
            self.clock.sleep_until(due).await;
            let turn = lock(slices).turn(self.clock.now());
            self.look_again(turn.slice()).await;
            lock(slices).did(turn);
        }
    }

    async fn look_again(&self, slice: u64) {
        let is_due = |key: &Key| hash(key) >> 32 & (SLICES - 1) == slice;
        for store in self.core.runner.stores().iter() {
            let mut after = None;
            loop {
                let page = store.page(after.as_ref(), PAGE);
                let Some(last) = page.last() else { break };
                after = Some(last.key().clone());
                let due = page.iter().map(Object::key).filter(|key| is_due(key));
                self.enqueue(due.map(|key| (key.clone(), Lane::Low, Causes::RESYNC)));
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Tells each shard of those keys that are its own.
pub(super) fn hand_out(shards: &[Address<Shard>], keys: impl Iterator<Item = (Key, Lane, Causes)>) {
    let mut shares = vec![Vec::new(); shards.len()];
    for entry in keys {
        if let Some(share) = shares.get_mut(shard_of(&entry.0, shards.len())) {
            share.push(entry);
        }
    }
    for (shard, share) in shards.iter().zip(shares) {
        if !share.is_empty() {
            shard.tell(Enqueue(share));
        }
    }
}
