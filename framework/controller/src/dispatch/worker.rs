//! A worker runs one key at a time and survives whatever the reconciler does.

use std::{
    any::Any,
    cell::Cell,
    fmt,
    panic::{AssertUnwindSafe, resume_unwind},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, AsyncContext as _, Handler, Running,
    WrapFuture as _,
};
use boatswain_cache::Key;
use boatswain_supervision::{Address, Clock, Context, Link, supervised};
use boatswain_workqueue::{RunId, Streak};
use futures::FutureExt as _;
use tracing::Instrument as _;

use super::{DispatchCore, Ended, Shard, Tell, offload::Reconcile, permits::Permit};
use crate::{
    context::{self, Surroundings},
    explain::Logbook,
    reconcile::{Causes, Fault, Outcome},
};

/// Runs a key once, from its shard.
#[derive(actix::Message)]
#[rtype(result = "()")]
pub(super) struct Activate {
    pub(super) key: Key,
    pub(super) attempt: u32,
    /// Whether the key is parked if this run fails by its object's fault.
    pub(super) last: bool,
    pub(super) causes: Causes,
    pub(super) ticket: Ticket,
}

/// The end of a run, to the key's shard.
#[derive(actix::Message)]
#[rtype(result = "()")]
pub(super) struct KeyDone {
    pub(super) key: Key,
    pub(super) run: RunId,
    /// How the key had been doing before this run.
    pub(super) streak: Streak,
    pub(super) ended: Ended,
}

/// One activation's claim on its seat and permit. Dropping it gives both back and tells the shard, so that no crash, kill or lost
/// message can leave a key running for ever.
pub(super) struct Ticket {
    shard: Address<Shard>,
    key: Key,
    run: RunId,
    streak: Streak,
    busy: Arc<AtomicBool>,
    permit: Option<Permit>,
    ended: Ended,
}

impl Ticket {
    pub(super) fn new(
        shard: Address<Shard>,
        key: Key,
        run: RunId,
        streak: Streak,
        busy: Arc<AtomicBool>,
        permit: Permit,
    ) -> Self {
        Self {
            shard,
            key,
            run,
            streak,
            busy,
            permit: Some(permit),
            ended: Ended::Aborted,
        }
    }

    fn finish(mut self, ended: Ended) {
        self.ended = ended;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.busy.store(false, Relaxed);
        // the permit first: the shard then finds it free when it looks for more work
        self.permit = None;
        let ended = std::mem::replace(&mut self.ended, Ended::Aborted);
        let Self { run, streak, .. } = *self;
        self.shard.tell(KeyDone {
            key: self.key.clone(),
            run,
            streak,
            ended,
        });
    }
}

pub(crate) struct Worker {
    core: Arc<DispatchCore>,
    shard: usize,
    clock: Clock,
    /// Whether the reconciler has been called and has not ended yet.
    reconciling: Rc<Cell<bool>>,
    stopping: bool,
}

impl Worker {
    pub(crate) fn new(core: Arc<DispatchCore>, shard: usize, link: &Link) -> Self {
        Self {
            core,
            shard,
            clock: link.clock().clone(),
            reconciling: Rc::default(),
            stopping: false,
        }
    }
}

supervised!(Worker);

impl Actor for Worker {
    type Context = Context<Self>;

    // a running reconcile may finish within the grace period; one that has not begun does not begin any more
    fn stopping(&mut self, ctx: &mut Self::Context) -> Running {
        if !self.reconciling.get() {
            return Running::Stop;
        }
        // the supervisor gives each of its workers, one after the other, a grace period of its own; this is the one of them all
        if !std::mem::replace(&mut self.stopping, true)
            && let Some(end) = self.core.gate.end()
        {
            let clock = self.clock.clone();
            let end = async move { clock.sleep_until(end).await };
            ctx.spawn(end.into_actor(self).map(|(), _, ctx| ctx.terminate()));
        }
        Running::Continue
    }
}

impl Handler<Activate> for Worker {
    type Result = ();

    fn handle(&mut self, activate: Activate, ctx: &mut Self::Context) {
        let Activate {
            key,
            attempt,
            last,
            causes,
            ticket,
        } = activate;
        let id = self.core.next_run(self.shard);
        let span = tracing::info_span!("reconcile", controller = %self.core.name, %key, attempt, %causes, %id);
        let surroundings = self.core.surroundings.clone();
        let cx = context::Context::new(surroundings, key, attempt, last, causes, id);
        let logbook = Logbook::open(&self.core, self.shard, &cx, self.clock.now());
        let run = run(
            self.core.clone(),
            self.shard,
            self.clock.clone(),
            cx,
            self.reconciling.clone(),
        );
        let run = AssertUnwindSafe(run).catch_unwind().instrument(span);
        ctx.spawn(run.into_actor(self).map(move |result, worker, ctx| {
            worker.reconciling.set(false);
            let (ended, panic) = match result {
                Ok(ended) => (ended, None),
                Err(payload) => {
                    let text = panic_text(payload.as_ref());
                    (Ended::Panicked(text), Some(payload))
                }
            };
            logbook.close(&ended, worker.clock.now());
            ticket.finish(ended);
            if let Some(payload) = panic {
                // the supervisor's business: it counts the crash and gives the seat a fresh incarnation
                resume_unwind(payload);
            }
            if worker.stopping {
                ctx.stop();
            }
        }));
    }
}

/// One run of the key of `cx`, from the barrier to the outcome.
async fn run(
    core: Arc<DispatchCore>,
    shard: usize,
    clock: Clock,
    cx: context::Context,
    reconciling: Rc<Cell<bool>>,
) -> Ended {
    let running = core.in_flight.enter(cx.key(), clock.now()).await;
    let tally = core.metrics.tally(shard);
    let (key, echoes) = (cx.key().clone(), &core.surroundings.echoes);
    let first = cx.attempt() == 0;
    if echoes.is_all(&key, cx.causes()) {
        core.metrics.filtered();
        tracing::debug!("nothing is new but what the last run wrote");
        return Ended::Outcome(Outcome::Done);
    }
    if let Some(ended) = barrier(&core, &clock, cx.key()).await {
        tally.ended(&ended, Duration::ZERO);
        return ended;
    }
    // a stop or a pause may have begun while the run waited, and the worker is asked to stop only after others
    if !core.gate.is_let_through() {
        return Ended::NotBegun;
    }
    let started = clock.now();
    reconciling.set(true);
    let mut reconcile = Reconcile::new(core.pool.as_ref(), core.runner.clone(), cx, running);
    let ended = tokio::select! {
        biased;
        ended = &mut reconcile => Some(ended),
        () = clock.sleep(core.deadline) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            reconcile.cancel().await;
            Ok(Ended::TimedOut(core.deadline))
        }
    };
    let took = clock.now().duration_since(started);
    match ended {
        Ok(ended) => {
            echoes.ended(&key, &ended);
            tally.ended(&ended, took);
            match &ended {
                Ended::Outcome(outcome) => tracing::debug!(?took, ?outcome, "reconciled"),
                Ended::Failed {
                    fault: Fault::Conflict,
                    ..
                } => tracing::debug!(?took, "{ended}"),
                _ => complain(&core, &ended, first, took, clock.now()),
            }
            ended
        }
        Err(payload) => {
            tally.ended(&Ended::Panicked(String::new()), took);
            resume_unwind(payload)
        }
    }
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
            Self::Outcome(Outcome::GiveUp(reason)) => write!(f, "gave up: {reason}"),
            Self::Outcome(outcome) => write!(f, "{outcome:?}"),
            Self::Failed { message, .. } => f.write_str(message),
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::TimedOut(deadline) => write!(f, "cancelled: not finished within {deadline:?}"),
            Self::Undecodable(path) => write!(f, "the object does not decode: {path}"),
            Self::NotBegun => f.write_str("put back before it began"),
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
