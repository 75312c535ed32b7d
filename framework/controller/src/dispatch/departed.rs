//! Objects that are gone and whose reconcilers have not been told yet.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard},
};

use boatswain_cache::{Key, Object};

use crate::sync::lock;

/// The most that are remembered: each is a whole object.
const REMEMBERED: usize = 10_000;

/// Objects that are gone from the cache and whose reconciler has not been told yet: what a rebuilt shard cannot learn from the store. Bounded:
/// of too many the oldest is forgotten, so that its reconciler is told without its last state, or after a crash not at all.
#[derive(Clone, Default)]
pub(crate) struct Departed(Arc<Mutex<Book>>);

#[derive(Default)]
struct Book {
    last: HashMap<Key, (u64, Object)>,
    /// The same by age; a number for each of `last`.
    by_age: BTreeMap<u64, Key>,
    next: u64,
}

impl Departed {
    /// Remembers what departed. Returns what was forgotten for it.
    #[must_use = "whatever is forgotten is counted"]
    pub(crate) fn insert(&self, last: Object) -> Option<Key> {
        self.insert_within(last, REMEMBERED)
    }

    fn insert_within(&self, last: Object, bound: usize) -> Option<Key> {
        let mut book = self.book();
        let Book {
            last: all,
            by_age,
            next,
        } = &mut *book;
        *next += 1;
        by_age.insert(*next, last.key().clone());
        if let Some((before, _)) = all.insert(last.key().clone(), (*next, last)) {
            by_age.remove(&before);
        }
        if all.len() <= bound {
            return None;
        }
        let (_, oldest) = by_age.pop_first()?;
        all.remove(&oldest);
        Some(oldest)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Object> {
        self.book().last.get(key).map(|(_, last)| last.clone())
    }

    /// Forgets what departed, unless another incarnation has departed since.
    pub(crate) fn settle(&self, dealt_with: &Object) {
        let mut book = self.book();
        let Some((number, last)) = book.last.get(dealt_with.key()) else {
            return;
        };
        if last.meta().uid == dealt_with.meta().uid {
            let number = *number;
            book.last.remove(dealt_with.key());
            book.by_age.remove(&number);
        }
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        self.book().last.keys().cloned().collect()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.0)
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
}
