//! The actor that reads a subscription, maps changes and hands keys to their shards.

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use actix::{Actor, AsyncContext as _, WrapFuture as _};
use boatswain_cache::{Batch, Cause, Change, Key, Subscription};
use boatswain_supervision::{Address, Clock, Context, Link, supervised};
use boatswain_workqueue::Lane;
use futures::FutureExt as _;
use tokio::sync::Notify;

use super::{Mapping, lane};
use crate::{
    dispatch::{DispatchCore, Enqueue, Shard, hash, shard_of},
    reconcile::Causes,
};

/// Changes mapped in one go.
const BATCH: usize = 256;
/// The resync looks at one in so many keys at a time, which spreads it over its period.
const SLICES: u32 = 64;
/// The waits between attempts to map a change again.
const RETRY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// What a trigger works on; it outlives the trigger's incarnations, so that a change in hand is mapped again after a crash.
pub(crate) struct Feed {
    /// The name of the informer.
    pub(crate) source: String,
    pub(crate) subscription: Subscription,
    pub(crate) wake: Arc<Notify>,
    pub(crate) mapping: Mapping,
    /// The period of the second look at every key, where this is the watch of the controller's own kind.
    pub(crate) resync: Option<Duration>,
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
        let mut failing = Failing::default();
        loop {
            self.retry(&mut failing).await;
            match self.feed.subscription.take(BATCH) {
                Some(batch) => self.map(batch, &mut failing).await,
                None => self.wait(failing.next()).await,
            }
        }
    }

    async fn wait(&self, next: Option<Instant>) {
        let timer = async {
            match next {
                Some(at) => self.clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.feed.wake.notified() => {}
            () = timer => {}
        }
    }

    async fn map(&self, batch: Batch, failing: &mut Failing) {
        let mut keys = Vec::new();
        for (change, cause) in batch.changes() {
            if matches!(self.feed.mapping, Mapping::Own)
                && let Change::Deleted { last, .. } = change
            {
                self.core.departed.insert(last.clone());
            }
            match self.keys(change, *cause).await {
                Ok(found) => keys.extend(found),
                Err(why) => failing.add(
                    change.clone(),
                    *cause,
                    &why,
                    self.clock.now(),
                    &self.core.name,
                ),
            }
        }
        self.enqueue(keys);
        self.feed.subscription.ack(batch);
        // user code ran in place: let the arbiter's other actors have a turn
        tokio::task::yield_now().await;
    }

    async fn retry(&self, failing: &mut Failing) {
        for stuck in failing.due(self.clock.now()) {
            match self.keys(&stuck.change, stuck.cause).await {
                Ok(keys) => self.enqueue(keys),
                Err(why) => {
                    self.core.metrics.mapper_failed();
                    failing.again(stuck, &why, self.clock.now());
                }
            }
        }
    }

    /// The keys of one change; a mapper's panic is its failure and nobody else's.
    async fn keys(
        &self,
        change: &Change,
        cause: Cause,
    ) -> Result<Vec<(Key, Lane, Causes)>, String> {
        let causes = self.feed.mapping.causes(change, cause);
        match AssertUnwindSafe(self.feed.mapping.keys(change))
            .catch_unwind()
            .await
        {
            Ok(Ok(keys)) => Ok(keys
                .into_iter()
                .map(|key| (key, lane(cause), causes))
                .collect()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the mapper panicked".to_owned()),
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
        for slice in (0..SLICES).cycle() {
            self.clock.sleep(period / SLICES).await;
            let keys = self.core.runner.keys().into_iter();
            let share =
                keys.filter(|key| hash(key) >> 32 & u64::from(SLICES - 1) == u64::from(slice));
            self.enqueue(share.map(|key| (key, Lane::Low, Causes::RESYNC)).collect());
        }
    }
}

/// Changes whose keys a mapper could not name yet, the latest per object.
#[derive(Default)]
struct Failing(std::collections::BTreeMap<Key, Stuck>);

struct Stuck {
    change: Change,
    cause: Cause,
    attempt: u32,
    due: Instant,
}

impl Failing {
    fn add(&mut self, change: Change, cause: Cause, why: &str, now: Instant, controller: &str) {
        tracing::warn!(controller, object = %change.key(), why, "a change could not be mapped to keys; it is tried again");
        self.again(
            Stuck {
                change,
                cause,
                attempt: 0,
                due: now,
            },
            why,
            now,
        );
    }

    fn again(&mut self, mut stuck: Stuck, why: &str, now: Instant) {
        let delay = RETRY
            .0
            .saturating_mul(2u32.saturating_pow(stuck.attempt))
            .min(RETRY.1);
        tracing::debug!(object = %stuck.change.key(), attempt = stuck.attempt, why, "mapping again in {delay:?}");
        stuck.attempt += 1;
        stuck.due = now + delay;
        self.0.insert(stuck.change.key().clone(), stuck);
    }

    fn due(&mut self, now: Instant) -> Vec<Stuck> {
        let due: Vec<_> = self
            .0
            .iter()
            .filter(|(_, s)| s.due <= now)
            .map(|(key, _)| key.clone())
            .collect();
        due.iter().filter_map(|key| self.0.remove(key)).collect()
    }

    fn next(&self) -> Option<Instant> {
        self.0.values().map(|stuck| stuck.due).min()
    }
}
