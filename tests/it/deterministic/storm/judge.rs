//! Who watches a storm: knows the cache and what runs, and nothing of the dispatcher.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use boatswain::{Clock, Key};
use boatswain_cache::{Object, Subscription, Version, View};

/// What is known of one key.
#[derive(Debug, Default)]
struct Account {
    running: bool,
    /// The last news of it or of what it owns, as the cache told, or as somebody asked for.
    news: Option<Instant>,
    /// What the cache last showed of its own object: `None` inside if it is gone.
    shown: Option<Option<Version>>,
    /// Which incarnation that is.
    uid: Option<String>,
    /// The last run: when it began and what it saw.
    last: Option<(Instant, Option<Version>)>,
    /// The oldest news that no run has begun since.
    due: Option<Instant>,
    /// What its runs wrote last, as they were answered.
    wrote: Option<Version>,
    runs: usize,
}

/// Everything that was seen, and what was wrong about it.
#[derive(Debug, Default)]
struct Book {
    keys: BTreeMap<Key, Account>,
    running: usize,
    most: usize,
    wrong: Vec<String>,
    trace: Vec<String>,
    /// Runs that saw their object as it was before what a run of the key wrote.
    stale: usize,
    /// Since when nothing may begin.
    shut: Option<Instant>,
    /// The longest time between news of a key that never fails and its run.
    longest: Duration,
}

#[derive(Clone)]
pub(super) struct Judge {
    clock: Clock,
    begun: Instant,
    concurrency: usize,
    book: Arc<Mutex<Book>>,
}

/// A run under way; it ends when it is dropped, however that comes.
pub(super) struct Run {
    judge: Judge,
    key: Key,
}

impl Drop for Run {
    fn drop(&mut self) {
        let mut book = self.judge.book();
        book.running -= 1;
        book.account(&self.key).running = false;
        let line = format!("{:?} ends {}", self.judge.now(), self.key);
        book.trace.push(line);
    }
}

impl Book {
    fn account(&mut self, key: &Key) -> &mut Account {
        self.keys.entry(key.clone()).or_default()
    }
}

impl Judge {
    pub(super) fn new(clock: &Clock, concurrency: usize) -> Self {
        Self {
            clock: clock.clone(),
            begun: clock.now(),
            concurrency,
            book: Arc::default(),
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("lock")
    }

    fn now(&self) -> Duration {
        self.clock.now() - self.begun
    }

    /// A run of `key` begins and sees its object in this version, or that it is gone.
    pub(super) fn begins(&self, key: &Key, seen: Option<Version>) -> Run {
        let (now, at) = (self.clock.now(), self.now());
        let mut book = self.book();
        book.running += 1;
        book.most = book.most.max(book.running);
        let (running, limit) = (book.running, self.concurrency);
        if running > limit {
            book.wrong
                .push(format!("{at:?}: {running} runs at once, {limit} may be"));
        }
        if book.shut.is_some_and(|since| since < now) {
            let since = book.shut.map(|since| since - self.begun);
            book.wrong
                .push(format!("{at:?}: {key} begins, shut since {since:?}"));
        }
        let account = book.account(key);
        let overlaps = std::mem::replace(&mut account.running, true);
        account.runs += 1;
        let waited = account.due.take().map_or(Duration::ZERO, |due| now - due);
        let is_stale = match (&seen, &account.wrote) {
            (Some(seen), Some(wrote)) => seen.is_before(wrote),
            _ => false,
        };
        let line = format!("{at:?} begins {key} {seen:?}");
        account.last = Some((now, seen));
        if overlaps {
            book.wrong
                .push(format!("{at:?}: two runs of {key} overlap"));
        }
        if is_stale {
            book.stale += 1;
        }
        if key.name().starts_with("good") {
            book.longest = book.longest.max(waited);
        }
        book.trace.push(line);
        Run {
            judge: self.clone(),
            key: key.clone(),
        }
    }

    /// A run of `key` wrote its own object.
    pub(super) fn wrote(&self, key: &Key, version: Version) {
        self.book().account(key).wrote = Some(version);
    }

    pub(super) async fn sleep(&self, time: Duration) {
        self.clock.sleep(time).await;
    }

    pub(super) fn note(&self, what: &str) {
        let line = format!("{:?} {what}", self.now());
        self.book().trace.push(line);
    }

    /// From now on nothing may begin, or anything may again.
    pub(super) fn shut(&self, shut: bool) {
        self.book().shut = shut.then(|| self.clock.now());
    }

    /// There is something to run `key` for.
    pub(super) fn news(&self, key: &Key) {
        let now = self.clock.now();
        let mut book = self.book();
        let account = book.account(key);
        account.news = Some(now);
        // a wait for what may not begin is nobody's fault
        account.due.get_or_insert(now);
    }

    /// Follows the caches.
    pub(super) async fn follow(self, own: View, owned: View) {
        let own = own.subscribe("judge", || {});
        let owned = owned.subscribe("judge", || {});
        tokio::join!(self.follow_own(&own), self.follow_owned(&owned));
    }

    async fn follow_own(&self, own: &Subscription) {
        loop {
            let batch = own.next(64).await;
            for (change, _) in batch.changes() {
                let key = change.key();
                let shown = change.new().map(|new| new.meta().resource_version.clone());
                let line = format!("{:?} shows {key} {shown:?}", self.now());
                self.book().trace.push(line);
                self.news(key);
                let mut book = self.book();
                let account = book.account(key);
                account.uid = change.new().map(|new| new.meta().uid.to_string());
                if shown.is_none() {
                    // what was written to it has gone with it
                    account.wrote = None;
                }
                account.shown = Some(shown);
            }
            batch.ack();
        }
    }

    async fn follow_owned(&self, owned: &Subscription) {
        loop {
            let batch = owned.next(64).await;
            for (change, _) in batch.changes() {
                let states = change.old().into_iter().chain(change.new());
                for owner in states.flat_map(Object::owner_refs) {
                    let key = Key::new(change.key().namespace(), &owner.name);
                    // another incarnation is not meant
                    let is_it = self.book().account(&key).uid.as_ref() == Some(&owner.uid);
                    if is_it {
                        self.news(&key);
                    }
                }
            }
            batch.ack();
        }
    }

    /// Every news was followed by a run that began later and saw the last state; news wake parked keys, too.
    pub(super) fn assert_nothing_lost(&self, when: &str) {
        let book = self.book();
        for (key, account) in &book.keys {
            let (Some(news), last) = (account.news, &account.last) else {
                continue;
            };
            let (begun, seen) = last
                .as_ref()
                .unwrap_or_else(|| panic!("{when}: {key} never ran: {account:?}"));
            assert!(
                *begun >= news,
                "{when}: {key} has not run since: {account:?}"
            );
            if let Some(shown) = &account.shown {
                assert_eq!(seen, shown, "{when}: {key} was run for an old state");
            }
        }
    }

    pub(super) fn assert_nothing_wrong(&self) {
        let wrong = self.book().wrong.clone();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// How many runs saw less than what was written before.
    pub(super) fn stale(&self) -> usize {
        self.book().stale
    }

    pub(super) fn longest(&self) -> Duration {
        self.book().longest
    }

    pub(super) fn runs(&self) -> usize {
        self.book().keys.values().map(|account| account.runs).sum()
    }

    /// The most runs at once since it was last asked.
    pub(super) fn most(&self) -> usize {
        let mut book = self.book();
        let running = book.running;
        std::mem::replace(&mut book.most, running)
    }

    pub(super) fn trace(&self) -> Vec<String> {
        self.book().trace.clone()
    }
}
