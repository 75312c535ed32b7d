//! The batch the indexer has in hand, and how it becomes visible.

#[cfg(test)]
use std::sync::atomic::Ordering;
use std::sync::{Arc, TryLockError};

use tokio::sync::OwnedSemaphorePermit;

use super::InformerCore;
use crate::delta_fifo::state::{Batch, Step};
use crate::key::Key;
use crate::store::{Applied, Due};
use crate::subscription::Shared;
use crate::sync::lock;
use crate::version::Version;

/// A place among the pending keys; given back by its drop, when the key is committed or its holder dies.
pub(crate) type Permit = Option<OwnedSemaphorePermit>;

/// Objects packed anew at a time; news wait for so many.
const REPACK: usize = 64;
/// Stored objects looked at to learn from them; small ones among them are of no use.
const SPREAD: usize = 512;

/// How far the tending of stored objects is.
pub(crate) enum Tended {
    /// Nothing is under way.
    Checked,
    /// Objects up to this key were packed with the latest dictionary; none yet, if there is no key.
    Repacked(Option<Key>),
}

/// The batch the indexer is working on.
pub(super) struct InHand {
    pub(super) batch: Batch<Permit>,
    /// Steps that are committed; only a replay does them one by one.
    pub(super) done: usize,
    /// Times the step after them, or the whole batch, was begun.
    pub(super) begun: u32,
}

impl InformerCore {
    /// Whether the indexer has nothing in hand. Never waits: an indexer held up by a user's index function holds up nobody else.
    pub(crate) fn hand_is_free(&self) -> bool {
        match self.hand.try_lock() {
            Ok(hand) => hand.is_none(),
            Err(TryLockError::Poisoned(hand)) => hand.into_inner().is_none(),
            Err(TryLockError::WouldBlock) => false,
        }
    }

    /// Puts a batch into the indexer's hand; only while it is free.
    pub(crate) fn hand_over(&self, batch: Batch<Permit>) {
        *lock(&self.hand) = Some(InHand {
            batch,
            done: 0,
            begun: 0,
        });
    }

    /// Commits what is in hand and wakes whom it concerns. A batch that was begun before, by an indexer that died, is done key by key, and a key
    /// that was begun alone before is set aside.
    pub(crate) fn commit_in_hand(&self) {
        let mut hand = lock(&self.hand);
        let Some(in_hand) = hand.as_mut() else { return };
        let mut woken = Vec::new();
        if in_hand.begun == 0 {
            in_hand.begun = 1;
            woken = self.commit(&in_hand.batch.steps, in_hand.batch.watermark.as_ref());
        } else {
            self.count(|counters| counters.replays += 1);
            while let Some(step) = in_hand.batch.steps.get(in_hand.done) {
                in_hand.begun += 1;
                if in_hand.begun > 2
                    && let Step::Key(key, pending) = step
                {
                    tracing::error!(resource = %self.kind(), %key, "object keeps crashing the indexer; it is set aside");
                    lock(&self.book).writer.set_aside(
                        key,
                        "it keeps crashing the indexer",
                        pending.stamp,
                    );
                } else {
                    woken.extend(self.commit(std::slice::from_ref(step), None));
                }
                in_hand.done += 1;
                in_hand.begun = 1;
            }
            woken.extend(self.commit(&[], in_hand.batch.watermark.as_ref()));
        }
        *hand = None;
        drop(hand);
        woken.dedup_by(|one, other| Arc::ptr_eq(one, other));
        for subscriber in woken {
            subscriber.wake();
        }
    }

    /// Does a little of the work that makes stored objects smaller: makes a dictionary when it is time, or packs some objects behind `after` with the
    /// latest one. Returns how far it came; `None` when nothing is left.
    pub(crate) fn tend(&self, after: Tended) -> Option<Tended> {
        let press = self.keeper.press()?;
        let last = match after {
            Tended::Repacked(key) => key,
            Tended::Checked => {
                let (objects, synced) = (self.reader.size().objects, self.synced());
                return match press.due(objects, synced)? {
                    Due::Repack => Some(Tended::Repacked(None)),
                    due => {
                        press.learn(due, objects, &self.reader.spread(SPREAD));
                        // a first list is read faster without looking back
                        synced.then_some(Tended::Repacked(None))
                    }
                };
            }
        };
        let page = self.reader.page(last.as_ref(), REPACK);
        let forms = page
            .iter()
            .filter_map(|object| Some((object.clone(), press.repack(object)?)));
        let forms: Vec<_> = forms.collect();
        if !forms.is_empty() {
            lock(&self.book).writer.exchange(forms);
        }
        match page.last() {
            Some(object) => Some(Tended::Repacked(Some(object.key().clone()))),
            None => {
                press.repacked();
                None
            }
        }
    }

    /// Keeps the indexer from committing, as a slow one would.
    #[cfg(test)]
    pub(crate) fn stall(&self, stalled: bool) {
        self.stalled.store(stalled, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Relaxed)
    }

    /// Makes steps visible to readers and subscribers; returns whom to wake.
    pub(super) fn commit(
        &self,
        steps: &[Step<Permit>],
        watermark: Option<&Version>,
    ) -> Vec<Arc<Shared>> {
        let prepared = self.reader.prepare(steps, &self.keeper);
        let mut book = lock(&self.book);
        let applied = book.writer.apply(steps, prepared, watermark);
        let (mut woken, now) = (Vec::new(), self.now());
        book.subscribers
            .retain(|subscriber| match subscriber.upgrade() {
                Some(subscriber) if !applied.changes.is_empty() => {
                    subscriber.tell(&applied.changes, now);
                    woken.push(subscriber);
                    true
                }
                found => found.is_some(),
            });
        let low_water = book.writer.low_water().cloned();
        // still under the book: progress must not overtake the progress of a later batch
        self.advance(&applied, low_water);
        drop(book);
        self.note(&applied);
        woken
    }

    fn note(&self, applied: &Applied) {
        if !applied.touched.is_empty() {
            let mut undecodable = lock(&self.undecodable);
            for key in &applied.touched {
                undecodable.remove(key);
            }
        }
        self.count(|counters| {
            counters.stale += applied.stale;
            counters.unchanged += applied.unchanged;
            counters.changes += applied.changes.len() as u64;
        });
        if !applied.unindexed.is_empty() {
            self.note_unindexed(&applied.unindexed);
        }
        if !applied.untransformed.is_empty() {
            self.note_untransformed(&applied.untransformed);
        }
    }
}
