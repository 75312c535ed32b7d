//! Why a key ran, what came of it, and why it does not run now.

mod answer;
mod cell;
mod display;
mod journal;
mod journals;
mod news;
mod trail;

use std::{fmt, time::Duration};

use boatswain_cache::{Key, Version};
use boatswain_workqueue::Lane;
use jiff::Timestamp;

pub(crate) use self::{
    cell::{state_of, word},
    display::Whole,
    journals::Journals,
    news::{Heard, Heards},
    trail::{Logbook, Trail},
};
use crate::{dispatch::Shut, reconcile::Causes};

/// What is known of one key at one moment, from [`ControllerHandle::explain`](crate::ControllerHandle::explain). Its
/// [text](fmt::Display) is for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The controller that was asked.
    pub controller: String,
    /// The key it was asked for.
    pub key: Key,
    /// When.
    pub at: Timestamp,
    /// What the key is doing, and why it does not run if it does not.
    pub now: Doing,
    /// Why no key of the controller begins to run, if none does.
    pub shut: Option<Shut>,
    /// What it is to run for, as far as that is known.
    pub pending: Causes,
    /// When it runs next, at the earliest, if that has a time.
    pub next: Option<Timestamp>,
    /// How often it failed in a row.
    pub failures: u32,
    /// When the first run of that row began.
    pub failing_since: Option<Timestamp>,
    /// Its last run that has ended.
    pub last: Option<LastRun>,
    /// A change of its object that crashed its trigger twice and was set aside, in words.
    pub quarantined: Option<String>,
}

/// A key that has been failing and is tried again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailingKey {
    /// Which.
    pub key: Key,
    /// What its last run said.
    pub error: String,
    /// When the first run of the row of failures began.
    pub since: Timestamp,
}

/// What a key is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doing {
    /// Nothing: there is nothing to do until something changes.
    Idle,
    /// It is ready.
    Queued {
        /// In this lane.
        lane: Lane,
        /// Since when.
        since: Timestamp,
        /// How many keys stand in that lane of its shard, with it.
        of: usize,
        /// What it needs.
        needs: Needs,
    },
    /// It runs.
    Running {
        /// Since when.
        since: Timestamp,
        /// Whether something happened meanwhile, so that it runs again.
        again: bool,
    },
    /// Its time has not come.
    Waiting {
        /// When it comes.
        until: Timestamp,
        /// What it waits for.
        why: Waits,
    },
    /// It waits until the cache shows what its last runs wrote.
    Held {
        /// Since when; for 5 s at most.
        since: Timestamp,
        /// What was written.
        what: String,
        /// Why the cache does not show it.
        why: String,
    },
    /// It is out of the round until something changes.
    Parked {
        /// Since when.
        since: Timestamp,
        /// Why.
        reason: String,
    },
    /// Its object is no valid one of its kind, and nothing but a change of it can help.
    Undecodable {
        /// Since when that is known.
        since: Timestamp,
        /// Where it does not decode.
        reason: String,
    },
    /// There is no such object, as far as the controller sees, nor anything to do for it.
    Unknown {
        /// What exactly.
        why: String,
    },
}

/// What a key that is ready needs to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Needs {
    /// That runs may begin: see [`Explanation::shut`].
    Open,
    /// That one of as many runs as are allowed at once ends.
    Permit(usize),
    /// A worker of its shard.
    Worker,
    /// Its turn.
    Turn,
}

/// What a key waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waits {
    /// It asked to run again then.
    Requeue,
    /// It was not ready.
    NotReady,
    /// It failed, by its object's fault or not, and backs off.
    Backoff {
        /// What it said.
        error: String,
    },
    /// Its backoff is over, and it stands in the line of keys that failed, of which so many a second are let through.
    Line {
        /// What it said.
        error: String,
    },
    /// A moment after a write conflict.
    Conflict,
    /// A moment after its run was lost with its worker.
    Lost,
}

/// A run that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastRun {
    /// Its name in logs; not remembered for long.
    pub id: Option<ReconcileId>,
    /// When it began; to the second where it was long ago.
    pub began: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// Why it ran.
    pub causes: Causes,
    /// The change of another object that it was woken by, in words; not remembered for long.
    pub trigger: Option<String>,
    /// How often the key had failed in a row before.
    pub attempt: u32,
    /// The version of the object that the reconciler was called with; none if there was no object.
    pub seen: Option<Version>,
    /// How it ended: a result of `controller_reconcile_total`.
    pub result: &'static str,
    /// What it said of that, cut short.
    pub text: Option<String>,
    /// What it [said that it decided](crate::Context::decided), cut short; not remembered for long.
    pub decided: Option<String>,
    /// The first of its writes, in words; not remembered for long.
    pub writes: Vec<String>,
    /// How many there were.
    pub written: u32,
}

/// Names one run of one key in logs: no two runs of a process have the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReconcileId(u64);

impl ReconcileId {
    /// The id of a number; different ones for different numbers.
    pub(crate) fn of(number: u64) -> Self {
        // splitmix64's finish: a bijection whose values look unlike each other
        let mut z = number;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self(z ^ (z >> 31))
    }
}

impl fmt::Display for ReconcileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for ReconcileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_of_runs_are_unlike_each_other() {
        let names: HashSet<_> = (0..10_000).map(ReconcileId::of).collect();
        assert_eq!(names.len(), 10_000);
        let (one, next) = (ReconcileId::of(1), ReconcileId::of(2));
        assert!((one.0 ^ next.0).count_ones() > 10, "{one} {next}");
        assert_eq!(one.to_string().len(), 16);
    }
}
