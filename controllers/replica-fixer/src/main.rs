//! The `replica-fixer` binary; everything is in the library beside it.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    replica_fixer::Cli::parse().run()
}
