//! A running tree, from its first start to its last stop.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use tokio::sync::{oneshot, watch};

use crate::child::{Berth, RootState, Superior};
use crate::clock::Clock;
use crate::control::Order;
use crate::error::{StartError, StillRunning, StopError};
use crate::exit::Exit;
use crate::mailbox::Address;
use crate::panics::install_hook;
use crate::random::Entropy;
use crate::snapshot::{self, TreeSnapshot};
use crate::spec::{ChildSpec, SupervisorSpec};
use crate::stats::{Node, NodeKind, Registry, Standing};
use crate::supervisor::{Add, GRACE, Remove, SUPERVISOR_GRACE, Supervisor};
use crate::thread::Thread;

/// What a tree shares with all its actors.
#[derive(Clone, Debug)]
pub struct TreeOptions {
    /// The clock all delays and deadlines follow.
    pub clock: Clock,
    /// The source of jitter.
    pub entropy: Entropy,
}

impl Default for TreeOptions {
    /// Real time, and a seed from the operating system.
    fn default() -> Self {
        TreeOptions {
            clock: Clock::system(),
            entropy: Entropy::from_os(),
        }
    }
}

/// A running tree. Dropping it kills all of its actors; [`stop`](Tree::stop) ends them in order.
pub struct Tree {
    observer: Observer,
    root: Arc<Node>,
    state: watch::Receiver<RootState>,
}

impl Tree {
    /// Starts a tree in order: returns when every child has started.
    ///
    /// Must be called on a thread that runs an actix arbiter, unless `spec` names one. Installs, once per process, a panic hook that logs
    /// panics of supervised actors with their path and leaves all others to the hook before it.
    ///
    /// # Errors
    /// If a child fails while it starts, or a specification contradicts itself; what had started by then has been stopped again, last first.
    ///
    /// # Cancellation safety
    /// Dropping the future kills what has started so far.
    pub async fn start(spec: SupervisorSpec, options: TreeOptions) -> Result<Tree, StartError> {
        install_hook();
        let TreeOptions { clock, entropy } = options;
        let ChildSpec {
            id,
            thread,
            gauge,
            below,
            launch,
            ..
        } = ChildSpec::supervisor(spec);
        let current = Thread::current();
        let thread = match &current {
            Some(current) => thread.or(current),
            None => thread,
        };
        let now = clock.now();
        let registry = Arc::new(Registry::new(clock, entropy));
        let path: Arc<str> = id.as_str().into();
        let (Some(below), true) = (below, thread.is_placed()) else {
            return Err(StartError::NoArbiter {
                path: path.to_string(),
            });
        };
        let kind = NodeKind::Supervisor {
            strategy: below.strategy,
            address: below.address,
        };
        let root = Arc::new(Node::new(
            Arc::clone(&path),
            id,
            kind,
            thread.name(),
            gauge,
            now,
        ));
        registry.set_root(&root);
        #[cfg(any(test, feature = "testing"))]
        crate::testing::Brood::add(&registry);
        // nobody restarts a root: its first exit is its last
        root.control.order(Order::Release);
        let (sender, mut state) = watch::channel(RootState::Starting);
        let observer = Observer {
            registry: Arc::clone(&registry),
        };
        let tree = Tree {
            observer,
            root: Arc::clone(&root),
            state: state.clone(),
        };
        let superior = Superior::Tree {
            root: Arc::clone(&root),
            state: sender,
        };
        launch(Berth {
            token: 0,
            node: root,
            registry,
            thread,
            superior,
        });
        let reached = state
            .wait_for(|state| !matches!(state, RootState::Starting))
            .await;
        match reached.map(|state| state.clone()) {
            Ok(RootState::Running | RootState::Starting) => Ok(tree),
            Ok(RootState::Ended(exit)) => Err(StartError::failed(&path, exit)),
            Err(_) => Err(StartError::failed(&path, Exit::Killed)),
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

    /// Stops the tree: children before their supervisors, last started first, each with its own grace; what is left at the deadline is killed.
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

    /// Adds a child to the supervisor at `supervisor`, after its other children; returns when it has started.
    ///
    /// The child is forgotten when that supervisor is itself restarted.
    ///
    /// # Errors
    /// If there is no such supervisor, the specification does not fit it, or the child fails while it starts; it is then forgotten.
    ///
    /// # Cancellation safety
    /// Dropping the future does not take the child back.
    pub async fn add_child(&self, supervisor: &str, spec: ChildSpec) -> Result<(), StartError> {
        let (reply, answer) = oneshot::channel();
        let missing = || StartError::NoSupervisor {
            path: supervisor.to_owned(),
        };
        let path = format!("{supervisor}/{}", spec.id());
        let address = self.supervisor(supervisor).ok_or_else(missing)?;
        if !address.tell(Add(spec, reply)) {
            return Err(missing());
        }
        answer.await.unwrap_or(Err(StartError::Stopped { path }))
    }

    /// Stops the child at `path` in good order and forgets it.
    ///
    /// # Errors
    /// If there is no such child, or it blocks its thread and still runs. The root is no child: see [`stop`](Tree::stop).
    ///
    /// # Cancellation safety
    /// Dropping the future does not take the stop back.
    pub async fn stop_child(&self, path: &str) -> Result<(), StopError> {
        let not_found = || StopError::NotFound {
            path: path.to_owned(),
        };
        let node = self.root.find(path).ok_or_else(not_found)?;
        let supervisor = node
            .path
            .strip_suffix(node.id.as_str())
            .and_then(|path| path.strip_suffix('/'))
            .ok_or_else(not_found)?;
        let address = self.supervisor(supervisor).ok_or_else(not_found)?;
        let (reply, answer) = oneshot::channel();
        if !address.tell(Remove(node.id.clone(), reply)) {
            return Err(not_found());
        }
        answer.await.unwrap_or_else(|_| Err(not_found()))
    }

    #[cfg(test)]
    pub(crate) fn root_node(&self) -> &Arc<Node> {
        &self.root
    }

    fn supervisor(&self, path: &str) -> Option<Address<Supervisor>> {
        match &self.root.find(path)?.kind {
            NodeKind::Supervisor { address, .. } => Some(address.clone()),
            NodeKind::Actor => None,
        }
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
        snapshot::tree(&self.registry)
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
        let node = self.registry.root().and_then(|root| root.find(path));
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
