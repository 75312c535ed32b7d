//! The actor that reads a subscription, maps changes and hands keys to their shards.

use std::{future::pending, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use actix::{Actor, AsyncContext as _, WrapFuture as _};
use boatswain_cache::{Batch, Cause, Change, Key, Predicate, Subscription, View};
use boatswain_supervision::{Address, Clock, Context, Link, supervised};
use boatswain_workqueue::Lane;
use futures::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use tokio::sync::Notify;

use super::{
    Mapper, Mapping, lane,
    sieve::{Sieve, Worth},
    unmapped::{Asked, News, Unmapped},
};
use crate::{
    dispatch::{DispatchCore, Enqueue, Shard, hash, shard_of},
    reconcile::Causes,
};

/// Changes mapped in one go.
const BATCH: usize = 256;
/// The resync looks at one in so many keys at a time, which spreads it over its period.
const SLICES: u32 = 64;
/// Changes the author's mapper works on at once.
const AT_ONCE: usize = 16;
/// How long it may take over one.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a trigger works on; it outlives the trigger's incarnations, so that a change in hand is mapped again after a crash.
pub(crate) struct Feed {
    /// The name of what is selected.
    pub(crate) source: String,
    subscription: Subscription,
    wake: Arc<Notify>,
    sieve: Sieve,
    mapping: Mapping,
    unmapped: Unmapped,
    resync: Option<Duration>,
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
            source,
            subscription: view.subscribe(controller, move || notify.notify_one()),
            wake,
            sieve: Sieve::new(when),
            mapping,
            unmapped: Unmapped::new(),
            resync,
        }
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
        if let Mapping::Mapped(mapper) = &self.feed.mapping {
            let (hand, mapper) = (self.hand(), mapper.clone());
            ctx.spawn(async move { hand.ask(&*mapper).await }.into_actor(self));
        }
        if let Some(period) = self.feed.resync {
            let hand = self.hand();
            ctx.spawn(async move { hand.resync(period).await }.into_actor(self));
        }
    }
}

/// What the trigger's futures need of it.
struct Hand {
    core: Arc<DispatchCore>,
    feed: Arc<Feed>,
    shards: Arc<Vec<Address<Shard>>>,
    clock: Clock,
}

impl Hand {
    async fn follow(self) {
        loop {
            match self.feed.subscription.take(BATCH) {
                Some(batch) => self.map(batch).await,
                None => self.feed.wake.notified().await,
            }
        }
    }

    async fn map(&self, batch: Batch) {
        let Feed {
            mapping,
            unmapped,
            subscription,
            ..
        } = &*self.feed;
        let mut keys = Vec::new();
        for (change, cause) in batch.changes() {
            // what is out of sight may well exist: nobody is to clean up after it
            if let (Mapping::Own, Change::Deleted { last, .. }) = (mapping, change)
                && *cause != Cause::OutOfScope
            {
                self.core.departed.insert(last.clone());
            }
            if !self.is_worth_it(change) {
                continue;
            }
            let (lane, causes) = (lane(*cause), mapping.causes(change, *cause));
            match mapping.keys(change) {
                Some(found) => keys.extend(found.into_iter().map(|key| (key, lane, causes))),
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
        self.enqueue(keys);
        subscription.ack(batch);
        // let the arbiter's other actors have a turn
        tokio::task::yield_now().await;
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

    /// Asks the author's mapper about several changes at once, so that one it is long over holds up no other.
    async fn ask(self, mapper: &dyn Mapper) {
        let unmapped = &self.feed.unmapped;
        let mut asked = FuturesUnordered::new();
        loop {
            while asked.len() < AT_ONCE
                && let Some(next) = unmapped.next(&self.clock)
            {
                asked.push(self.ask_about(mapper, next));
            }
            let due = unmapped.due().filter(|_| asked.len() < AT_ONCE);
            let retry = async {
                match due {
                    Some(at) => self.clock.sleep_until(at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                // user code ran in place: let the arbiter's other actors have a turn
                Some(()) = asked.next() => tokio::task::yield_now().await,
                () = unmapped.added() => {}
                () = retry => {}
            }
        }
    }

    /// Enqueues the keys the mapper names; its panic is its failure and nobody else's.
    async fn ask_about(&self, mapper: &dyn Mapper, asked: Asked<'_>) {
        let answer = async {
            let mut keys = Vec::new();
            for state in &asked.news.states {
                keys.extend(mapper.map(state.clone()).await.map_err(|e| e.to_string())?);
            }
            Ok(keys)
        };
        let answer = tokio::select! {
            biased;
            answer = AssertUnwindSafe(answer).catch_unwind() => {
                answer.unwrap_or_else(|_| Err("it panicked".to_owned()))
            }
            () = self.clock.sleep(PATIENCE) => Err(format!("no answer within {PATIENCE:?}")),
        };
        match answer {
            Ok(keys) => {
                let (lane, causes) = (asked.lane, asked.news.causes);
                self.enqueue(keys.into_iter().map(|key| (key, lane, causes)).collect());
                asked.answered();
            }
            Err(why) => {
                self.core.metrics.mapper_failed();
                let (controller, object, first) =
                    (&self.core.name, asked.key.clone(), asked.failures == 0);
                let retry_in = asked.failed();
                if first {
                    tracing::warn!(%controller, %object, ?retry_in, "a change could not be mapped to keys: {why}");
                } else {
                    tracing::debug!(%controller, %object, ?retry_in, "a change could not be mapped to keys: {why}");
                }
            }
        }
    }

    fn enqueue(&self, keys: Vec<(Key, Lane, Causes)>) {
        let mut shares = vec![Vec::new(); self.shards.len()];
        for entry in keys {
            shares[shard_of(&entry.0, self.shards.len())].push(entry);
        }
        for (shard, share) in self.shards.iter().zip(shares) {
            if !share.is_empty() {
                shard.tell(Enqueue(share));
            }
        }
    }

    /// Enqueues every key once per period, a slice at a time; which slice a key belongs to follows from its name, so that a key is
    /// looked at in even steps without any timer of its own.
    async fn resync(self, period: Duration) {
        // a step of nothing would never let go of the thread
        let step = (period / SLICES).max(Duration::from_millis(1));
        for slice in (0..SLICES).cycle() {
            self.clock.sleep(step).await;
            let keys = self.core.runner.keys().into_iter();
            let share =
                keys.filter(|key| hash(key) >> 32 & u64::from(SLICES - 1) == u64::from(slice));
            self.enqueue(share.map(|key| (key, Lane::Low, Causes::RESYNC)).collect());
        }
    }
}
