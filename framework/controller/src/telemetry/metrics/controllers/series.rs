//! The names, labels and bounds of controller-runtime and client-go, and beside them what those do not tell.

use std::time::Duration;

use boatswain_workqueue::Lane;

use super::{Rare, Seen};
use crate::{
    dispatch::{BARRIER, Ending, QUEUE, RECONCILE, Sums},
    telemetry::metrics::families::{Families, Labels},
};

impl Seen {
    /// The value of [`CONTROLLER`].
    fn label(&self) -> Labels {
        vec![self.controller.clone()]
    }

    /// The values of [`QUEUE_OF`].
    fn queue(&self) -> Labels {
        vec![self.controller.clone(), self.controller.clone()]
    }
}

const CONTROLLER: &[&str] = &["controller"];
/// client-go knows queues by name; controller-runtime names them as their controllers.
const QUEUE_OF: &[&str] = &["name", "controller"];

/// Lanes as controller-runtime's priorities, in the order of [`Lane::ALL`]: normal work and that of the first list have the numbers they have there.
pub(super) const PRIORITIES: [(Lane, &str, &str); 3] = [
    (Lane::User, "user", "100"),
    (Lane::Normal, "normal", "0"),
    (Lane::Low, "low", "-100"),
];

/// controller-runtime's four results.
pub(super) const RESULTS: [(&str, &[Ending]); 4] = [
    ("success", &[Ending::Success]),
    ("requeue_after", &[Ending::RequeueAfter]),
    ("requeue", &[Ending::Retry, Ending::Conflict]),
    ("error", ERRORS),
];
/// Results that count as errors, as controller-runtime has it.
pub(crate) const ERRORS: &[Ending] = &[
    Ending::Error,
    Ending::GiveUp,
    Ending::Permanent,
    Ending::Panic,
    Ending::Timeout,
    Ending::Undecodable,
    Ending::Aborted,
];
/// What is not tried again before something changes.
const TERMINAL: &[Ending] = &[Ending::GiveUp, Ending::Permanent, Ending::Undecodable];

pub(super) fn families(families: &mut Families, seen: Option<&Vec<Seen>>) {
    let seen = seen.map(Vec::as_slice).unwrap_or_default();
    runs(families, seen);
    controller_runtime(families, seen);
    workqueue(families, seen);
    states(families, seen);
    let rare = Rare::ALL.into_iter().enumerate();
    for (number, (_, name, help)) in rare {
        let series = seen.iter().map(|seen| (seen.label(), seen.rare[number]));
        families.counter(name, help, CONTROLLER, series);
    }
}

fn histogram(sums: &Sums, bounds: &[u64]) -> (Vec<(f64, u64)>, u64, f64) {
    (sums.below(bounds), sums.count(), sums.seconds())
}

/// Under names of our own.
fn runs(families: &mut Families, seen: &[Seen]) {
    let results = seen.iter().flat_map(|seen| {
        Ending::ALL.into_iter().map(|ending| {
            let labels = vec![seen.controller.clone(), ending.label().to_owned()];
            (labels, seen.totals.ended(&[ending]))
        })
    });
    families.counter(
        "controller_reconcile_total",
        "Finished reconciles by result.",
        &["controller", "result"],
        results,
    );
    families.histogram(
        "controller_reconcile_duration_seconds",
        "Duration of a reconcile.",
        CONTROLLER,
        seen.iter()
            .map(|seen| (seen.label(), histogram(&seen.totals.took, RECONCILE))),
    );
    families.counter(
        "controller_reconcile_panics_total",
        "Reconciles that panicked.",
        CONTROLLER,
        seen.iter()
            .map(|seen| (seen.label(), seen.totals.ended(&[Ending::Panic]))),
    );
    families.histogram(
        "controller_barrier_wait_seconds",
        "Time runs waited for the cache to show the key's own writes.",
        CONTROLLER,
        seen.iter()
            .map(|seen| (seen.label(), histogram(&seen.barrier, BARRIER))),
    );
}

fn controller_runtime(families: &mut Families, seen: &[Seen]) {
    let results = seen.iter().flat_map(|seen| {
        RESULTS.into_iter().map(|(result, endings)| {
            let labels = vec![seen.controller.clone(), result.to_owned()];
            (labels, seen.totals.ended(endings))
        })
    });
    families.counter(
        "controller_runtime_reconcile_total",
        "Finished reconciles by controller-runtime's results.",
        &["controller", "result"],
        results,
    );
    let totals: [(&'static str, &'static str, &[Ending]); 4] = [
        (
            "controller_runtime_reconcile_errors_total",
            "Reconciles that failed, for whatever reason.",
            ERRORS,
        ),
        (
            "controller_runtime_terminal_reconcile_errors_total",
            "Reconciles that failed for good: nothing but a change can help.",
            TERMINAL,
        ),
        (
            "controller_runtime_reconcile_panics_total",
            "Reconciles that panicked.",
            &[Ending::Panic],
        ),
        (
            "controller_runtime_reconcile_timeouts_total",
            "Reconciles that were cancelled at their deadline.",
            &[Ending::Timeout],
        ),
    ];
    for (name, help, endings) in totals {
        let series = seen
            .iter()
            .map(|seen| (seen.label(), seen.totals.ended(endings)));
        families.counter(name, help, CONTROLLER, series);
    }
    families.histogram(
        "controller_runtime_reconcile_time_seconds",
        "Duration of a reconcile.",
        CONTROLLER,
        seen.iter()
            .map(|seen| (seen.label(), histogram(&seen.totals.took, RECONCILE))),
    );
    families.gauge(
        "controller_runtime_max_concurrent_reconciles",
        "How many keys may be reconciled at once.",
        CONTROLLER,
        seen.iter()
            .map(|seen| (seen.label(), seen.concurrency as f64)),
    );
    families.gauge(
        "controller_runtime_active_workers",
        "Reconciles that run now.",
        CONTROLLER,
        seen.iter()
            .map(|seen| (seen.label(), seen.running.len() as f64)),
    );
}

fn workqueue(families: &mut Families, seen: &[Seen]) {
    let depths = seen.iter().flat_map(|seen| {
        let lanes = PRIORITIES.iter().zip(seen.counts.lanes);
        lanes.map(|((_, _, priority), depth)| {
            let mut labels = seen.queue();
            labels.push((*priority).to_owned());
            (labels, depth as f64)
        })
    });
    families.gauge(
        "workqueue_depth",
        "Keys ready to run.",
        &["name", "controller", "priority"],
        depths,
    );
    families.counter(
        "workqueue_adds_total",
        "Keys queued, without coalesced ones.",
        QUEUE_OF,
        seen.iter().map(|seen| (seen.queue(), seen.totals.adds)),
    );
    families.counter(
        "workqueue_retries_total",
        "Keys that were to run after a delay, for a retry or because they asked for it.",
        QUEUE_OF,
        seen.iter().map(|seen| (seen.queue(), seen.totals.retries)),
    );
    families.histogram(
        "workqueue_queue_duration_seconds",
        "Time a key was ready before it ran.",
        QUEUE_OF,
        seen.iter()
            .map(|seen| (seen.queue(), histogram(&seen.totals.queued, QUEUE))),
    );
    families.histogram(
        "workqueue_work_duration_seconds",
        "Duration of a reconcile.",
        QUEUE_OF,
        seen.iter()
            .map(|seen| (seen.queue(), histogram(&seen.totals.took, QUEUE))),
    );
    families.gauge(
        "workqueue_unfinished_work_seconds",
        "Time spent so far on what runs now, all together.",
        QUEUE_OF,
        seen.iter().map(|seen| {
            let all: Duration = seen.running.iter().sum();
            (seen.queue(), all.as_secs_f64())
        }),
    );
    families.gauge(
        "workqueue_longest_running_processor_seconds",
        "Age of the longest running reconcile.",
        QUEUE_OF,
        seen.iter().map(|seen| {
            let longest = seen.running.iter().max().copied().unwrap_or_default();
            (seen.queue(), longest.as_secs_f64())
        }),
    );
}

fn states(families: &mut Families, seen: &[Seen]) {
    type Read = fn(&Seen) -> f64;
    let gauges: [(&'static str, &'static str, Read); 10] = [
        ("controller_queue_depth", "Keys ready to run.", |s| {
            s.counts.queued as f64
        }),
        (
            "controller_queue_high_water",
            "Most keys that were ready to run at once, summed over shards.",
            |s| s.counts.high_water as f64,
        ),
        (
            "controller_waiting_keys",
            "Keys that wait for a retry or a requeue.",
            |s| s.counts.waiting as f64,
        ),
        (
            "controller_held_keys",
            "Keys that wait for the caches to show what their last runs wrote.",
            |s| s.counts.held as f64,
        ),
        ("controller_parked_keys", "Keys that are parked.", |s| {
            s.counts.parked as f64
        }),
        (
            "controller_failing_keys",
            "Keys that failed, have not succeeded since and are not parked.",
            |s| s.failing.len() as f64,
        ),
        (
            "controller_failing_seconds",
            "How long the longest of the keys that fail has been failing; 0 where none does.",
            |s| {
                let longest = s.failing.iter().max().copied().unwrap_or_default();
                longest.as_secs_f64()
            },
        ),
        (
            "controller_paused",
            "1 while somebody holds its runs back.",
            |s| f64::from(u8::from(s.paused)),
        ),
        (
            "controller_degraded",
            "1 while its reconciler panics on many keys.",
            |s| f64::from(u8::from(s.degraded)),
        ),
        (
            "controller_active_workers",
            "Reconciles that run now.",
            |s| s.running.len() as f64,
        ),
    ];
    for (name, help, read) in gauges {
        let series = seen.iter().map(|seen| (seen.label(), read(seen)));
        families.gauge(name, help, CONTROLLER, series);
    }
    let ages = seen.iter().flat_map(|seen| {
        let lanes = PRIORITIES.iter().zip(seen.oldest);
        lanes.map(|((_, lane, _), age)| {
            let labels = vec![seen.controller.clone(), (*lane).to_owned()];
            (labels, age.as_secs_f64())
        })
    });
    families.gauge(
        "controller_queue_oldest_age_seconds",
        "How long the key that stands longest in a lane has been ready; 0 for an empty lane.",
        &["controller", "lane"],
        ages,
    );
}
