//! Prometheus metrics. Gauges are read from state at the scrape, never kept by paired increments; series end with what they tell of.

use prometheus::Registry;

use crate::recorder::{Accounts, RecorderView};

mod controllers;
mod families;
mod informers;
mod leadership;
mod requests;
#[cfg(test)]
mod tests;

pub(crate) use controllers::{ControllerMetrics, ERRORS, Roster, Seen, register_controllers};
use families::{Families, Scraped};
pub(crate) use informers::register_informers;
pub(crate) use leadership::register_leadership;
pub(crate) use requests::register_requests;

/// Registers what became of Events.
pub(crate) fn register_recorder(
    accounts: &Accounts,
    registry: &Registry,
) -> Result<(), prometheus::Error> {
    let accounts = accounts.clone();
    registry.register(Box::new(Scraped::new(recorder_families, move || {
        accounts.view()
    })?))
}

fn recorder_families(families: &mut Families, view: Option<&RecorderView>) {
    type Read = fn(&RecorderView) -> u64;
    let totals: [(&'static str, &'static str, Read); 3] = [
        (
            "event_recorder_notes_total",
            "What controllers told, whatever became of it.",
            |view| view.counts.notes,
        ),
        (
            "event_recorder_repeated_total",
            "Notes that raised the count of an Event.",
            |view| view.counts.repeated,
        ),
        (
            "event_recorder_retries_total",
            "Requests sent again.",
            |view| view.counts.retries,
        ),
    ];
    for (name, help, read) in totals {
        families.counter(name, help, &[], view.map(|view| (vec![], read(view))));
    }
    let written = view.map(|RecorderView { counts, .. }| {
        [("create", counts.created), ("patch", counts.patched)]
            .map(|(verb, count)| (vec![verb.to_owned()], count))
    });
    families.counter(
        "event_recorder_written_total",
        "Events created, and counts of Events written.",
        &["verb"],
        written.into_iter().flatten(),
    );
    let dropped = view.map(|view| {
        let drops = view.counts.drops();
        drops.map(|(why, count)| (vec![why.label().to_owned()], count))
    });
    families.counter(
        "event_recorder_dropped_total",
        "Notes that never reached the API server.",
        &["reason"],
        dropped.into_iter().flatten(),
    );
    type Gauge = fn(&RecorderView) -> usize;
    let gauges: [(&'static str, &'static str, Gauge); 2] = [
        (
            "event_recorder_waiting",
            "Events that wait to be written.",
            |view| view.waiting,
        ),
        (
            "event_recorder_series",
            "Events whose repetitions are counted.",
            |view| view.series,
        ),
    ];
    for (name, help, read) in gauges {
        let series = view.map(|view| (vec![], read(view) as f64));
        families.gauge(name, help, &[], series);
    }
}
