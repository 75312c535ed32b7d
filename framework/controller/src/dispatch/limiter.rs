//! The RateLimiter: keeps the time of keys that wait and paces retries of the whole controller.

use std::{sync::Arc, time::Instant};

use actix::{Actor, ActorFutureExt as _, AsyncContext as _, Handler, SpawnHandle, WrapFuture as _};
use boatswain_cache::Key;
use boatswain_supervision::{Address, Clock, Context, Link, supervised};
use boatswain_workqueue::{Pacer, limit::Bucket};

use super::{Due, Rearm, Shard, Timer, shard_of};

pub(crate) struct LimiterActor {
    shards: Arc<Vec<Address<Shard>>>,
    clock: Clock,
    pacer: Pacer<Key>,
    armed: Option<(Instant, SpawnHandle)>,
    restarted: bool,
}

impl LimiterActor {
    /// `bucket` outlives it: tokens that are spent stay spent.
    pub(crate) fn new(
        shards: Arc<Vec<Address<Shard>>>,
        bucket: Option<Bucket>,
        link: &Link,
    ) -> Self {
        let restarted = link.incarnation() > 1;
        Self {
            shards,
            clock: link.clock().clone(),
            pacer: Pacer::new(bucket),
            armed: None,
            restarted,
        }
    }

    /// Hands out what is due and sets one timer for what comes next.
    fn turn(&mut self, ctx: &mut Context<Self>) {
        let mut due = vec![Vec::new(); self.shards.len()];
        for key in self.pacer.release(self.clock.now()) {
            due[shard_of(&key, self.shards.len())].push(key);
        }
        for (shard, keys) in self.shards.iter().zip(due) {
            if !keys.is_empty() {
                shard.tell(Due(keys));
            }
        }
        let next = self.pacer.next_due();
        if next == self.armed.map(|(at, _)| at) {
            return;
        }
        if let Some((_, timer)) = self.armed.take() {
            ctx.cancel_future(timer);
        }
        if let Some(at) = next {
            let clock = self.clock.clone();
            let timer = async move { clock.sleep_until(at).await };
            let timer = ctx.spawn(timer.into_actor(self).map(|(), limiter, ctx| {
                limiter.armed = None;
                limiter.turn(ctx);
            }));
            self.armed = Some((at, timer));
        }
    }
}

supervised!(LimiterActor);

impl Actor for LimiterActor {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        if self.restarted {
            for shard in self.shards.iter() {
                shard.tell(Rearm);
            }
        }
    }
}

impl Handler<Timer> for LimiterActor {
    type Result = ();

    fn handle(&mut self, timer: Timer, ctx: &mut Self::Context) {
        match timer {
            Timer::Set(waits) => waits
                .into_iter()
                .for_each(|(key, delay)| self.pacer.insert(key, delay)),
            Timer::Void(key) => {
                self.pacer.remove(&key);
            }
        }
        self.turn(ctx);
    }
}
