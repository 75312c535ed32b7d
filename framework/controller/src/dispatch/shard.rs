//! A shard looks after its desk: the time of keys that wait, what people ask for, and keys that are held.

use std::{sync::Arc, time::Duration};

use actix::{Actor, ActorFutureExt as _, AsyncContext as _, Handler, WrapFuture as _};
use boatswain_cache::Key;
use boatswain_supervision::{Address, Clock, Context, Link, supervised};
use boatswain_workqueue::Phase;

use super::{Look, desk::Desk, timer::Timer};
use crate::context::Surroundings;

/// How often parked keys are looked through for those that have rested long enough.
const PARKED_ROUND: Duration = Duration::from_secs(60);
/// How often a standby forgets what departed before the last time, in rounds: the leader has been told by then, or another leads.
const FORGET_ROUNDS: u32 = 10;

/// Holds nothing that its desk does not know: keys go on running while it is down, and its successor goes on where it was.
pub(crate) struct Shard {
    desk: Arc<Desk>,
    own: Address<Shard>,
    clock: Clock,
    timer: Timer,
}

impl Shard {
    pub(crate) fn new(desk: Arc<Desk>, own: Address<Shard>, link: &Link) -> Self {
        let view = desk.view.clone();
        link.report("keys", move || view.read().into());
        Self {
            desk,
            own,
            clock: link.clock().clone(),
            timer: Timer::default(),
        }
    }

    fn look(&mut self, ctx: &mut Context<Self>) {
        if self.desk.core.gate.is_ready() {
            self.desk.rebuild();
        }
        self.desk.obey();
        let held = std::mem::take(&mut self.desk.open().held);
        for key in held {
            self.wait_for(key, ctx);
        }
        self.tick(ctx);
    }

    /// Wakes what is due and sets one timer for what comes next.
    fn tick(&mut self, ctx: &mut Context<Self>) {
        let next = self.desk.tick();
        self.timer
            .set(next, &self.clock, ctx, |shard: &mut Self, ctx| {
                shard.timer.rang();
                shard.tick(ctx);
            });
    }

    /// Lets a key go when the caches show what its runs wrote.
    fn wait_for(&self, key: Key, ctx: &mut Context<Self>) {
        let (desk, clock) = (self.desk.clone(), self.clock.clone());
        let shown = async move {
            let Surroundings { writes, client, .. } = &*desk.core.surroundings;
            let metrics = &desk.core.metrics;
            writes.catch_up(&key, client, &clock, metrics).await;
            desk.free(&key);
        };
        ctx.spawn(shown.into_actor(self));
    }

    fn park_round(&self, round: u32, ctx: &mut Context<Self>) {
        let clock = self.clock.clone();
        let next = async move { clock.sleep(PARKED_ROUND).await };
        ctx.spawn(next.into_actor(self).map(move |(), shard, ctx| {
            let desk = &shard.desk;
            desk.wake_parked();
            desk.core.sick.look(&desk.core.name, shard.clock.now());
            // one of the shards does it for all
            if desk.index == 0 && round.is_multiple_of(FORGET_ROUNDS) && desk.core.gate.is_standby()
            {
                desk.core.departed.forget_old();
            }
            shard.park_round(round.wrapping_add(1), ctx);
        }));
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        self.desk.view.bell.detach();
    }
}

supervised!(Shard);

impl Actor for Shard {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let own = self.own.clone();
        self.desk.view.bell.attach(move || {
            own.tell(Look);
        });
        {
            // those that an earlier incarnation waited for
            let mut book = self.desk.open();
            let is_held = |phase| matches!(phase, Phase::Held);
            let held = book.queue.cells().filter(|(_, cell)| is_held(cell.phase));
            book.held = held.map(|(key, _)| key.clone()).collect();
        }
        self.look(ctx);
        let gate = self.desk.core.gate.clone();
        let ready = async move { gate.wait_ready().await };
        ctx.spawn(ready.into_actor(self).map(|(), shard, ctx| {
            shard.look(ctx);
        }));
        self.park_round(1, ctx);
    }
}

impl Handler<Look> for Shard {
    type Result = ();

    fn handle(&mut self, _: Look, ctx: &mut Self::Context) {
        self.desk.view.bell.heard();
        self.look(ctx);
    }
}
