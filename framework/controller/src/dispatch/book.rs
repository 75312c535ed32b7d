//! The queue of one shard behind a lock, with what is to be done for its keys; it outlives every actor.

use std::{
    collections::HashMap,
    iter,
    ops::{Deref, DerefMut},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, MutexGuard},
    time::Instant,
};

use boatswain_cache::Key;
use boatswain_supervision::Clock;
use boatswain_workqueue::{Lane, Next, Phase, Queue, QueueOptions, RunId, Verdict};

use crate::reconcile::Causes;

/// What is written under the lock.
pub(super) struct Book {
    pub(super) queue: Queue<Key, Causes>,
    /// Keys that are held, whose shard has not begun to wait for them.
    pub(super) held: Vec<Key>,
    /// When the shard looks at the time by itself.
    pub(super) armed: Option<Instant>,
    /// Whether keys may be missing, so that every key there is has to be looked at.
    pub(super) rebuild: bool,
    /// Runs that began in a queue that broke, by the names they have in this one.
    adopted: HashMap<Key, (RunId, RunId)>,
    epoch: u32,
    hash_seed: u64,
}

/// A book and its lock. No code of a user's runs under it. A panic while it is held breaks the queue: the next who comes makes a new one of what is left
/// of it and has every key looked at.
pub(super) struct Shelf {
    book: Mutex<Book>,
    pub(super) clock: Clock,
}

pub(super) struct Open<'a> {
    book: MutexGuard<'a, Book>,
    /// Whether the queue was broken until now.
    pub(super) mended: bool,
}

impl Shelf {
    pub(super) fn new(clock: Clock, hash_seed: u64) -> Self {
        let book = Book {
            queue: queue(0, hash_seed),
            held: Vec::new(),
            armed: None,
            rebuild: false,
            adopted: HashMap::new(),
            epoch: 0,
            hash_seed,
        };
        Self {
            book: Mutex::new(book),
            clock,
        }
    }

    pub(super) fn open(&self) -> Open<'_> {
        match self.book.lock() {
            Ok(book) => Open {
                book,
                mended: false,
            },
            Err(broken) => {
                let mut book = broken.into_inner();
                self.book.clear_poison();
                book.mend(self.clock.now());
                Open { book, mended: true }
            }
        }
    }
}

impl Book {
    /// Ends a run, be it one that began in a queue that is no more.
    pub(super) fn finish(&mut self, key: &Key, run: RunId, verdict: Verdict, now: Instant) -> Next {
        let mut run = run;
        if !self.adopted.is_empty()
            && let Some((before, present)) = self.adopted.get(key).copied()
            && before == run
        {
            self.adopted.remove(key);
            run = present;
        }
        self.queue.finish(key, run, verdict, now)
    }

    /// Takes over what there is in a queue that may be half changed: runs go on, and every other key it knows of runs once more.
    fn mend(&mut self, now: Instant) {
        self.epoch += 1;
        self.rebuild = true;
        self.armed = None;
        self.held.clear();
        let fresh = queue(self.epoch, self.hash_seed);
        let broken = std::mem::replace(&mut self.queue, fresh);
        // to look at what is broken may fail, too
        let runs = survey(broken.runs().map(|(key, run)| (key.clone(), run)));
        let cells = survey(broken.cells().map(|(key, cell)| {
            let runs = matches!(cell.phase, Phase::Running { dirty: false });
            let cause = cell.cause.copied().unwrap_or_default();
            (!runs).then(|| (key.clone(), cell.lane, cause.and(Causes::REBUILT)))
        }));
        let _ = catch_unwind(AssertUnwindSafe(|| drop(broken)));
        let before = std::mem::take(&mut self.adopted);
        for (key, run) in runs {
            if let Some(present) = self.queue.adopt(key.clone(), now) {
                // one that has been adopted before has kept its first name
                let first = before.get(&key).map_or(run, |(first, _)| *first);
                self.adopted.insert(key, (first, present));
            }
        }
        for (key, lane, causes) in cells.into_iter().flatten() {
            let _ = self.queue.add(key, lane.max(Lane::Low), causes, now);
        }
    }
}

/// As much as can be had.
fn survey<T>(mut items: impl Iterator<Item = T>) -> Vec<T> {
    iter::from_fn(|| catch_unwind(AssertUnwindSafe(|| items.next())).ok()?).collect()
}

fn queue(epoch: u32, hash_seed: u64) -> Queue<Key, Causes> {
    Queue::new(QueueOptions {
        epoch,
        hash_seed,
        ..QueueOptions::default()
    })
}

impl Deref for Open<'_> {
    type Target = Book;

    fn deref(&self) -> &Book {
        &self.book
    }
}

impl DerefMut for Open<'_> {
    fn deref_mut(&mut self) -> &mut Book {
        &mut self.book
    }
}

#[cfg(test)]
mod tests;
