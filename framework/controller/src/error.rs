//! Why a manager could not start or did not stop.

use std::{io, net::SocketAddr};

use boatswain_cache::ViewError;

use crate::{
    leader::{LeaseNameError, TermsError},
    selected::SelectError,
};

/// Why a manager did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration of the cluster to talk to could not be read.
    #[error(
        "cannot read the cluster configuration: {0}; give --kubeconfig, set KUBECONFIG, or run inside a cluster"
    )]
    Config(String),
    /// The configuration was read but cannot be used.
    #[error("cannot use the cluster configuration for {address}: {cause}")]
    Client {
        /// The API server's address.
        address: String,
        /// The innermost cause.
        cause: String,
    },
    /// The terms of the lease cannot be kept.
    #[error(transparent)]
    Lease(#[from] TermsError),
    /// A controller cannot have a lease of its own.
    #[error(transparent)]
    LeaseName(#[from] LeaseNameError),
    /// Two controllers have one name.
    #[error(
        "two controllers are called {0:?}: names must differ, they are the field manager and the label of metrics"
    )]
    DuplicateName(String),
    /// What a controller selects of a kind cannot be selected.
    #[error("controller {controller} cannot watch or read {resource} as it asks to: {cause}")]
    Selection {
        /// The controller.
        controller: String,
        /// The resource, such as `deployments.apps`.
        resource: String,
        /// What is wrong.
        #[source]
        cause: SelectError,
    },
    /// A controller reads a kind that it watches in several selections, and does not say which it means.
    #[error(
        "controller {controller} reads {resource} and watches several selections of them ({selections}): say which by Wiring::select instead of Wiring::lister"
    )]
    AmbiguousRead {
        /// The controller.
        controller: String,
        /// The resource.
        resource: String,
        /// The selections.
        selections: String,
    },
    /// Two controllers want the same objects to be kept in different ways, or one of them would not see them as they are and did not ask for that.
    #[error(
        "controllers {one} and {other} use the same {selection}, but not kept in the same way: give both the same store options, or select something else in one of them"
    )]
    KeptInTwoWays {
        /// The controller, or controllers, that said how first.
        one: String,
        /// The other.
        other: String,
        /// What both use.
        selection: String,
    },
    /// Selections that cannot be used together.
    #[error(transparent)]
    View(#[from] ViewError),
    /// There is nothing to run.
    #[error("the manager has no controller")]
    NoController,
    /// There is nothing any more that a controller could be added to.
    #[error("the manager has ended")]
    Ended,
    /// The address for metrics and probes is taken or not ours.
    #[error(
        "cannot listen on {address} for metrics and probes: {source}; choose another with --listen"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The address for the dashboard is taken or not ours.
    #[error(
        "cannot listen on {address} for the dashboard: {source}; choose another with --dashboard-listen, or off"
    )]
    Dashboard {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The token of the dashboard cannot be used.
    #[error(transparent)]
    DashboardToken(#[from] boatswain_dashboard::GuardError),
    /// Threads or runtimes could not be created.
    #[error("cannot start threads: {0}")]
    Threads(#[from] io::Error),
    /// A metric could not be registered.
    #[error("cannot register metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    /// An actor failed to start.
    #[error(transparent)]
    Tree(#[from] boatswain_supervision::StartError),
}

/// Why a controller was not removed in order.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// There is none, or it is being removed.
    #[error("there is no controller {0:?} to remove")]
    Unknown(String),
    /// It is removed but for something that could not be stopped in time.
    #[error(transparent)]
    StillRunning(#[from] boatswain_supervision::StillRunning),
}

/// Why a run ended otherwise than by an orderly stop.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Something could not be stopped in time.
    #[error(transparent)]
    StillRunning(#[from] boatswain_supervision::StillRunning),
    /// Framework actors failed too often.
    #[error("gave up after too many failures of framework actors: {0}")]
    GaveUp(boatswain_supervision::Exit),
}
