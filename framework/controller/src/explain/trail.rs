//! What a run leaves behind, whatever becomes of it.

use std::{
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use boatswain_cache::{Key, Version};

use super::{ReconcileId, journal::Record};
use crate::{
    dispatch::{Desk, Ended, Ending},
    reconcile::Causes,
    sync::lock,
};

/// Writes of a run that are remembered in words.
const WRITES: usize = 8;

/// Kept by a run's context and by its client, which may outlive it.
#[derive(Default)]
pub(crate) struct Trail {
    /// Made when it is first asked for: most runs write nothing.
    pub(crate) client: OnceLock<kube::Client>,
    seen: OnceLock<Version>,
    writes: Mutex<Writes>,
    decided: Mutex<Option<Box<str>>>,
}

#[derive(Default)]
struct Writes {
    told: Vec<String>,
    count: u32,
}

impl Trail {
    /// The reconciler is called with the object in this state.
    pub(crate) fn saw(&self, version: &Version) {
        self.seen.get_or_init(|| version.clone());
    }

    /// It wrote something; `told` says what.
    pub(crate) fn wrote(&self, told: impl FnOnce() -> String) {
        let mut writes = lock(&self.writes);
        writes.count += 1;
        if writes.told.len() < WRITES {
            writes.told.push(told());
        }
    }

    /// The reconciler says what it decided.
    pub(crate) fn decided(&self, words: String) {
        *lock(&self.decided) = Some(super::journal::short(words));
    }
}

/// A run that has begun. It is written down when it has ended, also if it was lost.
pub(crate) struct Logbook {
    desk: Arc<Desk>,
    key: Key,
    id: ReconcileId,
    causes: Causes,
    attempt: u32,
    began: Instant,
    trail: Arc<Trail>,
    is_open: bool,
}

impl Logbook {
    pub(crate) fn open(desk: &Arc<Desk>, cx: &crate::Context, began: Instant) -> Self {
        Self {
            desk: desk.clone(),
            key: cx.key().clone(),
            id: cx.id(),
            causes: cx.causes(),
            attempt: cx.attempt(),
            began,
            trail: cx.trail().clone(),
            is_open: true,
        }
    }

    pub(crate) fn close(mut self, ended: &Ended, now: Instant) {
        self.is_open = false;
        if let Ended::Panicked(_) = ended {
            let core = &self.desk.core;
            core.sick.panicked(&core.name, &self.key, now);
        }
        if *ended != Ended::NotBegun {
            self.write(ended, now.saturating_duration_since(self.began));
        }
    }

    fn write(&self, ended: &Ended, took: Duration) {
        let (writes, written) = {
            let mut writes = lock(&self.trail.writes);
            (std::mem::take(&mut writes.told), writes.count)
        };
        let record = Record {
            key: self.key.clone(),
            id: Some(self.id),
            causes: self.causes,
            attempt: self.attempt,
            began: self.began,
            took,
            seen: self.trail.seen.get().cloned(),
            ending: Ending::of(ended),
            text: Record::text(ended),
            decided: lock(&self.trail.decided).take(),
            writes,
            written,
        };
        self.desk.core.journals.of(self.desk.index).ended(record);
    }
}

impl Drop for Logbook {
    fn drop(&mut self) {
        if self.is_open {
            self.write(&Ended::Aborted, Duration::ZERO);
        }
    }
}
