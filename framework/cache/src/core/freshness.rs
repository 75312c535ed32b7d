//! How old the store may be.

use std::time::{Duration, Instant};

use super::{InformerCore, lock};
use crate::status::Counters;
use crate::version::Version;

/// client-go's bound for a watch that ended at once.
const SHORT: Duration = Duration::from_secs(1);

/// How sure an informer can be, at a moment, that its store is what the server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// Whether the store has had the whole state once.
    pub synced: bool,
    /// Whether a watch is open and what was missed before it is in the store.
    pub fresh: bool,
    /// Everything up to this version is in the store.
    pub low_water: Option<Version>,
    /// Time since the server last told of an object, in a list or an event. It grows without limit while nothing changes.
    pub event_age: Option<Duration>,
    /// Time since the server last gave a sign of life: any byte of a list or watch, so bookmarks too, or the answer to a probe. While it is small and `fresh` is set,
    /// an old event means that nothing happened. A quiet server without bookmarks lets it grow up to the silence of
    /// [`InformerOptions`](crate::InformerOptions).
    pub contact_age: Option<Duration>,
}

impl InformerCore {
    /// How old the store may be. `now` is the clock's.
    #[must_use]
    pub fn freshness(&self, now: Instant) -> Freshness {
        let (synced, fresh, low_water) = {
            let progress = self.progress.borrow();
            (progress.synced, progress.fresh, progress.low_water.clone())
        };
        let health = lock(&self.health);
        let age = |at: Option<Instant>| at.map(|at| now.saturating_duration_since(at));
        Freshness {
            synced,
            fresh,
            low_water,
            event_age: age(health.last_event),
            contact_age: age(health.last_contact),
        }
    }

    /// The server told of objects.
    pub(crate) fn note_event(&self, now: Instant) {
        let mut health = lock(&self.health);
        health.last_event = Some(now);
        health.last_contact = Some(now);
    }

    /// The server gave a sign of life.
    pub(crate) fn note_contact(&self, now: Instant) {
        lock(&self.health).last_contact = Some(now);
    }

    /// A list begins.
    pub(crate) fn note_list_begun(&self, now: Instant) {
        let mut health = lock(&self.health);
        health.list_begun = Some((now, health.counters.listed));
    }

    /// The whole list was read.
    pub(crate) fn note_list_read(&self, now: Instant) {
        let mut health = lock(&self.health);
        health.last_event = Some(now);
        let Some((begun, before)) = health.list_begun.take() else {
            return;
        };
        let counters = &mut health.counters;
        counters
            .list_micros
            .add_micros(now.saturating_duration_since(begun));
        counters
            .list_items
            .add(counters.listed.saturating_sub(before));
    }

    /// A watch is open.
    pub(crate) fn note_watch_opened(&self, now: Instant) {
        let mut health = lock(&self.health);
        health.last_contact = Some(now);
        health.watch_begun = Some((now, told(&health.counters)));
    }

    /// The watch has ended, if it ever was open.
    pub(crate) fn note_watch_ended(&self, now: Instant) {
        let mut health = lock(&self.health);
        let Some((begun, before)) = health.watch_begun.take() else {
            return;
        };
        let took = now.saturating_duration_since(begun);
        let counters = &mut health.counters;
        let events = told(counters).saturating_sub(before);
        counters.watch_micros.add_micros(took);
        counters.watch_events.add(events);
        counters.short_watches += u64::from(events == 0 && took < SHORT);
    }
}

/// Events so far, without bookmarks.
fn told(counters: &Counters) -> u64 {
    let events = counters.events.iter();
    events
        .filter(|(kind, _)| **kind != "bookmark")
        .map(|(_, count)| count)
        .sum()
}
