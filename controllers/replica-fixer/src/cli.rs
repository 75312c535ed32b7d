//! The command line.

use std::process::ExitCode;

use boatswain::{Manager, ManagerArgs};
use clap::{Parser, Subcommand};
use packaging::Install;

use crate::manifests::PROGRAM;

/// Keeps Deployments at the number of replicas their annotation example.io/expected-replicas asks for
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the controller until SIGTERM or Ctrl-C
    Run(Box<ManagerArgs>),
    /// Print what installs the controller in a cluster: namespace, account, rights, Deployment
    Manifests(Install),
    /// Ask the API server whether the controller may do all that it does, and print a table of yes and no
    #[command(mut_args(ManagerArgs::for_a_check))]
    Check(Box<ManagerArgs>),
}

impl Cli {
    /// Does what the command line asks for. Errors are printed as one line; the code is not zero then.
    pub fn run(self) -> ExitCode {
        match self.command {
            Command::Run(args) => manager(*args).run(),
            Command::Manifests(install) => PROGRAM.install(&install),
            Command::Check(args) => manager(*args).check(),
        }
    }
}

fn manager(args: ManagerArgs) -> Manager {
    Manager::new(args.options_or_exit()).with(crate::controller())
}
