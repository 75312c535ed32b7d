//! What a shard remembers of runs that have ended; pure.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use boatswain_cache::{Key, Version};
use boatswain_workqueue::Seeded;

use super::ReconcileId;
use crate::{
    dispatch::{Ended, Ending},
    reconcile::Causes,
};

/// Runs that are remembered whole.
const WHOLE: usize = 512;
/// Keys whose last error is remembered beyond that.
const ERRORS: usize = 4096;
/// Bytes of a text of the author's.
const TEXT: usize = 256;

/// The last runs of the keys of one shard.
///
/// Memory: a [`Past`] for each object that has been run, and two rings of fixed size. What is told gone leaves with its last run.
#[derive(Default)]
pub(crate) struct Journal {
    origin: Option<Instant>,
    past: HashMap<Key, Past, Seeded>,
    whole: VecDeque<Record>,
    /// Of keys that failed and have not succeeded since.
    errors: HashMap<Key, Failing>,
}

/// A key that failed and has not succeeded since.
#[derive(Clone, Debug)]
pub(crate) struct Failing {
    /// When the first run of the row began.
    pub(crate) since: Instant,
    /// What the last one said.
    pub(crate) error: Box<str>,
}

/// The last run of a key, in 24 bytes: there is one for every object.
#[derive(Clone, Copy, Debug)]
struct Past {
    /// Seconds since the origin.
    began: u32,
    /// Microseconds.
    took: u32,
    /// The version that was seen in two halves, which need no alignment; 0 for none that is a number.
    seen: [u32; 2],
    causes: u16,
    ending: Ending,
    attempt: u8,
    writes: u8,
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) key: Key,
    /// None of a run of which little is remembered.
    pub(crate) id: Option<ReconcileId>,
    pub(crate) causes: Causes,
    pub(crate) attempt: u32,
    pub(crate) began: Instant,
    pub(crate) took: Duration,
    pub(crate) seen: Option<Version>,
    pub(crate) ending: Ending,
    /// What it said about its end.
    pub(crate) text: Option<Box<str>>,
    /// What the reconciler said that it decided.
    pub(crate) decided: Option<Box<str>>,
    /// The first writes, in words.
    pub(crate) writes: Vec<String>,
    /// All of them.
    pub(crate) written: u32,
}

impl Record {
    /// What a run said of its end, cut short.
    pub(crate) fn text(ended: &Ended) -> Option<Box<str>> {
        match Ending::of(ended) {
            Ending::Success | Ending::Retry => None,
            _ => Some(short(ended.to_string())),
        }
    }
}

/// A text of the author's, cut short.
pub(super) fn short(mut text: String) -> Box<str> {
    if text.len() > TEXT {
        let end = (0..=TEXT).rev().find(|&at| text.is_char_boundary(at));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text.into()
}

impl Journal {
    pub(crate) fn ended(&mut self, record: Record) {
        let origin = *self.origin.get_or_insert(record.began);
        let Record { key, ending, .. } = &record;
        let settled = matches!(
            ending,
            Ending::Success | Ending::RequeueAfter | Ending::Retry | Ending::GiveUp
        );
        if settled {
            if !self.errors.is_empty() {
                self.errors.remove(key);
            }
        } else if let Some(text) = &record.text {
            let room = self.errors.len() < ERRORS;
            match self.errors.get_mut(key) {
                Some(failing) => failing.error.clone_from(text),
                None if room => {
                    let (since, error) = (record.began, text.clone());
                    let failing = Failing { since, error };
                    self.errors.insert(key.clone(), failing);
                }
                None => {}
            }
        }
        if record.seen.is_none() && matches!(ending, Ending::Success | Ending::GiveUp) {
            self.forget(&record.key);
        } else {
            let past = Past::of(&record, origin);
            match self.past.get_mut(key) {
                // the key stays that of the store, which keeps the text anyway
                Some(before) => *before = past,
                None => drop(self.past.insert(key.clone(), past)),
            }
        }
        if self.whole.len() >= WHOLE {
            self.whole.pop_front();
        }
        self.whole.push_back(record);
    }

    fn forget(&mut self, key: &Key) {
        self.past.remove(key);
        if self.past.capacity() > 64 && self.past.len() < self.past.capacity() / 4 {
            self.past.shrink_to(self.past.len() * 2);
        }
    }

    /// The last run of `key`, whole if it was lately.
    pub(crate) fn last(&self, key: &Key) -> Option<Record> {
        let whole = self.runs(key).next();
        whole.cloned().or_else(|| {
            let past = self.past.get(key)?;
            Some(past.record(key, self.origin?))
        })
    }

    /// The runs of `key` that are remembered whole, the newest first.
    pub(crate) fn runs(&self, key: &Key) -> impl Iterator<Item = &Record> {
        let newest = self.whole.iter().rev();
        newest.filter(move |record| record.key == *key)
    }

    /// Keys that failed and have not succeeded since.
    pub(crate) fn failing(&self) -> Vec<Key> {
        self.errors.keys().cloned().collect()
    }

    /// The keys of the longest of the runs that are remembered whole.
    pub(crate) fn slowest(&self, limit: usize) -> Vec<Key> {
        let mut runs: Vec<_> = self.whole.iter().map(|run| (run.took, &run.key)).collect();
        runs.sort_unstable_by(|a, b| b.cmp(a));
        let mut keys: Vec<Key> = Vec::new();
        for (_, key) in runs {
            if keys.len() >= limit {
                break;
            }
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        keys
    }

    /// Those of them that have been failing since `then` at least.
    pub(crate) fn failing_since(&self, then: Instant) -> Vec<(Key, Failing)> {
        let failing = self.errors.iter();
        let long = failing.filter(|(_, failing)| failing.since <= then);
        long.map(|(key, failing)| (key.clone(), failing.clone()))
            .collect()
    }

    /// What is said of `key` if its last run failed, and it has not succeeded since.
    pub(crate) fn failure(&self, key: &Key) -> Option<&Failing> {
        self.errors.get(key)
    }
}

impl Past {
    fn of(record: &Record, origin: Instant) -> Self {
        let since = record.began.saturating_duration_since(origin).as_secs();
        let seen = record.seen.as_ref().and_then(Version::number);
        let seen = seen.unwrap_or_default();
        Self {
            began: u32::try_from(since).unwrap_or(u32::MAX),
            took: u32::try_from(record.took.as_micros()).unwrap_or(u32::MAX),
            seen: [(seen >> 32) as u32, seen as u32],
            causes: record.causes.bits() as u16,
            ending: record.ending,
            attempt: u8::try_from(record.attempt).unwrap_or(u8::MAX),
            writes: u8::try_from(record.written).unwrap_or(u8::MAX),
        }
    }

    fn record(self, key: &Key, origin: Instant) -> Record {
        let seen = u64::from(self.seen[0]) << 32 | u64::from(self.seen[1]);
        let began = origin.checked_add(Duration::from_secs(self.began.into()));
        Record {
            key: key.clone(),
            id: None,
            causes: Causes::from_bits(self.causes.into()),
            attempt: self.attempt.into(),
            began: began.unwrap_or(origin),
            took: Duration::from_micros(self.took.into()),
            seen: (seen > 0).then(|| Version::new(&seen.to_string())),
            ending: self.ending,
            text: None,
            decided: None,
            writes: Vec::new(),
            written: self.writes.into(),
        }
    }
}

#[cfg(test)]
mod tests;
