//! Prometheus metrics. Gauges are read from state at the scrape, never kept by paired increments; series end with what they tell of.

use prometheus::Registry;

use crate::recorder::{Recorder, RecorderCounts};

mod controllers;
mod families;
mod informers;
mod leadership;
mod requests;
#[cfg(test)]
mod tests;

pub(crate) use controllers::{ControllerMetrics, Roster, register_controllers};
use families::{Families, Scraped};
pub(crate) use informers::register_informers;
pub(crate) use leadership::register_leadership;
pub(crate) use requests::register_requests;

/// Registers what became of Events.
pub(crate) fn register_recorder(
    recorder: &Recorder,
    registry: &Registry,
) -> Result<(), prometheus::Error> {
    let recorder = recorder.clone();
    registry.register(Box::new(Scraped::new(recorder_families, move || {
        recorder.counts()
    })?))
}

fn recorder_families(families: &mut Families, counts: Option<&RecorderCounts>) {
    type Read = fn(&RecorderCounts) -> u64;
    let totals: [(&'static str, &'static str, Read); 3] = [
        ("event_recorder_written_total", "Events written.", |c| {
            c.written
        }),
        (
            "event_recorder_dropped_total",
            "Events dropped because too many waited.",
            |c| c.dropped,
        ),
        (
            "event_recorder_failed_total",
            "Events the API server did not take.",
            |c| c.failed,
        ),
    ];
    for (name, help, read) in totals {
        families.counter(name, help, &[], counts.map(|counts| (vec![], read(counts))));
    }
    families.gauge(
        "event_recorder_waiting",
        "Events that wait to be written.",
        &[],
        counts.map(|counts| (vec![], counts.waiting as f64)),
    );
}
