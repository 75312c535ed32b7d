//! The actor that carries out what the roster says.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};

use actix::{Actor, ActorFuture, AsyncContext, Handler, Message, Running};
use tokio::sync::oneshot;

use crate::child::{Berth, Ending, Event, Launch, Report, Superior};
use crate::clock::Alarm;
use crate::context::Context;
use crate::control::Order;
use crate::error::{SpecError, StartError, StillRunning, StopError};
use crate::exit::{Exit, Failure};
use crate::intensity::Intensity;
use crate::link::Link;
use crate::roster::{Action, Roster, Terms, Token};
use crate::spec::{ChildSpec, Children, Strategy};
use crate::stats::{Node, NodeKind, Standing};
use crate::thread::Thread;

/// How long the task of a killed actor may take to end: a handler that runs cannot be interrupted.
pub(crate) const GRACE: Duration = Duration::from_secs(1);
/// The same for a supervisor, which gives its own children their grace first.
pub(crate) const SUPERVISOR_GRACE: Duration = Duration::from_secs(3);

/// The actor behind a [`SupervisorSpec`](crate::SupervisorSpec).
pub(crate) struct Supervisor {
    link: Link,
    intensity: Option<Intensity>,
    roster: Roster,
    members: BTreeMap<Token, Member>,
    /// The token of each id.
    ids: BTreeMap<String, Token>,
    /// Children that `started` is to take.
    specs: Vec<ChildSpec>,
    /// With what this incarnation ends once everything below it has.
    verdict: Exit,
}

struct Member {
    node: Arc<Node>,
    thread: Thread,
    /// Present until the first start.
    launch: Option<Launch>,
    added: Option<oneshot::Sender<Result<(), StartError>>>,
    removed: Vec<oneshot::Sender<Result<(), StopError>>>,
}

/// Adds a child to a supervisor that runs.
pub(crate) struct Add(
    pub(crate) ChildSpec,
    pub(crate) oneshot::Sender<Result<(), StartError>>,
);

/// Stops a child for good.
pub(crate) struct Remove(
    pub(crate) String,
    pub(crate) oneshot::Sender<Result<(), StopError>>,
);

impl Message for Report {
    type Result = ();
}

impl Message for Add {
    type Result = ();
}

impl Message for Remove {
    type Result = ();
}

impl Supervisor {
    pub(crate) fn new(
        link: &Link,
        strategy: Strategy,
        intensity: Option<Intensity>,
        build: &dyn Fn(&mut Children),
    ) -> Supervisor {
        let mut children = Children::new(link.clone());
        build(&mut children);
        Supervisor {
            link: link.clone(),
            intensity,
            roster: Roster::new(strategy, intensity, link.entropy().clone()),
            members: BTreeMap::new(),
            ids: BTreeMap::new(),
            specs: children.into_specs(),
            verdict: Exit::Shutdown,
        }
    }

    fn now(&self) -> Instant {
        self.link.clock().now()
    }

    fn check(&self, spec: &ChildSpec) -> Result<(), SpecError> {
        let supervisor = self.link.path().to_owned();
        let child = spec.id.clone();
        if child.is_empty() {
            return Err(SpecError::NoId { supervisor });
        }
        if self.ids.contains_key(&child) {
            return Err(SpecError::Duplicate { supervisor, child });
        }
        match self.intensity {
            Some(intensity) if !intensity.reachable_with(&spec.backoff) => {
                Err(SpecError::Unreachable {
                    supervisor,
                    child,
                    max: intensity.max,
                    period: intensity.period,
                    needed: spec.backoff.longest(intensity.max),
                })
            }
            _ => Ok(()),
        }
    }

    fn admit(&mut self, spec: ChildSpec, added: Option<oneshot::Sender<Result<(), StartError>>>) {
        // unique in the process: a supervisor's mailbox outlives its incarnations, and so may reports of their children
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let token = NEXT.fetch_add(1, Ordering::Relaxed);
        let ChildSpec {
            id,
            restart,
            shutdown,
            backoff,
            thread,
            gauge,
            below,
            launch,
        } = spec;
        let thread = thread.or(&self.link.thread);
        let (kind, grace) = match below {
            Some(below) => (
                NodeKind::Supervisor {
                    strategy: below.strategy,
                    address: below.address,
                },
                SUPERVISOR_GRACE,
            ),
            None => (NodeKind::Actor, GRACE),
        };
        let path = format!("{}/{id}", self.link.path()).into();
        let node = Arc::new(Node::new(path, id, kind, thread.name(), gauge, self.now()));
        self.link.node.adopt(token, Arc::clone(&node));
        self.roster.add(
            token,
            Terms {
                restart,
                shutdown,
                backoff,
                grace,
                added_later: added.is_some(),
            },
        );
        let member = Member {
            node,
            thread,
            launch: Some(launch),
            added,
            removed: Vec::new(),
        };
        self.ids.insert(member.node.id.clone(), token);
        self.members.insert(token, member);
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

    fn carry_out(&mut self, action: Action, now: Instant, ctx: &mut Context<Self>) {
        match action {
            Action::Start(token) => self.start(token, now, ctx),
            Action::Up(token) => {
                if let Some(member) = self.members.get_mut(&token) {
                    member.node.stand(Standing::Running);
                    if let Some(added) = member.added.take() {
                        let _ = added.send(Ok(()));
                    }
                }
            }
            Action::Stop(token) => self.order(
                token,
                |node| node.control.order(Order::Stop),
                Standing::Stopping,
            ),
            Action::Kill(token) => self.order(token, Node::kill, Standing::Stopping),
            Action::Release(token) => {
                if let Some(member) = self.members.get(&token) {
                    member.node.control.order(Order::Release);
                }
            }
            Action::Wait { token, until } => self.stand(token, Standing::Waiting { until }),
            Action::Rest(token) => self.stand(token, Standing::Stopped),
            Action::NotStarted { token, exit } => {
                if let Some(member) = self.members.get_mut(&token) {
                    member.node.stand(Standing::Failed);
                    if let Some(added) = member.added.take() {
                        let _ = added.send(Err(StartError::failed(&member.node.path, exit)));
                    }
                }
            }
            Action::Forget { token, running } => self.forget(token, running),
            Action::Ready => ctx.release_start(),
            Action::Escalate { token, exit } => {
                let child = self
                    .members
                    .get(&token)
                    .map_or_else(String::new, |member| member.node.path.to_string());
                tracing::error!(
                    path = self.link.path(),
                    child,
                    "supervisor gives up: its child {exit}"
                );
                self.verdict = Exit::Escalated {
                    child,
                    cause: Box::new(exit),
                };
            }
            Action::Finish => ctx.end(self.verdict.clone()),
        }
    }

    fn stand(&self, token: Token, standing: Standing) {
        if let Some(member) = self.members.get(&token) {
            member.node.stand(standing);
        }
    }

    fn order(&self, token: Token, give: impl FnOnce(&Node) -> bool, standing: Standing) {
        if let Some(member) = self.members.get(&token) {
            member.node.stand(standing);
            // a task that is gone has reported so, and the report is on its way
            give(&member.node);
        }
    }

    fn start(&mut self, token: Token, now: Instant, ctx: &mut Context<Self>) {
        let Some(member) = self.members.get_mut(&token) else {
            return;
        };
        {
            let mut record = member.node.record();
            record.standing = Standing::Starting;
            record.since = now;
        }
        if let Some(launch) = member.launch.take() {
            launch(Berth {
                token,
                node: Arc::clone(&member.node),
                registry: Arc::clone(&self.link.registry),
                thread: member.thread.clone(),
                superior: Superior::Supervisor(ctx.me().clone()),
            });
            return;
        }
        member.node.record().restarts += 1;
        if !member.node.control.order(Order::Restart) {
            let ending = Ending {
                exit: Exit::Killed,
                uptime: Duration::ZERO,
                started: false,
                gone: true,
            };
            self.roster.exited(token, ending, now);
        }
    }

    fn forget(&mut self, token: Token, running: bool) {
        let Some(member) = self.members.remove(&token) else {
            return;
        };
        let node = member.node;
        node.stand(if running {
            Standing::Stopping
        } else {
            Standing::Stopped
        });
        self.ids.remove(&node.id);
        self.link.node.disown(token);
        let path = node.path.to_string();
        self.link.registry.abandon(node);
        if running {
            tracing::error!(
                path,
                "actor blocks its thread and could not be ended: it is left behind, still running"
            );
        }
        if let Some(added) = member.added {
            let _ = added.send(Err(StartError::Stopped { path: path.clone() }));
        }
        for removed in member.removed {
            let _ = removed.send(if running {
                Err(StillRunning {
                    paths: vec![path.clone()],
                }
                .into())
            } else {
                Ok(())
            });
        }
    }

    fn note_exit(&self, token: Token, ending: &Ending) {
        let Some(member) = self.members.get(&token) else {
            return;
        };
        let path = &*member.node.path;
        let Ending {
            exit,
            uptime,
            started,
            ..
        } = ending;
        member.node.record().last_exit = Some(exit.clone());
        if exit.is_orderly() {
            tracing::debug!(path, ?uptime, started, "actor {exit}");
        } else {
            tracing::warn!(path, ?uptime, started, "actor {exit}");
        }
    }
}

impl Actor for Supervisor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.hold_start();
        for left in self.link.node.disown_all() {
            self.link.registry.abandon(left);
        }
        for spec in std::mem::take(&mut self.specs) {
            if let Err(error) = self.check(&spec) {
                return ctx.fail(Failure::fatal(error));
            }
            self.admit(spec, None);
        }
        ctx.spawn(Timer(Alarm::default()));
        self.step(ctx, Roster::settle);
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
        for member in self.members.values() {
            member.node.kill();
            member.node.control.order(Order::Release);
        }
    }
}

impl Handler<Report> for Supervisor {
    type Result = ();

    fn handle(&mut self, Report { token, event }: Report, ctx: &mut Context<Self>) {
        match event {
            Event::Started => self.step(ctx, |roster, now| roster.started(token, now)),
            Event::Exited(ending) => {
                self.note_exit(token, &ending);
                self.step(ctx, |roster, now| roster.exited(token, ending, now));
            }
            Event::Left => self.step(ctx, |roster, now| roster.left(token, now)),
        }
    }
}

impl Handler<Add> for Supervisor {
    type Result = ();

    fn handle(&mut self, Add(spec, reply): Add, ctx: &mut Context<Self>) {
        if !self.roster.is_open() {
            let path = format!("{}/{}", self.link.path(), spec.id);
            let _ = reply.send(Err(StartError::Stopped { path }));
        } else if let Err(error) = self.check(&spec) {
            let _ = reply.send(Err(error.into()));
        } else {
            self.admit(spec, Some(reply));
            self.step(ctx, Roster::settle);
        }
    }
}

impl Handler<Remove> for Supervisor {
    type Result = ();

    fn handle(&mut self, Remove(id, reply): Remove, ctx: &mut Context<Self>) {
        let token = self.ids.get(&id).copied();
        match token.and_then(|token| Some((token, self.members.get_mut(&token)?))) {
            Some((token, member)) => {
                member.removed.push(reply);
                self.step(ctx, |roster, now| roster.remove(token, now));
            }
            None => {
                let path = format!("{}/{id}", self.link.path());
                let _ = reply.send(Err(StopError::NotFound { path }));
            }
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
