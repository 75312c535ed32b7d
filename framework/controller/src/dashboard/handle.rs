//! What the dashboard asks a controller's handle for, beyond what everybody may.

use std::time::{Duration, Instant};

use boatswain_cache::{Key, Kind};
use jiff::Timestamp;

use crate::{
    dispatch::ControllerHandle,
    explain::Failing,
    recorder::{Note, Severity},
    sync::lock,
};

/// How long a key fails until that is a trouble: retries are for what passes.
const STUBBORN: Duration = Duration::from_secs(30);

impl ControllerHandle {
    /// The kind it reconciles; none after the end.
    pub(super) fn kind(&self) -> Option<Kind> {
        let stores = self.core.upgrade()?.runner.stores();
        stores.first().map(|core| core.kind().clone())
    }

    /// The keys of every object it sees.
    pub(super) fn objects(&self) -> Vec<Key> {
        let core = self.core.upgrade();
        core.map_or_else(Vec::new, |core| core.runner.keys())
    }

    /// Keys whose last runs failed.
    pub(super) fn failing(&self) -> Vec<Key> {
        let core = self.core.upgrade();
        let journals = core.iter().flat_map(|core| &core.journals);
        journals
            .flat_map(|journal| lock(journal).failing())
            .collect()
    }

    /// Keys that have been failing for [`STUBBORN`] at least and are not parked: how many, and the one that has failed longest. What a standby remembers of them
    /// is past: others run them.
    pub(super) fn stubborn(&self) -> Option<(usize, Key, Failing)> {
        let then = self.clock.now().checked_sub(STUBBORN)?;
        let core = self.core.upgrade().filter(|_| !self.gate.is_standby())?;
        let mut all = Vec::new();
        for (view, journal) in self.views.iter().zip(&core.journals) {
            let mut failing = lock(journal).failing_since(then);
            if !failing.is_empty() {
                // one that is idle has gone, or had nothing to do any more
                view.look(|queue| failing.retain(|(key, _)| queue.state_of(key).is_some()));
                failing.retain(|(key, _)| !view.parked.contains(key));
            }
            all.append(&mut failing);
        }
        let count = all.len();
        let first = all.into_iter().min_by_key(|(_, failing)| failing.since);
        first.map(|(key, failing)| (count, key, failing))
    }

    /// When that was.
    pub(super) fn wall_of(&self, at: Instant) -> Timestamp {
        let ago = self.clock.now().saturating_duration_since(at);
        let wall = self.clock.wall().checked_sub(ago);
        let wall = wall.and_then(|wall| Timestamp::try_from(wall).ok());
        wall.unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// The keys of the longest of those runs that are remembered whole.
    pub(super) fn slowest(&self, limit: usize) -> Vec<Key> {
        let core = self.core.upgrade();
        let journals = core.iter().flat_map(|core| &core.journals);
        journals
            .flat_map(|journal| lock(journal).slowest(limit))
            .collect()
    }

    /// Tells on the object of `key`, if there is one, what was done.
    pub(super) fn tell(&self, key: &Key, reason: &'static str, note: &str) {
        let Some(core) = self.core.upgrade() else {
            return;
        };
        let Some(regarding) = core.runner.reference(key) else {
            return;
        };
        let note = Note::on(regarding, Severity::Normal, reason, note.to_owned());
        core.surroundings.recorder.publish(&self.name, &note);
    }
}
