//! One run of one contestant, from an empty cache to the last read.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use boatswain_supervision::Clock;

use crate::options::{Options, Who};
use crate::processes::{Contestant, Memory, Server};

/// What is measured, in the order in which it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Measure {
    Synced,
    SyncedCpu,
    Peak,
    Steady,
    Collected,
    Events,
    EventCpu,
    EventCalls,
    Relist,
    RelistCpu,
    RelistCalls,
    PeakOfAll,
    Hot,
    Cold,
    Reconcile,
    Raw,
    AfterReads,
}

impl Measure {
    pub(crate) const ALL: [Self; 17] = [
        Self::Synced,
        Self::SyncedCpu,
        Self::Peak,
        Self::Steady,
        Self::Collected,
        Self::Events,
        Self::EventCpu,
        Self::EventCalls,
        Self::Relist,
        Self::RelistCpu,
        Self::RelistCalls,
        Self::PeakOfAll,
        Self::Hot,
        Self::Cold,
        Self::Reconcile,
        Self::Raw,
        Self::AfterReads,
    ];

    /// What the row is called.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Synced => "time to synced, s",
            Self::SyncedCpu => "CPU until synced, µs/pod",
            Self::Peak => "peak memory until synced, B/pod",
            Self::Steady => "steady memory, B/pod",
            Self::Collected => "steady memory after a forced GC, B/pod",
            Self::Events => "events/s at saturation",
            Self::EventCpu => "CPU per event, µs",
            Self::EventCalls => "handler calls per event",
            Self::Relist => "relist with nothing changed, s",
            Self::RelistCpu => "CPU of that relist, µs/pod",
            Self::RelistCalls => "handler calls of that relist",
            Self::PeakOfAll => "peak memory of all that, B/pod",
            Self::Hot => "read of one pod again and again, µs",
            Self::Cold => "read of a pod not read before, µs",
            Self::Reconcile => "20 reads of pods not read before, µs",
            Self::Raw => "one value without decoding, µs",
            Self::AfterReads => "memory after the reads, B/pod",
        }
    }

    /// What the column of a CSV is called.
    pub(crate) fn column(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Whether more is better.
    pub(crate) fn more_is_better(self) -> bool {
        self == Self::Events
    }
}

/// What one run, or the median of several, gave.
pub(crate) type Values = BTreeMap<Measure, f64>;

/// How much of it is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Until the memory of a synced cache was looked at.
    Synced,
    /// To the end.
    Whole,
}

/// Memory of a contestant whose cache is empty.
pub(crate) fn baseline(options: &Options, who: Who, go: Option<&PathBuf>) -> Memory {
    let server = Server::start(options, 0);
    let (contestant, _) = Contestant::start(who, go, &server);
    settle();
    contestant.memory()
}

/// Runs `who` with as many pods; memory is what exceeds `empty`.
pub(crate) fn run(
    options: &Options,
    who: Who,
    go: Option<&PathBuf>,
    objects: u64,
    empty: Memory,
    extent: Extent,
) -> Values {
    let server = Server::start(options, objects);
    let (mut contestant, synced) = Contestant::start(who, go, &server);
    assert_eq!(
        synced.objects,
        objects,
        "{} is synced with all pods",
        who.name()
    );
    let each = |value: f64| value / objects as f64;
    let more = |bytes: u64| each(bytes.saturating_sub(empty.now) as f64);
    let micros = |seconds: f64| seconds * 1e6;
    let mut values = Values::new();

    values.insert(Measure::Synced, synced.seconds);
    values.insert(Measure::SyncedCpu, each(micros(synced.cpu)));
    settle();
    let memory = contestant.memory();
    values.insert(Measure::Peak, more(memory.peak));
    values.insert(Measure::Steady, more(memory.now));
    if who.is_go() {
        contestant.tell("gc");
        values.insert(Measure::Collected, more(contestant.memory().now));
    }
    if extent == Extent::Synced {
        return values;
    }

    let before = contestant.tell("idle");
    let target = server.modify(options.events);
    let after = contestant.reach(&target);
    let events = options.events as f64;
    values.insert(Measure::Events, events / after.seconds);
    values.insert(Measure::EventCpu, micros(after.cpu - before.cpu) / events);
    values.insert(
        Measure::EventCalls,
        (after.calls - before.calls) as f64 / events,
    );

    settle();
    let before = contestant.tell("idle");
    let target = server.expire();
    let clock = Clock::system();
    let asked = clock.now();
    let reached = contestant.reach(&target);
    let stats = server.stats();
    // from the server's first byte to the moment the contestant saw what it waited for, which was before it said so
    let since = (clock.now() - asked).as_secs_f64() - reached.seconds;
    values.insert(Measure::Relist, stats.since_list - since);
    let after = contestant.tell("idle");
    values.insert(Measure::RelistCpu, each(micros(reached.cpu - before.cpu)));
    // one pod was modified behind the list, to see when it was taken in
    let calls = (after.calls - before.calls).saturating_sub(1);
    if who.is_ours() {
        assert_eq!(calls, 0, "a relist of unchanged pods tells nobody anything");
    }
    values.insert(Measure::RelistCalls, calls as f64);
    settle();
    values.insert(Measure::PeakOfAll, more(contestant.memory().peak));

    // what was read cold once is left alone
    let (cold, reconciles) = ((objects / 4).min(20_000), (objects / 80).clamp(1, 1000));
    let per = |seconds: f64, count: u64| micros(seconds) / count as f64;
    let mut read = |line: &str, count: u64, reads: u64| {
        let answer = contestant.tell(&format!("{line} {count}"));
        assert_eq!(answer.found, reads, "every read finds its pod");
        per(answer.seconds, count)
    };
    values.insert(Measure::Cold, read("cold", cold, cold));
    values.insert(
        Measure::Reconcile,
        read(
            "reconcile",
            reconciles,
            reconciles * crate::contestant::READS,
        ),
    );
    values.insert(Measure::Hot, read("hot", 100_000, 100_000));
    if who.is_ours() {
        values.insert(Measure::Raw, read("raw", cold, cold));
    }
    values.insert(Measure::AfterReads, more(contestant.memory().now));
    eprintln!(
        "    {} lists of {} pages, {} watches, {:.0} MB",
        stats.lists,
        stats.pages,
        stats.watches,
        stats.bytes as f64 / 1e6
    );
    values
}

/// Lets what still works come to rest.
fn settle() {
    #[expect(clippy::disallowed_methods, reason = "other processes are waited for")]
    std::thread::sleep(Duration::from_millis(1000));
}

/// The middle of several runs, each measure for itself.
pub(crate) fn median(runs: &[Values]) -> Values {
    let middle = |measure| {
        let mut values: Vec<_> = runs
            .iter()
            .filter_map(|run| run.get(&measure).copied())
            .collect();
        values.sort_by(f64::total_cmp);
        let value = values.get(values.len() / 2).copied()?;
        Some((measure, value))
    };
    Measure::ALL.into_iter().filter_map(middle).collect()
}
