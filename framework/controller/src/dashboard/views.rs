//! What there is, as the plain data that the dashboard shows.

use std::time::Duration;

use boatswain_cache::{InformerStatus, Selection};
use boatswain_dashboard::{
    ControllerView, Durations, FailingView, InformerView, KeyRow, KeyView, Lanes, LeaseView,
    RunView, ShutView,
};
use jiff::Timestamp;

use crate::{
    dispatch::{ControllerHandle, Ending, Pause, Shut},
    explain::{Doing, Explanation, FailingKey, LastRun, Waits, Whole},
    leader::LeaseStatus,
    telemetry::{ERRORS, Seen},
};

/// Objects that are named of those that cannot be read.
const NAMED: usize = 20;

/// How long a key fails until that is a trouble: retries are for what passes.
const STUBBORN: Duration = Duration::from_secs(30);

pub(super) fn ms(at: Timestamp) -> u64 {
    u64::try_from(at.as_millisecond()).unwrap_or(0)
}

fn span(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn fine(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn lanes<T>(of: [T; 3], number: impl Fn(T) -> u64) -> Lanes {
    let [user, normal, low] = of.map(number);
    Lanes { user, normal, low }
}

pub(super) fn controller(handle: &ControllerHandle, seen: Option<&Seen>) -> ControllerView {
    let name = handle.name();
    let kind = handle.kind();
    let mut view = ControllerView {
        name: name.to_owned(),
        path: format!("root/controllers/{name}"),
        kind: kind.as_ref().map_or_else(String::new, |k| k.kind.clone()),
        resource: kind.map_or_else(String::new, |kind| kind.resource()),
        shut: handle.shut().map(|why| shut(why, handle.paused())),
        paused: handle.paused().is_some(),
        failing: failing(&handle.failing_for(STUBBORN)),
        errors: ERRORS.iter().map(|one| one.label().to_owned()).collect(),
        ..ControllerView::default()
    };
    let Some(seen) = seen else { return view };
    let counts = &seen.counts;
    view.concurrency = seen.concurrency;
    view.queued = lanes(counts.lanes, |n| n as u64);
    view.oldest_ms = lanes(seen.oldest, span);
    view.running = counts.running;
    view.longest_run_ms = seen.running.iter().max().copied().map_or(0, span);
    view.waiting = counts.waiting;
    view.held = counts.held;
    view.parked = counts.parked;
    view.degraded = seen.degraded;
    let results = Ending::ALL.into_iter().map(|ending| {
        let label = ending.label().to_owned();
        (label, seen.totals.ended(&[ending]))
    });
    view.results = results.collect();
    let (bounds, below) = seen.totals.took.cumulated().into_iter().unzip();
    view.took = Durations {
        bounds_ms: bounds,
        below,
        count: seen.totals.took.count(),
    };
    for bound in &mut view.took.bounds_ms {
        *bound *= 1000.0;
    }
    view
}

fn failing(keys: &[FailingKey]) -> Option<FailingView> {
    let longest = keys.first()?;
    Some(FailingView {
        count: keys.len(),
        key: longest.key.to_string(),
        error: longest.error.clone(),
        since_ms: ms(longest.since),
    })
}

fn shut(shut: Shut, pause: Option<Pause>) -> ShutView {
    let (state, since_ms) = match &shut {
        Shut::Closing => ("closing", None),
        Shut::Standby => ("standby", None),
        Shut::Paused(pause) => ("paused", Some(ms(pause.since))),
        Shut::NotSynced(_) => ("not_synced", None),
    };
    let why = match &shut {
        Shut::Paused(pause) => format!("paused by {}", pause.by),
        shut => match pause {
            // it would not begin then either
            Some(pause) => format!("{shut}; and paused by {}", pause.by),
            None => shut.to_string(),
        },
    };
    ShutView {
        state: state.into(),
        why,
        since_ms,
    }
}

pub(super) fn informer(selection: &Selection, status: InformerStatus) -> InformerView {
    let unreadable = status.unreadable.iter().chain(&status.undecodable);
    let counted = |counts: std::collections::BTreeMap<&'static str, u64>| {
        let counts = counts.into_iter();
        counts.map(|(what, n)| (what.to_owned(), n)).collect()
    };
    let state = format!("{:?}", status.state).to_lowercase();
    InformerView {
        name: crate::informers::name(selection),
        path: format!("root/informers/{}", selection.id()),
        unreadable_count: unreadable.clone().count(),
        unreadable: unreadable
            .take(NAMED)
            .map(|(key, why)| (key.to_string(), why.to_string()))
            .collect(),
        resource: status.resource,
        version: status.version,
        scope: status.scope,
        selector: status.selector,
        state,
        synced: status.synced,
        fresh: status.fresh,
        low_water: status.low_water,
        objects: status.objects,
        bytes: status.bytes,
        json_bytes: status.json_bytes,
        last_event_ms: status.last_event_age.map(span),
        last_contact_ms: status.last_contact_age.map(span),
        degraded: status.degraded.map(|degraded| degraded.to_string()),
        relists: counted(status.counters.relists),
        watch_ends: counted(status.counters.watch_ends),
    }
}

pub(super) fn lease(status: LeaseStatus) -> LeaseView {
    LeaseView {
        name: status.name,
        controller: status.controller,
        identity: status.identity,
        holder: status.holder,
        leads: status.leads,
        vacant: status.vacant,
        transitions: status.transitions.into(),
        renewal_ms: status.renewal.map(span),
        error: status.error,
    }
}

/// What a key is doing: in one word, since when, and why.
fn doing(now: &Doing) -> (&'static str, Option<Timestamp>, Option<String>) {
    match now {
        Doing::Idle => ("idle", None, None),
        Doing::Queued { since, .. } => ("queued", Some(*since), None),
        Doing::Running { since, .. } => ("running", Some(*since), None),
        Doing::Waiting { why, .. } => {
            let why = match why {
                Waits::Requeue => "it asked to run again then".to_owned(),
                Waits::NotReady => "it was not ready".to_owned(),
                Waits::Backoff { error } | Waits::Line { error } => error.clone(),
                Waits::Conflict => "somebody else wrote at the same time".to_owned(),
                Waits::Lost => "its worker was lost while it ran".to_owned(),
            };
            ("waiting", None, Some(why))
        }
        Doing::Held { since, what, why } => ("held", Some(*since), Some(format!("{what}; {why}"))),
        Doing::Parked { since, reason } => ("parked", Some(*since), Some(reason.clone())),
        Doing::Undecodable { since, reason } => ("undecodable", Some(*since), Some(reason.clone())),
        Doing::Unknown { why } => ("unknown", None, Some(why.clone())),
    }
}

pub(super) fn row(told: &Explanation) -> KeyRow {
    let (state, since, why) = doing(&told.now);
    let last = told.last.as_ref();
    let said = last.and_then(|run| run.decided.clone().or_else(|| run.text.clone()));
    let why = match &told.now {
        // what the run before came to says nothing of this one
        Doing::Running { .. } => None,
        // that it waits because it asked for that says less than what for
        Doing::Waiting {
            why: Waits::Requeue,
            ..
        } => last.and_then(|run| run.decided.clone()).or(why),
        _ => why.or(said),
    };
    KeyRow {
        controller: told.controller.clone(),
        key: told.key.to_string(),
        state: state.into(),
        since_ms: since.or(told.failing_since).map(ms),
        next_ms: told.next.map(ms),
        failures: told.failures,
        result: last.map(|run| run.result.to_owned()),
        took_ms: last.map(|run| fine(run.took)),
        why,
    }
}

pub(super) fn explained(told: Explanation, runs: Vec<LastRun>) -> KeyView {
    let whole = Whole {
        told: &told,
        runs: &runs,
    };
    KeyView {
        row: row(&told),
        at_ms: ms(told.at),
        text: whole.to_string(),
        shut: told.shut.as_ref().map(ToString::to_string),
        pending: told.pending.to_string(),
        quarantined: told.quarantined,
        // what is no longer remembered whole is better than nothing
        runs: match runs.is_empty() {
            true => told.last.into_iter().map(run).collect(),
            false => runs.into_iter().map(run).collect(),
        },
    }
}

fn run(run: LastRun) -> RunView {
    RunView {
        id: run.id.map(|id| id.to_string()),
        began_ms: ms(run.began),
        took_ms: fine(run.took),
        causes: run.causes.to_string(),
        trigger: run.trigger,
        attempt: run.attempt,
        seen: run.seen.map(|seen| seen.to_string()),
        result: run.result.into(),
        text: run.text,
        decided: run.decided,
        writes: run.writes,
        written: run.written,
    }
}

#[cfg(test)]
mod tests;
