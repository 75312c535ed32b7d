//! From the plan of a controller to its part of the supervision tree.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use boatswain_cache::{
    IndexSpec, Kind, Lister, Live, Predicate, Selection, SelectionError, SharedInformers, View,
};
use boatswain_supervision::{
    Backoff, ChildSpec, Children, Clock, Entropy, Intensity, Link, Mailbox, Shutdown, Strategy,
    SupervisorSpec,
};
use prometheus::Registry;

use crate::{
    builder::Watchable,
    context::Surroundings,
    crew::Crew,
    dispatch::{
        Berth, Closing, ControllerHandle, Departed, DispatchCore, InFlight, LimiterActor, Permits,
        RetryPolicy, Runner, Seat, Shard, ShardView, Worker, Writes,
    },
    error::StartError,
    informers::{self, Informers},
    recorder::Recorder,
    selected::{SelectError, Selected, narrowed},
    telemetry::{ControllerMetrics, register_shards},
    trigger::{Feed, Mapping, Referrers, Trigger},
};

/// What a controller declares.
pub(crate) struct Plan {
    name: String,
    /// The first is of the controller's own kind.
    pub(crate) watches: Vec<WatchPlan>,
    pub(crate) concurrency: Option<usize>,
    pub(crate) deadline: Duration,
    pub(crate) resync: Option<Duration>,
    pub(crate) retry: RetryPolicy,
}

/// One watch of a controller.
pub(crate) struct WatchPlan {
    pub(crate) what: Selected,
    /// Which changes are worth a run; all of them where nothing is said.
    pub(crate) when: Option<Predicate>,
    pub(crate) mapping: Box<dyn FnOnce(&mut Wiring<'_>) -> Mapping + Send>,
    /// A path of the controller's own kind that the mapping looks up.
    pub(crate) index: Option<&'static str>,
}

impl Plan {
    pub(crate) fn new(name: String, own: WatchPlan) -> Self {
        Self {
            name,
            watches: vec![own],
            concurrency: None,
            deadline: Duration::from_secs(5 * 60),
            resync: Some(Duration::from_secs(10 * 60)),
            retry: RetryPolicy::default(),
        }
    }

    /// What each watch selects, in their order.
    fn selections(&self) -> Result<Vec<Selection>, StartError> {
        let selections = self.watches.iter().map(|WatchPlan { what, .. }| {
            let cannot = |cause| cannot_select(&self.name, what.all(), cause);
            what.selection().map_err(cannot)
        });
        selections.collect()
    }
}

/// Makes a controller's reconciler from what it reads.
pub(crate) type MakeRunner = Box<dyn FnOnce(&mut Wiring<'_>) -> Arc<dyn Runner> + Send>;

/// A controller with its reconciler: what a manager runs.
#[must_use = "a controller does nothing until it is handed to a manager"]
pub struct Runnable {
    pub(crate) plan: Plan,
    pub(crate) make: MakeRunner,
}

/// What is at hand while controllers are put together.
pub(crate) struct Yard {
    pub(crate) client: kube::Client,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    pub(crate) crew: Crew,
    pub(crate) recorder: Recorder,
    pub(crate) registry: Registry,
    pub(crate) informers: Informers,
    pub(crate) concurrency: usize,
    pub(crate) grace: Duration,
    pub(crate) closing: Closing,
    /// Those that have been assembled.
    pub(crate) controllers: Vec<ControllerHandle>,
}

/// What a controller's reconciler and mappers read from; handed to the closure given to
/// [`Controller::reconciler`](crate::Controller::reconciler).
pub struct Wiring<'a> {
    yard: &'a mut Yard,
    controller: String,
    /// What the controller watches; first what it reconciles.
    watched: Vec<Selection>,
    read: BTreeMap<Selection, View>,
    /// The first thing that was asked for and cannot be had.
    failed: Option<StartError>,
    departed: Departed,
}

impl Wiring<'_> {
    /// A reader of the cached objects of kind `K`: of those that this controller watches, or of all of them where it watches none. The cache is synced
    /// before the first key is reconciled; it is shared with every other controller of the manager that uses the same selection.
    ///
    /// `PartialObjectMeta<K>` is a selection of its own: it is not read from where whole objects are watched, nor the other way round. Where several selections
    /// of `K` are watched the manager does not start ([`StartError::AmbiguousRead`]): say which by [`Wiring::select`].
    pub fn lister<K: Watchable>(&mut self) -> Lister<K> {
        self.meant::<K>().lister()
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
        self.meant::<K>()
            .add_index(IndexSpec::closure(name, move |object| {
                of(&*object.decode::<K>().map_err(|error| error.to_string())?)
            }));
    }

    /// Lets objects of kind `K` be found by the value at `path`, with [`Lister::by_index`].
    pub fn index_path<K: Watchable>(&mut self, path: &str) {
        self.meant::<K>().add_index(IndexSpec::path(path));
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
        Live::new(
            self.yard.client.clone(),
            Kind::of::<K>(),
            self.yard.clock.clone(),
        )
    }

    /// The client, for reconcilers that keep one. [`Context`](crate::Context) has it too.
    pub fn client(&self) -> kube::Client {
        self.yard.client.clone()
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

    fn own_view(&mut self) -> View {
        match self.watched.first().cloned() {
            Some(own) => self.view(&own),
            None => View::new(),
        }
    }

    /// What the controller means by `K`.
    fn meant<K: Watchable>(&mut self) -> View {
        let all = Selection::of::<K>();
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

    fn view(&mut self, selection: &Selection) -> View {
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

fn cannot_select(controller: &str, selection: &Selection, cause: SelectError) -> StartError {
    StartError::Selection {
        controller: controller.to_owned(),
        resource: selection.kind().resource(),
        cause,
    }
}

impl Runnable {
    pub(crate) fn name(&self) -> &str {
        &self.plan.name
    }

    /// Tells `informers` how the controller wants its objects to be kept.
    ///
    /// # Errors
    ///
    /// When something cannot be selected, or others want it to be kept otherwise.
    pub(crate) fn declare(&self, informers: &mut Informers) -> Result<(), StartError> {
        let selections = self.plan.selections()?;
        for (watch, selection) in self.plan.watches.iter().zip(selections) {
            if let Some(options) = &watch.what.keep {
                informers.declare(&self.plan.name, &selection, options)?;
            }
        }
        Ok(())
    }

    /// The controller's branch of the tree.
    ///
    /// # Errors
    ///
    /// When its metrics cannot be registered, or it reads what it cannot.
    pub(crate) fn assemble(self, yard: &mut Yard) -> Result<Branch, StartError> {
        let Self { plan, make } = self;
        let departed = Departed::default();
        let selections = plan.selections()?;
        let mut wiring = Wiring {
            yard,
            controller: plan.name.clone(),
            watched: selections.clone(),
            read: BTreeMap::new(),
            failed: None,
            departed: departed.clone(),
        };
        let runner = make(&mut wiring);
        let mut feeds = Vec::new();
        for (watch, selection) in plan.watches.into_iter().zip(&selections) {
            if let Some(path) = watch.index {
                wiring.own_view().add_index(IndexSpec::path(path));
            }
            let mapping = (watch.mapping)(&mut wiring);
            // the first watch is the controller's own kind
            let resync = plan.resync.filter(|_| feeds.is_empty());
            let view = wiring.view(selection);
            let source = informers::name(selection);
            let feed = Feed::new(&view, source, &plan.name, watch.when, mapping, resync);
            feeds.push(Arc::new(feed));
        }
        let Wiring {
            yard, read, failed, ..
        } = wiring;
        if let Some(failed) = failed {
            return Err(failed);
        }
        let caches: Vec<_> = read.into_values().collect();
        let concurrency = plan.concurrency.unwrap_or(yard.concurrency).max(1);
        let shards = yard.crew.workers.len().min(concurrency).max(1);
        let metrics = ControllerMetrics::register(&plan.name, &yard.registry)?;
        let core = Arc::new(DispatchCore {
            surroundings: Arc::new(Surroundings {
                controller: plan.name.clone(),
                client: yard.client.clone(),
                clock: yard.clock.clone(),
                recorder: yard.recorder.clone(),
                writes: Writes::new(caches.clone()),
            }),
            name: plan.name,
            runner,
            in_flight: InFlight::default(),
            permits: Permits::new(concurrency),
            retries: plan.retry.into(),
            deadline: plan.deadline,
            caches,
            ready: false.into(),
            departed,
            metrics,
            entropy: yard.entropy.clone(),
            epochs: (0..shards).map(|_| 0.into()).collect(),
            closing: yard.closing.clone(),
        });
        let views: Vec<_> = (0..shards).map(|_| ShardView::default()).collect();
        yard.controllers.push(ControllerHandle {
            name: core.name.clone(),
            views: views.clone(),
        });
        register_shards(
            &core.name,
            views.clone(),
            core.in_flight.clone(),
            &yard.clock,
            &yard.registry,
        )?;
        let hold = Hold {
            core,
            feeds,
            views,
            crew: yard.crew.clone(),
            grace: yard.grace,
        };
        Ok(Arc::new(move || branch(hold.clone())))
    }
}

/// Makes a controller's part of the tree, anew for each incarnation of the supervisor above it.
pub(crate) type Branch = Arc<dyn Fn() -> SupervisorSpec + Send + Sync>;

/// What outlives the actors of a controller and is handed to each of their incarnations.
#[derive(Clone)]
struct Hold {
    core: Arc<DispatchCore>,
    feeds: Vec<Arc<Feed>>,
    views: Vec<ShardView>,
    crew: Crew,
    grace: Duration,
}

/// Limiter, workers, shards, triggers. They stop in reverse: intake first, running reconciles last.
fn branch(
    Hold {
        core,
        feeds,
        views,
        crew,
        grace,
    }: Hold,
) -> SupervisorSpec {
    let intensity = Intensity::new(8, Duration::from_secs(60));
    SupervisorSpec::new(core.name.clone(), Strategy::OneForOne)
        .intensity(intensity)
        .children(move |children: &mut Children| {
            let (in_flight, clock) = (core.in_flight.clone(), children.link().clock().clone());
            children
                .link()
                .virtual_children(move |limit| in_flight.show(clock.now(), limit));
            let limiter = Mailbox::<LimiterActor>::new();
            let shards: Vec<_> = views.iter().map(|_| Mailbox::<Shard>::new()).collect();
            let addresses = Arc::new(shards.iter().map(Mailbox::address).collect::<Vec<_>>());
            let (limiter_address, for_limiter) = (limiter.address(), addresses.clone());
            let bucket = core.retries.bucket();
            children.add(ChildSpec::actor("limiter", limiter, move |link: &Link| {
                LimiterActor::new(for_limiter.clone(), bucket.clone(), link)
            }));
            let mut seats = Vec::new();
            for (index, thread) in (0..core.shards()).zip(crew.workers.iter().cycle()) {
                let (row, workers) = workers(index, &core, grace);
                seats.push(row);
                children.add(ChildSpec::supervisor(workers.thread(thread.clone())));
            }
            let places = shards
                .into_iter()
                .zip(seats)
                .zip(&views)
                .zip(crew.workers.iter().cycle());
            for (index, (((mailbox, seats), view), thread)) in places.enumerate() {
                let berth = Berth {
                    index,
                    core: core.clone(),
                    seats,
                    limiter: limiter_address.clone(),
                    own: mailbox.address(),
                    view: view.clone(),
                };
                let make = move |link: &Link| Shard::new(berth.clone(), link);
                let spec = ChildSpec::actor(format!("shard-{index}"), mailbox, make);
                children.add(spec.thread(thread.clone()));
            }
            for (index, feed) in feeds.iter().enumerate() {
                let (core, feed, shards) = (core.clone(), feed.clone(), addresses.clone());
                // a kind may be watched twice, in two ways
                let same = |earlier: &&Arc<Feed>| earlier.source == feed.source;
                let id = match feeds[..index].iter().filter(same).count() {
                    0 => format!("trigger-{}", feed.source),
                    n => format!("trigger-{}-{}", feed.source, n + 1),
                };
                let thread = &crew.workers[index % crew.workers.len()];
                let make = move |link: &Link| {
                    Trigger::new(core.clone(), feed.clone(), shards.clone(), link)
                };
                children.add(ChildSpec::actor(id, Mailbox::new(), make).thread(thread.clone()));
            }
        })
}

/// The seats of one shard and the supervisor of the workers on them. User code fails here, so it has no intensity: a crash costs
/// one attempt of one key, and the key backs off, not the worker.
fn workers(
    index: usize,
    core: &Arc<DispatchCore>,
    grace: Duration,
) -> (Arc<Vec<Seat>>, SupervisorSpec) {
    let seats: Arc<Vec<Seat>> =
        Arc::new((0..core.permits.limit()).map(|_| Seat::default()).collect());
    let (core, places) = (core.clone(), seats.clone());
    let spec = SupervisorSpec::new(format!("workers-{index}"), Strategy::OneForOne);
    let spec = spec
        .without_intensity()
        .children(move |children: &mut Children| {
            for (number, seat) in places.iter().enumerate() {
                let (core, mailbox) = (core.clone(), Mailbox::<Worker>::new());
                seat.assign(mailbox.address());
                let make = move |link: &Link| Worker::new(core.clone(), link);
                let spec = ChildSpec::actor(format!("worker-{number}"), mailbox, make);
                children.add(
                    spec.backoff(Backoff::none())
                        .shutdown(Shutdown::Timeout(grace)),
                );
            }
        });
    (seats, spec)
}
