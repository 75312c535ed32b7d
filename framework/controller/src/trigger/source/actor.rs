//! The actor that hands the keys of one source to their shards.

use std::{
    future::{pending, poll_fn},
    sync::Arc,
    time::Duration,
};

use actix::{Actor, AsyncContext as _, WrapFuture as _};
use boatswain_cache::Key;
use boatswain_supervision::{Clock, Context, Link, supervised};
use boatswain_workqueue::{
    Lane,
    limit::{Exponential, Limiter as _, Retry},
};
use futures::{StreamExt as _, stream::BoxStream};

use super::{Origin, Shared, Source, Spring};
use crate::{
    dispatch::{Desks, DispatchCore},
    reconcile::Causes,
    trigger::{
        guard::{Panicked, guarded},
        hand_out,
    },
};

/// Keys handed out in one go.
const BATCH: usize = 256;
/// The waits before a stream that ended is made again.
const AGAIN: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

pub(crate) struct SourceActor(Tap);

#[derive(Clone)]
struct Tap {
    core: Arc<DispatchCore>,
    spring: Arc<Spring>,
    desks: Desks,
    clock: Clock,
}

impl SourceActor {
    pub(crate) fn new(
        core: Arc<DispatchCore>,
        spring: Arc<Spring>,
        desks: Desks,
        link: &Link,
    ) -> Self {
        if let Origin::Channel(Source(shared)) = &spring.origin {
            let shared = shared.clone();
            link.report("waiting", move || shared.backlog().len().into());
        }
        let clock = link.clock().clone();
        Self(Tap {
            core,
            spring,
            desks,
            clock,
        })
    }
}

supervised!(SourceActor);

impl Actor for SourceActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let tap = self.0.clone();
        ctx.spawn(async move { tap.run().await }.into_actor(self));
    }
}

impl Tap {
    async fn run(self) {
        match &self.spring.origin {
            Origin::Channel(Source(shared)) => self.drain(shared).await,
            Origin::Every(period, keys) => self.ring(*period, keys).await,
            Origin::Stream(make) => self.follow(make).await,
        }
    }

    async fn drain(&self, shared: &Shared) {
        loop {
            // a standby takes nothing: what was sent waits, within its bound, until it leads
            self.core.gate.promoted().await;
            let now = self.clock.now();
            let (next, due) = {
                let mut backlog = shared.backlog();
                let next = backlog.next(BATCH, now);
                if next.is_empty() {
                    shared.caught_up(&self.desks);
                }
                (next, backlog.due())
            };
            if next.is_empty() {
                let time = async {
                    match due {
                        Some(due) => self.clock.sleep_until(due).await,
                        None => pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    () = shared.news.notified() => {}
                    () = time => {}
                }
                continue;
            }
            let keys = next.iter().map(|next| {
                let cause = match next.timed {
                    true => Causes::TIMER,
                    false => Causes::EXTERNAL,
                };
                (next.key.clone(), next.lane, cause)
            });
            hand_out(&self.desks, self.core.ranked(keys));
            // only now: what is lost in between is handed out again
            shared.backlog().taken(&next);
            tokio::task::yield_now().await;
        }
    }

    /// Asks once per period, however often the actor is made anew. Periods that were missed are not made up for.
    async fn ring(&self, period: Duration, keys: &(dyn Fn() -> Vec<Key> + Send + Sync)) {
        let born = *self.spring.born.get_or_init(|| self.clock.now());
        let period = period.max(Duration::from_millis(1));
        loop {
            let passed = self.clock.now().saturating_duration_since(born);
            let into = Duration::from_nanos((passed.as_nanos() % period.as_nanos()) as u64);
            self.clock.sleep(period - into).await;
            if self.core.gate.is_standby() {
                continue;
            }
            match guarded(keys) {
                Ok(keys) => {
                    let keys = keys.into_iter().map(|key| (key, Lane::Low, Causes::TIMER));
                    hand_out(&self.desks, self.core.ranked(keys));
                }
                Err(panicked) => {
                    self.failed(&format!("{panicked}; it is asked again in {period:?}"))
                }
            }
        }
    }

    async fn follow(&self, make: &(dyn Fn() -> BoxStream<'static, Key> + Send + Sync)) {
        let mut failures = 0;
        loop {
            let why = match guarded(make).map(Stream::new) {
                Err(panicked) => panicked.to_string(),
                Ok(mut stream) => loop {
                    self.core.gate.promoted().await;
                    match stream.next().await {
                        Ok(Some(key)) => {
                            failures = 0;
                            hand_out(
                                &self.desks,
                                self.core
                                    .ranked([(key, Lane::Normal, Causes::EXTERNAL)].into_iter()),
                            );
                            // a stream that is always ready keeps the thread from nobody
                            tokio::task::yield_now().await;
                        }
                        Ok(None) => break "it ended".to_owned(),
                        Err(panicked) => break panicked.to_string(),
                    }
                },
            };
            failures += 1;
            let mut delays = Exponential::new(AGAIN.0, AGAIN.1).with_jitter(0.2);
            let delay = delays.delay(Retry {
                failures,
                chance: self.core.entropy.unit(),
                now: self.clock.now(),
            });
            self.failed(&format!("{why}; it is made again in {delay:?}"));
            self.clock.sleep(delay).await;
        }
    }

    fn failed(&self, why: &str) {
        let (controller, source) = (&self.core.name, &self.spring.name);
        tracing::warn!(%controller, %source, "a source of keys failed: {why}");
        self.core.metrics.mapper_failed();
    }
}

/// A stream of the author's, whose panics are its own.
struct Stream(Option<BoxStream<'static, Key>>);

impl Stream {
    fn new(stream: BoxStream<'static, Key>) -> Self {
        Self(Some(stream))
    }

    async fn next(&mut self) -> Result<Option<Key>, Panicked> {
        let Some(stream) = &mut self.0 else {
            return Ok(None);
        };
        poll_fn(
            |context| match guarded(|| stream.poll_next_unpin(context)) {
                Ok(polled) => polled.map(Ok),
                Err(panicked) => std::task::Poll::Ready(Err(panicked)),
            },
        )
        .await
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let stream = self.0.take();
        if let Err(panicked) = guarded(|| drop(stream)) {
            tracing::error!("what was left of a stream of keys could not be dropped: {panicked}");
        }
    }
}
