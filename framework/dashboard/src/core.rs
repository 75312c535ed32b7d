//! What outlives the dashboard's actor: the source, the last picture, the history.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use boatswain_supervision::{Clock, Event, Events};
use bytes::Bytes;
use tokio::sync::{Notify, Semaphore, watch};

use crate::{
    health::{Memory, judge},
    history::History,
    server::{Guard, READERS},
    source::Source,
    view::{Controllers, Health, Overview},
};

/// Time between two pictures while somebody looks at them.
pub(crate) const PERIOD: Duration = Duration::from_secs(1);
/// The same while nobody does: it is known as precisely since when something is wrong.
const UNWATCHED: Duration = Duration::from_secs(10);
/// How long after a request somebody is taken to look on.
const INTEREST: Duration = Duration::from_secs(10);
/// Events of the tree that are kept.
const EVENTS: usize = 50;

/// The dashboard of one process; cheap to clone.
#[derive(Clone)]
pub struct Dashboard(Arc<Inner>);

struct Inner {
    clock: Clock,
    guard: Guard,
    source: OnceLock<Arc<dyn Source>>,
    state: Mutex<State>,
    shown: watch::Sender<Option<Arc<Picture>>>,
    readers: Arc<Semaphore>,
    /// Somebody begins to look.
    noticed: Notify,
}

#[derive(Default)]
struct State {
    history: History,
    memory: Memory,
    events: VecDeque<Event>,
    /// When the last picture was taken.
    taken: Option<Instant>,
    /// When somebody last asked for one.
    asked: Option<Instant>,
}

impl State {
    /// Whether somebody has asked for a picture lately.
    fn is_asked(&self, now: Instant) -> bool {
        self.asked.is_some_and(|asked| now - asked < INTEREST)
    }
}

/// The overview of one moment; its JSON is made once, and only if somebody reads it.
pub(crate) struct Picture {
    pub(crate) overview: Overview,
    frame: OnceLock<Bytes>,
}

impl Picture {
    /// As an event of the stream.
    pub(crate) fn frame(&self) -> Bytes {
        let frame = self.frame.get_or_init(|| {
            let at = self.overview.at_ms;
            // of plain data nothing can fail
            let json = serde_json::to_string(&self.overview).unwrap_or_default();
            format!("event: overview\nid: {at}\ndata: {json}\n\n").into()
        });
        frame.clone()
    }
}

impl Dashboard {
    /// One that has nothing to show yet; `guard` says who is answered.
    #[must_use]
    pub fn new(clock: Clock, guard: Guard) -> Self {
        Self(Arc::new(Inner {
            clock,
            guard,
            source: OnceLock::new(),
            state: Mutex::default(),
            shown: watch::Sender::new(None),
            readers: Arc::new(Semaphore::new(READERS)),
            noticed: Notify::new(),
        }))
    }

    /// Says what to look at; only the first call counts. Until then requests are told to come back.
    pub fn attach(&self, source: Arc<dyn Source>) {
        let _ = self.0.source.set(source);
    }

    pub(crate) fn source(&self) -> Option<&Arc<dyn Source>> {
        self.0.source.get()
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub(crate) fn guard(&self) -> &Guard {
        &self.0.guard
    }

    pub(crate) fn readers(&self) -> &Arc<Semaphore> {
        &self.0.readers
    }

    pub(crate) fn now_ms(&self) -> u64 {
        let since = self.0.clock.wall().duration_since(SystemTime::UNIX_EPOCH);
        let millis = since.unwrap_or_default().as_millis();
        u64::try_from(millis).unwrap_or(u64::MAX)
    }

    /// Takes a picture and shows it to all readers.
    pub(crate) fn look(&self) {
        let Some(source) = self.source() else { return };
        let at_ms = self.now_ms();
        let mut state = self.state();
        state.taken = Some(self.clock().now());
        let State {
            history,
            memory,
            events,
            ..
        } = &mut *state;
        let mut controllers = source.controllers();
        history.tell(&mut controllers, at_ms);
        let mut overview = Overview {
            at_ms,
            health: Health::default(),
            process: source.process(),
            actions: self.guard().acts(),
            tree: source.tree(),
            events: events.iter().cloned().collect(),
            controllers,
            informers: source.informers(),
            leases: source.leases(),
        };
        overview.health = judge(&overview, source.unready(), history, memory);
        drop(state);
        let picture = Picture {
            overview,
            frame: OnceLock::new(),
        };
        self.0.shown.send_replace(Some(Arc::new(picture)));
    }

    /// Writes down what happens in the tree, until the future is dropped.
    pub(crate) async fn listen(&self, mut events: Events) {
        while let Some(event) = events.next().await {
            // of those that were missed there are newer ones
            let Ok(event) = event else { continue };
            let events = &mut self.state().events;
            if events.len() >= EVENTS {
                events.pop_front();
            }
            events.push_back(event);
        }
    }

    /// Takes pictures until the future is dropped: one a second while somebody looks at them.
    pub(crate) async fn keep_looking(&self) {
        loop {
            self.look();
            self.rest().await;
        }
    }

    /// Waits until it is time for the next picture.
    async fn rest(&self) {
        loop {
            let pause = match self.is_watched() {
                true => PERIOD,
                false => UNWATCHED,
            };
            let Some(taken) = self.state().taken else {
                return;
            };
            tokio::select! {
                () = self.clock().sleep_until(taken + pause) => return,
                () = self.0.noticed.notified() => {}
            }
        }
    }

    fn is_watched(&self) -> bool {
        let is_read = self.0.readers.available_permits() < READERS;
        is_read || self.state().is_asked(self.clock().now())
    }

    /// The newest picture; a new one where nobody has looked for a while.
    pub(crate) fn picture(&self) -> Option<Arc<Picture>> {
        let now = self.clock().now();
        let (is_first, taken) = {
            let mut state = self.state();
            let is_first = !state.is_asked(now);
            state.asked = Some(now);
            (is_first, state.taken)
        };
        if taken.is_none_or(|taken| now - taken >= 2 * PERIOD) {
            self.look();
        }
        if is_first {
            self.0.noticed.notify_one();
        }
        self.0.shown.borrow().clone()
    }

    /// The newest picture and those that follow; who is slow misses some.
    pub(crate) fn pictures(&self) -> watch::Receiver<Option<Arc<Picture>>> {
        self.picture();
        self.0.shown.subscribe()
    }

    /// The controllers with their last minutes.
    pub(crate) fn controllers(&self) -> Option<Controllers> {
        let controllers = self.picture()?.overview.controllers.clone();
        let history = self.state().history.read();
        Some(Controllers {
            controllers,
            history,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // what a panic left is at worst a second old
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
