//! How many failures in how much time are too many; pure.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::backoff::Backoff;

/// How many failures in how much time are too many.
///
/// When more than `max` exits that [count](crate::Exit::counts) fall into one sliding window of `period`, the supervisor gives up:
/// it stops its children and fails itself, and its own supervisor decides.
///
/// Default: 5 in 60 s, which the default [`Backoff`] reaches in 3 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intensity {
    /// The number of failures that is still bearable.
    pub max: u32,
    /// The length of the window.
    pub period: Duration,
}

impl Default for Intensity {
    fn default() -> Self {
        Intensity::new(5, Duration::from_secs(60))
    }
}

impl Intensity {
    /// At most `max` failures in any `period`.
    #[must_use]
    pub fn new(max: u32, period: Duration) -> Intensity {
        Intensity { max, period }
    }

    /// Whether a child that fails as soon as it is started can fill the window at all, given its delays.
    ///
    /// With a backoff that grows too long for the window, a child that is broken for good would be restarted for ever and nobody above would hear of it.
    #[must_use]
    pub fn reachable_with(&self, backoff: &Backoff) -> bool {
        backoff.longest(self.max) < self.period
    }
}

/// The failures of the last period.
#[derive(Debug)]
pub(crate) struct Window {
    limit: Intensity,
    /// At most `max + 1` entries: the one that exceeds ends the supervisor.
    failures: VecDeque<Instant>,
}

impl Window {
    pub(crate) fn new(limit: Intensity) -> Window {
        Window {
            limit,
            failures: VecDeque::new(),
        }
    }

    /// The failures it holds, some of which may be over a period old.
    pub(crate) fn failures(&self) -> impl Iterator<Item = Instant> + '_ {
        self.failures.iter().copied()
    }

    /// Records a failure; whether it was one too many.
    pub(crate) fn exceeded(&mut self, now: Instant) -> bool {
        while self
            .failures
            .front()
            .is_some_and(|&at| now.saturating_duration_since(at) >= self.limit.period)
        {
            self.failures.pop_front();
        }
        self.failures.push_back(now);
        let exceeded = self.failures.len() > self.limit.max as usize;
        if exceeded {
            self.failures.pop_front();
        }
        exceeded
    }
}

#[cfg(test)]
mod tests;
