//! The changes a trigger has in hand, and those that were set aside because they killed it.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Mutex, MutexGuard},
};

use boatswain_cache::{Batch, Change, Key};
use serde_json::{Value, json};

use crate::sync::lock;

/// The most names of changes set aside that are kept.
const NAMED: usize = 1000;

/// A batch in the hand of a trigger. It outlives the trigger, whose next incarnation goes on with it, one change at a time.
pub(super) struct InHand {
    pub(super) batch: Batch,
    pub(super) progress: Progress,
}

/// How far a batch has been handled, over the deaths of those who handle it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Changes that have been dealt with.
    done: usize,
    /// Whether anything has been begun: if so, and not ended, whoever began it died of it.
    begun: bool,
    /// Whether the next change was begun alone.
    alone: bool,
}

/// What to do next with a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Handle these.
    Handle(Range<usize>),
    /// Set this one aside: it killed its trigger twice, among others and alone.
    SetAside(usize),
    End,
}

impl Progress {
    /// Begins the next step on a batch of `changes`.
    pub(super) fn begin(&mut self, changes: usize) -> Step {
        if self.done >= changes {
            return Step::End;
        }
        if !self.begun {
            self.begun = true;
            return Step::Handle(0..changes);
        }
        if std::mem::replace(&mut self.alone, true) {
            return Step::SetAside(self.done);
        }
        Step::Handle(self.done..self.done + 1)
    }

    /// All changes up to this one, without it, have been dealt with.
    pub(super) fn did(&mut self, up_to: usize) {
        self.done = up_to;
        self.alone = false;
    }
}

/// Objects whose changes killed their trigger; each is named until a later change of it is handled.
#[derive(Default)]
pub(crate) struct Quarantine(Mutex<BTreeMap<Key, String>>);

impl Quarantine {
    pub(super) fn insert(&self, change: &Change) {
        let mut names = self.names();
        if names.len() < NAMED {
            names.insert(change.key().clone(), format!("{change:?}"));
        }
    }

    /// Changes that were handled speak for their objects.
    pub(super) fn forget<'a>(&self, handled: impl Iterator<Item = &'a Key>) {
        let mut names = self.names();
        if !names.is_empty() {
            handled.for_each(|key| drop(names.remove(key)));
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<String> {
        self.names().get(key).cloned()
    }

    pub(super) fn show(&self) -> Value {
        let names = self.names();
        names
            .iter()
            .map(|(key, change)| json!({ "key": key.as_str(), "change": change }))
            .collect()
    }

    fn names(&self) -> MutexGuard<'_, BTreeMap<Key, String>> {
        lock(&self.0)
    }
}
