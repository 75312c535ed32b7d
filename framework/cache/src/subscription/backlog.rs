//! Changes a subscriber has not handled, one entry a key; pure.

use std::collections::BTreeMap;
use std::time::Instant;

use super::net::Net;
use crate::delta::{Cause, Change};
use crate::key::Key;
use crate::object::Object;
use crate::table::{Table, trim};

/// While both wait, one key in so many is of those that merely were there: neither they nor fresh news are ever held up by the other.
const SHARE: u8 = 4;

pub(super) struct Backlog {
    entries: Table<Key, Entry>,
    /// Keys with fresh news by the place of the oldest of it.
    fresh: BTreeMap<u64, Key>,
    /// Keys that merely were there, when the subscription began or at a resync.
    later: BTreeMap<u64, Key>,
    next: u64,
    turn: u8,
    in_hand: Option<(u64, Vec<(Key, Entry)>)>,
    initial: usize,
    high_water: usize,
    /// What past states cost that the store no longer holds, those in hand included.
    bytes: usize,
    max_bytes: usize,
    thinned: u64,
}

#[derive(Clone)]
struct Entry {
    place: u64,
    net: Net,
    cause: Cause,
    /// When the news came that gave it its place.
    since: Option<Instant>,
    /// Part of the initial replay.
    initial: bool,
}

impl Entry {
    fn is_fresh(&self) -> bool {
        is_fresh(self.cause)
    }
}

fn is_fresh(cause: Cause) -> bool {
    !matches!(cause, Cause::Initial | Cause::Resync)
}

impl Backlog {
    /// Past states may cost `max_bytes`; beyond that they are kept without their insides.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            entries: Table::default(),
            fresh: BTreeMap::new(),
            later: BTreeMap::new(),
            next: 0,
            turn: 0,
            in_hand: None,
            initial: 0,
            high_water: 0,
            bytes: 0,
            max_bytes,
            thinned: 0,
        }
    }

    pub(super) fn push(&mut self, change: &Change, cause: Cause, now: Option<Instant>) {
        self.add(change.key().clone(), Net::of(change), cause, now);
    }

    /// Tells of an unchanged object again unless its key waits anyway.
    pub(super) fn resync(&mut self, object: Object, now: Option<Instant>) {
        if !self.entries.contains_key(object.key()) {
            let change = Change::Updated {
                old: object.clone(),
                new: object,
            };
            self.push(&change, Cause::Resync, now);
        }
    }

    fn add(&mut self, key: Key, net: Net, cause: Cause, now: Option<Instant>) {
        let entry = match self.entries.remove(&key) {
            Some(entry) => {
                self.forget_place(&entry);
                self.bytes -= entry.net.bytes();
                let (was_fresh, promoted) =
                    (entry.is_fresh(), !entry.is_fresh() && is_fresh(cause));
                let net = entry.net.then(net);
                if net.is_nothing() {
                    self.initial -= usize::from(entry.initial);
                    trim(&mut self.entries);
                    return;
                }
                // news of a key that merely was there are fresh from now on, and news that wait stay so
                let cause = if was_fresh && !is_fresh(cause) {
                    entry.cause
                } else {
                    cause
                };
                let (place, since) = if promoted {
                    (self.place(), now)
                } else {
                    (entry.place, entry.since)
                };
                Entry {
                    place,
                    net,
                    cause,
                    since,
                    initial: entry.initial,
                }
            }
            None => {
                let initial = cause == Cause::Initial;
                self.initial += usize::from(initial);
                Entry {
                    place: self.place(),
                    net,
                    cause,
                    since: now,
                    initial,
                }
            }
        };
        self.put(key, entry);
        self.high_water = self.high_water.max(self.depth());
    }

    fn place(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn put(&mut self, key: Key, mut entry: Entry) {
        if self.bytes + entry.net.bytes() > self.max_bytes {
            self.thinned += entry.net.thin();
        }
        self.bytes += entry.net.bytes();
        self.order(entry.is_fresh())
            .insert(entry.place, key.clone());
        self.entries.insert(key, entry);
    }

    fn order(&mut self, fresh: bool) -> &mut BTreeMap<u64, Key> {
        if fresh {
            &mut self.fresh
        } else {
            &mut self.later
        }
    }

    fn forget_place(&mut self, entry: &Entry) {
        self.order(entry.is_fresh()).remove(&entry.place);
    }

    fn pop(&mut self) -> Option<Key> {
        self.turn = (self.turn + 1) % SHARE;
        let fresh_first = self.turn != 0;
        let found = self.order(fresh_first).pop_first();
        let (_, key) = found.or_else(|| self.order(!fresh_first).pop_first())?;
        Some(key)
    }

    /// Lends the changes of up to `max` keys under a ticket.
    pub(super) fn take(&mut self, max: usize) -> Option<(u64, Vec<(Change, Cause)>)> {
        if self.in_hand.is_some() || self.entries.is_empty() || max == 0 {
            return None;
        }
        let mut lent = Vec::new();
        while lent.len() < max
            && let Some(key) = self.pop()
        {
            if let Some(entry) = self.entries.remove(&key) {
                lent.push((key, entry));
            }
        }
        trim(&mut self.entries);
        let changes = lent
            .iter()
            .flat_map(|(_, entry)| {
                let changes = entry.net.changes().into_iter();
                changes.map(|change| (change, entry.cause))
            })
            .collect();
        let ticket = self.place();
        self.in_hand = Some((ticket, lent));
        Some((ticket, changes))
    }

    pub(super) fn ack(&mut self, ticket: u64) {
        for (_, entry) in self.returned(ticket) {
            self.initial -= usize::from(entry.initial);
            self.bytes -= entry.net.bytes();
        }
    }

    /// Puts the lent keys back to their places, below what happened to them since.
    pub(super) fn nack(&mut self, ticket: u64) {
        for (key, mut entry) in self.returned(ticket) {
            self.bytes -= entry.net.bytes();
            entry.net.was_seen();
            if let Some(since) = self.entries.remove(&key) {
                self.forget_place(&since);
                self.bytes -= since.net.bytes();
                self.initial -= usize::from(since.initial && entry.initial);
                entry.initial |= since.initial;
                if since.is_fresh() || !entry.is_fresh() {
                    entry.cause = since.cause;
                }
                entry.net = entry.net.then(since.net);
            }
            self.put(key, entry);
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

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Past states that lost their insides.
    pub(super) fn thinned(&self) -> u64 {
        self.thinned
    }

    /// When the news came that have waited longest.
    pub(super) fn oldest(&self) -> Option<Instant> {
        let lent = self.in_hand.iter().flat_map(|(_, entries)| entries);
        let next = [&self.fresh, &self.later]
            .into_iter()
            .filter_map(|order| self.entries.get(order.first_key_value()?.1));
        let entries = lent.map(|(_, entry)| entry).chain(next);
        entries.filter_map(|entry| entry.since).min()
    }
}
