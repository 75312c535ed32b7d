//! The `podautoscaler` binary; everything is in the library beside it.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    podautoscaler::Cli::parse().run()
}
