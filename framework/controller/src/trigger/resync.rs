//! When to look again at which keys; pure.

use std::time::{Duration, Instant};

/// The resync looks at one in so many keys at a time, which spreads it over its period.
pub(super) const SLICES: u64 = 64;

/// Which slice of the keys is looked at next, and when. It outlives the trigger: slices late in the period have their turn however often it dies.
#[derive(Debug)]
pub(super) struct Slices {
    born: Instant,
    step: Duration,
    /// The number of the last slice that was looked at, counted from the beginning of all time.
    done: u64,
}

/// One of the slices, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn(u64);

impl Turn {
    pub(super) fn slice(self) -> u64 {
        self.0 % SLICES
    }
}

impl Slices {
    pub(super) fn new(period: Duration, now: Instant) -> Self {
        Self {
            born: now,
            // a step of nothing would never let go of the thread
            step: (period / SLICES as u32).max(Duration::from_millis(1)),
            done: 0,
        }
    }

    /// When the next is due. Of those that were missed no more are made up for than there are.
    pub(super) fn due(&self, now: Instant) -> Instant {
        let number = u32::try_from(self.next(now)).unwrap_or(u32::MAX);
        let offset = self.step.checked_mul(number).unwrap_or(Duration::MAX);
        // too far to be told: not in this process's life
        self.born
            .checked_add(offset)
            .unwrap_or(now + self.step * SLICES as u32)
    }

    /// All keys of this turn have been looked at.
    pub(super) fn did(&mut self, turn: Turn) {
        self.done = turn.0;
    }

    /// What is looked at next. It stays so until it is [done](Self::did), whoever begins it.
    pub(super) fn turn(&self, now: Instant) -> Turn {
        Turn(self.next(now))
    }

    fn next(&self, now: Instant) -> u64 {
        let passed = now.saturating_duration_since(self.born).as_nanos() / self.step.as_nanos();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        (self.done + 1).max(passed.saturating_sub(SLICES - 1))
    }
}

#[cfg(test)]
mod tests {
    use boatswain_supervision::Clock;

    use super::*;

    #[test]
    fn every_slice_has_its_turn_however_often_the_trigger_dies_and_missed_ones_are_made_up_for_once()
     {
        let start = Clock::system().now();
        let minute = Duration::from_secs(64);
        let mut slices = Slices::new(minute, start);
        let mut now = start;
        let mut seen = Vec::new();
        let take = |slices: &mut Slices, now| {
            let turn = slices.turn(now);
            // whoever began it died in the middle
            assert_eq!(slices.turn(now), turn);
            slices.did(turn);
            turn.slice()
        };
        for _ in 0..64 {
            // whoever asks may be another incarnation each time
            now = slices.due(now);
            seen.push(take(&mut slices, now));
        }
        assert_eq!(now, start + minute);
        seen.sort_unstable();
        assert_eq!(seen, (0..64).collect::<Vec<_>>());
        // nobody looked for ten periods and a half
        now += minute * 10 + minute / 2;
        let mut seen = Vec::new();
        while slices.due(now) <= now {
            seen.push(take(&mut slices, now));
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..64).collect::<Vec<_>>());
    }
}
