//! The command line.

use std::process::ExitCode;

use boatswain::{Address, Manager, ManagerArgs, terminal};
use clap::{Args, Parser, Subcommand};

use packaging::Install;

use crate::manifests::PROGRAM;

/// Keeps Deployments at the number of replicas their PodAutoscaler asks for.
///
/// Install the custom resource with `podautoscaler crd | kubectl apply -f -`, or everything that runs inside a cluster with
/// `podautoscaler manifests | kubectl apply -f -`. To look around without a cluster: `podautoscaler run --embedded`.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the controller until SIGTERM or Ctrl-C
    Run(Box<Run>),
    /// Say why an object last ran, what was decided and written, when it runs next, and why it does not run now
    Explain(Explain),
    /// Watch a running manager: health, controllers, supervision tree
    Top(Dashboard),
    /// Print the CustomResourceDefinition as YAML
    Crd,
    /// Print what installs the controller in a cluster: CRD, namespace, account, rights, Deployment
    Manifests(Install),
    /// Ask the API server whether the controller may do all that it does, and print a table of yes and no
    ///
    /// It is asked as whom `run` would be with the same flags: the lease is part of it with --leader-elect, and with --namespace only these count.
    #[command(mut_args(ManagerArgs::for_a_check))]
    Check(Box<ManagerArgs>),
}

#[derive(Debug, Args)]
struct Run {
    #[command(flatten)]
    manager: ManagerArgs,
    /// Start a simulated API server in this process, with two Deployments and two PodAutoscalers, and run against it
    #[cfg(feature = "embedded")]
    #[arg(long, conflicts_with_all = ["kubeconfig", "context"])]
    embedded: bool,
}

/// Which running manager is asked.
#[derive(Debug, Args)]
struct Dashboard {
    /// Address of the manager's dashboard, its own or that of a forwarded port
    #[arg(
        long,
        value_name = "ADDR",
        default_value = "127.0.0.1:8081",
        env = "BOATSWAIN_DASHBOARD"
    )]
    dashboard: Address,
}

#[derive(Debug, Args)]
struct Explain {
    /// Kind of the object, or name of the controller
    kind: String,
    /// The object
    #[arg(value_name = "NAMESPACE/NAME")]
    key: String,
    #[command(flatten)]
    dashboard: Dashboard,
}

impl Cli {
    /// Does what the command line asks for. Errors are printed as one line; the code is not zero then.
    pub fn run(self) -> ExitCode {
        match self.command {
            Command::Run(run) => run.run(),
            Command::Explain(asked) => {
                let told = terminal::explain(asked.dashboard.dashboard.0, &asked.kind, &asked.key);
                packaging::print(told.map(|told| format!("{told}\n")))
            }
            Command::Top(asked) => {
                packaging::print(terminal::top(asked.dashboard.0).map(|()| String::new()))
            }
            Command::Crd => packaging::print(PROGRAM.crds()),
            Command::Manifests(install) => PROGRAM.install(&install),
            Command::Check(args) => manager(*args).check(),
        }
    }
}

impl Run {
    fn run(self) -> ExitCode {
        #[cfg(feature = "embedded")]
        if self.embedded {
            return crate::embedded::run(self.manager);
        }
        manager(self.manager).run()
    }
}

fn manager(args: ManagerArgs) -> Manager {
    Manager::new(args.options_or_exit()).with(crate::controller())
}
