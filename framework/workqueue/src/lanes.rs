//! Which of the keys that are ready runs next: three lanes, first in first out inside a lane, no
//! lane starved.

use std::collections::{BTreeMap, VecDeque};
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
/// 1. Tickets are handed out in the order of arrival, so a lane in the order of its tickets is first
///    in, first out, and its head has waited longest.
/// 2. A key that is lifted keeps its ticket: it takes the place its age earns it and loses none by
///    becoming more urgent.
/// 3. While no head has waited for the ageing bound, the most urgent lane goes first. Otherwise
///    service rotates among that lane and every lane whose head is over the bound; such a head
///    therefore leaves within three pops, and no lane, however old its backlog, takes the others'
///    share.
#[derive(Debug)]
pub(crate) struct Lanes<K> {
    lines: [Line<K>; 3],
    bound: Duration,
    /// The line served last, where the rotation goes on.
    last: usize,
}

impl<K> Lanes<K> {
    pub(crate) fn new(bound: Duration) -> Self {
        Lanes {
            lines: std::array::from_fn(|_| Line::new()),
            bound,
            last: 0,
        }
    }

    pub(crate) fn push(&mut self, lane: Lane, ticket: u64, key: K, now: Moment) {
        self.lines[lane.index()].push(ticket, Standing { key, since: now });
    }

    pub(crate) fn pop(&mut self, now: Moment) -> Option<(u64, Standing<K>)> {
        let urgent = self.lines.iter().position(|line| line.len() > 0)?;
        let line = (1..=3)
            .map(|step| (self.last + step) % 3)
            .find(|&line| line == urgent || self.is_overdue(line, now))
            .unwrap_or(urgent);
        self.last = line;
        self.lines[line].pop()
    }

    fn is_overdue(&self, line: usize, now: Moment) -> bool {
        let head = self.lines[line].head();
        head.is_some_and(|head| now.since(head.since) >= self.bound)
    }

    pub(crate) fn lift(&mut self, ticket: u64, from: Lane, to: Lane) {
        if let Some(standing) = self.lines[from.index()].remove(ticket) {
            self.lines[to.index()].lifted.insert(ticket, standing);
        }
    }

    pub(crate) fn remove(&mut self, lane: Lane, ticket: u64) {
        self.lines[lane.index()].remove(ticket);
    }

    pub(crate) fn clear(&mut self) {
        self.lines = std::array::from_fn(|_| Line::new());
    }

    pub(crate) fn since(&self, lane: Lane, ticket: u64) -> Option<Moment> {
        let standing = self.lines[lane.index()].get(ticket)?;
        Some(standing.since)
    }

    pub(crate) fn depth(&self, lane: Lane) -> usize {
        self.lines[lane.index()].len()
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.iter().map(Line::len).sum()
    }

    pub(crate) fn oldest(&self, lane: Lane) -> Option<Moment> {
        self.lines[lane.index()].head().map(|head| head.since)
    }

    /// Every standing key, the most urgent lane first, each lane in its order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.lines.iter().flat_map(Line::keys)
    }
}

/// One lane: keys by ticket. Nearly all come with a ticket above all others and leave at the head,
/// which takes no search; who comes from another lane or leaves from the middle is dealt with
/// beside.
#[derive(Debug)]
struct Line<K> {
    /// By ticket. Who has left from the middle leaves a hole; the front is none.
    fifo: VecDeque<(u64, Option<Standing<K>>)>,
    holes: usize,
    /// Those that came with a ticket of another lane.
    lifted: BTreeMap<u64, Standing<K>>,
}

impl<K> Line<K> {
    fn new() -> Self {
        Line {
            fifo: VecDeque::new(),
            holes: 0,
            lifted: BTreeMap::new(),
        }
    }

    fn len(&self) -> usize {
        self.fifo.len() - self.holes + self.lifted.len()
    }

    fn push(&mut self, ticket: u64, standing: Standing<K>) {
        self.fifo.push_back((ticket, Some(standing)));
    }

    /// Whether the head is one that was lifted.
    fn is_lifted_first(&self) -> bool {
        let lifted = self.lifted.first_key_value().map(|(ticket, _)| *ticket);
        let front = self.fifo.front().map(|(ticket, _)| *ticket);
        lifted.is_some_and(|lifted| front.is_none_or(|front| lifted < front))
    }

    fn head(&self) -> Option<&Standing<K>> {
        if self.is_lifted_first() {
            self.lifted.first_key_value().map(|(_, head)| head)
        } else {
            self.fifo.front()?.1.as_ref()
        }
    }

    fn pop(&mut self) -> Option<(u64, Standing<K>)> {
        if self.is_lifted_first() {
            return self.lifted.pop_first();
        }
        let (ticket, standing) = self.fifo.pop_front()?;
        self.tidy();
        Some((ticket, standing?))
    }

    fn remove(&mut self, ticket: u64) -> Option<Standing<K>> {
        if let Some(standing) = self.lifted.remove(&ticket) {
            return Some(standing);
        }
        let at = self.place(ticket)?;
        let standing = self.fifo.get_mut(at)?.1.take()?;
        self.holes += 1;
        self.tidy();
        Some(standing)
    }

    fn get(&self, ticket: u64) -> Option<&Standing<K>> {
        let lifted = self.lifted.get(&ticket);
        lifted.or_else(|| self.fifo.get(self.place(ticket)?)?.1.as_ref())
    }

    fn place(&self, ticket: u64) -> Option<usize> {
        self.fifo
            .binary_search_by_key(&ticket, |(ticket, _)| *ticket)
            .ok()
    }

    /// Closes holes at the front, all of them where they are the most, and gives room back after a
    /// burst; each at O(1) for every key that comes and goes.
    fn tidy(&mut self) {
        while let Some((_, None)) = self.fifo.front() {
            self.fifo.pop_front();
            self.holes -= 1;
        }
        if self.holes > 32 && self.holes > self.fifo.len() / 2 {
            self.fifo.retain(|(_, standing)| standing.is_some());
            self.holes = 0;
        }
        if self.fifo.capacity() > 64 && self.fifo.len() < self.fifo.capacity() / 4 {
            self.fifo.shrink_to(self.fifo.len() * 2);
        }
    }

    fn keys(&self) -> impl Iterator<Item = &K> {
        let standing = |(ticket, standing): &'_ (u64, Option<Standing<K>>)| -> Option<_> {
            standing.is_some().then_some(*ticket)
        };
        let mut fifo = self.fifo.iter().filter_map(standing).peekable();
        let mut lifted = self.lifted.keys().copied().peekable();
        let tickets = std::iter::from_fn(move || match (fifo.peek(), lifted.peek()) {
            (Some(own), Some(other)) if other < own => lifted.next(),
            (None, _) => lifted.next(),
            _ => fifo.next(),
        });
        tickets.filter_map(|ticket| Some(&self.get(ticket)?.key))
    }
}

#[cfg(test)]
mod tests;
