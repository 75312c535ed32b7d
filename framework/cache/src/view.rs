//! Several informers of a kind as one, which may come and go.

use std::fmt;
use std::sync::{Arc, Mutex, RwLock, Weak};

use tokio::sync::watch;

use crate::core::InformerCore;
use crate::factory::{KeptOtherwise, SharedInformer};
use crate::kind::Scope;
use crate::lister::Lister;
use crate::store::IndexSpec;
use crate::subscription::{Shared, SubscribeOptions, Subscription};
use crate::sync::{lock, read, write};

#[cfg(test)]
mod tests;

/// Several informers of a kind, one per namespace for instance, that are read and heard of as one; informers can be added and removed while it is used.
///
/// A clone is the same view. Its informers run as long as it, one of its listers or one of its subscriptions exists, and nobody removes them.
///
/// # Guarantees
///
/// - An informer that is added is told to every subscriber from the beginning, with [`Cause::Initial`](crate::Cause::Initial); nothing else of the view
///   is told or asked for again.
/// - Of an informer that is removed every object that a subscriber knew is told as deleted with `certain: false` and
///   [`Cause::OutOfScope`](crate::Cause::OutOfScope), and then nothing more. The objects may well exist: whoever hears it should forget them, and
///   neither clean up after them nor write to them. A read of their keys is then [`ReadError::OutOfScope`](crate::ReadError::OutOfScope).
#[derive(Clone)]
pub struct View(Arc<Inner>);

struct Inner {
    cores: RwLock<Arc<[Arc<InformerCore>]>>,
    /// Held while informers or subscribers come or go, so that every subscriber hears of every informer once. Taken before the book of any core.
    roll: Mutex<Roll>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct Roll {
    informers: Vec<SharedInformer>,
    subscribers: Vec<Weak<Shared>>,
    indexes: Vec<IndexSpec>,
}

/// An informer does not fit into a view.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// Its scope and that of another overlap: objects would be seen twice.
    #[error("{added} overlaps with {present}, which the view has already; remove that one first")]
    Overlap {
        /// What was to be added.
        added: String,
        /// What is there.
        present: String,
    },
    /// It mirrors another kind, or another selection of it.
    #[error(
        "{added} does not go with {present}: the informers of a view differ in their scopes only"
    )]
    Different {
        /// What was to be added.
        added: String,
        /// What is there.
        present: String,
    },
    /// Its objects are kept otherwise than asked for.
    #[error(transparent)]
    Kept(#[from] KeptOtherwise),
}

impl View {
    /// A view of nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::over(Vec::new())
    }

    /// A view of informers whose scopes do not overlap.
    pub(crate) fn over(informers: Vec<SharedInformer>) -> Self {
        let cores = informers.iter().map(|informer| informer.core().clone());
        Self(Arc::new(Inner {
            cores: RwLock::new(cores.collect()),
            roll: Mutex::new(Roll {
                informers,
                ..Roll::default()
            }),
            changed: watch::Sender::new(()),
        }))
    }

    /// Adds an informer; every subscriber is told of its objects. False if the view has one of the same selection already.
    ///
    /// Until it is synced, reads of the whole view are refused, for nobody knows its objects yet; those of other namespaces go on. Where readers must not
    /// notice, wait until it is synced and add it then.
    ///
    /// # Errors
    ///
    /// When it differs from the others in more than its scope, or its scope overlaps with one of theirs. Nothing is changed then.
    pub fn add(&self, informer: impl Into<SharedInformer>) -> Result<bool, ViewError> {
        let informer = informer.into();
        let core = informer.core().clone();
        let mut roll = lock(&self.0.roll);
        for other in &roll.informers {
            let (added, present) = (core.selection(), other.core().selection());
            if added == present {
                return Ok(false);
            }
            let both = || (added.to_string(), present.to_string());
            if added.clone().within(Scope::All) != present.clone().within(Scope::All) {
                let (added, present) = both();
                return Err(ViewError::Different { added, present });
            }
            if [added.scope(), present.scope()].contains(&&Scope::All) {
                let (added, present) = both();
                return Err(ViewError::Overlap { added, present });
            }
        }
        for index in &roll.indexes {
            core.add_index(index.clone());
        }
        roll.informers.push(informer);
        self.publish(&roll);
        let mut told = roll.subscribers();
        told.retain(|subscriber| core.attach(subscriber));
        drop(roll);
        wake(&told);
        self.0.changed.send_replace(());
        Ok(true)
    }

    /// Removes the informer of `scope`; every subscriber is told that its objects are out of sight. False if there is none.
    pub fn remove(&self, scope: &Scope) -> bool {
        let mut roll = lock(&self.0.roll);
        let found = |informer: &SharedInformer| informer.core().scope() == scope;
        let Some(place) = roll.informers.iter().position(found) else {
            return false;
        };
        let informer = roll.informers.remove(place);
        self.publish(&roll);
        let mut told = roll.subscribers();
        told.retain(|subscriber| informer.core().detach(subscriber));
        drop(roll);
        wake(&told);
        self.0.changed.send_replace(());
        true
    }

    fn publish(&self, roll: &Roll) {
        let cores = roll
            .informers
            .iter()
            .map(|informer| informer.core().clone());
        *write(&self.0.cores) = cores.collect();
    }

    /// What is mirrored of the kind, in the order in which it was added.
    #[must_use]
    pub fn scopes(&self) -> Vec<Scope> {
        let cores = self.cores();
        cores.iter().map(|core| core.scope().clone()).collect()
    }

    /// The informers, as they are now.
    #[must_use]
    pub fn cores(&self) -> Arc<[Arc<InformerCore>]> {
        read(&self.0.cores).clone()
    }

    /// The informer that mirrors a namespace, or what is in none.
    pub(crate) fn core_of(&self, namespace: Option<&str>) -> Option<Arc<InformerCore>> {
        let cores = read(&self.0.cores);
        let found = cores.iter().find(|core| core.scope().contains(namespace));
        found.cloned()
    }

    /// A reader of all of it.
    #[must_use]
    pub fn lister<K>(&self) -> Lister<K> {
        Lister::of(self.clone())
    }

    /// Lets objects be found by `spec` in every informer that is there or will be added.
    pub fn add_index(&self, spec: IndexSpec) {
        let mut roll = lock(&self.0.roll);
        for informer in &roll.informers {
            informer.core().add_index(spec.clone());
        }
        roll.indexes.retain(|other| other.name() != spec.name());
        roll.indexes.push(spec);
    }

    /// Adds a subscriber. It is told of every stored object first, with [`Cause::Initial`](crate::Cause::Initial).
    ///
    /// `notify` is called after something was added to its backlog, on the thread that added it: it should wake the subscriber and return. It may
    /// call back into the informer, for no lock is held; while it runs, the informer waits, and it is not called for what it does itself.
    pub fn subscribe(
        &self,
        name: impl Into<String>,
        notify: impl Fn() + Send + Sync + 'static,
    ) -> Subscription {
        self.subscribe_with(name, SubscribeOptions::default(), notify)
    }

    /// As [`View::subscribe`], told as `options` say.
    pub fn subscribe_with(
        &self,
        name: impl Into<String>,
        options: SubscribeOptions,
        notify: impl Fn() + Send + Sync + 'static,
    ) -> Subscription {
        let mut roll = lock(&self.0.roll);
        let notify = Box::new(notify);
        let subscription = Subscription::new(name.into(), &options, notify, self.clone());
        let shared = subscription.shared();
        let mut told = false;
        for informer in &roll.informers {
            told |= informer.core().attach(shared);
        }
        roll.subscribers.retain(|other| other.strong_count() > 0);
        roll.subscribers.push(Arc::downgrade(shared));
        drop(roll);
        if told {
            shared.wake();
        }
        subscription
    }

    /// Whether every informer is synced.
    #[must_use]
    pub fn synced(&self) -> bool {
        self.cores().iter().all(|core| core.synced())
    }

    /// Waits until [`View::synced`]. An informer that is removed meanwhile is not waited for.
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost by dropping it.
    pub async fn wait_synced(&self) {
        let mut changed = self.0.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let cores = self.cores();
            let Some(behind) = cores.iter().find(|core| !core.synced()) else {
                return;
            };
            let (synced, changed) = (
                std::pin::pin!(behind.wait_synced()),
                std::pin::pin!(changed.changed()),
            );
            futures::future::select(synced, changed).await;
        }
    }
}

impl Default for View {
    fn default() -> Self {
        Self::new()
    }
}

impl From<SharedInformer> for View {
    fn from(informer: SharedInformer) -> Self {
        Self::over(vec![informer])
    }
}

impl From<Arc<InformerCore>> for View {
    fn from(core: Arc<InformerCore>) -> Self {
        Self::over(vec![core.into()])
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.cores().iter()).finish()
    }
}

fn wake(subscribers: &[Arc<Shared>]) {
    for subscriber in subscribers {
        subscriber.wake();
    }
}

impl Roll {
    fn subscribers(&mut self) -> Vec<Arc<Shared>> {
        self.subscribers.retain(|other| other.strong_count() > 0);
        self.subscribers.iter().filter_map(Weak::upgrade).collect()
    }
}
