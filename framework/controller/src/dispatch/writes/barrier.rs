//! What a run waits for before it begins.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use boatswain_cache::{InformerCore, Key, Live, LiveError, Version, WaitError};
use boatswain_supervision::Clock;
use serde::Deserialize;

use super::{
    Writes,
    ledger::{Beyond, Judgement, Ledger, Mark, Noted, Place, Store},
};
use crate::{client::fault_of, reconcile::Fault, telemetry::ControllerMetrics};

/// How long a run waits at most until the cache shows what the key's previous runs wrote.
const BARRIER: Duration = Duration::from_secs(5);
/// How long the server may take to say how far it is.
const PATIENCE: Duration = Duration::from_secs(10);

/// What stands between a key and its run.
enum Ahead {
    Wait(Place, Noted, Arc<InformerCore>),
    WaitBeyond(Beyond, Arc<InformerCore>),
    Ask(Place, Noted, Arc<InformerCore>),
    AskBeyond(Store, Beyond, Arc<InformerCore>),
}

impl Writes {
    /// Whether runs of `key` wrote what the caches do not show yet, or what has to be asked about, and its next run has not waited long enough.
    pub(crate) fn must_wait(&self, key: &Key, now: Instant) -> bool {
        self.has(key) && self.ahead(key).is_some() && {
            let book = self.book(key);
            let kept = book.keys.get(key);
            kept.is_some_and(|kept| kept.failed.is_none() && kept.end.is_none_or(|end| now < end))
        }
    }

    /// What stands between `key` and its run, and why the cache does not show it.
    pub(crate) fn pending(&self, key: &Key) -> Option<(String, String)> {
        self.ahead(key).map(|ahead| ahead.describe())
    }

    /// Lets a key catch up without a worker, until its run may begin or has to say why not: see [`Writes::barrier`].
    ///
    /// # Cancellation safety
    ///
    /// Nothing is forgotten that is not shown.
    pub(crate) async fn catch_up(
        &self,
        key: &Key,
        client: &kube::Client,
        clock: &Clock,
        metrics: &ControllerMetrics,
    ) {
        if let Err(why) = self.open(key, client, clock, metrics).await
            && let Some(kept) = self.book(key).keys.get_mut(key)
        {
            kept.failed = Some(why);
        }
    }

    /// Opens when the caches show what runs of `key` wrote, or 5 s after the run first had to wait, of which [`Writes::catch_up`] has used up the most. What
    /// became of writes that were never answered is asked of the server, through `client`, and then waited for.
    ///
    /// # Errors
    ///
    /// The server cannot be asked at the moment. Asking again later may help; nothing is forgotten.
    ///
    /// # Cancellation safety
    ///
    /// Nothing is forgotten that is not shown.
    pub(crate) async fn barrier(
        &self,
        key: &Key,
        client: &kube::Client,
        clock: &Clock,
        metrics: &ControllerMetrics,
    ) -> Result<(), String> {
        let failed = {
            let mut book = self.book(key);
            book.keys.get_mut(key).and_then(|kept| kept.failed.take())
        };
        let opened = match failed {
            Some(why) => Err(why),
            None => self.open(key, client, clock, metrics).await,
        };
        let mut book = self.book(key);
        if let Some(kept) = book.keys.get_mut(key) {
            kept.end = None;
            if kept.ledger.is_empty() {
                book.keys.remove(key);
            }
        }
        opened
    }

    async fn open(
        &self,
        key: &Key,
        client: &kube::Client,
        clock: &Clock,
        metrics: &ControllerMetrics,
    ) -> Result<(), String> {
        while let Some(ahead) = self.ahead(key) {
            let _turn = match ahead.is_wait() {
                true => None,
                false => Some(self.asks.acquire().await),
            };
            match ahead {
                Ahead::Ask(place, noted, core) => {
                    metrics.barrier_read();
                    self.ask(key, &place, &noted, &core, client, clock).await?;
                }
                Ahead::AskBeyond(store, beyond, core) => {
                    metrics.barrier_read();
                    self.ask_beyond(key, &store, &beyond, &core, client, clock)
                        .await?;
                }
                Ahead::Wait(..) | Ahead::WaitBeyond(..) => self.wait(key, clock, metrics).await,
            }
        }
        Ok(())
    }

    /// Waits until the caches show what runs of `key` wrote, or until the server has to be asked. When the time is up everything is forgotten.
    async fn wait(&self, key: &Key, clock: &Clock, metrics: &ControllerMetrics) {
        let begun = clock.now();
        let end = {
            let mut book = self.book(key);
            let Some(kept) = book.keys.get_mut(key) else {
                return;
            };
            *kept.end.get_or_insert(begun + BARRIER)
        };
        while let Some(ahead) = self.ahead(key).filter(Ahead::is_wait) {
            tokio::select! {
                biased;
                waited = ahead.wait() => if let Err(WaitError::OutOfScope { .. }) = waited {
                    // it never will show there
                    self.forget(key, &ahead);
                },
                () = clock.sleep_until(end) => {
                    if let Some(kept) = self.book(key).keys.get_mut(key) {
                        kept.ledger = Ledger::default();
                    }
                    let (what, why) = ahead.describe();
                    metrics.barrier_missed();
                    tracing::debug!(%key, %what, "the cache does not show the last writes, the next run begins all the same: {why}");
                    break;
                }
            }
        }
        metrics.barrier_waited(clock.now().saturating_duration_since(begun));
    }

    fn forget(&self, key: &Key, ahead: &Ahead) {
        if let Ahead::Wait(place, ..) = ahead
            && let Some(kept) = self.book(key).keys.get_mut(key)
        {
            kept.ledger.entries.remove(place);
        }
    }

    /// The first thing that stands between `key` and its run; what does no more is forgotten. Questions come first.
    fn ahead(&self, key: &Key) -> Option<Ahead> {
        let mut book = self.book(key);
        let kept = book.keys.get_mut(key)?;
        self.settle(&mut kept.ledger);
        let mut wait = None;
        for (place, noted) in &kept.ledger.entries {
            let Some(core) = self.core(&place.store) else {
                continue;
            };
            if self.judge(place, noted) == Judgement::Unknown {
                return Some(Ahead::Ask(place.clone(), noted.clone(), core));
            }
            wait.get_or_insert_with(|| Ahead::Wait(place.clone(), noted.clone(), core));
        }
        for (store, beyond) in &kept.ledger.beyond {
            let Some(core) = self.core(store) else {
                continue;
            };
            if self.judge_beyond(store, beyond) == Judgement::Unknown {
                return Some(Ahead::AskBeyond(store.clone(), beyond.clone(), core));
            }
            wait.get_or_insert_with(|| Ahead::WaitBeyond(beyond.clone(), core));
        }
        // one that has begun to wait is remembered until its run begins
        if wait.is_none() && kept.end.is_none() {
            book.keys.remove(key);
        }
        wait
    }

    /// Asks the server how an object is.
    async fn ask(
        &self,
        key: &Key,
        Place { store, object }: &Place,
        noted: &Noted,
        core: &InformerCore,
        client: &kube::Client,
        clock: &Clock,
    ) -> Result<(), String> {
        let live = Live::<()>::new(client.clone(), core.kind().clone(), clock.clone());
        let stored = core.get(object);
        let gone = |version, deleted| {
            let uid = stored.as_ref().map(|stored| stored.meta().uid.clone());
            stored.as_ref().map(|_| Mark::Gone {
                uid,
                version,
                deleted,
            })
        };
        let mark = match live.get_live_object(object).await {
            Ok(Some(found)) => {
                let version = found.meta().resource_version.clone();
                if core.selection().meets(&found) {
                    let uid = found.meta().uid.clone();
                    Some(Mark::At { uid, version })
                } else {
                    gone(Some(version), false)
                }
            }
            Ok(None) => gone(None, true),
            Err(error) if error.is_transient() || is_refused(&error) => {
                return Err(format!("what became of a write is not known: {error}"));
            }
            Err(error) => {
                tracing::warn!(%key, "what became of a write cannot be learned, the cache is taken as it is: {error}");
                None
            }
        };
        if let Some(kept) = self.book(key).keys.get_mut(key) {
            let place = Place {
                store: store.clone(),
                object: object.clone(),
            };
            kept.ledger
                .learn(&place, noted.unknown, mark, core.history());
        }
        Ok(())
    }

    /// Asks the server how far it is.
    async fn ask_beyond(
        &self,
        key: &Key,
        store: &Store,
        beyond: &Beyond,
        core: &InformerCore,
        client: &kube::Client,
        clock: &Clock,
    ) -> Result<(), String> {
        #[derive(Deserialize)]
        struct List {
            metadata: kube::core::ListMeta,
        }
        let path = format!("{}?limit=1", core.kind().path(&store.scope));
        let request = http::Request::get(path).body(Vec::new());
        let request = request.map_err(|error| error.to_string())?;
        let asked = tokio::select! {
            biased;
            answer = client.request::<List>(request) => answer,
            () = clock.sleep(PATIENCE) => {
                return Err(format!("{} did not answer within {PATIENCE:?}", core.kind()));
            }
        };
        let version = match asked {
            Ok(list) => list.metadata.resource_version.as_deref().map(Version::new),
            Err(error) if fault_of(&error) == Fault::Object => {
                tracing::warn!(%key, "how far the server is cannot be learned, the cache is taken as it is: {error}");
                None
            }
            Err(error) => {
                let kind = core.kind();
                return Err(format!("how far {kind} are is not known: {error}"));
            }
        };
        if let Some(kept) = self.book(key).keys.get_mut(key) {
            kept.ledger
                .learn_any(store, beyond.unknown, version, core.history());
        }
        Ok(())
    }
}

impl Ahead {
    fn is_wait(&self) -> bool {
        matches!(self, Self::Wait(..) | Self::WaitBeyond(..))
    }

    /// Where the informer ends or the server was set back there is nothing to wait for, which the next look finds.
    async fn wait(&self) -> Result<(), WaitError> {
        match self {
            Self::Wait(place, noted, core) => {
                let over =
                    |sight: boatswain_cache::Sight<'_>| noted.judge(sight) != Judgement::Pending;
                core.wait_sight(&place.object, over).await
            }
            Self::WaitBeyond(beyond, core) => {
                let over = |sight: boatswain_cache::Sight<'_>| {
                    beyond.judge(sight.low_water, sight.history) != Judgement::Pending
                };
                let anywhere = Key::new(namespace(core), "");
                core.wait_sight(&anywhere, over).await
            }
            Self::Ask(..) | Self::AskBeyond(..) => Ok(()),
        }
    }

    /// What is waited for, and how the informer is.
    fn describe(&self) -> (String, String) {
        match self {
            Self::Wait(Place { object, .. }, _, core)
            | Self::Ask(Place { object, .. }, _, core) => {
                (format!("{} {object}", core.kind()), core.why_not())
            }
            Self::WaitBeyond(_, core) | Self::AskBeyond(_, _, core) => {
                (format!("{}", core.kind()), core.why_not())
            }
        }
    }
}

fn namespace(core: &InformerCore) -> Option<&str> {
    match core.scope() {
        boatswain_cache::Scope::All => None,
        boatswain_cache::Scope::Namespace(namespace) => Some(namespace),
    }
}

/// Whether credentials are not accepted, which others notice, too, and cure.
fn is_refused(error: &LiveError) -> bool {
    matches!(error.cause, boatswain_cache::LiveCause::Unauthorized(_))
}
