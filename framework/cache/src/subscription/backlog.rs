//! Changes a subscriber has not handled, one entry a key; pure.

use std::collections::{BTreeMap, HashMap};

use crate::delta::{Cause, Change};
use crate::key::Key;
use crate::object::Object;

/// Endings of incarnations kept per key while a subscriber keeps failing; beyond it the oldest but the first are left out.
const MAX_ENDINGS: usize = 16;

#[derive(Default)]
pub(super) struct Backlog {
    entries: HashMap<Key, Entry>,
    /// Keys by the place of their oldest news.
    order: BTreeMap<u64, Key>,
    next: u64,
    in_hand: Option<(u64, Vec<(Key, Entry)>)>,
    initial: usize,
    high_water: usize,
}

#[derive(Clone)]
struct Entry {
    place: u64,
    net: Net,
    cause: Cause,
    /// Part of the initial replay.
    initial: bool,
}

/// The difference between what the subscriber was told of a key and what is.
#[derive(Clone)]
struct Net {
    /// The state it was told last.
    base: Option<Object>,
    /// Incarnations that ended since, with whether the state is the final one.
    ended: Vec<(Object, bool)>,
    now: Option<Object>,
    /// It was handed out before and may have been handled in part, so nothing of it may be left out.
    seen: bool,
}

impl Net {
    fn of(change: &Change) -> Self {
        let (base, ended, now) = match change.clone() {
            Change::Created(new) => (None, Vec::new(), Some(new)),
            Change::Updated { old, new } => (Some(old), Vec::new(), Some(new)),
            Change::Deleted { last, certain } => (Some(last.clone()), vec![(last, certain)], None),
        };
        Self {
            base,
            ended,
            now,
            seen: false,
        }
    }

    fn then(mut self, later: Self) -> Self {
        let unheard_of =
            self.now.is_some() && !self.seen && (self.base.is_none() || !self.ended.is_empty());
        let skipped = usize::from(unheard_of && !later.ended.is_empty());
        self.ended.extend(later.ended.into_iter().skip(skipped));
        while self.ended.len() > MAX_ENDINGS {
            self.ended.remove(1);
        }
        self.now = later.now;
        self.seen |= later.seen;
        self
    }

    fn is_nothing(&self) -> bool {
        self.ended.is_empty() && self.now.is_none()
    }

    fn changes(&self) -> Vec<Change> {
        let ended = self.ended.iter().map(|(last, certain)| Change::Deleted {
            last: last.clone(),
            certain: *certain,
        });
        let now = self.now.clone().map(|new| match &self.base {
            Some(old) if self.ended.is_empty() => Change::Updated {
                old: old.clone(),
                new,
            },
            _ => Change::Created(new),
        });
        ended.chain(now).collect()
    }
}

impl Backlog {
    pub(super) fn push(&mut self, change: &Change, cause: Cause) {
        self.add(change.key().clone(), Net::of(change), cause);
    }

    /// Tells of an unchanged object again unless its key waits anyway.
    pub(super) fn resync(&mut self, object: Object) {
        if !self.entries.contains_key(object.key()) {
            let change = Change::Updated {
                old: object.clone(),
                new: object,
            };
            self.push(&change, Cause::Resync);
        }
    }

    fn add(&mut self, key: Key, net: Net, cause: Cause) {
        match self.entries.remove(&key) {
            Some(entry) => {
                let net = entry.net.then(net);
                if net.is_nothing() {
                    self.order.remove(&entry.place);
                    self.initial -= usize::from(entry.initial);
                } else {
                    self.entries.insert(
                        key,
                        Entry {
                            net,
                            cause,
                            ..entry
                        },
                    );
                }
            }
            None => {
                let (place, initial) = (self.next, cause == Cause::Initial);
                self.next += 1;
                self.initial += usize::from(initial);
                self.order.insert(place, key.clone());
                self.entries.insert(
                    key,
                    Entry {
                        place,
                        net,
                        cause,
                        initial,
                    },
                );
            }
        }
        self.high_water = self.high_water.max(self.depth());
    }

    /// Lends the changes of up to `max` keys under a ticket.
    pub(super) fn take(&mut self, max: usize) -> Option<(u64, Vec<(Change, Cause)>)> {
        if self.in_hand.is_some() || self.order.is_empty() || max == 0 {
            return None;
        }
        let mut lent = Vec::new();
        while lent.len() < max
            && let Some((_, key)) = self.order.pop_first()
        {
            if let Some(entry) = self.entries.remove(&key) {
                lent.push((key, entry));
            }
        }
        let changes = lent
            .iter()
            .flat_map(|(_, entry)| {
                entry
                    .net
                    .changes()
                    .into_iter()
                    .map(|change| (change, entry.cause))
            })
            .collect();
        let ticket = self.next;
        self.next += 1;
        self.in_hand = Some((ticket, lent));
        Some((ticket, changes))
    }

    pub(super) fn ack(&mut self, ticket: u64) {
        for (_, entry) in self.returned(ticket) {
            self.initial -= usize::from(entry.initial);
        }
    }

    /// Puts the lent keys back to their places, below what happened to them since.
    pub(super) fn nack(&mut self, ticket: u64) {
        for (key, mut entry) in self.returned(ticket) {
            entry.net.seen = true;
            if let Some(since) = self.entries.remove(&key) {
                self.order.remove(&since.place);
                self.initial -= usize::from(since.initial && entry.initial);
                entry.initial |= since.initial;
                entry.cause = since.cause;
                entry.net = entry.net.then(since.net);
            }
            self.order.insert(entry.place, key.clone());
            self.entries.insert(key, entry);
        }
    }

    fn returned(&mut self, ticket: u64) -> Vec<(Key, Entry)> {
        self.in_hand
            .take_if(|(lent, _)| *lent == ticket)
            .map(|(_, entries)| entries)
            .unwrap_or_default()
    }

    pub(super) fn depth(&self) -> usize {
        self.entries.len() + self.in_hand()
    }

    pub(super) fn in_hand(&self) -> usize {
        self.in_hand
            .as_ref()
            .map_or(0, |(_, entries)| entries.len())
    }

    pub(super) fn initial(&self) -> usize {
        self.initial
    }

    pub(super) fn high_water(&self) -> usize {
        self.high_water
    }
}
