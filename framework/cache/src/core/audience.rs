//! Who is told of what becomes visible.

use std::sync::{Arc, Weak};
use std::time::Instant;

use boatswain_supervision::Clock;

use super::{Book, InformerCore};
use crate::delta::{Cause, Change};
use crate::key::Key;
use crate::subscription::{Shared, SubscribeOptions, Subscription};
use crate::sync::lock;
use crate::view::View;

impl InformerCore {
    /// Adds a subscriber. It is told of every stored object first, with [`Cause::Initial`](crate::Cause::Initial).
    ///
    /// `notify` is called after something was added to its backlog, on the thread that added it: it should wake the subscriber and return. It may
    /// call back into the informer, for no lock is held; while it runs, the informer waits, and it is not called for what it does itself.
    pub fn subscribe(
        self: &Arc<Self>,
        name: impl Into<String>,
        notify: impl Fn() + Send + Sync + 'static,
    ) -> Subscription {
        self.subscribe_with(name, SubscribeOptions::default(), notify)
    }

    /// As [`InformerCore::subscribe`], told as `options` say.
    pub fn subscribe_with(
        self: &Arc<Self>,
        name: impl Into<String>,
        options: SubscribeOptions,
        notify: impl Fn() + Send + Sync + 'static,
    ) -> Subscription {
        View::from(self.clone()).subscribe_with(name, options, notify)
    }

    /// Tells of everything stored, and of every change from now on. Returns whether there was anything to tell.
    #[must_use = "whoever is told must be woken, when no lock is held any more"]
    pub(crate) fn attach(&self, subscriber: &Arc<Shared>) -> bool {
        let mut book = lock(&self.book);
        let stored = self.reader.list(None).into_iter();
        let created: Vec<_> = stored
            .map(|object| (Change::Created(object), Cause::Initial))
            .collect();
        subscriber.tell(&created, self.now());
        book.subscribers.push(Arc::downgrade(subscriber));
        !created.is_empty()
    }

    /// Tells that everything stored is out of sight, and then nothing more. Returns whether there was anything to tell.
    #[must_use = "whoever is told must be woken, when no lock is held any more"]
    pub(crate) fn detach(&self, subscriber: &Arc<Shared>) -> bool {
        let mut book = lock(&self.book);
        if !book.hears(subscriber) {
            return false;
        }
        book.subscribers
            .retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(subscriber)));
        let stored = self.reader.list(None).into_iter();
        let gone: Vec<_> = stored
            .map(|last| {
                let change = Change::Deleted {
                    last,
                    certain: false,
                };
                (change, Cause::OutOfScope)
            })
            .collect();
        subscriber.tell(&gone, self.now());
        !gone.is_empty()
    }

    /// Tells of stored objects again, unless their keys wait anyway.
    pub(crate) fn tell_again(&self, subscriber: &Shared, which: impl Fn(&Key) -> bool) {
        // under the book: what is told again must not be older than what was told meanwhile
        let book = lock(&self.book);
        if book.hears(subscriber) {
            let stored = self.reader.list(None).into_iter();
            subscriber.tell_again(stored.filter(|object| which(object.key())), self.now());
        }
    }

    /// What the clock of the actors around says; `None` before there were any.
    pub(crate) fn now(&self) -> Option<Instant> {
        self.clock.get().map(Clock::now)
    }

    pub(crate) fn clock_is(&self, clock: &Clock) {
        // it is the same one for every incarnation
        let _ = self.clock.set(clock.clone());
    }
}

impl Book {
    fn hears(&self, subscriber: &Shared) -> bool {
        let found = |other: &Weak<Shared>| std::ptr::eq(other.as_ptr(), subscriber);
        self.subscribers.iter().any(found)
    }
}
