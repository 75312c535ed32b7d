//! From the plan of a controller to its part of the supervision tree.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use boatswain_cache::{IndexSpec, Kind, Predicate, Selection};
use boatswain_supervision::{Clock, Entropy};
use kube::core::Selector;

use crate::{
    context::Surroundings,
    crew::Crew,
    dispatch::{
        Closing, Complaints, ControllerHandle, Departed, Desk, DispatchCore, Echoes, Gate,
        InFlight, Pacing, Permits, Priority, Retries, RetryPolicy, Runner, ShardView, Sick, Writes,
    },
    error::StartError,
    explain::{Heards, Journals},
    finalizer::Finalizer,
    informers::{self, Informers},
    manager::Commission,
    rights::Right,
    selected::{SelectError, Selected, narrowed},
    telemetry::{ControllerMetrics, Roster},
    trigger::{Feed, Mapping, Origin, Spring},
};

mod branch;
mod wiring;

pub(crate) use branch::Branch;
use branch::{Hold, branch};
pub use wiring::Wiring;

/// What a controller declares.
pub(crate) struct Plan {
    name: String,
    /// What it reconciles.
    pub(crate) kind: Kind,
    /// The first is of the controller's own kind.
    pub(crate) watches: Vec<WatchPlan>,
    /// What else wakes its keys, by name.
    pub(crate) sources: Vec<(String, MakeOrigin)>,
    pub(crate) concurrency: Option<usize>,
    pub(crate) deadline: Duration,
    /// What is said about it; never is said, too.
    pub(crate) resync: Option<Option<Duration>>,
    pub(crate) retry: Option<RetryPolicy>,
    pub(crate) ignore_own_writes: bool,
    /// The name its author chose for its finalizer.
    pub(crate) finalizer: Option<String>,
    pub(crate) priority: Option<Priority>,
    /// Whether its reconciles run on the pool.
    pub(crate) offload: bool,
    /// What it does beside watching.
    pub(crate) needs: Vec<Right>,
}

/// Makes a source of keys.
pub(crate) type MakeOrigin = Box<dyn FnOnce(&mut Wiring<'_>) -> Origin + Send>;

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
            kind: own.what.all().kind().clone(),
            watches: vec![own],
            sources: Vec::new(),
            concurrency: None,
            deadline: Duration::from_secs(5 * 60),
            resync: None,
            retry: None,
            ignore_own_writes: false,
            finalizer: None,
            priority: None,
            offload: false,
            needs: Vec::new(),
        }
    }

    /// Its finalizer, used or to be taken away.
    pub(crate) fn finalizer(&self, is_used: bool) -> Finalizer {
        Finalizer::of(
            self.kind.clone(),
            &self.name,
            self.finalizer.clone(),
            is_used,
        )
    }

    /// What each watch selects, in their order; the first is narrowed by the manager's `selector`, too.
    fn selections(&self, selector: &Selector) -> Result<Vec<Selection>, StartError> {
        let selections = self.watches.iter().enumerate();
        let selections = selections.map(|(place, WatchPlan { what, .. })| {
            let selection = what.selection().and_then(|selection| match place {
                0 => narrowed(&selection, |own| own.labels(selector.clone())),
                _ => Ok(selection),
            });
            selection.map_err(|cause| cannot_select(&self.name, what.all(), cause))
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
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    pub(crate) crew: Crew,
    pub(crate) roster: Roster,
    pub(crate) informers: Informers,
    pub(crate) defaults: Defaults,
    pub(crate) grace: Duration,
    pub(crate) closing: Closing,
    /// How many have been assembled.
    pub(crate) assembled: usize,
}

/// What holds of controllers that say nothing else.
pub(crate) struct Defaults {
    pub(crate) concurrency: usize,
    pub(crate) resync: Option<Duration>,
    pub(crate) max_retries: u32,
    /// Narrows what each of them reconciles.
    pub(crate) selector: Selector,
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

    /// What the controller must be allowed to do: to read what it watches, to tell of what it reconciles, and what it declares besides.
    ///
    /// # Errors
    ///
    /// When something cannot be selected.
    pub(crate) fn rights(&self) -> Result<Vec<Right>, StartError> {
        // which objects are selected makes no difference
        let selections = self.plan.selections(&Selector::default())?;
        let watched = selections.iter().map(Right::to_watch);
        // the first selection is what is reconciled
        let told = selections.iter().take(1).map(Right::to_tell_of_selected);
        let needs = self.plan.needs.iter().cloned();
        Ok(watched.chain(told).chain(needs).collect())
    }

    /// Tells the informers how the controller wants its objects to be kept.
    ///
    /// # Errors
    ///
    /// When something cannot be selected, or others want it to be kept otherwise.
    pub(crate) fn declare(&self, yard: &mut Yard) -> Result<(), StartError> {
        let Yard {
            defaults,
            informers,
            ..
        } = yard;
        let selections = self.plan.selections(&defaults.selector)?;
        for (watch, selection) in self.plan.watches.iter().zip(selections) {
            if let Some(options) = &watch.what.keep {
                informers.declare(&self.plan.name, &selection, options)?;
            }
        }
        Ok(())
    }

    /// The controller, and its branch of the tree.
    ///
    /// # Errors
    ///
    /// When it reads what it cannot, or threads cannot be made.
    pub(crate) fn assemble(
        self,
        yard: &mut Yard,
        commission: &Commission,
    ) -> Result<(ControllerHandle, Branch), StartError> {
        let Self { plan, make } = self;
        let departed = Departed::default();
        let resync = plan.resync.unwrap_or(yard.defaults.resync);
        let selections = plan.selections(&yard.defaults.selector)?;
        let mut wiring = Wiring {
            yard,
            controller: plan.name.clone(),
            client: commission.client.clone(),
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
            let resync = resync.filter(|_| feeds.is_empty());
            let view = wiring.view(selection);
            let source = informers::name(selection);
            let feed = Feed::new(&view, source, &plan.name, watch.when, mapping, resync);
            feeds.push(Arc::new(feed));
        }
        let mut springs = Vec::new();
        for (name, make) in plan.sources {
            let origin = make(&mut wiring);
            springs.push(Arc::new(Spring::new(name, origin)));
        }
        let Wiring {
            yard, read, failed, ..
        } = wiring;
        if let Some(failed) = failed {
            return Err(failed);
        }
        let caches: Arc<Vec<_>> = Arc::new(read.into_values().collect());
        let echoes = match plan.ignore_own_writes {
            true => Echoes::of(&plan.kind.group, &plan.kind.plural),
            false => Echoes::default(),
        };
        let concurrency = plan.concurrency.unwrap_or(yard.defaults.concurrency).max(1);
        let shards = yard.crew.workers.len().min(concurrency).max(1);
        // prepared names must not collide in the tables
        let seed = yard.entropy.next();
        let view = |_| ShardView::new(yard.clock.clone(), seed);
        let views: Vec<_> = (0..shards).map(view).collect();
        let in_flight = InFlight::new(views.clone());
        let retries = Retries::from(plan.retry.unwrap_or_else(|| RetryPolicy {
            max_retries: yard.defaults.max_retries,
            ..RetryPolicy::default()
        }));
        let gate = Gate::new(yard.closing.of_one(), &caches);
        let sick = Arc::new(Sick::default());
        let journals = Journals::new(shards);
        let metrics = ControllerMetrics::new(
            &plan.name,
            views.clone(),
            journals.clone(),
            gate.clone(),
            sick.clone(),
            concurrency,
            &yard.roster,
        );
        let pool = match &yard.crew.pool {
            Some(pool) if plan.offload => Some(pool.handle()?),
            _ => None,
        };
        let core = Arc::new(DispatchCore {
            surroundings: Arc::new(Surroundings {
                controller: plan.name.clone(),
                client: commission.client.clone(),
                clock: yard.clock.clone(),
                recorder: commission.recorder.clone(),
                writes: Writes::new(caches.to_vec()).into(),
                echoes: echoes.into(),
            }),
            name: plan.name,
            runner,
            permits: Permits::new(concurrency, views.iter().map(ShardView::work).collect()),
            pacing: Pacing::new(retries.bucket()),
            retries,
            complaints: Complaints::default(),
            deadline: plan.deadline,
            departed,
            metrics,
            entropy: yard.entropy.clone(),
            shards,
            _caches: caches,
            gate: gate.clone(),
            sick: sick.clone(),
            pool,
            priority: plan.priority,
            journals,
            heards: Heards::default(),
            first_run: yard.entropy.next(),
        });
        let own = feeds.iter().filter(|feed| feed.is_own());
        let number = yard.assembled;
        yard.assembled += 1;
        let handle = ControllerHandle {
            name: core.name.clone(),
            views: views.clone(),
            gate,
            sick: core.sick.clone(),
            clock: yard.clock.clone(),
            core: Arc::downgrade(&core),
            in_flight: in_flight.clone(),
            quarantines: own
                .map(|feed: &Arc<Feed>| feed.quarantine.clone())
                .collect(),
        };
        let desks = views.into_iter().enumerate();
        let hold = Hold {
            keepers: commission.kept_by(&handle, yard),
            desks: desks
                .map(|(index, view)| Desk::new(index, &core, view))
                .collect(),
            core,
            in_flight,
            feeds,
            springs,
            crew: yard.crew.watch(number),
            grace: yard.grace,
        };
        Ok((handle, Arc::new(move || branch(hold.clone()))))
    }
}
