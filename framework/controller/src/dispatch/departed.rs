//! Objects that are gone and whose reconcilers have not been told yet.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use boatswain_cache::{Key, Object};

use crate::sync::lock;

/// The most that are remembered: each is a whole object.
const REMEMBERED: usize = 10_000;

/// Objects that are gone from the cache and whose reconciler has not been told yet: what a rebuilt shard cannot learn from the store. Bounded:
/// of too many the oldest is forgotten, so that its reconciler is told without its last state, or after a crash not at all.
#[derive(Clone, Default)]
pub(crate) struct Departed(Arc<Shelf>);

#[derive(Default)]
struct Shelf {
    book: Mutex<Book>,
    /// How many are remembered, mostly none: every run asks, on whatever thread, and need not take the lock to learn that. What caused a run has been
    /// counted before the run was asked for.
    count: AtomicUsize,
}

#[derive(Default)]
struct Book {
    last: HashMap<Key, Entry>,
    /// The same by age; a number for each of `last`.
    by_age: BTreeMap<u64, Key>,
    next: u64,
    /// Those below had departed by the last [`Departed::forget_old`].
    old: u64,
}

struct Entry {
    number: u64,
    last: Object,
    /// Whether a reconciler was ever told of it.
    told: bool,
}

/// What became of the last state of an object whose key is given up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LetGo {
    /// Its reconciler was told of it, and it is forgotten now.
    Forgotten,
    /// It departed so lately that nobody was told of it: it stays.
    Untold,
    /// There is none.
    Nothing,
}

impl Departed {
    /// Remembers what departed. Returns what was forgotten for it.
    #[must_use = "whatever is forgotten is counted"]
    pub(crate) fn insert(&self, last: Object) -> Option<Key> {
        self.insert_within(last, REMEMBERED)
    }

    fn insert_within(&self, last: Object, bound: usize) -> Option<Key> {
        self.change(|book| book.insert(last, bound))
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Object> {
        if self.0.count.load(Relaxed) == 0 {
            return None;
        }
        self.book().last.get(key).map(|entry| entry.last.clone())
    }

    /// What the reconciler is told now.
    pub(crate) fn tell(&self, key: &Key) -> Option<Object> {
        let mut book = self.book();
        let entry = book.last.get_mut(key)?;
        entry.told = true;
        Some(entry.last.clone())
    }

    /// The reconciler has failed at `key` for good.
    pub(crate) fn let_go(&self, key: &Key) -> LetGo {
        self.change(|book| match book.last.get(key) {
            None => LetGo::Nothing,
            Some(Entry { told: false, .. }) => LetGo::Untold,
            Some(Entry { number, .. }) => {
                let number = *number;
                book.forget(key, number);
                LetGo::Forgotten
            }
        })
    }

    /// Forgets what departed, unless another incarnation has departed since.
    pub(crate) fn settle(&self, dealt_with: &Object) {
        self.change(|book| {
            let Some(Entry { number, last, .. }) = book.last.get(dealt_with.key()) else {
                return;
            };
            if last.meta().uid == dealt_with.meta().uid {
                let number = *number;
                book.forget(dealt_with.key(), number);
            }
        });
    }

    /// Forgets what had departed by the last time this was called: a standby need not tell what the leader has been told long ago.
    pub(crate) fn forget_old(&self) {
        self.change(|book| {
            let young = book.by_age.split_off(&(book.old + 1));
            for key in std::mem::replace(&mut book.by_age, young).into_values() {
                book.last.remove(&key);
            }
            book.old = book.next;
        });
    }

    /// Whose last states there are, the one that departed longest ago first.
    pub(crate) fn keys(&self) -> Vec<Key> {
        self.book().by_age.values().cloned().collect()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.0.book)
    }

    /// The one way to add or remove: it counts.
    fn change<T>(&self, change: impl FnOnce(&mut Book) -> T) -> T {
        let mut book = self.book();
        let changed = change(&mut book);
        self.0.count.store(book.last.len(), Relaxed);
        changed
    }
}

impl Book {
    fn insert(&mut self, last: Object, bound: usize) -> Option<Key> {
        self.next += 1;
        self.by_age.insert(self.next, last.key().clone());
        let entry = Entry {
            number: self.next,
            told: false,
            last,
        };
        if let Some(before) = self.last.insert(entry.last.key().clone(), entry) {
            self.by_age.remove(&before.number);
        }
        if self.last.len() <= bound {
            return None;
        }
        let (_, oldest) = self.by_age.pop_first()?;
        self.last.remove(&oldest);
        Some(oldest)
    }

    fn forget(&mut self, key: &Key, number: u64) {
        self.last.remove(key);
        self.by_age.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use boatswain_cache::envelope;
    use serde_json::json;

    use super::*;

    fn object(name: &str, uid: &str) -> Object {
        let json = json!({ "metadata": { "name": name, "uid": uid, "resourceVersion": "1" } });
        envelope::open(json.to_string().as_bytes()).expect("an object")
    }

    #[test]
    fn of_too_many_that_departed_the_oldest_is_forgotten_and_an_incarnation_settles_only_itself() {
        let departed = Departed::default();
        let insert = |name, uid| departed.insert_within(object(name, uid), 2);
        assert_eq!((insert("a", "1"), insert("b", "1")), (None, None));
        assert_eq!(
            insert("a", "2"),
            None,
            "it departed again: it is the youngest now"
        );
        assert_eq!(insert("c", "1"), Some(Key::new(None, "b")));
        departed.settle(&object("a", "1"));
        assert!(
            departed.get(&Key::new(None, "a")).is_some(),
            "another incarnation"
        );
        departed.settle(&object("a", "2"));
        assert!(departed.get(&Key::new(None, "a")).is_none());
        assert_eq!(departed.keys(), [Key::new(None, "c")]);
        let book = departed.book();
        assert_eq!((book.last.len(), book.by_age.len()), (1, 1));
    }

    #[test]
    fn what_departed_before_the_last_round_is_forgotten_in_the_next() {
        let departed = Departed::default();
        let names = || {
            departed
                .keys()
                .iter()
                .map(|key| key.name().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(departed.insert(object("a", "1")), None);
        departed.forget_old();
        assert_eq!(departed.insert(object("b", "1")), None);
        assert_eq!(names(), ["a", "b"]);
        departed.forget_old();
        assert_eq!(names(), ["b"]);
        departed.forget_old();
        assert!(names().is_empty() && departed.book().last.is_empty());
    }

    #[test]
    fn only_what_a_reconciler_was_told_of_is_let_go() {
        let (departed, key) = (Departed::default(), Key::new(None, "a"));
        assert_eq!(departed.let_go(&key), LetGo::Nothing);
        assert_eq!(departed.insert(object("a", "1")), None);
        assert_eq!(departed.let_go(&key), LetGo::Untold);
        assert!(departed.tell(&key).is_some());
        assert_eq!(departed.insert(object("a", "2")), None);
        assert_eq!(departed.let_go(&key), LetGo::Untold, "another incarnation");
        assert!(departed.tell(&key).is_some());
        assert_eq!(departed.let_go(&key), LetGo::Forgotten);
        assert!(departed.keys().is_empty() && departed.book().by_age.is_empty());
    }
}
