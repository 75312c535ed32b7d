//! A running tree, from its first start to its last stop.

use std::fmt;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use tokio::sync::watch;

use crate::child::{Berth, RootState, Superior};
use crate::clock::Clock;
use crate::control::Order;
use crate::error::{SpecError, StartError, StillRunning};
use crate::events::Events;
use crate::exit::Exit;
use crate::mailbox::Tell;
use crate::monitor::{Down, Monitor};
use crate::operator::Operator;
use crate::panics::install_hook;
use crate::random::Entropy;
use crate::snapshot::{self, Counts, NodeSnapshot, TreeSnapshot};
use crate::spec::{ChildSpec, SupervisorSpec};
use crate::stats::{Node, NodeKind, Registry, Standing};
use crate::supervisor::{GRACE, SUPERVISOR_GRACE};
use crate::thread::Thread;
use crate::watchdog::{self, Blocked, Watchdog};

/// What a tree shares with all its actors.
#[derive(Clone, Debug)]
pub struct TreeOptions {
    /// The clock all delays and deadlines follow.
    pub clock: Clock,
    /// The source of jitter.
    pub entropy: Entropy,
    /// How long an actor may keep messages waiting without handling one, or keep its thread, before the watchdog takes it for hung or blocked; default
    /// 30 s, `None` for no watchdog.
    ///
    /// - *Hung*: messages wait, none has been handled for this long although the actor had its turns, and it has declared no deadline that is still
    ///   ahead; or a deadline it [declared](crate::Link::deadline) has passed. It is killed, ends with [`Exit::Stuck`], and its supervisor restarts it
    ///   as after any defect. A supervisor that hangs is only reported.
    /// - *Blocked*: it has been inside one and the same turn for this long. Nothing can interrupt it, so it is named: in the log, by
    ///   [`Observer::blocked`], in the snapshot as [`NodeState::Blocked`](crate::NodeState::Blocked), and as [`What::Blocked`](crate::What::Blocked).
    ///
    /// Found at most half of this, or 2 s, late. With a real clock the watchdog is a thread of its own, which ends with the tree; with a
    /// [paused](Clock::paused) one it is a task on the root's thread, and looks only at what runs there. An actor that was suspended or asked to stop,
    /// or waits for its restart, is not hung.
    pub watchdog: Option<Duration>,
}

impl Default for TreeOptions {
    /// Real time, a seed from the operating system, and a watchdog with a patience of 30 s.
    fn default() -> Self {
        TreeOptions {
            clock: Clock::system(),
            entropy: Entropy::from_os(),
            watchdog: Some(Duration::from_secs(30)),
        }
    }
}

/// A running tree. Dropping it kills all of its actors; [`stop`](Tree::stop) ends them in order.
pub struct Tree {
    observer: Observer,
    operator: Operator,
    root: Arc<Node>,
    state: watch::Receiver<RootState>,
    /// Ends, and is waited for, when the tree is dropped: after the last actor.
    watchdog: Option<Watchdog>,
}

impl Tree {
    /// Starts a tree in order: returns when every child has started.
    ///
    /// Must be called on a thread that runs an actix arbiter, unless `spec` names one. Installs, once per process, a panic hook that logs
    /// panics of supervised actors with their path and leaves all others, and all while no `tracing` subscriber is set, to the hook before it. Set hooks of your own before
    /// the first tree: one that replaces this costs exits their place in the source.
    ///
    /// # Errors
    /// If a child fails while it starts, or a specification contradicts itself; what had started by then has been stopped again, last first.
    ///
    /// # Cancellation safety
    /// Dropping the future kills what has started so far.
    pub async fn start(spec: SupervisorSpec, options: TreeOptions) -> Result<Tree, StartError> {
        install_hook();
        let TreeOptions {
            clock,
            entropy,
            watchdog,
        } = options;
        let ChildSpec {
            id,
            thread,
            gauged,
            below,
            launch,
            ..
        } = ChildSpec::supervisor(spec);
        SpecError::name(None, &id)?;
        let current = Thread::current();
        let thread = match &current {
            Some(current) => thread.or(current),
            None => thread,
        };
        let now = clock.now();
        let registry = Arc::new(Registry::new(clock, entropy));
        let (Some(below), true) = (below, thread.is_placed()) else {
            return Err(StartError::NoArbiter { path: id });
        };
        let kind = NodeKind::supervisor(below, None);
        let root = Node::new(None, &id, 0, kind, thread.clone(), gauged, now);
        let root = Arc::new(root);
        registry.set_root(&root);
        #[cfg(any(test, feature = "testing"))]
        crate::testing::Brood::add(&registry);
        // nobody restarts a root: its first exit is its last
        root.control.order(Order::Release);
        let (sender, mut state) = watch::channel(RootState::Starting);
        let observer = Observer {
            registry: Arc::clone(&registry),
        };
        let mut tree = Tree {
            operator: Operator::new(&registry),
            observer,
            root: Arc::clone(&root),
            state: state.clone(),
            watchdog: None,
        };
        launch(Berth {
            node: root,
            registry: Arc::clone(&registry),
            superior: Superior::Tree(sender),
        });
        tree.watchdog = watchdog.and_then(|patience| Watchdog::start(&registry, patience, &thread));
        let reached = state
            .wait_for(|state| !matches!(state, RootState::Starting))
            .await;
        match reached.map(|state| state.clone()) {
            Ok(RootState::Running | RootState::Starting) => Ok(tree),
            Ok(RootState::Ended(exit)) => Err(registry.start_error(&id, exit)),
            Err(_) => Err(StartError::failed(&id, Exit::Killed)),
        }
    }

    /// The tree at this moment. Never waits for an actor.
    #[must_use]
    pub fn snapshot(&self) -> TreeSnapshot {
        self.observer.snapshot()
    }

    /// A handle that can only look.
    #[must_use]
    pub fn observer(&self) -> Observer {
        self.observer.clone()
    }

    /// Waits until the root supervisor has given up, and returns how; the tree is then at its end and nothing of it runs, but for what blocks its thread.
    ///
    /// # Cancellation safety
    /// Dropping the future loses nothing; call it again.
    pub async fn exited(&mut self) -> Exit {
        match self
            .state
            .wait_for(|state| matches!(state, RootState::Ended(_)))
            .await
            .map(|state| state.clone())
        {
            Ok(RootState::Ended(exit)) => exit,
            Ok(_) | Err(_) => Exit::Killed,
        }
    }

    /// Stops the tree: children before their supervisors, last started first, each with its own grace; what is left at the deadline is killed, also what was
    /// not asked yet because a sibling with [`Shutdown::Infinity`](crate::Shutdown::Infinity) used the time up. An actor that was killed says so in its last
    /// [event](Observer::events) and to its monitors.
    ///
    /// Returns at most 3.5 s after the deadline.
    ///
    /// # Errors
    /// If something still runs, because it blocks its thread.
    ///
    /// # Cancellation safety
    /// Dropping the future kills what has not stopped by then.
    pub async fn stop(mut self, deadline: Duration) -> Result<(), StillRunning> {
        let clock = self.observer.registry.clock.clone();
        self.root.stand(Standing::Stopping);
        self.root.control.order(Order::Stop);
        if !self.ended_within(&clock, deadline).await {
            self.root.kill();
            self.ended_within(&clock, SUPERVISOR_GRACE + GRACE / 2)
                .await;
        }
        let paths = culprits(self.observer.alive());
        if paths.is_empty() {
            Ok(())
        } else {
            Err(StillRunning { paths })
        }
    }

    async fn ended_within(&mut self, clock: &Clock, patience: Duration) -> bool {
        // an end at the very deadline is an end
        matches!(
            select(pin!(self.exited()), pin!(clock.sleep(patience))).await,
            Either::Left(_)
        )
    }

    /// A handle that can change the tree while it runs. `Tree` offers all it can as its own.
    #[must_use]
    pub fn operator(&self) -> &Operator {
        &self.operator
    }

    #[cfg(test)]
    pub(crate) fn root_node(&self) -> &Arc<Node> {
        &self.root
    }

    #[cfg(test)]
    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.observer.registry
    }
}

/// Of what still runs, what others do not merely wait for.
fn culprits(alive: Vec<String>) -> Vec<String> {
    let waits = |path: &str| {
        alive.iter().any(|other| {
            other
                .strip_prefix(path)
                .is_some_and(|below| below.starts_with('/'))
        })
    };
    alive.iter().filter(|path| !waits(path)).cloned().collect()
}

impl Deref for Tree {
    type Target = Operator;

    fn deref(&self) -> &Operator {
        &self.operator
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.root.kill();
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("root", &self.root.path)
            .finish_non_exhaustive()
    }
}

/// Looks at a tree, from any thread, and also after the tree's end. Cheap to clone.
#[derive(Clone)]
pub struct Observer {
    pub(crate) registry: Arc<Registry>,
}

impl Observer {
    /// The tree at this moment. Never waits for an actor.
    #[must_use]
    pub fn snapshot(&self) -> TreeSnapshot {
        self.snapshot_with(snapshot::VIRTUAL_CHILDREN)
    }

    /// The same, with at most `limit` virtual children of each node rather than 64; see [`Link::virtual_children`](crate::Link::virtual_children).
    #[must_use]
    pub fn snapshot_with(&self, limit: usize) -> TreeSnapshot {
        snapshot::tree(&self.registry, limit)
    }

    /// The children of the supervisor at `path` in the order they start, each with all below it; `None` if there is no such supervisor. OTP's `which_children`.
    #[must_use]
    pub fn children(&self, path: &str) -> Option<Vec<NodeSnapshot>> {
        snapshot::children(&self.registry, path)
    }

    /// How many children the supervisor at `path` has; `None` if there is no such supervisor. OTP's `count_children`.
    #[must_use]
    pub fn count_children(&self, path: &str) -> Option<Counts> {
        snapshot::count_children(&self.registry, path)
    }

    /// What happens in the tree from now on: starts, exits, restarts, escalations.
    ///
    /// A reader is never waited for: up to 1,024 events are kept for one that is behind, and beyond that it is told how many it
    /// [missed](crate::Missed). Who must not miss an end asks for a [`monitor`](Self::monitor).
    #[must_use]
    pub fn events(&self) -> Events {
        self.registry.feed.listen()
    }

    /// Tells of every end of the actor or supervisor at `path`, until the [`Monitor`] is dropped; `None` if nothing is there. OTP's monitors.
    ///
    /// `tell` is called at the end of each incarnation, when everything of it has been dropped, on the thread where it ran. The word with
    /// [`last`](Down::last) comes exactly once: with the end itself if that is known to be the last, else in a word of its own once it is known that
    /// nothing will follow, with the same incarnation and exit again. An actor that is left behind, still running, counts as ended. No word is
    /// lost, not even if the supervisor of the actor fails. If `tell` panics that is logged, and hurts nobody; if it returns false the monitor has ended.
    ///
    /// A place that is removed and filled anew is another one: the monitor does not follow.
    pub fn monitor(&self, path: &str, tell: Tell<Down>) -> Option<Monitor> {
        self.registry.find(path)?.monitor(tell)
    }

    /// Actors and supervisors that block their thread, as the watchdog last saw it: a reason for a liveness probe to fail, since nothing but the end of
    /// the process can help. Always empty without a [watchdog](TreeOptions::watchdog).
    #[must_use]
    pub fn blocked(&self) -> Vec<Blocked> {
        watchdog::blocked(&self.registry)
    }

    /// Paths of everything that has a task, in the tree or left behind by it. Empty after an orderly stop: what a test should end with.
    #[must_use]
    pub fn alive(&self) -> Vec<String> {
        self.registry.alive()
    }

    /// Kills the actor at `path`, as a defect would: its supervisor did not ask for it and has to deal with it. False if there is none.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn kill(&self, path: &str) -> bool {
        let node = self.registry.find(path);
        node.is_some_and(|node| node.kill())
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
