//! Prometheus metrics. Gauges are read from state at the scrape, never kept by paired increments; series end with what they tell of.

use std::{sync::Arc, time::Duration};

use boatswain_supervision::Clock;
use prometheus::{
    Gauge, Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts, Registry,
    core::{Collector, Desc},
    proto::MetricFamily,
};

use crate::{
    dispatch::{Ended, InFlight, ShardView},
    reconcile::{Fault, Outcome},
    recorder::{Recorder, RecorderCounts},
};

mod families;
mod informers;
#[cfg(test)]
mod tests;

use families::{Families, Scraped};
pub(crate) use informers::register_informers;

/// controller-runtime's buckets for the duration of a reconcile, thinned.
const RECONCILE_SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 0.8, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0,
];
/// From a watch that is ahead of the answer to the longest wait there is.
const BARRIER_SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];
/// client-go's buckets for times in the queue.
const QUEUE_SECONDS: &[f64] = &[
    1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0,
];

/// The metrics of one controller; its series leave the registry when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct ControllerMetrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    reconciles: IntCounterVec,
    duration: Histogram,
    added: IntCounter,
    queued: Histogram,
    panics: IntCounter,
    parked: IntCounter,
    filtered: IntCounter,
    predicate_failures: IntCounter,
    mapper_failures: IntCounter,
    barrier_missed: IntCounter,
    barrier_waits: Histogram,
    barrier_reads: IntCounter,
    quarantined: IntCounter,
    departed_dropped: IntCounter,
    departed_let_go: IntCounter,
}

impl ControllerMetrics {
    /// # Errors
    ///
    /// When a controller of that name has its series in `registry` already.
    pub(crate) fn register(
        controller: &str,
        registry: &Registry,
    ) -> Result<Self, prometheus::Error> {
        let opts =
            |name: &str, help: &str| Opts::new(name, help).const_label("controller", controller);
        let histogram = |name: &str, help: &str, buckets: &[f64]| HistogramOpts {
            common_opts: opts(name, help),
            buckets: buckets.to_vec(),
        };
        let queue = |name: &str, help: &str| opts(name, help).const_label("name", controller);
        let inner = Inner {
            registry: registry.clone(),
            reconciles: IntCounterVec::new(
                opts(
                    "controller_reconcile_total",
                    "Finished reconciles by result.",
                ),
                &["result"],
            )?,
            duration: Histogram::with_opts(histogram(
                "controller_reconcile_duration_seconds",
                "Duration of a reconcile.",
                RECONCILE_SECONDS,
            ))?,
            added: IntCounter::with_opts(queue(
                "workqueue_adds_total",
                "Keys queued, without coalesced ones.",
            ))?,
            queued: Histogram::with_opts(HistogramOpts {
                common_opts: queue(
                    "workqueue_queue_duration_seconds",
                    "Time a key waited in the queue.",
                ),
                buckets: QUEUE_SECONDS.to_vec(),
            })?,
            panics: IntCounter::with_opts(opts(
                "controller_reconcile_panics_total",
                "Reconciles that panicked.",
            ))?,
            parked: IntCounter::with_opts(opts(
                "controller_parked_total",
                "Keys parked after too many failures or by decision.",
            ))?,
            filtered: IntCounter::with_opts(opts(
                "controller_changes_filtered_total",
                "Changes that a predicate found not worth a run.",
            ))?,
            predicate_failures: IntCounter::with_opts(opts(
                "controller_predicate_failures_total",
                "Changes a predicate panicked on; each was taken as worth a run.",
            ))?,
            mapper_failures: IntCounter::with_opts(opts(
                "controller_mapper_failures_total",
                "Changes a mapper could not map; each is tried again.",
            ))?,
            barrier_missed: IntCounter::with_opts(opts(
                "controller_barrier_missed_total",
                "Runs that started although the cache did not show the key's last write in time.",
            ))?,
            barrier_waits: Histogram::with_opts(histogram(
                "controller_barrier_wait_seconds",
                "Time runs waited for the cache to show the key's own writes.",
                BARRIER_SECONDS,
            ))?,
            barrier_reads: IntCounter::with_opts(opts(
                "controller_barrier_live_reads_total",
                "Questions to the server about what became of a write.",
            ))?,
            quarantined: IntCounter::with_opts(opts(
                "controller_quarantined_total",
                "Changes set aside because they crashed a trigger twice.",
            ))?,
            departed_dropped: IntCounter::with_opts(opts(
                "controller_departed_dropped_total",
                "Last states of deleted objects forgotten because too many waited to be told.",
            ))?,
            departed_let_go: IntCounter::with_opts(opts(
                "controller_departed_let_go_total",
                "Deleted objects whose reconciler failed at being told until the attempts were used up.",
            ))?,
        };
        for collector in inner.collectors() {
            registry.register(collector)?;
        }
        Ok(Self(Arc::new(inner)))
    }

    pub(crate) fn reconciled(&self, ended: &Ended, took: Duration) {
        let result = match ended {
            Ended::Outcome(Outcome::Done) => "success",
            Ended::Outcome(Outcome::RequeueAfter(_)) => "requeue_after",
            Ended::Outcome(Outcome::Retry) => "retry",
            Ended::Outcome(Outcome::GiveUp(_)) => "give_up",
            Ended::Failed {
                fault: Fault::Conflict,
                ..
            } => "conflict",
            Ended::Failed { .. } => "error",
            Ended::Panicked(_) => {
                self.0.panics.inc();
                "panic"
            }
            Ended::TimedOut(_) => "timeout",
            Ended::Undecodable(_) => "undecodable",
            Ended::Aborted => "aborted",
        };
        self.0.reconciles.with_label_values(&[result]).inc();
        self.0.duration.observe(took.as_secs_f64());
    }

    pub(crate) fn added(&self) {
        self.0.added.inc();
    }

    pub(crate) fn queued_for(&self, waited: Duration) {
        self.0.queued.observe(waited.as_secs_f64());
    }

    pub(crate) fn parked(&self) {
        self.0.parked.inc();
    }

    pub(crate) fn filtered(&self) {
        self.0.filtered.inc();
    }

    pub(crate) fn predicate_failed(&self) {
        self.0.predicate_failures.inc();
    }

    pub(crate) fn mapper_failed(&self) {
        self.0.mapper_failures.inc();
    }

    pub(crate) fn barrier_waited(&self, waited: Duration) {
        self.0.barrier_waits.observe(waited.as_secs_f64());
    }

    pub(crate) fn barrier_read(&self) {
        self.0.barrier_reads.inc();
    }

    pub(crate) fn quarantined(&self) {
        self.0.quarantined.inc();
    }

    pub(crate) fn departed_dropped(&self) {
        self.0.departed_dropped.inc();
    }

    pub(crate) fn departed_let_go(&self) {
        self.0.departed_let_go.inc();
    }

    pub(crate) fn barrier_missed(&self) {
        self.0.barrier_missed.inc();
    }
}

impl Inner {
    fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![
            Box::new(self.reconciles.clone()),
            Box::new(self.duration.clone()),
            Box::new(self.added.clone()),
            Box::new(self.queued.clone()),
            Box::new(self.panics.clone()),
            Box::new(self.parked.clone()),
            Box::new(self.filtered.clone()),
            Box::new(self.predicate_failures.clone()),
            Box::new(self.mapper_failures.clone()),
            Box::new(self.barrier_missed.clone()),
            Box::new(self.barrier_waits.clone()),
            Box::new(self.barrier_reads.clone()),
            Box::new(self.quarantined.clone()),
            Box::new(self.departed_dropped.clone()),
            Box::new(self.departed_let_go.clone()),
        ]
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for collector in self.collectors() {
            // an error only says that it was not there
            let _ = self.registry.unregister(collector);
        }
    }
}

/// Registers gauges that are read from a controller's shards at the scrape.
pub(crate) fn register_shards(
    controller: &str,
    shards: Vec<ShardView>,
    in_flight: InFlight,
    clock: &Clock,
    registry: &Registry,
) -> Result<(), prometheus::Error> {
    let label =
        |name: &str, help: &str| Opts::new(name, help).const_label("controller", controller);
    let counts = shards.clone();
    let sum = move |of: fn(&crate::dispatch::Counts) -> usize| {
        let counts = counts.clone();
        move || counts.iter().map(|shard| of(&shard.read())).sum::<usize>() as f64
    };
    let (running, clock) = (in_flight.clone(), clock.clone());
    let age = move |since| clock.now().saturating_duration_since(since).as_secs_f64();
    let gauges: Vec<(Opts, Box<dyn Fn() -> f64 + Send + Sync>)> = vec![
        (
            label("controller_queue_depth", "Keys ready to run."),
            Box::new(sum(|c| c.queued)),
        ),
        (
            label("workqueue_depth", "Keys ready to run.").const_label("name", controller),
            Box::new(sum(|c| c.queued)),
        ),
        (
            label(
                "controller_queue_high_water",
                "Most keys that were ready to run at once, summed over shards.",
            ),
            Box::new(sum(|c| c.high_water)),
        ),
        (
            label(
                "controller_waiting_keys",
                "Keys that wait for a retry or a requeue.",
            ),
            Box::new(sum(|c| c.waiting)),
        ),
        (
            label("controller_parked_keys", "Keys that are parked."),
            Box::new(sum(|c| c.parked)),
        ),
        (
            label("controller_active_workers", "Reconciles that run now."),
            Box::new(move || running.len() as f64),
        ),
        (
            label(
                "workqueue_longest_running_processor_seconds",
                "Age of the longest running reconcile.",
            )
            .const_label("name", controller),
            Box::new(move || in_flight.oldest().map_or(0.0, &age)),
        ),
    ];
    for (opts, read) in gauges {
        registry.register(Box::new(Computed {
            gauge: Gauge::with_opts(opts)?,
            read,
        }))?;
    }
    Ok(())
}

/// A gauge whose value is computed at the scrape.
struct Computed {
    gauge: Gauge,
    read: Box<dyn Fn() -> f64 + Send + Sync>,
}

impl Collector for Computed {
    fn desc(&self) -> Vec<&Desc> {
        self.gauge.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.gauge.set((self.read)());
        self.gauge.collect()
    }
}

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
