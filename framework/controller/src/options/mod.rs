//! What can be set for a manager: plain values, and how they come from flags, the environment and a file.

mod address;
mod args;
mod dashboard;
mod file;
mod labels;
mod sourced;
mod span;
#[cfg(test)]
mod tests;
mod text;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

pub use address::Address;
pub use args::{ManagerArgs, OptionsError};
use boatswain_cache::ConnectOptions;
pub use dashboard::{DashboardListen, DashboardOptions};
use kube::core::Selector;
pub use labels::Labels;
use serde::{Deserialize, Serialize};
pub use span::Span;

use crate::{client::ClientLimits, dispatch::RetryPolicy, leader::LeaseTerms, running};

/// Options of a [`Manager`](crate::Manager).
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The kubeconfig file; without it `KUBECONFIG`, `~/.kube/config` or the in-cluster account is used.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use instead of its current one.
    pub context: Option<String>,
    /// The namespaces to work in; all where empty.
    pub namespaces: Vec<String>,
    /// How many keys each controller may reconcile at once unless it says otherwise, 4 by default.
    pub workers: usize,
    /// Which objects controllers reconcile, by their labels; all where empty. It narrows what each controller [selects](crate::Controller::select) of its own
    /// kind, and not what else it watches.
    pub selector: Selector,
    /// How often every key is looked at again although nothing changed, unless a controller says otherwise: every 10 minutes by default; absent: never.
    pub resync: Option<Duration>,
    /// How many failures in a row of one key are tried again before it is parked, unless a controller has a [policy](crate::RetryPolicy) of its own; 15 by default.
    pub max_retries: u32,
    /// Where `/metrics`, `/healthz` and `/readyz` are served; nowhere by default.
    pub listen: Option<SocketAddr>,
    /// Where the dashboard is served, and to whom; nowhere by default. Managers that take flags serve it on [`DashboardOptions::ADDRESS`].
    pub dashboard: Option<DashboardOptions>,
    /// How long running reconciles may take to finish at a stop, 25 s by default.
    pub grace: Duration,
    /// How long anything may be inside one turn, or leave its messages, before it counts as blocked or hung, 30 s by default; absent: for ever.
    ///
    /// What blocks its thread, such as a reconcile that waits without `await`, is named by `/healthz`, which then fails, so that the
    /// kubelet restarts the process; what hangs otherwise is killed and restarted.
    pub patience: Option<Duration>,
    /// How connections to the API server are made, and how soon a dead one is found: within 30 s by default.
    pub connections: ConnectOptions,
    /// Limits of the client all controllers share.
    pub limits: ClientLimits,
    /// Whether, and how, one of several replicas is elected to work; by default each process works. See [`LeaderOptions`].
    pub leader: Option<LeaderOptions>,
    /// How much is logged, as klog counts it: from 4 on every reconcile, from 6 on every step, from 8 on every connection; 0 by default. `RUST_LOG`,
    /// where set, says it instead.
    pub verbosity: u8,
    /// How log lines are written.
    pub log_format: LogFormat,
}

impl Options {
    /// How long a stop of a manager with so many controllers may take at most: running reconciles get the grace period, and what is said and held has time
    /// to be written and given back. Who kills the process earlier takes its last words, too.
    pub fn longest_stop(&self, controllers: usize) -> Duration {
        let each = self
            .leader
            .as_ref()
            .is_some_and(|leader| leader.per_controller);
        running::longest_stop(self.grace, if each { controllers } else { 1 })
    }
}

/// How replicas agree on the one that works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderOptions {
    /// The name of the Lease, by default that of the manager's first controller followed by `-leader`.
    pub name: Option<String>,
    /// The namespace of the Lease: by default the pod's own, and `kube-system` outside of a cluster.
    pub namespace: Option<String>,
    /// Whether each controller has a lease of its own, called as above with `-` and the controller's name after it, so that replicas share the work. By
    /// default one lease is for all.
    ///
    /// Each controller then comes to lead, is demoted and is fenced alone, in its writes and its Events. Nothing keeps the work even: a replica that leads
    /// controllers goes on leading them, also when another has come that leads none.
    pub per_controller: bool,
    /// How long the lease lasts and how often it is renewed.
    pub terms: LeaseTerms,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            context: None,
            namespaces: Vec::new(),
            workers: 4,
            selector: Selector::default(),
            resync: Some(Duration::from_secs(10 * 60)),
            max_retries: RetryPolicy::default().max_retries,
            listen: None,
            dashboard: None,
            grace: Duration::from_secs(25),
            patience: Some(Duration::from_secs(30)),
            connections: ConnectOptions::default(),
            limits: ClientLimits::default(),
            leader: None,
            verbosity: 0,
            log_format: LogFormat::Text,
        }
    }
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, for collectors.
    Json,
}
