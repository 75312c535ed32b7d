//! Which of the keys that are ready runs next: three lanes, first in first out inside a lane, no
//! lane starved.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::time::Moment;

/// How urgent a key is; a greater lane goes first.
///
/// A lane orders keys that are *ready*. It never hurries a key that backs off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Work nobody waits for: the initial list, resyncs, what is checked after promotion to leader.
    Low,
    /// A change seen by a watch. The default.
    #[default]
    Normal,
    /// Somebody is looking: a request by hand, an object marked as important.
    User,
}

impl Lane {
    /// All lanes, the most urgent first.
    pub const ALL: [Lane; 3] = [Lane::User, Lane::Normal, Lane::Low];

    fn index(self) -> usize {
        Lane::User as usize - self as usize
    }
}

/// A key that stands in a lane, and since when.
#[derive(Debug)]
pub(crate) struct Standing<K> {
    pub(crate) key: K,
    pub(crate) since: Moment,
}

/// The three lanes.
///
/// 1. Tickets are handed out in the order of arrival, so a lane sorted by ticket is first in, first
///    out, and its head has waited longest.
/// 2. A key that is lifted keeps its ticket: it takes the place its age earns it and loses none by
///    becoming more urgent.
/// 3. While no head has waited for the ageing bound, the most urgent lane goes first. Otherwise
///    service rotates among that lane and every lane whose head is over the bound; such a head
///    therefore leaves within three pops, and no lane, however old its backlog, takes the others'
///    share.
#[derive(Debug)]
pub(crate) struct Lanes<K> {
    lines: [BTreeMap<u64, Standing<K>>; 3],
    bound: Duration,
    /// The line served last, where the rotation goes on.
    last: usize,
}

impl<K> Lanes<K> {
    pub(crate) fn new(bound: Duration) -> Self {
        Lanes {
            lines: std::array::from_fn(|_| BTreeMap::new()),
            bound,
            last: 0,
        }
    }

    pub(crate) fn push(&mut self, lane: Lane, ticket: u64, key: K, now: Moment) {
        self.lines[lane.index()].insert(ticket, Standing { key, since: now });
    }

    pub(crate) fn pop(&mut self, now: Moment) -> Option<(u64, Standing<K>)> {
        let urgent = self.lines.iter().position(|line| !line.is_empty())?;
        let line = (1..=3)
            .map(|step| (self.last + step) % 3)
            .find(|&line| line == urgent || self.is_overdue(line, now))
            .unwrap_or(urgent);
        self.last = line;
        self.lines[line].pop_first()
    }

    fn is_overdue(&self, line: usize, now: Moment) -> bool {
        let head = self.lines[line].first_key_value();
        head.is_some_and(|(_, head)| now.since(head.since) >= self.bound)
    }

    pub(crate) fn lift(&mut self, ticket: u64, from: Lane, to: Lane) {
        if let Some(standing) = self.lines[from.index()].remove(&ticket) {
            self.lines[to.index()].insert(ticket, standing);
        }
    }

    pub(crate) fn remove(&mut self, lane: Lane, ticket: u64) {
        self.lines[lane.index()].remove(&ticket);
    }

    pub(crate) fn clear(&mut self) {
        self.lines.iter_mut().for_each(BTreeMap::clear);
    }

    pub(crate) fn since(&self, lane: Lane, ticket: u64) -> Option<Moment> {
        self.lines[lane.index()]
            .get(&ticket)
            .map(|standing| standing.since)
    }

    pub(crate) fn depth(&self, lane: Lane) -> usize {
        self.lines[lane.index()].len()
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.iter().map(BTreeMap::len).sum()
    }

    pub(crate) fn oldest(&self, lane: Lane) -> Option<Moment> {
        self.lines[lane.index()]
            .first_key_value()
            .map(|(_, head)| head.since)
    }

    /// Every standing key, the most urgent lane first, each lane in its order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.lines
            .iter()
            .flat_map(BTreeMap::values)
            .map(|standing| &standing.key)
    }
}

#[cfg(test)]
mod tests;
