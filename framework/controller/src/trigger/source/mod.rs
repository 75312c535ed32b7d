//! Keys that run for reasons outside of Kubernetes: somebody says so, a stream, or the clock.

mod actor;
mod backlog;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

pub(crate) use actor::SourceActor;
use backlog::Backlog;
use boatswain_cache::Key;
use boatswain_workqueue::{Lane, When};
use futures::stream::BoxStream;
use tokio::sync::Notify;

use crate::{
    dispatch::{Desk, Desks, shard_of},
    reconcile::Causes,
    sync::lock,
};

/// Makes a channel by which a program lets keys of a controller run: the [`Source`] goes to [`Controller::source`](crate::Controller::source). `capacity`
/// bounds the keys that wait in it, and, apart from those, the keys that have a time.
///
/// ```
/// # use std::sync::Arc;
/// # use boatswain::{Controller, Key, Outcome, channel};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// let (sender, webhooks) = channel(10_000);
/// let controller = Controller::<ConfigMap>::named("example").source("webhooks", webhooks);
/// // anywhere, on any thread, before the manager runs or while it does
/// sender.send(Key::new(Some("shop"), "web"))?;
/// # Ok::<(), boatswain::Full>(())
/// ```
pub fn channel(capacity: usize) -> (Sender, Source) {
    let shared = Arc::new(Shared {
        backlog: Mutex::new(Backlog::new(capacity)),
        news: Notify::new(),
        desks: OnceLock::new(),
        is_behind: AtomicBool::new(true),
    });
    (Sender(shared.clone()), Source(shared))
}

/// Lets keys run; cheap to clone, usable from any thread.
///
/// # Guarantees
///
/// - What was accepted leads to a run that begins later, whatever crashes meanwhile, as long as this process lives.
/// - A key that waits is held once, however often it is sent: memory follows keys, not messages.
#[derive(Clone)]
pub struct Sender(Arc<Shared>);

/// The other end of a [`Sender`].
#[must_use = "nothing runs unless it is a controller's source"]
pub struct Source(Arc<Shared>);

struct Shared {
    backlog: Mutex<Backlog>,
    news: Notify,
    /// Of the controller whose source it is, from the first time that its keys are handed out.
    desks: OnceLock<Weak<[Arc<Desk>]>>,
    /// Whether keys may be waiting, so that others stand in line behind them.
    is_behind: AtomicBool,
}

/// Too many other keys wait already; the key is handed back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot ask for a run of {0}: the channel is full; send it again later, or give the channel more room"
)]
pub struct Full(pub Key);

impl Sender {
    /// Runs `key` as soon as possible.
    ///
    /// # Errors
    ///
    /// [`Full`], never for a key that waits already.
    pub fn send(&self, key: Key) -> Result<(), Full> {
        self.send_in(Lane::Normal, key)
    }

    /// As [`Sender::send`], as urgent as `lane`.
    ///
    /// # Errors
    ///
    /// [`Full`], never for a key that waits already.
    pub fn send_in(&self, lane: Lane, key: Key) -> Result<(), Full> {
        if self.0.hand_over(&key, lane) {
            return Ok(());
        }
        self.change(key, |backlog, key| backlog.add(key, lane))
    }

    /// Runs `key` at `until`, a time of the manager's [clock](crate::Clock). A key has one time: `when` says which of two counts. A run for another reason
    /// does not change it.
    ///
    /// # Errors
    ///
    /// [`Full`], never for a key that has a time already.
    pub fn send_at(&self, key: Key, until: Instant, when: When) -> Result<(), Full> {
        self.change(key, |backlog, key| backlog.schedule(key, until, when))
    }

    /// Takes back the time of a key. Returns whether it had one.
    pub fn cancel(&self, key: &Key) -> bool {
        self.0.backlog().cancel(key)
    }

    /// Keys that wait in the channel, and those that have a time.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.backlog().len()
    }

    /// Whether no key waits and none has a time.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn change(&self, key: Key, change: impl FnOnce(&mut Backlog, Key) -> bool) -> Result<(), Full> {
        {
            let mut backlog = self.0.backlog();
            if !change(&mut backlog, key.clone()) {
                return Err(Full(key));
            }
            self.0.is_behind.store(true, Relaxed);
        }
        self.0.news.notify_one();
        Ok(())
    }
}

impl Shared {
    /// Puts a key on its desk at once if none waits here: the way by the actor of the source takes longer, and no key needs it but where the controller
    /// does not run yet, or stands by. False then.
    fn hand_over(&self, key: &Key, lane: Lane) -> bool {
        if self.is_behind.load(Relaxed) {
            return false;
        }
        let desks = self.desks.get().and_then(Weak::upgrade);
        let Some(desk) = desks
            .as_ref()
            .and_then(|desks| desks.get(shard_of(key, desks.len())))
        else {
            return false;
        };
        if desk.core.gate.is_standby() {
            return false;
        }
        let lane = desk.core.rank(key, lane);
        desk.add([(key.clone(), lane, Causes::EXTERNAL)]);
        true
    }

    /// Nothing waits, so that what is sent now need not either.
    fn caught_up(&self, desks: &Desks) {
        self.desks.get_or_init(|| Arc::downgrade(desks));
        self.is_behind.store(false, Relaxed);
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        lock(&self.backlog)
    }
}

/// Where the keys of a source come from.
pub(crate) enum Origin {
    Channel(Source),
    /// What a function of the author says, once per period.
    Every(Duration, Box<dyn Fn() -> Vec<Key> + Send + Sync>),
    /// A stream of the author's, made again when it ends.
    Stream(Box<dyn Fn() -> BoxStream<'static, Key> + Send + Sync>),
}

/// A source of a controller; it outlives its actor.
pub(crate) struct Spring {
    pub(crate) name: String,
    origin: Origin,
    /// When the first period began.
    born: OnceLock<Instant>,
}

impl Spring {
    pub(crate) fn new(name: String, origin: Origin) -> Self {
        Self {
            name,
            origin,
            born: OnceLock::new(),
        }
    }
}

#[cfg(test)]
mod tests;
