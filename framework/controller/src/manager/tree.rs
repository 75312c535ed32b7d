//! The supervision tree of a manager.

use std::{net::TcpListener, sync::Arc, time::Duration};

use boatswain_cache::SharedInformers;
use boatswain_supervision::{
    Blocked, ChildSpec, Children, Clock, Intensity, Link, Mailbox, Strategy, SupervisorSpec,
};

use super::Leader;
use crate::{
    assemble::Branch,
    connection::{Connection, ConnectionActor},
    crew::Crew,
    dispatch::ControllerHandle,
    leader::{CatchUp, LeaderActor},
    recorder::{Recorder, RecorderActor},
    telemetry::{Telemetry, TelemetryActor},
};

/// What the tree is made of.
pub(super) struct Parts {
    pub(super) client: kube::Client,
    /// For Events alone.
    pub(super) events: kube::Client,
    pub(super) leader: Option<Leader>,
    pub(super) controllers: Arc<[ControllerHandle]>,
    pub(super) telemetry: Telemetry,
    pub(super) recorder: Recorder,
    pub(super) connection: Connection,
    pub(super) crew: Crew,
    pub(super) informers: SharedInformers,
    pub(super) listener: Option<Arc<TcpListener>>,
    pub(super) clock: Clock,
}

/// How long a new leader waits for consistent lists; an informer that cannot reach the server must not keep the others' keys waiting.
const CATCH_UP: Duration = Duration::from_secs(30);

/// One consistent list of every informer.
fn catch_up(informers: SharedInformers, clock: Clock) -> CatchUp {
    Arc::new(move || {
        let asked: Vec<_> = informers
            .cores()
            .into_iter()
            .map(|core| (core.relist(), core))
            .collect();
        let clock = clock.clone();
        Box::pin(async move {
            let end = clock.sleep(CATCH_UP);
            tokio::pin!(end);
            for (number, core) in asked {
                tokio::select! {
                    biased;
                    () = core.wait_relisted(number) => {}
                    () = &mut end => {
                        tracing::warn!(informer = %core.selection(), "leading on a cache that is behind: no list came within {CATCH_UP:?}");
                        return;
                    }
                }
            }
        })
    })
}

/// The tree, in start order: telemetry, lease, events, connection, informers, controllers. It stops in reverse: the lease is given back when nothing works any more
/// and what was said is written.
pub(super) fn root(parts: Parts, controllers: Vec<Branch>) -> SupervisorSpec {
    // the windows grow towards the root, or what is broken for good below would never fill them (the tree refuses such windows)
    let intensity = Intensity::new(3, Duration::from_secs(5 * 60));
    let last = Intensity::new(3, Duration::from_secs(20 * 60));
    let controllers = Arc::new(controllers);
    SupervisorSpec::new("root", Strategy::OneForOne)
        .intensity(last)
        .children(move |root: &mut Children| {
            if let Some(listener) = &parts.listener {
                let (telemetry, listener) = (parts.telemetry.clone(), listener.clone());
                let make = move |_: &Link| TelemetryActor::new(telemetry.clone(), listener.clone());
                root.add(
                    ChildSpec::actor("telemetry", Mailbox::new(), make)
                        .thread(parts.crew.telemetry.clone()),
                );
            }
            if let Some(leader) = &parts.leader {
                let (leader, recorder) = (leader.clone(), parts.recorder.clone());
                let controllers = parts.controllers.clone();
                let catch_up = catch_up(parts.informers.clone(), parts.clock.clone());
                let make = move |link: &Link| {
                    let controllers = controllers.clone();
                    let busy = Box::new(move || controllers.iter().any(ControllerHandle::is_busy));
                    LeaderActor::new(
                        leader.clone(),
                        recorder.clone(),
                        catch_up.clone(),
                        busy,
                        link,
                    )
                };
                root.add(
                    ChildSpec::actor("lease", Mailbox::new(), make)
                        .thread(parts.crew.lease.clone()),
                );
            }
            let (recorder, client) = (parts.recorder.clone(), parts.events.clone());
            let make =
                move |link: &Link| RecorderActor::new(recorder.clone(), client.clone(), link);
            root.add(
                ChildSpec::actor("events", Mailbox::new(), make).thread(parts.crew.events.clone()),
            );
            let (connection, client) = (parts.connection.clone(), parts.client.clone());
            let make =
                move |link: &Link| ConnectionActor::new(connection.clone(), client.clone(), link);
            root.add(
                ChildSpec::actor("connection", Mailbox::new(), make)
                    .thread(parts.crew.events.clone()),
            );

            let informers = parts.informers.supervisor("informers");
            let informers = informers
                .thread(parts.crew.informers.clone())
                .intensity(intensity);
            root.add(ChildSpec::supervisor(informers));

            let branches = controllers.clone();
            let controllers = SupervisorSpec::new("controllers", Strategy::OneForOne)
                .intensity(intensity)
                .children(move |children: &mut Children| {
                    for branch in branches.iter() {
                        children.add(ChildSpec::supervisor(branch()));
                    }
                });
            root.add(ChildSpec::supervisor(controllers));
        })
}

/// The check of liveness that fails while an actor blocks its thread: nothing but the end of the process can interrupt it.
pub(super) fn blocked(tree: boatswain_supervision::Observer) -> impl Fn() -> Result<(), String> {
    move || {
        let blocked = tree.blocked();
        let names: Vec<String> = blocked
            .iter()
            .map(
                |Blocked {
                     path,
                     thread,
                     for_ms,
                 }| {
                    format!("{path} has blocked thread {thread} for {} s", for_ms / 1000)
                },
            )
            .collect();
        if names.is_empty() {
            Ok(())
        } else {
            Err(names.join(", "))
        }
    }
}
