//! Where a reconciler is run: in place, or on the pool, if it computes so much that it would keep its thread from others.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context as Task, Poll, ready},
};

use futures::{
    FutureExt as _,
    future::{BoxFuture, CatchUnwind},
};
use tokio::{runtime::Handle, task::JoinHandle};
use tracing::Instrument as _;

use super::{Ended, in_flight::Running};
use crate::{Context, dispatch::Runner};

type Payload = Box<dyn Any + Send>;

type Run = CatchUnwind<AssertUnwindSafe<BoxFuture<'static, Ended>>>;

/// A call of a reconciler. Its end is how the run ended, or the payload of a panic.
///
/// Its key counts as running until the reconciler's future is dropped: in place that is with this, on the pool it may be later, at its next await.
pub(super) enum Reconcile {
    Here { run: Run, _running: Running },
    Away(Away),
}

/// A task on the pool, which is cancelled when this is dropped.
pub(super) struct Away(JoinHandle<Result<Ended, Payload>>);

impl Reconcile {
    pub(super) fn new(
        pool: Option<&Handle>,
        runner: Arc<dyn Runner>,
        cx: Context,
        running: Running,
    ) -> Self {
        let run = AssertUnwindSafe(runner.run(cx)).catch_unwind();
        match pool {
            None => Self::Here {
                run,
                _running: running,
            },
            Some(pool) => Self::Away(Away(
                pool.spawn(
                    async move {
                        // dropped last: whoever may run the key next finds nothing of this run
                        let _running = running;
                        run.await
                    }
                    .in_current_span(),
                ),
            )),
        }
    }

    /// Cancels it, and waits until nothing of it is left.
    pub(super) async fn cancel(self) {
        if let Self::Away(mut away) = self {
            away.0.abort();
            // it may have ended, or panicked while it was dropped: either way nothing is left
            let _ = (&mut away.0).await;
        }
    }
}

impl Future for Reconcile {
    type Output = Result<Ended, Payload>;

    fn poll(self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Here { run, .. } => run.poll_unpin(task),
            Self::Away(Away(join)) => {
                Poll::Ready(match ready!(Pin::new(join).poll(task)) {
                    Ok(ended) => ended,
                    Err(error) => match error.try_into_panic() {
                        Ok(payload) => Err(payload),
                        // the pool ends
                        Err(_) => Ok(Ended::Aborted),
                    },
                })
            }
        }
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        self.0.abort();
    }
}
