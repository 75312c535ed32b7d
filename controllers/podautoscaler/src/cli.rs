//! The command line.

use std::process::ExitCode;

use boatswain::{Manager, ManagerArgs};
use clap::{Args, Parser, Subcommand};

use crate::manifests::{self, Install};

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
    /// Print the CustomResourceDefinition as YAML
    Crd,
    /// Print what installs the controller in a cluster: CRD, namespace, account, rights, Deployment
    Manifests(Install),
    /// Ask the API server whether the controller may do all that it does, and print a table of yes and no
    ///
    /// It is asked as whom `run` would be with the same flags: the lease is part of it with --leader-elect, and with --namespace only these count.
    Check(Box<Check>),
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

#[derive(Debug, Args)]
struct Check {
    #[command(flatten)]
    manager: ManagerArgs,
}

impl Cli {
    /// Does what the command line asks for. Errors are printed as one line; the code is not zero then.
    pub fn run(self) -> ExitCode {
        match self.command {
            Command::Run(run) => run.run(),
            Command::Crd => print(manifests::crd()),
            Command::Manifests(install) => print(install.write()),
            Command::Check(check) => Manager::new(check.manager.options_or_exit())
                .with(crate::controller())
                .check(),
        }
    }
}

impl Run {
    fn run(self) -> ExitCode {
        #[cfg(feature = "embedded")]
        if self.embedded {
            return crate::embedded::run(self.manager);
        }
        Manager::new(self.manager.options_or_exit())
            .with(crate::controller())
            .run()
    }
}

fn print(text: Result<String, manifests::PrintError>) -> ExitCode {
    use std::io::{ErrorKind, Write as _, stdout};
    let written = match text {
        Ok(text) => match stdout().write_all(text.as_bytes()) {
            // a reader that has seen enough, such as head, is no failure
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| format!("cannot print: {error}")),
        },
        Err(error) => Err(error.to_string()),
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
