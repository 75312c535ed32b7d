//! The event recorder: tells on the objects themselves what was done to them (`kubectl describe`).
//!
//! Reconcilers put [`Note`]s into a bounded queue and go on; one actor writes them as `events.k8s.io/v1` Events. A note that
//! repeats raises the count of its Event instead of making another.

mod actor;
mod state;

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

pub(crate) use actor::RecorderActor;
use k8s_openapi::api::core::v1::ObjectReference;
use tokio::sync::Notify;

use crate::sync::lock;

/// Notes that may wait for the API server; more are dropped and counted.
const CAPACITY: usize = 1000;

/// How an Event is shown by `kubectl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Severity {
    Normal,
    Warning,
}

/// One thing to tell about one object.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) regarding: ObjectReference,
    pub(crate) severity: Severity,
    pub(crate) reason: &'static str,
    pub(crate) note: String,
    pub(crate) controller: String,
    pub(crate) at: jiff::Timestamp,
}

/// The way into the recorder; it outlives every incarnation of the actor that writes.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Queue>);

#[derive(Default)]
struct Queue {
    notes: Mutex<VecDeque<Note>>,
    wake: Notify,
    closed: AtomicBool,
    dropped: AtomicU64,
    written: AtomicU64,
    failed: AtomicU64,
}

/// What became of the notes so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecorderCounts {
    pub(crate) waiting: u64,
    pub(crate) written: u64,
    pub(crate) dropped: u64,
    pub(crate) failed: u64,
}

impl Recorder {
    pub(crate) fn publish(&self, note: Note) {
        let mut notes = self.notes();
        if notes.len() >= CAPACITY {
            self.0.dropped.fetch_add(1, Relaxed);
            return;
        }
        notes.push_back(note);
        drop(notes);
        self.0.wake.notify_one();
    }

    pub(crate) fn counts(&self) -> RecorderCounts {
        RecorderCounts {
            waiting: self.notes().len() as u64,
            written: self.0.written.load(Relaxed),
            dropped: self.0.dropped.load(Relaxed),
            failed: self.0.failed.load(Relaxed),
        }
    }

    /// The next note, left in place until [`Recorder::taken`]: a crash while it is written loses nothing. `None` once closed and empty.
    async fn front(&self) -> Option<Note> {
        loop {
            let front = self.notes().front().cloned();
            match front {
                Some(note) => return Some(note),
                None if self.0.closed.load(Relaxed) => return None,
                None => self.0.wake.notified().await,
            }
        }
    }

    fn taken(&self, written: bool) {
        self.notes().pop_front();
        let count = if written {
            &self.0.written
        } else {
            &self.0.failed
        };
        count.fetch_add(1, Relaxed);
    }

    fn close(&self) {
        self.0.closed.store(true, Relaxed);
        self.0.wake.notify_one();
    }

    fn notes(&self) -> MutexGuard<'_, VecDeque<Note>> {
        lock(&self.0.notes)
    }
}
