//! What controllers count, and how an operator sees them at a scrape.

mod series;

use std::{
    array,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use boatswain_supervision::Clock;
use prometheus::Registry;

pub(crate) use self::series::ERRORS;
use super::families::Scraped;
use crate::{
    dispatch::{BARRIER, Counts, Gate, InFlight, ShardView, Sick, Spread, Sums, Tally, Totals},
    explain::Journals,
    sync::lock,
};

/// The controllers of a manager that there are. A controller is in it as long as anything of it is left.
#[derive(Clone, Default)]
pub(crate) struct Roster(Arc<Mutex<Vec<Weak<Meters>>>>);

impl Roster {
    fn present(&self) -> Vec<Arc<Meters>> {
        let mut meters = lock(&self.0);
        meters.retain(|meters| meters.strong_count() > 0);
        meters.iter().filter_map(Weak::upgrade).collect()
    }

    /// Each of them at this moment.
    pub(crate) fn seen(&self, now: Instant) -> Vec<Seen> {
        let seen = |meters: &Arc<Meters>| Seen::of(meters, now);
        self.present().iter().map(seen).collect()
    }
}

/// What a controller counts; its series end with the last clone.
#[derive(Clone)]
pub(crate) struct ControllerMetrics(Arc<Meters>);

struct Meters {
    controller: String,
    tallies: Box<[Tally]>,
    views: Vec<ShardView>,
    journals: Journals,
    in_flight: InFlight,
    gate: Gate,
    sick: Arc<Sick>,
    concurrency: usize,
    rare: [AtomicU64; Rare::ALL.len()],
    barrier: Spread,
}

/// What happens seldom enough to be counted in one place.
#[derive(Clone, Copy)]
enum Rare {
    Parked,
    Filtered,
    PredicateFailed,
    MapperFailed,
    PriorityFailed,
    Quarantined,
    BarrierMissed,
    BarrierRead,
    DepartedDropped,
    DepartedLetGo,
}

impl Rare {
    const ALL: [(Self, &'static str, &'static str); 10] = [
        (
            Self::Parked,
            "controller_parked_total",
            "Keys parked after too many failures or by decision.",
        ),
        (
            Self::Filtered,
            "controller_changes_filtered_total",
            "Changes that a predicate found not worth a run.",
        ),
        (
            Self::PredicateFailed,
            "controller_predicate_failures_total",
            "Changes a predicate panicked on; each was taken as worth a run.",
        ),
        (
            Self::MapperFailed,
            "controller_mapper_failures_total",
            "Changes a mapper could not map; each is tried again.",
        ),
        (
            Self::PriorityFailed,
            "controller_priority_failures_total",
            "Times the function that says how urgent an object is panicked.",
        ),
        (
            Self::Quarantined,
            "controller_quarantined_total",
            "Changes set aside because they crashed a trigger twice.",
        ),
        (
            Self::BarrierMissed,
            "controller_barrier_missed_total",
            "Runs that started although the cache did not show the key's last write in time.",
        ),
        (
            Self::BarrierRead,
            "controller_barrier_live_reads_total",
            "Questions to the server about what became of a write.",
        ),
        (
            Self::DepartedDropped,
            "controller_departed_dropped_total",
            "Last states of deleted objects forgotten because too many waited to be told.",
        ),
        (
            Self::DepartedLetGo,
            "controller_departed_let_go_total",
            "Deleted objects whose reconciler failed at being told until the attempts were used up.",
        ),
    ];
}

impl ControllerMetrics {
    pub(crate) fn new(
        controller: &str,
        views: Vec<ShardView>,
        journals: Journals,
        gate: Gate,
        sick: Arc<Sick>,
        concurrency: usize,
        roster: &Roster,
    ) -> Self {
        let meters = Arc::new(Meters {
            controller: controller.to_owned(),
            tallies: views.iter().map(|_| Tally::default()).collect(),
            in_flight: InFlight::new(views.clone()),
            views,
            journals,
            gate,
            sick,
            concurrency,
            rare: array::from_fn(|_| AtomicU64::new(0)),
            barrier: Spread::new(BARRIER),
        });
        lock(&roster.0).push(Arc::downgrade(&meters));
        Self(meters)
    }

    /// What the shard of this index counts.
    pub(crate) fn tally(&self, shard: usize) -> &Tally {
        &self.0.tallies[shard]
    }

    pub(crate) fn parked(&self) {
        self.count(Rare::Parked);
    }

    pub(crate) fn filtered(&self) {
        self.count(Rare::Filtered);
    }

    pub(crate) fn predicate_failed(&self) {
        self.count(Rare::PredicateFailed);
    }

    pub(crate) fn mapper_failed(&self) {
        self.count(Rare::MapperFailed);
    }

    pub(crate) fn priority_failed(&self) {
        self.count(Rare::PriorityFailed);
    }

    pub(crate) fn quarantined(&self) {
        self.count(Rare::Quarantined);
    }

    pub(crate) fn barrier_waited(&self, waited: Duration) {
        self.0.barrier.tell(waited);
    }

    pub(crate) fn barrier_read(&self) {
        self.count(Rare::BarrierRead);
    }

    pub(crate) fn barrier_missed(&self) {
        self.count(Rare::BarrierMissed);
    }

    pub(crate) fn departed_dropped(&self) {
        self.count(Rare::DepartedDropped);
    }

    pub(crate) fn departed_let_go(&self) {
        self.count(Rare::DepartedLetGo);
    }

    fn count(&self, what: Rare) {
        self.0.rare[what as usize].fetch_add(1, Relaxed);
    }
}

impl Meters {
    fn failing(&self, now: Instant) -> Vec<Duration> {
        // what is remembered is past then, and others run them
        if self.gate.is_standby() {
            return Vec::new();
        }
        let failing = self.journals.failing_since(now, &self.views).into_iter();
        failing
            .map(|(_, failing)| now.saturating_duration_since(failing.since))
            .collect()
    }
}

/// Registers what is read from the controllers of `roster` at the scrape.
pub(crate) fn register_controllers(
    roster: &Roster,
    clock: &Clock,
    registry: &Registry,
) -> Result<(), prometheus::Error> {
    let (roster, clock) = (roster.clone(), clock.clone());
    let read = move || roster.seen(clock.now());
    registry.register(Box::new(Scraped::<Vec<Seen>>::new(series::families, read)?))
}

/// A controller at the scrape.
pub(crate) struct Seen {
    pub(crate) controller: String,
    pub(crate) totals: Totals,
    pub(crate) counts: Counts,
    /// How long the head of each lane has been ready.
    pub(crate) oldest: [Duration; 3],
    /// How long what runs has been running.
    pub(crate) running: Vec<Duration>,
    /// How long each key has been failing that does; none on standby.
    failing: Vec<Duration>,
    paused: bool,
    pub(crate) degraded: bool,
    pub(crate) concurrency: usize,
    rare: [u64; Rare::ALL.len()],
    barrier: Sums,
}

impl Seen {
    fn of(meters: &Meters, now: Instant) -> Self {
        let counts = Counts::sum(meters.views.iter().map(ShardView::read));
        let mut barrier = Sums::default();
        barrier.add(&meters.barrier);
        Self {
            controller: meters.controller.clone(),
            totals: Totals::of(&*meters.tallies),
            oldest: counts.oldest.map(|since| {
                since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
            }),
            counts,
            running: meters.in_flight.ages(now),
            failing: meters.failing(now),
            degraded: meters.sick.is_degraded(),
            paused: meters.gate.pause().is_some(),
            concurrency: meters.concurrency,
            rare: array::from_fn(|what| meters.rare[what].load(Relaxed)),
            barrier,
        }
    }
}

#[cfg(test)]
mod tests;
