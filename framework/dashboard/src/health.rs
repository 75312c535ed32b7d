//! The first line of the page: whether all is well, and if not, what is stuck, why, and since when; pure.

use std::collections::HashMap;

use boatswain_supervision::{NodeSnapshot, NodeState};

use crate::{
    history::History,
    view::{ControllerView, Health, LeaseView, Level, Overview, Trouble},
};

/// How long a trouble that has gone is remembered: one that comes back by then is the same.
const FORGET_MS: u64 = 30_000;
/// A key that has been ready for longer than that waits for too long.
const STALE_MS: u64 = 60_000;
/// A run that takes longer than that is worth a word.
const LONG_RUN_MS: u64 = 60_000;
/// What is over by then at every start and whenever others take over.
const PASSES_MS: u64 = 30_000;
/// Troubles because of which nothing is done at all; critical, unless they pass.
const IDLE: [&str; 2] = ["vacant", "unsynced"];
/// What the check of readiness is called that asks whether the API server answers.
pub(crate) const API_SERVER: &str = "api-server";
/// Seconds over which errors are counted.
const LATELY: u64 = 60;

/// Since when troubles are known.
#[derive(Default)]
pub(crate) struct Memory(HashMap<String, Since>);

struct Since {
    first_ms: u64,
    last_ms: u64,
}

impl Memory {
    /// When this was first seen, and that it still is.
    fn since(&mut self, trouble: &Trouble, now_ms: u64) -> u64 {
        let known = self.0.entry(trouble.id.clone()).or_insert(Since {
            first_ms: trouble.since_ms.min(now_ms),
            last_ms: now_ms,
        });
        known.last_ms = now_ms;
        known.first_ms = known.first_ms.min(trouble.since_ms);
        known.first_ms
    }

    fn forget(&mut self, now_ms: u64) {
        self.0
            .retain(|_, known| now_ms.saturating_sub(known.last_ms) < FORGET_MS);
    }
}

/// What is found while looking around.
struct Found {
    now_ms: u64,
    troubles: Vec<Trouble>,
}

impl Found {
    fn add(
        &mut self,
        level: Level,
        id: String,
        what: impl Into<String>,
        why: impl Into<String>,
    ) -> &mut Trouble {
        let trouble = Trouble {
            level,
            id,
            what: what.into(),
            why: why.into(),
            since_ms: self.now_ms,
            path: None,
        };
        self.troubles.push(trouble);
        let last = self.troubles.len() - 1;
        &mut self.troubles[last]
    }
}

/// What there is to say of all that is in `seen` but its health, and of what else is not ready.
pub(crate) fn judge(
    seen: &Overview,
    unready: Vec<(String, String)>,
    history: &History,
    memory: &mut Memory,
) -> Health {
    let mut found = Found {
        now_ms: seen.at_ms,
        troubles: Vec::new(),
    };
    match &seen.tree.root {
        Some(root) => node(&mut found, root),
        None => {
            let why = "it has ended";
            found.add(Level::Critical, "tree".into(), "there is no tree", why);
        }
    }
    for left in &seen.tree.left_behind {
        let id = format!("left:{}", left.path);
        let what = format!("{} could not be ended", left.path);
        found.add(Level::Critical, id, what, "it blocks its thread");
    }
    for informer in &seen.informers {
        if let Some(why) = &informer.degraded {
            let id = format!("informer:{}", informer.name);
            let what = format!("the cache of {} is not kept up to date", informer.name);
            found.add(Level::Warning, id, what, why).path = Some(informer.path.clone());
        }
        if informer.unreadable_count > 0 {
            let id = format!("unreadable:{}", informer.name);
            let n = informer.unreadable_count;
            let what = format!("{} of {} cannot be read", objects(n), informer.name);
            let first = informer.unreadable.iter().next();
            let why = first.map_or(String::new(), |(key, why)| format!("{key}: {why}"));
            found.add(Level::Warning, id, what, why);
        }
    }
    for one in &seen.controllers {
        controller(&mut found, one, history.lately(&one.name, LATELY));
    }
    for lease in &seen.leases {
        self::lease(&mut found, lease);
    }
    for (name, why) in unready {
        let id = format!("ready:{name}");
        // without it nothing works, whatever else suffers from that
        let (level, what) = match name.as_str() {
            API_SERVER => (Level::Critical, "the API server does not answer".into()),
            name => (Level::Warning, format!("{name} is not ready")),
        };
        found.add(level, id, what, why);
    }
    let mut troubles = found.troubles;
    for trouble in &mut troubles {
        trouble.since_ms = memory.since(trouble, seen.at_ms);
        let lasts = seen.at_ms.saturating_sub(trouble.since_ms) > PASSES_MS;
        if lasts && IDLE.iter().any(|id| trouble.id.starts_with(id)) {
            trouble.level = Level::Critical;
        }
    }
    memory.forget(seen.at_ms);
    troubles.sort_by(|a, b| {
        let worst = b.level.cmp(&a.level);
        worst.then(a.since_ms.cmp(&b.since_ms))
    });
    let level = troubles.first().map_or(Level::Ok, |worst| worst.level);
    Health {
        level,
        line: line(level, &troubles),
        troubles,
    }
}

fn line(level: Level, troubles: &[Trouble]) -> String {
    let others = troubles.len().saturating_sub(1);
    match (level, troubles.first()) {
        (Level::Notice | Level::Warning | Level::Critical, Some(first)) if others == 0 => {
            first.what.clone()
        }
        (Level::Notice | Level::Warning | Level::Critical, Some(first)) => {
            format!("{} (and {others} more)", first.what)
        }
        _ => "All is well: nothing fails, nothing is stuck".into(),
    }
}

fn objects(n: usize) -> String {
    if n == 1 {
        "1 object".into()
    } else {
        format!("{n} objects")
    }
}

fn keys(n: u64) -> String {
    if n == 1 {
        "1 key".into()
    } else {
        format!("{n} keys")
    }
}

fn node(found: &mut Found, node: &NodeSnapshot) {
    let full = &node.path;
    // everything is below the root
    let path = full.strip_prefix("root/").unwrap_or(full);
    let exit = node.last_exit.as_ref();
    let cause = || exit.map_or_else(String::new, |exit| exit.root_cause().1.to_string());
    let id = format!("node:{full}");
    let trouble = match &node.state {
        NodeState::Failed => {
            let what = format!("{path} has failed and is not coming back");
            Some((Level::Critical, what, cause()))
        }
        NodeState::Blocked => {
            let what = format!("{path} blocks its thread");
            let why = format!(
                "nothing else runs on {}; only the end of the process can help",
                node.thread
            );
            Some((Level::Critical, what, why))
        }
        NodeState::Backoff { .. } => {
            let what = match node.streak {
                0 | 1 => format!("{path} failed and is started again"),
                n => format!("{path} failed {n} times in a row and is started again"),
            };
            Some((Level::Warning, what, cause()))
        }
        NodeState::Suspended => {
            let why = "somebody suspended it".to_owned();
            Some((Level::Notice, format!("{path} is suspended"), why))
        }
        // what informers and the connection suffer from is told elsewhere
        _ if path.starts_with("informers/") || path == "connection" => None,
        _ => node.degraded.clone().map(|why| {
            let what = format!("{path} does not work as it should");
            (Level::Warning, what, why)
        }),
    };
    if let Some((level, what, why)) = trouble {
        found.add(level, id, what, why).path = Some(full.clone());
    }
    for child in &node.children {
        self::node(found, child);
    }
}

fn lease(found: &mut Found, seen: &LeaseView) {
    let (id, which, idle) = match &seen.controller {
        Some(name) => (
            format!(":{name}"),
            format!("the lease of {name}"),
            name.as_str(),
        ),
        None => (String::new(), "the lease".into(), "every controller"),
    };
    let (word, what, why) = match &seen.error {
        error if seen.vacant => {
            let free = || format!("{which} is free, and who claims it next begins");
            let what = format!("no replica is known to lead: {idle} is idle");
            ("vacant", what, error.clone().unwrap_or_else(free))
        }
        Some(error) if seen.leads => {
            let what = format!("{which} cannot be renewed");
            ("lease", what, error.clone())
        }
        Some(error) => ("lease", format!("{which} cannot be read"), error.clone()),
        None => return,
    };
    found.add(Level::Warning, format!("{word}{id}"), what, why);
}

fn controller(found: &mut Found, seen: &ControllerView, (runs, errors): (f64, f64)) {
    let name = &seen.name;
    let path = Some(seen.path.clone());
    let now_ms = found.now_ms;
    if let Some(shut) = &seen.shut {
        let (level, what) = match shut.state.as_str() {
            "paused" => (Level::Notice, format!("{name} is paused")),
            "not_synced" => (Level::Warning, format!("{name} cannot begin")),
            "standby" if seen.paused => (
                Level::Notice,
                format!("{name} is paused here, and would be if this process led"),
            ),
            "closing" => (Level::Notice, format!("{name} is stopping")),
            // others work meanwhile
            _ => (Level::Ok, String::new()),
        };
        if level > Level::Ok {
            let id = match shut.state.as_str() {
                "not_synced" => format!("unsynced:{name}"),
                _ => format!("shut:{name}"),
            };
            let trouble = found.add(level, id, what, &shut.why);
            trouble.since_ms = shut.since_ms.unwrap_or(now_ms);
            trouble.path.clone_from(&path);
        }
    }
    if seen.parked > 0 {
        let what = format!("{} of {name} gave up", keys(seen.parked as u64));
        let why = "their objects or the reconciler need a change: see the parked list";
        let trouble = found.add(Level::Warning, format!("parked:{name}"), what, why);
        trouble.path.clone_from(&path);
    }
    let oldest = seen.oldest_ms.user.max(seen.oldest_ms.normal);
    if oldest > STALE_MS && seen.shut.is_none() {
        let what = format!("keys of {name} wait for their turn");
        let why = format!(
            "{} ready, {} of {} runs in use",
            keys(seen.queued.sum()),
            seen.running,
            seen.concurrency
        );
        let trouble = found.add(Level::Warning, format!("queue:{name}"), what, why);
        trouble.since_ms = now_ms.saturating_sub(oldest);
        trouble.path.clone_from(&path);
    }
    if seen.longest_run_ms > LONG_RUN_MS {
        let what = format!("a run of {name} takes long");
        let why = "see the keys that run";
        let trouble = found.add(Level::Notice, format!("run:{name}"), what, why);
        trouble.since_ms = now_ms.saturating_sub(seen.longest_run_ms);
        trouble.path.clone_from(&path);
    }
    if let Some(failing) = &seen.failing {
        let s = if failing.count == 1 { "s" } else { "" };
        let n = keys(failing.count as u64);
        let what = format!("{n} of {name} fail{s} again and again");
        let why = format!("{}: {}", failing.key, failing.error);
        let trouble = found.add(Level::Warning, format!("failing:{name}"), what, why);
        trouble.since_ms = failing.since_ms;
        trouble.path = path;
    } else if runs >= 5.0 && errors * 2.0 >= runs {
        let what = format!("most runs of {name} fail");
        let why = format!("{errors:.0} of {runs:.0} within a minute; see the failing keys");
        found
            .add(Level::Warning, format!("errors:{name}"), what, why)
            .path = path;
    }
}

#[cfg(test)]
mod tests;
