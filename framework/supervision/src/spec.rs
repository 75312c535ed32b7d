//! What a supervisor is to know of its children.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Supervised};
use serde::{Deserialize, Serialize};

use crate::backoff::Backoff;
use crate::child::{self, Launch};
use crate::context::Context;
use crate::dynamic::Dynamic;
use crate::exit::Failure;
use crate::gauge::Gauged;
use crate::intensity::Intensity;
use crate::link::Link;
use crate::mailbox::{Address, Mailbox};
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

/// Whom the restart of one child concerns: the four strategies of OTP's `supervisor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The children do not depend on each other: only the one that ended is restarted.
    OneForOne,
    /// All children depend on each other: all others are stopped, last first, and then all are started in order.
    OneForAll,
    /// Each child depends on those before it: the ones after it are stopped, last first, and then all of these are started in order.
    RestForOne,
    /// Any number of children that come and go while the supervisor runs, made from one template: see [`SupervisorSpec::dynamic`].
    /// Only the one that ended is restarted; no child waits for another to start or to stop. After a restart of the supervisor there are none.
    SimpleOneForOne,
}

/// Whether a supervisor ends itself, with [`Exit::Shutdown`](crate::Exit::Shutdown), once children marked [`significant`](ChildSpec::significant)
/// have ended on their own (OTP's `auto_shutdown`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AutoShutdown {
    /// It goes on without them.
    #[default]
    Never,
    /// When the first of them ends.
    AnySignificant,
    /// When the last of them ends.
    AllSignificant,
}

/// How a supervisor treats all its children alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) strategy: Strategy,
    /// Absent if it never gives up.
    pub(crate) intensity: Option<Intensity>,
    pub(crate) auto_shutdown: AutoShutdown,
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
    pub(crate) significant: bool,
    pub(crate) thread: Thread,
    pub(crate) gauged: Arc<dyn Gauged>,
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
    /// The failure is the exit of that incarnation: at a restart a transient one is tried again after the backoff, and a fatal one ends the supervisor. At the very
    /// first start any failure is a failed start, which whoever starts the tree hears of and may try again: what may be absent at first, such as a database,
    /// is better waited for in the actor than in `make`.
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
            significant: false,
            thread: Thread::here(),
            gauged: mailbox.gauged(),
            below: None,
            launch: child::launcher(mailbox, Box::new(make)),
        }
    }

    /// A supervisor with children of its own. It has started when all of them have.
    pub fn supervisor(spec: SupervisorSpec) -> ChildSpec {
        let SupervisorSpec {
            id,
            policy,
            thread,
            mailbox,
            build,
        } = spec;
        let below = Below {
            strategy: policy.strategy,
            address: mailbox.address(),
        };
        let child = ChildSpec::actor(id, mailbox, move |link| {
            Supervisor::new(link, policy, &*build)
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

    /// Makes the supervisor's [`AutoShutdown`] look at this child. It must be transient or temporary: a permanent one never ends on its own.
    pub fn significant(self) -> ChildSpec {
        ChildSpec {
            significant: true,
            ..self
        }
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
/// Default: gives up after more than 5 failures in 60 s, never ends on its own, runs on its own supervisor's thread, has no children.
#[must_use = "a supervisor specification does nothing until a tree is started from it"]
pub struct SupervisorSpec {
    id: String,
    policy: Policy,
    thread: Thread,
    mailbox: Mailbox<Supervisor>,
    build: Build,
}

impl SupervisorSpec {
    /// A supervisor without children yet.
    pub fn new(id: impl Into<String>, strategy: Strategy) -> SupervisorSpec {
        SupervisorSpec {
            id: id.into(),
            policy: Policy {
                strategy,
                intensity: Some(Intensity::default()),
                auto_shutdown: AutoShutdown::default(),
            },
            thread: Thread::here(),
            mailbox: Mailbox::new(),
            build: Box::new(|_| ()),
        }
    }

    /// A supervisor of children that are started while it runs, each made by `template` from an argument; and the handle that starts them.
    ///
    /// OTP's `simple_one_for_one`. `template` names each child by an id of its own and runs on the thread of whoever starts the child.
    pub fn dynamic<T>(
        id: impl Into<String>,
        template: impl Fn(T) -> ChildSpec + Send + Sync + 'static,
    ) -> (SupervisorSpec, Dynamic<T>) {
        let spec = SupervisorSpec::new(id, Strategy::SimpleOneForOne);
        let dynamic = spec.dynamic_children(template);
        (spec, dynamic)
    }

    /// A handle that starts children made from `template` under this supervisor while it runs, beside those it has from the start, and stops children again.
    ///
    /// A restart of the supervisor takes those that were added along; those it [has from the start](SupervisorSpec::children) are made anew. So whoever has
    /// the latter made from what is wanted at that moment loses nothing.
    pub fn dynamic_children<T>(
        &self,
        template: impl Fn(T) -> ChildSpec + Send + Sync + 'static,
    ) -> Dynamic<T> {
        Dynamic::new(self.mailbox.address(), template)
    }

    /// Sets how many failures in how much time make it give up.
    pub fn intensity(mut self, intensity: Intensity) -> SupervisorSpec {
        self.policy.intensity = Some(intensity);
        self
    }

    /// Never gives up, not even on a fatal error: for supervisors of user work, whose failures are nobody else's.
    pub fn without_intensity(mut self) -> SupervisorSpec {
        self.policy.intensity = None;
        self
    }

    /// Sets whether it ends itself when significant children have ended on their own.
    pub fn auto_shutdown(mut self, auto_shutdown: AutoShutdown) -> SupervisorSpec {
        self.policy.auto_shutdown = auto_shutdown;
        self
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
            .field("policy", &self.policy)
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
