//! Why a manager could not start or did not stop.

use std::{io, net::SocketAddr};

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
    /// Two controllers have one name.
    #[error(
        "two controllers are called {0:?}: names must differ, they are the field manager and the label of metrics"
    )]
    DuplicateName(String),
    /// There is nothing to run.
    #[error("the manager has no controller")]
    NoController,
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
