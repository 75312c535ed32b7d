//! The event recorder: tells on the objects themselves what was done to them (`kubectl describe`).
//!
//! Whoever has something to tell leaves a [`Note`] and goes on; one actor writes what comes of it as `events.k8s.io/v1` Events. What repeats itself raises
//! the count of an Event instead of making another.

mod accounts;
mod actor;
mod answer;
mod counts;
mod note;
mod spam;
mod state;

use std::sync::{Arc, Mutex};

pub(crate) use accounts::Accounts;
pub(crate) use actor::RecorderActor;
use answer::{Answer, GivenUp};
use boatswain_supervision::{Clock, Entropy};
pub(crate) use counts::Counts;
pub use note::Note;
pub(crate) use note::Severity;
use state::{Next, State};
use tokio::sync::Notify;

use crate::{
    leader::{Role, hostname},
    sync::lock,
};

/// Where Events about objects outside of namespaces may be: the server takes them in one of these, older ones only in the second.
pub(crate) const OUTSIDE: [&str; 2] = [note::NOWHERE, note::NOWHERE_BEFORE];

/// The way into a recorder, with all that it knows: it outlives every incarnation of the actor that writes.
#[derive(Clone)]
pub(crate) struct Recorder(Arc<Inner>);

struct Inner {
    /// Nothing is awaited, and no code of a user's runs, while it is locked.
    state: Arc<Mutex<State>>,
    accounts: Accounts,
    wake: Notify,
    clock: Clock,
    entropy: Entropy,
}

/// What a scrape sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecorderView {
    pub(crate) counts: Counts,
    /// Events that wait to be written.
    pub(crate) waiting: usize,
    /// Series that are remembered.
    pub(crate) series: usize,
}

impl Recorder {
    pub(crate) fn new(clock: Clock, entropy: Entropy, accounts: &Accounts) -> Self {
        // 32 bits: names stay short
        let state = State::new(hostname(), entropy.next() >> 32);
        let state = Arc::new(Mutex::new(state));
        accounts.open(&state);
        Self(Arc::new(Inner {
            state,
            accounts: accounts.clone(),
            wake: Notify::new(),
            clock,
            entropy,
        }))
    }

    /// Takes `note`, which `source` tells, or drops and counts it. Waits for nothing.
    pub(crate) fn publish(&self, source: &str, note: &Note) {
        let Inner { clock, wake, .. } = &*self.0;
        let at = jiff::Timestamp::try_from(clock.wall()).unwrap_or(jiff::Timestamp::MAX);
        let news = lock(&self.0.state).note(source, note, at, clock.now());
        if news {
            wake.notify_one();
        }
    }

    /// Whether this process leads, or does not, or not any more: then nothing more is told of what it did.
    pub(crate) fn play(&self, role: Role) {
        match role {
            Role::Standby => lock(&self.0.state).stand_by(),
            Role::Leader(_) => self.lead(),
        }
    }

    /// This process leads.
    pub(crate) fn lead(&self) {
        lock(&self.0.state).lead();
    }

    fn waiting(&self) -> usize {
        lock(&self.0.state).waiting()
    }

    fn next(&self) -> Next {
        lock(&self.0.state).next(self.0.clock.now())
    }

    fn answered(&self, answer: Answer) -> Option<GivenUp> {
        let Inner { clock, entropy, .. } = &*self.0;
        let chance = entropy.unit();
        lock(&self.0.state).answered(answer, clock.now(), chance)
    }

    fn open(&self) {
        lock(&self.0.state).open();
    }

    fn close(&self) {
        lock(&self.0.state).close(self.0.clock.now());
        self.0.wake.notify_one();
    }

    /// The actor that writes is gone: for good, if it was to stop. Says how many notes are lost with it.
    fn left(&self) -> u64 {
        let mut state = lock(&self.0.state);
        if state.is_closing() {
            state.abandon()
        } else {
            0
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.accounts.close(&self.state);
    }
}
