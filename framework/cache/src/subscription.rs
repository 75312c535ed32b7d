//! Who hears of changes, and what each has not heard yet.

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::delta::{Cause, Change};
use crate::key::Key;
use crate::object::Object;
use crate::sync::lock;
use crate::view::View;

mod backlog;
mod net;
mod resync;
#[cfg(test)]
mod tests;

use backlog::Backlog;
use resync::Schedule;

/// A subscriber's end of one or several informers; dropping it unsubscribes.
///
/// Changes wait in a backlog that holds each key once, however often it changes: created and updated is created, two updates are one from the
/// first state to the last, and an incarnation that came and went unheard of is left out, while the deletion of one that was heard of
/// never is. The backlog lives outside of all actors, so no crash loses it. [`Subscription::take`] lends a batch; until it is acknowledged it is in
/// hand, and a batch that is dropped instead, by a crash for instance, is told again.
///
/// # Guarantees
///
/// - A slow subscriber holds up nobody: neither the watch, nor other subscribers.
/// - Its backlog holds no more keys than are alive now, or were when it last listened. Newest states are the store's own. Past states, such as the last
///   of a deleted object, cost at most [`SubscribeOptions::max_bytes`]; beyond that they keep type and metadata only, without annotations, and
///   are counted in [`SubscriberStatus::thinned`].
/// - Fresh news overtake what merely was there, at the beginning or at a resync, but never keep it waiting: one key in four is of the latter while both wait.
/// - It is [synced](Subscription::synced) only when it has acknowledged everything that was there when it began.
pub struct Subscription {
    shared: Arc<Shared>,
    view: View,
    resync: Option<Mutex<Schedule>>,
}

/// How a subscriber wants to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscribeOptions {
    /// Every key is told again once in this time although nothing changed, spread evenly over it; see [`Subscription::resync_due`]. Default never.
    pub resync: Option<Duration>,
    /// What past states may cost that only wait for this subscriber. Default 64 MiB.
    pub max_bytes: usize,
}

impl Default for SubscribeOptions {
    fn default() -> Self {
        Self {
            resync: None,
            max_bytes: 64 << 20,
        }
    }
}

pub(crate) struct Shared {
    name: String,
    backlog: Mutex<Backlog>,
    notify: Box<dyn Fn() + Send + Sync>,
    /// Told whenever nothing of the initial replay waits.
    settled: Notify,
    /// Told whenever there may be something to take.
    news: Notify,
}

thread_local! {
    /// Subscribers this thread is waking.
    static WOKEN: RefCell<Vec<*const Shared>> = const { RefCell::new(Vec::new()) };
}

/// A subscriber as the informer's status shows it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SubscriberStatus {
    /// The name it gave.
    pub name: String,
    /// Keys waiting, those in hand included.
    pub depth: usize,
    /// The most keys that ever waited.
    pub high_water: usize,
    /// Keys in hand.
    pub in_hand: usize,
    /// Keys of the initial replay not acknowledged yet.
    pub initial: usize,
    /// Bytes of past states that only wait for this subscriber.
    pub bytes: usize,
    /// Past states that were told, or wait to be, without their insides because the subscriber was too far behind.
    pub thinned: u64,
    /// How long the oldest news that wait have waited; serialized in seconds.
    #[serde(serialize_with = "crate::status::as_seconds")]
    pub oldest_age: Option<Duration>,
}

impl Shared {
    /// Adds to the backlog; whoever calls wakes the subscriber when its own locks are free.
    pub(crate) fn tell<'a>(
        &self,
        changes: impl IntoIterator<Item = &'a (Change, Cause)>,
        now: Option<Instant>,
    ) {
        let mut backlog = lock(&self.backlog);
        for (change, cause) in changes {
            backlog.push(change, *cause, now);
        }
        self.note_settled(&backlog);
    }

    /// Tells of unchanged objects again, unless their keys wait anyway.
    pub(crate) fn tell_again(&self, objects: impl Iterator<Item = Object>, now: Option<Instant>) {
        let mut backlog = lock(&self.backlog);
        for object in objects {
            backlog.resync(object, now);
        }
    }

    fn note_settled(&self, backlog: &Backlog) {
        if backlog.initial() == 0 {
            self.settled.notify_waiters();
        }
    }

    /// Wakes the subscriber. Its panic is its own; what was told stays in the backlog. It is not woken by what it does when woken: a batch it takes and
    /// drops there would wake it without end.
    pub(crate) fn wake(&self) {
        self.news.notify_one();
        let me = std::ptr::from_ref(self);
        if WOKEN.with_borrow(|woken| woken.contains(&me)) {
            return;
        }
        WOKEN.with_borrow_mut(|woken| woken.push(me));
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.notify)()));
        WOKEN.with_borrow_mut(|woken| woken.retain(|other| *other != me));
        if outcome.is_err() {
            tracing::error!(
                subscriber = self.name,
                "a subscriber's notification panicked; its changes wait for the next"
            );
        }
    }

    pub(crate) fn status(&self, now: Instant) -> SubscriberStatus {
        let backlog = lock(&self.backlog);
        SubscriberStatus {
            name: self.name.clone(),
            depth: backlog.depth(),
            high_water: backlog.high_water(),
            in_hand: backlog.in_hand(),
            initial: backlog.initial(),
            bytes: backlog.bytes(),
            thinned: backlog.thinned(),
            oldest_age: backlog.oldest().map(|at| now.saturating_duration_since(at)),
        }
    }
}

impl Subscription {
    /// One that nobody tells anything yet; [`View::subscribe`] makes it known to the informers.
    pub(crate) fn new(
        name: String,
        options: &SubscribeOptions,
        notify: Box<dyn Fn() + Send + Sync>,
        view: View,
    ) -> Self {
        let period = options.resync.filter(|period| !period.is_zero());
        Self {
            resync: period.map(|period| Mutex::new(Schedule::new(period, &name))),
            shared: Arc::new(Shared {
                name,
                backlog: Mutex::new(Backlog::new(options.max_bytes)),
                notify,
                settled: Notify::new(),
                news: Notify::new(),
            }),
            view,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Takes the changes of up to `max` keys. `None` when nothing waits, or while a batch is in hand.
    #[must_use]
    pub fn take(&self, max: usize) -> Option<Batch> {
        let (ticket, changes) = lock(&self.shared.backlog).take(max)?;
        Some(Batch {
            changes,
            ticket: Some(ticket),
            shared: Arc::downgrade(&self.shared),
        })
    }

    /// Waits for changes and takes those of up to `max` keys, at least one. The short way for one task that handles them: `notify` need do nothing then. While a
    /// batch is in hand it waits for its end. It waits for as long as nothing happens, also when nothing can happen any more.
    ///
    /// ```
    /// # async fn example(pods: &boatswain_cache::SharedInformer) {
    /// let heard = pods.subscribe("printer", || {});
    /// loop {
    ///     let batch = heard.next(64).await;
    ///     for (change, cause) in batch.changes() {
    ///         println!("{change:?} ({cause:?})");
    ///     }
    ///     batch.ack();
    /// }
    /// # }
    /// ```
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost by dropping it.
    pub async fn next(&self, max: usize) -> Batch {
        let max = max.max(1);
        loop {
            // what is told after the look leaves a permit behind
            match self.take(max) {
                Some(batch) => return batch,
                None => self.shared.news.notified().await,
            }
        }
    }

    /// The batch was handled: it will not be told again.
    pub fn ack(&self, batch: Batch) {
        batch.ack();
    }

    /// The batch was not handled, or not all of it: its keys are told again, merged with what happened since. The same as dropping it.
    pub fn nack(&self, batch: Batch) {
        drop(batch);
    }

    /// Whether the informers are synced and everything that was there when the subscription began is handled: whoever subscribed knows every object.
    /// A batch of it that was taken and not acknowledged yet, or lost in a crash, does not count as handled; [`Subscription::initial`] says how much is
    /// missing.
    #[must_use]
    pub fn synced(&self) -> bool {
        // in this order: what a list brings is told before its end is known
        self.view.synced() && self.initial() == 0
    }

    /// Waits until [`Subscription::synced`]. Somebody must take and acknowledge meanwhile.
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost by dropping it.
    pub async fn wait_synced(&self) {
        loop {
            let mut settled = std::pin::pin!(self.shared.settled.notified());
            settled.as_mut().enable();
            if self.synced() {
                return;
            }
            if self.view.synced() {
                settled.await;
            } else {
                self.view.wait_synced().await;
            }
        }
    }

    /// Tells of every stored object again, as an update from its state to the same state; keys that are waiting anyway keep what they wait with.
    pub fn resync(&self) {
        self.tell_again(|_| true);
    }

    /// Tells those keys again that are due by [`SubscribeOptions::resync`], and says when the next are: call it then. `None` without a period, which begins
    /// with the first call. Asks nothing of the server.
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # use boatswain_cache::{InformerCore, Kind, Scope, SubscribeOptions};
    /// # use boatswain_supervision::Clock;
    /// # let core = InformerCore::new(Kind::new("", "v1", "Pod", "pods"), Scope::All);
    /// # let clock = Clock::system();
    /// let hourly = SubscribeOptions { resync: Some(Duration::from_secs(3600)), ..SubscribeOptions::default() };
    /// let pods = core.subscribe_with("auditor", hourly, || {});
    /// let work = async {
    ///     while let Some(due) = pods.resync_due(clock.now()) {
    ///         clock.sleep_until(due).await;
    ///     }
    /// };
    /// # drop(work);
    /// ```
    pub fn resync_due(&self, now: Instant) -> Option<Instant> {
        let (due, next) = lock(self.resync.as_ref()?).due(now);
        if let Some(due) = due {
            self.tell_again(|key| due.has(key));
        }
        Some(next)
    }

    fn tell_again(&self, which: impl Fn(&Key) -> bool) {
        for core in self.view.cores().iter() {
            core.tell_again(&self.shared, &which);
        }
        if self.depth() > 0 {
            self.shared.wake();
        }
    }

    /// Keys waiting, those in hand included.
    #[must_use]
    pub fn depth(&self) -> usize {
        lock(&self.shared.backlog).depth()
    }

    /// The most keys that ever waited at once.
    #[must_use]
    pub fn high_water(&self) -> usize {
        lock(&self.shared.backlog).high_water()
    }

    /// Keys of the initial replay that were not acknowledged yet.
    #[must_use]
    pub fn initial(&self) -> usize {
        lock(&self.shared.backlog).initial()
    }

    /// How far behind it is.
    #[must_use]
    pub fn status(&self, now: Instant) -> SubscriberStatus {
        self.shared.status(now)
    }

    /// The informers it hears of.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("name", &self.shared.name)
            .field("depth", &self.depth())
            .field("initial", &self.initial())
            .finish_non_exhaustive()
    }
}

/// Changes in the hand of a subscriber. Dropped without [`Batch::ack`], they are told again.
#[must_use = "a batch that is dropped is told again"]
pub struct Batch {
    changes: Vec<(Change, Cause)>,
    ticket: Option<u64>,
    shared: Weak<Shared>,
}

impl Batch {
    /// The changes with their causes; fresh ones, and ones of keys that merely were there, each in the order of their keys' oldest news. A key has two when
    /// one incarnation followed another: its deletion comes first.
    #[must_use]
    pub fn changes(&self) -> &[(Change, Cause)] {
        &self.changes
    }

    /// The batch was handled: it will not be told again.
    pub fn ack(mut self) {
        if let (Some(ticket), Some(shared)) = (self.ticket.take(), self.shared.upgrade()) {
            let mut backlog = lock(&shared.backlog);
            backlog.ack(ticket);
            shared.note_settled(&backlog);
            drop(backlog);
            // what came meanwhile can be taken now
            shared.news.notify_one();
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let (Some(ticket), Some(shared)) = (self.ticket.take(), self.shared.upgrade()) {
            lock(&shared.backlog).nack(ticket);
            shared.wake();
        }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.changes).finish()
    }
}
