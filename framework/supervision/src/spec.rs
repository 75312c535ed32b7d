//! What a supervisor is to know of its children.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Supervised};
use serde::{Deserialize, Serialize};

use crate::backoff::Backoff;
use crate::child::{self, Launch};
use crate::context::Context;
use crate::exit::Failure;
use crate::intensity::Intensity;
use crate::link::Link;
use crate::mailbox::{Address, Mailbox};
use crate::stats::Gauge;
use crate::supervisor::Supervisor;
use crate::thread::Thread;

/// When a child that ended is started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restart {
    /// Always.
    #[default]
    Permanent,
    /// Unless it ended normally.
    Transient,
    /// Never, not even when its siblings are restarted; it is then forgotten, and its messages are dropped.
    Temporary,
}

/// How a child is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// At once, without being asked.
    Brutal,
    /// It is asked, and killed if it has not ended after this time.
    Timeout(Duration),
    /// It is asked, and has all the time it wants.
    Infinity,
}

impl Default for Shutdown {
    /// Five seconds.
    fn default() -> Self {
        Shutdown::Timeout(Duration::from_secs(5))
    }
}

/// Whom the restart of one child concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The children do not depend on each other: only the one that ended is restarted.
    OneForOne,
    /// Each child depends on those before it: the ones after it are stopped, last first, and then all of these are started in order.
    RestForOne,
}

/// One child of a supervisor: what it is, and how it is treated.
///
/// Default: permanent, stopped with five seconds of grace (supervisors: as long as it takes), default [`Backoff`], on the supervisor's thread.
#[must_use = "a child specification does nothing until it is added to a supervisor"]
pub struct ChildSpec {
    pub(crate) id: String,
    pub(crate) restart: Restart,
    pub(crate) shutdown: Shutdown,
    pub(crate) backoff: Backoff,
    pub(crate) thread: Thread,
    pub(crate) gauge: Arc<Gauge>,
    pub(crate) below: Option<Below>,
    pub(crate) launch: Launch,
}

/// What is known of a child that is a supervisor itself.
pub(crate) struct Below {
    pub(crate) strategy: Strategy,
    pub(crate) address: Address<Supervisor>,
}

impl ChildSpec {
    /// An actor that takes its messages from `mailbox`. `make` builds the value of every incarnation, on the actor's thread.
    ///
    /// The actor has started when `started` has returned (see [`Context::hold_start`]). A panic of `make` is a failed start.
    pub fn actor<A>(
        id: impl Into<String>,
        mailbox: Mailbox<A>,
        make: impl Fn(&Link) -> A + Send + 'static,
    ) -> ChildSpec
    where
        A: Actor<Context = Context<A>> + Supervised,
    {
        ChildSpec::try_actor(id, mailbox, move |link| Ok(make(link)))
    }

    /// An actor whose making may fail; otherwise as [`actor`](Self::actor).
    ///
    /// The failure is the exit of that incarnation, a failed start: a transient one is tried again after the backoff, a fatal one ends the supervisor.
    pub fn try_actor<A>(
        id: impl Into<String>,
        mailbox: Mailbox<A>,
        make: impl Fn(&Link) -> Result<A, Failure> + Send + 'static,
    ) -> ChildSpec
    where
        A: Actor<Context = Context<A>> + Supervised,
    {
        ChildSpec {
            id: id.into(),
            restart: Restart::default(),
            shutdown: Shutdown::default(),
            backoff: Backoff::default(),
            thread: Thread::here(),
            gauge: mailbox.address().gauge(),
            below: None,
            launch: child::launcher(mailbox, Box::new(make)),
        }
    }

    /// A supervisor with children of its own. It has started when all of them have.
    pub fn supervisor(spec: SupervisorSpec) -> ChildSpec {
        let SupervisorSpec {
            id,
            strategy,
            intensity,
            thread,
            build,
        } = spec;
        let mailbox = Mailbox::new();
        let below = Below {
            strategy,
            address: mailbox.address(),
        };
        let child = ChildSpec::actor(id, mailbox, move |link| {
            Supervisor::new(link, strategy, intensity, &*build)
        });
        ChildSpec {
            below: Some(below),
            thread,
            shutdown: Shutdown::Infinity,
            ..child
        }
    }

    /// The name of the child among its siblings.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Sets when the child is restarted.
    pub fn restart(self, restart: Restart) -> ChildSpec {
        ChildSpec { restart, ..self }
    }

    /// Sets how the child is stopped.
    pub fn shutdown(self, shutdown: Shutdown) -> ChildSpec {
        ChildSpec { shutdown, ..self }
    }

    /// Sets how long the child waits between restarts.
    pub fn backoff(self, backoff: Backoff) -> ChildSpec {
        ChildSpec { backoff, ..self }
    }

    /// Sets where the child runs.
    pub fn thread(self, thread: Thread) -> ChildSpec {
        ChildSpec { thread, ..self }
    }
}

impl fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildSpec")
            .field("id", &self.id)
            .field("restart", &self.restart)
            .field("shutdown", &self.shutdown)
            .field("backoff", &self.backoff)
            .field("thread", &self.thread)
            .finish_non_exhaustive()
    }
}

type Build = Box<dyn Fn(&mut Children) + Send>;

/// A supervisor: its strategy, its patience and its children.
///
/// Default: gives up after more than 5 failures in 60 s, runs on its own supervisor's thread, has no children.
#[must_use = "a supervisor specification does nothing until a tree is started from it"]
pub struct SupervisorSpec {
    id: String,
    strategy: Strategy,
    intensity: Option<Intensity>,
    thread: Thread,
    build: Build,
}

impl SupervisorSpec {
    /// A supervisor without children yet.
    pub fn new(id: impl Into<String>, strategy: Strategy) -> SupervisorSpec {
        SupervisorSpec {
            id: id.into(),
            strategy,
            intensity: Some(Intensity::default()),
            thread: Thread::here(),
            build: Box::new(|_| ()),
        }
    }

    /// Sets how many failures in how much time make it give up.
    pub fn intensity(self, intensity: Intensity) -> SupervisorSpec {
        SupervisorSpec {
            intensity: Some(intensity),
            ..self
        }
    }

    /// Never gives up, not even on a fatal error: for supervisors of user work, whose failures are nobody else's.
    pub fn without_intensity(self) -> SupervisorSpec {
        SupervisorSpec {
            intensity: None,
            ..self
        }
    }

    /// Sets where it runs. Its children run there too unless they say otherwise.
    pub fn thread(self, thread: Thread) -> SupervisorSpec {
        SupervisorSpec { thread, ..self }
    }

    /// Sets what names its children, in the order they start. Called once per incarnation of the supervisor, so mailboxes made here are new each time
    /// and siblings are wired anew.
    pub fn children(self, build: impl Fn(&mut Children) + Send + 'static) -> SupervisorSpec {
        SupervisorSpec {
            build: Box::new(build),
            ..self
        }
    }
}

impl fmt::Debug for SupervisorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupervisorSpec")
            .field("id", &self.id)
            .field("strategy", &self.strategy)
            .field("intensity", &self.intensity)
            .field("thread", &self.thread)
            .finish_non_exhaustive()
    }
}

/// The children of one incarnation of a supervisor, in the order they start.
#[derive(Debug)]
pub struct Children {
    link: Link,
    specs: Vec<ChildSpec>,
}

impl Children {
    pub(crate) fn new(link: Link) -> Children {
        Children {
            link,
            specs: Vec::new(),
        }
    }

    pub(crate) fn into_specs(self) -> Vec<ChildSpec> {
        self.specs
    }

    /// Adds a child after those added before.
    pub fn add(&mut self, spec: ChildSpec) {
        self.specs.push(spec);
    }

    /// The supervisor's own place in the tree.
    #[must_use]
    pub fn link(&self) -> &Link {
        &self.link
    }
}
