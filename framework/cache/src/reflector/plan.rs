//! What the state machine asks for, and how a watch can end.

use std::time::{Duration, Instant};

use super::answer::Failure;
use crate::version::Version;

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Nothing before this time.
    Wait(Instant),
    List(List),
    /// The same by a watch that begins with what there is.
    Stream(StreamList),
    Watch {
        version: Version,
        /// The server is asked to end it after this time.
        timeout: Duration,
    },
    /// Ask for the server's version: the watch has been silent for long.
    Probe,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) at: At,
    /// Items asked for; `None` asks for all, which lets the server answer from its cache.
    pub(crate) limit: Option<u32>,
    /// Where this page begins; `None` on the first.
    pub(crate) token: Option<String>,
    pub(crate) reason: Reason,
}

/// A list that comes as the first events of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamList {
    /// Never [`At::Any`]: a consistent stream costs the server no more.
    pub(crate) at: At,
    /// The server is asked to end the watch after this time.
    pub(crate) timeout: Duration,
    pub(crate) reason: Reason,
}

/// Which state a list may show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// Any the server has at hand.
    Any,
    /// This or a later one.
    NotOlderThan(Version),
    /// The state now, by quorum.
    Now,
}

/// Why a list is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    Initial,
    /// The version to resume from is no longer known to the server.
    Expired,
    /// Somebody asked for a consistent list.
    Asked,
    /// After a crash it is not known what was missed.
    Restarted,
    /// The server went back in time.
    History,
    /// The watch told something that could not be understood.
    Unreadable,
    /// The watch kept failing.
    Errors,
    /// The kind went missing while it was watched.
    Missing,
}

impl Reason {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Expired => "expired",
            Self::Asked => "asked",
            Self::Restarted => "restarted",
            Self::History => "history",
            Self::Unreadable => "unreadable",
            Self::Errors => "errors",
            Self::Missing => "missing",
        }
    }
}

/// How a watch ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum End {
    /// It was refused, or never answered.
    NotOpened(Failure),
    /// The stream ended or broke.
    Closed,
    /// The server said why in the stream.
    Error(Failure),
    /// An event could not be understood and could not be put down to a key.
    Unreadable,
    /// News older than what had been told, and yet unknown: versions of this server do not mean what they should.
    SetBack,
    /// Nothing came for as long as silence is borne.
    Silent,
    /// A consistent list was asked for.
    Asked,
}
