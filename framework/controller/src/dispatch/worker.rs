//! A worker runs one key at a time and survives whatever the reconciler does.

use std::{
    any::Any,
    cell::Cell,
    fmt,
    panic::{AssertUnwindSafe, resume_unwind},
    pin::pin,
    rc::Rc,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, AsyncContext as _, Running, WrapFuture as _,
};
use boatswain_cache::Key;
use boatswain_supervision::{Clock, Context, Link, supervised};
use boatswain_workqueue::{Activation, Streak};
use futures::{FutureExt as _, poll};
use tracing::{Instrument as _, Span, field::Empty};

use super::{
    DispatchCore, Ended, Tell,
    desk::{Claim, Desk, Idle},
    offload::Reconcile,
    presence::Presence,
};
use crate::{
    context::{self, Surroundings},
    explain::Logbook,
    reconcile::{Causes, Fault, Outcome},
};

/// How long a worker goes from run to run before others on its thread have a turn.
const SPELL: Duration = Duration::from_micros(200);

pub(crate) struct Worker {
    desk: Arc<Desk>,
    clock: Clock,
    state: Rc<State>,
}

/// What a worker and its work know of each other.
#[derive(Default)]
struct State {
    /// Whether the reconciler has been called and has not ended yet.
    reconciling: Cell<bool>,
    stopping: Cell<bool>,
}

impl Worker {
    pub(crate) fn new(desk: Arc<Desk>, link: &Link) -> Self {
        Self {
            desk,
            clock: link.clock().clone(),
            state: Rc::default(),
        }
    }
}

supervised!(Worker);

impl Actor for Worker {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let work = work(self.desk.clone(), self.clock.clone(), self.state.clone());
        ctx.spawn(work.into_actor(self).map(|(), _, ctx| ctx.stop()));
    }

    // a running reconcile may finish within the grace period; one that has not begun does not begin any more
    fn stopping(&mut self, ctx: &mut Self::Context) -> Running {
        if !self.state.reconciling.get() {
            return Running::Stop;
        }
        // the supervisor gives each of its workers, one after the other, a grace period of its own; this is the one of them all
        if !self.state.stopping.replace(true)
            && let Some(end) = self.desk.core.gate.end()
        {
            let clock = self.clock.clone();
            let end = async move { clock.sleep_until(end).await };
            ctx.spawn(end.into_actor(self).map(|(), _, ctx| ctx.terminate()));
        }
        Running::Continue
    }
}

/// Runs one key after the other, until the worker is to stop.
async fn work(desk: Arc<Desk>, clock: Clock, state: Rc<State>) {
    let mut permit = None;
    let mut presence = Presence::new(&desk);
    let mut now = clock.now();
    let mut spell = now;
    while !state.stopping.get() {
        match desk.begin(&mut presence, &mut permit, now) {
            Ok(run) => {
                let ended = run_once(&desk, &mut presence, &clock, &state, run, now).await;
                if let Some(ended) = ended {
                    now = ended;
                    if now.saturating_duration_since(spell) < SPELL {
                        continue;
                    }
                }
                tokio::task::yield_now().await;
            }
            Err(Idle::NoKey) => {
                permit = None;
                desk.key().await;
            }
            Err(Idle::NoPermit) => desk.permit().await,
        }
        presence.look();
        now = clock.now();
        spell = now;
    }
}

/// From an activation to its end; says when that was. None if the key is held instead.
///
/// # Panics
///
/// When the reconciler did: the supervisor counts the crash and gives the seat a fresh incarnation.
async fn run_once(
    desk: &Arc<Desk>,
    presence: &mut Presence<'_>,
    clock: &Clock,
    state: &State,
    run: Activation<Key, Causes>,
    now: Instant,
) -> Option<Instant> {
    let core = &*desk.core;
    let causes = match run.cause {
        _ if run.streak != Streak::default() => run.cause.unwrap_or_default().and(Causes::RETRY),
        // its own timer rang
        None => Causes::REQUEUED,
        Some(causes) => causes,
    };
    let (key, attempt) = (run.key, run.streak.failures.into());
    if core.surroundings.writes.must_wait(&key, now) && desk.hold(&key, run.run, now) {
        // neither worker nor permit is kept from those who can run
        return None;
    }
    let queued_for = now.saturating_duration_since(run.queued_at);
    let claim = Arc::new(desk.claim(key.clone(), run.run, run.streak, queued_for));
    let last = core.retries.is_last(run.streak);
    let id = core.next_run(desk.index);
    let span = tracing::info_span!(
        "reconcile", controller = %core.name, %key, attempt, %causes, %id, otel.status_code = Empty,
    );
    let cx = context::Context::new(desk.surroundings.clone(), key, attempt, last, causes, id);
    let logbook = Logbook::open(desk, &cx, now);
    let result = {
        let run = attempted(desk, clock, state, cx, now, &claim);
        let mut run = pin!(AssertUnwindSafe(run).catch_unwind().instrument(span));
        match poll!(run.as_mut()) {
            Poll::Ready(result) => result,
            Poll::Pending => {
                presence.leave();
                let result = run.await;
                presence.look();
                result
            }
        }
    };
    state.reconciling.set(false);
    let (ended, at, panic) = match result {
        Ok((ended, at)) => (ended, at, None),
        Err(payload) => {
            let text = panic_text(payload.as_ref());
            (Ended::Panicked(text), clock.now(), Some(payload))
        }
    };
    logbook.close(&ended, at);
    claim.end(ended, at);
    drop(claim);
    if let Some(payload) = panic {
        resume_unwind(payload);
    }
    Some(at)
}

/// One run of the key of `cx`, from the barrier to the outcome, and when it ended.
async fn attempted(
    desk: &Desk,
    clock: &Clock,
    state: &State,
    cx: context::Context,
    now: Instant,
    claim: &Arc<Claim>,
) -> (Ended, Instant) {
    let core = &*desk.core;
    let (key, echoes) = (cx.key().clone(), &core.surroundings.echoes);
    let tally = core.metrics.tally(desk.index);
    let first = cx.attempt() == 0;
    if echoes.is_all(&key, cx.causes()) {
        core.metrics.filtered();
        tracing::debug!("nothing is new but what the last run wrote");
        return (Ended::Outcome(Outcome::Done), now);
    }
    let mut started = now;
    if core.surroundings.writes.has(&key) {
        if let Some(ended) = barrier(core, clock, &key).await {
            tally.ended(&ended, Duration::ZERO);
            return (ended, clock.now());
        }
        started = clock.now();
    }
    // a stop or a pause may have begun while the run waited, and the worker is asked to stop only after others
    if !core.gate.is_let_through() {
        return (Ended::NotBegun, started);
    }
    state.reconciling.set(true);
    let mut reconcile = Reconcile::new(core.pool.as_ref(), &core.runner, cx, claim);
    let ended = match poll!(&mut reconcile) {
        // most end at once, and need no timer
        Poll::Ready(ended) => Ok(ended),
        Poll::Pending => {
            let left = core.deadline.saturating_sub(clock.now() - started);
            tokio::select! {
                biased;
                ended = &mut reconcile => Ok(ended),
                () = core.gate.demoted() => Err(Ended::Demoted),
                () = clock.sleep(left) => Err(Ended::TimedOut(core.deadline)),
            }
        }
    };
    let ended = match ended {
        Ok(ended) => ended,
        Err(cut) => {
            reconcile.cancel().await;
            Ok(cut)
        }
    };
    let at = clock.now();
    let took = at.saturating_duration_since(started);
    match ended {
        Ok(ended) => {
            echoes.ended(&key, &ended);
            tally.ended(&ended, took);
            match &ended {
                Ended::Outcome(outcome) => tracing::debug!(?took, ?outcome, "reconciled"),
                Ended::Failed {
                    fault: Fault::Conflict,
                    ..
                }
                | Ended::Demoted => tracing::debug!(?took, "{ended}"),
                _ => {
                    complain(core, &ended, first, took, at);
                    traced_as_failed();
                }
            }
            (ended, at)
        }
        Err(payload) => {
            tally.ended(&Ended::Panicked(String::new()), took);
            traced_as_failed();
            resume_unwind(payload)
        }
    }
}

/// For those who look at traces: nothing is logged in the run's span after this.
fn traced_as_failed() {
    Span::current().record("otel.status_code", "ERROR");
}

/// Tells of a failure: parking is told of as an error, whatever was said before.
fn complain(core: &DispatchCore, ended: &Ended, first: bool, took: Duration, now: Instant) {
    match core.complaints.tell(first, now) {
        Tell::Aloud { unheard: 0 } => tracing::warn!(?took, "{ended}"),
        Tell::Aloud { unheard } => {
            tracing::warn!(?took, unheard, "{ended}; before it others failed unheard");
        }
        Tell::Quietly => tracing::debug!(?took, "{ended}"),
    }
}

/// Waits until the caches show what runs of `key` wrote: most have waited before, without a worker. The run is over before it began where that cannot
/// be known.
async fn barrier(core: &DispatchCore, clock: &Clock, key: &Key) -> Option<Ended> {
    let Surroundings { writes, client, .. } = &*core.surroundings;
    let opened = tokio::select! {
        biased;
        opened = writes.barrier(key, client, clock, &core.metrics) => opened,
        () = clock.sleep(core.deadline) => Err("the server does not say what became of earlier writes".to_owned()),
    };
    match opened {
        Ok(()) => None,
        Err(message) => {
            tracing::debug!("{message}");
            let fault = Fault::Infrastructure { retry_after: None };
            Some(Ended::Failed { message, fault })
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outcome(outcome) => outcome.fmt(f),
            Self::Failed { message, .. } => f.write_str(message),
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::TimedOut(deadline) => write!(f, "cancelled: not finished within {deadline:?}"),
            Self::Undecodable(path) => write!(f, "the object does not decode: {path}"),
            Self::NotBegun => f.write_str("put back before it began"),
            Self::Demoted => f.write_str("cancelled: this process does not lead any more"),
            Self::Aborted => f.write_str("the worker was lost before it finished"),
        }
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
