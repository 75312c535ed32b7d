//! The supervision tree of a manager.

use std::{net::TcpListener, sync::Arc, time::Duration};

use boatswain_cache::SharedInformers;
use boatswain_supervision::{
    Blocked, ChildSpec, Children, Intensity, Link, Mailbox, Shutdown, Strategy, SupervisorSpec,
};

use super::{Bridge, Keepers};
use crate::{
    connection::{Connection, ConnectionActor},
    controllers::Berths,
    crew::Crew,
    telemetry::{Telemetry, TelemetryActor},
};

/// How long the dashboard may take to end: its thread gives way to all others, and by then the lease is given back.
const UNHURRIED: Duration = Duration::from_secs(15);

/// What the tree is made of.
pub(super) struct Parts {
    pub(super) client: kube::Client,
    /// Where one commission is for all controllers.
    pub(super) keepers: Option<Keepers>,
    pub(super) berths: Berths,
    pub(super) telemetry: Telemetry,
    pub(super) connection: Connection,
    pub(super) crew: Crew,
    pub(super) informers: SharedInformers,
    pub(super) listener: Option<Arc<TcpListener>>,
    pub(super) bridge: Option<Bridge>,
}

/// The tree, in start order: telemetry, lease, events, connection, informers, controllers. It stops in reverse: the lease is given back when nothing works any more
/// and what was said is written. Controllers that have a lease each keep it, and their Events, in their own parts.
pub(super) fn root(parts: Parts) -> SupervisorSpec {
    // the windows grow towards the root, or what is broken for good below would never fill them (the tree refuses such windows)
    let intensity = Intensity::new(3, Duration::from_secs(5 * 60));
    let last = Intensity::new(3, Duration::from_secs(20 * 60));
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
            if let Some(bridge) = &parts.bridge {
                let bridge = bridge.clone();
                let make = move |_: &Link| bridge.actor();
                root.add(
                    ChildSpec::actor("dashboard", Mailbox::new(), make)
                        .thread(parts.crew.dashboard.clone())
                        .shutdown(Shutdown::Timeout(UNHURRIED)),
                );
            }
            if let Some(keepers) = &parts.keepers {
                keepers.add_to(root);
            }
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

            let controllers = parts.berths.supervisor(intensity);
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
