//! API servers for your own tests: one in the process, or a real one.
//!
//! [`TestServer::start`] gives the simulated server, which needs nothing installed and starts at once. Where the environment variable
//! `KUBEBUILDER_ASSETS` names a folder with `etcd` and `kube-apiserver` (the same variable as Go's envtest uses) it starts those
//! instead: the same test then runs against the real thing.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use boatswain::{Manager, Options, testing::TestServer};
//!
//! let server = TestServer::start().await?;
//! let options = Options { kubeconfig: Some(server.kubeconfig().to_owned()), ..Options::default() };
//! # let controllers: Vec<boatswain::Runnable> = vec![];
//! let manager = controllers.into_iter().fold(Manager::new(options), Manager::with).spawn()?;
//! // ... act through `server.client().await?`, wait for what should follow ...
//! tokio::task::spawn_blocking(|| manager.stop()).await??;
//! server.stop().await;
//! # Ok(()) }
//! ```

mod real;

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

pub use boatswain_apisim as apisim;
use boatswain_apisim::ApiSim;
pub use boatswain_supervision::testing::Census;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tempfile::TempDir;

use self::real::Processes;
use crate::running::Observer;

/// The environment variable that names the folder of the real server's binaries.
pub const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// Asserts that nothing is left of a manager that has stopped: no actor, no task, no reconcile that runs, no series of a controller.
///
/// # Panics
///
/// When something is; the message names it.
#[track_caller]
pub fn assert_clean(observer: &Observer) {
    boatswain_supervision::testing::assert_clean(&observer.tree);
    let page = observer.metrics();
    let left: Vec<_> = page.lines().filter(|line| tells_of_work(line)).collect();
    assert_eq!(left, Vec::<&str>::new(), "series of a controller are left");
}

/// Whether a line of the metrics page is a series that ends with its controller, or says that a reconcile runs or a key waits.
fn tells_of_work(line: &str) -> bool {
    let name = line.split(['{', ' ']).next().unwrap_or_default();
    let of_a_controller = ["controller_", "workqueue_"]
        .iter()
        .any(|prefix| name.starts_with(prefix));
    let accumulates = ["_total", "_bucket", "_sum", "_count"]
        .iter()
        .any(|suffix| name.ends_with(suffix));
    let gauges = [
        "controller_active_workers",
        "controller_queue_depth",
        "controller_waiting_keys",
        "controller_parked_keys",
        "controller_runtime_active_workers",
        "workqueue_depth",
    ];
    let runs = gauges.contains(&name) && !line.ends_with(" 0");
    of_a_controller && accumulates || runs
}

/// Why a server for a test could not be had.
#[derive(Debug, thiserror::Error)]
pub enum TestServerError {
    /// Files, ports or processes.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// Keys and certificates of a real server.
    #[error("cannot make the server's certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// A real server did not become ready.
    #[error(
        "the API server from {assets} ended, or is not ready after a minute; the end of its log:\n{log}"
    )]
    NotReady {
        /// The folder of its binaries.
        assets: PathBuf,
        /// The last lines it wrote.
        log: String,
    },
    /// A client could not be made.
    #[error("cannot make a client: {0}")]
    Client(String),
}

impl TestServerError {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// An API server for one test. It ends when it is dropped; [`TestServer::stop`] waits for it.
pub struct TestServer {
    dir: TempDir,
    address: SocketAddr,
    backend: Backend,
}

enum Backend {
    Simulated {
        sim: ApiSim,
        server: boatswain_apisim::Server,
    },
    Real(Box<Processes>),
}

impl TestServer {
    /// Starts the simulated server, or the real one where [`ASSETS`] is set.
    ///
    /// # Errors
    ///
    /// When no port is free or, for the real server, when its binaries are missing or do not become ready.
    pub async fn start() -> Result<Self, TestServerError> {
        match std::env::var_os(ASSETS).filter(|assets| !assets.is_empty()) {
            Some(assets) => Self::real(Path::new(&assets)).await,
            None => Self::simulated(ApiSim::new(boatswain_apisim::Options::default())).await,
        }
    }

    /// Serves `sim` over HTTP on a free loopback port.
    ///
    /// # Errors
    ///
    /// When no port is free or the kubeconfig cannot be written.
    pub async fn simulated(sim: ApiSim) -> Result<Self, TestServerError> {
        let dir = tempfile::tempdir().map_err(TestServerError::io("make a folder"))?;
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = sim
            .serve(loopback)
            .await
            .map_err(TestServerError::io("listen on loopback"))?;
        let path = dir.path().join("kubeconfig");
        server
            .write_kubeconfig(&path)
            .map_err(TestServerError::io("write the kubeconfig"))?;
        Ok(Self {
            dir,
            address: server.addr(),
            backend: Backend::Simulated { sim, server },
        })
    }

    /// Starts `etcd` and `kube-apiserver` from the folder `assets`, without controllers: nothing collects garbage or makes pods.
    ///
    /// # Errors
    ///
    /// When the binaries are missing or the server is not ready in time.
    pub async fn real(assets: &Path) -> Result<Self, TestServerError> {
        let dir = tempfile::tempdir().map_err(TestServerError::io("make a folder"))?;
        let processes = Processes::start(assets, dir.path()).await?;
        Ok(Self {
            dir,
            address: processes.address(),
            backend: Backend::Real(Box::new(processes)),
        })
    }

    /// The kubeconfig of a user with all rights.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("kubeconfig")
    }

    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The simulated server, to script faults and read what it recorded; `None` for a real one.
    pub fn sim(&self) -> Option<&ApiSim> {
        match &self.backend {
            Backend::Simulated { sim, .. } => Some(sim),
            Backend::Real(_) => None,
        }
    }

    /// A client with all rights, for the current tokio runtime.
    ///
    /// # Errors
    ///
    /// When the kubeconfig cannot be used.
    pub async fn client(&self) -> Result<kube::Client, TestServerError> {
        let error = |e: &dyn std::fmt::Display| TestServerError::Client(e.to_string());
        let file = Kubeconfig::read_from(self.kubeconfig()).map_err(|e| error(&e))?;
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(file, &options)
            .await
            .map_err(|e| error(&e))?;
        kube::Client::try_from(config).map_err(|e| error(&e))
    }

    /// Ends the server and waits until it is gone.
    pub async fn stop(self) {
        match self.backend {
            Backend::Simulated { server, .. } => server.stop().await,
            Backend::Real(processes) => processes.stop().await,
        }
    }
}
