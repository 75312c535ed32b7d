//! Times as a queue keeps them: nanoseconds since the first it was told, half the size of an
//! `Instant`.

use std::ops::Add;
use std::time::{Duration, Instant};

/// A time, counted from the origin of one [`Timeline`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Moment {
    /// How long after `earlier` it is; zero if it is not.
    pub(crate) fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A delay beyond any process's life counts as a hundred years.
impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, delay: Duration) -> Moment {
        Moment(self.0.saturating_add(nanos(delay)))
    }
}

/// Where the count of one queue begins: at the first time it was told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timeline(Option<Instant>);

impl Timeline {
    /// `now` as a moment; the first call sets the origin.
    pub(crate) fn told(&mut self, now: Instant) -> Moment {
        let origin = *self.0.get_or_insert(now);
        moment(origin, now)
    }

    /// `at` as a moment; what was before the origin counts as the origin.
    pub(crate) fn moment(&self, at: Instant) -> Moment {
        self.0
            .map_or_else(Moment::default, |origin| moment(origin, at))
    }

    /// Whether `at` is before the first time that was told.
    pub(crate) fn begins_after(&self, at: Instant) -> bool {
        self.0.is_none_or(|origin| at < origin)
    }

    /// The time a moment stands for. `None` before the first time was told, when there is none.
    pub(crate) fn instant(&self, moment: Moment) -> Option<Instant> {
        self.0?.checked_add(Duration::from_nanos(moment.0))
    }
}

fn moment(origin: Instant, at: Instant) -> Moment {
    Moment(nanos(at.saturating_duration_since(origin)))
}

fn nanos(delay: Duration) -> u64 {
    const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    u64::try_from(delay.min(FAR).as_nanos()).unwrap_or(u64::MAX)
}
