//! A manager that runs: what it shows, and how it is stopped.

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use boatswain_cache::{InformerStatus, SharedInformers};
use boatswain_supervision::{Clock, Exit, StillRunning, Tree, TreeSnapshot};
use prometheus::TextEncoder;

use crate::{
    controllers::{Controllers, Deck, Leases, Muster},
    dispatch::{Closing, ControllerHandle, ParkedKey},
    error::{RunError, StartError},
    leader::LeaseStatus,
    telemetry::Telemetry,
};

/// Time beyond the grace period for what is not a reconcile to end, for each lease.
const STOP_MARGIN: Duration = Duration::from_secs(10);

/// Time for cancelled reconciles on the pool to come to an await.
const OFFLOAD_MARGIN: Duration = Duration::from_secs(1);

/// What a running manager shows; cheap to clone, usable from any thread. Nothing is asked of any actor: a stuck one is shown, too.
#[derive(Clone)]
pub struct Observer {
    pub(crate) tree: boatswain_supervision::Observer,
    pub(crate) clock: Clock,
    pub(crate) telemetry: Telemetry,
    pub(crate) informers: SharedInformers,
    pub(crate) controllers: Muster,
    pub(crate) leases: Leases,
    pub(crate) dashboard: Option<SocketAddr>,
}

impl Observer {
    /// The controllers that there are.
    pub fn controllers(&self) -> Vec<ControllerHandle> {
        self.controllers.all()
    }

    /// The controller called `name`, to look after its keys.
    pub fn controller(&self, name: &str) -> Option<ControllerHandle> {
        self.controllers.find(name)
    }

    /// The keys of the controller called `name` that are parked.
    pub fn parked(&self, name: &str) -> Vec<ParkedKey> {
        let controller = self.controller(name);
        controller.map_or_else(Vec::new, |controller| controller.parked())
    }

    /// What is known of the lease that replicas are elected by; `None` where none are, or each controller has a [lease](Self::leases) of its own.
    pub fn lease(&self) -> Option<LeaseStatus> {
        let mut leases = self.leases().into_iter();
        leases.find(|lease| lease.controller.is_none())
    }

    /// What is known of every lease that replicas are elected by: one for all controllers, or one for each that there is.
    pub fn leases(&self) -> Vec<LeaseStatus> {
        self.leases.status()
    }

    /// Where the dashboard is served; `None` where it is not.
    pub fn dashboard(&self) -> Option<SocketAddr> {
        self.dashboard
    }

    /// The supervision tree as it is now.
    pub fn snapshot(&self) -> TreeSnapshot {
        self.tree.snapshot()
    }

    /// Whether `/readyz` would pass, and its page with every check by name.
    pub fn ready(&self) -> (bool, String) {
        self.telemetry.ready.run("readyz")
    }

    /// Whether `/healthz` would pass, and its page, which names what blocks its thread.
    pub fn live(&self) -> (bool, String) {
        self.telemetry.live.run("healthz")
    }

    /// The page of `/metrics`.
    pub fn metrics(&self) -> String {
        TextEncoder::new()
            .encode_to_string(&self.telemetry.registry.gather())
            .unwrap_or_default()
    }

    /// The state of each informer that is in use; of none after the end.
    pub fn informers(&self) -> Vec<InformerStatus> {
        self.informers.status(self.clock.now())
    }

    /// Kills the actor at `path` of the tree, as a defect would, and leaves the rest to its supervisor. False if there is none.
    #[cfg(feature = "testing")]
    pub fn kill(&self, path: &str) -> bool {
        self.tree.kill(path)
    }
}

/// How long the tree may take to stop. One after the other its leases are given back, after what was said under them is written.
fn tree_stop(grace: Duration, leases: usize) -> Duration {
    let leases = u32::try_from(leases).unwrap_or(u32::MAX);
    grace.saturating_add(STOP_MARGIN.saturating_mul(leases.max(1)))
}

/// How long a whole stop may take.
pub(crate) fn longest_stop(grace: Duration, leases: usize) -> Duration {
    tree_stop(grace, leases).saturating_add(OFFLOAD_MARGIN)
}

/// Waits until reconciles of `controllers` that run away from the tree are over: it has cancelled them, so that each is at its next await.
pub(crate) async fn wait_offloaded(
    controllers: &[ControllerHandle],
    clock: &Clock,
) -> Result<(), StillRunning> {
    let left = || {
        let left = controllers.iter().flat_map(|controller| {
            let running = controller.in_flight.running().into_iter();
            running.map(|(key, _)| format!("root/controllers/{}: {key}", controller.name()))
        });
        left.collect::<Vec<_>>()
    };
    let end = clock.now() + OFFLOAD_MARGIN;
    while !left().is_empty() && clock.now() < end {
        clock.sleep(OFFLOAD_MARGIN / 100).await;
    }
    match left() {
        paths if paths.is_empty() => Ok(()),
        paths => Err(StillRunning { paths }),
    }
}

/// A manager that runs on this thread. Dropping it kills all of its actors.
pub struct Running {
    pub(crate) tree: Tree,
    pub(crate) observer: Observer,
    /// Everything that controllers read runs while this is kept.
    pub(crate) deck: Arc<Deck>,
    pub(crate) closing: Closing,
    pub(crate) grace: Duration,
}

impl Running {
    /// What it shows.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    /// Adds and removes controllers.
    pub fn controllers(&self) -> Controllers {
        Controllers {
            deck: Arc::downgrade(&self.deck),
        }
    }

    /// Waits until the tree gives up: a framework actor failed too often.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future loses nothing.
    pub async fn exited(&mut self) -> Exit {
        self.tree.exited().await
    }

    /// Stops in reverse start order: intake first, then running reconciles within the grace period, events last.
    ///
    /// # Errors
    ///
    /// The paths of what could not be stopped, for example a reconcile that blocks its thread.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future kills what has not stopped by then.
    pub async fn stop(self) -> Result<(), StillRunning> {
        self.closing.begin(self.observer.clock.now() + self.grace);
        let leases = self.observer.leases().len();
        self.tree.stop(tree_stop(self.grace, leases)).await?;
        wait_offloaded(&self.observer.controllers(), &self.observer.clock).await
    }

    pub(crate) async fn until(
        mut self,
        stop: impl Future<Output = &'static str>,
    ) -> Result<(), RunError> {
        tokio::select! {
            why = stop => {
                tracing::info!(why, "stopping");
                self.stop().await?;
                tracing::info!("stopped");
                Ok(())
            }
            exit = self.exited() => {
                self.stop().await?;
                Err(RunError::GaveUp(exit))
            }
        }
    }
}

/// A manager that runs on threads of its own. Dropping it asks the manager to stop and does not wait.
pub struct Handle {
    pub(crate) observer: Observer,
    pub(crate) controllers: Controllers,
    pub(crate) stop: Option<tokio::sync::oneshot::Sender<()>>,
    pub(crate) thread: Option<std::thread::JoinHandle<Result<(), RunError>>>,
}

impl Handle {
    /// What it shows.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    /// Adds and removes controllers.
    pub fn controllers(&self) -> &Controllers {
        &self.controllers
    }

    /// Stops in order and waits for the end, which takes up to the grace period. Blocks the calling thread.
    ///
    /// # Errors
    ///
    /// Why it ended otherwise than in order: the paths of what still runs, or that the tree had given up.
    pub fn stop(mut self) -> Result<(), RunError> {
        drop(self.stop.take());
        match self.thread.take().map(std::thread::JoinHandle::join) {
            Some(Ok(ended)) => ended,
            Some(Err(_)) => Err(RunError::Start(StartError::Threads(std::io::Error::other(
                "a panic outside every actor",
            )))),
            None => Ok(()),
        }
    }
}
