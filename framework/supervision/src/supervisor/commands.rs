//! Changes to the children while the supervisor runs.

use std::collections::btree_map::Entry;

use actix::Handler;

use super::{Command, Reply, Supervisor};
use crate::context::Context;
use crate::error::{StartError, StopError};
use crate::roster::{NotIdle, Roster, Token};
use crate::spec::ChildSpec;

impl Handler<Command> for Supervisor {
    type Result = ();

    fn handle(&mut self, command: Command, ctx: &mut Context<Self>) {
        match command {
            Command::Add(spec, reply) => self.add(spec, reply, ctx),
            Command::Restart(id, reply) => self.restart(&id, reply, ctx),
            Command::Terminate(id, reply) => {
                self.end(&id, reply, ctx, |_| Ok(()), Roster::terminate)
            }
            Command::Remove(id, reply) => self.end(&id, reply, ctx, |_| Ok(()), Roster::remove),
            Command::Delete(id, reply) => {
                let idle = |(roster, token): (&Roster, Token)| roster.is_idle(token);
                self.end(&id, reply, ctx, idle, Roster::remove);
            }
        }
    }
}

impl Supervisor {
    fn token(&self, id: &str) -> Option<Token> {
        Some(self.ids.get(id)?.node.token)
    }

    pub(super) fn child_path(&self, id: &str) -> String {
        format!("{}/{id}", self.link.path())
    }

    fn add(&mut self, spec: ChildSpec, reply: Reply<StartError>, ctx: &mut Context<Self>) {
        if !self.roster.is_open() || !self.orphans.is_empty() {
            let path = self.child_path(&spec.id);
            let _ = reply.send(Err(StartError::Stopped { path }));
        } else if let Err(error) = self.check(&spec) {
            let _ = reply.send(Err(error.into()));
        } else {
            self.admit(spec, Some(reply));
            self.step(ctx, Roster::settle);
        }
    }

    fn restart(&mut self, id: &str, reply: Reply<StartError>, ctx: &mut Context<Self>) {
        let path = self.child_path(id);
        let Some(token) = self.token(id) else {
            let _ = reply.send(Err(StartError::NoChild { path }));
            return;
        };
        match self.starting.entry(token) {
            Entry::Vacant(nobody) => nobody.insert(reply),
            Entry::Occupied(_) => {
                let _ = reply.send(Err(StartError::Running { path }));
                return;
            }
        };
        let mut revived = Ok(());
        self.step(ctx, |roster, now| revived = roster.revive(token, now));
        let refused = match revived {
            Ok(()) => return,
            Err(NotIdle::Running) => StartError::Running { path },
            Err(NotIdle::Finished) => StartError::Finished { path },
        };
        if let Some(reply) = self.starting.remove(&token) {
            let _ = reply.send(Err(refused));
        }
    }

    /// Lets `end` stop a child that `may` be stopped; answered once it has.
    fn end(
        &mut self,
        id: &str,
        reply: Reply<StopError>,
        ctx: &mut Context<Self>,
        may: impl FnOnce((&Roster, Token)) -> Result<(), NotIdle>,
        end: impl FnOnce(&mut Roster, Token, std::time::Instant),
    ) {
        let path = self.child_path(id);
        let Some(token) = self.token(id) else {
            let _ = reply.send(Err(StopError::NotFound { path }));
            return;
        };
        if may((&self.roster, token)).is_err() {
            let _ = reply.send(Err(StopError::Running { path }));
            return;
        }
        self.stopping.entry(token).or_default().push(reply);
        self.step(ctx, |roster, now| end(roster, token, now));
    }
}
