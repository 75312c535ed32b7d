//! What an actor knows of its place in the tree.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::backoff::Backoff;
use crate::clock::{Clock, later};
use crate::events::What;
use crate::intensity::Intensity;
use crate::mailbox::Tell;
use crate::monitor::{Down, Monitor};
use crate::panics::Foreign;
use crate::random::Entropy;
use crate::snapshot::Virtual;
use crate::stats::{Node, Registry, Told};

/// What an actor knows of its place in the tree: path, incarnation, clock, randomness, and a place to leave facts for observers.
///
/// A link belongs to one incarnation. What a link of an earlier one reports, perhaps from a task that outlived it, is ignored.
#[derive(Clone)]
pub struct Link {
    pub(crate) node: Arc<Node>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) incarnation: u32,
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
    /// A fact of the same name is replaced; all facts go when the next incarnation begins or the actor is gone for good. `read` should be quick; if it panics the fact shows as null.
    pub fn report(&self, name: &'static str, read: impl Fn() -> Value + Send + Sync + 'static) {
        let read = Foreign::new(read);
        let replaced = self.told(|told| told.facts.insert(name, Arc::new(move || read.get()())));
        // what a closure drops is foreign code; the lock is free again by now
        drop(replaced);
    }

    /// Shows children that this crate does not know, such as the keys of a shard: `read` is called whenever somebody looks at the tree, on their
    /// thread, with how many children to show at most.
    ///
    /// Called again it replaces the closure before; the closure goes as facts do. `read` should be quick; if it panics no children are shown.
    pub fn virtual_children(&self, read: impl Fn(usize) -> Virtual + Send + Sync + 'static) {
        let read = Foreign::new(read);
        let read = Arc::new(move |limit| read.get()(limit));
        let replaced = self.told(|told| told.virtual_children.replace(read));
        drop(replaced);
    }

    /// Says that this actor works, but not as it should, and why; `None` takes it back, and so does the next incarnation.
    pub fn degraded(&self, why: Option<String>) {
        let before = self.told(|told| std::mem::replace(&mut told.degraded, why.clone()));
        if before.is_some_and(|before| before != why) {
            self.registry.tell(&self.node, || What::Degraded { why });
        }
    }

    /// Declares work that may take this long, until the returned guard is dropped.
    ///
    /// The [watchdog](crate::TreeOptions::watchdog) leaves the actor alone until then, whatever waits in its mailbox. If the deadline passes and
    /// the guard still exists, the actor counts as hung, whatever else it handles: it is killed and ends with [`Exit::Stuck`](crate::Exit::Stuck).
    /// Of several declarations the earliest deadline counts. While the actor is suspended its time stands still.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use actix::{Actor, AsyncContext, fut::wrap_future};
    /// # use boatswain_supervision::{Context, supervised};
    /// # struct Importer;
    /// # supervised!(Importer);
    /// # async fn import() {}
    /// impl Actor for Importer {
    ///     type Context = Context<Self>;
    ///
    ///     fn started(&mut self, ctx: &mut Context<Self>) {
    ///         let work = ctx.link().deadline(Duration::from_secs(600));
    ///         ctx.wait(wrap_future(async move {
    ///             import().await; // no message is handled meanwhile
    ///             drop(work);
    ///         }));
    ///     }
    /// }
    /// ```
    pub fn deadline(&self, within: Duration) -> Work {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let now = self.clock().now();
        self.told(|told| {
            told.work.push((id, later(now, within)));
            if self.node.is_suspended() {
                told.rests_since.get_or_insert(now);
            }
        });
        Work {
            node: Arc::clone(&self.node),
            id,
        }
    }

    /// Tells of every end of the actor or supervisor at `path`, anywhere in this tree, until the [`Monitor`] is dropped; `None` if nothing is there.
    ///
    /// See [`Observer::monitor`](crate::Observer::monitor).
    pub fn monitor(&self, path: &str, tell: Tell<Down>) -> Option<Monitor> {
        self.registry.find(path)?.monitor(tell)
    }

    /// Lets the actor say something of itself, as long as this link's incarnation may.
    fn told<R>(&self, change: impl FnOnce(&mut Told) -> R) -> Option<R> {
        let mut record = self.node.record();
        // asked under the lock: what is told is taken back under it after these have changed
        let may = self.node.is_alive()
            && self.node.incarnation.load(Ordering::Acquire) == self.incarnation;
        may.then(|| change(record.told()))
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

/// Work an actor has declared by [`Link::deadline`]; dropping it says that the work is done.
#[must_use = "the work is done when this is dropped"]
pub struct Work {
    node: Arc<Node>,
    id: u64,
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Some(told) = &mut self.node.record().told {
            told.work.retain(|&(id, _)| id != self.id);
        }
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work")
            .field("path", &self.node.path)
            .finish_non_exhaustive()
    }
}
