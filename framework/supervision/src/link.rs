//! What an actor knows of its place in the tree.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::Value;

use crate::backoff::Backoff;
use crate::clock::Clock;
use crate::intensity::Intensity;
use crate::random::Entropy;
use crate::stats::{Node, Registry};
use crate::thread::Thread;

/// What an actor knows of its place in the tree: path, incarnation, clock, randomness, and a place to leave facts for observers.
///
/// A link belongs to one incarnation. What a link of an earlier one reports, perhaps from a task that outlived it, is ignored.
#[derive(Clone)]
pub struct Link {
    pub(crate) node: Arc<Node>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) thread: Thread,
    pub(crate) incarnation: u32,
    /// Of a supervisor: who hears when it gives up.
    pub(crate) rung: Option<Arc<Rung>>,
}

/// A supervisor that hears when the one below it gives up, and in turn may give up itself.
pub(crate) struct Rung {
    pub(crate) supervisor: Arc<str>,
    pub(crate) intensity: Intensity,
    /// How it treats the one below.
    pub(crate) backoff: Backoff,
    pub(crate) above: Option<Arc<Rung>>,
}

impl Link {
    /// The ids from the root down to this actor, joined by `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.node.path
    }

    /// Which life of this actor this is, counted from 1.
    #[must_use]
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// The tree's clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.registry.clock
    }

    /// The tree's source of randomness.
    #[must_use]
    pub fn entropy(&self) -> &Entropy {
        &self.registry.entropy
    }

    /// Attaches a named fact to this actor's node: `read` is called whenever somebody looks at the tree, on their thread.
    ///
    /// A fact of the same name is replaced; all facts go when the next incarnation begins. `read` should be quick; if it panics the fact shows as null.
    pub fn report(&self, name: &'static str, read: impl Fn() -> Value + Send + Sync + 'static) {
        if self.is_current() {
            let replaced = self.node.record().facts.insert(name, Arc::new(read));
            // what a closure drops is foreign code; the lock is free again by now
            drop(replaced);
        }
    }

    /// Says that this actor works, but not as it should, and why; `None` takes it back, and so does the next incarnation.
    pub fn degraded(&self, why: Option<String>) {
        if self.is_current() {
            self.node.record().degraded = why;
        }
    }

    fn is_current(&self) -> bool {
        self.node.incarnation.load(Ordering::Acquire) == self.incarnation
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("path", &self.path())
            .field("incarnation", &self.incarnation)
            .finish_non_exhaustive()
    }
}
