//! What the roster says, carried out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Supervisor;
use crate::child::{Berth, Ending, Superior};
use crate::context::Context;
use crate::control::Order;
use crate::error::{StartError, StillRunning};
use crate::events::What;
use crate::exit::Exit;
use crate::kin::Kin;
use crate::roster::{Action, Token};
use crate::stats::{Bearing, Node, Standing, lock, millis};

impl Supervisor {
    pub(super) fn carry_out(&mut self, action: Action, now: Instant, ctx: &mut Context<Self>) {
        match action {
            Action::Start(token) => self.start(token, now, ctx),
            Action::Up(token) => {
                self.stand(token, Standing::Running);
                if let Some(starting) = self.starting.remove(&token) {
                    let _ = starting.send(Ok(()));
                }
            }
            Action::Stop(token) => self.order(
                token,
                |node| node.control.order(Order::Stop),
                Standing::Stopping,
            ),
            Action::Kill(token) => self.order(token, Node::kill, Standing::Stopping),
            Action::Release(token) => {
                if let Some(Kin { node, .. }) = self.members.get(&token) {
                    node.control.order(Order::Release);
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
            Action::Queue(token) => self.stand(token, Standing::Starting),
            Action::NotStarted { token, exit } => {
                if let Some(Kin { node, .. }) = self.members.get(&token) {
                    node.stand(Standing::Failed);
                    if let Some(starting) = self.starting.remove(&token) {
                        let _ =
                            starting.send(Err(self.link.registry.start_error(&node.path, exit)));
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
                    .map_or_else(String::new, |kin| kin.node.path.to_string());
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
                if let Some(Kin { node, .. }) = self.members.get(&token) {
                    tracing::info!(
                        path = self.link.path(),
                        child = &*node.path,
                        "supervisor ends: its significant child has ended"
                    );
                    let child = node.path.to_string();
                    let registry = &self.link.registry;
                    registry.tell(&self.link.node, || What::Concluded { child });
                }
            }
            Action::Finish => ctx.end(self.verdict.clone()),
        }
    }

    fn stand(&self, token: Token, standing: Standing) {
        if let Some(Kin { node, .. }) = self.members.get(&token) {
            node.stand(standing);
        }
    }

    fn order(&self, token: Token, give: impl FnOnce(&Node) -> bool, standing: Standing) {
        if let Some(Kin { node, .. }) = self.members.get(&token) {
            node.stand(standing);
            // a task that is gone has reported so, and the report is on its way
            give(node);
        }
    }

    fn start(&mut self, token: Token, now: Instant, ctx: &mut Context<Self>) {
        let Some(Kin { node, .. }) = self.members.get(&token) else {
            return;
        };
        let before = {
            let mut record = node.record();
            record.since = now;
            std::mem::replace(&mut record.standing, Standing::Starting)
        };
        if let Some(launch) = self.launches.remove(&token) {
            launch(Berth {
                node: Arc::clone(node),
                registry: Arc::clone(&self.link.registry),
                superior: Superior::Supervisor(ctx.me().clone()),
            });
            return;
        }
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
        let Some(Kin { node, .. }) = self.members.take(&token) else {
            return;
        };
        // dropped last: it is foreign code
        let _unlaunched = self.launches.remove(&token);
        node.stand(if running {
            Standing::Stopping
        } else {
            Standing::Stopped
        });
        self.ids.remove(node.id());
        self.link.node.disown(&node);
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
        if let Some(starting) = self.starting.remove(&token) {
            let _ = starting.send(Err(StartError::Stopped { path: path.clone() }));
        }
        for stopping in self.stopping.remove(&token).into_iter().flatten() {
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
        if let Some(Kin { node, .. }) = self.members.get(&token)
            && let Some(starting) = self.starting.remove(&token)
        {
            let path = node.path.to_string();
            let _ = starting.send(Err(StartError::Stopped { path }));
        }
    }

    fn held(&mut self, token: Token) {
        self.stopped_early(token);
        self.stand(token, Standing::Stopped);
        for stopping in self.stopping.remove(&token).into_iter().flatten() {
            let _ = stopping.send(Ok(()));
        }
    }

    fn note_restart(&self, token: Token, delay: Duration) {
        if let Some(Kin { node, .. }) = self.members.get(&token) {
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
        if let Some(office) = self.link.node.office() {
            *lock(&office.bearing) = bearing;
        }
    }

    pub(super) fn note_exit(&self, token: Token, ending: &Ending) {
        let Some(Kin { node, .. }) = self.members.get(&token) else {
            return;
        };
        let path = &*node.path;
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
