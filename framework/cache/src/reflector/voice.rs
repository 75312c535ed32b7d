//! What of a trouble is worth a line in the log: its beginning, its end, and now and then that it goes on.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// First pause between two lines about the same trouble; it doubles.
const FIRST: Duration = Duration::from_secs(60);
/// Longest pause.
const LAST: Duration = Duration::from_secs(6 * 3600);

/// Decides which troubles are told. `T` tells one kind of trouble from another; there must be few.
///
/// However often troubles come, change and go, the lines about each of them get rarer until it has been quiet for as long as its last pause.
#[derive(Debug)]
pub(crate) struct Voice<T> {
    told: BTreeMap<T, Told>,
    /// Whether the end of what was told last is still to be told.
    owed: bool,
}

#[derive(Debug)]
struct Told {
    /// No line before this time.
    next: Instant,
    pause: Duration,
    /// When the trouble was last met.
    met: Instant,
}

/// What to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Trouble,
    Recovery,
}

impl<T: Ord> Voice<T> {
    pub(crate) fn new() -> Self {
        Self {
            told: BTreeMap::new(),
            owed: false,
        }
    }

    /// Takes how things are; to be called after every attempt.
    pub(crate) fn hear(&mut self, trouble: Option<T>, now: Instant) -> Option<Line> {
        let Some(trouble) = trouble else {
            return std::mem::take(&mut self.owed).then_some(Line::Recovery);
        };
        let told = self.told.entry(trouble).or_insert(Told {
            next: now,
            pause: FIRST,
            met: now,
        });
        if now.saturating_duration_since(told.met) >= told.pause {
            (told.next, told.pause) = (now, FIRST);
        }
        told.met = now;
        if now < told.next {
            return None;
        }
        told.next = now + told.pause;
        told.pause = (told.pause * 2).min(LAST);
        self.owed = true;
        Some(Line::Trouble)
    }
}
