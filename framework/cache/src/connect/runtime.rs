//! Drives requests where their connections may live.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use http::Request;
use kube::client::Body;
use tokio::{runtime::Handle, task::JoinHandle};
use tower::{BoxError, Layer, Service};

/// Runs each request as a task of one runtime; dropping the caller's future aborts it.
///
/// A connection belongs to the runtime it was opened on: without this it would die with the thread whose request happened to open it.
pub(super) struct OnRuntimeLayer {
    io: Handle,
}

impl OnRuntimeLayer {
    pub(super) fn new(io: Handle) -> Self {
        Self { io }
    }
}

impl<S> Layer<S> for OnRuntimeLayer {
    type Service = OnRuntime<S>;

    fn layer(&self, inner: S) -> OnRuntime<S> {
        OnRuntime {
            io: self.io.clone(),
            inner,
        }
    }
}

pub(super) struct OnRuntime<S> {
    io: Handle,
    inner: S,
}

impl<S, R> Service<Request<Body>> for OnRuntime<S>
where
    S: Service<Request<Body>, Response = R, Error = BoxError>,
    S::Future: Send + 'static,
    R: Send + 'static,
{
    type Response = R;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<R, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let task = AbortOnDrop(self.io.spawn(self.inner.call(request)));
        Box::pin(async move { task.await.unwrap_or_else(|gone| Err(gone.into())) })
    }
}

struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, tokio::task::JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
