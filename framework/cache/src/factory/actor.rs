//! Starts what is wanted and stops what is not, one order per informer at a time.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorFutureExt, AsyncContext, WrapFuture};
use boatswain_supervision::{Clock, Context, Dynamic, Failure, SpecError, StartError, supervised};
use futures::future::{BoxFuture, Either, select};
use futures::stream::{FuturesUnordered, StreamExt};

use super::Inner;
use super::state::Order;
use crate::core::InformerCore;
use crate::sync::lock;

/// How long an informer that could not be started is left alone.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Steward {
    inner: Arc<Inner>,
    informers: Dynamic<Arc<InformerCore>>,
}

impl Steward {
    pub(super) fn new(inner: Arc<Inner>, informers: Dynamic<Arc<InformerCore>>) -> Self {
        Self { inner, informers }
    }
}

supervised!(Steward);

impl Actor for Steward {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        lock(&self.inner.roster).resume();
        let clock = ctx.link().clock().clone();
        let work = work(self.inner.clone(), self.informers.clone(), clock);
        let end = |error: SpecError, _: &mut Self, ctx: &mut Context<Self>| {
            ctx.fail(Failure::fatal(error));
        };
        ctx.spawn(work.into_actor(self).map(end));
    }
}

/// Ends when the supervisor can run no informer, because its intensity does not go with theirs.
async fn work(inner: Arc<Inner>, informers: Dynamic<Arc<InformerCore>>, clock: Clock) -> SpecError {
    let mut under_way = FuturesUnordered::new();
    loop {
        let orders = lock(&inner.roster).orders();
        for order in orders {
            under_way.push(carry_out(order, &inner, &informers, &clock));
        }
        let poked = std::pin::pin!(inner.poke.notified());
        if under_way.is_empty() {
            poked.await;
        } else if let Either::Left((Some(Err(error)), _)) = select(under_way.next(), poked).await {
            return error;
        }
    }
}

fn carry_out<'a>(
    order: Order<Arc<InformerCore>>,
    inner: &'a Inner,
    informers: &Dynamic<Arc<InformerCore>>,
    clock: &'a Clock,
) -> BoxFuture<'a, Result<(), SpecError>> {
    match order {
        Order::Start(id, core) => {
            let started = informers.start(core);
            Box::pin(async move {
                let runs = match started.await {
                    // one that an incarnation before this one asked for
                    Ok(()) | Err(StartError::Spec(SpecError::Duplicate { .. })) => true,
                    Err(StartError::Spec(error)) => return Err(error),
                    Err(error) => {
                        tracing::error!(informer = id, %error, "an informer could not be started; trying again");
                        clock.sleep(PAUSE).await;
                        false
                    }
                };
                lock(&inner.roster).started(&id, runs);
                Ok(())
            })
        }
        Order::Stop(id, core) => {
            let stopped = informers.stop(&id);
            Box::pin(async move {
                if let Err(error) = stopped.await {
                    tracing::debug!(informer = id, %error, "an informer nobody uses was not there to be stopped");
                }
                // whoever kept the bare core is not to take it for current
                core.retire();
                lock(&inner.roster).stopped(&id);
                Ok(())
            })
        }
    }
}
