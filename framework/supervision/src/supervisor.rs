//! The actor that carries out what the roster says.

mod actions;
mod check;
mod commands;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};

use actix::fut::wrap_future;
use actix::{Actor, ActorFuture, ActorFutureExt, AsyncContext, Handler, Message, Running};
use tokio::sync::oneshot;

use crate::child::{Launch, News, Report};
use crate::clock::Alarm;
use crate::context::Context;
use crate::control::Order;
use crate::error::{SpecError, StartError, StopError};
use crate::events::What;
use crate::exit::{Exit, Failure};
use crate::kin::{ById, ByToken, Kin};
use crate::link::Link;
use crate::roster::{Roster, Terms, Token};
use crate::spec::{ChildSpec, Children, Policy};
use crate::stats::{Node, NodeKind};

/// How long the task of a killed actor may take to end: a handler that runs cannot be interrupted.
pub(crate) const GRACE: Duration = Duration::from_secs(1);
/// The same for a supervisor, which gives its own children their grace first: less the deeper it stands, so that whoever blocks is given up from below.
pub(crate) const SUPERVISOR_GRACE: Duration = Duration::from_secs(3);

fn supervisor_grace(above: &str) -> Duration {
    let depth = above.matches('/').count().min(16);
    GRACE + (SUPERVISOR_GRACE - GRACE) / (1 << depth)
}

/// The actor behind a [`SupervisorSpec`](crate::SupervisorSpec).
pub(crate) struct Supervisor {
    link: Link,
    policy: Policy,
    roster: Roster,
    members: ByToken,
    ids: ById,
    /// Of those that were never started.
    launches: BTreeMap<Token, Launch>,
    /// Who wait for a child to start.
    starting: BTreeMap<Token, Reply<StartError>>,
    /// Who wait for a child to stop.
    stopping: BTreeMap<Token, Vec<Reply<StopError>>>,
    /// Children that `started` is to take.
    specs: Vec<ChildSpec>,
    /// Children of an incarnation before that ended without them, until their tasks are gone.
    orphans: ByToken,
    /// With what this incarnation ends once everything below it has.
    verdict: Exit,
}

pub(crate) type Reply<E> = oneshot::Sender<Result<(), E>>;

/// A change to the children of a supervisor that runs.
pub(crate) enum Command {
    /// Takes and starts a child.
    Add(ChildSpec, Reply<StartError>),
    /// Stops a child, whose place stays.
    Terminate(String, Reply<StopError>),
    /// Starts a child that does not run.
    Restart(String, Reply<StartError>),
    /// Forgets a child that does not run.
    Delete(String, Reply<StopError>),
    /// Stops a child and forgets it.
    Remove(String, Reply<StopError>),
}

impl Message for Report {
    type Result = ();
}

impl Message for Command {
    type Result = ();
}

impl Supervisor {
    pub(crate) fn new(link: &Link, policy: Policy, build: &dyn Fn(&mut Children)) -> Supervisor {
        let mut children = Children::new(link.clone());
        build(&mut children);
        Supervisor {
            link: link.clone(),
            policy,
            roster: Roster::new(
                policy,
                supervisor_grace(link.path()),
                link.entropy().clone(),
            ),
            members: ByToken::new(),
            ids: ById::new(),
            launches: BTreeMap::new(),
            starting: BTreeMap::new(),
            stopping: BTreeMap::new(),
            specs: children.into_specs(),
            orphans: ByToken::new(),
            verdict: Exit::Shutdown,
        }
    }

    fn now(&self) -> Instant {
        self.link.clock().now()
    }

    fn admit(&mut self, spec: ChildSpec, starting: Option<Reply<StartError>>) {
        // unique in the process: a supervisor's mailbox outlives its incarnations, and so may reports of their children
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let token = NEXT.fetch_add(1, Ordering::Relaxed);
        let ChildSpec {
            id,
            restart,
            shutdown,
            backoff,
            significant,
            thread,
            gauged,
            below,
            launch,
        } = spec;
        let thread = thread.or(&self.link.node.thread);
        let supervisor = below.is_some();
        let kind = below.map_or(NodeKind::Actor, |below| {
            NodeKind::supervisor(below, self.rung(&backoff))
        });
        let above = Some(self.link.path());
        let node = Node::new(above, &id, token, kind, thread, gauged, self.now());
        let node = Arc::new(node);
        node.record().significant = significant;
        self.link.node.adopt(&node);
        self.ids.insert(Arc::clone(&node).into());
        self.roster.add(
            token,
            Terms {
                restart,
                shutdown,
                backoff,
                supervisor,
                added_later: starting.is_some(),
                significant,
            },
        );
        self.members.insert(node.into());
        self.launches.insert(token, launch);
        self.starting.extend(starting.map(|reply| (token, reply)));
    }

    /// Lets the roster hear of something, and carries out what it says.
    fn step(&mut self, ctx: &mut Context<Self>, event: impl FnOnce(&mut Roster, Instant)) {
        let now = self.now();
        event(&mut self.roster, now);
        while !self.roster.actions.is_empty() {
            for action in std::mem::take(&mut self.roster.actions) {
                self.carry_out(action, now, ctx);
            }
        }
    }

    /// Takes the children of the specification, once nothing of an earlier incarnation runs any more.
    fn open(&mut self, ctx: &mut Context<Self>) {
        for spec in std::mem::take(&mut self.specs) {
            if let Err(error) = self.check(&spec) {
                return self.refuse(error, ctx);
            }
            self.admit(spec, None);
        }
        self.step(ctx, Roster::settle);
    }

    fn refuse(&self, error: SpecError, ctx: &mut Context<Self>) {
        ctx.fail(Failure::fatal(&error));
        self.link.registry.refuse(self.link.path(), error);
    }

    /// A task of the incarnation before is gone.
    fn bury(&mut self, orphan: Token, ctx: &mut Context<Self>) {
        self.orphans.remove(&orphan);
        if self.orphans.is_empty() {
            self.open(ctx);
        }
    }
}

impl Actor for Supervisor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.hold_start();
        self.note_failures();
        if let Err(error) = self.check_all() {
            return self.refuse(error, ctx);
        }
        // they were killed when their supervisor ended; those on other threads may not have noticed yet
        for left in self.link.node.disown_all() {
            if left.is_alive() {
                self.orphans.insert(Arc::clone(&left).into());
            }
            self.link.registry.abandon(left);
        }
        ctx.spawn(Timer(Alarm::default()));
        if self.orphans.is_empty() {
            return self.open(ctx);
        }
        let clock = self.link.clock().clone();
        let patience = wrap_future::<_, Self>(async move { clock.sleep(SUPERVISOR_GRACE).await });
        ctx.spawn(patience.map(|(), supervisor, ctx: &mut Context<Self>| {
            let orphans = std::mem::take(&mut supervisor.orphans);
            for Kin { node: left, .. } in &orphans {
                supervisor.link.registry.tell(left, || What::LeftBehind);
                left.depart(Exit::Stuck);
            }
            if let Some(Kin { node: left, .. }) = orphans.first() {
                ctx.fail(Failure::fatal(format_args!(
                    "{} of the incarnation before still runs, because it blocks its thread",
                    left.path
                )));
            }
        }));
    }

    // asked to stop, or ending: nothing may be left below when it does
    fn stopping(&mut self, ctx: &mut Context<Self>) -> Running {
        if ctx.is_ending() || self.roster.is_closed() {
            return Running::Stop;
        }
        let hasty = ctx.is_hasty();
        self.step(ctx, |roster, now| roster.close(hasty, now));
        if self.roster.is_closed() {
            Running::Stop
        } else {
            Running::Continue
        }
    }
}

crate::supervised!(Supervisor);

impl Drop for Supervisor {
    fn drop(&mut self) {
        // nothing is left here unless the supervisor itself was dropped by its thread, or panicked
        for Kin { node, .. } in &self.members {
            node.kill();
            node.control.order(Order::Release);
            if self.launches.contains_key(&node.token) {
                node.depart(Exit::Shutdown);
            }
        }
    }
}

impl Handler<Report> for Supervisor {
    type Result = ();

    fn handle(&mut self, Report { token, news }: Report, ctx: &mut Context<Self>) {
        if self.orphans.contains(&token) {
            if matches!(news, News::Left) || matches!(&news, News::Exited(ending) if ending.gone) {
                self.bury(token, ctx);
            }
            return;
        }
        match news {
            News::Started => self.step(ctx, |roster, now| roster.started(token, now)),
            News::Exited(ending) => {
                self.note_exit(token, &ending);
                let counts = ending.exit.counts();
                self.step(ctx, |roster, now| roster.exited(token, ending, now));
                if counts {
                    self.note_failures();
                }
            }
            News::Left => self.step(ctx, |roster, now| roster.left(token, now)),
        }
    }
}

/// The one timer of a supervisor, for whatever its roster waits for.
struct Timer(Alarm);

impl ActorFuture<Supervisor> for Timer {
    type Output = ();

    // The context polls this after every message, so a due time that a message changed is seen.
    fn poll(
        self: Pin<&mut Self>,
        supervisor: &mut Supervisor,
        ctx: &mut Context<Supervisor>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<()> {
        let this = self.get_mut();
        if this.0.poll(supervisor.roster.next_due(), cx).is_ready() {
            supervisor.step(ctx, Roster::tick);
            // others on the thread first: ten thousand may be due at once
            if this.0.poll(supervisor.roster.next_due(), cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests;
