//! Looks at every node now and then, and finds those that block their thread and those that hang.

mod state;

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use futures::future::{Either, select};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::events::What;
use crate::panics::guard;
use crate::stats::{Node, Registry, Standing, millis};
use crate::thread::Thread;

pub(crate) use state::Watched;
use state::{Sample, Verdict};

/// An actor or supervisor that blocks its thread; see [`Observer::blocked`](crate::Observer::blocked).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// Its path.
    pub path: String,
    /// The name of its thread.
    pub thread: String,
    /// How long it has been inside one turn, in milliseconds, as far as the watchdog saw.
    pub for_ms: u64,
}

/// Counts the comings and goings of the task of a node: odd inside a turn. Written by that task only, so a store will do.
#[derive(Default)]
pub(crate) struct Turns(AtomicU32);

impl Turns {
    pub(crate) fn enter(&self) {
        self.step();
    }

    pub(crate) fn leave(&self) {
        self.step();
    }

    fn step(&self) {
        let steps = self.0.load(Ordering::Relaxed);
        self.0.store(steps.wrapping_add(1), Ordering::Relaxed);
    }

    fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The watchdog of one tree. Dropping it ends it; a thread of its own has ended by the time the drop returns.
pub(crate) enum Watchdog {
    /// Real time: one thread, since any other may be blocked.
    Thread {
        ended: Arc<AtomicBool>,
        handle: Option<JoinHandle<()>>,
    },
    /// Virtual time belongs to one thread: a task there.
    Task { _ended: oneshot::Sender<()> },
}

impl Watchdog {
    pub(crate) fn start(
        registry: &Arc<Registry>,
        patience: Duration,
        root: &Thread,
    ) -> Option<Watchdog> {
        // often enough to be late by half the patience at most, seldom enough to cost nothing
        let pause = (patience / 4).clamp(Duration::from_millis(1), Duration::from_secs(1));
        let rounds = Rounds {
            registry: Arc::downgrade(registry),
            patience,
            thread: registry.clock.is_paused().then(|| root.name().to_owned()),
            name: "watchdog".into(),
        };
        if registry.clock.is_paused() {
            let clock = registry.clock.clone();
            let (sender, mut ended) = oneshot::channel();
            root.run(move || {
                tokio::task::spawn_local(async move {
                    while let Either::Left(_) = select(pin!(clock.sleep(pause)), &mut ended).await
                        && rounds.go()
                    {}
                });
            });
            return Some(Watchdog::Task { _ended: sender });
        }
        let ended = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ended);
        let spawned = thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(move || {
                while !told.load(Ordering::Acquire) {
                    thread::park_timeout(pause);
                    if !rounds.go() {
                        break;
                    }
                }
            });
        match spawned {
            Ok(handle) => Some(Watchdog::Thread {
                ended,
                handle: Some(handle),
            }),
            Err(error) => {
                tracing::error!(
                    "cannot start a thread for the watchdog: the tree runs without one: {error}"
                );
                None
            }
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Watchdog::Thread { ended, handle } = self
            && let Some(handle) = handle.take()
        {
            ended.store(true, Ordering::Release);
            handle.thread().unpark();
            // a closure it drops may hold the tree; it cannot wait for itself
            if handle.thread().id() != thread::current().id() {
                let _ = handle.join();
            }
        }
    }
}

/// What a round needs to know.
struct Rounds {
    /// Weak: the watchdog keeps nothing alive.
    registry: Weak<Registry>,
    patience: Duration,
    /// The only thread whose nodes are looked at, where time is virtual: elsewhere it passes in jumps.
    thread: Option<String>,
    name: Arc<str>,
}

impl Rounds {
    /// Looks at every node once; false when none can come any more.
    fn go(&self) -> bool {
        // a node that has just been forgotten may be dropped here, and with it what an actor reported, which is foreign code
        guard(&self.name, || self.round()).unwrap_or(true)
    }

    fn round(&self) -> bool {
        let Some(registry) = self.registry.upgrade() else {
            return false;
        };
        if registry.tasks.load(Ordering::Acquire) == 0 {
            return false;
        }
        let now = registry.clock.now();
        registry.visit(|node| {
            let seen = self
                .thread
                .as_ref()
                .is_none_or(|name| name == node.thread.name());
            if seen && node.is_alive() {
                self.look(&registry, node, now);
            }
        });
        true
    }

    fn look(&self, registry: &Registry, node: &Node, now: Instant) {
        let (incarnation, verdict) = {
            let mut record = node.record();
            let incarnation = node.incarnation.load(Ordering::Acquire);
            let runs = record.standing == Standing::Running && record.ended != incarnation;
            let sample = Sample {
                incarnation,
                handled: node.gauge().handled(),
                inbox: node.gauge().depth(),
                works: runs && !node.is_suspended(),
                deadline: record.told.as_ref().and_then(|told| told.next_deadline()),
                turns: node.turns.count(),
            };
            let mut watched = record
                .watched
                .take()
                .map_or_else(Watched::default, |watched| *watched);
            let verdict = watched.look(now, self.patience, &sample);
            record.watched = (!watched.is_blank()).then(|| Box::new(watched));
            (incarnation, verdict)
        };
        let (path, thread) = (&*node.path, node.thread.name());
        match verdict {
            None => {}
            Some(Verdict::Blocked(time)) => {
                tracing::error!(path, thread, ?time, "actor blocks its thread");
                registry.tell(node, || What::Blocked {
                    for_ms: millis(time),
                });
            }
            Some(Verdict::Unblocked) => {
                tracing::warn!(path, thread, "actor blocks its thread no longer");
                registry.tell(node, || What::Unblocked);
            }
            Some(Verdict::Nudge) => node.control.nudge(),
            Some(Verdict::Hung) => {
                registry.tell(node, || What::Hung);
                if node.is_supervisor() {
                    tracing::error!(path, "supervisor hangs: nobody looks after its children");
                } else {
                    tracing::error!(path, "actor hangs: it is killed");
                    node.condemn(incarnation);
                }
            }
        }
    }
}

/// Everything that blocks its thread, as the watchdog last saw it.
pub(crate) fn blocked(registry: &Registry) -> Vec<Blocked> {
    let now = registry.clock.now();
    let mut blocked = Vec::new();
    registry.visit(|node| {
        let since = node.record().blocked();
        if let Some(since) = since.filter(|_| node.is_alive()) {
            blocked.push(Blocked {
                path: node.path.to_string(),
                thread: node.thread.name().to_owned(),
                for_ms: millis(now.saturating_duration_since(since)),
            });
        }
    });
    blocked
}

#[cfg(test)]
mod tests;
