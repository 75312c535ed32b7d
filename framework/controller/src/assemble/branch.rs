//! A controller's part of the supervision tree.

use std::{sync::Arc, time::Duration};

use boatswain_supervision::{
    Backoff, ChildSpec, Children, Intensity, Link, Mailbox, Shutdown, Strategy, SupervisorSpec,
};

use crate::{
    crew::Watch,
    dispatch::{Desk, Desks, DispatchCore, InFlight, LimiterActor, Shard, Worker},
    manager::Keepers,
    trigger::{Feed, SourceActor, Spring, Trigger},
};

/// Makes a controller's part of the tree, anew for each incarnation of the supervisor above it.
pub(crate) type Branch = Arc<dyn Fn() -> SupervisorSpec + Send + Sync>;

/// What outlives the actors of a controller and is handed to each of their incarnations.
#[derive(Clone)]
pub(super) struct Hold {
    /// Where it has a commission of its own.
    pub(super) keepers: Option<Keepers>,
    pub(super) core: Arc<DispatchCore>,
    pub(super) desks: Desks,
    pub(super) in_flight: InFlight,
    pub(super) feeds: Vec<Arc<Feed>>,
    pub(super) springs: Vec<Arc<Spring>>,
    pub(super) crew: Watch,
    pub(super) grace: Duration,
}

/// Those who keep a lease of its own, limiter, workers, shards, triggers. They stop in reverse: intake first, then running reconciles, and its lease last.
pub(super) fn branch(
    Hold {
        keepers,
        core,
        desks,
        in_flight,
        feeds,
        springs,
        crew,
        grace,
    }: Hold,
) -> SupervisorSpec {
    let intensity = Intensity::new(8, Duration::from_secs(60));
    SupervisorSpec::new(core.name.clone(), Strategy::OneForOne)
        .intensity(intensity)
        .children(move |children: &mut Children| {
            let (running, clock) = (in_flight.clone(), children.link().clock().clone());
            children
                .link()
                .virtual_children(move |limit| running.show(clock.now(), limit));
            core.sick.attach(children.link().clone());
            let (gate, sick) = (core.gate.clone(), core.sick.clone());
            children.link().report("health", move || sick.fact());
            let caches = core.gate.clone();
            children.link().report("gate", move || gate.fact());
            children
                .link()
                .report("caches", move || caches.cache_troubles().into());
            if let Some(keepers) = &keepers {
                keepers.add_to(children);
            }
            let limiter = Mailbox::<LimiterActor>::new();
            let (own, known) = (limiter.address(), desks.clone());
            children.add(ChildSpec::actor("limiter", limiter, move |link: &Link| {
                LimiterActor::new(known.clone(), own.clone(), link)
            }));
            for (desk, thread) in desks.iter().zip(crew.workers.iter().cycle()) {
                let workers = workers(desk, grace);
                children.add(ChildSpec::supervisor(workers.thread(thread.clone())));
            }
            for (desk, thread) in desks.iter().zip(crew.workers.iter().cycle()) {
                let mailbox = Mailbox::<Shard>::new();
                let id = format!("shard-{}", desk.index);
                let (desk, own) = (desk.clone(), mailbox.address());
                let make = move |link: &Link| Shard::new(desk.clone(), own.clone(), link);
                children.add(ChildSpec::actor(id, mailbox, make).thread(thread.clone()));
            }
            for (index, feed) in feeds.iter().enumerate() {
                let (core, feed, desks) = (core.clone(), feed.clone(), desks.clone());
                // a kind may be watched twice, in two ways
                let same = |earlier: &&Arc<Feed>| earlier.source == feed.source;
                let id = match feeds[..index].iter().filter(same).count() {
                    0 => format!("trigger-{}", feed.source),
                    n => format!("trigger-{}-{}", feed.source, n + 1),
                };
                let make = move |link: &Link| {
                    Trigger::new(core.clone(), feed.clone(), desks.clone(), link)
                };
                let spec = ChildSpec::actor(id, Mailbox::new(), make);
                children.add(spec.thread(crew.triggers.clone()));
            }
            for spring in &springs {
                let (core, spring, desks) = (core.clone(), spring.clone(), desks.clone());
                let id = format!("source-{}", spring.name);
                let make = move |link: &Link| {
                    SourceActor::new(core.clone(), spring.clone(), desks.clone(), link)
                };
                let spec = ChildSpec::actor(id, Mailbox::new(), make);
                children.add(spec.thread(crew.triggers.clone()));
            }
        })
}

/// The supervisor of the workers of one shard. User code fails here, so it has no intensity: a crash costs one attempt of one key, and the key backs off,
/// not the worker.
fn workers(desk: &Arc<Desk>, grace: Duration) -> SupervisorSpec {
    let desk = desk.clone();
    SupervisorSpec::new(format!("workers-{}", desk.index), Strategy::OneForOne)
        .without_intensity()
        .children(move |children: &mut Children| {
            for number in 0..desk.core.permits.limit() {
                let desk = desk.clone();
                let make = move |link: &Link| Worker::new(desk.clone(), link);
                let spec = ChildSpec::actor(format!("worker-{number}"), Mailbox::new(), make);
                children.add(
                    spec.backoff(Backoff::none())
                        .shutdown(Shutdown::Timeout(grace)),
                );
            }
        })
}
