//! What controllers read from, handed out while they are put together.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use boatswain_cache::{
    IndexSpec, Kind, Lister, Live, Selection, SelectionError, SharedInformers, View,
};
use kube::core::DynamicObject;

use super::{Yard, cannot_select};
use crate::{
    builder::Watchable, dispatch::Departed, error::StartError, selected::narrowed,
    trigger::Referrers,
};

/// What a controller's reconciler and mappers read from; handed to the closure given to
/// [`Controller::reconciler`](crate::Controller::reconciler).
pub struct Wiring<'a> {
    pub(super) yard: &'a mut Yard,
    pub(super) controller: String,
    pub(super) client: kube::Client,
    /// What the controller watches; first what it reconciles.
    pub(super) watched: Vec<Selection>,
    pub(super) read: BTreeMap<Selection, View>,
    /// The first thing that was asked for and cannot be had.
    pub(super) failed: Option<StartError>,
    pub(super) departed: Departed,
}

impl Wiring<'_> {
    /// A reader of the cached objects of kind `K`: of those that this controller watches, or of all of them where it watches none. The cache is synced
    /// before the first key is reconciled; it is shared with every other controller of the manager that uses the same selection.
    ///
    /// `PartialObjectMeta<K>` is a selection of its own: it is not read from where whole objects are watched, nor the other way round. Where several selections
    /// of `K` are watched the manager does not start ([`StartError::AmbiguousRead`]): say which by [`Wiring::select`].
    pub fn lister<K: Watchable>(&mut self) -> Lister<K> {
        self.meant(Selection::of::<K>()).lister()
    }

    /// As [`Wiring::lister`], for a kind that is known at run time only.
    pub fn lister_of_kind(&mut self, kind: Kind) -> Lister<DynamicObject> {
        self.meant(Selection::new(kind)).lister()
    }

    /// A reader of a selection of `K` that the controller need not watch: what `narrow` makes of all objects of the kind. See
    /// [`Controller::select`](crate::Controller::select).
    ///
    /// ```
    /// # use boatswain::Wiring;
    /// # use k8s_openapi::api::core::v1::Node;
    /// # use kube::core::Expression;
    /// # fn f(wiring: &mut Wiring<'_>) {
    /// let linux = Expression::Equal("kubernetes.io/os".into(), "linux".into());
    /// let nodes = wiring.select::<Node>(|nodes| nodes.labels(linux));
    /// # }
    /// ```
    pub fn select<K: Watchable>(
        &mut self,
        narrow: impl FnOnce(Selection) -> Result<Selection, SelectionError>,
    ) -> Lister<K> {
        let all = Selection::of::<K>();
        let view = match narrowed(&all, narrow) {
            Ok(selection) => self.view(&selection),
            Err(cause) => self.fail(cannot_select(&self.controller, &all, cause)),
        };
        view.lister()
    }

    /// Lets objects of kind `K` be found by the values `of` gives for them, with [`Lister::by_index`]. It is called for every change, on
    /// a thread that all informers share: it should be quick. An object it fails or panics on is stored without values, and counted.
    ///
    /// A field needs no function: a path such as `spec.nodeName` is indexed by [`Wiring::index_path`], without decoding anything.
    pub fn index<K: Watchable>(
        &mut self,
        name: &str,
        of: impl Fn(&K) -> Result<Vec<String>, String> + Clone + Send + Sync + 'static,
    ) {
        self.meant(Selection::of::<K>())
            .add_index(IndexSpec::closure(name, move |object| {
                of(&*object.decode::<K>().map_err(|error| error.to_string())?)
            }));
    }

    /// Lets objects of kind `K` be found by the value at `path`, with [`Lister::by_index`].
    pub fn index_path<K: Watchable>(&mut self, path: &str) {
        self.meant(Selection::of::<K>())
            .add_index(IndexSpec::path(path));
    }

    /// The informers of the manager, for what comes and goes while it runs: what is added to the [view](Lister::view) of a lister is read by everybody
    /// who reads that selection, and wakes the keys of every controller that watches it; what is removed from it is told as out of scope.
    ///
    /// ```
    /// # use boatswain::{Scope, Selection, ViewError, Wiring};
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # fn f(wiring: &mut Wiring<'_>) {
    /// let (informers, pods) = (wiring.informers(), wiring.lister::<Pod>());
    /// let follow = move |namespace: &str| -> Result<bool, ViewError> {
    ///     let scope = Scope::Namespace(namespace.to_owned());
    ///     pods.view().add(informers.informer(Selection::of::<Pod>().within(scope)))
    /// };
    /// # }
    /// ```
    pub fn informers(&self) -> SharedInformers {
        self.yard.informers.shared()
    }

    /// Reads objects of kind `K` from the server itself, for the rare case that the cache is not enough.
    pub fn live<K: Watchable>(&self) -> Live<K> {
        let clock = self.yard.clock.clone();
        Live::new(self.client.clone(), Kind::of::<K>(), clock)
    }

    /// The client, for reconcilers that keep one. [`Context`](crate::Context) has it too.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    pub(crate) fn departed(&self) -> Departed {
        self.departed.clone()
    }

    /// A reader of what is reconciled.
    pub(crate) fn own<K>(&mut self) -> Lister<K> {
        self.own_view().lister()
    }

    pub(crate) fn referrers(&mut self) -> Referrers {
        // by key only: nothing is decoded
        let lister = self.own::<()>();
        Arc::new(move |path, namespace, name| {
            // before the sync there is nobody to tell; every key runs once it is there
            let keys = lister.keys_by_index(path, name).unwrap_or_default();
            keys.into_iter()
                .filter(|key| namespace.is_none() || key.namespace() == namespace)
                .collect()
        })
    }

    pub(super) fn own_view(&mut self) -> View {
        match self.watched.first().cloned() {
            Some(own) => self.view(&own),
            None => View::new(),
        }
    }

    /// What the controller means by all objects of a kind.
    fn meant(&mut self, all: Selection) -> View {
        let same =
            |watched: &&Selection| (watched.kind(), watched.form()) == (all.kind(), all.form());
        let watched: BTreeSet<_> = self.watched.iter().filter(same).cloned().collect();
        if watched.len() > 1 {
            let selections: Vec<_> = watched.iter().map(ToString::to_string).collect();
            return self.fail(StartError::AmbiguousRead {
                controller: self.controller.clone(),
                resource: all.kind().resource(),
                selections: selections.join("; "),
            });
        }
        let meant = watched.into_iter().next().unwrap_or(all);
        self.view(&meant)
    }

    pub(super) fn view(&mut self, selection: &Selection) -> View {
        match self.yard.informers.of(&self.controller, selection) {
            Ok(view) => {
                self.read.insert(selection.clone(), view.clone());
                view
            }
            Err(error) => self.fail(error),
        }
    }

    /// A view of nothing: the manager will not start.
    fn fail(&mut self, error: StartError) -> View {
        self.failed.get_or_insert(error);
        View::new()
    }
}
