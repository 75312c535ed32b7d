//! Whether runs may begin, and if not, why.

use std::{
    fmt,
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Instant,
};

use boatswain_cache::{InformerCore, View};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::sync::lock;

/// The stop of a manager, as the shards and workers of all its controllers see it, or of one of them.
///
/// From the moment it begins no run starts any more, and those that run have until its end. The tree stops one actor after the other;
/// this is what makes the grace period one for all of them.
#[derive(Clone, Default)]
pub(crate) struct Closing(Arc<Stop>);

#[derive(Default)]
struct Stop {
    end: OnceLock<Instant>,
    /// What this is a part of.
    of: Option<Closing>,
}

impl Closing {
    /// The stop of one among all.
    pub(crate) fn of_one(&self) -> Self {
        Self(Arc::new(Stop {
            end: OnceLock::new(),
            of: Some(self.clone()),
        }))
    }

    /// Only the first call counts.
    pub(crate) fn begin(&self, end: Instant) {
        self.0.end.get_or_init(|| end);
    }

    /// When what still runs is cancelled; `None` as long as it has not begun.
    pub(crate) fn end(&self) -> Option<Instant> {
        let Stop { end, of } = &*self.0;
        end.get().copied().or_else(|| of.as_ref()?.end())
    }
}

/// A controller whose runs are held back by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pause {
    /// By whom, or why, in words for people.
    pub by: String,
    /// Since when.
    pub since: jiff::Timestamp,
}

/// Why no run of a controller begins. Of several reasons the first counts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shut {
    /// The manager stops, or the controller is removed.
    Closing,
    /// Another process leads.
    Standby,
    /// Somebody [paused](crate::ControllerHandle::pause) it.
    Paused(Pause),
    /// The caches have never held the whole state of these, which it reads.
    NotSynced(Vec<String>),
}

/// What lets the runs of one controller begin. It outlives every actor.
///
/// Runs that go on are left alone by it, and keys are collected and coalesced all the same. Who opens it wakes the shards.
#[derive(Clone)]
pub(crate) struct Gate(Arc<Inner>);

struct Inner {
    closing: Closing,
    /// Every cache the reconciler reads: no key runs before all of them have been synced. A handle keeps none of them in use.
    caches: Weak<Vec<View>>,
    /// Whether they have been: what is added to them later holds up nobody.
    ready: AtomicBool,
    standby: AtomicBool,
    /// Whether it has ever been a standby, so that it may be again.
    is_elected: AtomicBool,
    roles: Notify,
    /// Whether there is a pause: what starts a run need not take the lock to learn that there is none.
    is_paused: AtomicBool,
    pause: Mutex<Option<Pause>>,
}

impl Gate {
    pub(crate) fn new(closing: Closing, caches: &Arc<Vec<View>>) -> Self {
        Self(Arc::new(Inner {
            closing,
            caches: Arc::downgrade(caches),
            ready: false.into(),
            standby: false.into(),
            is_elected: false.into(),
            roles: Notify::new(),
            is_paused: false.into(),
            pause: Mutex::default(),
        }))
    }

    /// Whether runs may begin: the caches hold what a reconciler must see, and nobody holds them back.
    pub(crate) fn is_open(&self) -> bool {
        self.is_let_through() && self.is_ready()
    }

    /// Whether a run that has been started may still begin.
    pub(crate) fn is_let_through(&self) -> bool {
        let Inner {
            closing,
            standby,
            is_paused,
            ..
        } = &*self.0;
        closing.end().is_none() && !standby.load(Relaxed) && !is_paused.load(Relaxed)
    }

    /// None after the end.
    fn caches(&self) -> Arc<Vec<View>> {
        self.0.caches.upgrade().unwrap_or_default()
    }

    /// The informers behind the caches.
    pub(crate) fn cores(&self) -> Vec<Arc<InformerCore>> {
        let caches = self.caches();
        caches
            .iter()
            .flat_map(|view| view.cores().to_vec())
            .collect()
    }

    /// Whether the caches hold, or held once, what a reconciler must see.
    pub(crate) fn is_ready(&self) -> bool {
        let ready = &self.0.ready;
        if !ready.load(Relaxed) && self.caches().iter().all(View::synced) {
            ready.store(true, Relaxed);
        }
        ready.load(Relaxed)
    }

    /// Waits until all caches are synced, those that are added meanwhile, too.
    pub(crate) async fn wait_ready(&self) {
        while !self.is_ready() {
            for cache in &*self.caches() {
                cache.wait_synced().await;
            }
        }
    }

    /// Why runs may not begin.
    pub(crate) fn shut(&self) -> Option<Shut> {
        let Inner {
            closing, standby, ..
        } = &*self.0;
        if closing.end().is_some() {
            Some(Shut::Closing)
        } else if standby.load(Relaxed) {
            Some(Shut::Standby)
        } else if let Some(pause) = self.pause() {
            Some(Shut::Paused(pause))
        } else if !self.is_ready() {
            let cores = self.cores().into_iter();
            let missing = cores.filter(|core| !core.synced());
            Some(Shut::NotSynced(
                missing
                    .map(|core| crate::informers::name(core.selection()))
                    .collect(),
            ))
        } else {
            None
        }
    }

    /// No run begins any more; those that run have until `end`.
    pub(crate) fn close(&self, end: Instant) {
        self.0.closing.begin(end);
    }

    /// What is wrong with the caches: they have been refused something, or never held the whole state.
    pub(crate) fn cache_troubles(&self) -> Vec<String> {
        let troubles = self.cores().into_iter().filter_map(|core| {
            let name = crate::informers::name(core.selection());
            match core.degraded() {
                Some(degraded) => Some(format!("informer {name}: {degraded}")),
                None if !core.synced() => Some(format!("informer {name}: not synced yet")),
                None => None,
            }
        });
        troubles.collect()
    }

    /// The end of the grace period of a stop that has begun.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.0.closing.end()
    }

    pub(crate) fn pause(&self) -> Option<Pause> {
        lock(&self.0.pause).clone()
    }

    /// Holds runs back, or not any more; gives the pause there was. A pause over a pause says who was the last, and since when the first holds.
    pub(crate) fn set_pause(&self, pause: Option<Pause>) -> Option<Pause> {
        let mut present = lock(&self.0.pause);
        self.0.is_paused.store(pause.is_some(), Relaxed);
        let before = present.take();
        let since = before.as_ref().map(|before| before.since);
        *present = pause.map(|pause| Pause {
            since: since.unwrap_or(pause.since),
            ..pause
        });
        before
    }

    pub(crate) fn set_standby(&self, standby: bool) {
        if standby {
            self.0.is_elected.store(true, Relaxed);
        }
        self.0.standby.store(standby, Relaxed);
        self.0.roles.notify_waiters();
    }

    pub(crate) fn is_standby(&self) -> bool {
        self.0.standby.load(Relaxed)
    }

    /// Waits until the process leads no more: for ever where nobody is elected, and at no cost then.
    pub(crate) async fn demoted(&self) {
        match self.0.is_elected.load(Relaxed) {
            true => self.role(true).await,
            false => std::future::pending().await,
        }
    }

    /// Waits until the process leads, or works without being elected.
    pub(crate) async fn promoted(&self) {
        self.role(false).await;
    }

    async fn role(&self, standby: bool) {
        loop {
            let changed = self.0.roles.notified();
            tokio::pin!(changed);
            // registered before the look, so that a change in between is not missed
            changed.as_mut().enable();
            if self.is_standby() == standby {
                return;
            }
            changed.await;
        }
    }

    /// For the tree.
    pub(crate) fn fact(&self) -> Value {
        match self.shut() {
            None => json!("open"),
            Some(Shut::Paused(pause)) => {
                json!({ "paused": { "by": pause.by, "since": pause.since.to_string() } })
            }
            Some(shut) => json!(shut.to_string()),
        }
    }
}

impl fmt::Display for Shut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closing => f.write_str("it stops"),
            Self::Standby => f.write_str("on standby: this process does not lead"),
            Self::Paused(Pause { by, since }) => write!(f, "paused since {since:.0} by {by}"),
            Self::NotSynced(missing) => {
                write!(f, "the cache is not synced yet: {}", missing.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_opens_when_nothing_shuts_it_and_says_the_first_reason() {
        let (closing, by) = (Closing::default(), "ann".to_owned());
        let gate = Gate::new(closing.clone(), &Arc::default());
        assert!(gate.is_open() && gate.shut().is_none());
        let since = jiff::Timestamp::UNIX_EPOCH;
        gate.set_pause(Some(Pause { by, since }));
        let shut = gate.shut().expect("it is paused");
        assert!(!gate.is_open());
        assert_eq!(shut.to_string(), "paused since 1970-01-01T00:00:00Z by ann");
        let (by, since) = ("bob".to_owned(), jiff::Timestamp::MAX);
        let before = gate.set_pause(Some(Pause { by, since }));
        assert_eq!(before.expect("it was paused").by, "ann");
        let shut = gate.shut().expect("it is paused");
        assert_eq!(
            shut.to_string(),
            "paused since 1970-01-01T00:00:00Z by bob",
            "it began once"
        );
        gate.set_standby(true);
        assert_eq!(gate.shut(), Some(Shut::Standby));
        gate.set_pause(None);
        assert!(!gate.is_open());
        gate.set_standby(false);
        assert!(gate.is_open());
        closing.begin(boatswain_supervision::Clock::system().now());
        assert_eq!(gate.shut(), Some(Shut::Closing));
        assert!(!gate.is_let_through());
    }
}
