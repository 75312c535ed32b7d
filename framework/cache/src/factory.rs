//! One list and one watch per selection in a process, however many use it.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use boatswain_supervision::{ChildSpec, Intensity, Mailbox, Strategy, SupervisorSpec};
use tokio::sync::Notify;

use crate::core::InformerCore;
use crate::informer::{InformerOptions, informer};
use crate::kind::Scope;
use crate::lister::Lister;
use crate::selection::Selection;
use crate::status::InformerStatus;
use crate::store::StoreOptions;
use crate::subscription::{SubscribeOptions, Subscription};
use crate::sync::lock;
use crate::view::{View, ViewError};

mod actor;
mod state;
#[cfg(test)]
mod tests;

use actor::Steward;
use state::Roster;

/// The informers of a process: equal selections share one, which runs while somebody uses it. Cheap to clone.
///
/// # Guarantees
///
/// - There is one list and one watch per [`Selection`], however many ask for it, and none when nobody does. What is asked for or given up while the
///   supervisor runs is started or stopped without disturbing anything else.
/// - Cores outlive the supervisor: when it is restarted, or the tree is, every informer in use resumes from the store it has.
/// - What was given up leaves nothing behind.
///
/// ```
/// use std::time::Duration;
/// use boatswain_cache::{InformerOptions, Selection, SharedInformers};
/// use boatswain_supervision::{Tree, testing};
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use kube::core::PartialObjectMeta;
///
/// testing::run(1, |options| async {
///     let server = boatswain_apisim::ApiSim::default();
///     let client = kube::Client::new(server.service(), "default");
///     let informers = SharedInformers::new(client, InformerOptions::default());
///     let maps = informers.informer(Selection::of::<ConfigMap>());
///     let tree = Tree::start(informers.supervisor("informers"), options).await.unwrap();
///     maps.wait_synced().await;
///     assert!(maps.lister::<ConfigMap>().list().unwrap().is_empty());
///
///     // later, and without their values
///     let secrets = informers.informer(Selection::of::<Secret>().metadata_only());
///     secrets.wait_synced().await;
///     let names = secrets.lister::<PartialObjectMeta<Secret>>().list().unwrap();
///     assert!(names.is_empty());
///     tree.stop(Duration::from_secs(5)).await.unwrap();
/// });
/// ```
#[derive(Clone)]
pub struct SharedInformers(Arc<Inner>);

struct Inner {
    client: kube::Client,
    options: InformerOptions,
    roster: Mutex<Roster<Arc<InformerCore>>>,
    /// Told when there may be something to start or stop.
    poke: Notify,
}

impl SharedInformers {
    /// A process's informers, none of them yet. `client` and `options` are used for all; see [`informer`](crate::informer).
    #[must_use]
    pub fn new(client: kube::Client, options: InformerOptions) -> Self {
        Self(Arc::new(Inner {
            client,
            options,
            roster: Mutex::default(),
            poke: Notify::new(),
        }))
    }

    /// The supervisor that the informers run under: those that are in use now, and those that will be. It gives up after three failures of informers in
    /// five minutes, so what is above it must look at longer windows. Run it in one place at a time.
    pub fn supervisor(&self, id: impl Into<String>) -> SupervisorSpec {
        let spec = SupervisorSpec::new(id, Strategy::OneForOne);
        // longer than an informer takes to give up that often
        let spec = spec.intensity(Intensity::new(3, Duration::from_secs(5 * 60)));
        let inner = self.0.clone();
        let added = spec.dynamic_children(move |core| inner.child(core));
        let inner = self.0.clone();
        spec.children(move |children| {
            for core in lock(&inner.roster).begin() {
                children.add(inner.child(core));
            }
            let (inner, added) = (inner.clone(), added.clone());
            let make = move |_: &_| Steward::new(inner.clone(), added.clone());
            children.add(ChildSpec::actor("steward", Mailbox::new(), make));
        })
    }

    /// The informer of `selection`, started if nobody uses one. It runs until the last clone of the handle, and the last lister, view and subscription made
    /// from it, are dropped.
    ///
    /// Objects are kept as whoever uses it already said, and by default as [`StoreOptions::default`]; who must not be given what somebody else's transform has
    /// left asks by [`SharedInformers::informer_with`].
    #[must_use]
    pub fn informer(&self, selection: impl Into<Selection>) -> SharedInformer {
        self.lease(selection.into(), StoreOptions::default())
    }

    /// As [`SharedInformers::informer`], with objects kept as `options` say. There is one store per selection: its first user decides how it is kept.
    ///
    /// # Errors
    ///
    /// When somebody uses the selection with other options: one of the two would read what it did not ask for. Nothing is changed then.
    pub fn informer_with(
        &self,
        selection: impl Into<Selection>,
        options: StoreOptions,
    ) -> Result<SharedInformer, KeptOtherwise> {
        let informer = self.lease(selection.into(), options.clone());
        match informer.keeps_otherwise(options) {
            None => Ok(informer),
            Some(what) => Err(KeptOtherwise {
                selection: informer.selection().to_string(),
                what,
            }),
        }
    }

    fn lease(&self, selection: Selection, options: StoreOptions) -> SharedInformer {
        let id = selection.id();
        let make = || InformerCore::with(selection, options);
        let (number, core) = lock(&self.0.roster).lease(&id, make);
        self.0.poke.notify_one();
        SharedInformer {
            core,
            _lease: Some(Arc::new(Lease {
                inner: self.0.clone(),
                id,
                number,
            })),
        }
    }

    /// What `selection` selects in each of `scopes`, as one. More are added by `view.add(informers.informer(..))`.
    ///
    /// # Errors
    ///
    /// When scopes overlap: all namespaces and one of them.
    pub fn view(
        &self,
        selection: impl Into<Selection>,
        scopes: impl IntoIterator<Item = Scope>,
    ) -> Result<View, ViewError> {
        let (view, selection) = (View::new(), selection.into());
        for scope in scopes {
            view.add(self.informer(selection.clone().within(scope)))?;
        }
        Ok(view)
    }

    /// As [`SharedInformers::view`], with objects kept as `options` say.
    ///
    /// # Errors
    ///
    /// When scopes overlap, or somebody uses one of the informers with other options.
    pub fn view_with(
        &self,
        selection: &Selection,
        scopes: impl IntoIterator<Item = Scope>,
        options: &StoreOptions,
    ) -> Result<View, ViewError> {
        let view = View::new();
        for scope in scopes {
            view.add(self.informer_with(selection.clone().within(scope), options.clone())?)?;
        }
        Ok(view)
    }

    /// The informers in use, by the ids of their selections.
    #[must_use]
    pub fn cores(&self) -> Vec<Arc<InformerCore>> {
        lock(&self.0.roster).wanted()
    }

    /// How each of them is. `now` is the clock's, for ages.
    #[must_use]
    pub fn status(&self, now: Instant) -> Vec<InformerStatus> {
        self.cores().iter().map(|core| core.status(now)).collect()
    }
}

impl Inner {
    fn child(&self, core: Arc<InformerCore>) -> ChildSpec {
        ChildSpec::supervisor(informer(core, self.client.clone(), self.options.clone()))
    }
}

impl fmt::Debug for SharedInformers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.cores()).finish()
    }
}

/// A share in an informer, which runs as long as there is one. It gives everything its [`InformerCore`] does; who keeps the bare core instead, which does not
/// count as use, sees it stop.
#[derive(Clone)]
pub struct SharedInformer {
    core: Arc<InformerCore>,
    _lease: Option<Arc<Lease>>,
}

impl SharedInformer {
    /// The informer itself.
    #[must_use]
    pub fn core(&self) -> &Arc<InformerCore> {
        &self.core
    }

    /// The informer as a view, to which others can be added.
    #[must_use]
    pub fn view(&self) -> View {
        View::from(self.clone())
    }

    /// A reader, which keeps the informer running.
    #[must_use]
    pub fn lister<K>(&self) -> Lister<K> {
        self.view().lister()
    }

    /// A subscriber, which keeps the informer running; see [`View::subscribe`].
    pub fn subscribe(
        &self,
        name: impl Into<String>,
        notify: impl Fn() + Send + Sync + 'static,
    ) -> Subscription {
        self.view().subscribe(name, notify)
    }

    /// As [`SharedInformer::subscribe`], told as `options` say.
    pub fn subscribe_with(
        &self,
        name: impl Into<String>,
        options: SubscribeOptions,
        notify: impl Fn() + Send + Sync + 'static,
    ) -> Subscription {
        self.view().subscribe_with(name, options, notify)
    }
}

impl Deref for SharedInformer {
    type Target = InformerCore;

    fn deref(&self) -> &InformerCore {
        &self.core
    }
}

/// An informer that somebody else runs.
impl From<Arc<InformerCore>> for SharedInformer {
    fn from(core: Arc<InformerCore>) -> Self {
        Self { core, _lease: None }
    }
}

impl fmt::Debug for SharedInformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}

/// A selection is in use, and its objects are kept otherwise than asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{selection} are kept already, with another {what} than asked for; give the same store options everywhere, or select something else"
)]
pub struct KeptOtherwise {
    /// What was selected.
    pub selection: String,
    /// The field of [`StoreOptions`] that differs; where several do, the one that matters most.
    pub what: &'static str,
}

struct Lease {
    inner: Arc<Inner>,
    id: String,
    number: u64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let given_up = lock(&self.inner.roster).release(&self.id, self.number);
        self.inner.poke.notify_one();
        // the last holder of a store frees it: not under the lock
        drop(given_up);
    }
}
