//! Structured logs on standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::options::LogFormat;

/// Sends logs to standard error; `RUST_LOG` says what (`info` by default). Does nothing where the program has set up logs itself.
pub fn init(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
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
