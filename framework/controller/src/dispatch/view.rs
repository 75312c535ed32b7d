//! What is known of a shard without asking it, and where it is asked for something.

use std::{ops::Deref, sync::Arc};

use boatswain_cache::Key;
use boatswain_supervision::Clock;
use boatswain_workqueue::Queue;
use tokio::sync::Notify;

use super::{
    Counts, ParkedView,
    bell::Bell,
    book::{Open, Shelf},
    orders::Orders,
    presence::Presences,
};
use crate::reconcile::Causes;

/// The state of a shard, for those who look and those who ask for something; it outlives every incarnation.
#[derive(Clone)]
pub(crate) struct ShardView(Arc<State>);

pub(crate) struct State {
    pub(super) shelf: Shelf,
    /// Workers wait here for keys and for permits.
    pub(super) work: Arc<Notify>,
    pub(super) presence: Presences,
    /// Wakes the shard.
    pub(super) bell: Bell,
    pub(crate) parked: ParkedView,
    pub(super) orders: Orders,
}

impl Default for ShardView {
    fn default() -> Self {
        Self::new(Clock::system(), 0)
    }
}

impl ShardView {
    /// `hash_seed` decides how keys are spread in tables, and nothing else.
    pub(crate) fn new(clock: Clock, hash_seed: u64) -> Self {
        Self(Arc::new(State {
            shelf: Shelf::new(clock, hash_seed),
            work: Arc::default(),
            presence: Presences::default(),
            bell: Bell::default(),
            parked: ParkedView::default(),
            orders: Orders::default(),
        }))
    }

    pub(crate) fn read(&self) -> Counts {
        let book = self.open();
        Counts::of(&book.queue, self.0.parked.len())
    }

    /// Looks at the queue, which nobody changes meanwhile; `look` should be quick.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Queue<Key, Causes>) -> R) -> R {
        look(&self.open().queue)
    }

    /// The process leads: every key is to be looked at, the parked ones, too.
    pub(super) fn promote(&self) {
        let mut book = self.open();
        book.rebuild = true;
        let now = self.0.shelf.clock.now();
        for key in book.queue.wake_parked(now, now) {
            self.0.parked.remove(&key);
        }
    }

    /// What wakes its workers.
    pub(crate) fn work(&self) -> Arc<Notify> {
        self.0.work.clone()
    }

    /// Whether a worker waits for a key.
    pub(crate) fn has_idle_worker(&self) -> bool {
        self.0.presence.has_idle()
    }

    pub(super) fn open(&self) -> Open<'_> {
        let open = self.0.shelf.open();
        if open.mended {
            self.0.parked.clear();
            self.0.bell.ring();
        }
        open
    }
}

impl Deref for ShardView {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}
