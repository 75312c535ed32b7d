//! The timer's side of the queue: deadlines, and a bucket in front of retries.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};
use std::time::Instant;

use crate::limit::Bucket;
use crate::{Delay, Seeded, Wheel, after, shrink};

/// Lets waiting keys go when their time has come, and paces those that failed through their own
/// fault: the pure core of a rate limiter.
///
/// A retry whose time has come stands in line for a token of the bucket. Tokens go in turn to the
/// key with the fewest failures and to the one that has stood longest: thousands of keys that
/// always fail cannot keep a first failure from its retry, and a stream of first failures cannot
/// keep anyone else from theirs. Nothing is reserved; a key that leaves the line costs no token.
///
/// Retries after faults of the infrastructure are not paced: an outage fails every key at once, and
/// when it ends they have to come back faster than a bucket for sick objects would let them. Their
/// backoff and the client's own limit hold them.
///
/// A key is in a pacer at most once; the newest word about it counts.
#[derive(Debug)]
pub struct Pacer<K, S = Seeded> {
    wheel: Wheel<K, S>,
    /// The keys that need a token, on the wheel or in line.
    retries: HashMap<K, Seat, S>,
    by_failures: BTreeMap<(u16, u64), K>,
    by_arrival: BTreeMap<u64, u16>,
    next: u64,
    longest_first: bool,
    /// None: nothing is paced.
    bucket: Option<Bucket>,
    /// When the bucket has its next token. Only of use while someone stands in line.
    token_at: Option<Instant>,
}

#[derive(Debug)]
struct Seat {
    failures: u16,
    /// The place in line, once the time has come.
    arrival: Option<u64>,
}

impl<K: Clone + Eq + Hash> Pacer<K> {
    /// Paces retries with `bucket`; with none it only keeps their time.
    #[must_use]
    pub fn new(bucket: impl Into<Option<Bucket>>) -> Self {
        Pacer::with_hasher(bucket, Seeded::default())
    }
}

impl<K: Clone + Eq + Hash> Default for Pacer<K> {
    fn default() -> Self {
        Pacer::new(Bucket::default())
    }
}

impl<K: Clone + Eq + Hash, S: BuildHasher + Clone> Pacer<K, S> {
    /// As [`new`](Pacer::new), with a hasher of the caller's choice; nothing but speed depends on
    /// it.
    #[must_use]
    pub fn with_hasher(bucket: impl Into<Option<Bucket>>, hasher: S) -> Self {
        Pacer {
            wheel: Wheel::with_hasher(hasher.clone()),
            retries: HashMap::with_hasher(hasher),
            by_failures: BTreeMap::new(),
            by_arrival: BTreeMap::new(),
            next: 0,
            longest_first: false,
            bucket: bucket.into(),
            token_at: None,
        }
    }
}

impl<K: Clone + Eq + Hash, S: BuildHasher> Pacer<K, S> {
    /// Lets `key` go at the end of `delay`, whatever was known of it before: the queue's cell is
    /// the truth.
    pub fn insert(&mut self, key: K, delay: Delay) {
        self.unseat(&key);
        if self.bucket.is_some() && delay.why.is_retry() {
            self.retries.insert(
                key.clone(),
                Seat {
                    failures: delay.failures,
                    arrival: None,
                },
            );
        }
        self.wheel.set(key, delay.until);
    }

    /// Forgets `key`. Returns whether it was here.
    pub fn remove(&mut self, key: &K) -> bool {
        let stood = self.unseat(key);
        let waited = self.wheel.remove(key).is_some();
        shrink(&mut self.retries);
        stood || waited
    }

    fn unseat(&mut self, key: &K) -> bool {
        let Some(Seat { failures, arrival }) = self.retries.remove(key) else {
            return false;
        };
        if let Some(arrival) = arrival {
            self.by_failures.remove(&(failures, arrival));
            self.by_arrival.remove(&arrival);
        }
        true
    }

    /// When to call [`release`](Pacer::release) next; `None` when nothing is waited for.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        let token = self.token_at.filter(|_| !self.by_arrival.is_empty());
        self.wheel.next_due().into_iter().chain(token).min()
    }

    /// Takes out the keys that may go now.
    pub fn release(&mut self, now: Instant) -> Vec<K> {
        let mut free = Vec::new();
        for key in self.wheel.pop_due(now) {
            match self.retries.get_mut(&key) {
                None => free.push(key),
                Some(seat) => {
                    let arrival = self.next;
                    self.next += 1;
                    seat.arrival = Some(arrival);
                    self.by_failures.insert((seat.failures, arrival), key);
                    self.by_arrival.insert(arrival, seat.failures);
                }
            }
        }
        while let Some(bucket) = &mut self.bucket
            && !self.by_arrival.is_empty()
        {
            if let Err(wait) = bucket.take(now) {
                self.token_at = Some(after(now, wait));
                break;
            }
            free.extend(self.call_next());
        }
        shrink(&mut self.retries);
        free
    }

    fn call_next(&mut self) -> Option<K> {
        let place = if self.longest_first {
            let (&arrival, &failures) = self.by_arrival.first_key_value()?;
            (failures, arrival)
        } else {
            *self.by_failures.first_key_value()?.0
        };
        self.longest_first = !self.longest_first;
        self.by_arrival.remove(&place.1);
        let key = self.by_failures.remove(&place)?;
        self.retries.remove(&key);
        Some(key)
    }

    /// How many keys are here.
    #[must_use]
    pub fn len(&self) -> usize {
        self.wheel.len() + self.by_arrival.len()
    }

    /// Whether no key is here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys stand in line for a token.
    #[must_use]
    pub fn in_line(&self) -> usize {
        self.by_arrival.len()
    }
}

#[cfg(test)]
mod tests;
