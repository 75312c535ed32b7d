//! The flags of every manager, and the one rule by which they, the environment and a file make its options.

use std::{io, num::NonZeroU32, path::PathBuf, time::Duration};

use clap::{
    builder::{BoolValueParser, EnumValueParser, PathBufValueParser, StringValueParser},
    value_parser,
};
use serde::{Deserialize, Serialize};

use super::{
    Address, DashboardListen, DashboardOptions, Labels, LeaderOptions, LogFormat, Options, Span,
    file,
    sourced::{Sourced, lease_name, parse, workers},
};
use crate::{
    client::ClientLimits,
    leader::{LeaseTerms, TermsError},
    logging,
    names::namespace,
};

/// The flags every manager understands; `#[command(flatten)]` them into your own.
///
/// Each can also stand in a file (`--config`, YAML or TOML, the flags' names as keys) and in the environment (`BOATSWAIN_` and the flag's name in capitals). What is
/// said twice counts by one rule: defaults < file < environment < flags.
#[derive(Clone, Debug, Default, PartialEq, clap::Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
// the doc comment is for authors: a program that flattens these has an introduction of its own
#[command(about = None, long_about = None)]
pub struct ManagerArgs {
    /// Kubeconfig file of the cluster [default: KUBECONFIG, ~/.kube/config, or the in-cluster account]
    #[arg(long, value_name = "PATH", value_parser = Sourced(PathBufValueParser::new()), env = "BOATSWAIN_KUBECONFIG")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME", value_parser = Sourced(StringValueParser::new()), env = "BOATSWAIN_CONTEXT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Namespace to work in; may be repeated [default: all namespaces]
    #[arg(long = "namespace", short = 'n', value_name = "NS", num_args = 1.., value_delimiter = ',', value_parser = Sourced(namespace), env = "BOATSWAIN_NAMESPACE")]
    #[serde(rename = "namespace", skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// How many objects are reconciled at once [default: 4]
    #[arg(long, value_name = "N", value_parser = Sourced(workers), env = "BOATSWAIN_WORKERS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<usize>,
    /// Labels of the objects to reconcile, for example app=web,tier!=test [default: all objects]
    #[arg(long, value_name = "LABELS", value_parser = Sourced(parse::<Labels>), env = "BOATSWAIN_SELECTOR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<Labels>,
    /// How often every object is looked at again although nothing changed; 0s: never [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = Sourced(parse::<Span>), allow_hyphen_values = true, env = "BOATSWAIN_RESYNC")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resync: Option<Span>,
    /// How many failures in a row, by the fault of an object or its reconciler, are tried again before the object is parked; missing rights and what the API server fails at are tried for ever [default: 15]
    #[arg(long, value_name = "N", value_parser = Sourced(value_parser!(u32)), env = "BOATSWAIN_MAX_RETRIES")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Address to serve /metrics, /healthz and /readyz on, for example localhost:8080, or 0.0.0.0:8080 for everybody [default: not served]
    #[arg(long, value_name = "ADDR", value_parser = Sourced(parse::<Address>), env = "BOATSWAIN_LISTEN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<Address>,
    /// Address to serve the dashboard on, or off [default: 127.0.0.1:8081, where it is free]
    #[arg(long, value_name = "ADDR", value_parser = Sourced(parse::<DashboardListen>), env = "BOATSWAIN_DASHBOARD_LISTEN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dashboard_listen: Option<DashboardListen>,
    /// Name the dashboard may be called by beside localhost; may be repeated
    #[arg(long = "dashboard-host", value_name = "NAME", num_args = 1.., value_delimiter = ',', value_parser = Sourced(StringValueParser::new()), env = "BOATSWAIN_DASHBOARD_HOST")]
    #[serde(rename = "dashboard-host", skip_serializing_if = "Vec::is_empty")]
    pub dashboard_hosts: Vec<String>,
    /// File with the token that actions on the dashboard need [default: it only shows]
    #[arg(long, value_name = "PATH", value_parser = Sourced(PathBufValueParser::new()), env = "BOATSWAIN_DASHBOARD_TOKEN_FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dashboard_token_file: Option<PathBuf>,
    /// How long running reconciles may take to finish at a stop [default: 25s]
    #[arg(long, value_name = "TIME", value_parser = Sourced(parse::<Span>), allow_hyphen_values = true, env = "BOATSWAIN_GRACE_PERIOD")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_period: Option<Span>,
    /// How long anything may block its thread until /healthz fails and names it; 0s: for ever [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = Sourced(parse::<Span>), allow_hyphen_values = true, env = "BOATSWAIN_PATIENCE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<Span>,
    /// Requests to the API server per second in the long run; watches and leases are not counted [default: 50]
    #[arg(long, value_name = "N", value_parser = Sourced(parse::<NonZeroU32>), env = "BOATSWAIN_QPS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qps: Option<NonZeroU32>,
    /// Requests to the API server that may go out at once [default: 100]
    #[arg(long, value_name = "N", value_parser = Sourced(parse::<NonZeroU32>), env = "BOATSWAIN_BURST")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<NonZeroU32>,
    /// Let one of several replicas work, elected by a Lease; the others stand by [default: each works]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = Sourced(BoolValueParser::new()), env = "BOATSWAIN_LEADER_ELECT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader_elect: Option<bool>,
    /// Name of the Lease [default: the first controller's name and -leader]
    #[arg(long, value_name = "NAME", value_parser = Sourced(lease_name), env = "BOATSWAIN_LEASE_NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_name: Option<String>,
    /// Namespace of the Lease [default: the pod's own, else kube-system]
    #[arg(long, value_name = "NS", value_parser = Sourced(namespace), env = "BOATSWAIN_LEASE_NAMESPACE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_namespace: Option<String>,
    /// Give each controller a Lease of its own, named after the other one and the controller, so that replicas share the work [default: one Lease for all]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = Sourced(BoolValueParser::new()), env = "BOATSWAIN_LEASE_PER_CONTROLLER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_per_controller: Option<bool>,
    /// How long the other replicas wait for a leader that has gone silent before one of them takes over, in whole seconds [default: 15s]
    #[arg(long, value_name = "TIME", value_parser = Sourced(parse::<Span>), allow_hyphen_values = true, env = "BOATSWAIN_LEASE_DURATION")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_duration: Option<Span>,
    /// How long a leader tries to renew before it stands by; below nine tenths of the duration [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = Sourced(parse::<Span>), allow_hyphen_values = true, env = "BOATSWAIN_RENEW_DEADLINE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renew_deadline: Option<Span>,
    /// How long between two tries to renew or acquire [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = Sourced(parse::<Span>), allow_hyphen_values = true, env = "BOATSWAIN_RETRY_PERIOD")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_period: Option<Span>,
    /// How much is logged, as klog counts it: from 4 on every reconcile, from 6 on every step, from 8 on every connection; RUST_LOG, where set, says it instead [default: 0]
    #[arg(long, short = 'v', value_name = "N", value_parser = Sourced(value_parser!(u8)), env = "BOATSWAIN_VERBOSITY")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<u8>,
    /// How log lines are written [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = Sourced(EnumValueParser::<LogFormat>::new()), env = "BOATSWAIN_LOG_FORMAT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_format: Option<LogFormat>,
    /// File with any of these settings, YAML or (.toml) TOML; flags and environment overrule it
    #[arg(long, value_name = "PATH", value_parser = Sourced(PathBufValueParser::new()), env = "BOATSWAIN_CONFIG")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Print the settings that flags, environment and file make together, as a file for --config, and exit
    #[arg(long)]
    #[serde(skip)]
    pub print_config: bool,
}

/// A shorter period would only keep the process busy: looking at everything takes its time.
const SHORTEST_RESYNC: Duration = Duration::from_secs(1);

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// The file cannot be read.
    #[error("cannot read the settings in {path}: {source}; check --config, or BOATSWAIN_CONFIG")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file says something that is not understood.
    #[error("the settings in {path} are not understood: {cause}")]
    File {
        /// The file.
        path: PathBuf,
        /// Where, and what is wrong.
        cause: String,
    },
    /// Times of the lease that contradict each other.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// Something about the dashboard is said, but there is none.
    #[error(
        "--{0} is set, but there is no dashboard: leave --dashboard-listen off out, or give it an address"
    )]
    NoDashboard(&'static str),
    /// Something about the lease is said, but no leader is elected.
    #[error("--{0} is set, but no leader is elected: add --leader-elect")]
    NoElection(&'static str),
    /// Every object would be looked at all the time.
    #[error("--resync {0} is too short: choose a second at least, or 0s for never")]
    Resync(Span),
    /// Something is wrong with settings of which a file says a part.
    #[error("{cause}; settings in {path} are among these")]
    Among {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        cause: Box<OptionsError>,
    },
}

/// Flags that decide which server is asked, as whom, and about which rights.
const OF_RIGHTS: [&str; 11] = [
    "kubeconfig",
    "context",
    "namespaces",
    "leader_elect",
    "lease_name",
    "lease_namespace",
    "lease_per_controller",
    "verbosity",
    "log_format",
    "config",
    "print_config",
];

impl ManagerArgs {
    /// Hides from the help of a command that only [checks rights](crate::Manager::check) the flags that make no difference to it:
    /// `#[command(mut_args(ManagerArgs::for_a_check))]`. They are understood all the same, so that those of `run` can be given.
    pub fn for_a_check(arg: clap::Arg) -> clap::Arg {
        let of_rights = OF_RIGHTS.contains(&arg.get_id().as_str());
        // those of the program itself are not ours to hide
        let ours = arg.get_env().and_then(|name| name.to_str());
        let ours = ours.is_some_and(|name| name.starts_with("BOATSWAIN_"));
        arg.hide(ours && !of_rights)
    }

    /// The options for a program that has just parsed its flags. Prints the settings and exits where `--print-config` asks for it; where they
    /// cannot be used it says why in one line, on standard error, and exits with 2, as clap does.
    pub fn options_or_exit(self) -> Options {
        let ended = match self.print_config {
            true => self.to_yaml().map(|text| std::process::exit(print(&text))),
            false => self.try_into(),
        };
        ended.unwrap_or_else(|error: OptionsError| {
            logging::complain(&error);
            std::process::exit(2)
        })
    }

    /// The settings with those of the file that `--config` names below them.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, says something unknown, or says it wrongly.
    pub fn with_file(self) -> Result<Self, OptionsError> {
        match self.config.clone() {
            Some(path) => Ok(self.over(file::read(&path)?)),
            None => Ok(self),
        }
    }

    /// Everything that is said here, and what `below` says where nothing is.
    fn over(self, below: Self) -> Self {
        let namespaces = match self.namespaces.is_empty() {
            true => below.namespaces,
            false => self.namespaces,
        };
        Self {
            kubeconfig: self.kubeconfig.or(below.kubeconfig),
            context: self.context.or(below.context),
            namespaces,
            workers: self.workers.or(below.workers),
            selector: self.selector.or(below.selector),
            resync: self.resync.or(below.resync),
            max_retries: self.max_retries.or(below.max_retries),
            listen: self.listen.or(below.listen),
            dashboard_listen: self.dashboard_listen.or(below.dashboard_listen),
            dashboard_hosts: match self.dashboard_hosts.is_empty() {
                true => below.dashboard_hosts,
                false => self.dashboard_hosts,
            },
            dashboard_token_file: self.dashboard_token_file.or(below.dashboard_token_file),
            grace_period: self.grace_period.or(below.grace_period),
            patience: self.patience.or(below.patience),
            qps: self.qps.or(below.qps),
            burst: self.burst.or(below.burst),
            leader_elect: self.leader_elect.or(below.leader_elect),
            lease_name: self.lease_name.or(below.lease_name),
            lease_namespace: self.lease_namespace.or(below.lease_namespace),
            lease_per_controller: self.lease_per_controller.or(below.lease_per_controller),
            lease_duration: self.lease_duration.or(below.lease_duration),
            renew_deadline: self.renew_deadline.or(below.renew_deadline),
            retry_period: self.retry_period.or(below.retry_period),
            verbosity: self.verbosity.or(below.verbosity),
            log_format: self.log_format.or(below.log_format),
            config: self.config,
            print_config: self.print_config,
        }
    }

    /// The settings with every default spelled out.
    fn spelled_out(self) -> Self {
        let Options {
            workers,
            resync,
            max_retries,
            grace,
            patience,
            limits,
            verbosity,
            log_format,
            ..
        } = Options::default();
        let terms = LeaseTerms::default();
        let elects = self.leader_elect == Some(true);
        let of_lease = |time| elects.then_some(Span(time));
        self.over(Self {
            workers: Some(workers),
            resync: resync.map(Span),
            max_retries: Some(max_retries),
            grace_period: Some(Span(grace)),
            patience: patience.map(Span),
            qps: Some(limits.qps),
            burst: Some(limits.burst),
            leader_elect: Some(false),
            lease_per_controller: elects.then_some(false),
            lease_duration: of_lease(terms.duration),
            renew_deadline: of_lease(terms.deadline),
            retry_period: of_lease(terms.retry),
            verbosity: Some(verbosity),
            log_format: Some(log_format),
            ..Self::default()
        })
    }

    /// What [`ManagerArgs::print_config`] asks for: the settings as YAML, every default spelled out.
    ///
    /// # Errors
    ///
    /// As [`ManagerArgs::with_file`], and when they cannot be used.
    pub fn to_yaml(self) -> Result<String, OptionsError> {
        let settings = self.with_file()?.spelled_out();
        Options::try_from(settings.clone())?;
        let text = serde_saphyr::to_string(&settings);
        let mut text = text.map_err(|error| OptionsError::File {
            path: "-".into(),
            cause: error.to_string(),
        })?;
        if settings.dashboard_listen.is_none() {
            // one that is set must be free, and nobody has asked for that
            let address = DashboardOptions::ADDRESS;
            text.push_str(&format!(
                "# dashboard-listen: {address}, where it is free\n"
            ));
        }
        Ok(text)
    }

    fn dashboard(&self) -> Result<Option<DashboardOptions>, OptionsError> {
        let said = [
            ("dashboard-token-file", self.dashboard_token_file.is_some()),
            ("dashboard-host", !self.dashboard_hosts.is_empty()),
        ];
        let said = said.into_iter().find(|(_, said)| *said);
        let listen = match (self.dashboard_listen, said) {
            (Some(DashboardListen::Off), Some((flag, _))) => {
                return Err(OptionsError::NoDashboard(flag));
            }
            (Some(DashboardListen::Off), None) => return Ok(None),
            (Some(DashboardListen::At(listen)), _) => listen,
            (None, _) => DashboardOptions::ADDRESS,
        };
        Ok(Some(DashboardOptions {
            listen,
            required: self.dashboard_listen.is_some() || said.is_some(),
            hosts: self.dashboard_hosts.clone(),
            token_file: self.dashboard_token_file.clone(),
        }))
    }

    /// How often everything is looked at again, where something is said of it: never, or at most once a second.
    fn resync(&self) -> Result<Option<Option<Duration>>, OptionsError> {
        match self.resync {
            None => Ok(None),
            Some(Span(Duration::ZERO)) => Ok(Some(None)),
            Some(Span(period)) if period >= SHORTEST_RESYNC => Ok(Some(Some(period))),
            Some(short) => Err(OptionsError::Resync(short)),
        }
    }

    fn leader(&self) -> Result<Option<LeaderOptions>, OptionsError> {
        if self.leader_elect != Some(true) {
            let said = [
                ("lease-name", self.lease_name.is_some()),
                ("lease-namespace", self.lease_namespace.is_some()),
                (
                    "lease-per-controller",
                    self.lease_per_controller == Some(true),
                ),
                ("lease-duration", self.lease_duration.is_some()),
                ("renew-deadline", self.renew_deadline.is_some()),
                ("retry-period", self.retry_period.is_some()),
            ];
            return match said.into_iter().find(|(_, said)| *said) {
                // said to be off beside them, they are left for the day it is on
                Some((flag, _)) if self.leader_elect.is_none() => {
                    Err(OptionsError::NoElection(flag))
                }
                _ => Ok(None),
            };
        }
        let LeaseTerms {
            duration,
            deadline,
            retry,
        } = LeaseTerms::default();
        let terms = LeaseTerms {
            duration: self.lease_duration.map_or(duration, |time| time.0),
            deadline: self.renew_deadline.map_or(deadline, |time| time.0),
            retry: self.retry_period.map_or(retry, |time| time.0),
        };
        Ok(Some(LeaderOptions {
            name: self.lease_name.clone(),
            namespace: self.lease_namespace.clone(),
            per_controller: self.lease_per_controller == Some(true),
            terms: terms.validate()?,
        }))
    }
}

impl TryFrom<ManagerArgs> for Options {
    type Error = OptionsError;

    fn try_from(args: ManagerArgs) -> Result<Self, OptionsError> {
        let args = args.with_file()?;
        let among = |cause: OptionsError| match args.config.clone() {
            Some(path) => OptionsError::Among {
                path,
                cause: Box::new(cause),
            },
            None => cause,
        };
        let leader = args.leader().map_err(among)?;
        let resync = args.resync().map_err(among)?;
        let dashboard = args.dashboard().map_err(among)?;
        let default = Self::default();
        Ok(Self {
            kubeconfig: args.kubeconfig,
            context: args.context,
            namespaces: args.namespaces,
            workers: args.workers.unwrap_or(default.workers),
            selector: args.selector.map_or(default.selector, |labels| labels.0),
            resync: resync.unwrap_or(default.resync),
            max_retries: args.max_retries.unwrap_or(default.max_retries),
            listen: args.listen.map(|Address(address)| address),
            dashboard,
            grace: args.grace_period.map_or(default.grace, |time| time.0),
            patience: match args.patience {
                Some(Span(time)) => Some(time).filter(|time| !time.is_zero()),
                None => default.patience,
            },
            limits: ClientLimits {
                qps: args.qps.unwrap_or(default.limits.qps),
                burst: args.burst.unwrap_or(default.limits.burst),
                ..default.limits
            },
            leader,
            verbosity: args.verbosity.unwrap_or(default.verbosity),
            log_format: args.log_format.unwrap_or(default.log_format),
            ..default
        })
    }
}

/// Prints the settings; the code to exit with.
fn print(text: &str) -> i32 {
    use io::{ErrorKind, Write as _};
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // a reader that has seen enough, such as head, is no failure
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            logging::complain(&format_args!("cannot print: {error}"));
            1
        }
        _ => 0,
    }
}
