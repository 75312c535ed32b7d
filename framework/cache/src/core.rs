//! What of an informer outlives its actors: store, subscribers, low-water version, the batch in hand.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Instant;

use boatswain_supervision::Clock;
use tokio::sync::{Notify, Semaphore, watch};

use crate::key::Key;
use crate::kind::{Kind, Scope};
use crate::object::{DecodeError, Object};
use crate::opener::Opener;
use crate::selection::Selection;
use crate::status::{Counters, Degraded, InformerState, InformerStatus};
use crate::store::{IndexSpec, Keeper, Press, Reader, StoreOptions, Writer, store};
use crate::subscription::Shared;
use crate::sync::lock;
use crate::version::Version;

mod audience;
mod commit;
mod freshness;
#[cfg(test)]
mod tests;
mod waiting;

use commit::InHand;
pub(crate) use commit::{Permit, Tended};
pub use freshness::Freshness;
pub use waiting::{Sight, WaitError};

/// Keys of a list that may be pending between reflector and store at once.
const LIST_WINDOW: usize = 512;
/// Keys of a watch that may be pending: more, so that a slow indexer coalesces before the server is made to wait.
const WATCH_WINDOW: usize = 2048;
/// Keys on their way to the indexer below which it may as well be given some of the reflector's work.
const EASE: usize = 64;

/// The part of an informer that outlives every incarnation of its actors, and what readers hold.
///
/// # Guarantees
///
/// - The store changes by whole batches, and for one key never to an older state, unless the server itself was set back.
/// - Once synced it stays synced, whatever crashes; it turns fresh again when the actors have caught up.
/// - A list that finds an object unchanged changes nothing and tells nobody.
/// - An object that vanished unseen is reported as deleted, with its last known state and `certain: false`; another uid under a name is a deletion
///   and a creation.
pub struct InformerCore {
    selection: Selection,
    reader: Reader,
    keeper: Keeper,
    opener: Opener,
    /// Held while a batch is published and while a subscriber or index is added, so that none misses or doubles a change. Taken before any other lock.
    book: Mutex<Book>,
    progress: watch::Sender<Progress>,
    /// Rung with it: wakes in turn those who wait for a key, where a watch channel would wake them in any order, and no run could be repeated.
    moved: Notify,
    hand: Mutex<Option<InHand>>,
    health: Mutex<Health>,
    undecodable: Mutex<BTreeMap<Key, (Version, Arc<str>)>>,
    pub(crate) list_credits: Arc<Semaphore>,
    pub(crate) watch_credits: Arc<Semaphore>,
    /// Consistent lists asked for so far.
    relists: AtomicU64,
    pub(crate) relist_asked: Notify,
    numbers: AtomicU64,
    epoch: AtomicU64,
    /// The clock of the actors around.
    clock: OnceLock<Clock>,
    #[cfg(test)]
    stalled: std::sync::atomic::AtomicBool,
}

struct Book {
    writer: Writer,
    subscribers: Vec<Weak<Shared>>,
}

/// How far the store is.
#[derive(Clone, Debug, Default)]
struct Progress {
    synced: bool,
    fresh: bool,
    low_water: Option<Version>,
    /// The last request for a consistent list that was answered.
    relisted: u64,
    /// Counts how often the server was found to be set back.
    history: u64,
    /// Nobody keeps the store up to date any more.
    ended: bool,
}

#[derive(Default)]
struct Health {
    state: InformerState,
    degraded: Option<Degraded>,
    paged: Option<Arc<str>>,
    last_event: Option<Instant>,
    last_contact: Option<Instant>,
    /// When the list or watch at hand began, and what had been told before it.
    list_begun: Option<(Instant, u64)>,
    watch_begun: Option<(Instant, u64)>,
    /// The reflector that keeps the store up to date.
    keeper: Option<u64>,
    /// Number of the open watch.
    watch: Option<u64>,
    pending: (usize, usize),
    counters: Counters,
}

impl InformerCore {
    /// An informer of whole objects of `kind` within `scope`: the short form of [`InformerCore::select`].
    #[must_use]
    pub fn new(kind: Kind, scope: Scope) -> Arc<Self> {
        Self::select(Selection::new(kind).within(scope))
    }

    /// An informer of `selection` that nobody keeps up to date yet; see [`informer`](crate::informer) and [`SharedInformers`](crate::SharedInformers).
    #[must_use]
    pub fn select(selection: Selection) -> Arc<Self> {
        Self::with(selection, StoreOptions::default())
    }

    /// As [`InformerCore::select`], with objects kept as `options` say.
    #[must_use]
    pub fn with(selection: Selection, options: StoreOptions) -> Arc<Self> {
        let (writer, reader) = store();
        let keeper = Keeper::new(selection.kind(), options);
        Arc::new(Self {
            opener: keeper.opener(&selection),
            keeper,
            selection,
            reader,
            book: Mutex::new(Book {
                writer,
                subscribers: Vec::new(),
            }),
            progress: watch::Sender::new(Progress::default()),
            moved: Notify::new(),
            hand: Mutex::new(None),
            health: Mutex::default(),
            undecodable: Mutex::default(),
            list_credits: Arc::new(Semaphore::new(LIST_WINDOW)),
            watch_credits: Arc::new(Semaphore::new(WATCH_WINDOW)),
            relists: AtomicU64::new(0),
            relist_asked: Notify::new(),
            numbers: AtomicU64::new(0),
            epoch: AtomicU64::new(0),
            clock: OnceLock::new(),
            #[cfg(test)]
            stalled: std::sync::atomic::AtomicBool::new(false),
        })
    }

    /// What is mirrored.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// In what respect objects are kept otherwise than `asked`.
    pub(crate) fn keeps_otherwise(&self, asked: StoreOptions) -> Option<&'static str> {
        self.keeper.differs(self.kind(), asked)
    }

    /// The kind that is mirrored.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        self.selection.kind()
    }

    /// How much of it.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        self.selection.scope()
    }

    /// Whether the store has had the whole state once; reads before that are refused.
    #[must_use]
    pub fn synced(&self) -> bool {
        self.progress.borrow().synced
    }

    /// Whether a watch is open and what was missed before it was opened is in the store, as far as the server had sent it.
    #[must_use]
    pub fn fresh(&self) -> bool {
        self.progress.borrow().fresh
    }

    /// Everything up to this version is in the store.
    #[must_use]
    pub fn low_water(&self) -> Option<Version> {
        self.progress.borrow().low_water.clone()
    }

    /// Waits until [`InformerCore::synced`], for ever if need be; [`InformerCore::synced_within`] is bounded and says why.
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost by dropping it.
    pub async fn wait_synced(&self) {
        // the sender lives as long as self
        let _ = self
            .progress
            .subscribe()
            .wait_for(|progress| progress.synced)
            .await;
    }

    /// Asks for a consistent list now, such as a leader wants before it acts, and returns its number for [`InformerCore::wait_relisted`]. Unchanged
    /// objects change nothing. The request outlives crashes of the actors.
    pub fn relist(&self) -> u64 {
        let number = self.relists.fetch_add(1, Ordering::Relaxed) + 1;
        self.relist_asked.notify_one();
        number
    }

    /// Waits until a list that was begun after [`InformerCore::relist`] returned `number` is in the store. Bound the wait, for an informer that
    /// cannot reach its server makes it long.
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost by dropping it.
    pub async fn wait_relisted(&self, number: u64) {
        let _ = self
            .progress
            .subscribe()
            .wait_for(|progress| progress.relisted >= number)
            .await;
    }

    /// The last consistent list asked for, and the last that was answered.
    pub(crate) fn relists(&self) -> (u64, u64) {
        (
            self.relists.load(Ordering::Relaxed),
            self.progress.borrow().relisted,
        )
    }

    /// Lets objects be found by `spec`, at once for what is stored; one of the same name is replaced. However long it takes to ask about every stored
    /// object, the informer goes on meanwhile.
    pub fn add_index(&self, spec: IndexSpec) {
        let built = self.reader.build(spec);
        let failed = lock(&self.book).writer.add_index(built);
        self.note_unindexed(&failed);
    }

    /// The object as stored, decoded or not; `None` also before the informer is synced. [`Lister`](crate::Lister) tells these apart.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Object> {
        self.reader.get(key)
    }

    /// Up to `max` stored objects behind `after`, by key: to go through a large store without holding it up and without a copy of all of it.
    #[must_use]
    pub fn page(&self, after: Option<&Key>, max: usize) -> Vec<Object> {
        self.reader.page(after, max)
    }

    /// How the informer is. `now` is the clock's, for ages.
    #[must_use]
    pub fn status(&self, now: Instant) -> InformerStatus {
        let subscribers: Vec<_> = lock(&self.book)
            .subscribers
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        let progress = self.progress.borrow().clone();
        let size = self.reader.size();
        let undecodable = lock(&self.undecodable)
            .iter()
            .map(|(key, (_, reason))| (key.clone(), reason.clone()))
            .collect();
        let freshness = self.freshness(now);
        let health = lock(&self.health);
        InformerStatus {
            resource: self.kind().resource(),
            version: self.kind().version.clone(),
            scope: self.scope().to_string(),
            selector: self.selection.qualifier(),
            state: health.state,
            synced: progress.synced,
            fresh: progress.fresh,
            low_water: progress.low_water.map(|version| version.to_string()),
            objects: size.objects,
            bytes: size.bytes,
            json_bytes: size.json_bytes,
            dictionary_bytes: self.keeper.press().map_or(0, Press::dictionary),
            memo: self.keeper.memo(),
            pending: health.pending,
            last_event_age: freshness.event_age,
            last_contact_age: freshness.contact_age,
            degraded: health.degraded.clone(),
            paged: health.paged.clone(),
            unreadable: self.reader.all_unreadable(),
            undecodable,
            subscribers: subscribers
                .iter()
                .map(|subscriber| subscriber.status(now))
                .collect(),
            counters: health.counters.clone(),
        }
    }

    /// Why the informer does not work as it should, if so.
    #[must_use]
    pub fn degraded(&self) -> Option<Degraded> {
        lock(&self.health).degraded.clone()
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Whether the indexer has enough to do, so that objects are better packed before they come to it.
    pub(crate) fn is_behind(&self) -> bool {
        let free = self.list_credits.available_permits() + self.watch_credits.available_permits();
        free + EASE < LIST_WINDOW + WATCH_WINDOW
    }

    /// What objects go through when they arrive.
    pub(crate) fn opener(&self) -> &Opener {
        &self.opener
    }

    /// A number nobody else has: for sessions and watches.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The number of the last list begun.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// A list begins.
    pub(crate) fn next_epoch(&self) -> u64 {
        self.epoch.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut Counters)) {
        count(&mut lock(&self.health).counters);
    }

    /// Notes what the reflector does, and what is wrong.
    pub(crate) fn note_state(&self, state: InformerState, degraded: Option<Degraded>) {
        let mut health = lock(&self.health);
        health.state = state;
        health.degraded = degraded;
    }

    /// Notes why lists are not streamed.
    pub(crate) fn note_paged(&self, reason: Option<Arc<str>>) {
        lock(&self.health).paged = reason;
    }

    pub(crate) fn pending(&self) -> (usize, usize) {
        lock(&self.health).pending
    }

    pub(crate) fn note_pending(&self, pending: usize, high_water: usize) {
        let mut health = lock(&self.health);
        health.pending = (pending, health.pending.1.max(high_water));
    }

    /// A watch was opened; its number goes through the queue and makes the store fresh when it arrives.
    pub(crate) fn watch_opened(&self) -> u64 {
        let watch = self.number();
        lock(&self.health).watch = Some(watch);
        watch
    }

    /// A reflector begins to keep the store up to date; returns its number for [`InformerCore::left`].
    pub(crate) fn kept(&self) -> u64 {
        let keeper = self.number();
        lock(&self.health).keeper = Some(keeper);
        self.lost();
        keeper
    }

    /// The reflector of this number is no more. One that ends late, after another has begun, changes nothing.
    pub(crate) fn left(&self, keeper: u64) {
        let mut health = lock(&self.health);
        if health.keeper == Some(keeper) {
            health.keeper = None;
            health.state = InformerState::Starting;
            drop(health);
            self.lost();
        }
    }

    /// The store is no longer kept up to date.
    pub(crate) fn lost(&self) {
        lock(&self.health).watch = None;
        self.progress
            .send_if_modified(|progress| std::mem::take(&mut progress.fresh));
    }

    pub(crate) fn note_undecodable(&self, object: &Object, error: &DecodeError) {
        let noted = (object.meta().resource_version.clone(), error.reason.clone());
        let mut undecodable = lock(&self.undecodable);
        // a reader may hold a state that was replaced or deleted since: nobody would ever take its note away
        let stored = self.reader.get(object.key());
        if !stored.is_some_and(|stored| stored.is_same_state(object)) {
            return;
        }
        let before = undecodable.insert(object.key().clone(), noted.clone());
        drop(undecodable);
        if before.as_ref() != Some(&noted) {
            self.count(|counters| counters.undecoded += 1);
            tracing::warn!(resource = %self.kind(), key = %error.key, reason = %error.reason, "object does not decode; others go on");
        }
    }

    fn note_untransformed(&self, failed: &[(Key, String)]) {
        self.count(|counters| counters.untransformed += failed.len() as u64);
        for (key, reason) in failed {
            tracing::warn!(resource = %self.kind(), %key, reason, "transform failed for an object; it is stored without it");
        }
    }

    fn note_unindexed(&self, failed: &[(Key, Arc<str>, String)]) {
        self.count(|counters| counters.unindexed += failed.len() as u64);
        for (key, index, reason) in failed {
            tracing::warn!(resource = %self.kind(), %key, %index, reason, "index failed for an object; it is stored without it");
        }
    }
}

impl fmt::Debug for InformerCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "informer of {}: {:?}",
            self.selection,
            *self.progress.borrow()
        )
    }
}
