//! What of a shard outlives its actor, and everything that is done with it: keys come in, runs go out and end.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

use boatswain_cache::Key;
use boatswain_workqueue::{Activation, Added, Delay, Due, Lane, Next, RunId, Streak, Verdict};

use super::{
    DispatchCore, Ended, ParkedKey, ShardView, Tally,
    book::Open,
    permits::{PATIENCE, Permit},
    presence::Presence,
    shard_of,
};
use crate::{
    context::Surroundings,
    reconcile::{Causes, Outcome},
};

/// Keys added under one lock: others come in between.
const CHUNK: usize = 64;

/// The desks of a controller; which is whose key's says [`desk_of`].
pub(crate) type Desks = Arc<[Arc<Desk>]>;

/// The place of the desk that `key` belongs to.
pub(super) fn desk_of(key: &Key, desks: &Desks) -> usize {
    shard_of(key, desks.len())
}

/// A shard's share of the dispatcher's work, for whoever has some of it to do, on whatever thread. Nothing here waits for an actor.
///
/// Locks: the queue's, then those of what is parked, of pacing and of bells; no code of a user's runs under any of them.
pub(crate) struct Desk {
    pub(crate) index: usize,
    pub(crate) core: Arc<DispatchCore>,
    /// Of its own: what all threads count references on is slow.
    pub(super) surroundings: Arc<Surroundings>,
    pub(super) view: ShardView,
}

/// A run that was handed out. Its last reference that is dropped ends it, so that no crash and no kill can leave a key running for ever, nor let it run
/// again while anything of the run is left.
pub(super) struct Claim {
    desk: Arc<Desk>,
    key: Key,
    run: RunId,
    streak: Streak,
    end: OnceLock<(Ended, Instant)>,
}

/// Why there is nothing to run.
pub(super) enum Idle {
    /// No key is ready, or none may run.
    NoKey,
    NoPermit,
}

impl Desk {
    pub(crate) fn new(index: usize, core: &Arc<DispatchCore>, view: ShardView) -> Arc<Self> {
        Arc::new(Self {
            index,
            surroundings: Arc::new(core.surroundings.as_ref().clone()),
            core: core.clone(),
            view,
        })
    }

    pub(super) fn now(&self) -> Instant {
        self.view.shelf.clock.now()
    }

    fn tally(&self) -> &Tally {
        self.core.metrics.tally(self.index)
    }

    pub(super) fn open(&self) -> Open<'_> {
        self.view.open()
    }

    /// Asks for runs that begin later. Each key is there once, however often it is asked for.
    pub(crate) fn add(&self, keys: impl IntoIterator<Item = (Key, Lane, Causes)>) {
        let now = self.now();
        // a standby keeps no cells but for what was asked for from outside: when it leads, every key is looked at anyway
        let standby = self.core.gate.is_standby();
        let keys = keys.into_iter();
        let mut keys = keys
            .filter(|(_, _, causes)| !standby || causes.is_asked())
            .peekable();
        while keys.peek().is_some() {
            let mut book = self.open();
            for (key, lane, causes) in keys.by_ref().take(CHUNK) {
                let queue = &mut book.queue;
                let added = if causes.renew() {
                    queue.renew(key.clone(), lane, causes, now)
                } else {
                    queue.add(key.clone(), lane, causes, now)
                };
                self.added(&mut book, key, added);
            }
        }
        self.wake_worker();
    }

    fn added(&self, book: &mut Open<'_>, key: Key, added: Added) {
        match added {
            Added::Coalesced | Added::Backoff => return,
            Added::Queued | Added::Dirty => {}
            Added::Woken => self.waits_no_more(&key),
            Added::Delayed(delay) => {
                self.tally().delayed();
                // parked, and listed as such until it runs
                self.view.parked.hurry(&key, self.at(delay.until));
                self.waits(book, key, delay);
            }
        }
        self.tally().added();
    }

    /// A key that waited, or was parked, is to run.
    fn waits_no_more(&self, key: &Key) {
        self.view.parked.remove(key);
        self.core.pacing.forget(key);
    }

    /// A key is to run at a time: the limiter's business if it is a retry, or else the shard's.
    fn waits(&self, book: &mut Open<'_>, key: Key, delay: Delay) {
        if delay.why.is_retry() {
            self.core.pacing.set(key, delay);
        } else if book.armed.is_none_or(|armed| delay.until < armed) {
            self.view.bell.ring();
        }
    }

    /// Wakes a worker, if one waits for keys and none will look for them anyway. Whoever calls this has held the lock since there was news.
    pub(super) fn wake_worker(&self) {
        if self.view.presence.are_to_be_woken() {
            self.view.work.notify_one();
        }
    }

    /// Hands out the run of a key whose turn it is, if runs may start, with a permit.
    pub(super) fn begin(
        &self,
        presence: &mut Presence<'_>,
        permit: &mut Option<Permit>,
        now: Instant,
    ) -> Result<Activation<Key, Causes>, Idle> {
        let permits = &self.core.permits;
        if permits.are_wanted(self.index) {
            *permit = None;
        }
        if permit.is_none() {
            let book = self.open();
            if book.queue.queued() == 0 || !self.core.gate.is_open() {
                presence.rest(&book);
                return Err(Idle::NoKey);
            }
            drop(book);
            *permit = permits.take(self.index, now);
        }
        if permit.is_none() {
            return Err(Idle::NoPermit);
        }
        let mut book = self.open();
        // who opens the gate takes the lock before anybody is woken
        let run = match self.core.gate.is_open() {
            true => book.queue.start(now),
            false => None,
        };
        run.ok_or_else(|| {
            presence.rest(&book);
            Idle::NoKey
        })
    }

    /// Waits until there may be a key.
    pub(super) async fn key(&self) {
        self.core.permits.decline(self.index);
        self.view.work.notified().await;
    }

    /// Waits until there may be a permit.
    pub(super) async fn permit(&self) {
        let clock = &self.view.shelf.clock;
        tokio::select! {
            biased;
            () = self.view.work.notified() => {}
            () = clock.sleep(PATIENCE) => {}
        }
    }

    /// Holds a run back that has not begun, until the caches show what earlier ones wrote. False if it cannot be.
    pub(super) fn hold(&self, key: &Key, run: RunId, now: Instant) -> bool {
        let mut book = self.open();
        let held = book.queue.hold(key, run, now);
        if held {
            book.held.push(key.clone());
            drop(book);
            self.view.bell.ring();
        }
        held
    }

    /// Lets go of a key that was held.
    pub(super) fn free(&self, key: &Key) {
        let now = self.now();
        self.open().queue.free(key, now);
        self.wake_worker();
    }

    pub(super) fn claim(
        self: &Arc<Self>,
        key: Key,
        run: RunId,
        streak: Streak,
        queued_for: std::time::Duration,
    ) -> Claim {
        self.tally().queued_for(queued_for);
        Claim {
            desk: self.clone(),
            key,
            run,
            streak,
            end: OnceLock::new(),
        }
    }

    fn finish(&self, claim: &Claim, ended: &Ended, now: Instant) {
        let core = &self.core;
        let verdict = match ended {
            Ended::Outcome(Outcome::Done) => Verdict::Done,
            Ended::NotBegun | Ended::Demoted if self.hold_and_free(claim, now) => return,
            ended => {
                let chance = || core.entropy.unit();
                let verdict = core.retries.verdict(ended, claim.streak, chance, now);
                core.let_go(&claim.key, ended, verdict)
            }
        };
        let parks = matches!(verdict, Verdict::Park(_));
        let mut book = self.open();
        let next = book.finish(&claim.key, claim.run, verdict, now);
        let parked = match next {
            Next::Idle | Next::NotRunning => None,
            // another worker may have to do it
            Next::Queued => {
                drop(book);
                return self.wake_worker();
            }
            // with news already, for which it runs when it has rested
            Next::Waiting(delay) => {
                self.tally().delayed();
                self.waits(&mut book, claim.key.clone(), delay);
                parks.then_some(delay.until)
            }
            Next::Parked => Some(now + core.retries.unpark_after),
        };
        if let Some(next_try) = parked {
            let parked = self.parked(claim, ended, next_try);
            self.view.parked.insert(parked.clone());
            drop(book);
            self.tell_parked(claim, &parked);
        }
    }

    /// A run that has not begun, or had to end, stands in line again, as it did.
    fn hold_and_free(&self, claim: &Claim, now: Instant) -> bool {
        let mut book = self.open();
        let held = book.queue.hold(&claim.key, claim.run, now);
        if held {
            book.queue.free(&claim.key, now);
            drop(book);
            self.wake_worker();
        }
        held
    }

    fn parked(&self, claim: &Claim, ended: &Ended, next_try: Instant) -> ParkedKey {
        ParkedKey {
            key: claim.key.clone(),
            reason: ended.to_string(),
            failures: u32::from(claim.streak.failures) + 1,
            since: self.surroundings.wall(),
            next_try: self.at(next_try),
        }
    }

    /// A time that is to come, as clocks on the wall will show it.
    fn at(&self, time: Instant) -> jiff::Timestamp {
        let wait = time.saturating_duration_since(self.now());
        let wall = self.surroundings.wall();
        wall.saturating_add(wait).unwrap_or(jiff::Timestamp::MAX)
    }

    /// Says that a key is parked: in the log, and on the object the first time since it last succeeded.
    fn tell_parked(&self, claim: &Claim, parked: &ParkedKey) {
        let core = &self.core;
        let ParkedKey {
            key,
            reason,
            failures,
            ..
        } = parked;
        tracing::error!(controller = %core.name, %key, failures, "parked: {reason}");
        core.metrics.parked();
        let after = core.retries.unpark_after;
        if claim.streak.parkings == 0
            && let Some(regarding) = core.runner.reference(key)
        {
            let note = format!(
                "parked after {failures} failures in a row: {reason}; tried again when it changes, and every {after:?}"
            );
            self.surroundings.warn(regarding, "Parked", note);
        }
    }

    /// These have their turn, says the limiter.
    pub(super) fn due(&self, keys: &[Key]) {
        let now = self.now();
        let mut book = self.open();
        for key in keys {
            self.ring(&mut book, key, now);
        }
        drop(book);
        self.wake_worker();
    }

    fn ring(&self, book: &mut Open<'_>, key: &Key, now: Instant) {
        match book.queue.due(key, now) {
            Due::Early(delay) => self.waits(book, key.clone(), delay),
            Due::Queued => {
                self.view.parked.remove(key);
                self.tally().added();
            }
            Due::Stale => {}
        }
    }

    /// Wakes the keys whose time has come; says when to look again.
    pub(super) fn tick(&self) -> Option<Instant> {
        let now = self.now();
        let mut book = self.open();
        let next = loop {
            let next = book.queue.timers().next();
            match next.map(|(key, delay)| (key.clone(), delay.until)) {
                Some((key, until)) if until <= now => self.ring(&mut book, &key, now),
                next => break next.map(|(_, until)| until),
            }
        };
        book.armed = next;
        drop(book);
        self.wake_worker();
        next
    }

    /// Tells the limiter of every retry again.
    pub(super) fn tell_retries(&self) {
        let book = self.open();
        for (key, delay) in book.queue.retries() {
            self.core.pacing.set(key.clone(), delay);
        }
    }

    /// Does what people have asked for.
    pub(super) fn obey(&self) {
        while let Some((key, order)) = self.view.orders.next() {
            let now = self.now();
            let mut book = self.open();
            if order.unpark && self.view.parked.contains(&key) {
                let (lane, cause) = (Lane::User, Causes::UNPARKED);
                let added = book.queue.renew(key.clone(), lane, cause, now);
                self.added(&mut book, key.clone(), added);
            }
            if order.enqueue {
                let added = book.queue.add(key.clone(), Lane::User, Causes::ASKED, now);
                self.added(&mut book, key.clone(), added);
            }
            if let Some(lane) = order.promote
                && book.queue.promote(&key, lane, now)
            {
                self.waits_no_more(&key);
            }
        }
        self.wake_worker();
    }

    /// Lets parked keys that have rested long enough run again.
    pub(super) fn wake_parked(&self) {
        let now = self.now();
        if let Some(since) = now.checked_sub(self.core.retries.unpark_after) {
            let woken = self.open().queue.wake_parked(since, now);
            for key in &woken {
                self.view.parked.remove(key);
            }
            self.wake_worker();
        }
    }

    /// Looks at every key again, if any may be missing. Before the caches are synced they would not know them all.
    pub(super) fn rebuild(&self) {
        if !std::mem::take(&mut self.open().rebuild) {
            return;
        }
        let core = &self.core;
        let keys = core.runner.keys().into_iter().chain(core.departed.keys());
        let mine = keys.filter(|key| shard_of(key, core.shards) == self.index);
        self.add(
            core.ranked(mine.map(|key| (key, Lane::Low, Causes::REBUILT)))
                .collect::<Vec<_>>(),
        );
        self.tell_retries();
        self.view.bell.ring();
    }
}

/// The controller has ended: nobody is told of keys that nobody runs.
impl Drop for Desk {
    fn drop(&mut self) {
        self.open().queue.clear();
        self.view.parked.clear();
    }
}

impl Claim {
    /// How the run ended, which counts when nothing of it is left.
    pub(super) fn end(&self, ended: Ended, at: Instant) {
        // there is one end only
        let _ = self.end.set((ended, at));
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let end = self.end.take();
        let (ended, at) = end.unwrap_or_else(|| (Ended::Aborted, self.desk.now()));
        self.desk.finish(self, &ended, at);
    }
}
