//! Waits for the store to show something, and says why it will not.

use std::pin::pin;
use std::time::Duration;

use boatswain_supervision::Clock;
use futures::future::{Either, select};

use super::{InformerCore, Progress};
use crate::delta::Trust;
use crate::key::Key;
use crate::object::{Object, Uid};
use crate::store::Applied;
use crate::version::Version;

/// Why a wait for the store ended without what was waited for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The key lies outside of what is mirrored: the store will never show it.
    #[error("{resource} {key} is outside of what is mirrored ({scope}); read it live")]
    OutOfScope {
        /// The resource.
        resource: String,
        /// What was waited for.
        key: Key,
        /// What is mirrored.
        scope: String,
    },
    /// Nobody keeps the store up to date any more.
    #[error("the informer of {resource} in {scope} has ended; its store stays as it is")]
    Ended {
        /// The resource.
        resource: String,
        /// What was mirrored.
        scope: String,
    },
    /// The server was restored from a backup meanwhile, so that versions from before mean nothing now.
    #[error(
        "the server went back in time; what was written to {resource} {key} may be lost, read it live"
    )]
    SetBack {
        /// The resource.
        resource: String,
        /// What was waited for.
        key: Key,
    },
    /// The object carries no version: it is what was sent, not what the server answered.
    #[error(
        "{resource} {key} carries no resourceVersion to wait for; pass the object that the server answered the write with"
    )]
    NoVersion {
        /// The resource.
        resource: String,
        /// The object.
        key: Key,
    },
    /// It took too long.
    #[error("waited {limit:?} for {resource} in {scope} in vain: {why}")]
    TimedOut {
        /// The resource.
        resource: String,
        /// What is mirrored.
        scope: String,
        /// How long was waited.
        limit: Duration,
        /// How the informer was at the end.
        why: String,
    },
}

/// What an informer knows of one key at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// Whether the store has had the whole state once; before that an absence means nothing.
    pub synced: bool,
    /// Everything up to this version is in the store.
    pub low_water: Option<&'a Version>,
    /// What is stored of the key.
    pub stored: Option<&'a Object>,
    /// How often the server was found to be set back: versions from before the last time say nothing about what is stored now.
    pub history: u64,
}

impl InformerCore {
    /// Looks at what is known of `key`. `look` runs while the informer's progress is held: it should be quick and not call back.
    pub fn look<T>(&self, key: &Key, look: impl FnOnce(Sight<'_>) -> T) -> T {
        self.sight(&self.progress.borrow(), key, look)
    }

    /// How often the server was found to be set back.
    #[must_use]
    pub fn history(&self) -> u64 {
        self.progress.borrow().history
    }

    fn sight<T>(&self, progress: &Progress, key: &Key, look: impl FnOnce(Sight<'_>) -> T) -> T {
        let stored = self.reader.get(key);
        look(Sight {
            synced: progress.synced,
            low_water: progress.low_water.as_ref(),
            stored: stored.as_ref(),
            history: progress.history,
        })
    }

    /// Waits until `over` says so of what is known of `key`. It is asked after every batch, while the informer waits for the answer: it should be quick and
    /// not call back into the informer.
    ///
    /// # Errors
    ///
    /// As [`InformerCore::wait_for`].
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost by dropping it.
    pub async fn wait_sight(
        &self,
        key: &Key,
        over: impl Fn(Sight<'_>) -> bool,
    ) -> Result<(), WaitError> {
        self.wait(key, |progress| self.sight(progress, key, &over))
            .await
    }

    /// Whether the store is at or after `version` as far as `key` is concerned.
    ///
    /// Versions without an order are reached only by meeting exactly this one.
    #[must_use]
    pub fn has_reached(&self, key: &Key, version: &Version) -> bool {
        self.is_at(self.low_water().as_ref(), key, version)
    }

    fn is_at(&self, low_water: Option<&Version>, key: &Key, version: &Version) -> bool {
        low_water.is_some_and(|low| low.has_reached(version))
            || self
                .reader
                .get(key)
                .is_some_and(|object| object.meta().resource_version.has_reached(version))
    }

    /// Waits until [`InformerCore::has_reached`]: after a write that was answered with `version`, reads of `key` show it or something later, which may be
    /// that it is gone or another incarnation. After a deletion use [`InformerCore::wait_gone`]: its answer carries the version before it.
    ///
    /// It may take for ever, for instance while the server cannot be reached; [`InformerCore::within`] bounds it.
    ///
    /// # Errors
    ///
    /// All of [`WaitError`] but `TimedOut`.
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost by dropping it.
    pub async fn wait_for(&self, key: &Key, version: &Version) -> Result<(), WaitError> {
        self.wait(key, |progress| {
            self.is_at(progress.low_water.as_ref(), key, version)
        })
        .await
    }

    /// Waits until reads show what a write was answered with, or something later: [`InformerCore::wait_for`] of the key and version that `written`, the
    /// server's answer, carries.
    ///
    /// # Errors
    ///
    /// [`WaitError::NoVersion`] when it carries none, and as [`InformerCore::wait_for`].
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost by dropping it.
    pub async fn wait_written<K: kube::Resource>(&self, written: &K) -> Result<(), WaitError> {
        let key = Key::of(written);
        match Version::of(written) {
            Some(version) => self.wait_for(&key, &version).await,
            None => Err(WaitError::NoVersion {
                resource: self.kind().resource(),
                key,
            }),
        }
    }

    /// Waits until the incarnation `uid` of `key` is not in the store any more. An object with finalizers may take long to go.
    ///
    /// # Errors
    ///
    /// As [`InformerCore::wait_for`].
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost by dropping it.
    pub async fn wait_gone(&self, key: &Key, uid: &Uid) -> Result<(), WaitError> {
        self.wait_until(key, |stored| {
            stored.is_none_or(|object| object.meta().uid != *uid)
        })
        .await
    }

    /// Waits until what is stored of `key` satisfies a condition. It is asked after every batch, while the informer waits for the answer: it should be
    /// quick and not call back into the informer. Before the informer is synced nothing is asked, for then absence means nothing.
    ///
    /// # Errors
    ///
    /// As [`InformerCore::wait_for`].
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost by dropping it.
    pub async fn wait_until(
        &self,
        key: &Key,
        condition: impl Fn(Option<&Object>) -> bool,
    ) -> Result<(), WaitError> {
        self.wait(key, |progress| {
            progress.synced && condition(self.reader.get(key).as_ref())
        })
        .await
    }

    /// Waits until [`InformerCore::synced`], for `limit` at most.
    ///
    /// # Errors
    ///
    /// [`WaitError::TimedOut`], which says what stands in the way: missing rights, a kind the server does not know, no connection.
    /// [`WaitError::Ended`] if the informer is retired before it is synced.
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost by dropping it.
    pub async fn synced_within(&self, clock: &Clock, limit: Duration) -> Result<(), WaitError> {
        self.within(clock, limit, async {
            let mut progress = self.progress.subscribe();
            let last = progress
                .wait_for(|progress| progress.synced || progress.ended)
                .await;
            // the sender lives as long as self
            match last {
                Ok(last) if !last.synced => Err(self.has_ended()),
                _ => Ok(()),
            }
        })
        .await
    }

    fn has_ended(&self) -> WaitError {
        WaitError::Ended {
            resource: self.kind().resource(),
            scope: self.scope().to_string(),
        }
    }

    /// Ends a wait after `limit` at the latest.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use boatswain_cache::{InformerCore, Key, Version, WaitError};
    /// # async fn example(core: &InformerCore, clock: &boatswain_supervision::Clock, key: &Key, version: &Version) -> Result<(), WaitError> {
    /// core.within(clock, Duration::from_secs(5), core.wait_for(key, version)).await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`WaitError::TimedOut`], which says how the informer was at the end, and those of the wait.
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost by dropping it.
    pub async fn within<T>(
        &self,
        clock: &Clock,
        limit: Duration,
        wait: impl Future<Output = Result<T, WaitError>>,
    ) -> Result<T, WaitError> {
        match select(pin!(wait), pin!(clock.sleep(limit))).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => Err(WaitError::TimedOut {
                resource: self.kind().resource(),
                scope: self.scope().to_string(),
                limit,
                why: self.why_not(),
            }),
        }
    }

    /// Why the store may lack what is waited for: what is wrong with the informer, or how far it is.
    #[must_use]
    pub fn why_not(&self) -> String {
        let progress = self.progress.borrow().clone();
        match (self.degraded(), progress.low_water) {
            (Some(degraded), _) => degraded.to_string(),
            (None, _) if !progress.synced => "it is not synced yet".to_owned(),
            (None, _) if !progress.fresh => "no watch is open".to_owned(),
            (None, Some(version)) if version.is_ordered() => {
                format!("it is up to date as far as version {version}")
            }
            (None, _) => "versions of this server have no order".to_owned(),
        }
    }

    async fn wait(&self, key: &Key, reached: impl Fn(&Progress) -> bool) -> Result<(), WaitError> {
        if !self.scope().contains(key.namespace()) {
            return Err(WaitError::OutOfScope {
                resource: self.kind().resource(),
                key: key.clone(),
                scope: self.scope().to_string(),
            });
        }
        let history = self.history();
        loop {
            let mut moved = pin!(self.moved.notified());
            // before the look: what moves after it wakes
            moved.as_mut().enable();
            {
                let progress = self.progress.borrow();
                if progress.history != history {
                    return Err(WaitError::SetBack {
                        resource: self.kind().resource(),
                        key: key.clone(),
                    });
                }
                if reached(&progress) {
                    return Ok(());
                }
                if progress.ended {
                    return Err(self.has_ended());
                }
            }
            moved.await;
        }
    }

    /// Says that nobody will keep the store up to date any more, as after its informer was taken out of the tree: who waits for it is told, and it is not
    /// fresh. What is stored can still be read. There is no way back; a new informer has a new core.
    pub fn retire(&self) {
        self.progress.send_modify(|progress| {
            progress.ended = true;
            progress.fresh = false;
        });
        self.moved.notify_waiters();
        self.note_state(crate::InformerState::Starting, None);
    }

    /// Whether [`InformerCore::retire`] was called.
    #[must_use]
    pub fn retired(&self) -> bool {
        self.progress.borrow().ended
    }

    pub(super) fn advance(&self, applied: &Applied, low_water: Option<Version>) {
        let fresh = applied.live.is_some() && applied.live == super::lock(&self.health).watch;
        self.progress.send_if_modified(|progress| {
            progress.low_water = low_water;
            progress.fresh |= fresh && !progress.ended;
            for list in &applied.lists {
                progress.synced = true;
                progress.relisted = progress.relisted.max(list.replace.answers);
                progress.history += u64::from(list.replace.trust == Trust::Restored);
            }
            // what else moves is waited for elsewhere: whoever waits for a list need not be woken by every batch of it
            !applied.lists.is_empty()
        });
        self.moved.notify_waiters();
    }
}
