//! Structured logs on standard error.

use std::io::{IsTerminal as _, Write as _};

use tracing_subscriber::EnvFilter;

use crate::options::LogFormat;

/// What is logged unless `RUST_LOG` says otherwise. The client's own account of each failed request is left out: whoever made the request
/// tells of it, with the object and once.
const DEFAULT: &str = "info,kube_client=off";

/// Sends logs to standard error; `RUST_LOG` says what (`info` by default). Does nothing where the program has set up logs itself.
///
/// Lines that cannot be written, to a full disk or a reader that went away, are lost; the program goes on.
pub fn init(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    // an error only says that logs are set up already
    let _ = match format {
        LogFormat::Text => logs
            .with_ansi(std::io::stderr().is_terminal())
            .with_target(false)
            .try_init(),
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
    };
}

/// Says the last words of a process on standard error, if that can be written to.
pub(crate) fn complain(what: &dyn std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "error: {what}");
}
