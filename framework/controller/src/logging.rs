//! Structured logs on standard error.

use std::{
    io::{IsTerminal as _, Write as _},
    sync::OnceLock,
};

use tracing_subscriber::EnvFilter;

use crate::options::LogFormat;

/// What is logged unless `RUST_LOG` says otherwise. The client's own account of each failed request is left out: whoever made the request
/// tells of it, with the object and once.
const DEFAULT: &str = "info,kube_client=off";

type SetFilter = Box<dyn Fn(EnvFilter) -> Result<(), String> + Send + Sync>;

/// Changes what is logged; there is none where the program has set up logs itself.
static SET_FILTER: OnceLock<SetFilter> = OnceLock::new();

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
    let set: Result<SetFilter, _> = match format {
        LogFormat::Text => {
            let logs = logs
                .with_ansi(std::io::stderr().is_terminal())
                .with_target(false)
                .with_filter_reloading();
            let handle = logs.reload_handle();
            logs.try_init().map(|()| {
                let set = move |filter| handle.reload(filter).map_err(|error| error.to_string());
                Box::new(set) as SetFilter
            })
        }
        LogFormat::Json => {
            let logs = logs.json().flatten_event(true).with_filter_reloading();
            let handle = logs.reload_handle();
            logs.try_init().map(|()| {
                let set = move |filter| handle.reload(filter).map_err(|error| error.to_string());
                Box::new(set) as SetFilter
            })
        }
    };
    if let Ok(set) = set {
        let _ = SET_FILTER.set(set);
    }
}

/// Changes what is logged to `directives`, as `RUST_LOG` has them.
///
/// # Errors
///
/// When they are not understood, or the program has set up logs itself.
pub(crate) fn set_filter(directives: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(directives)
        .map_err(|error| format!("{directives:?} does not say what to log: {error}"))?;
    let set = SET_FILTER
        .get()
        .ok_or("this program has set up its logs itself")?;
    set(filter)
}

/// Says the last words of a process on standard error, if that can be written to.
pub(crate) fn complain(what: &dyn std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "error: {what}");
}
