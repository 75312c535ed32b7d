//! What can go wrong when a tree is started, changed or stopped.

use std::time::Duration;

use crate::exit::Exit;

/// A specification that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// A child has no name.
    #[error("{supervisor}: a child has an empty id; give it one that is unique among its siblings")]
    NoId {
        /// Path of the supervisor.
        supervisor: String,
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
        "{supervisor}: gives up after more than {max} failures in {period:?}, but the backoff of {child:?} alone stretches {max} restarts over \
         {needed:?}, so it never would; lengthen the period, allow fewer failures, shorten the backoff, or say `without_intensity`"
    )]
    Unreachable {
        /// Path of the supervisor.
        supervisor: String,
        /// The id.
        child: String,
        /// The failures its intensity allows.
        max: u32,
        /// The window of its intensity.
        period: Duration,
        /// How long that many restarts can take.
        needed: Duration,
    },
}

/// Why a tree or a child could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// A child failed while it started. Those started before it have been stopped again, last first.
    #[error("{path} could not start: it {exit}")]
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
    /// It was stopped, or its supervisor was, before it had started.
    #[error("{path} was stopped before it had started")]
    Stopped {
        /// Path of the child.
        path: String,
    },
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
    /// It did not end.
    #[error(transparent)]
    StillRunning(#[from] StillRunning),
}
