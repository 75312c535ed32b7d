//! Hearing of the ends of somebody else's child.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use actix::Message;

use crate::exit::Exit;
use crate::mailbox::Tell;
use crate::panics::guard;
use crate::stats::{LastExit, Node, Record};

/// The end of an incarnation, told to whoever monitors it; the message of OTP's monitors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Down {
    /// The path of the actor or supervisor.
    pub path: String,
    /// Which incarnation ended, counted from 1; 0 if there never was one.
    pub incarnation: u32,
    /// How it ended; [`Exit::Stuck`] if it still runs and nobody counts on it any more.
    pub exit: Exit,
    /// Whether this is the last word: no further incarnation will come.
    pub last: bool,
}

impl Message for Down {
    type Result = ();
}

/// A monitor of one actor or supervisor, by [`Observer::monitor`](crate::Observer::monitor) or [`Link::monitor`](crate::Link::monitor); dropping it ends the monitor.
///
/// A word that is being told on another thread meanwhile may still arrive.
#[must_use = "the monitor ends when this is dropped"]
pub struct Monitor {
    node: Arc<Node>,
    id: u64,
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let ended = self.node.record().take_monitor(self.id);
        // what a closure drops is foreign code; the lock is free again by now
        drop(ended);
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor")
            .field("path", &self.node.path)
            .finish_non_exhaustive()
    }
}

/// Who monitors a node.
#[derive(Clone, Default)]
pub(crate) struct Monitors(Vec<(u64, Tell<Down>)>);

impl Record {
    fn take_monitor(&mut self, id: u64) -> Option<Tell<Down>> {
        let Monitors(all) = self.monitors.as_deref_mut()?;
        let found = all.iter().position(|&(other, _)| other == id)?;
        Some(all.remove(found).1)
    }

    /// Whom to tell now.
    fn listeners(&mut self, last: bool) -> Monitors {
        self.departed |= last;
        let monitors = if last {
            self.monitors.take()
        } else {
            self.monitors.clone()
        };
        monitors.map_or_else(Monitors::default, |monitors| *monitors)
    }
}

impl Node {
    /// None if the node has had its last word.
    pub(crate) fn monitor(self: &Arc<Self>, tell: Tell<Down>) -> Option<Monitor> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut record = self.record();
        if record.departed {
            // `tell` is an argument, and so dropped after the lock is free
            return None;
        }
        record.monitors.get_or_insert_default().0.push((id, tell));
        drop(record);
        Some(Monitor {
            node: Arc::clone(self),
            id,
        })
    }

    /// An incarnation has ended; `last` if none can follow.
    pub(crate) fn end(&self, exit: &Exit, at: Instant, last: bool) {
        let listeners = {
            let mut record = self.record();
            record.ended = self.incarnation.load(Ordering::Acquire);
            let exit = exit.clone();
            record.last_exit = Some(Box::new(LastExit { exit, at }));
            record.listeners(last)
        };
        self.tell_down(listeners, exit, last);
    }

    /// No further incarnation will come: monitors hear so once, with the last exit, or with `exit` if there was none or it is still to come.
    pub(crate) fn depart(&self, exit: Exit) {
        let (listeners, last_exit) = {
            let mut record = self.record();
            let listeners = record.listeners(true);
            (listeners, record.last_exit.clone())
        };
        let exit = match exit {
            Exit::Stuck => exit,
            exit => last_exit.map_or(exit, |last| last.exit),
        };
        self.tell_down(listeners, &exit, true);
    }

    fn tell_down(&self, Monitors(listeners): Monitors, exit: &Exit, last: bool) {
        for (id, tell) in listeners {
            let down = Down {
                path: self.path.to_string(),
                incarnation: self.incarnation.load(Ordering::Acquire),
                exit: exit.clone(),
                last,
            };
            let heard = guard(&self.path, move || tell.tell(down));
            if heard == Ok(false) {
                // nobody is left to hear the next one
                let ended = self.record().take_monitor(id);
                drop(ended);
            }
        }
    }
}

#[cfg(test)]
mod tests;
