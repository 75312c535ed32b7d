//! Who hears of changes, and what each has not heard yet.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Weak};

use crate::delta::{Cause, Change};
use crate::store::Reader;
use crate::sync::lock;

mod backlog;
#[cfg(test)]
mod tests;

use backlog::Backlog;

/// A subscriber's end of an informer; dropping it unsubscribes.
///
/// Changes wait in a backlog that holds each key once, however often it changes: created and updated is created, two updates are one from the
/// first state to the last, and an incarnation that came and went unheard of is left out, while the deletion of one that was heard of
/// never is. The backlog lives outside of all actors, so no crash loses it. [`Subscription::take`] lends a batch; until it is acknowledged it is in
/// hand, and a batch that is dropped instead, by a crash for instance, is told again.
pub struct Subscription {
    shared: Arc<Shared>,
    reader: Reader,
}

pub(crate) struct Shared {
    name: String,
    backlog: Mutex<Backlog>,
    notify: Box<dyn Fn() + Send + Sync>,
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
}

impl Shared {
    pub(crate) fn tell(&self, changes: &[(Change, Cause)]) {
        let mut backlog = lock(&self.backlog);
        for (change, cause) in changes {
            backlog.push(change, *cause);
        }
    }

    /// Wakes the subscriber. Its panic is its own; what was told stays in the backlog.
    pub(crate) fn wake(&self) {
        if catch_unwind(AssertUnwindSafe(|| (self.notify)())).is_err() {
            tracing::error!(
                subscriber = self.name,
                "a subscriber's notification panicked; its changes wait for the next"
            );
        }
    }

    pub(crate) fn status(&self) -> SubscriberStatus {
        let backlog = lock(&self.backlog);
        SubscriberStatus {
            name: self.name.clone(),
            depth: backlog.depth(),
            high_water: backlog.high_water(),
            in_hand: backlog.in_hand(),
            initial: backlog.initial(),
        }
    }
}

impl Subscription {
    pub(crate) fn new(name: String, notify: Box<dyn Fn() + Send + Sync>, reader: Reader) -> Self {
        let mut backlog = Backlog::default();
        for object in reader.list(None) {
            backlog.push(&Change::Created(object), Cause::Initial);
        }
        Self {
            shared: Arc::new(Shared {
                name,
                backlog: Mutex::new(backlog),
                notify,
            }),
            reader,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Takes the changes of up to `max` keys, longest waiting first. `None` when nothing waits, or while a batch is in hand.
    #[must_use]
    pub fn take(&self, max: usize) -> Option<Batch> {
        let (ticket, changes) = lock(&self.shared.backlog).take(max)?;
        Some(Batch {
            changes,
            ticket: Some(ticket),
            shared: Arc::downgrade(&self.shared),
        })
    }

    /// The batch was handled: it will not be told again.
    pub fn ack(&self, batch: Batch) {
        batch.ack();
    }

    /// The batch was not handled, or not all of it: its keys are told again, merged with what happened since. The same as dropping it.
    pub fn nack(&self, batch: Batch) {
        drop(batch);
    }

    /// Tells of every stored object again, as an update from its state to the same state; keys that are waiting anyway keep what they wait with.
    pub fn resync(&self) {
        let objects = self.reader.list(None);
        let mut backlog = lock(&self.shared.backlog);
        for object in objects {
            backlog.resync(object);
        }
        drop(backlog);
        self.shared.wake();
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

    /// Keys of the initial replay that were not acknowledged yet. Zero on a synced informer means that the subscriber knows every object.
    #[must_use]
    pub fn initial(&self) -> usize {
        lock(&self.shared.backlog).initial()
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shared.status())
    }
}

/// Changes in the hand of a subscriber, in the order of their keys' oldest news. Dropped without [`Batch::ack`], they are told again.
#[must_use = "a batch that is dropped is told again"]
pub struct Batch {
    changes: Vec<(Change, Cause)>,
    ticket: Option<u64>,
    shared: Weak<Shared>,
}

impl Batch {
    /// The changes with their causes. A key has two when one incarnation followed another: its deletion comes first.
    #[must_use]
    pub fn changes(&self) -> &[(Change, Cause)] {
        &self.changes
    }

    /// The batch was handled: it will not be told again.
    pub fn ack(mut self) {
        if let (Some(ticket), Some(shared)) = (self.ticket.take(), self.shared.upgrade()) {
            lock(&shared.backlog).ack(ticket);
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
