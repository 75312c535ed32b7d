//! An API server for a test, simulated or real, behind one door.

use std::{net::SocketAddr, path::Path};

use kube::{Client, Config, config::Kubeconfig};

use crate::{RealServer, SimServer, Space, Version, audit::Request, install};

/// An API server, what it recorded of its requests, and the means to hurt it.
pub enum World {
    /// Simulated, in this process, over HTTP on loopback.
    Sim(SimServer),
    /// A real control plane on loopback.
    Real(RealServer),
}

impl World {
    /// A new simulated server with the PodAutoscaler's CRD.
    pub async fn sim() -> Self {
        Self::Sim(SimServer::start().await).with_crd().await
    }

    /// A new real control plane with the PodAutoscaler's CRD.
    pub async fn real(version: Version) -> Self {
        Self::Real(RealServer::start(version).await)
            .with_crd()
            .await
    }

    async fn with_crd(self) -> Self {
        install::<podautoscaler::api::PodAutoscaler>(&self.client().await).await;
        self
    }

    /// A client with all rights, for this runtime.
    pub async fn client(&self) -> Client {
        client_of(self.kubeconfig()).await
    }

    /// The kubeconfig of a user with all rights.
    pub fn kubeconfig(&self) -> &Path {
        match self {
            Self::Sim(sim) => sim.kubeconfig(),
            Self::Real(real) => real.kubeconfig(),
        }
    }

    /// The kubeconfig of a user without any rights.
    pub fn viewer_kubeconfig(&self) -> &Path {
        match self {
            Self::Sim(sim) => sim.viewer_kubeconfig(),
            Self::Real(real) => real.viewer_kubeconfig(),
        }
    }

    /// Whether the server streams lists (1.27 and later, unless somebody turned that off).
    pub fn streams_lists(&self) -> bool {
        match self {
            Self::Sim(_) => true,
            Self::Real(real) => real.version() == Version::Newest,
        }
    }

    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        match self {
            Self::Sim(sim) => sim.address(),
            Self::Real(real) => real.address(),
        }
    }

    /// The completed requests so far, in order of completion.
    pub async fn requests(&self) -> Vec<Request> {
        match self {
            Self::Sim(sim) => sim.requests(),
            Self::Real(real) => real.requests(),
        }
    }

    /// Ends the server without warning.
    pub async fn kill(&self) {
        match self {
            Self::Sim(sim) => sim.kill().await,
            Self::Real(real) => real.kill().await,
        }
    }

    /// Brings the server back over the same data.
    pub async fn revive(&self) {
        match self {
            Self::Sim(sim) => sim.revive().await,
            Self::Real(real) => real.revive().await,
        }
    }

    /// Keeps everything there is, to [`World::restore`] later.
    pub async fn save(&self) {
        match self {
            Self::Sim(sim) => sim.save(),
            Self::Real(real) => real.save().await,
        }
    }

    /// Goes back to what was kept by [`World::save`], as a server whose etcd is restored from a backup.
    pub async fn restore(&self) {
        match self {
            Self::Sim(sim) => sim.restore(),
            Self::Real(real) => real.restore().await,
        }
    }

    /// Lets the viewer list and watch the ConfigMaps of `space`.
    pub async fn let_view(&self, space: &Space) {
        match self {
            Self::Sim(sim) => sim.let_view(&space.name),
            Self::Real(_) => space.let_view("viewer").await,
        }
    }

    /// Takes back what [`World::let_view`] gave.
    pub async fn let_view_no_more(&self, space: &Space) {
        match self {
            Self::Sim(sim) => sim.let_view_no_more(),
            Self::Real(_) => space.let_view_no_more().await,
        }
    }

    /// Forgets the history of changes: a watch from before finds its version expired once the server has restarted.
    pub async fn compact(&self) {
        match self {
            Self::Sim(sim) => sim.compact(),
            Self::Real(real) => real.compact().await,
        }
    }
}

/// A client for whom a kubeconfig names, for this runtime.
pub async fn client_of(kubeconfig: &Path) -> Client {
    let file = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(file, &Default::default())
        .await
        .expect("a configuration");
    Client::try_from(config).expect("a client")
}
