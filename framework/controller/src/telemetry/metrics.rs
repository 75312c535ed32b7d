//! Prometheus metrics. Gauges are read from state at the scrape, never kept by paired increments; series end with what they tell of.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use boatswain_cache::{Counters, InformerCore, InformerStatus};
use boatswain_supervision::Clock;
use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts, Registry,
    core::{Collector, Desc},
    proto::MetricFamily,
};

use crate::{
    dispatch::{Ended, InFlight, ShardView},
    reconcile::{Fault, Outcome},
    recorder::{Recorder, RecorderCounts},
};

/// controller-runtime's buckets for the duration of a reconcile, thinned.
const RECONCILE_SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 0.8, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0,
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
    mapper_failures: IntCounter,
    barrier_missed: IntCounter,
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
            mapper_failures: IntCounter::with_opts(opts(
                "controller_mapper_failures_total",
                "Changes a mapper could not map; each is tried again.",
            ))?,
            barrier_missed: IntCounter::with_opts(opts(
                "controller_barrier_missed_total",
                "Runs that started although the cache did not show the key's last write in time.",
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

    pub(crate) fn mapper_failed(&self) {
        self.0.mapper_failures.inc();
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
            Box::new(self.mapper_failures.clone()),
            Box::new(self.barrier_missed.clone()),
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

/// Registers what is read from informers at the scrape, all of them in one collector: the registry tells collectors apart by a sum of
/// hashes, which meets itself where names of namespaces differ in their last letter only.
pub(crate) fn register_informers(
    cores: &[Arc<InformerCore>],
    clock: &Clock,
    registry: &Registry,
) -> Result<(), prometheus::Error> {
    registry.register(Box::new(InformerCollector::new(
        cores.to_vec(),
        clock.clone(),
    )?))
}

/// Turns the status of informers into series; client-go's names where it had them.
struct InformerCollector {
    cores: Vec<Arc<InformerCore>>,
    clock: Clock,
    gauges: Vec<(GaugeVec, GaugeRead)>,
    counters: Vec<(IntCounterVec, CounterRead)>,
}

type GaugeRead = fn(&InformerStatus) -> f64;
type CounterRead = fn(&Counters) -> &BTreeMap<&'static str, u64>;

impl InformerCollector {
    fn new(cores: Vec<Arc<InformerCore>>, clock: Clock) -> Result<Self, prometheus::Error> {
        let gauge = |name: &str, help: &str, read: GaugeRead| {
            Ok((
                GaugeVec::new(Opts::new(name, help), &["resource", "scope"])?,
                read,
            ))
        };
        let counter = |name: &str, help: &str, label: &str, read: CounterRead| {
            let labels = ["resource", "scope", label];
            Ok((IntCounterVec::new(Opts::new(name, help), &labels)?, read))
        };
        let gauges: Result<Vec<_>, prometheus::Error> = [
            gauge("informer_objects", "Objects in the cache.", |s| {
                s.objects as f64
            }),
            gauge(
                "informer_bytes",
                "Bytes of the objects in the cache.",
                |s| s.bytes as f64,
            ),
            gauge(
                "informer_synced",
                "1 once the cache has held the whole state.",
                |s| flag(s.synced),
            ),
            gauge(
                "informer_fresh",
                "1 while the cache is kept current.",
                |s| flag(s.fresh),
            ),
            gauge(
                "informer_degraded",
                "1 while the informer cannot do its work.",
                |s| flag(s.degraded.is_some()),
            ),
            gauge(
                "informer_queued_items",
                "Keys between reflector and indexer.",
                |s| s.pending.0 as f64,
            ),
            gauge(
                "informer_queued_items_high_water",
                "Most keys that ever were.",
                |s| s.pending.1 as f64,
            ),
            gauge(
                "informer_last_event_age_seconds",
                "Time since the server last told anything.",
                |s| s.last_event_age.map_or(f64::NAN, |age| age.as_secs_f64()),
            ),
            gauge(
                "informer_undecodable_objects",
                "Objects that cannot be read or decoded.",
                |s| (s.unreadable.len() + s.undecodable.len()) as f64,
            ),
        ]
        .into_iter()
        .collect();
        let counters: Result<Vec<_>, prometheus::Error> = [
            counter(
                "reflector_relists_total",
                "Lists begun, by reason.",
                "reason",
                |c| &c.relists,
            ),
            counter(
                "reflector_watch_ends_total",
                "Watches ended, by cause.",
                "cause",
                |c| &c.watch_ends,
            ),
            counter(
                "reflector_events_total",
                "Events received, by type.",
                "type",
                |c| &c.events,
            ),
        ]
        .into_iter()
        .collect();
        Ok(Self {
            cores,
            clock,
            gauges: gauges?,
            counters: counters?,
        })
    }
}

fn flag(set: bool) -> f64 {
    f64::from(u8::from(set))
}

impl Collector for InformerCollector {
    fn desc(&self) -> Vec<&Desc> {
        let gauges = self.gauges.iter().flat_map(|(gauge, _)| gauge.desc());
        gauges
            .chain(self.counters.iter().flat_map(|(counter, _)| counter.desc()))
            .collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let now = self.clock.now();
        for status in self.cores.iter().map(|core| core.status(now)) {
            let (resource, scope) = (status.resource.as_str(), status.scope.as_str());
            for (gauge, read) in &self.gauges {
                gauge
                    .with_label_values(&[resource, scope])
                    .set(read(&status));
            }
            for (counter, read) in &self.counters {
                for (label, total) in read(&status.counters) {
                    let series = counter.with_label_values(&[resource, scope, label]);
                    series.inc_by(total.saturating_sub(series.get()));
                }
            }
        }
        let gauges = self.gauges.iter().flat_map(|(gauge, _)| gauge.collect());
        gauges
            .chain(
                self.counters
                    .iter()
                    .flat_map(|(counter, _)| counter.collect()),
            )
            .collect()
    }
}

type RecorderRead = fn(&RecorderCounts) -> u64;

/// Registers what became of Events.
pub(crate) fn register_recorder(
    recorder: &Recorder,
    registry: &Registry,
) -> Result<(), prometheus::Error> {
    let gauges: [(&str, &str, RecorderRead); 4] = [
        (
            "event_recorder_waiting",
            "Events that wait to be written.",
            |c| c.waiting,
        ),
        (
            "event_recorder_written",
            "Events written since the start.",
            |c| c.written,
        ),
        (
            "event_recorder_dropped",
            "Events dropped because too many waited.",
            |c| c.dropped,
        ),
        (
            "event_recorder_failed",
            "Events the API server did not take.",
            |c| c.failed,
        ),
    ];
    for (name, help, read) in gauges {
        let recorder = recorder.clone();
        let read = Box::new(move || read(&recorder.counts()) as f64);
        registry.register(Box::new(Computed {
            gauge: Gauge::with_opts(Opts::new(name, help))?,
            read,
        }))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use boatswain_cache::{Kind, Scope};
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn informers_of_any_namespaces_have_their_series_side_by_side() {
        let registry = Registry::new();
        let names: Vec<String> = (1..=9)
            .map(|n| format!("team{n}"))
            .chain(["x2".into(), "x3".into()])
            .collect();
        let core = |name: &String| {
            InformerCore::new(Kind::of::<ConfigMap>(), Scope::Namespace(name.clone()))
        };
        let cores: Vec<_> = names.iter().map(core).collect();
        register_informers(&cores, &Clock::system(), &registry).expect("registered");
        let families = registry.gather();
        let objects = families
            .iter()
            .find(|family| family.name() == "informer_objects")
            .expect("a family");
        assert_eq!(objects.get_metric().len(), names.len());
    }
}
