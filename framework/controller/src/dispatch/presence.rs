//! What the workers of a shard are about, so that none is woken without need.

use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Acquire, Release},
};

use super::{Desk, book::Open};

/// How many workers of a shard do what.
///
/// All of them are on one thread. One that looks for keys looks again before it waits for anything, so that whoever adds a key meanwhile need not wake
/// another: with reconcilers that never wait one worker does all the work, and with those that wait each wakes the next when it does.
#[derive(Default)]
pub(super) struct Presences {
    looking: AtomicUsize,
    idle: AtomicUsize,
    /// Whether one was woken that has not looked yet.
    rung: AtomicBool,
}

/// What one worker is about. Nothing of it is left when the worker is gone, however that came, and what it would have looked for is another's.
pub(super) struct Presence<'a> {
    desk: &'a Desk,
    is: Is,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Is {
    /// It looks for a key before it waits for anything else.
    Looking,
    /// It waits for keys.
    Idle,
    /// It waits for something else.
    Away,
}

impl Presences {
    pub(super) fn has_idle(&self) -> bool {
        self.idle.load(Acquire) > 0
    }

    /// Whether a worker is to be woken now that there is a key; true once until it has looked.
    pub(super) fn are_to_be_woken(&self) -> bool {
        self.looking.load(Acquire) == 0 && self.has_idle() && !self.rung.swap(true, AcqRel)
    }
}

impl<'a> Presence<'a> {
    /// A worker comes.
    pub(super) fn new(desk: &'a Desk) -> Self {
        let is = Is::Away;
        let mut presence = Self { desk, is };
        presence.look();
        presence
    }

    fn all(&self) -> &'a Presences {
        &self.desk.view.presence
    }

    /// It looks for a key next.
    pub(super) fn look(&mut self) {
        self.all().rung.store(false, Release);
        self.be(Is::Looking);
    }

    /// It found no key, under the lock that is still held: who adds one later wakes it.
    pub(super) fn rest(&mut self, _: &Open<'_>) {
        self.be(Is::Idle);
    }

    /// It waits for something else than a key: if any is ready, another is woken for it.
    pub(super) fn leave(&mut self) {
        self.be(Is::Away);
        if self.desk.open().queue.queued() > 0 {
            self.desk.wake_worker();
        }
    }

    fn be(&mut self, is: Is) {
        // first counted where it is, then no more where it was: never in no place while it looks
        if let Some(count) = self.all().count(is) {
            count.fetch_add(1, AcqRel);
        }
        if let Some(count) = self.all().count(std::mem::replace(&mut self.is, is)) {
            count.fetch_sub(1, AcqRel);
        }
    }
}

impl Presences {
    fn count(&self, is: Is) -> Option<&AtomicUsize> {
        match is {
            Is::Looking => Some(&self.looking),
            Is::Idle => Some(&self.idle),
            Is::Away => None,
        }
    }
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}
