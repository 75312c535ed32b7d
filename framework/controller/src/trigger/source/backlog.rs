//! Keys that were asked for from outside and have not been handed to their shards; pure.

use std::{
    collections::{HashMap, VecDeque},
    time::Instant,
};

use boatswain_cache::Key;
use boatswain_workqueue::{Lane, Wheel, When};

/// A key that is handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) key: Key,
    pub(super) lane: Lane,
    /// Whether it is its own time that has come.
    pub(super) timed: bool,
    /// Which of all the times it was sent was the last.
    number: u64,
}

/// Holds each key once, however often it is asked for, and once more if it is asked for at a time.
pub(super) struct Backlog {
    capacity: usize,
    order: VecDeque<Key>,
    /// How urgent each of them is, and the number of the last time it was sent.
    lanes: HashMap<Key, (Lane, u64)>,
    sent: u64,
    times: Wheel<Key>,
    /// Those of them that are being handed out, with the time that was asked for since: a run for the one may have begun before.
    pub(super) handed: HashMap<Key, Option<Instant>>,
}

impl Backlog {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            order: VecDeque::new(),
            lanes: HashMap::new(),
            sent: 0,
            times: Wheel::new(),
            handed: HashMap::new(),
        }
    }

    /// False if there is no room.
    pub(super) fn add(&mut self, key: Key, lane: Lane) -> bool {
        self.sent += 1;
        if let Some((present, number)) = self.lanes.get_mut(&key) {
            *present = lane.max(*present);
            *number = self.sent;
            return true;
        }
        if self.lanes.len() >= self.capacity {
            return false;
        }
        self.order.push_back(key.clone());
        self.lanes.insert(key, (lane, self.sent));
        true
    }

    /// False if there is no room.
    pub(super) fn schedule(&mut self, key: Key, until: Instant, when: When) -> bool {
        if let Some(again) = self.handed.get_mut(&key) {
            *again = Some(again.map_or(until, |present| when.of(present, until)));
            return true;
        }
        let until = match self.times.until(&key) {
            None if self.times.len() >= self.capacity => return false,
            None => until,
            Some(present) => when.of(present, until),
        };
        self.times.set(key, until);
        true
    }

    /// Forgets the time of a key. Returns whether it had one.
    pub(super) fn cancel(&mut self, key: &Key) -> bool {
        self.handed.remove(key);
        self.times.remove(key).is_some()
    }

    /// Up to `max` keys whose turn or time it is, first come, first served. They stay until they are [taken](Self::taken).
    pub(super) fn next(&mut self, max: usize, now: Instant) -> Vec<Next> {
        let asked = self.order.iter().map(|key| {
            let (lane, number) = self.lanes.get(key).copied().unwrap_or_default();
            Next {
                key: key.clone(),
                lane,
                timed: false,
                number,
            }
        });
        let due = self.times.iter().take_while(|(_, until)| *until <= now);
        let due = due.map(|(key, _)| Next {
            key: key.clone(),
            lane: Lane::Normal,
            timed: true,
            number: 0,
        });
        let next: Vec<_> = due.chain(asked).take(max).collect();
        for Next { key, .. } in next.iter().filter(|next| next.timed) {
            self.handed.entry(key.clone()).or_default();
        }
        next
    }

    /// These have been handed out. One that was sent again meanwhile waits again: its run may have begun before.
    pub(super) fn taken(&mut self, taken: &[Next]) {
        for Next {
            key, timed, number, ..
        } in taken
        {
            if *timed {
                match self.handed.remove(key) {
                    Some(Some(again)) => self.times.set(key.clone(), again),
                    Some(None) => drop(self.times.remove(key)),
                    // it was taken back
                    None => {}
                }
                continue;
            }
            // what is handed out was in front
            self.order.pop_front();
            match self.lanes.get(key) {
                Some((_, last)) if last != number => self.order.push_back(key.clone()),
                _ => drop(self.lanes.remove(key)),
            }
        }
    }

    /// When the next time comes.
    pub(super) fn due(&self) -> Option<Instant> {
        self.times.next_due()
    }

    /// Keys that wait, for their turn or for their time.
    pub(super) fn len(&self) -> usize {
        self.lanes.len() + self.times.len()
    }
}
