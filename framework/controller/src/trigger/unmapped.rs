//! Changes whose keys the author's mapper has yet to name, one entry per changed object.
//!
//! It outlives the trigger, whose subscription has been told that these changes are dealt with. An object that is being mapped is
//! not handed out again; one whose mapping fails waits with backoff and holds up no other.

use std::{
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant},
};

use boatswain_cache::{Key, Object};
use boatswain_supervision::Clock;
use boatswain_workqueue::{
    Fault, Lane, Merge, Queue, QueueOptions, RunId, Verdict,
    limit::{Exponential, Limiter as _, Retry},
};
use tokio::sync::Notify;

use crate::{reconcile::Causes, sync::lock};

/// The waits between attempts to map a change again.
const RETRY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
const JITTER: f64 = 0.2;

/// What is to be mapped of one object.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    /// The first state that was not mapped, and those of the last change.
    pub(super) states: Vec<Object>,
    pub(super) causes: Causes,
}

impl Merge for News {
    fn merge(&mut self, later: Self) {
        // what the object was only in between concerns nobody
        self.states.truncate(1);
        self.states.extend(later.states);
        self.causes.merge(later.causes);
    }
}

pub(super) struct Unmapped {
    queue: Mutex<Queue<Key, News>>,
    added: Notify,
}

/// The claim on one object while its news are mapped. Dropped without an answer, by a crash for instance, it has them handed out again.
pub(super) struct Asked<'a> {
    unmapped: &'a Unmapped,
    clock: &'a Clock,
    pub(super) key: Key,
    pub(super) news: News,
    pub(super) lane: Lane,
    /// How often it failed before.
    pub(super) failures: u32,
    run: RunId,
    verdict: Verdict,
}

impl Unmapped {
    pub(super) fn new() -> Self {
        Self {
            queue: Mutex::new(Queue::new(QueueOptions::default())),
            added: Notify::new(),
        }
    }

    pub(super) fn add(&self, key: Key, lane: Lane, news: News, now: Instant) {
        // nothing is parked, and who waits for a due time reads it anew
        let _ = self.queue().add(key, lane, news, now);
        self.added.notify_one();
    }

    /// The next object to map, if there is one whose time has come.
    pub(super) fn next<'a>(&'a self, clock: &'a Clock) -> Option<Asked<'a>> {
        let now = clock.now();
        let mut queue = self.queue();
        let due = queue.waits().take_while(|(_, delay)| delay.until <= now);
        for key in due.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            let _ = queue.due(&key, now);
        }
        let run = queue.start(now)?;
        Some(Asked {
            unmapped: self,
            clock,
            key: run.key,
            news: run.cause.unwrap_or_default(),
            lane: run.lane,
            failures: run.streak.failures.into(),
            run: run.run,
            verdict: Verdict::Again {
                delay: Duration::ZERO,
            },
        })
    }

    /// Objects that are or have yet to be asked about.
    pub(super) fn len(&self) -> usize {
        let queue = self.queue();
        queue.queued() + queue.running() + queue.waiting()
    }

    /// When the next that failed may be tried again.
    pub(super) fn due(&self) -> Option<Instant> {
        self.queue().waits().next().map(|(_, delay)| delay.until)
    }

    /// Waits for news.
    pub(super) async fn added(&self) {
        self.added.notified().await;
    }

    fn queue(&self) -> MutexGuard<'_, Queue<Key, News>> {
        lock(&self.queue)
    }
}

impl Asked<'_> {
    /// The mapper has answered.
    pub(super) fn answered(mut self) {
        self.verdict = Verdict::Done;
    }

    /// The mapper has failed; it is asked again after the time that is returned, of which `chance` from 0 to 1 decides the jitter.
    pub(super) fn failed(mut self, chance: f64) -> Duration {
        let delays = Exponential::new(RETRY.0, RETRY.1).with_jitter(JITTER);
        let delay = delays.clone().delay(Retry {
            failures: self.failures.saturating_add(1),
            chance,
            now: self.clock.now(),
        });
        self.verdict = Verdict::Backoff {
            delay,
            fault: Fault::Infrastructure,
        };
        delay
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let verdict = std::mem::replace(&mut self.verdict, Verdict::Done);
        let now = self.clock.now();
        let _ = self
            .unmapped
            .queue()
            .finish(&self.key, self.run, verdict, now);
    }
}
