//! Read your writes: what runs of a key wrote, and whether the caches show it yet.

mod barrier;
mod ledger;

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    hash::BuildHasher as _,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use boatswain_cache::{InformerCore, Key, Object, Uid, Version, View};
use boatswain_workqueue::Seeded;
use ledger::{Judgement, Ledger, Mark, Place, Store};
use tokio::sync::Semaphore;

use crate::sync::lock;

/// Keys are spread over so many locks.
const BOOKS: usize = 16;
/// Held keys about whose writes the server is asked at once, so that an outage does not end in a stampede.
const ASKS: usize = 16;
/// What is not shown after this time never will be, or has long ceased to matter.
const OLD: Duration = Duration::from_secs(10 * 60);

/// What the keys of one controller wrote and the caches it reads may not show yet.
///
/// Written to by the recording clients of runs, read before the next run of a key. Memory follows the writes that are not shown: each write looks through
/// two other keys for what is, as most keys never run again.
pub(crate) struct Writes {
    caches: Vec<View>,
    books: [Mutex<Book>; BOOKS],
    /// Whether anything was ever written: who only reads need not look.
    used: AtomicBool,
    /// Held keys about whose writes the server is asked at once.
    asks: Semaphore,
}

#[derive(Default)]
struct Book {
    keys: HashMap<Key, Kept, Seeded>,
    /// Keys to look through, the one that was looked at longest ago first; those whose number is another by now are left out.
    round: VecDeque<(u64, Key)>,
    next: u64,
}

struct Kept {
    number: u64,
    /// When the last was written.
    at: Instant,
    ledger: Ledger,
    /// Until when the next run waits for the caches, whoever goes on writing meanwhile: since it first had to.
    end: Option<Instant>,
    /// Why the server could not be asked what became of a write.
    failed: Option<String>,
}

/// What a request asks to be written: a resource, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) namespace: Option<String>,
    /// None for a collection.
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(subresource) = &self.subresource {
            write!(f, "/{subresource}")?;
        }
        match (self.key(), &self.namespace) {
            (Some(key), _) => write!(f, " {key}"),
            (None, Some(namespace)) => write!(f, " in {namespace}"),
            (None, None) => Ok(()),
        }
    }
}

impl Target {
    pub(crate) fn key(&self) -> Option<Key> {
        let name = self.name.as_deref()?;
        Some(Key::new(self.namespace.as_deref(), name))
    }

    fn is_of(&self, core: &InformerCore) -> bool {
        let kind = core.kind();
        kind.plural == self.plural && kind.group == self.group
    }
}

type Stores = Vec<(Store, Arc<InformerCore>)>;

impl Writes {
    /// Over the caches a controller reads. A kind without a cache is not waited for.
    pub(crate) fn new(caches: Vec<View>) -> Self {
        Self {
            caches,
            books: std::array::from_fn(|_| Mutex::default()),
            used: AtomicBool::new(false),
            asks: Semaphore::new(ASKS),
        }
    }

    /// Whether anything the controller reads could show what is written to `target`.
    pub(crate) fn concern(&self, target: &Target) -> bool {
        !self.stores_of_all(target).is_empty()
    }

    /// A run of `key` wrote `answer`, the whole object, or, if it is not `whole`, something else that carries its identity and version.
    pub(crate) fn wrote(
        &self,
        key: &Key,
        target: &Target,
        answer: &Object,
        whole: bool,
        now: Instant,
    ) {
        let object = answer.key();
        let (uid, version) = (
            answer.meta().uid.clone(),
            answer.meta().resource_version.clone(),
        );
        self.note(key, target, object, now, |ledger, place, core| {
            let selection = core.selection();
            let known = || ledger.has(&place) || core.get(object).is_some();
            let (uid, version) = (uid.clone(), version.clone());
            if selection.is_unconditional() || (whole && selection.meets(answer)) {
                ledger.note(place, Mark::At { uid, version }, core.history());
            } else if !whole {
                // such an answer does not say whether the object will show
                if known() {
                    ledger.note(place, Mark::At { uid, version }, core.history());
                } else {
                    ledger.note_unknown(place);
                }
            } else if known() {
                // it leaves what is selected; what neither was nor is selected will never show
                let (uid, version) = (Some(uid), Some(version));
                ledger.note(
                    place,
                    Mark::Gone {
                        uid,
                        version,
                        deleted: false,
                    },
                    core.history(),
                );
            }
        });
    }

    /// A run of `key` deleted the object of `target`: the incarnation `uid`, whose last state had `version`, as far as the answer said.
    pub(crate) fn removed(
        &self,
        key: &Key,
        target: &Target,
        (uid, version): (Option<Uid>, Option<Version>),
        now: Instant,
    ) {
        let Some(object) = target.key() else { return };
        self.note(key, target, &object, now, |ledger, place, core| {
            let stored = core.get(&object);
            if stored.is_some() || ledger.has(&place) || core.selection().is_unconditional() {
                let stored = stored.map(|stored| stored.meta().uid.clone());
                let uid = uid.clone().or(stored);
                ledger.note(
                    place,
                    Mark::Gone {
                        uid,
                        version: version.clone(),
                        deleted: true,
                    },
                    core.history(),
                );
            }
        });
    }

    /// A run of `key` may have written to `target`, or knows less of it than it thought.
    pub(crate) fn unknown(&self, key: &Key, target: &Target, now: Instant) {
        match target.key() {
            Some(object) => {
                let note =
                    |ledger: &mut Ledger, place, _: &InformerCore| ledger.note_unknown(place);
                self.note(key, target, &object, now, note);
            }
            None => {
                let stores = self.stores_of_all(target);
                self.used.store(true, Relaxed);
                self.book(key).note(key, now, |ledger| {
                    stores
                        .into_iter()
                        .for_each(|(store, _)| ledger.note_any(store));
                });
            }
        }
        self.sweep(key, now);
    }

    fn note(
        &self,
        key: &Key,
        target: &Target,
        object: &Key,
        now: Instant,
        note: impl Fn(&mut Ledger, Place, &InformerCore),
    ) {
        let stores = self.stores(target, object.namespace());
        self.used.store(true, Relaxed);
        self.book(key).note(key, now, |ledger| {
            for (store, core) in stores {
                let object = object.clone();
                note(ledger, Place { store, object }, &core);
            }
        });
        self.sweep(key, now);
    }

    /// The stores that may show any of what is written to `target`; all of them for a collection in all namespaces.
    fn stores_of_all(&self, target: &Target) -> Stores {
        let namespace = target.namespace.as_deref();
        let everywhere = target.name.is_none() && namespace.is_none();
        self.stores_where(target, |core| {
            everywhere || core.scope().contains(namespace)
        })
    }

    /// The stores that may show an object of `namespace`.
    fn stores(&self, target: &Target, namespace: Option<&str>) -> Stores {
        self.stores_where(target, |core| core.scope().contains(namespace))
    }

    fn stores_where(&self, target: &Target, shows: impl Fn(&InformerCore) -> bool) -> Stores {
        let mut stores = Vec::new();
        for (selection, view) in self.caches.iter().enumerate() {
            let cores = view.cores();
            let shows = |core: &&Arc<InformerCore>| target.is_of(core) && shows(core);
            stores.extend(cores.iter().filter(shows).map(|core| {
                let scope = core.scope().clone();
                (Store { selection, scope }, core.clone())
            }));
        }
        stores
    }

    /// The store as it is now; `None` if there is no such any more, so that nothing will ever show there.
    fn core(&self, store: &Store) -> Option<Arc<InformerCore>> {
        let cores = self.caches.get(store.selection)?.cores();
        let found = cores.iter().find(|core| *core.scope() == store.scope);
        found.filter(|core| !core.retired()).cloned()
    }

    fn judge(&self, place: &Place, noted: &ledger::Noted) -> Judgement {
        match self.core(&place.store) {
            Some(core) => core.look(&place.object, |sight| noted.judge(sight)),
            None => Judgement::Shown,
        }
    }

    fn judge_beyond(&self, store: &Store, beyond: &ledger::Beyond) -> Judgement {
        match self.core(store) {
            Some(core) => beyond.judge(core.low_water().as_ref(), core.history()),
            None => Judgement::Shown,
        }
    }

    /// Forgets what is shown.
    fn settle(&self, ledger: &mut Ledger) {
        let open = |judgement| judgement != Judgement::Shown;
        ledger
            .entries
            .retain(|place, noted| open(self.judge(place, noted)));
        ledger
            .beyond
            .retain(|store, beyond| open(self.judge_beyond(store, beyond)));
    }

    /// Looks through two keys for what is shown or too old.
    fn sweep(&self, near: &Key, now: Instant) {
        let mut book = self.book(near);
        for _ in 0..2 {
            let Some((number, key)) = book.round.pop_front() else {
                return;
            };
            let Some(kept) = book.keys.get_mut(&key).filter(|kept| kept.number == number) else {
                continue;
            };
            self.settle(&mut kept.ledger);
            let is_done = kept.ledger.is_empty() && kept.end.is_none();
            if is_done || now.saturating_duration_since(kept.at) > OLD {
                book.keys.remove(&key);
            } else {
                book.round.push_back((number, key));
            }
        }
    }

    /// Whether anything is remembered of `key`, shown or not.
    pub(crate) fn has(&self, key: &Key) -> bool {
        self.used.load(Relaxed) && self.book(key).keys.contains_key(key)
    }

    fn book(&self, key: &Key) -> MutexGuard<'_, Book> {
        let number = (Seeded::default().hash_one(key) >> 48) as usize % BOOKS;
        let book = self.books.get(number).unwrap_or(&self.books[0]);
        lock(book)
    }

    /// Keys with anything remembered.
    #[cfg(test)]
    fn len(&self) -> usize {
        let books = self
            .books
            .iter()
            .map(|book| book.lock().expect("a lock").keys.len());
        books.sum()
    }
}

impl Book {
    fn note(&mut self, key: &Key, now: Instant, note: impl FnOnce(&mut Ledger)) {
        if let Some(kept) = self.keys.get_mut(key) {
            kept.at = now;
            return note(&mut kept.ledger);
        }
        let mut ledger = Ledger::default();
        note(&mut ledger);
        if ledger.is_empty() {
            return;
        }
        self.next += 1;
        let number = self.next;
        self.round.push_back((number, key.clone()));
        self.keys.insert(
            key.clone(),
            Kept {
                number,
                at: now,
                ledger,
                end: None,
                failed: None,
            },
        );
    }
}

#[cfg(test)]
mod tests;
