//! Which notes become Events, which raise the count of one, which are dropped, and what is written when; pure.
//!
//! What repeats itself is one *series*: an Event is created for its first note, told at once of the second, and from then on at most once a [`WINDOW`],
//! last of all when it has been quiet for one. Between two writes a series rests and its notes are counted here.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use k8s_openapi::{
    api::events::v1::{Event, EventSeries},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};

use super::{
    answer::{Answer, GivenUp},
    counts::{Counts, Dropped},
    note::{NOWHERE, NOWHERE_BEFORE, Note, name_of},
    spam::Spam,
};

/// New Events that may wait for the API server.
pub(super) const CAPACITY: usize = 1000;
/// Series that are remembered; of more the one is forgotten whose rest ends first.
pub(super) const SERIES: usize = 4096;
/// How long a series rests between two writes, and after which silence it has ended; as in client-go.
pub(super) const WINDOW: Duration = Duration::from_secs(6 * 60);
/// Attempts for one write until it is given up: events are advice, not state.
pub(super) const ATTEMPTS: u32 = 12;
/// The first pause after an attempt that failed, and the longest of them.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The longest pause when little time is left.
const LAST_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct State {
    /// The process that reports.
    instance: String,
    /// Series by number. Each is in exactly one of `ready`, `resting` and `flight`.
    series: HashMap<u64, Series>,
    numbers: HashMap<Arc<str>, u64>,
    /// First come, first served.
    ready: VecDeque<u64>,
    resting: BTreeSet<(Instant, u64)>,
    flight: Option<Flight>,
    /// Nothing is sent until then: the server is busy, or away.
    paused_until: Option<Instant>,
    /// Attempts that failed in a row, whatever they were for.
    failures: u32,
    spam: Spam,
    next: u64,
    /// Where the server wants Events about objects without a namespace.
    nowhere: &'static str,
    /// Another process works.
    standby: bool,
    /// What is known is still written.
    closing: bool,
    pub(super) counts: Counts,
}

struct Series {
    identity: Arc<str>,
    /// As it is created, without its series.
    event: Event,
    /// Notes so far that belong to the Event.
    told: u64,
    /// Of these the server knows so many; of none before the Event is created.
    written: u64,
    last: jiff::Timestamp,
    rests_until: Option<Instant>,
}

/// A write that is under way, or to be tried again.
struct Flight {
    number: u64,
    attempts: u32,
    /// Notes that this attempt tells of.
    tells: u64,
    /// Notes that the first attempt told of: what the server knows at least when one of the attempts arrived.
    at_least: u64,
}

/// A request to the API server.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Write {
    Create(Box<Event>),
    Count {
        namespace: String,
        name: String,
        series: EventSeries,
    },
}

/// What there is to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Next {
    /// To be answered by [`State::answered`].
    Send(Write),
    /// Nothing before then, unless there are news.
    At(Instant),
    /// Nothing until there are news.
    Nothing,
    /// Closed, and all is written.
    Over,
}

impl State {
    /// `salt` tells the Events of this process from those of others.
    pub(super) fn new(instance: String, salt: u64) -> Self {
        Self {
            instance,
            series: HashMap::new(),
            numbers: HashMap::new(),
            ready: VecDeque::new(),
            resting: BTreeSet::new(),
            flight: None,
            paused_until: None,
            failures: 0,
            spam: Spam::default(),
            next: salt,
            nowhere: NOWHERE,
            standby: false,
            closing: false,
            counts: Counts::default(),
        }
    }

    /// `source` tells `note`, at this time of day. True if there is something new to write.
    pub(super) fn note(
        &mut self,
        source: &str,
        note: &Note,
        at: jiff::Timestamp,
        now: Instant,
    ) -> bool {
        self.counts.notes += 1;
        if self.standby {
            self.counts.dropped(Dropped::Standby, 1);
            return false;
        }
        let identity = note.identity(source);
        if let Some(number) = self.numbers.get(identity.as_str()) {
            return self.again(*number, at);
        }
        if self.ready.len() >= CAPACITY {
            self.counts.dropped(Dropped::Full, 1);
            return false;
        }
        if !self.spam.take(&note.subject(source), now) {
            self.counts.dropped(Dropped::Spam, 1);
            return false;
        }
        self.make_room();
        let number = self.number();
        let mut event = note.event(source, &self.instance, self.nowhere, at);
        event.metadata.name = Some(named(&event, number));
        let identity: Arc<str> = identity.into();
        self.numbers.insert(identity.clone(), number);
        let series = Series {
            identity,
            event,
            told: 1,
            written: 0,
            last: at,
            rests_until: None,
        };
        self.series.insert(number, series);
        self.ready.push_back(number);
        true
    }

    /// The series of this number goes on.
    fn again(&mut self, number: u64, at: jiff::Timestamp) -> bool {
        let Some(series) = self.series.get_mut(&number) else {
            return false;
        };
        self.counts.repeated += 1;
        series.told += 1;
        series.last = at;
        // that it is a series is told at once
        let first = series.written == 1;
        match series.rests_until.take_if(|_| first) {
            Some(until) => {
                self.resting.remove(&(until, number));
                self.ready.push_back(number);
                true
            }
            None => false,
        }
    }

    /// What is to be done now.
    pub(super) fn next(&mut self, now: Instant) -> Next {
        if let Some(until) = self.paused_until.filter(|until| *until > now) {
            return Next::At(until);
        }
        self.paused_until = None;
        if self.flight.is_none() {
            self.wake(now);
            let Some(number) = self.ready.pop_front() else {
                return self.rest();
            };
            self.flight = Some(Flight {
                number,
                attempts: 0,
                tells: 0,
                at_least: 0,
            });
        }
        self.send().unwrap_or_else(|| self.rest())
    }

    fn rest(&self) -> Next {
        match self.resting.first() {
            _ if self.closing => Next::Over,
            Some((until, _)) => Next::At(*until),
            None => Next::Nothing,
        }
    }

    /// Those whose rest is over are written, if there is something to write, and forgotten if not.
    fn wake(&mut self, now: Instant) {
        while let Some((until, number)) = self.resting.first().copied()
            && (until <= now || self.closing)
        {
            self.resting.pop_first();
            let Some(series) = self.series.get_mut(&number) else {
                continue;
            };
            series.rests_until = None;
            if series.told > series.written {
                self.ready.push_back(number);
            } else {
                self.forget(number);
            }
        }
    }

    /// The request of what is under way, as things are now.
    fn send(&mut self) -> Option<Next> {
        let flight = self.flight.as_mut()?;
        let series = self.series.get(&flight.number)?;
        flight.tells = series.told;
        if flight.attempts == 0 {
            flight.at_least = series.told;
        } else {
            self.counts.retries += 1;
        }
        flight.attempts += 1;
        Some(Next::Send(series.write()))
    }

    /// What became of the last request. `chance` (0 to 1) spreads the attempts of many processes.
    pub(super) fn answered(
        &mut self,
        answer: Answer,
        now: Instant,
        chance: f64,
    ) -> Option<GivenUp> {
        // what is answered after the work was lost to another process concerns nobody
        let flight = self.flight.take()?;
        let number = flight.number;
        let created = self.series.get(&number).is_some_and(|s| s.written > 0);
        let busy = matches!(answer, Answer::Busy { .. });
        self.failures = if busy { self.failures + 1 } else { 0 };
        match answer {
            Answer::Taken => {
                let verb = if created {
                    &mut self.counts.patched
                } else {
                    &mut self.counts.created
                };
                *verb += 1;
                self.written(number, flight.tells, now);
                None
            }
            // the answer to an earlier attempt was lost
            Answer::Exists if flight.attempts > 1 => {
                self.counts.created += 1;
                self.written(number, flight.at_least, now);
                None
            }
            Answer::Exists => {
                self.anew(number);
                None
            }
            // Events live for an hour only
            Answer::Missing(_) if created => {
                self.anew(number);
                None
            }
            Answer::Missing(why) => self.give_up(number, Dropped::Namespace, why),
            Answer::Misplaced(_) if self.place_elsewhere(number) => None,
            Answer::Misplaced(why) => self.give_up(number, Dropped::Refused, why),
            Answer::Refused(dropped, why) => self.give_up(number, dropped, why),
            Answer::Busy { retry_after, why } => {
                if flight.attempts >= ATTEMPTS {
                    self.pause(retry_after, now, chance);
                    return self.give_up(number, Dropped::Unreachable, why);
                }
                self.flight = Some(flight);
                self.pause(retry_after, now, chance);
                None
            }
        }
    }

    fn written(&mut self, number: u64, count: u64, now: Instant) {
        let Some(series) = self.series.get_mut(&number) else {
            return;
        };
        let first = series.written == 0 && count == 1;
        series.written = count;
        if first && series.told > 1 {
            self.ready.push_back(number);
            return;
        }
        let until = now + WINDOW;
        series.rests_until = Some(until);
        self.resting.insert((until, number));
    }

    /// What the server does not know yet becomes an Event of another name.
    fn anew(&mut self, number: u64) {
        let fresh = self.number();
        let Some(series) = self.series.get_mut(&number) else {
            return;
        };
        series.told -= series.written;
        series.written = 0;
        series.event.event_time = Some(MicroTime(series.last));
        series.event.metadata.name = Some(named(&series.event, fresh));
        self.ready.push_front(number);
    }

    /// What is about an object without a namespace goes to the other place there is for such, unless that has been tried.
    fn place_elsewhere(&mut self, number: u64) -> bool {
        let Some(series) = self.series.get_mut(&number) else {
            return false;
        };
        let namespace = &mut series.event.metadata.namespace;
        if namespace.as_deref() != Some(NOWHERE) {
            return false;
        }
        *namespace = Some(NOWHERE_BEFORE.to_owned());
        self.nowhere = NOWHERE_BEFORE;
        self.ready.push_front(number);
        true
    }

    fn give_up(&mut self, number: u64, dropped: Dropped, why: String) -> Option<GivenUp> {
        self.drop_series(number, dropped);
        Some(GivenUp { dropped, why })
    }

    fn pause(&mut self, asked_for: Option<Duration>, now: Instant, chance: f64) {
        let doublings = self.failures.saturating_sub(1).min(16);
        let pause = (PAUSE * 2u32.pow(doublings)).min(LONGEST_PAUSE);
        let pause = pause.mul_f64(0.8 + 0.4 * chance.clamp(0.0, 1.0));
        let pause = asked_for
            .map_or(pause, |asked| asked.max(pause))
            .min(crate::reconcile::Fault::LONGEST_WAIT);
        self.paused_until = Some(now + pause);
        self.hurry(now);
    }

    /// While closing there is no time to be polite.
    fn hurry(&mut self, now: Instant) {
        if self.closing
            && let Some(until) = &mut self.paused_until
        {
            *until = (*until).min(now + LAST_PAUSE);
        }
    }

    /// From here on what is known is written, whatever rests.
    pub(super) fn close(&mut self, now: Instant) {
        self.closing = true;
        self.hurry(now);
    }

    /// Whoever writes has begun (again).
    pub(super) fn open(&mut self) {
        self.closing = false;
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    /// There is no time left. Says how many notes are not written.
    pub(super) fn abandon(&mut self) -> u64 {
        self.drop_all(Dropped::Stopped)
    }

    /// Another process works now, or may: nothing more is told of what this one did.
    pub(super) fn stand_by(&mut self) {
        self.drop_all(Dropped::Standby);
        self.spam.clear();
        self.standby = true;
    }

    /// This process works.
    pub(super) fn lead(&mut self) {
        self.standby = false;
    }

    /// Events that wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.ready.len() + usize::from(self.flight.is_some())
    }

    pub(super) fn series(&self) -> usize {
        self.series.len()
    }

    fn drop_all(&mut self, dropped: Dropped) -> u64 {
        self.flight = None;
        self.paused_until = None;
        self.failures = 0;
        self.ready.clear();
        self.resting.clear();
        self.numbers.clear();
        let unwritten = self.series.drain().map(|(_, s)| s.told - s.written).sum();
        self.counts.dropped(dropped, unwritten);
        unwritten
    }

    fn drop_series(&mut self, number: u64, dropped: Dropped) {
        if let Some(series) = self.forget(number) {
            self.counts.dropped(dropped, series.told - series.written);
        }
    }

    fn forget(&mut self, number: u64) -> Option<Series> {
        let series = self.series.remove(&number)?;
        self.numbers.remove(&series.identity);
        Some(series)
    }

    fn make_room(&mut self) {
        if self.series.len() >= SERIES
            && let Some((_, number)) = self.resting.pop_first()
        {
            self.drop_series(number, Dropped::Forgotten);
        }
    }

    fn number(&mut self) -> u64 {
        self.next = self.next.wrapping_add(1);
        self.next
    }
}

impl Series {
    fn write(&self) -> Write {
        let series = EventSeries {
            count: i32::try_from(self.told).unwrap_or(i32::MAX),
            last_observed_time: MicroTime(self.last),
        };
        if self.written > 0 {
            let metadata = &self.event.metadata;
            return Write::Count {
                namespace: metadata.namespace.clone().unwrap_or_default(),
                name: metadata.name.clone().unwrap_or_default(),
                series,
            };
        }
        // the API takes no series of one
        let series = (self.told > 1).then_some(series);
        Write::Create(Box::new(Event {
            series,
            ..self.event.clone()
        }))
    }
}

/// A name for `event`.
fn named(event: &Event, number: u64) -> String {
    let object = event.regarding.as_ref();
    let object = object.and_then(|object| object.name.as_deref());
    let at = event
        .event_time
        .as_ref()
        .map_or(jiff::Timestamp::UNIX_EPOCH, |time| time.0);
    name_of(object, at, number)
}

#[cfg(test)]
mod tests;
