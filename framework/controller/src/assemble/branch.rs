//! A controller's part of the supervision tree.

use std::{sync::Arc, time::Duration};

use boatswain_supervision::{
    Backoff, ChildSpec, Children, Intensity, Link, Mailbox, Shutdown, Strategy, SupervisorSpec,
};

use crate::{
    crew::Watch,
    dispatch::{Berth, DispatchCore, LimiterActor, Seat, Shard, ShardView, Worker},
    trigger::{Feed, SourceActor, Spring, Trigger},
};

/// Makes a controller's part of the tree, anew for each incarnation of the supervisor above it.
pub(crate) type Branch = Arc<dyn Fn() -> SupervisorSpec + Send + Sync>;

/// What outlives the actors of a controller and is handed to each of their incarnations.
#[derive(Clone)]
pub(super) struct Hold {
    pub(super) core: Arc<DispatchCore>,
    pub(super) feeds: Vec<Arc<Feed>>,
    pub(super) springs: Vec<Arc<Spring>>,
    pub(super) views: Vec<ShardView>,
    pub(super) crew: Watch,
    pub(super) grace: Duration,
}

/// Limiter, workers, shards, triggers. They stop in reverse: intake first, running reconciles last.
pub(super) fn branch(
    Hold {
        core,
        feeds,
        springs,
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
            core.sick.attach(children.link().clone());
            let (gate, sick) = (core.gate.clone(), core.sick.clone());
            children.link().report("health", move || sick.fact());
            children.link().report("gate", move || gate.fact());
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
                let make = move |link: &Link| {
                    Trigger::new(core.clone(), feed.clone(), shards.clone(), link)
                };
                let spec = ChildSpec::actor(id, Mailbox::new(), make);
                children.add(spec.thread(crew.triggers.clone()));
            }
            for spring in &springs {
                let (core, spring, shards) = (core.clone(), spring.clone(), addresses.clone());
                let id = format!("source-{}", spring.name);
                let make = move |link: &Link| {
                    SourceActor::new(core.clone(), spring.clone(), shards.clone(), link)
                };
                let spec = ChildSpec::actor(id, Mailbox::new(), make);
                children.add(spec.thread(crew.triggers.clone()));
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
                let make = move |link: &Link| Worker::new(core.clone(), index, link);
                let spec = ChildSpec::actor(format!("worker-{number}"), mailbox, make);
                children.add(
                    spec.backoff(Backoff::none())
                        .shutdown(Shutdown::Timeout(grace)),
                );
            }
        });
    (seats, spec)
}
