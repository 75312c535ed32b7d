//! Catching panics of actors, with text, place, and the path of whom they belong to.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::{Arc, Once};

use crate::exit::Exit;

#[cfg(panic = "abort")]
compile_error!(
    "boatswain-supervision restarts actors that panic, which needs unwinding: remove `panic = \"abort\"` from the Cargo profile"
);

thread_local! {
    /// Whose code runs now.
    static CURRENT: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
    /// What the hook saw of the panic that is being caught.
    static SEEN: RefCell<Option<(String, Option<String>)>> = const { RefCell::new(None) };
}

/// Installs the panic hook, once per process: panics of supervised actors are logged with the actor's path, all others, and all where nothing is
/// logged, go to the hook before.
pub(crate) fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let path = CURRENT
                .try_with(|current| current.try_borrow().ok().and_then(|path| path.clone()))
                .ok()
                .flatten();
            if let Some(path) = &path {
                record(path, info);
            }
            // where nobody listens to the log, a panic must not go unseen
            if path.is_none() || !tracing::dispatcher::has_been_set() {
                previous(info);
            }
        }));
    });
}

fn record(path: &str, info: &PanicHookInfo<'_>) {
    let message = text(info.payload());
    let location = info.location().map(ToString::to_string);
    if tracing::enabled!(tracing::Level::ERROR) {
        log(path, location.as_deref(), &message);
    }
    let _ = SEEN.try_with(|seen| {
        seen.try_borrow_mut()
            .map(|mut seen| *seen = Some((message, location)))
    });
}

fn log(path: &str, location: Option<&str>, message: &str) {
    // costs more than the whole restart
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        tracing::error!(path, location, %backtrace, "actor panicked: {message}");
    } else {
        tracing::error!(path, location, "actor panicked: {message}");
    }
}

/// Runs code of the actor at `path`; a panic becomes an exit.
pub(crate) fn guard<T>(path: &Arc<str>, code: impl FnOnce() -> T) -> Result<T, Exit> {
    let outer = CURRENT.with(|current| current.borrow_mut().replace(Arc::clone(path)));
    let result = panic::catch_unwind(AssertUnwindSafe(code));
    let exit = result.map_err(|payload| {
        let seen = SEEN.with(|seen| seen.borrow_mut().take());
        let (message, location) = seen.unwrap_or_else(|| (text(&*payload), None));
        // the payload is a value of the actor's, and dropping it may panic again
        if let Err(worse) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(worse);
        }
        Exit::Panic { message, location }
    });
    CURRENT.with(|current| *current.borrow_mut() = outer);
    exit
}

fn text(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a value that is no text".to_owned()
    }
}

#[cfg(test)]
mod tests;
