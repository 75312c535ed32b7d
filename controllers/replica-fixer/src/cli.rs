//! The command line.

use std::process::ExitCode;

use boatswain::{Manager, ManagerArgs};
use clap::{Parser, Subcommand};

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
}

impl Cli {
    /// Does what the command line asks for. Errors are printed as one line; the code is not zero then.
    pub fn run(self) -> ExitCode {
        match self.command {
            Command::Run(manager) => Manager::new(manager.options_or_exit())
                .with(crate::controller())
                .run(),
        }
    }
}
