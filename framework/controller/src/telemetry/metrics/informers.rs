//! What an operator sees of informers; client-go's names wherever it has or had them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use boatswain_cache::{Counters, InformerCore, InformerStatus, SubscriberStatus, Tally};
use boatswain_supervision::Clock;
use prometheus::Registry;

use super::families::{Families, Labels, Scraped};
use crate::informers;

/// Together with the version the name tells informers apart, as in the page of readiness; the selector says what is selected beyond kind and scope, and is
/// empty for all objects, whole.
const INFORMER: &[&str] = &["name", "group", "version", "resource", "scope", "selector"];

/// Digits of a resourceVersion that a floating-point number holds exactly.
const DIGITS: usize = 15;

/// Registers what is read from informers at the scrape. `cores` says which there are at that moment: the series of an informer end with it.
pub(crate) fn register_informers(
    cores: impl Fn() -> Vec<Arc<InformerCore>> + Send + Sync + 'static,
    clock: &Clock,
    registry: &Registry,
) -> Result<(), prometheus::Error> {
    let clock = clock.clone();
    let read = move || {
        let now = clock.now();
        let cores = cores().into_iter().filter(|core| !core.retired());
        cores
            .map(|core| Seen::of(&core, core.status(now)))
            .collect()
    };
    registry.register(Box::new(Scraped::<Vec<Seen>>::new(families, read)?))
}

/// An informer at the scrape.
struct Seen {
    labels: Labels,
    status: InformerStatus,
}

impl Seen {
    fn of(core: &InformerCore, status: InformerStatus) -> Self {
        let kind = core.kind();
        Self {
            labels: vec![
                informers::name(core.selection()),
                kind.group.clone(),
                kind.version.clone(),
                kind.plural.clone(),
                status.scope.clone(),
                status.selector.clone(),
            ],
            status,
        }
    }

    /// The informer's labels and one more.
    fn and(&self, more: &str) -> Labels {
        let mut labels = self.labels.clone();
        labels.push(more.to_owned());
        labels
    }
}

fn families(families: &mut Families, seen: Option<&Vec<Seen>>) {
    let seen = seen.map(Vec::as_slice).unwrap_or_default();
    store(families, seen);
    progress(families, seen);
    totals(families, seen);
    reflectors(families, seen);
    subscribers(families, seen);
}

type Gauges<T> = [(&'static str, &'static str, fn(&T) -> f64)];
type Totals<T> = [(&'static str, &'static str, fn(&T) -> u64)];
type Age = fn(&InformerStatus) -> Option<Duration>;
type Summed = fn(&Counters) -> Tally;
type ByLabel = fn(&Counters) -> &BTreeMap<&'static str, u64>;

fn gauges(families: &mut Families, seen: &[Seen], gauges: &Gauges<InformerStatus>) {
    for (name, help, read) in gauges {
        let series = seen
            .iter()
            .map(|seen| (seen.labels.clone(), read(&seen.status)));
        families.gauge(name, help, INFORMER, series);
    }
}

fn store(families: &mut Families, seen: &[Seen]) {
    gauges(
        families,
        seen,
        &[
            ("cache_objects", "Objects in the cache.", |s| {
                s.objects as f64
            }),
            (
                "cache_bytes",
                "Bytes the cache keeps of its objects, packed where it packs them; decoded ones and keys come on top.",
                |s| s.bytes as f64,
            ),
            (
                "cache_json_bytes",
                "Bytes of the objects in the cache as JSON.",
                |s| s.json_bytes as f64,
            ),
            (
                "cache_memo_objects",
                "Decoded objects that are kept for further readers.",
                |s| s.memo.objects as f64,
            ),
            (
                "cache_memo_bytes",
                "Estimated bytes of the decoded objects that are kept.",
                |s| s.memo.bytes as f64,
            ),
            (
                "cache_undecodable_objects",
                "Objects whose newest state cannot be read, or which a reader could not decode; the informer's status names them.",
                |s| (s.unreadable.len() + s.undecodable.len()) as f64,
            ),
        ],
    );
    let memo: &Totals<InformerStatus> = &[
        (
            "cache_memo_hits_total",
            "Reads that found their object decoded.",
            |s| s.memo.hits,
        ),
        (
            "cache_memo_misses_total",
            "Reads that had to decode their object.",
            |s| s.memo.misses,
        ),
    ];
    for (name, help, read) in memo {
        let series = seen
            .iter()
            .map(|seen| (seen.labels.clone(), read(&seen.status)));
        families.counter(name, help, INFORMER, series);
    }
}

fn progress(families: &mut Families, seen: &[Seen]) {
    gauges(
        families,
        seen,
        &[
            (
                "informer_synced",
                "1 once the cache has held the whole state.",
                |s| flag(s.synced),
            ),
            (
                "informer_fresh",
                "1 while a watch is open and what was missed before it is in the cache.",
                |s| flag(s.fresh),
            ),
            (
                "informer_degraded",
                "1 while the informer cannot do its work; readiness and the tree say why.",
                |s| flag(s.degraded.is_some()),
            ),
            (
                "informer_queued_items",
                "Keys between reflector and indexer.",
                |s| s.pending.0 as f64,
            ),
            (
                "informer_queued_items_high_water",
                "Most keys that ever were between reflector and indexer.",
                |s| s.pending.1 as f64,
            ),
        ],
    );
    // an age that is not known yet has no series, for any number would be a lie
    let ages: [(_, _, Age); 2] = [
        (
            "watch_last_event_age_seconds",
            "Time since the server last told of an object. Without an upper bound for a kind that does not change.",
            |s| s.last_event_age,
        ),
        (
            "watch_last_contact_age_seconds",
            "Time since the server last gave a sign of life: any byte of a list or watch, a bookmark, the answer to a probe. Alert on this one.",
            |s| s.last_contact_age,
        ),
    ];
    for (name, help, read) in ages {
        let series = seen
            .iter()
            .filter_map(|seen| Some((seen.labels.clone(), read(&seen.status)?.as_secs_f64())));
        families.gauge(name, help, INFORMER, series);
    }
    for (name, help) in [
        (
            "informer_store_resource_version",
            "The resourceVersion up to which everything is in the cache, its last 15 digits.",
        ),
        (
            "reflector_last_resource_version",
            "As informer_store_resource_version, by client-go's older name.",
        ),
    ] {
        let series = seen.iter().filter_map(|seen| {
            let version = seen.status.low_water.as_deref()?;
            Some((seen.labels.clone(), last_digits(version)?))
        });
        families.gauge(name, help, INFORMER, series);
    }
    families.histogram(
        "informer_processing_latency_seconds",
        "Time to commit a batch of news to the cache and to tell its subscribers.",
        INFORMER,
        seen.iter().map(|seen| {
            let latency = &seen.status.counters.commits;
            let sum = latency.sum().as_secs_f64();
            let series = (latency.buckets().collect(), latency.count(), sum);
            (seen.labels.clone(), series)
        }),
    );
}

fn totals(families: &mut Families, seen: &[Seen]) {
    let totals: &Totals<Counters> = &[
        (
            "informer_changes_total",
            "Changes of the cache that subscribers were told of.",
            |c| c.changes,
        ),
        (
            "informer_unchanged_total",
            "News that found the cache as they were.",
            |c| c.unchanged,
        ),
        (
            "informer_stale_total",
            "News refused because newer ones were known.",
            |c| c.stale,
        ),
        (
            "informer_unidentified_total",
            "Objects and events without a readable name or version.",
            |c| c.unidentified,
        ),
        (
            "informer_decode_failures_total",
            "Times a reader could not decode an object it had not failed on before in that state.",
            |c| c.undecoded,
        ),
        (
            "informer_index_failures_total",
            "Times an index function failed for an object.",
            |c| c.unindexed,
        ),
        (
            "informer_replays_total",
            "Batches done once more after a crash of the indexer.",
            |c| c.replays,
        ),
        (
            "informer_histories_total",
            "Times the server was found to be set back to an older state, as after a restore of etcd.",
            |c| c.histories,
        ),
    ];
    for (name, help, read) in totals {
        let series = seen
            .iter()
            .map(|seen| (seen.labels.clone(), read(&seen.status.counters)));
        families.counter(name, help, INFORMER, series);
    }
}

fn reflectors(families: &mut Families, seen: &[Seen]) {
    let totals: &Totals<Counters> = &[
        ("reflector_lists_total", "Pages of lists asked for.", |c| {
            c.lists
        }),
        ("reflector_watches_total", "Watches begun.", |c| c.watches),
        (
            "reflector_short_watches_total",
            "Watches that ended within a second and told nothing.",
            |c| c.short_watches,
        ),
        (
            "reflector_probes_total",
            "Times a silent watch made the server be asked for its version.",
            |c| c.probes,
        ),
    ];
    for (name, help, read) in totals {
        let series = seen
            .iter()
            .map(|seen| (seen.labels.clone(), read(&seen.status.counters)));
        families.counter(name, help, INFORMER, series);
    }
    let by: [(_, _, _, ByLabel); 3] = [
        (
            "reflector_relists_total",
            "Lists begun, by reason.",
            "reason",
            |c| &c.relists,
        ),
        (
            "reflector_watch_ends_total",
            "Watches ended, by cause.",
            "cause",
            |c| &c.watch_ends,
        ),
        (
            "reflector_events_total",
            "Events received, by type.",
            "type",
            |c| &c.events,
        ),
    ];
    for (name, help, label, read) in by {
        let labels: Vec<_> = INFORMER.iter().copied().chain([label]).collect();
        let series = seen.iter().flat_map(|seen| {
            let totals = read(&seen.status.counters);
            totals.iter().map(|(by, total)| (seen.and(by), *total))
        });
        families.counter(name, help, &labels, series);
    }
    let summaries: [(_, _, f64, Summed); 4] = [
        (
            "reflector_list_duration_seconds",
            "How long whole lists took.",
            1e-6,
            |c| c.list_micros,
        ),
        (
            "reflector_items_per_list",
            "How many items whole lists had.",
            1.0,
            |c| c.list_items,
        ),
        (
            "reflector_watch_duration_seconds",
            "How long watches were open.",
            1e-6,
            |c| c.watch_micros,
        ),
        (
            "reflector_items_per_watch",
            "How many events watches told, bookmarks left out.",
            1.0,
            |c| c.watch_events,
        ),
    ];
    for (name, help, unit, read) in summaries {
        let series = seen.iter().map(|seen| {
            let tally = read(&seen.status.counters);
            (seen.labels.clone(), (tally.count, tally.sum as f64 * unit))
        });
        families.summary(name, help, INFORMER, series);
    }
}

fn subscribers(families: &mut Families, seen: &[Seen]) {
    let labels: Vec<_> = INFORMER.iter().copied().chain(["subscriber"]).collect();
    let gauges: &Gauges<SubscriberStatus> = &[
        (
            "informer_backlog_keys",
            "Keys a subscriber has not handled.",
            |s| s.depth as f64,
        ),
        (
            "informer_backlog_keys_high_water",
            "Most keys that ever waited for a subscriber.",
            |s| s.high_water as f64,
        ),
        (
            "informer_backlog_initial_keys",
            "Keys of the initial replay that a subscriber has not handled.",
            |s| s.initial as f64,
        ),
        (
            "informer_backlog_bytes",
            "Bytes of past states that only wait for a subscriber.",
            |s| s.bytes as f64,
        ),
        (
            "informer_backlog_age_seconds",
            "How long the oldest news have waited for a subscriber; 0 while none wait.",
            |s| s.oldest_age.unwrap_or_default().as_secs_f64(),
        ),
    ];
    for (name, help, read) in gauges {
        let series = seen.iter().flat_map(|seen| {
            by_name(&seen.status.subscribers, *read)
                .into_iter()
                .map(|(subscriber, value)| (seen.and(&subscriber), value))
        });
        families.gauge(name, help, &labels, series);
    }
    let series = seen.iter().flat_map(|seen| {
        let thinned = by_name(&seen.status.subscribers, |s| s.thinned as f64);
        let series = thinned.into_iter();
        series.map(|(subscriber, total)| (seen.and(&subscriber), total as u64))
    });
    families.counter(
        "informer_backlog_thinned_total",
        "Past states that lost their insides because a subscriber was too far behind.",
        &labels,
        series,
    );
}

/// One value per name: two subscribers of one name are one series.
fn by_name(
    subscribers: &[SubscriberStatus],
    read: fn(&SubscriberStatus) -> f64,
) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    for subscriber in subscribers {
        *values.entry(subscriber.name.clone()).or_insert(0.0) += read(subscriber);
    }
    values
}

fn flag(set: bool) -> f64 {
    f64::from(u8::from(set))
}

/// A version as a number: its last digits, for more of them a floating-point number does not tell apart.
fn last_digits(version: &str) -> Option<f64> {
    let start = version.len().saturating_sub(DIGITS);
    version.get(start..)?.parse::<u64>().ok().map(|n| n as f64)
}

#[cfg(test)]
pub(super) fn last_digits_of(version: &str) -> Option<f64> {
    last_digits(version)
}
