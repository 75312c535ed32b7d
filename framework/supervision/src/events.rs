//! What happens in a tree, told to whoever listens.

use std::fmt;
use std::sync::Mutex;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::clock::Clock;
use crate::exit::Exit;
use crate::stats::{lock, millis};

/// Events kept for a reader that is behind.
const CAPACITY: usize = 1024;

/// Something that happened at one node of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its number in this tree, counted from 1. Numbers grow by one; those of events that were not told to anybody are skipped.
    pub seq: u64,
    /// The time of day, in milliseconds since 1970-01-01T00:00:00Z.
    pub at_ms: u64,
    /// The path of the node.
    pub path: String,
    /// What happened there.
    #[serde(flatten)]
    pub what: What,
}

/// What happened at a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// An incarnation has started.
    Started {
        /// Which one, counted from 1.
        incarnation: u32,
    },
    /// An incarnation has ended, and everything of it has been dropped.
    Exited {
        /// Which one, counted from 1.
        incarnation: u32,
        /// How it ended.
        exit: Exit,
        /// How long it lived, in milliseconds.
        uptime_ms: u64,
    },
    /// It is to be started again.
    Restarting {
        /// The delay before that, in milliseconds.
        in_ms: u64,
        /// How often it has failed in a row; 0 if it is restarted because of a sibling.
        streak: u32,
    },
    /// The supervisor gives up because of a child, and stops the others.
    Escalated {
        /// The path of that child.
        child: String,
        /// How that child ended.
        exit: Exit,
    },
    /// The supervisor ends itself because a significant child has ended, and stops the others.
    Concluded {
        /// The path of that child.
        child: String,
    },
    /// Its task has ended: there will be no further incarnation.
    Stopped,
    /// It rests: it handles nothing until it is resumed.
    Suspended,
    /// It works again after it was suspended.
    Resumed,
    /// It has been inside one and the same turn for longer than the watchdog's patience, and nothing else runs on its thread.
    Blocked {
        /// How long, in milliseconds, as far as the watchdog saw.
        for_ms: u64,
    },
    /// The turn it was blocked in has ended.
    Unblocked,
    /// The watchdog found it hung: it is killed and ends as [`Exit::Stuck`], or, if it is a supervisor, only reported.
    Hung,
    /// Its task could not be ended and has no place in the tree any more. When it does end, it says so.
    LeftBehind,
    /// It changed its mind about whether it works as it should.
    Degraded {
        /// Why it does not; absent if it does.
        why: Option<String>,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path, self.what)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Started { incarnation: 1 } => f.write_str("started"),
            What::Started { incarnation } => write!(f, "started again, incarnation {incarnation}"),
            What::Exited { exit, .. } => exit.fmt(f),
            What::Restarting { in_ms, .. } => write!(f, "is to be started again in {in_ms} ms"),
            What::Escalated { child, exit } => write!(f, "gives up because {child} {exit}"),
            What::Concluded { child } => {
                write!(f, "ends because its significant child {child} has ended")
            }
            What::Stopped => f.write_str("will not be started again"),
            What::Suspended => f.write_str("is suspended"),
            What::Resumed => f.write_str("goes on"),
            What::Blocked { for_ms } => write!(f, "has blocked its thread for {for_ms} ms"),
            What::Unblocked => f.write_str("blocks its thread no longer"),
            What::Hung => f.write_str("hangs"),
            What::LeftBehind => f.write_str("could not be ended and is left behind, still running"),
            What::Degraded { why: Some(why) } => write!(f, "does not work as it should: {why}"),
            What::Degraded { why: None } => f.write_str("works as it should again"),
        }
    }
}

/// How many events a reader missed because it was too slow for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("missed {0} events")]
pub struct Missed(pub u64);

/// Events of a tree from a moment on, in order; see [`Observer::events`](crate::Observer::events).
pub struct Events(broadcast::Receiver<Event>);

impl Events {
    /// Waits for the next event; `None` once everything of the tree has ended and all events have been read.
    ///
    /// # Errors
    /// [`Missed`] if the reader was more than 1,024 events behind: the oldest are gone, and the next call goes on with those that are left.
    ///
    /// # Cancellation safety
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Result<Event, Missed>> {
        match self.0.recv().await {
            Ok(event) => Some(Ok(event)),
            Err(RecvError::Lagged(missed)) => Some(Err(Missed(missed))),
            Err(RecvError::Closed) => None,
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("waiting", &self.0.len())
            .finish_non_exhaustive()
    }
}

/// Where events come from. The channel exists while somebody listens.
#[derive(Default)]
pub(crate) struct Feed(Mutex<Channel>);

#[derive(Default)]
struct Channel {
    /// Numbered under the lock, so that order and numbers agree.
    seq: u64,
    sender: Option<broadcast::Sender<Event>>,
    closed: bool,
}

impl Feed {
    pub(crate) fn listen(&self) -> Events {
        let mut channel = lock(&self.0);
        let receiver = if channel.closed {
            broadcast::channel(1).1
        } else {
            channel
                .sender
                .get_or_insert_with(|| broadcast::Sender::new(CAPACITY))
                .subscribe()
        };
        Events(receiver)
    }

    pub(crate) fn tell(&self, clock: &Clock, path: &str, what: impl FnOnce() -> What) {
        let mut channel = lock(&self.0);
        channel.seq += 1;
        let seq = channel.seq;
        let Some(sender) = &channel.sender else {
            return;
        };
        if sender.receiver_count() == 0 {
            channel.sender = None;
            return;
        }
        let since = clock.wall().duration_since(SystemTime::UNIX_EPOCH);
        let _ = sender.send(Event {
            seq,
            at_ms: since.map_or(0, millis),
            path: path.to_owned(),
            what: what(),
        });
    }

    /// Everything has been told.
    pub(crate) fn close(&self) {
        let mut channel = lock(&self.0);
        channel.closed = true;
        let sender = channel.sender.take();
        drop(channel);
        // wakes the readers
        drop(sender);
    }
}

#[cfg(test)]
mod tests;
