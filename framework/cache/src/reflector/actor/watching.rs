//! Follows one watch to its end, and the list before it where that is streamed.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures::future::{Either, select};

use super::call::{Body, Patience};
use super::{PARSE, Run, cause};
use crate::delta::Delta;
use crate::delta_fifo::actor::What;
use crate::framing::LineSplitter;
use crate::reflector::answer::Failure;
use crate::reflector::doubts::Doubts;
use crate::reflector::event::{self, Event};
use crate::reflector::plan::{At, End, StreamList};
use crate::reflector::state::Machine;
use crate::status::InformerState;
use crate::version::Version;

/// How a watch begins.
pub(super) enum Opening {
    /// Behind a version.
    Watch(Version, Duration),
    /// With what there is.
    Stream(StreamList),
}

impl Run {
    /// Follows a watch and tells the machine how it went.
    pub(super) async fn follow(&mut self, machine: &mut Machine, opening: Opening) {
        let mut listing = match &opening {
            Opening::Watch(..) => None,
            Opening::Stream(list) => {
                self.open(list.reason, &list.at);
                self.core.count(|counters| counters.streamed += 1);
                Some(Doubts::new(match &list.at {
                    At::NotOlderThan(version) => Some(version.clone()),
                    At::Any | At::Now => None,
                }))
            }
        };
        let end = self.stream(machine, &opening, &mut listing).await;
        self.core
            .count(|counters| *counters.watch_ends.entry(cause(&end)).or_default() += 1);
        let now = self.clock.now();
        self.core.note_watch_ended(now);
        if listing.is_some() {
            self.abort();
            if let Some(reason) = machine.stream_ended(&end, now) {
                self.remember(&reason).await;
            }
        } else {
            machine.watch_ended(&end, now);
        }
        let failure = match &end {
            End::NotOpened(failure) | End::Error(failure) => Some(failure),
            _ => None,
        };
        self.note(InformerState::Waiting, machine, failure);
    }

    /// While `listing`, what comes is a list.
    async fn stream(
        &mut self,
        machine: &mut Machine,
        opening: &Opening,
        listing: &mut Option<Doubts>,
    ) -> End {
        self.core.count(|counters| counters.watches += 1);
        let (answer, timeout) = match opening {
            Opening::Watch(version, timeout) => {
                (self.caller.watch(version, *timeout).await, *timeout)
            }
            Opening::Stream(list) => {
                self.note(InformerState::Listing, machine, None);
                (self.caller.stream(list).await, list.timeout)
            }
        };
        let mut body = match answer {
            Ok(body) => body,
            Err(failure) => return End::NotOpened(failure),
        };
        let opened = self.clock.now();
        self.core.note_watch_opened(opened);
        if listing.is_none() {
            machine.opened(opened);
            self.live(machine);
        }
        let mut splitter = LineSplitter::new(self.options.max_object);
        let mut patience = Patience::new(self.options.answer);
        let mut heard = opened;
        // the server ends the watch; one that does not has lost its connection
        let overdue = opened + timeout + self.options.answer;
        let mut opener = self.core.opener().clone();
        loop {
            let silent = match listing {
                Some(_) => heard + patience.allows(),
                None => heard + machine.silence(),
            };
            let chunk = match self
                .chunk(&mut body, silent.min(overdue), listing.is_none())
                .await
            {
                Heard::Chunk(chunk) => chunk,
                Heard::End => return End::Closed,
                Heard::Asked => return End::Asked,
                Heard::Nothing if silent < overdue => return End::Silent,
                Heard::Nothing => return End::Closed,
            };
            let now = self.clock.now();
            // blank lines, by which proxies keep connections, are no word of the server's
            let blank = listing.is_none() && chunk.iter().all(u8::is_ascii_whitespace);
            if !blank {
                self.core.note_contact(now);
            }
            if listing.is_some() {
                patience.waited(now.saturating_duration_since(heard));
            }
            for part in chunk.chunks(PARSE) {
                let mut events = Vec::new();
                let limit = self.options.max_object;
                opener.pack_at_once(self.core.is_behind());
                if listing.is_some() {
                    let known = self.known();
                    splitter.push(part, &mut |line| {
                        events.push(event::read(line, limit, &mut opener, &known));
                    });
                } else {
                    splitter.push(part, &mut |line| {
                        events.push(event::read(line, limit, &mut opener, &|_, _| None));
                    });
                }
                let mut events = events.into_iter();
                if listing.is_some()
                    && let Some(end) = self.initial(machine, listing, &mut events).await
                {
                    return end;
                }
                if listing.is_none()
                    && let Some(end) = self.events(machine, events, now).await
                {
                    return end;
                }
            }
            if !blank {
                // what was spent on handing over is not the server's silence
                heard = self.clock.now();
            }
        }
    }

    /// The watch is open, and what is missed from now on is not missed for long.
    fn live(&mut self, machine: &Machine) {
        self.note(InformerState::Watching, machine, None);
        self.mark(What::Live(self.core.watch_opened()));
    }

    async fn chunk(&self, body: &mut Body, deadline: Instant, interruptible: bool) -> Heard {
        let asked = async {
            if interruptible {
                self.core.relist_asked.notified().await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        let (asked, late) = (pin!(asked), pin!(self.clock.sleep_until(deadline)));
        match select(pin!(body.next()), select(asked, late)).await {
            Either::Left((Ok(Some(chunk)), _)) => Heard::Chunk(chunk),
            Either::Left((Ok(None) | Err(_), _)) => Heard::End,
            Either::Right((Either::Left(_), _)) => Heard::Asked,
            Either::Right((Either::Right(_), _)) => Heard::Nothing,
        }
    }

    /// Hands over the initial events, up to the bookmark that ends them; `listing` is none from then on.
    async fn initial(
        &mut self,
        machine: &mut Machine,
        listing: &mut Option<Doubts>,
        events: &mut impl Iterator<Item = Event>,
    ) -> Option<End> {
        let mut deltas = Vec::new();
        let low_water = self.core.low_water();
        let settled = listing
            .as_ref()
            .is_some_and(|doubts| doubts.are_settled_by(low_water.as_ref()));
        for event in events {
            let doubts = listing.as_mut()?;
            match event {
                Event::Delta(_, delta) => {
                    // an item of the list, whatever happened to it while the list was sent
                    let delta = match delta {
                        Delta::Seen(object) => Delta::Listed(object),
                        other => self.set_aside(other),
                    };
                    let stored = settled && self.core.reader().get(delta.key()).is_some();
                    match doubts.take(delta, stored) {
                        Ok(delta) => deltas.extend(delta),
                        Err(failure) => return Some(End::Error(failure)),
                    }
                }
                Event::Bookmark {
                    initial_end: false, ..
                } => {}
                Event::Bookmark { version, .. } => {
                    if let Err(failure) = machine.accept(Some(&version)) {
                        return Some(End::Error(failure));
                    }
                    if let Some(doubts) = listing.take() {
                        deltas.extend(doubts.proved());
                    }
                    self.begin(machine, Some(&version));
                    self.hand_over(deltas, true).await;
                    let now = self.clock.now();
                    machine.streamed(&version, now);
                    self.end(version);
                    self.core.note_event(now);
                    self.live(machine);
                    return None;
                }
                Event::Error(status) => return Some(End::Error(Failure::Refused(status))),
                Event::Unknown(reason) => self.unidentified(&reason),
            }
        }
        if !deltas.is_empty() {
            self.begin(machine, None);
            self.hand_over(deltas, true).await;
        }
        self.core.note_event(self.clock.now());
        None
    }

    /// Hands events over in order; the position moves only behind what was handed over.
    async fn events(
        &mut self,
        machine: &mut Machine,
        events: std::vec::IntoIter<Event>,
        now: Instant,
    ) -> Option<End> {
        let mut deltas = Vec::new();
        if events
            .as_slice()
            .iter()
            .any(|event| matches!(event, Event::Delta(..)))
        {
            self.core.note_event(now);
        }
        for event in events {
            match event {
                Event::Delta(kind, delta) => {
                    self.core
                        .count(|counters| *counters.events.entry(kind).or_default() += 1);
                    if self.was_skipped(machine, &delta) {
                        self.told(machine, deltas).await;
                        return Some(End::SetBack);
                    }
                    deltas.push(self.set_aside(delta));
                }
                Event::Bookmark { version, .. } => {
                    self.core
                        .count(|counters| *counters.events.entry("bookmark").or_default() += 1);
                    self.told(machine, std::mem::take(&mut deltas)).await;
                    machine.advanced(&version);
                    self.mark(What::Bookmark(version));
                }
                Event::Error(status) => {
                    self.core
                        .count(|counters| *counters.events.entry("error").or_default() += 1);
                    self.told(machine, deltas).await;
                    return Some(End::Error(Failure::Refused(status)));
                }
                Event::Unknown(reason) => {
                    self.told(machine, deltas).await;
                    self.core.count(|counters| counters.unidentified += 1);
                    tracing::error!(resource = %self.core.kind(), reason, "a watch told something that cannot be understood; listing anew");
                    return Some(End::Unreadable);
                }
            }
        }
        self.told(machine, deltas).await;
        None
    }

    /// Whether a state is older than what the stream has told already, and yet newer than what is stored although nothing of that is pending: what was
    /// told was not so.
    fn was_skipped(&self, machine: &Machine, delta: &Delta) -> bool {
        let Delta::Seen(object) = delta else {
            return false;
        };
        let version = &object.meta().resource_version;
        machine.is_ahead_of(version)
            && self
                .core
                .low_water()
                .is_some_and(|low_water| !machine.is_beyond(&low_water))
            && self
                .core
                .get(object.key())
                .is_some_and(|stored| stored.meta().resource_version.is_before(version))
    }

    async fn told(&mut self, machine: &mut Machine, deltas: Vec<Delta>) {
        let versions: Vec<_> = deltas
            .iter()
            .filter_map(|delta| delta.version().cloned())
            .collect();
        self.hand_over(deltas, false).await;
        for version in versions {
            machine.advanced(&version);
        }
    }
}

/// What a watch brought.
enum Heard {
    Chunk(bytes::Bytes),
    End,
    Asked,
    Nothing,
}
