//! Changes to a tree that runs, by path.

use std::fmt;
use std::sync::{Arc, Weak};

use tokio::sync::oneshot;

use crate::error::{StartError, StopError};
use crate::events::What;
use crate::mailbox::Address;
use crate::spec::ChildSpec;
use crate::stats::{Node, Registry};
use crate::supervisor::{Command, Reply, Supervisor};

/// Changes a tree while it runs: adds, stops, restarts and deletes children, and suspends actors. From any thread; cheap to clone.
///
/// What OTP calls `start_child`, `terminate_child`, `restart_child`, `delete_child`, and `sys:suspend`. Which children there are says a
/// [snapshot](crate::Observer::snapshot). A change is forgotten when the supervisor it was made to is itself restarted. A supervisor that is down, because it
/// waits for its own restart or was terminated, hears of a change when it is back: bound the wait where that may be long.
///
/// # Cancellation safety
/// Dropping a future does not take the change back.
#[derive(Clone)]
pub struct Operator {
    // weak: whoever keeps an operator does not keep a tree that has ended
    registry: Weak<Registry>,
}

impl Operator {
    pub(crate) fn new(registry: &Arc<Registry>) -> Operator {
        Operator {
            registry: Arc::downgrade(registry),
        }
    }

    /// Adds a child to the supervisor at `supervisor`, after its other children; returns when it has started.
    ///
    /// # Errors
    /// If there is no such supervisor, the specification does not fit it, or the child fails while it starts; it is then forgotten.
    pub async fn add_child(&self, supervisor: &str, spec: ChildSpec) -> Result<(), StartError> {
        let missing = || StartError::NoSupervisor {
            path: supervisor.to_owned(),
        };
        let path = format!("{supervisor}/{}", spec.id());
        let address = self.supervisor(supervisor).ok_or_else(missing)?;
        let (reply, answer) = oneshot::channel();
        if !address.tell(Command::Add(spec, reply)) {
            return Err(missing());
        }
        answer.await.unwrap_or(Err(StartError::Stopped { path }))
    }

    /// Stops the child at `path` in good order and forgets it: [`terminate_child`](Self::terminate_child) and
    /// [`delete_child`](Self::delete_child) in one.
    ///
    /// # Errors
    /// If there is no such child, or it blocks its thread and still runs. The root is no child: see [`Tree::stop`](crate::Tree::stop).
    pub async fn stop_child(&self, path: &str) -> Result<(), StopError> {
        self.stop(path, Command::Remove).await
    }

    /// Stops the child at `path` in good order. Its place and its mailbox stay, and nothing starts it again, not even the restart of its group, but
    /// [`restart_child`](Self::restart_child). A temporary or dynamic child is forgotten.
    ///
    /// # Errors
    /// If there is no such child, or it blocks its thread and still runs; it is then forgotten.
    pub async fn terminate_child(&self, path: &str) -> Result<(), StopError> {
        self.stop(path, Command::Terminate).await
    }

    /// Starts the child at `path` again, which was terminated; returns when it has started. Its siblings are not concerned, whatever the strategy.
    ///
    /// # Errors
    /// If there is no such child, it runs, it has finished on its own and was let go, or it fails while it starts; it then stays as it was.
    pub async fn restart_child(&self, path: &str) -> Result<(), StartError> {
        let no_child = || StartError::NoChild {
            path: path.to_owned(),
        };
        let (address, id) = self.child(path).ok_or_else(no_child)?;
        let (reply, answer) = oneshot::channel();
        if !address.tell(Command::Restart(id, reply)) {
            return Err(no_child());
        }
        answer.await.unwrap_or_else(|_| Err(no_child()))
    }

    /// Forgets the child at `path`, which does not run: it was terminated, or has finished.
    ///
    /// # Errors
    /// If there is no such child, or it runs.
    pub async fn delete_child(&self, path: &str) -> Result<(), StopError> {
        self.stop(path, Command::Delete).await
    }

    /// Makes the actor at `path`, or every actor below the supervisor there, do nothing until [`resume`](Self::resume): no message is handled and no
    /// future is polled. Returns how many are suspended by this call.
    ///
    /// Messages wait; orders do not: a suspended actor stops, is killed and is restarted like any other, and the next incarnation
    /// is suspended as soon as it has started. The watchdog leaves it alone. Children added later are not concerned.
    pub fn suspend(&self, path: &str) -> usize {
        self.set_suspended(path, true)
    }

    /// Takes back [`suspend`](Self::suspend); returns how many go on by this call.
    pub fn resume(&self, path: &str) -> usize {
        self.set_suspended(path, false)
    }

    async fn stop(
        &self,
        path: &str,
        command: impl FnOnce(String, Reply<StopError>) -> Command,
    ) -> Result<(), StopError> {
        let not_found = || StopError::NotFound {
            path: path.to_owned(),
        };
        let (address, id) = self.child(path).ok_or_else(not_found)?;
        let (reply, answer) = oneshot::channel();
        if !address.tell(command(id, reply)) {
            return Err(not_found());
        }
        answer.await.unwrap_or_else(|_| Err(not_found()))
    }

    fn find(&self, path: &str) -> Option<Arc<Node>> {
        self.registry.upgrade()?.find(path)
    }

    fn supervisor(&self, path: &str) -> Option<Address<Supervisor>> {
        Some(self.find(path)?.office()?.address.clone())
    }

    /// The supervisor of the child at `path`, and the child's id.
    fn child(&self, path: &str) -> Option<(Address<Supervisor>, String)> {
        let node = self.find(path)?;
        let above = node.path.strip_suffix(node.id())?.strip_suffix('/')?;
        Some((self.supervisor(above)?, node.id().to_owned()))
    }

    fn set_suspended(&self, path: &str, suspended: bool) -> usize {
        let Some(registry) = self.registry.upgrade() else {
            return 0;
        };
        let node = registry.find(path);
        node.map_or(0, |node| set_suspended(&registry, &node, suspended))
    }
}

fn set_suspended(registry: &Registry, node: &Arc<Node>, suspended: bool) -> usize {
    if node.is_supervisor() {
        let children = node.children();
        let each = children
            .iter()
            .map(|child| set_suspended(registry, child, suspended));
        return each.sum();
    }
    let changed = node.suspend(suspended, registry.clock.now());
    if changed {
        registry.tell(node, || {
            if suspended {
                What::Suspended
            } else {
                What::Resumed
            }
        });
    }
    usize::from(changed)
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").finish_non_exhaustive()
    }
}
