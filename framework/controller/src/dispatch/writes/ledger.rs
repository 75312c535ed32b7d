//! What one key wrote and the caches may not show yet; pure.
//!
//! Invariants: (1) a place has one entry; (2) an entry is never weakened: what shows it shows every write that went into it; (3) there are at most
//! [`REMEMBERED`] entries and, beyond them, one [`Beyond`] per store.

use std::collections::BTreeMap;

use boatswain_cache::{Key, Scope, Sight, Uid, Version};

/// Distinct objects that are remembered one by one.
pub(super) const REMEMBERED: usize = 64;

/// One of the stores a controller reads: the number of what is selected, and the part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Store {
    pub(super) selection: usize,
    pub(super) scope: Scope,
}

/// Where a write will show.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) store: Store,
    pub(super) object: Key,
}

/// What a write left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// This incarnation of the object in this state.
    At { uid: Uid, version: Version },
    /// Nothing of this incarnation: it was `deleted`, or is not selected any more, as it may be again. An absence from before `version` does not count.
    Gone {
        uid: Option<Uid>,
        version: Option<Version>,
        deleted: bool,
    },
}

/// What a look at a cache says of what is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// The cache shows it, or something later.
    Shown,
    /// Not yet.
    Pending,
    /// Only the server can tell: the answer to a write was lost, or the server was set back since.
    Unknown,
}

/// What is remembered of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Noted {
    mark: Option<Mark>,
    /// Writes of which nobody knows whether they happened.
    pub(super) unknown: u32,
    /// The server's history it was written in.
    history: u64,
}

/// What is remembered of the objects of a store beyond those that are remembered one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Beyond {
    version: Option<Version>,
    /// Writes that left no version behind: the server has to be asked how far it is.
    pub(super) unknown: u32,
    history: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    pub(super) entries: BTreeMap<Place, Noted>,
    pub(super) beyond: BTreeMap<Store, Beyond>,
}

impl Ledger {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.beyond.is_empty()
    }

    pub(super) fn has(&self, place: &Place) -> bool {
        self.entries.contains_key(place)
    }

    /// Remembers a write that was made in `history`.
    pub(super) fn note(&mut self, place: Place, mark: Mark, history: u64) {
        match self.entry(&place) {
            Some(noted) => noted.add(mark, history),
            None => match mark {
                Mark::At { version, .. } if version.is_ordered() => {
                    self.store(place.store).at(version, history);
                }
                _ => self.store(place.store).unknown += 1,
            },
        }
    }

    /// Remembers that a write to `place` may have happened.
    pub(super) fn note_unknown(&mut self, place: Place) {
        match self.entry(&place) {
            Some(noted) => noted.unknown += 1,
            None => self.store(place.store).unknown += 1,
        }
    }

    /// Remembers that something in `store` may have been written.
    pub(super) fn note_any(&mut self, store: Store) {
        self.store(store).unknown += 1;
    }

    /// The server was asked what became of `unknown` writes to `place`; `mark` is how it is, if that is anything to wait for.
    pub(super) fn learn(&mut self, place: &Place, unknown: u32, mark: Option<Mark>, history: u64) {
        let Some(noted) = self.entries.get_mut(place) else {
            return;
        };
        noted.unknown = noted.unknown.saturating_sub(unknown);
        match mark {
            Some(mark) => {
                // it is newer than whatever else is known, also after the server was set back
                noted.mark = Some(mark);
                noted.history = history;
            }
            None => noted.mark = None,
        }
    }

    /// The server was asked how far it is, because of `unknown` writes.
    pub(super) fn learn_any(
        &mut self,
        store: &Store,
        unknown: u32,
        at: Option<Version>,
        history: u64,
    ) {
        if let Some(beyond) = self.beyond.get_mut(store) {
            beyond.unknown = beyond.unknown.saturating_sub(unknown);
            beyond.version = at.filter(Version::is_ordered);
            beyond.history = history;
        }
    }

    /// The entry of `place`; `None` if it has none and there is no room for one.
    fn entry(&mut self, place: &Place) -> Option<&mut Noted> {
        if self.entries.len() >= REMEMBERED && !self.has(place) {
            // a version is remembered as well with others of its store
            let foldable = |noted: &Noted| noted.unknown == 0 && noted.version().is_some();
            let fold = self.entries.iter().find(|(_, noted)| foldable(noted));
            let fold = fold.map(|(place, _)| place.clone())?;
            let noted = self.entries.remove(&fold)?;
            if let Some(version) = noted.version() {
                self.store(fold.store).at(version.clone(), noted.history);
            }
        }
        Some(self.entries.entry(place.clone()).or_default())
    }

    fn store(&mut self, store: Store) -> &mut Beyond {
        self.beyond.entry(store).or_default()
    }
}

impl Noted {
    fn add(&mut self, mark: Mark, history: u64) {
        let before = self.mark.take().filter(|_| self.history == history);
        self.mark = Some(match before {
            Some(before) => before.and(mark),
            None => mark,
        });
        self.history = history;
    }

    /// The version that shows all of it, if one does.
    fn version(&self) -> Option<&Version> {
        match &self.mark {
            Some(Mark::At { version, .. }) if version.is_ordered() => Some(version),
            _ => None,
        }
    }

    pub(super) fn judge(&self, sight: Sight<'_>) -> Judgement {
        if self.unknown > 0 {
            return Judgement::Unknown;
        }
        match &self.mark {
            None => Judgement::Shown,
            Some(_) if sight.history != self.history => Judgement::Unknown,
            Some(mark) if mark.is_shown(sight) => Judgement::Shown,
            Some(_) => Judgement::Pending,
        }
    }
}

impl Beyond {
    fn at(&mut self, version: Version, history: u64) {
        if self.history != history {
            self.version = None;
            self.history = history;
        }
        self.version = later(self.version.take(), Some(version));
    }

    pub(super) fn judge(&self, low_water: Option<&Version>, history: u64) -> Judgement {
        match &self.version {
            _ if self.unknown > 0 => Judgement::Unknown,
            None => Judgement::Shown,
            Some(_) if history != self.history => Judgement::Unknown,
            Some(version) if low_water.is_some_and(|low| low.has_reached(version)) => {
                Judgement::Shown
            }
            Some(_) => Judgement::Pending,
        }
    }
}

impl Mark {
    /// What shows both, where `answered` was answered after `self`; the answers may have come in another order than the writes were made.
    fn and(self, answered: Self) -> Self {
        match (self, answered) {
            (one @ Self::At { .. }, other @ Self::At { .. }) => {
                let is_older = other.version().is_some_and(|it| one.is_after(it));
                if is_older { one } else { other }
            }
            (
                Self::Gone {
                    uid: one,
                    version,
                    deleted,
                },
                Self::Gone {
                    uid: other,
                    version: at,
                    deleted: too,
                },
            ) => Self::Gone {
                deleted: too || (one == other && deleted),
                uid: other.or(one),
                version: later(version, at),
            },
            (Self::Gone { uid: None, .. }, at @ Self::At { .. }) => at,
            (at @ Self::At { .. }, gone @ Self::Gone { .. })
            | (gone @ Self::Gone { .. }, at @ Self::At { .. }) => at.or_gone(gone),
        }
    }

    /// What shows both of an object that was and of one that is gone.
    fn or_gone(self, gone: Self) -> Self {
        let Self::At { uid, version } = &self else {
            return self;
        };
        let Self::Gone {
            uid: left,
            version: since,
            deleted,
        } = gone
        else {
            return self;
        };
        let is_same = left.as_ref().is_none_or(|left| left == uid);
        let stays = if is_same {
            // a name that was freed is taken by another incarnation only
            !deleted && since.as_ref().is_some_and(|since| since.is_before(version))
        } else {
            since.as_ref().is_none_or(|since| !version.is_before(since))
        };
        if stays {
            return self;
        }
        let reached = is_same.then(|| version.clone());
        Self::Gone {
            uid: left.or_else(|| Some(uid.clone())),
            version: later(reached, since),
            deleted,
        }
    }

    fn version(&self) -> Option<&Version> {
        match self {
            Self::At { version, .. } => Some(version),
            Self::Gone { version, .. } => version.as_ref(),
        }
    }

    fn is_after(&self, version: &Version) -> bool {
        self.version().is_some_and(|mine| version.is_before(mine))
    }

    fn is_shown(
        &self,
        Sight {
            synced,
            low_water,
            stored,
            ..
        }: Sight<'_>,
    ) -> bool {
        match self {
            Self::At { version, .. } => {
                low_water.is_some_and(|low| low.has_reached(version))
                    || stored.is_some_and(|it| it.meta().resource_version.has_reached(version))
            }
            Self::Gone {
                uid,
                version,
                deleted,
            } => match stored.map(boatswain_cache::Object::meta) {
                Some(meta) => {
                    let at = &meta.resource_version;
                    let is_past = !deleted
                        && version
                            .as_ref()
                            .is_some_and(|version| version.is_before(at));
                    let is_other = uid.as_ref().is_some_and(|uid| *uid != meta.uid);
                    let is_old = version
                        .as_ref()
                        .is_some_and(|version| at.is_before(version));
                    is_past || (is_other && !is_old)
                }
                // it may have been created so lately that the cache has not heard of that either
                None => {
                    synced
                        && version.as_ref().is_none_or(|version| {
                            !version.is_ordered()
                                || low_water.is_none_or(|low| !low.is_before(version))
                        })
                }
            },
        }
    }
}

/// The later of two versions; of two without an order the second.
fn later(one: Option<Version>, other: Option<Version>) -> Option<Version> {
    match (one, other) {
        (Some(one), Some(other)) if other.is_before(&one) => Some(one),
        (one, None) => one,
        (_, other) => other,
    }
}

#[cfg(test)]
mod tests;
