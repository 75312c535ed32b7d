//! Which changes of a key's own object are nothing but what its last run wrote.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
};

use boatswain_cache::{Key, Version};

use super::{Ended, Target};
use crate::{
    reconcile::{Causes, Outcome},
    sync::lock,
};

/// Changes of one key that are told apart between two runs, and writes of one run.
const TOLD_APART: usize = 16;

/// A change from one state to the next.
type Step = (Version, Version);

/// Remembers, per key, the steps its last run made and those that were heard of since: if these are all of those, and the run ended `Done`, nothing is
/// new. Steps are exact: a write counts only if it named the version it was to replace, so that nobody else's change can hide in it. No time plays a part.
#[derive(Default)]
pub(crate) struct Echoes(Option<Book>);

struct Book {
    group: String,
    plural: String,
    keys: Mutex<HashMap<Key, Echo>>,
}

#[derive(Default)]
struct Echo {
    made: Vec<Step>,
    heard: Vec<Step>,
    /// More was heard or written than is told apart.
    much: bool,
    done: bool,
}

impl Echoes {
    /// Of the objects of a kind.
    pub(crate) fn of(group: &str, plural: &str) -> Self {
        Self(Some(Book {
            group: group.to_owned(),
            plural: plural.to_owned(),
            keys: Mutex::default(),
        }))
    }

    /// Whether a write to `target` by a run of `key` may echo.
    pub(crate) fn concern(&self, key: &Key, target: &Target) -> bool {
        self.0.as_ref().is_some_and(|book| {
            let same = target.group == book.group && target.plural == book.plural;
            same && target.key().as_ref() == Some(key)
        })
    }

    /// The run of `key` that goes on replaced the state `from` of its object by `to`.
    pub(crate) fn made(&self, key: &Key, from: Version, to: Version) {
        self.change(key, |echo| {
            if echo.made.len() < TOLD_APART {
                echo.made.push((from, to));
            } else {
                echo.much = true;
            }
        });
    }

    /// The trigger heard of a change.
    pub(crate) fn heard(&self, key: &Key, from: &Version, to: &Version) {
        self.change(key, |echo| {
            if echo.heard.len() < TOLD_APART {
                echo.heard.push((from.clone(), to.clone()));
            } else {
                echo.much = true;
            }
        });
    }

    /// A run of `key` is to begin because of `causes`. True if there is no news in them; otherwise a new account begins.
    pub(crate) fn is_all(&self, key: &Key, causes: Causes) -> bool {
        let Some(book) = &self.0 else { return false };
        let mut keys = book.keys();
        let Some(echo) = keys.get_mut(key) else {
            return false;
        };
        let nothing_new = causes == Causes::UPDATED
            && echo.done
            && !echo.much
            && !echo.heard.is_empty()
            && echo.heard.iter().all(|step| echo.has_made(step));
        if nothing_new {
            echo.heard.clear();
        } else {
            forget(&mut keys, key);
        }
        nothing_new
    }

    /// A run of `key` has ended.
    pub(crate) fn ended(&self, key: &Key, ended: &Ended) {
        let Some(book) = &self.0 else { return };
        let mut keys = book.keys();
        if let Some(echo) = keys.get_mut(key) {
            echo.done = *ended == Ended::Outcome(Outcome::Done);
            // what is too much to be told apart never will be an echo
            if !echo.done || echo.made.is_empty() || echo.much {
                forget(&mut keys, key);
            }
        }
    }

    /// The object is gone: whatever is heard next is news.
    pub(crate) fn forget(&self, key: &Key) {
        if let Some(book) = &self.0 {
            forget(&mut book.keys(), key);
        }
    }

    fn change(&self, key: &Key, change: impl FnOnce(&mut Echo)) {
        if let Some(book) = &self.0 {
            change(book.keys().entry(key.clone()).or_default());
        }
    }
}

/// Forgets a key, and gives room back after a burst.
fn forget(keys: &mut HashMap<Key, Echo>, key: &Key) {
    keys.remove(key);
    if keys.capacity() > 64 && keys.len() < keys.capacity() / 4 {
        keys.shrink_to(keys.len() * 2);
    }
}

impl Book {
    fn keys(&self) -> MutexGuard<'_, HashMap<Key, Echo>> {
        lock(&self.keys)
    }
}

impl Echo {
    /// Whether the run's own steps, one after the other, lead from here to there and nowhere else.
    fn has_made(&self, (from, to): &Step) -> bool {
        let mut at = from;
        for (before, after) in &self.made {
            if before == at {
                at = after;
            }
            if at == to {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_steps_of_a_run_that_is_done_are_echoes() {
        let (echoes, key) = (Echoes::of("", "configmaps"), Key::new(None, "a"));
        let version = |number: u32| Version::new(&number.to_string());
        let run = |steps: &[(u32, u32)], ended: Outcome| {
            assert!(!echoes.is_all(&key, Causes::CREATED));
            for (from, to) in steps {
                echoes.made(&key, version(*from), version(*to));
            }
            echoes.ended(&key, &Ended::Outcome(ended));
        };
        let hears = |from, to| {
            echoes.heard(&key, &version(from), &version(to));
            echoes.is_all(&key, Causes::UPDATED)
        };
        run(&[(1, 2), (2, 4)], Outcome::Done);
        assert!(hears(1, 2) && hears(2, 4));
        run(&[(1, 2), (2, 4)], Outcome::Done);
        assert!(hears(1, 4), "both in one");
        assert!(!hears(4, 5), "another's");
        assert!(!hears(1, 2), "whatever there was is not known any more");
        run(&[(1, 2), (3, 4)], Outcome::Done);
        assert!(!hears(1, 4), "another's is in between");
        run(&[(1, 2)], Outcome::Retry);
        assert!(!hears(1, 2), "it was not done");
        run(&[(1, 2)], Outcome::Done);
        echoes.heard(&key, &version(1), &version(2));
        assert!(!echoes.is_all(&key, Causes::UPDATED.and(Causes::OWNED)));
        run(&[], Outcome::Done);
        assert!(
            !echoes.is_all(&key, Causes::UPDATED),
            "nothing was heard of"
        );
        assert!(Echoes::default().0.is_none());
    }

    #[test]
    fn memory_follows_keys_with_echoes_to_come_and_no_number_of_writes() {
        let echoes = Echoes::of("", "configmaps");
        let version = |number: usize| Version::new(&number.to_string());
        let len = || echoes.0.as_ref().map_or(0, |book| book.keys().len());
        let key = |name: usize| Key::new(None, &name.to_string());
        for name in 0..1000 {
            echoes.made(&key(name), version(1), version(2));
            echoes.ended(&key(name), &Ended::Outcome(Outcome::Done));
        }
        assert_eq!(len(), 1000);
        for name in 0..1000 {
            echoes.forget(&key(name));
        }
        assert_eq!(len(), 0);
        let room = echoes.0.as_ref().map_or(0, |book| book.keys().capacity());
        assert!(room <= 64, "{room}");
        for step in 0..1000 {
            echoes.made(&key(0), version(step), version(step + 1));
        }
        let made = echoes
            .0
            .as_ref()
            .map(|book| book.keys()[&key(0)].made.len());
        assert_eq!(made, Some(TOLD_APART));
        echoes.ended(&key(0), &Ended::Outcome(Outcome::Done));
        assert_eq!(len(), 0, "it is not known which of them are heard of");
    }
}
