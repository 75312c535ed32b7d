//! Reflector, queue, store and subscriber against a server that does everything servers do, in any order: a hundred thousand short lives in
//! virtual time. A failure names its seed: `BOATSWAIN_SEED=<seed> cargo test -p boatswain-cache voyage`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use boatswain_supervision::{Clock, Entropy};

use super::*;
use crate::Subscription;
use crate::framing::ListMeta;
use crate::reflector::answer::{Failure, Status};
use crate::reflector::doubts::Doubts;
use crate::reflector::plan::{At, End, List, Plan, StreamList};
use crate::reflector::state::Machine;

mod server;
mod witness;

use server::Server;
use witness::Witness;

/// Items of a page.
const PAGE: u32 = 2;

/// What the reflector is in the middle of.
enum Doing {
    Nothing,
    Page {
        at: usize,
        items: VecDeque<Object>,
        next: Option<String>,
    },
    Stream {
        told: VecDeque<Told>,
        doubts: Doubts,
    },
    Watch {
        cursor: usize,
    },
}

enum Told {
    Item(Delta),
    End(usize),
}

/// One life of an informer.
struct Voyage {
    dice: Entropy,
    now: Instant,
    server: Server,
    core: Arc<InformerCore>,
    fifo: Fifo<Permit>,
    machine: Machine,
    /// The last consistent list asked for that the machine knows of.
    asked: u64,
    opening: Option<Replace>,
    trust: Trust,
    doing: Doing,
    witness: Witness,
    /// Whether nothing goes wrong any more.
    calm: bool,
}

fn version(at: usize) -> Version {
    Version::new(&at.to_string())
}

fn number(version: &Version) -> usize {
    version.to_string().parse().unwrap()
}

fn refused(code: u16, too_large: bool) -> Failure {
    Failure::Refused(Status {
        code,
        reason: String::new(),
        message: String::new(),
        retry_after: None,
        too_large,
    })
}

impl Voyage {
    fn begin(seed: u64) -> Self {
        static START: OnceLock<Instant> = OnceLock::new();
        let core = core();
        let dice = Entropy::seeded(seed);
        Self {
            now: *START.get_or_init(|| Clock::system().now()),
            server: Server::new(),
            fifo: Fifo::new(None, 0),
            machine: machine(None, false, &dice),
            asked: 0,
            opening: None,
            trust: Trust::Cached,
            doing: Doing::Nothing,
            witness: Witness::new(core.subscribe("test", || {})),
            calm: false,
            core,
            dice,
        }
    }

    fn chance(&self, of: u64) -> bool {
        !self.calm && self.dice.range(0..of) == 0
    }

    fn few(&self, most: usize) -> usize {
        self.dice.range(1..most as u64 + 1) as usize
    }

    fn step(&mut self, restores: bool) {
        let roll = self.dice.range(0..100);
        if std::env::var("TRACE").is_ok() {
            eprintln!(
                "roll {roll} server {} floor {} low {:?} store {:?} doing {}",
                self.server.version(),
                self.server.floor,
                self.core.low_water(),
                self.core.reader().list(None),
                match &self.doing {
                    Doing::Nothing => "nothing".into(),
                    Doing::Page { at, .. } => format!("page {at}"),
                    Doing::Stream { .. } => "stream".into(),
                    Doing::Watch { cursor } => format!("watch {cursor}"),
                }
            );
        }
        match roll {
            0..22 => self.server.put(self.dice.range(0..5) as u8),
            22..31 => self.server.delete(self.dice.range(0..5) as u8),
            31..34 => self.server.compact(),
            34..72 => self.advance(self.few(4)),
            72..75 => self.breaks(),
            75..87 => self.pop(self.few(4)),
            87..89 => self.indexer_dies(),
            89..91 => self.resume(),
            91..93 => self.fifo_dies(),
            93 => drop(self.core.relist()),
            94 if restores => {
                self.server.restore(&self.dice);
                // once the server has used the versions again nobody can tell, so whoever restores it asks for a list
                self.core.relist();
                self.witness.server_went_back();
            }
            _ => {
                let (max, ack) = (self.few(4), self.dice.range(0..5) > 0);
                self.witness.hear(max, ack, &self.server);
            }
        }
    }

    /// The reflector does the next thing it has to do.
    fn advance(&mut self, count: usize) {
        match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Nothing => self.plan(),
            Doing::Page { at, items, next } => self.page(at, items, next, count),
            Doing::Stream { told, doubts } => self.stream(told, doubts, count),
            Doing::Watch { cursor } => self.watch(cursor, count),
        }
    }

    fn plan(&mut self) {
        let (wanted, _) = self.core.relists();
        if wanted > self.asked {
            self.asked = wanted;
            self.machine.asked();
        }
        match self.machine.plan(self.now) {
            Plan::Wait(until) => self.now = until,
            Plan::List(list) => match self.open_list(&list) {
                Ok(doing) => self.doing = doing,
                Err(failure) => self.list_fails(&failure),
            },
            Plan::Stream(list) => self.open_stream(&list),
            Plan::Watch { version, .. } => self.open_watch(number(&version)),
            Plan::Probe if self.chance(4) => {
                self.machine
                    .probe_failed(&Failure::Timeout(Duration::ZERO), self.now);
            }
            Plan::Probe => self.machine.probed(version(self.server.version())),
        }
    }

    /// What a request meets before the server looks at it.
    fn weather(&self) -> Option<Failure> {
        if !self.chance(6) {
            return None;
        }
        Some(match self.dice.range(0..5) {
            0 => Failure::Transport("connection refused".into()),
            1 => refused(429, false),
            2 => refused(500, false),
            3 => refused(410, false),
            _ => refused(404, false),
        })
    }

    /// Which state a server shows that is asked for `at`; one that is not honest may show an older one than it should.
    fn state(&self, at: &At) -> Result<usize, Failure> {
        let latest = self.server.version();
        let from = match at {
            At::Now => return Ok(latest),
            At::Any => self.server.floor,
            At::NotOlderThan(_) if self.chance(10) => self.server.floor,
            At::NotOlderThan(known) if number(known) > latest => {
                return Err(refused(504, true));
            }
            At::NotOlderThan(known) => number(known).max(self.server.floor),
        };
        let from = if self.calm { latest } else { from.min(latest) };
        Ok(self.dice.range(from as u64..latest as u64 + 1) as usize)
    }

    fn open_list(&mut self, list: &List) -> Result<Doing, Failure> {
        if list.token.is_none() {
            self.open(&list.at);
        }
        if let Some(failure) = self.weather() {
            return Err(failure);
        }
        let (at, begin) = match list
            .token
            .as_deref()
            .and_then(|token| token.split_once(':'))
        {
            Some((at, begin)) => (at.parse().unwrap(), begin.parse().unwrap()),
            None => (self.state(&list.at)?, 0),
        };
        let Some(items) = self.server.items(at) else {
            return Err(refused(410, false));
        };
        let limit = list.limit.map_or(usize::MAX, |limit| limit as usize);
        let rest = items.len().saturating_sub(begin);
        let next = (rest > limit).then(|| format!("{at}:{}", begin + limit));
        let items = items.into_iter().skip(begin).take(limit).collect();
        Ok(Doing::Page { at, items, next })
    }

    fn open(&mut self, at: &At) {
        let (trust, answers) = match at {
            At::Now => (Trust::Quorum, self.asked),
            _ => (Trust::Cached, 0),
        };
        let cause = match self.core.synced() {
            true => Cause::Relist,
            false => Cause::Initial,
        };
        self.trust = match (trust, self.core.low_water()) {
            (Trust::Quorum, Some(_)) => Trust::Restored,
            (trust, _) => trust,
        };
        self.opening = Some(Replace {
            answers,
            ..Replace::new(self.core.next_epoch(), trust, cause)
        });
    }

    fn begins(&mut self, at: Option<usize>) {
        let Some(mut replace) = self.opening.take() else {
            return;
        };
        let ahead = at.is_some_and(|at| self.machine.is_ahead_of(&version(at)));
        if replace.trust == Trust::Quorum && ahead {
            replace.trust = Trust::Restored;
        }
        self.trust = replace.trust;
        self.fifo.replace_begin(replace);
    }

    fn page(&mut self, at: usize, mut items: VecDeque<Object>, next: Option<String>, count: usize) {
        if let Err(failure) = self.machine.accept(Some(&version(at))) {
            return self.list_fails(&failure);
        }
        self.begins(Some(at));
        if std::env::var("TRACE").is_ok() {
            eprintln!(
                "page at {at} {items:?} next {next:?} trust {:?}",
                self.trust
            );
        }
        for item in items.drain(..count.min(items.len())) {
            let item = self.reuse(item);
            self.fifo.push(Delta::Listed(item), None);
        }
        if !items.is_empty() {
            self.doing = Doing::Page { at, items, next };
            return;
        }
        let meta = ListMeta {
            version: version(at),
            next,
        };
        if let Some(version) = self.machine.listed(&meta) {
            self.fifo.replace_end(version, true);
        }
    }

    fn reuse(&self, item: Object) -> Object {
        let stored = self
            .core
            .get(item.key())
            .filter(|stored| self.trust != Trust::Restored && stored.is_same_state(&item));
        stored.unwrap_or(item)
    }

    fn list_fails(&mut self, failure: &Failure) {
        self.fifo.replace_abort();
        self.opening = None;
        self.machine.list_failed(failure, self.now);
    }

    fn open_stream(&mut self, list: &StreamList) {
        if self.chance(8) {
            return self.machine.not_streamed();
        }
        self.open(&list.at);
        let failure = match self.dice.range(0..12) {
            0 if !self.calm => Some(refused(422, false)),
            _ => self.weather(),
        };
        let at = match failure {
            Some(failure) => Err(failure),
            None => self.state(&list.at),
        };
        let at = match at {
            Ok(at) => at,
            Err(failure) => return self.stream_ends(&End::NotOpened(failure)),
        };
        let until = self.dice.range(at as u64..self.server.version() as u64 + 1) as usize;
        let items = self.server.items(at).unwrap_or_default();
        let mut told: VecDeque<_> = items
            .into_iter()
            .map(|item| Told::Item(Delta::Seen(item)))
            .collect();
        told.extend(self.server.events(at, until).map(Told::Item));
        if !self.chance(8) {
            told.push_back(Told::End(until));
        }
        let known = match &list.at {
            At::NotOlderThan(known) => Some(known.clone()),
            At::Any | At::Now => None,
        };
        let doubts = Doubts::new(known);
        if std::env::var("TRACE").is_ok() {
            eprintln!(
                "stream {list:?} at {at} until {until} {doubts:?} trust {:?}",
                self.trust
            );
        }
        self.doing = Doing::Stream { told, doubts };
    }

    fn stream(&mut self, mut told: VecDeque<Told>, mut doubts: Doubts, count: usize) {
        for _ in 0..count {
            match told.pop_front() {
                None => return self.stream_ends(&End::Silent),
                Some(Told::Item(delta)) => {
                    let delta = match delta {
                        Delta::Seen(item) => Delta::Listed(self.reuse(item)),
                        other => other,
                    };
                    let settled = doubts.are_settled_by(self.core.low_water().as_ref());
                    let stored = settled && self.core.get(delta.key()).is_some();
                    match doubts.take(delta, stored) {
                        Ok(None) => {}
                        Ok(Some(delta)) => {
                            self.begins(None);
                            if std::env::var("TRACE").is_ok() {
                                eprintln!("push {delta:?}");
                            }
                            self.fifo.push(delta, None);
                        }
                        Err(failure) => return self.stream_ends(&End::Error(failure)),
                    }
                }
                Some(Told::End(until)) => {
                    if let Err(failure) = self.machine.accept(Some(&version(until))) {
                        return self.stream_ends(&End::Error(failure));
                    }
                    self.begins(Some(until));
                    for delta in doubts.proved() {
                        self.fifo.push(delta, None);
                    }
                    self.machine.streamed(&version(until), self.now);
                    self.fifo.replace_end(version(until), true);
                    self.doing = Doing::Watch { cursor: until };
                    return;
                }
            }
        }
        self.doing = Doing::Stream { told, doubts };
    }

    fn stream_ends(&mut self, end: &End) {
        self.fifo.replace_abort();
        self.opening = None;
        self.machine.stream_ended(end, self.now);
    }

    fn open_watch(&mut self, cursor: usize) {
        if let Some(failure) = self.weather() {
            return self.machine.watch_ended(&End::NotOpened(failure), self.now);
        }
        self.machine.opened(self.now);
        self.doing = Doing::Watch { cursor };
    }

    fn watch(&mut self, cursor: usize, count: usize) {
        if self.core.relists().0 > self.asked {
            return self.machine.watch_ended(&End::Asked, self.now);
        }
        if cursor < self.server.floor {
            let expired = End::Error(refused(410, false));
            return self.machine.watch_ended(&expired, self.now);
        }
        let until = (cursor + count).min(self.server.version());
        if until <= cursor {
            // a server that knows no more says so, or says nothing; to a client from the future it says nothing
            if cursor > until || self.chance(3) {
                self.now += self.machine.silence();
                return self.machine.watch_ended(&End::Silent, self.now);
            }
            self.machine.advanced(&version(cursor));
            self.fifo.bookmark(version(cursor));
        }
        // some of it may have been told before
        let from = match self.chance(6) {
            true => cursor.saturating_sub(self.few(5)).max(self.server.floor),
            false => cursor,
        };
        for event in self
            .server
            .events(from, until.max(cursor))
            .collect::<Vec<_>>()
        {
            let at = event.version().cloned();
            if std::env::var("TRACE").is_ok() {
                eprintln!("event {event:?}");
            }
            self.fifo.push(event, None);
            if let Some(at) = at {
                self.machine.advanced(&at);
            }
        }
        let cursor = until.max(cursor);
        self.doing = Doing::Watch { cursor };
    }

    /// What is open breaks off.
    fn breaks(&mut self) {
        let reset = Failure::Transport("connection reset".into());
        let lived = Duration::from_secs(self.dice.range(0..30));
        match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Nothing => {}
            Doing::Page { .. } => self.list_fails(&reset),
            Doing::Stream { .. } => self.stream_ends(&End::Closed),
            Doing::Watch { .. } => {
                self.now += lived;
                let end = match self.dice.range(0..4) {
                    0 => End::Error(refused(500, false)),
                    1 => End::Unreadable,
                    _ => End::Closed,
                };
                self.machine.watch_ended(&end, self.now);
            }
        }
    }

    fn pop(&mut self, max: usize) {
        if let Some(batch) = self.fifo.pop(max) {
            if std::env::var("TRACE").is_ok() {
                eprintln!("batch {batch:?}");
            }
            self.core.hand_over(batch);
            self.core.commit_in_hand();
            self.witness.look(&self.core);
        }
    }

    /// It dies with a batch in hand, before or after it committed some of it; the reflector is started anew with it.
    fn indexer_dies(&mut self) {
        if let Some(batch) = self.fifo.pop(self.few(4)) {
            self.core.hand_over(batch);
            {
                let mut hand = crate::sync::lock(&self.core.hand);
                let in_hand = hand.as_mut().unwrap();
                in_hand.begun = 1;
                let done = (self.few(5) - 1).min(in_hand.batch.steps.len());
                self.core.commit(&in_hand.batch.steps[..done], None);
            }
            self.core.commit_in_hand();
            self.witness.look(&self.core);
        }
        self.resume();
    }

    fn fifo_dies(&mut self) {
        self.fifo = Fifo::new(self.core.low_water(), self.core.epoch());
        self.reflector_begins(self.core.low_water(), false);
    }

    /// The reflector dies.
    fn resume(&mut self) {
        let (position, exact) = self.fifo.resume();
        self.reflector_begins(position, exact);
    }

    fn reflector_begins(&mut self, position: Option<Version>, exact: bool) {
        (self.doing, self.opening) = (Doing::Nothing, None);
        self.asked = self.core.relists().1;
        self.machine = machine(position, exact, &self.dice);
    }

    /// Nothing goes wrong any more: everything comes right.
    fn end(mut self) {
        self.calm = true;
        for _ in 0..2000 {
            let (wanted, answered) = self.core.relists();
            let latest = self.server.version();
            if matches!(self.doing, Doing::Watch { cursor } if cursor == latest)
                && (wanted, self.fifo.len()) == (answered, 0)
                && self.core.low_water() == Some(version(latest))
            {
                return self.witness.end(&self.core, &self.server);
            }
            self.advance(3);
            self.pop(3);
        }
        panic!(
            "never at rest: {:?}, server at {}",
            self.core,
            self.server.version()
        );
    }
}

fn machine(position: Option<Version>, exact: bool, dice: &Entropy) -> Machine {
    let silence = Duration::from_secs(180);
    let mut machine = Machine::new(position, exact, PAGE, silence, dice.clone());
    machine.allow_streams(dice.range(0..4) > 0);
    machine
}

fn sail(seeds: std::ops::Range<u64>, restores: bool) {
    let one = |seed: u64| {
        let sailed = catch_unwind(AssertUnwindSafe(|| {
            let mut voyage = Voyage::begin(seed);
            for _ in 0..voyage.dice.range(5..80) {
                voyage.step(restores);
            }
            voyage.end();
        }));
        assert!(sailed.is_ok(), "seed {seed}");
    };
    match std::env::var("BOATSWAIN_SEED") {
        Ok(seed) => one(seed.parse().unwrap()),
        Err(_) => seeds.for_each(one),
    }
}

#[test]
fn after_any_voyage_store_and_subscriber_are_as_the_server_and_every_end_was_told_once() {
    sail(0..120_000, false);
}

#[test]
fn so_they_are_after_a_voyage_with_a_server_that_goes_back_in_time() {
    sail(1_000_000..1_080_000, true);
}
