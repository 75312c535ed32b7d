//! What the dashboard shows of a manager, and how it does what people ask for. No actor is asked.

mod acts;
mod handle;
mod keys;
mod views;

use std::sync::Arc;

use boatswain_cache::Key;
use boatswain_dashboard::{
    Action, ControllerView, InformerView, KeyQuery, KeyRow, KeyView, Keys, LeaseView, Parked,
    Process, Refused, Source, Top,
};
use boatswain_supervision::{Events, Operator, TreeSnapshot};
use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::{
    dispatch::ControllerHandle, explain::Doing, leader::hostname, logging, running::Observer,
    telemetry::Roster,
};

/// A manager as its dashboard sees it.
#[derive(Clone)]
pub(crate) struct Lookout(Arc<Inner>);

struct Inner {
    observer: Observer,
    operator: Operator,
    roster: Roster,
    process: Process,
}

impl Lookout {
    pub(crate) fn new(observer: Observer, operator: Operator, roster: Roster) -> Self {
        let program = std::env::current_exe().ok();
        let name = program
            .as_deref()
            .and_then(|path| path.file_stem())
            .map_or_else(|| "boatswain".into(), |name| name.to_string_lossy().into());
        let since = Timestamp::try_from(observer.clock.wall()).unwrap_or(Timestamp::MAX);
        let process = Process {
            name,
            host: hostname(),
            since_ms: views::ms(since),
            logged: None,
        };
        Self(Arc::new(Inner {
            observer,
            operator,
            roster,
            process,
        }))
    }

    fn observer(&self) -> &Observer {
        &self.0.observer
    }

    fn controller(&self, name: &str) -> Result<ControllerHandle, Refused> {
        let found = self.observer().controller(name);
        found.ok_or_else(|| Refused::Unknown(format!("there is no controller {name}")))
    }

    /// The controller called so, or all.
    fn named(&self, name: Option<&str>) -> Result<Vec<ControllerHandle>, Refused> {
        match name {
            Some(name) => Ok(vec![self.controller(name)?]),
            None => Ok(self.observer().controllers()),
        }
    }
}

/// The key that is written so.
fn key(text: &str) -> Result<Key, Refused> {
    Key::parse(text).map_err(|error| Refused::Invalid(error.to_string()))
}

impl Source for Lookout {
    fn process(&self) -> Process {
        Process {
            logged: logging::present_filter(),
            ..self.0.process.clone()
        }
    }

    fn tree(&self) -> TreeSnapshot {
        self.observer().snapshot()
    }

    fn events(&self) -> Events {
        self.observer().tree.events()
    }

    fn controllers(&self) -> Vec<ControllerView> {
        let now = self.observer().clock.now();
        let seen = self.0.roster.seen(now);
        let all = self.observer().controllers();
        all.iter()
            .map(|one| {
                let seen = seen.iter().find(|seen| seen.controller == one.name());
                views::controller(one, seen)
            })
            .collect()
    }

    fn informers(&self) -> Vec<InformerView> {
        let now = self.observer().clock.now();
        let cores = self.observer().informers.cores().into_iter();
        let cores = cores.filter(|core| !core.retired());
        cores
            .map(|core| views::informer(core.selection(), core.status(now)))
            .collect()
    }

    fn leases(&self) -> Vec<LeaseView> {
        let leases = self.observer().leases().into_iter();
        leases.map(views::lease).collect()
    }

    fn unready(&self) -> Vec<(String, String)> {
        let telemetry = &self.observer().telemetry;
        let mut failing = telemetry.ready.failing();
        // informers say more themselves
        failing.retain(|(name, _)| !name.starts_with("informer"));
        failing
    }

    fn keys(&self, query: &KeyQuery) -> Result<Keys, Refused> {
        let controllers = self.named(query.controller.as_deref())?;
        Ok(keys::search(&controllers, query))
    }

    fn top(
        &self,
        top: Top,
        controller: Option<&str>,
        limit: usize,
    ) -> Result<Vec<KeyRow>, Refused> {
        Ok(keys::top(&self.named(controller)?, top, limit))
    }

    fn explain(&self, controller: &str, name: &str) -> Result<KeyView, Refused> {
        let (controller, key) = (self.controller(controller)?, key(name)?);
        let (told, runs) = (controller.explain(&key), controller.runs(&key));
        let is_remembered = told.last.is_some() || !runs.is_empty() || told.quarantined.is_some();
        if let Doing::Unknown { why } = &told.now
            && !is_remembered
            && controller.lacks(&key)
        {
            let name = controller.name();
            return Err(Refused::Unknown(format!(
                "there is no key {key} of {name}, and no run of it is remembered: {why}; /api/v1/keys?controller={name}&q= finds keys by a part of their names"
            )));
        }
        Ok(views::explained(told, runs))
    }

    fn parked(&self, controller: Option<&str>, q: &str, limit: usize) -> Result<Parked, Refused> {
        Ok(keys::parked(&self.named(controller)?, q, limit))
    }

    fn act(&self, action: Action) -> BoxFuture<'static, Result<String, Refused>> {
        acts::act(self.clone(), action)
    }
}
