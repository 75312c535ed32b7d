//! A shard owns the cells of its share of the keys and hands them to its workers, one run of a key at a time.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use actix::{Actor, ActorFutureExt as _, AsyncContext as _, Handler, WrapFuture as _};
use boatswain_cache::Key;
use boatswain_supervision::{Address, Clock, Context, Link, supervised};
use boatswain_workqueue::{Added, Due as Ring, Lane, Next, Queue, QueueOptions, Streak, Verdict};

use super::{
    Counts, DispatchCore, Due, Ended, Enqueue, LimiterActor, Orders, ParkedKey, ParkedView, Rearm,
    Tally, Timer, Worker,
    permits::{Hand, Permit},
    worker::{Activate, KeyDone, Ticket},
};
use crate::{context::Surroundings, explain::Asks, reconcile::Causes, sync::lock};

/// How often parked keys are looked through for those that have rested long enough.
const PARKED_ROUND: Duration = Duration::from_secs(60);

/// A worker's place at its shard; the worker on it may be replaced.
#[derive(Default)]
pub(crate) struct Seat {
    worker: Mutex<Option<Address<Worker>>>,
    /// Set by the shard with an activation, cleared when the activation's ticket is dropped, by whatever means.
    busy: Arc<AtomicBool>,
}

impl Seat {
    /// Called by the workers' supervisor for each worker it starts.
    pub(crate) fn assign(&self, worker: Address<Worker>) {
        *lock(&self.worker) = Some(worker);
    }

    fn free(&self) -> bool {
        !self.busy.load(Relaxed)
    }

    /// Hands over an activation. Where there is no worker it is dropped, and with it its ticket, which tells the shard.
    fn activate(&self, activate: Activate) {
        if let Some(worker) = &*lock(&self.worker) {
            worker.tell(activate);
        }
    }
}

/// What observers may read of a shard without asking it, and what they ask for; it outlives every incarnation.
#[derive(Clone, Default)]
pub(crate) struct ShardView {
    counts: Arc<Mutex<Counts>>,
    pub(crate) parked: ParkedView,
    pub(crate) orders: Orders,
    pub(crate) asks: Asks,
}

impl ShardView {
    pub(crate) fn read(&self) -> Counts {
        *lock(&self.counts)
    }

    fn show(&self, counts: Counts) {
        *lock(&self.counts) = counts;
    }
}

/// Where a shard stands and whom it talks to.
#[derive(Clone)]
pub(crate) struct Berth {
    pub(crate) index: usize,
    pub(crate) core: Arc<DispatchCore>,
    pub(crate) seats: Arc<Vec<Seat>>,
    pub(crate) limiter: Address<LimiterActor>,
    pub(crate) own: Address<Shard>,
    pub(crate) view: ShardView,
}

pub(crate) struct Shard {
    berth: Berth,
    clock: Clock,
    queue: Queue<Key, Causes>,
    hand: Hand,
    /// An earlier incarnation lost its cells: every key must be looked at again.
    rebuild: bool,
}

/// Somebody asks for something.
#[derive(actix::Message)]
#[rtype(result = "()")]
struct Look;

/// A key is held until the caches show what its runs wrote.
#[derive(actix::Message)]
#[rtype(result = "()")]
struct Hold(Key);

/// A permit this shard waited for.
#[derive(actix::Message)]
#[rtype(result = "()")]
struct Granted(Permit);

impl Drop for Shard {
    fn drop(&mut self) {
        // its cells end with it
        self.berth.view.show(Counts::default());
        self.berth.view.parked.clear();
        self.berth.view.orders.detach();
    }
}

impl Shard {
    pub(crate) fn new(berth: Berth, link: &Link) -> Self {
        let own = berth.own.clone();
        let hand = Arc::new(move |permit| {
            own.tell(Granted(permit));
        });
        let view = berth.view.clone();
        link.report("keys", move || view.read().into());
        // runs of an earlier incarnation may still report: their epoch tells them apart
        let epoch = berth.core.next_epoch(berth.index);
        let queue = Queue::new(QueueOptions {
            epoch,
            ..QueueOptions::default()
        });
        Self {
            berth,
            clock: link.clock().clone(),
            queue,
            hand,
            rebuild: epoch > 0,
        }
    }

    fn core(&self) -> &DispatchCore {
        &self.berth.core
    }

    fn tally(&self) -> &Tally {
        self.core().metrics.tally(self.berth.index)
    }

    fn pump(&mut self) {
        self.pump_with(None);
    }

    /// Starts what may start: a key that is ready, a free worker, a permit. One that was granted and is not needed goes back.
    fn pump_with(&mut self, mut granted: Option<Permit>) {
        if self.core().gate.is_open() {
            while self.queue.queued() > 0 && self.start_one(&mut granted) {}
        }
        drop(granted);
        let listed = self.berth.view.parked.len();
        self.berth.view.show(Counts::of(&self.queue, listed));
    }

    fn start_one(&mut self, granted: &mut Option<Permit>) -> bool {
        let seats = self.berth.seats.clone();
        let Some(seat) = seats.iter().find(|seat| seat.free()) else {
            return false;
        };
        let permits = &self.core().permits;
        let Some(permit) = granted
            .take()
            .or_else(|| permits.take(self.berth.index, &self.hand))
        else {
            return false;
        };
        let now = self.clock.now();
        let Some(run) = self.queue.start(now) else {
            return false;
        };
        let waits = self.core().surroundings.writes.must_wait(&run.key, now);
        if waits && self.queue.hold(&run.key, run.run, now) {
            // neither seat nor permit is kept from those who can run
            *granted = Some(permit);
            self.berth.own.tell(Hold(run.key));
            return true;
        }
        self.tally()
            .queued_for(now.saturating_duration_since(run.queued_at));
        let causes = match run.cause {
            _ if run.streak != Streak::default() => {
                run.cause.unwrap_or_default().and(Causes::RETRY)
            }
            // its own timer rang
            None => Causes::REQUEUED,
            Some(causes) => causes,
        };
        seat.busy.store(true, Relaxed);
        let ticket = Ticket::new(
            self.berth.own.clone(),
            run.key.clone(),
            run.run,
            run.streak,
            seat.busy.clone(),
            permit,
        );
        seat.activate(Activate {
            key: run.key,
            attempt: run.streak.failures.into(),
            last: self.core().retries.is_last(run.streak),
            causes,
            ticket,
        });
        true
    }

    /// Looks at every key again. Before the caches are synced it would not know them all.
    fn rebuild(&mut self) {
        let Berth { core, index, .. } = self.berth.clone();
        let keys = core.runner.keys().into_iter().chain(core.departed.keys());
        let mine = keys.filter(|key| super::shard_of(key, core.shards()) == index);
        self.enqueue(core.ranked(mine.map(|key| (key, Lane::Low, Causes::REBUILT))));
    }

    fn enqueue(&mut self, keys: impl Iterator<Item = (Key, Lane, Causes)>) {
        let now = self.clock.now();
        for (key, lane, causes) in keys {
            let added = if causes.renew() {
                self.queue.renew(key.clone(), lane, causes, now)
            } else {
                self.queue.add(key.clone(), lane, causes, now)
            };
            self.added(key, added);
        }
    }

    fn added(&self, key: Key, added: Added) {
        match added {
            Added::Coalesced | Added::Backoff => return,
            Added::Queued | Added::Dirty => {}
            Added::Woken => self.waits_no_more(key),
            Added::Delayed(delay) => {
                self.tally().delayed();
                // parked, and listed as such until it runs
                let parked = &self.berth.view.parked;
                parked.hurry(&key, self.at(delay.until));
                self.berth.limiter.tell(Timer::Set(vec![(key, delay)]));
            }
        }
        self.tally().added();
    }

    /// A key that waited, or was parked, is to run.
    fn waits_no_more(&self, key: Key) {
        self.berth.view.parked.remove(&key);
        self.berth.limiter.tell(Timer::Void(key));
    }

    fn finish(&mut self, done: &KeyDone) {
        let now = self.clock.now();
        if done.ended == Ended::NotBegun && self.queue.hold(&done.key, done.run, now) {
            // it stands in line again, as it did
            self.queue.free(&done.key, now);
            return;
        }
        let core = self.core();
        let chance = || core.entropy.unit();
        let verdict = core.retries.verdict(&done.ended, done.streak, chance, now);
        let verdict = core.let_go(&done.key, &done.ended, verdict);
        let parks = matches!(verdict, Verdict::Park(_));
        let after = self.core().retries.unpark_after;
        match self.queue.finish(&done.key, done.run, verdict, now) {
            Next::Waiting(delay) => {
                if parks {
                    // there is news already, for which it runs when it has rested
                    self.parked(done, delay.until);
                }
                self.tally().delayed();
                self.berth
                    .limiter
                    .tell(Timer::Set(vec![(done.key.clone(), delay)]));
            }
            Next::Parked => self.parked(done, now + after),
            Next::Idle | Next::Queued | Next::NotRunning => {}
        }
    }

    /// Says that a key is parked: in the log and the list, and on the object the first time since it last succeeded.
    fn parked(&self, done: &KeyDone, next_try: Instant) {
        let core = self.core();
        let failures = u32::from(done.streak.failures) + 1;
        tracing::error!(controller = %core.name, key = %done.key, failures, "parked: {}", done.ended);
        core.metrics.parked();
        let after = core.retries.unpark_after;
        let since = core.surroundings.wall();
        let reason = done.ended.to_string();
        if done.streak.parkings == 0
            && let Some(regarding) = core.runner.reference(&done.key)
        {
            let note = format!(
                "parked after {failures} failures in a row: {reason}; tried again when it changes, and every {after:?}"
            );
            core.surroundings.warn(regarding, "Parked", note);
        }
        self.berth.view.parked.insert(ParkedKey {
            key: done.key.clone(),
            reason,
            failures,
            since,
            next_try: self.at(next_try),
        });
    }

    /// A time that is to come, as clocks on the wall will show it.
    fn at(&self, time: Instant) -> jiff::Timestamp {
        let wait = time.saturating_duration_since(self.clock.now());
        let wall = self.core().surroundings.wall();
        wall.saturating_add(wait).unwrap_or(jiff::Timestamp::MAX)
    }

    /// Does what people have asked for.
    fn obey(&mut self) {
        let seat = || self.berth.seats.iter().any(Seat::free);
        self.berth.view.asks.answer(&self.queue, seat);
        let orders = self.berth.view.orders.clone();
        while let Some((key, order)) = orders.next() {
            let now = self.clock.now();
            if order.unpark && self.berth.view.parked.contains(&key) {
                let (lane, cause) = (Lane::User, Causes::UNPARKED);
                let added = self.queue.renew(key.clone(), lane, cause, now);
                self.added(key.clone(), added);
            }
            if order.enqueue {
                self.enqueue([(key.clone(), Lane::User, Causes::ASKED)].into_iter());
            }
            if let Some(lane) = order.promote
                && self.queue.promote(&key, lane, now)
            {
                self.waits_no_more(key);
            }
        }
        self.pump();
    }

    /// Lets parked keys that have rested long enough run again.
    fn wake_parked(&mut self) {
        let now = self.clock.now();
        if let Some(since) = now.checked_sub(self.core().retries.unpark_after) {
            let woken = self.queue.wake_parked(since, now);
            for key in &woken {
                self.berth.view.parked.remove(key);
            }
            if !woken.is_empty() {
                self.pump();
            }
        }
    }

    fn park_round(&self, ctx: &mut Context<Self>) {
        let clock = self.clock.clone();
        let round = async move { clock.sleep(PARKED_ROUND).await };
        ctx.spawn(round.into_actor(self).map(|(), shard, ctx| {
            shard.wake_parked();
            let core = shard.core();
            core.sick.look(&core.name, shard.clock.now());
            shard.park_round(ctx);
        }));
    }
}

supervised!(Shard);

impl Actor for Shard {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let core = self.berth.core.clone();
        let own = self.berth.own.clone();
        self.berth.view.orders.attach(move || {
            own.tell(Look);
        });
        self.obey();
        // what is synced does not wait for what is not; the rest follows below
        if self.rebuild && core.gate.is_ahead() {
            self.rebuild();
            self.pump();
        }
        let ready = async move { core.gate.wait_ready().await };
        ctx.spawn(ready.into_actor(self).map(|(), shard, _| {
            if shard.rebuild {
                shard.rebuild();
            }
            shard.pump();
        }));
        self.park_round(ctx);
    }
}

impl Handler<Enqueue> for Shard {
    type Result = ();

    fn handle(&mut self, Enqueue(keys): Enqueue, _: &mut Self::Context) {
        self.enqueue(keys.into_iter());
        self.pump();
    }
}

impl Handler<Due> for Shard {
    type Result = ();

    fn handle(&mut self, Due(keys): Due, _: &mut Self::Context) {
        let now = self.clock.now();
        for key in keys {
            match self.queue.due(&key, now) {
                Ring::Early(delay) => {
                    self.berth.limiter.tell(Timer::Set(vec![(key, delay)]));
                }
                Ring::Queued => self.berth.view.parked.remove(&key),
                Ring::Stale => {}
            }
        }
        self.pump();
    }
}

impl Handler<Hold> for Shard {
    type Result = ();

    fn handle(&mut self, Hold(key): Hold, ctx: &mut Self::Context) {
        let (core, clock) = (self.berth.core.clone(), self.clock.clone());
        let shown = async move {
            let Surroundings { writes, client, .. } = &*core.surroundings;
            writes.catch_up(&key, client, &clock, &core.metrics).await;
            key
        };
        ctx.spawn(shown.into_actor(self).map(|key, shard, _| {
            let now = shard.clock.now();
            shard.queue.free(&key, now);
            shard.pump();
        }));
    }
}

impl Handler<Rearm> for Shard {
    type Result = ();

    fn handle(&mut self, _: Rearm, _: &mut Self::Context) {
        let waits = self
            .queue
            .waits()
            .map(|(key, delay)| (key.clone(), delay))
            .collect();
        self.berth.limiter.tell(Timer::Set(waits));
    }
}

impl Handler<Look> for Shard {
    type Result = ();

    fn handle(&mut self, _: Look, _: &mut Self::Context) {
        self.obey();
    }
}

impl Handler<Granted> for Shard {
    type Result = ();

    fn handle(&mut self, Granted(permit): Granted, _: &mut Self::Context) {
        self.pump_with(Some(permit));
    }
}

impl Handler<KeyDone> for Shard {
    type Result = ();

    fn handle(&mut self, done: KeyDone, _: &mut Self::Context) {
        self.finish(&done);
        self.pump();
    }
}
