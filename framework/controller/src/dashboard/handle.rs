//! What the dashboard asks a controller's handle for, beyond what everybody may.

use std::collections::BTreeSet;

use boatswain_cache::{Key, Kind, ReadError};

use crate::{
    dispatch::ControllerHandle,
    recorder::{Note, Severity},
};

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

    /// Keys of the objects that its informers name for not decoding, to whichever reader.
    pub(super) fn undecodable(&self) -> BTreeSet<Key> {
        let Some(core) = self.core.upgrade() else {
            return BTreeSet::new();
        };
        let now = self.clock.now();
        let stores = core.runner.stores();
        let named = stores.iter().flat_map(|store| {
            let status = store.status(now);
            status.unreadable.into_iter().chain(status.undecodable)
        });
        named.map(|(key, _)| key).collect()
    }

    /// Whether it is known that there is no object of `key`, or none that it would see.
    pub(super) fn lacks(&self, key: &Key) -> bool {
        let core = self.core.upgrade();
        let object = core.map(|core| core.runner.look(key));
        matches!(object, Some(Ok(None) | Err(ReadError::OutOfScope { .. })))
    }

    /// Keys whose last runs failed.
    pub(super) fn failing(&self) -> Vec<Key> {
        let core = self.core.upgrade();
        let journals = core.iter().flat_map(|core| core.journals.all());
        journals.flat_map(|journal| journal.failing()).collect()
    }

    /// The keys of the longest of those runs that are remembered whole.
    pub(super) fn slowest(&self, limit: usize) -> Vec<Key> {
        let core = self.core.upgrade();
        let journals = core.iter().flat_map(|core| core.journals.all());
        journals
            .flat_map(|journal| journal.slowest(limit))
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
