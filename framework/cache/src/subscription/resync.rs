//! When which keys are told again; pure.

use std::time::{Duration, Instant};

use crate::key::Key;

/// A period is cut into so many slices, and each key belongs to one: keys are told again evenly over the period.
const SLICES: u32 = 64;

/// The times at which the slices of the keys are due.
#[derive(Debug)]
pub(super) struct Schedule {
    step: Duration,
    /// Differs among subscribers, so that they are not told of one key at one time.
    salt: u64,
    next: Option<(Instant, u32)>,
}

/// Slices that are due: so many from this one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    salt: u64,
    first: u32,
    count: u32,
}

impl Schedule {
    pub(super) fn new(period: Duration, name: &str) -> Self {
        Self {
            // a step of nothing would be due for ever
            step: (period / SLICES).max(Duration::from_millis(1)),
            salt: mix(0, name.as_bytes()),
            next: None,
        }
    }

    /// What is due at `now`, and when the next slice is. The period begins with the first call. After a long silence every key is due once, not as often
    /// as it was missed.
    pub(super) fn due(&mut self, now: Instant) -> (Option<Due>, Instant) {
        let (at, slice) = self.next.unwrap_or((now + self.step, 0));
        let Some(late) = now.checked_duration_since(at) else {
            self.next = Some((at, slice));
            return (None, at);
        };
        let missed = late.as_nanos() / self.step.as_nanos() + 1;
        let missed = u32::try_from(missed).unwrap_or(u32::MAX);
        let count = missed.min(SLICES);
        let next = match self.step.checked_mul(missed) {
            Some(passed) => at + passed,
            None => now + self.step,
        };
        self.next = Some((next, (slice + missed % SLICES) % SLICES));
        let due = Due {
            salt: self.salt,
            first: slice,
            count,
        };
        (Some(due), next)
    }
}

impl Due {
    pub(super) fn has(&self, key: &Key) -> bool {
        let slice = (mix(self.salt, key.as_str().as_bytes()) >> 32) as u32 % SLICES;
        (slice + SLICES - self.first) % SLICES < self.count
    }
}

/// FNV-1a: the same key is in the same slice in every run.
fn mix(salt: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325 ^ salt, step);
    // the upper bits of short texts differ little
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
