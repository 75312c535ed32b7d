//! Catching panics of actors, with text, place, and the path of whom they belong to.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::pin::Pin;
use std::sync::{Arc, Once};
use std::task::{Context as TaskContext, Poll};

use actix::{Actor, ActorFuture};
use pin_project_lite::pin_project;

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
    let result = survive(code);
    CURRENT.with(|current| *current.borrow_mut() = outer);
    result
}

/// Runs code of whoever runs now; a panic becomes an exit.
fn survive<T>(code: impl FnOnce() -> T) -> Result<T, Exit> {
    let look = || SEEN.try_with(RefCell::take).ok().flatten();
    // of a panic that was caught elsewhere, or that unwinds through here at this moment
    let outer = look();
    let result = panic::catch_unwind(AssertUnwindSafe(code)).map_err(|payload| {
        let message = text(&*payload);
        // the hook sees neither a panic that is resumed nor that one before it was caught
        let location = look().and_then(|(seen, place)| place.filter(|_| seen == message));
        // the payload is a value of the actor's, and dropping it may panic again
        if let Err(worse) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(worse);
        }
        Exit::Panic { message, location }
    });
    let _ = SEEN.try_with(|seen| seen.replace(outer));
    result
}

/// A value of foreign code. Its drop may panic, which is logged as any panic and goes no further: what is dropped next to it is dropped all the same,
/// where a second panic would abort the process, and whoever drops it is not to blame.
pub(crate) struct Foreign<T>(Option<T>);

impl<T> Foreign<T> {
    pub(crate) fn new(value: T) -> Foreign<T> {
        Foreign(Some(value))
    }

    pub(crate) fn get(&self) -> &T {
        match &self.0 {
            Some(value) => value,
            None => unreachable!("what was taken is not used any more"),
        }
    }

    pub(crate) fn take(&mut self) -> Option<T> {
        self.0.take()
    }
}

impl<T> Drop for Foreign<T> {
    fn drop(&mut self) {
        if let Some(value) = self.take() {
            let _ = survive(|| drop(value));
        }
    }
}

pin_project! {
    /// The same for a future, which stays where it is.
    pub(crate) struct Fenced<F> {
        #[pin]
        future: Option<F>,
    }

    impl<F> PinnedDrop for Fenced<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut future = this.project().future;
            let _ = survive(|| future.set(None));
        }
    }
}

impl<F> Fenced<F> {
    pub(crate) fn new(future: F) -> Fenced<F> {
        Fenced {
            future: Some(future),
        }
    }
}

impl<A: Actor, F: ActorFuture<A, Output = ()>> ActorFuture<A> for Fenced<F> {
    type Output = ();

    fn poll(
        self: Pin<&mut Self>,
        actor: &mut A,
        ctx: &mut A::Context,
        task: &mut TaskContext<'_>,
    ) -> Poll<()> {
        match self.project().future.as_pin_mut() {
            Some(future) => future.poll(actor, ctx, task),
            None => Poll::Ready(()),
        }
    }
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
