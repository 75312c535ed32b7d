//! What can be set for a manager, as plain values and as command-line flags.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use boatswain_cache::ConnectOptions;

use crate::client::ClientLimits;

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
    /// Where `/metrics`, `/healthz` and `/readyz` are served; nowhere by default.
    pub listen: Option<SocketAddr>,
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
    /// How log lines are written.
    pub log_format: LogFormat,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            context: None,
            namespaces: Vec::new(),
            workers: 4,
            listen: None,
            grace: Duration::from_secs(25),
            patience: Some(Duration::from_secs(30)),
            connections: ConnectOptions::default(),
            limits: ClientLimits::default(),
            log_format: LogFormat::Text,
        }
    }
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, for collectors.
    Json,
}

/// The flags every manager understands; `#[command(flatten)]` them into your own.
#[derive(Clone, Debug, clap::Args)]
// the doc comment is for authors: a program that flattens these has an introduction of its own
#[command(about = None, long_about = None)]
pub struct ManagerArgs {
    /// Kubeconfig file of the cluster [default: KUBECONFIG, ~/.kube/config, or the in-cluster account]
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Namespace to work in; may be repeated [default: all namespaces]
    #[arg(long = "namespace", short = 'n', value_name = "NS", num_args = 1.., value_parser = namespace)]
    pub namespaces: Vec<String>,
    /// How many objects are reconciled at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = workers)]
    pub workers: usize,
    /// Address to serve /metrics, /healthz and /readyz on, for example 0.0.0.0:8080 [default: not served]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// How log lines are written; what is logged is set by RUST_LOG
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,
}

fn workers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=1000) => Ok(n),
        _ => Err("expected a number from 1 to 1000".into()),
    }
}

/// A namespace is a DNS label (RFC 1123).
fn namespace(text: &str) -> Result<String, String> {
    let alphanumeric = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let inner = text.bytes().all(|c| alphanumeric(c) || c == b'-');
    let ends = [text.bytes().next(), text.bytes().last()];
    if inner && text.len() <= 63 && ends.iter().all(|end| end.is_some_and(alphanumeric)) {
        Ok(text.to_owned())
    } else {
        Err("expected lower case letters, digits and '-', at most 63, with a letter or digit at both ends".into())
    }
}

impl From<ManagerArgs> for Options {
    fn from(args: ManagerArgs) -> Self {
        Self {
            kubeconfig: args.kubeconfig,
            context: args.context,
            namespaces: args.namespaces,
            workers: args.workers,
            listen: args.listen,
            log_format: args.log_format,
            ..Self::default()
        }
    }
}
