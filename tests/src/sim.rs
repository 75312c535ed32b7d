//! The simulated server, over HTTP on loopback, with the controllers of a cluster.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use boatswain_apisim::{ApiSim, Matcher, Options, Server, Snapshot, WorldOptions};
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::{
    audit::Request,
    replica::{self, REPLICAS},
};

/// A running simulated server.
pub struct SimServer {
    sim: ApiSim,
    address: SocketAddr,
    server: Mutex<Option<Server>>,
    world: JoinHandle<()>,
    saved: Mutex<Option<Box<Snapshot>>>,
    /// Holds the kubeconfigs.
    dir: TempDir,
    kubeconfig: PathBuf,
    viewer: PathBuf,
}

impl SimServer {
    /// Starts one on a free port.
    pub async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    /// As [`SimServer::start`], with a server that behaves as told.
    pub async fn start_with(options: Options) -> Self {
        let sim = ApiSim::new(options);
        let server = sim.serve(("127.0.0.1", 0)).await.expect("a free port");
        let dir = tempfile::tempdir().expect("a folder");
        let (kubeconfig, viewer) = (
            dir.path().join("kubeconfig"),
            dir.path().join("viewer.kubeconfig"),
        );
        std::fs::write(&kubeconfig, server.kubeconfig("admintoken")).expect("written");
        std::fs::write(&viewer, server.kubeconfig("viewertoken")).expect("written");
        for number in 1..=REPLICAS {
            let user = format!("replica-{number}");
            let token = format!("{user}-token");
            sim.users().add_token(&token, &user);
            sim.users().grant(&user, Matcher::any());
            let path = replica::kubeconfig(dir.path(), number);
            std::fs::write(path, server.kubeconfig(&token)).expect("written");
        }
        let cluster = sim.world(WorldOptions::default());
        let world = tokio::spawn(async move { cluster.run().await });
        Self {
            address: server.addr(),
            server: Mutex::new(Some(server)),
            sim,
            world,
            saved: Mutex::default(),
            dir,
            kubeconfig,
            viewer,
        }
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(crate) fn viewer_kubeconfig(&self) -> &Path {
        &self.viewer
    }

    /// Where the kubeconfigs are.
    pub(crate) fn folder(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        requests_of(&self.sim)
    }

    pub(crate) async fn kill(&self) {
        let server = self
            .server
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(server) = server {
            server.kill().await;
        }
    }

    pub(crate) async fn revive(&self) {
        let server = self
            .sim
            .serve(self.address)
            .await
            .expect("the same port again");
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
    }

    pub(crate) fn compact(&self) {
        self.sim.compact();
    }

    pub(crate) fn save(&self) {
        *self.saved.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Box::new(self.sim.snapshot()));
    }

    pub(crate) fn restore(&self) {
        let saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        self.sim
            .restore(saved.as_ref().expect("something was saved"));
    }

    pub(crate) fn accept(&self, token: &str, user: &str) {
        self.sim.users().add_token(token, user);
    }

    pub(crate) fn refuse(&self, token: &str) {
        self.sim.users().revoke_token(token);
    }
}

/// The completed requests of a simulated server so far.
pub fn requests_of(sim: &ApiSim) -> Vec<Request> {
    let entries = sim.audit().into_iter();
    entries
        .map(|entry| Request {
            changed: entry.changed,
            precondition: precondition(entry.body().as_ref()),
            answer: entry.response(),
            verb: entry.request.verb.to_owned(),
            resource: entry.request.resource,
            subresource: entry.request.subresource,
            namespace: entry.request.namespace,
            name: entry.request.name,
            user: entry.request.user,
            code: entry.code,
        })
        .collect()
}

impl Drop for SimServer {
    fn drop(&mut self) {
        self.world.abort();
    }
}

fn precondition(body: Option<&Value>) -> String {
    let version = body
        .and_then(|body| body.pointer("/metadata/resourceVersion"))
        .and_then(Value::as_str);
    version.unwrap_or_default().to_owned()
}
