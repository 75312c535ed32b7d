//! The innermost layer of a leader's client: writes pass only while the lease is surely ours.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use boatswain_supervision::Clock;
use http::{Method, Request};
use kube::client::Body;
use tokio::sync::Mutex;
use tower::{BoxError, Service};

use super::{BoxFuture, sent};
use crate::leader::{Fence, Fenced};

/// Sends reads one way and writes another, which ends where the fence is closed.
///
/// It stands behind the limiter and every queue, so a request that waited in one meets the fence as it is then. A write has no more time than the
/// fence stays open; and the connections of writes ask it again at every write to their socket, which is what a process that was stopped between
/// the two meets.
pub(crate) struct Fencing<R, W> {
    fence: Fence,
    clock: Clock,
    reads: Arc<Mutex<R>>,
    writes: Arc<Mutex<W>>,
}

impl<R, W> Fencing<R, W> {
    pub(crate) fn new(fence: Fence, clock: Clock, reads: R, writes: W) -> Self {
        Self {
            fence,
            clock,
            reads: Arc::new(Mutex::new(reads)),
            writes: Arc::new(Mutex::new(writes)),
        }
    }
}

impl<R, W, A> Service<Request<Body>> for Fencing<R, W>
where
    R: Service<Request<Body>, Response = A, Error = BoxError> + Send + 'static,
    R::Future: Send + 'static,
    W: Service<Request<Body>, Response = A, Error = BoxError> + Send + 'static,
    W::Future: Send + 'static,
    A: Send + 'static,
{
    type Response = A;
    type Error = BoxError;
    type Future = BoxFuture<Result<A, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            let reads = self.reads.clone();
            return Box::pin(sent(reads, request));
        }
        let (fence, clock) = (self.fence.clone(), self.clock.clone());
        let writes = self.writes.clone();
        Box::pin(async move {
            let left = fence.check(clock.boot())?;
            tokio::select! {
                biased;
                answer = sent(writes, request) => answer,
                () = clock.sleep(left) => Err(Fenced.into()),
            }
        })
    }
}

#[cfg(test)]
mod tests;
