//! The retries of a controller that wait for their time and their token; they outlive the limiter, which lets them go.

use std::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

use boatswain_cache::Key;
use boatswain_workqueue::{Delay, Pacer, limit::Bucket};
use serde_json::{Value, json};

use super::bell::Bell;

/// Written by the shards, under their own locks, and by the limiter; no lock is taken under this one.
pub(crate) struct Pacing {
    line: Mutex<Line>,
    /// How many keys there are: what ends a wait need not take the lock to learn that none is.
    len: AtomicUsize,
    pub(super) bell: Bell,
    bucket: Option<Bucket>,
}

struct Line {
    pacer: Pacer<Key>,
    /// Whether a panic broke it, so that the shards have to be asked what waits.
    lost: bool,
}

impl Pacing {
    pub(crate) fn new(bucket: Option<Bucket>) -> Self {
        let pacer = Pacer::new(bucket.clone());
        Self {
            line: Mutex::new(Line { pacer, lost: false }),
            len: AtomicUsize::new(0),
            bell: Bell::default(),
            bucket,
        }
    }

    /// Lets `key` go at the end of `delay`.
    pub(super) fn set(&self, key: Key, delay: Delay) {
        let mut line = self.line();
        let before = line.pacer.next_due();
        line.pacer.insert(key, delay);
        let sooner = line.pacer.next_due() != before;
        self.count(&line);
        drop(line);
        if sooner {
            self.bell.ring();
        }
    }

    /// A key does not wait any more.
    pub(super) fn forget(&self, key: &Key) {
        if self.len.load(Relaxed) > 0 {
            let mut line = self.line();
            line.pacer.remove(key);
            self.count(&line);
        }
    }

    /// Takes out the keys that may go now; says when to look again, and whether the shards have to be asked what waits.
    pub(super) fn release(&self, now: Instant) -> (Vec<Key>, Option<Instant>, bool) {
        let mut line = self.line();
        let keys = line.pacer.release(now);
        self.count(&line);
        let lost = std::mem::take(&mut line.lost);
        (keys, line.pacer.next_due(), lost)
    }

    /// For the tree: retries that wait, and those of them whose backoff is over, which stand in line for a token.
    pub(super) fn fact(&self) -> Value {
        let in_line = self.line().pacer.in_line();
        json!({ "retries": self.len.load(Relaxed), "in_line": in_line })
    }

    fn count(&self, line: &Line) {
        self.len.store(line.pacer.len(), Relaxed);
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(|broken| {
            self.line.clear_poison();
            let mut line = broken.into_inner();
            *line = Line {
                // what its bucket has spent stays spent
                pacer: Pacer::new(self.bucket.clone()),
                lost: true,
            };
            line
        })
    }
}
