//! What the roster says, carried out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Member, Supervisor};
use crate::child::{Berth, Ending, Superior};
use crate::context::Context;
use crate::control::Order;
use crate::error::{StartError, StillRunning};
use crate::events::What;
use crate::exit::Exit;
use crate::roster::{Action, Token};
use crate::stats::{Bearing, Node, Standing, millis};

impl Supervisor {
    pub(super) fn carry_out(&mut self, action: Action, now: Instant, ctx: &mut Context<Self>) {
        match action {
            Action::Start(token) => self.start(token, now, ctx),
            Action::Up(token) => {
                if let Some(member) = self.members.get_mut(&token) {
                    member.node.stand(Standing::Running);
                    if let Some(starting) = member.starting.take() {
                        let _ = starting.send(Ok(()));
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
            Action::Wait { token, until } => {
                self.stand(token, Standing::Waiting { until });
                self.note_restart(token, until.saturating_duration_since(now));
            }
            Action::Rest(token) => {
                self.stand(token, Standing::Stopped);
                self.stopped_early(token);
            }
            Action::NotStarted { token, exit } => {
                if let Some(member) = self.members.get_mut(&token) {
                    member.node.stand(Standing::Failed);
                    if let Some(starting) = member.starting.take() {
                        let _ = starting.send(Err(StartError::failed(&member.node.path, exit)));
                    }
                }
            }
            Action::Held(token) => self.held(token),
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
                self.link
                    .registry
                    .tell(&self.link.node, || What::Escalated {
                        child: child.clone(),
                        exit: exit.clone(),
                    });
                self.verdict = Exit::Escalated {
                    child,
                    cause: Box::new(exit),
                };
            }
            Action::Conclude(token) => {
                if let Some(member) = self.members.get(&token) {
                    tracing::info!(
                        path = self.link.path(),
                        child = &*member.node.path,
                        "supervisor ends: its significant child has ended"
                    );
                    let child = member.node.path.to_string();
                    let registry = &self.link.registry;
                    registry.tell(&self.link.node, || What::Concluded { child });
                }
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
        let before = {
            let mut record = member.node.record();
            record.since = now;
            std::mem::replace(&mut record.standing, Standing::Starting)
        };
        if let Some(launch) = member.launch.take() {
            launch(Berth {
                token,
                node: Arc::clone(&member.node),
                registry: Arc::clone(&self.link.registry),
                thread: member.thread.clone(),
                rung: member.rung.clone(),
                superior: Superior::Supervisor(ctx.me().clone()),
            });
            return;
        }
        let node = Arc::clone(&member.node);
        node.record().restarts += 1;
        if !matches!(before, Standing::Waiting { .. }) {
            self.note_restart(token, Duration::ZERO);
        }
        if !node.control.order(Order::Restart) {
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
        if running {
            tracing::error!(
                path,
                "actor blocks its thread and could not be ended: it is left behind, still running"
            );
            self.link.registry.leave_behind(node);
        } else {
            // one that never had a task has nobody else to say so
            node.depart(Exit::Shutdown);
            self.link.registry.abandon(node);
        }
        if let Some(starting) = member.starting {
            let _ = starting.send(Err(StartError::Stopped { path: path.clone() }));
        }
        for stopping in member.stopping {
            let _ = stopping.send(if running {
                Err(StillRunning {
                    paths: vec![path.clone()],
                }
                .into())
            } else {
                Ok(())
            });
        }
    }

    /// Whoever waits for the start of a child that rests waits in vain.
    fn stopped_early(&mut self, token: Token) {
        if let Some(member) = self.members.get_mut(&token)
            && let Some(starting) = member.starting.take()
        {
            let path = member.node.path.to_string();
            let _ = starting.send(Err(StartError::Stopped { path }));
        }
    }

    fn held(&mut self, token: Token) {
        self.stopped_early(token);
        if let Some(member) = self.members.get_mut(&token) {
            member.node.stand(Standing::Stopped);
            for stopping in member.stopping.drain(..) {
                let _ = stopping.send(Ok(()));
            }
        }
    }

    fn note_restart(&self, token: Token, delay: Duration) {
        if let Some(Member { node, .. }) = self.members.get(&token) {
            let (streak, in_ms) = (self.roster.streak(token), millis(delay));
            node.record().streak = streak;
            let registry = &self.link.registry;
            registry.tell(node, || What::Restarting { in_ms, streak });
        }
    }

    pub(super) fn note_failures(&self) {
        let bearing = self.policy.intensity.map(|intensity| Bearing {
            intensity,
            failures: self.roster.failures(),
        });
        self.link.node.record().bearing = bearing.map(Box::new);
    }

    pub(super) fn note_exit(&self, token: Token, ending: &Ending) {
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
        if exit.is_orderly() {
            tracing::debug!(path, ?uptime, started, "actor {exit}");
        } else {
            tracing::warn!(path, ?uptime, started, "actor {exit}");
        }
    }
}
