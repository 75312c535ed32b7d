//! Code of the author's: its panic, wherever it comes, is its own.

use std::{
    any::Any,
    mem::forget,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use futures::future::BoxFuture;

/// What was called panicked; its text.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it panicked: {0}")]
pub(crate) struct Panicked(String);

impl Panicked {
    fn new(payload: Box<dyn Any + Send>) -> Self {
        let text = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        // the payload is the author's, too, and dropping it may panic again
        if let Err(worse) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            forget(worse);
        }
        Self(text.unwrap_or_else(|| "without a text".to_owned()))
    }
}

/// Runs code of the author's.
pub(crate) fn guarded<T>(code: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(code)).map_err(Panicked::new)
}

/// A future of the author's. It may panic when it is polled and when it is dropped, at its end or before.
pub(super) struct Guarded<'a, T>(Option<BoxFuture<'a, T>>);

impl<'a, T> Guarded<'a, T> {
    pub(super) fn new(future: BoxFuture<'a, T>) -> Self {
        Self(Some(future))
    }
}

impl<T> Future for Guarded<'_, T> {
    type Output = Result<T, Panicked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else {
            return Poll::Pending;
        };
        let polled = guarded(|| future.as_mut().poll(context));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(answer)) => Poll::Ready(Ok(answer)),
            Err(panicked) => Poll::Ready(Err(panicked)),
        }
    }
}

impl<T> Drop for Guarded<'_, T> {
    fn drop(&mut self) {
        let future = self.0.take();
        if let Err(panicked) = guarded(|| drop(future)) {
            tracing::error!("what was left of a mapper's work could not be dropped: {panicked}");
        }
    }
}
