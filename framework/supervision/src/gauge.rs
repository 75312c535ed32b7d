//! Counts of one mailbox.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Counts of one mailbox. They outlive every incarnation of the actor behind it.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    /// Messages that were counted in.
    sent: AtomicU64,
    /// Of those, the ones that were handled. Written by the actor's thread only, so a store will do.
    taken: AtomicU64,
    /// Messages that were handled though nobody had counted them in. Likewise.
    strays: AtomicU64,
    high_water: AtomicU64,
    /// Messages waiting that somebody wants an answer to.
    questions: AtomicU32,
    /// Whether there is an incarnation to handle messages. Written by the child's task only.
    up: AtomicBool,
}

/// What has counts, whatever actor it is for.
pub(crate) trait Gauged: Send + Sync {
    fn gauge(&self) -> &Gauge;
}

impl Gauge {
    /// Takes a place for a question; false if the actor is down and `room` questions or more wait already.
    pub(crate) fn admit(&self, room: usize) -> bool {
        let waiting = self.questions.fetch_add(1, Ordering::Relaxed) as usize;
        let admitted = self.up.load(Ordering::Acquire) || waiting < room;
        if !admitted {
            self.settle();
        }
        admitted
    }

    /// A question waits no more.
    pub(crate) fn settle(&self) {
        self.questions.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn set_up(&self, up: bool) {
        self.up.store(up, Ordering::Release);
    }

    /// A message is sent.
    pub(crate) fn enter(&self) {
        let sent = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        let depth = sent.saturating_sub(self.taken.load(Ordering::Relaxed));
        if depth > self.high_water.load(Ordering::Relaxed) {
            self.high_water.fetch_max(depth, Ordering::Relaxed);
        }
    }

    /// The message was refused.
    pub(crate) fn withdraw(&self) {
        self.sent.fetch_sub(1, Ordering::Relaxed);
    }

    /// A message is handled; `counted` if it was when it was sent. For the actor's thread only.
    pub(crate) fn take(&self, counted: bool) {
        let count = if counted { &self.taken } else { &self.strays };
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    pub(crate) fn depth(&self) -> usize {
        // in this order: what was taken had been sent
        let taken = self.taken.load(Ordering::Acquire);
        self.sent.load(Ordering::Relaxed).saturating_sub(taken) as usize
    }

    pub(crate) fn high_water(&self) -> usize {
        self.high_water.load(Ordering::Relaxed) as usize
    }

    pub(crate) fn handled(&self) -> u64 {
        self.taken.load(Ordering::Relaxed) + self.strays.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
