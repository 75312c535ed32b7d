//! How loudly failures of a controller are told: an outage of ten thousand keys is no reason for ten thousand lines.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use crate::sync::lock;

/// First failures of keys that are told aloud within a [`WINDOW`].
const ALOUD: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);

/// Counts the failures of all keys of a controller, or others that come in numbers.
pub(crate) struct Complaints {
    aloud: u32,
    window: Duration,
    present: Mutex<Option<Window>>,
}

impl Default for Complaints {
    fn default() -> Self {
        Self::at_most(ALOUD, WINDOW)
    }
}

struct Window {
    begun: Instant,
    aloud: u32,
    quiet: u32,
}

/// How to tell a failure.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Tell {
    /// Aloud, and before it how many were not, in the window before this.
    Aloud {
        unheard: u32,
    },
    Quietly,
}

impl Complaints {
    /// So many are told aloud within `window`.
    pub(crate) fn at_most(aloud: u32, window: Duration) -> Self {
        Self {
            aloud,
            window,
            present: Mutex::default(),
        }
    }

    /// A run has failed at `now`, the first of its key in a row or not.
    pub(crate) fn tell(&self, first: bool, now: Instant) -> Tell {
        let mut present = lock(&self.present);
        let ended =
            present.take_if(|window| now.saturating_duration_since(window.begun) >= self.window);
        let unheard = ended.map_or(0, |window| window.quiet);
        let window = present.get_or_insert(Window {
            begun: now,
            aloud: 0,
            quiet: 0,
        });
        // what was not heard is told of by the next failure, whosever it is
        if unheard > 0 || (first && window.aloud < self.aloud) {
            window.aloud += 1;
            Tell::Aloud { unheard }
        } else {
            window.quiet += 1;
            Tell::Quietly
        }
    }
}

#[cfg(test)]
mod tests {
    use boatswain_supervision::Clock;

    use super::*;

    #[test]
    fn of_ten_thousand_keys_that_fail_for_an_hour_a_few_lines_a_minute_tell_and_none_is_uncounted()
    {
        let (complaints, start) = (Complaints::default(), Clock::system().now());
        let (mut lines, mut told) = (0, 0);
        let runs = 3600 * 100;
        for run in 0..runs {
            let now = start + Duration::from_millis(10) * run;
            if let Tell::Aloud { unheard } = complaints.tell(run < 10_000, now) {
                lines += 1;
                told += 1 + unheard;
            }
        }
        assert!((60..=80).contains(&lines), "{lines} lines in an hour");
        assert!(told >= runs - 6000, "{told} of {runs}");
        let late = start + Duration::from_secs(2 * 3600);
        let unheard = match complaints.tell(true, late) {
            Tell::Aloud { unheard } => unheard,
            Tell::Quietly => 0,
        };
        assert_eq!(told + 1 + unheard, runs + 1);
    }
}
