//! Follows one watch to its end.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures::future::{Either, select};

use super::call::Body;
use super::{PARSE, Run};
use crate::delta::Delta;
use crate::delta_fifo::actor::What;
use crate::framing::LineSplitter;
use crate::reflector::answer::Failure;
use crate::reflector::event::{self, Event};
use crate::reflector::state::{End, Machine};
use crate::status::InformerState;
use crate::version::Version;

impl Run {
    pub(super) async fn watch(
        &mut self,
        machine: &mut Machine,
        version: &Version,
        timeout: Duration,
    ) -> End {
        self.core.count(|counters| counters.watches += 1);
        let mut body = match self.caller.watch(version, timeout).await {
            Ok(body) => body,
            Err(failure) => return End::NotOpened(failure),
        };
        let opened = self.clock.now();
        machine.opened(opened);
        self.core.note_watch_opened(opened);
        self.note(InformerState::Watching, machine, None);
        self.mark(What::Live(self.core.watch_opened()));
        let mut splitter = LineSplitter::new(self.options.max_object);
        let mut heard = opened;
        // the server ends the watch; one that does not has lost its connection
        let overdue = opened + timeout + self.options.answer;
        loop {
            let silent = heard + machine.silence();
            let chunk = match self.chunk(&mut body, silent.min(overdue)).await {
                Heard::Chunk(chunk) => chunk,
                Heard::End => return End::Closed,
                Heard::Asked => return End::Asked,
                Heard::Nothing if silent < overdue => return End::Silent,
                Heard::Nothing => return End::Closed,
            };
            heard = self.clock.now();
            self.core.note_contact(heard);
            for part in chunk.chunks(PARSE) {
                let mut events = Vec::new();
                let limit = self.options.max_object;
                let intake = self.core.intake();
                splitter.push(part, &mut |line| {
                    events.push(event::read(line, limit, intake))
                });
                if let Some(end) = self.events(machine, events, heard).await {
                    return end;
                }
            }
        }
    }

    async fn chunk(&self, body: &mut Body, deadline: Instant) -> Heard {
        let (asked, late) = (
            pin!(self.core.relist_asked.notified()),
            pin!(self.clock.sleep_until(deadline)),
        );
        match select(pin!(body.next()), select(asked, late)).await {
            Either::Left((Ok(Some(chunk)), _)) => Heard::Chunk(chunk),
            Either::Left((Ok(None) | Err(_), _)) => Heard::End,
            Either::Right((Either::Left(_), _)) => Heard::Asked,
            Either::Right((Either::Right(_), _)) => Heard::Nothing,
        }
    }

    /// Hands events over in order; the position moves only behind what was handed over.
    async fn events(
        &mut self,
        machine: &mut Machine,
        events: Vec<Event>,
        now: Instant,
    ) -> Option<End> {
        let mut deltas = Vec::new();
        if events.iter().any(|event| matches!(event, Event::Delta(..))) {
            self.core.note_event(now);
        }
        for event in events {
            match event {
                Event::Delta(kind, delta) => {
                    self.core
                        .count(|counters| *counters.events.entry(kind).or_default() += 1);
                    deltas.push(self.set_aside(delta));
                }
                Event::Bookmark(version) => {
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
