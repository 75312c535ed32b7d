//! Declares a controller: its kind, what else it watches, how it is run.

use std::{error::Error, future::Future, marker::PhantomData, sync::Arc, time::Duration};

use boatswain_cache::{
    Key, Kind, Lister, Object, Predicate, Reference, Selection, SelectionError, StoreOptions,
};
use boatswain_workqueue::Lane;
use futures::Stream;
use kube::{Resource, core::DynamicObject};
use serde::de::DeserializeOwned;

use crate::{
    assemble::{Plan, Runnable, WatchPlan, Wiring},
    context::Namespaced,
    dispatch::{RetryPolicy, Runner},
    finalizer::{CleanUp, Cleanup},
    reconcile::{FnReconciler, Outcome, Reconciler},
    rights::{Right, Verb},
    runner::TypedRunner,
    selected::Selected,
    trigger::{FnMapper, Mapping, Origin, Source},
};

/// A kind a controller can watch: any Kubernetes type known at compile time.
pub trait Watchable: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static {}

impl<K> Watchable for K where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static
{
}

/// What a controller can reconcile: a [`Watchable`] type, or [`DynamicObject`] where the kind is known at run time only.
pub trait Reconcilable: Resource + DeserializeOwned + Send + Sync + 'static {}

impl<K> Reconcilable for K where K: Resource + DeserializeOwned + Send + Sync + 'static {}

/// What watched objects are read as: a [`Watchable`] type, or [`DynamicObject`] where the kind is known at run time only.
pub trait Readable: DeserializeOwned + Send + Sync + 'static {}

impl<K> Readable for K where K: DeserializeOwned + Send + Sync + 'static {}

/// A controller in the making. It is handed to [`Manager::with`](crate::Manager::with) once it has a reconciler.
#[must_use = "a controller does nothing until its reconciler is handed to a manager"]
pub struct Controller<K> {
    plan: Plan,
    _kind: PhantomData<fn() -> K>,
}

impl<K: Watchable> Controller<K> {
    /// A controller called `name`: in metrics and logs, as field manager and in Events. Names are unique within a manager.
    pub fn named(name: impl Into<String>) -> Self {
        Self::over(Selection::of::<K>(), name)
    }
}

impl Controller<DynamicObject> {
    /// As [`Controller::named`], for a kind that is known at run time only: one that users name, or that is [discovered](Kind::discovered). It need not
    /// exist yet: it is waited for, also after it was deleted.
    ///
    /// Objects say what they are (`types`), so that Events can be told of them and others be [owned](crate::own) by them; they are written through the
    /// [context's client](crate::Context::client), with [`Kind::api_resource`].
    ///
    /// ```
    /// # use boatswain::{Controller, Kind};
    /// let cranes = Kind::new("harbour.example.com", "v1", "Crane", "cranes");
    /// let controller = Controller::of_kind(cranes, "example");
    /// ```
    pub fn of_kind(kind: Kind, name: impl Into<String>) -> Self {
        Self::over(Selection::new(kind), name)
    }
}

impl<K: Reconcilable> Controller<K> {
    fn over(selection: Selection, name: impl Into<String>) -> Self {
        let own = WatchPlan {
            what: Selected::whole(selection),
            when: None,
            mapping: Box::new(|_| Mapping::Own),
            index: None,
        };
        Self {
            plan: Plan::new(name.into(), own),
            _kind: PhantomData,
        }
    }

    /// Narrows what is watched of the controller's own kind; called twice, both narrow. What is not selected costs nothing and is not reconciled.
    ///
    /// `narrow` may add conditions on labels and fields, and a namespace, which then holds whatever namespaces the manager has. For metadata only, make it
    /// a controller of [`PartialObjectMeta<K>`](kube::core::PartialObjectMeta). An object that is not selected any more is told as [gone](Reconciler::gone),
    /// although it may well exist. What the server would refuse to select by is told when the manager starts.
    ///
    /// ```
    /// # use boatswain::Controller;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kube::core::Expression;
    /// let crane = Expression::Equal("app".into(), "crane".into());
    /// let controller = Controller::<Pod>::named("example").select(|pods| pods.labels(crane)?.field_not("status.phase", "Succeeded"));
    /// ```
    pub fn select(
        mut self,
        narrow: impl FnOnce(Selection) -> Result<Selection, SelectionError>,
    ) -> Self {
        if let Some(own) = self.plan.watches.first_mut() {
            own.what.narrow(narrow);
        }
        self
    }

    /// How objects of the controller's own kind are kept: layout, memo, and what is left out of them. All controllers of a manager that use the same
    /// selection share one store and must ask for the same: the manager does not start otherwise. Clone the options to say the same twice.
    pub fn keep(mut self, options: StoreOptions) -> Self {
        if let Some(own) = self.plan.watches.first_mut() {
            own.what.keep = Some(options);
        }
        self
    }

    /// Runs a key only for those changes of its own object that `predicate` lets pass; called twice, both must.
    ///
    /// It filters what wakes a key, not what the cache holds or a reconciler reads. Deletions, recreations and the initial state pass every
    /// stock predicate about a difference. The second look at every key ([`Controller::resync`]), retries and requeues do not ask it. A change it
    /// panics on passes.
    pub fn when(mut self, predicate: Predicate) -> Self {
        // the first watch is the controller's own kind
        if let Some(own) = self.plan.watches.first_mut() {
            own.when = both(own.when.take(), predicate);
        }
        self
    }

    /// Runs the owner when an object of kind `C` that it controls changes (owner reference with `controller: true`, compared by
    /// group, kind and uid). Short for [`watches`](Self::watches) with [`owned`](Watches::owned).
    pub fn owns<C: Watchable>(self) -> Self {
        self.watches::<C>().owned()
    }

    /// Runs some keys when an object of kind `W` changes; what follows says which.
    pub fn watches<W: Watchable>(self) -> Watches<K, W> {
        self.watch(Selection::of::<W>())
    }

    /// As [`watches`](Self::watches), for a kind that is known at run time only.
    pub fn watches_kind(self, kind: Kind) -> Watches<K, DynamicObject> {
        self.watch(Selection::new(kind))
    }

    fn watch<W>(self, selection: Selection) -> Watches<K, W> {
        Watches {
            controller: self,
            what: Selected::whole(selection),
            when: None,
            _watched: PhantomData,
        }
    }

    /// Runs the keys that a program sends by a [channel](crate::channel). `name` is shown in the tree and in logs; names of sources are unique within a
    /// controller.
    pub fn source(mut self, name: impl Into<String>, source: Source) -> Self {
        let make = Box::new(move |_: &mut Wiring<'_>| Origin::Channel(source));
        self.plan.sources.push((name.into(), make));
        self
    }

    /// Runs the keys that a stream brings, such as those of a message queue. `make` makes it when the controller starts, and again, with backoff, when it
    /// has ended or panicked. What it brings while nothing runs is the stream's own business.
    pub fn stream<S>(
        mut self,
        name: impl Into<String>,
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self
    where
        S: Stream<Item = Key> + Send + 'static,
    {
        let make = move |_: &mut Wiring<'_>| Origin::Stream(Box::new(move || Box::pin(make())));
        self.plan.sources.push((name.into(), Box::new(make)));
        self
    }

    /// Runs the keys that `keys` says, once per `period`, the first time after one; it gets a reader of the controller's own kind. It is called on a thread
    /// that triggers share: it should be quick. A panic costs its own turn only. For every key alike, [`Controller::resync`] does.
    pub fn every(
        mut self,
        name: impl Into<String>,
        period: Duration,
        keys: impl Fn(&Lister<K>) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        let make = move |wiring: &mut Wiring<'_>| {
            let lister = wiring.own::<K>();
            Origin::Every(period, Box::new(move || keys(&lister)))
        };
        self.plan.sources.push((name.into(), Box::new(make)));
        self
    }

    /// How many keys may be reconciled at once, 4 by default; at least 1. With 1 all keys share one shard.
    pub fn concurrency(mut self, limit: usize) -> Self {
        self.plan.concurrency = Some(limit.max(1));
        self
    }

    /// How long one reconcile may take before it is cancelled at its next await, 5 minutes by default.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.plan.deadline = limit;
        self
    }

    /// How often every key is looked at again although nothing changed, [10 minutes](crate::Options::resync) by default. `None` or zero switches it off.
    pub fn resync(mut self, period: impl Into<Option<Duration>>) -> Self {
        self.plan.resync = Some(period.into().filter(|period| !period.is_zero()));
        self
    }

    /// Does not run a key for changes of its own object that are exactly those its last run made, if that run ended `Done`. Off by default: such a run
    /// costs little, and finds what a reconciler overlooked.
    ///
    /// What counts is exact: a write through the [context's client](crate::Context::client) that named the version it replaced, as
    /// [`Context::replace`](crate::Context::replace) and [`Context::patch_status`](crate::Context::patch_status) do. A change by anybody else in between, a
    /// cause besides, a write without a version or a run that ended otherwise let the key run.
    pub fn ignore_own_writes(mut self) -> Self {
        self.plan.ignore_own_writes = true;
        self
    }

    /// Says how urgent an object is: of [`Lane::User`] everything that is to do for it goes first, also its part of the initial list; [`Lane::Low`] is
    /// done when nothing else is to do; [`Lane::Normal`] is as ever. However urgent one is, no lane waits longer than 30 s for its turn.
    ///
    /// It is asked whenever the object is to be queued, on a thread that triggers share: it should be quick, and there is no need to decode anything. If it
    /// panics the object is as urgent as any. A key without an object is, too.
    ///
    /// ```
    /// # use boatswain::{Controller, Lane};
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// let controller = Controller::<ConfigMap>::named("example").priority(|map| match map.labels().get("vip") {
    ///     Some(_) => Lane::User,
    ///     None => Lane::Normal,
    /// });
    /// ```
    pub fn priority(mut self, of: impl Fn(&Object) -> Lane + Send + Sync + 'static) -> Self {
        self.plan.priority = Some(Box::new(of));
        self
    }

    /// Runs its reconciles on a pool of threads that controllers which ask for it share, one thread per processor. For those that compute for more than a
    /// few milliseconds without an await: in place they would keep the thread they run on from the other keys of its shard.
    ///
    /// Everything else holds: one run of a key at a time, the bound on all of them, the deadline, and that a panic costs its run only. A run is cancelled
    /// at its next await, and until then it counts as running; one that is not over when the manager has stopped is named by the error.
    ///
    /// Where the manager runs on one thread, in [`Manager::start`](crate::Manager::start), reconciles are run in place.
    pub fn offload(mut self) -> Self {
        self.plan.offload = true;
        self
    }

    /// How failing keys are retried.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.plan.retry = Some(policy);
        self
    }

    /// Chooses the name of the controller's finalizer, such as `example.com/scaler`; `boatswain/<name of the controller>` where it is not called. Who renames
    /// a finalizer has to take the old one away from the objects that have it.
    pub fn finalizer(mut self, name: impl Into<String>) -> Self {
        self.plan.finalizer = Some(name.into());
        self
    }

    /// Declares what the reconciler does beside reading what is watched: what it writes, and what it reads that no watch brings. Reading what is reconciled,
    /// owned and watched, and writing Events, need not be said.
    ///
    /// Nothing is enforced by it: [`Manager::rights`](crate::Manager::rights) makes Roles of it, and [`Manager::check`](crate::Manager::check) asks
    /// the server about it.
    pub fn needs(mut self, right: Right) -> Self {
        self.plan.needs.push(right);
        self
    }

    /// Sets the reconciler. `make` is called once, when the manager starts, and gets what reconcilers read from.
    ///
    /// The controller's [finalizer](Self::finalizer) is taken away from every object that has it: there was a cleanup once, and is none any more. That takes the
    /// right to patch them; who still calls [`Controller::finalizer`] has declared it.
    pub fn reconciler<R: Reconciler<K>>(
        self,
        make: impl FnOnce(&mut Wiring<'_>) -> R + Send + 'static,
    ) -> Runnable {
        self.runnable(make, None)
    }

    /// Sets a reconciler that cleans up before an object goes: the controller keeps its [finalizer](Self::finalizer) on every object it reconciles. See
    /// [`Cleanup`].
    pub fn reconciler_with_cleanup<R: Cleanup<K>>(
        self,
        make: impl FnOnce(&mut Wiring<'_>) -> R + Send + 'static,
    ) -> Runnable {
        self.runnable(
            make,
            Some(|to, object, cx| Box::pin(to.cleanup(object, cx))),
        )
    }

    fn runnable<R: Reconciler<K>>(
        mut self,
        make: impl FnOnce(&mut Wiring<'_>) -> R + Send + 'static,
        clean_up: Option<CleanUp<K, R>>,
    ) -> Runnable {
        let finalizer = self.plan.finalizer(clean_up.is_some());
        if clean_up.is_some() || self.plan.finalizer.is_some() {
            let kind = self.plan.kind.clone();
            self.plan.needs.push(Right::on_kind(kind, [Verb::Patch]));
        }
        let make = move |wiring: &mut Wiring<'_>| -> Arc<dyn Runner> {
            Arc::new(TypedRunner {
                departed: wiring.departed(),
                lister: wiring.own::<K>(),
                reconciler: make(wiring),
                finalizer,
                clean_up,
            })
        };
        Runnable {
            plan: self.plan,
            make: Box::new(make),
        }
    }

    /// Sets a plain function as the reconciler; it gets `context` at every call.
    pub fn reconcile_with<C, F, Fut, E>(self, context: Arc<C>, run: F) -> Runnable
    where
        C: Send + Sync + 'static,
        F: Fn(Arc<K>, Arc<C>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Outcome, E>> + Send + 'static,
        E: Error + Send + Sync + 'static,
    {
        self.reconciler(move |_| FnReconciler::new(context, run))
    }
}

/// A watch that still lacks its mapping.
#[must_use = "a watch does nothing until it says which keys run"]
pub struct Watches<K, W> {
    controller: Controller<K>,
    what: Selected,
    when: Option<Predicate>,
    _watched: PhantomData<fn() -> W>,
}

impl<K: Reconcilable, W: Readable> Watches<K, W> {
    /// Narrows what is watched; called twice, both narrow. See [`Controller::select`].
    ///
    /// ```
    /// # use boatswain::Controller;
    /// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
    /// # use kube::core::{Expression, PartialObjectMeta};
    /// let managed = Expression::Exists("example.com/managed".into());
    /// let controller = Controller::<Deployment>::named("example")
    ///     .watches::<PartialObjectMeta<Pod>>().select(|pods| pods.labels(managed)).owned();
    /// ```
    pub fn select(
        mut self,
        narrow: impl FnOnce(Selection) -> Result<Selection, SelectionError>,
    ) -> Self {
        self.what.narrow(narrow);
        self
    }

    /// How the watched objects are kept. See [`Controller::keep`].
    pub fn keep(mut self, options: StoreOptions) -> Self {
        self.what.keep = Some(options);
        self
    }

    /// Looks only at those changes of the watched objects that `predicate` lets pass; called twice, both must. See [`Controller::when`].
    pub fn when(mut self, predicate: Predicate) -> Self {
        self.when = both(self.when.take(), predicate);
        self
    }

    /// Runs the owner that controls the changed object (owner reference with `controller: true`), compared by group and kind, whatever the
    /// version it was named with, and by uid: an owner of the same name that came later is not meant, nor is one before it. One that the cache does
    /// not know (yet) is.
    pub fn owned(self) -> Controller<K> {
        self.refers_by(|kind, stored| {
            Reference::to_controller(kind).of_incarnation(move |key| {
                let owner = stored.get_object(key).ok().flatten();
                owner.map(|owner| owner.meta().uid.clone())
            })
        })
    }

    /// Runs the objects of kind `K` that the changed object names, in the way `reference` says: as owners, by a label, an annotation or a field.
    /// Nothing is decoded. It gets the kind of the controller and a reader of it.
    ///
    /// ```
    /// # use boatswain::{Controller, Reference};
    /// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::{ConfigMap, Pod}};
    /// let controller = Controller::<Deployment>::named("example")
    ///     .watches::<Pod>().refers_by(|kind, _| Reference::by_label(kind, "example.com/deployment"))
    ///     // only where the owner is still the incarnation that was named
    ///     .watches::<ConfigMap>().refers_by(|kind, stored| {
    ///         Reference::to_owners(kind).of_incarnation(move |key| {
    ///             stored.get_object(key).ok().flatten().map(|owner| owner.meta().uid.clone())
    ///         })
    ///     });
    /// ```
    pub fn refers_by(
        self,
        reference: impl FnOnce(Kind, Lister<K>) -> Reference + Send + 'static,
    ) -> Controller<K> {
        let kind = self.controller.plan.kind.clone();
        let mapping = Box::new(move |wiring: &mut Wiring<'_>| {
            Mapping::Named(reference(kind, wiring.own::<K>()))
        });
        self.mapped(mapping, None)
    }

    fn mapped(
        mut self,
        mapping: Box<dyn FnOnce(&mut Wiring<'_>) -> Mapping + Send>,
        index: Option<&'static str>,
    ) -> Controller<K> {
        self.controller.plan.watches.push(WatchPlan {
            what: self.what,
            when: self.when,
            mapping,
            index,
        });
        self.controller
    }

    /// Runs the objects of kind `K` that name the changed object at `path` (dots between fields, for example
    /// `spec.targetDeployment`) and live in its namespace, or anywhere if it has none. The path is indexed; nothing is decoded to
    /// follow it.
    pub fn referenced_by(self, path: &'static str) -> Controller<K>
    where
        K: Namespaced,
    {
        let mapping = Box::new(move |wiring: &mut Wiring<'_>| Mapping::ReferencedBy {
            path,
            referrers: wiring.referrers(),
        });
        self.mapped(mapping, Some(path))
    }

    /// Runs the keys that `map` names for the changed object. `map` may await and may fail: a change it fails on is mapped again
    /// with backoff, a panic is a failure, so is no answer within 30 s, and none of them holds up other changes. It gets a reader of
    /// the controller's own kind. A state of the object that does not decode concerns no key.
    pub fn mapped_by<F, Fut, E>(self, map: F) -> Controller<K>
    where
        F: Fn(Arc<W>, Lister<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Key>, E>> + Send + 'static,
        E: Error + Send + Sync + 'static,
    {
        let mapping = Box::new(move |wiring: &mut Wiring<'_>| {
            Mapping::Mapped(Arc::new(FnMapper::<W, K, F>::new(map, wiring.own::<K>())))
        });
        self.mapped(mapping, None)
    }
}

/// What passes both.
fn both(one: Option<Predicate>, other: Predicate) -> Option<Predicate> {
    Some(match one {
        Some(one) => one.and(other),
        None => other,
    })
}

#[cfg(test)]
mod tests;
