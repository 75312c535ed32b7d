//! What can go wrong when a tree is started, changed or stopped.

use std::time::Duration;

use crate::exit::Exit;

/// A specification that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// A child has no name.
    #[error("{supervisor}: an empty id; give it one that is unique among its siblings")]
    NoId {
        /// Path of the supervisor.
        supervisor: String,
    },
    /// A name would be taken for a path.
    #[error(
        "{supervisor}: the id {child:?} has a '/' in it, which separates the ids in a path; use another character"
    )]
    Slash {
        /// Path of the supervisor.
        supervisor: String,
        /// The id.
        child: String,
    },
    /// Two children have one name.
    #[error("{supervisor}: there is a child {child:?} already; ids must be unique among siblings")]
    Duplicate {
        /// Path of the supervisor.
        supervisor: String,
        /// The id.
        child: String,
    },
    /// A child that is broken for good would be restarted for ever, and nobody above would hear of it.
    #[error(
        "{supervisor}: gives up after more than {max} failures in {period:?}, but the backoff of {child:?} and of what is above it stretches {max} \
         restarts over {needed:?}, so it never would; lengthen the period, allow fewer failures, shorten the backoff, or say `without_intensity`"
    )]
    Unreachable {
        /// Path of the supervisor that would never give up: the child's own, or one above.
        supervisor: String,
        /// Path of the child.
        child: String,
        /// The failures the supervisor's intensity allows.
        max: u32,
        /// The window of its intensity.
        period: Duration,
        /// How long that many restarts can take.
        needed: Duration,
    },
    /// A significant child that would never end on its own.
    #[error(
        "{supervisor}: {child:?} is significant and permanent, but a permanent child never ends on its own; make it transient or temporary"
    )]
    PermanentSignificant {
        /// Path of the supervisor.
        supervisor: String,
        /// The id.
        child: String,
    },
    /// A significant child that its supervisor does not look at.
    #[error(
        "{supervisor}: {child:?} is significant, but its supervisor never ends on its own; say `auto_shutdown` on the supervisor, or drop `significant`"
    )]
    UnheededSignificant {
        /// Path of the supervisor.
        supervisor: String,
        /// The id.
        child: String,
    },
    /// A dynamic supervisor with children that it has from the start.
    #[error(
        "{supervisor}: has children from the start, but starts all of its children from a template (simple_one_for_one); \
         start them through its handle, or choose another strategy"
    )]
    StaticInDynamic {
        /// Path of the supervisor.
        supervisor: String,
    },
}

impl SpecError {
    /// Whether `id` is a name, for a child of `supervisor` or for a root.
    pub(crate) fn name(supervisor: Option<&str>, id: &str) -> Result<(), SpecError> {
        let supervisor = supervisor.unwrap_or("the root").to_owned();
        if id.is_empty() {
            Err(SpecError::NoId { supervisor })
        } else if id.contains('/') {
            let child = id.to_owned();
            Err(SpecError::Slash { supervisor, child })
        } else {
            Ok(())
        }
    }
}

/// Why a tree or a child could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// A child failed while it started. Those started before it have been stopped again, last first.
    #[error("{path} could not start: it {exit}{}", hint(exit))]
    Failed {
        /// Path of the child.
        path: String,
        /// How it ended.
        exit: Exit,
    },
    /// The specification contradicts itself.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// There is no thread to start on.
    #[error(
        "{path} could not start: this thread runs no actix arbiter; start the tree inside an actix System, or place it with `thread`"
    )]
    NoArbiter {
        /// Path of the supervisor.
        path: String,
    },
    /// There is no such supervisor to add to.
    #[error("there is no supervisor at {path:?} to add a child to")]
    NoSupervisor {
        /// The path that was asked for.
        path: String,
    },
    /// The supervisor is gone for good.
    #[error("{child:?} was not started: its supervisor is gone")]
    SupervisorGone {
        /// The id of the child.
        child: String,
    },
    /// There is no such child to start again.
    #[error("there is no child at {path:?} to start again; add it")]
    NoChild {
        /// The path that was asked for.
        path: String,
    },
    /// It runs, or is on its way to.
    #[error(
        "{path} cannot be started again: it runs, or waits to be restarted; terminate it first"
    )]
    Running {
        /// Path of the child.
        path: String,
    },
    /// It ended on its own, and its supervisor kept only its place.
    #[error(
        "{path} cannot be started again: it has finished, and its mailbox is closed; delete it and add a new one"
    )]
    Finished {
        /// Path of the child.
        path: String,
    },
    /// It was stopped, or its supervisor was, or it finished, before it had started.
    #[error("{path} was stopped before it had started")]
    Stopped {
        /// Path of the child.
        path: String,
    },
}

fn hint(exit: &Exit) -> &'static str {
    match exit {
        Exit::Killed => ", or its thread has ended: is the arbiter it runs on still there?",
        _ => "",
    }
}

impl StartError {
    /// From the exit of a child, naming the one at the bottom of a chain of supervisors.
    pub(crate) fn failed(path: &str, exit: Exit) -> StartError {
        match exit.root_cause() {
            (Some(path), cause) => StartError::Failed {
                path: path.to_owned(),
                exit: cause.clone(),
            },
            (None, _) => StartError::Failed {
                path: path.to_owned(),
                exit,
            },
        }
    }
}

/// What could not be stopped: handlers that block their thread cannot be interrupted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("still running, though stopped and then killed: {}; they block their threads", paths.join(", "))]
pub struct StillRunning {
    /// Paths of what still runs.
    pub paths: Vec<String>,
}

/// Why a child could not be stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StopError {
    /// There is no such child, or no longer.
    #[error("there is no child at {path:?} to stop")]
    NotFound {
        /// The path that was asked for.
        path: String,
    },
    /// It runs, and only a child that does not can be deleted.
    #[error("{path} cannot be deleted: it runs, or waits to be restarted; terminate it first")]
    Running {
        /// Path of the child.
        path: String,
    },
    /// It did not end.
    #[error(transparent)]
    StillRunning(#[from] StillRunning),
}
