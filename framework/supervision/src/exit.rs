//! How a child ended.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How one incarnation of a child ended, as its supervisor hears of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "exit", rename_all = "snake_case")]
pub enum Exit {
    /// It stopped on its own, with nothing wrong.
    Normal,
    /// It stopped because its supervisor asked it to.
    Shutdown,
    /// It gave up with an error it could name, through [`Context::fail`](crate::Context::fail).
    Error {
        /// Whether trying again can help.
        kind: ErrorKind,
        /// What went wrong.
        message: String,
    },
    /// It panicked: in a handler, in a future it spawned, in `started` or in `stopped`.
    Panic {
        /// The text of the panic.
        message: String,
        /// `file:line:column` of the panic, where known.
        location: Option<String>,
    },
    /// It was ended without being asked: it let its stop deadline pass, or its thread went away.
    Killed,
    /// It hung and was killed for it: it had messages and handled none, or let its own deadline pass; see [`TreeOptions::watchdog`](crate::TreeOptions::watchdog).
    /// Or it could not even be killed, because it blocks its thread: then it still runs, but nobody counts on it any more.
    Stuck,
    /// It was a supervisor that gave up on one of its children.
    Escalated {
        /// Path of the child.
        child: String,
        /// How that child ended.
        cause: Box<Exit>,
    },
}

/// Whether trying again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The world outside is at fault and may recover: back off and try again, as often as it takes.
    Transient,
    /// Restarting this child alone cannot help: its supervisor gives up at once.
    Fatal,
}

impl Exit {
    /// Whether the child ended with nothing wrong.
    #[must_use]
    pub fn is_orderly(&self) -> bool {
        matches!(self, Exit::Normal | Exit::Shutdown)
    }

    /// Whether this exit fills the supervisor's restart window: a defect does, an orderly end or an error of the outside world does not.
    ///
    /// A supervisor that gave up counts, unless it could not start because of a transient error.
    #[must_use]
    pub fn counts(&self) -> bool {
        match self {
            Exit::Normal
            | Exit::Shutdown
            | Exit::Error {
                kind: ErrorKind::Transient,
                ..
            } => false,
            Exit::Error {
                kind: ErrorKind::Fatal,
                ..
            }
            | Exit::Panic { .. }
            | Exit::Killed
            | Exit::Stuck => true,
            Exit::Escalated { cause, .. } => cause.counts(),
        }
    }

    /// The exit at the bottom of a chain of escalations, with the path of the child it happened to.
    #[must_use]
    pub fn root_cause(&self) -> (Option<&str>, &Exit) {
        let (mut path, mut exit) = (None, self);
        while let Exit::Escalated { child, cause } = exit {
            path = Some(child.as_str());
            exit = cause;
        }
        (path, exit)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Normal => f.write_str("ended normally"),
            Exit::Shutdown => f.write_str("stopped as asked"),
            Exit::Error {
                kind: ErrorKind::Transient,
                message,
            } => write!(f, "failed for now: {message}"),
            Exit::Error {
                kind: ErrorKind::Fatal,
                message,
            } => write!(f, "failed for good: {message}"),
            Exit::Panic {
                message,
                location: Some(location),
            } => write!(f, "panicked at {location}: {message}"),
            Exit::Panic {
                message,
                location: None,
            } => write!(f, "panicked: {message}"),
            Exit::Killed => f.write_str("was killed"),
            Exit::Stuck => f.write_str("was stuck"),
            Exit::Escalated { .. } => match self.root_cause() {
                (Some(path), cause) => write!(f, "gave up because {path} {cause}"),
                (None, cause) => write!(f, "gave up: {cause}"),
            },
        }
    }
}

/// Why an actor ends itself: given to [`Context::fail`](crate::Context::fail).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Whether trying again can help.
    pub kind: ErrorKind,
    /// What went wrong.
    pub message: String,
}

impl Failure {
    /// A failure of the world outside, which may recover.
    #[must_use]
    pub fn transient(message: impl fmt::Display) -> Failure {
        Failure {
            kind: ErrorKind::Transient,
            message: message.to_string(),
        }
    }

    /// A failure that a restart of this actor alone cannot mend.
    #[must_use]
    pub fn fatal(message: impl fmt::Display) -> Failure {
        Failure {
            kind: ErrorKind::Fatal,
            message: message.to_string(),
        }
    }
}

impl From<Failure> for Exit {
    fn from(Failure { kind, message }: Failure) -> Exit {
        Exit::Error { kind, message }
    }
}
