//! Structured logs on standard error.

use std::{
    fmt::Display,
    io::{IsTerminal as _, Write as _},
    sync::{Mutex, OnceLock},
};

use tracing::{Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{
    EnvFilter, Layer as _, Registry, filter::ParseError, fmt, layer::SubscriberExt as _,
    registry::LookupSpan, reload, util::SubscriberInitExt as _,
};

#[cfg(feature = "otel")]
use crate::trace::Traces;
use crate::{options::LogFormat, sync::lock};

/// What is logged where `RUST_LOG` does not say it.
///
/// The client's own account of each failed request is left out: whoever made the request tells of it, with the object and once. The crates below connections
/// talk much and seldom help.
fn filter(verbosity: u8) -> &'static str {
    match verbosity {
        0..=3 => "info,kube_client=off",
        4..=5 => "debug,kube_client=off,hyper_util=info,rustls=info,tower=info",
        6..=7 => "trace,kube_client=off,hyper_util=info,rustls=info,tower=info",
        8.. => "trace",
    }
}

/// What is logged, and what changes it.
static LOGGED: OnceLock<Logged> = OnceLock::new();

struct Logged {
    /// In the words of whoever asked for it: a filter that is printed has lost their order.
    said: Mutex<String>,
    filter: reload::Handle<EnvFilter, Registry>,
}

/// Sends logs to standard error. How much is set by `verbosity`, as [`Options::verbosity`](crate::Options::verbosity) counts it, unless `RUST_LOG` says it.
/// Does nothing where the program has set up logs itself.
///
/// Lines that cannot be written, to a full disk or a reader that went away, are lost; the program goes on.
pub fn init(format: LogFormat, verbosity: u8) {
    let (chosen, ignored) = chosen(said(), verbosity);
    // an error only says that logs are set up already
    let _ = subscriber(format, chosen).try_init();
    tell_of(ignored);
}

/// As [`init`], and with the feature `otel` sends traces where the environment names a collector, until what is returned is dropped.
pub(crate) fn start(format: LogFormat, verbosity: u8, service: &str) -> Logs {
    #[cfg(feature = "otel")]
    {
        let (traces, failed) = match Traces::of_environment(service) {
            Ok(traces) => (traces, None),
            Err(error) => (None, Some(error)),
        };
        let layer = traces.as_ref().map(Traces::layer);
        let (chosen, ignored) = chosen(said(), verbosity);
        let _ = subscriber(format, chosen).with(layer).try_init();
        tell_of(ignored);
        if let Some(error) = failed {
            tracing::error!("{error}");
        }
        Logs { _traces: traces }
    }
    #[cfg(not(feature = "otel"))]
    {
        let _ = service;
        init(format, verbosity);
        Logs {}
    }
}

/// What is sent beside logs, for as long as it is kept.
pub(crate) struct Logs {
    #[cfg(feature = "otel")]
    _traces: Option<Traces>,
}

/// What `RUST_LOG` says, where it says anything.
fn said() -> Option<String> {
    let said = std::env::var(EnvFilter::DEFAULT_ENV).ok()?;
    // set to nothing it would hide everything
    (!said.trim().is_empty()).then_some(said)
}

/// What is to be logged, and the words that ask for it.
struct Chosen {
    said: String,
    filter: EnvFilter,
}

/// What is to be logged, and why not what was said.
fn chosen(said: Option<String>, verbosity: u8) -> (Chosen, Option<ParseError>) {
    let usual = || Chosen {
        said: filter(verbosity).to_owned(),
        filter: EnvFilter::new(filter(verbosity)),
    };
    match said.map(|said| (with_audit(&said), said)) {
        None => (usual(), None),
        Some((Ok(filter), said)) => (Chosen { said, filter }, None),
        Some((Err(error), _)) => (usual(), Some(error)),
    }
}

fn tell_of(ignored: Option<ParseError>) {
    if let Some(error) = ignored {
        tracing::warn!("RUST_LOG is not understood and counts for nothing: {error}");
    }
}

fn subscriber(
    format: LogFormat,
    Chosen { said, filter }: Chosen,
) -> impl Subscriber + for<'a> LookupSpan<'a> + Send + Sync + 'static {
    let lines = fmt::layer()
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => lines
            .with_ansi(std::io::stderr().is_terminal())
            .with_target(false)
            .boxed(),
        // the list of spans has the current one, too
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .boxed(),
    };
    let (filter, handle) = reload::Layer::new(filter);
    // only the first can be set up
    let _ = LOGGED.set(Logged {
        said: said.into(),
        filter: handle,
    });
    // of lines only: what is traced is traced whatever is logged
    tracing_subscriber::registry().with(lines.with_filter(filter))
}

/// What `directives` ask for, and what people did, whatever they ask for.
fn with_audit(directives: &str) -> Result<EnvFilter, ParseError> {
    EnvFilter::try_new(format!("{directives},audit=info"))
}

/// Changes what is logged to `directives`, as `RUST_LOG` has them but for one thing: a word alone must be a level, so that nobody turns the log off by
/// misspelling one.
///
/// # Errors
///
/// When they are not understood, or the program has set up logs itself.
pub(crate) fn set_filter(directives: &str) -> Result<(), FilterError> {
    let complaint = |why: &dyn Display| FilterError::Nonsense {
        said: directives.to_owned(),
        why: why.to_string(),
    };
    for part in directives.split(',').map(str::trim) {
        let is_level = !part.is_empty() && part.parse::<LevelFilter>().is_ok();
        if !is_level && !part.contains(['=', '[', ']']) {
            let why = format!(
                "{part:?} is no level; there are error, warn, info, debug, trace and off, and target=level"
            );
            return Err(complaint(&why));
        }
    }
    let filter = with_audit(directives).map_err(|error| complaint(&error))?;
    let logged = LOGGED.get().ok_or(FilterError::Own)?;
    let mut said = lock(&logged.said);
    let set = logged.filter.reload(filter);
    set.map_err(|_| FilterError::Own)?;
    directives.clone_into(&mut said);
    Ok(())
}

/// What is logged at present, as it was asked for; `None` where the program has set up logs itself.
pub(crate) fn present_filter() -> Option<String> {
    let logged = LOGGED.get()?;
    // of a subscriber that was not taken nothing is left
    logged.filter.with_current(|_| ()).ok()?;
    Some(lock(&logged.said).clone())
}

/// Why what is logged was not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FilterError {
    #[error("{said:?} does not say what to log: {why}")]
    Nonsense { said: String, why: String },
    #[error("this program has set up its logs itself")]
    Own,
}

/// Says the last words of a process on standard error, if that can be written to.
pub(crate) fn complain(what: &dyn Display) {
    let _ = writeln!(std::io::stderr(), "error: {what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verbosity_is_a_filter_and_more_of_it_never_hides_anything() {
        let levels = [0, 3, 4, 6, 8, 255].map(|verbosity| {
            let filter: EnvFilter = filter(verbosity).parse().expect("a filter");
            filter.max_level_hint()
        });
        assert!(levels.is_sorted(), "{levels:?}");
    }

    #[test]
    fn a_filter_of_the_environment_that_is_not_understood_is_told_and_hides_nothing() {
        let usual = chosen(None, 0).0.said;
        let (lines, ignored) = chosen(Some("info,[".into()), 0);
        assert_eq!(lines.said, usual);
        assert!(ignored.is_some());
        let (lines, ignored) = chosen(Some("debug".into()), 0);
        assert_ne!(lines.said, usual);
        assert!(ignored.is_none());
    }

    #[test]
    fn a_filter_that_is_misspelt_is_refused_and_none_hides_what_people_did() {
        for nonsense in [
            "",
            "  ",
            "inof",
            "info,",
            "kube=loud",
            "boatswain,debug",
            "a=b=c",
        ] {
            let refused = set_filter(nonsense).expect_err(nonsense).to_string();
            assert!(refused.contains("does not say what to log"), "{refused}");
        }
        for sound in [
            "debug",
            "INFO,kube_client=off",
            "info,[reconcile{key=a}]=trace",
        ] {
            let refused = set_filter(sound).expect_err("no logs are set up here");
            let refused = refused.to_string();
            assert!(refused.contains("set up its logs itself"), "{refused}");
        }
        assert_eq!(present_filter(), None, "it is not known here");
        let off = with_audit("off").expect("a filter").to_string();
        assert!(off.contains("audit=info"), "{off}");
    }
}
