//! How a question about a key is answered: from what outlives the actors.

use std::time::{Duration, Instant};

use boatswain_cache::{Key, ReadError};
use boatswain_workqueue::Wait;
use jiff::{SignedDuration, Timestamp};

use super::{
    Doing, Explanation, FailingKey, LastRun, Needs, Waits,
    cell::{Cell, State},
    journal::Record,
};
use crate::dispatch::{ControllerHandle, DispatchCore, Ending, ShardView, shard_of};

/// Runs of a key that are told of.
const RUNS: usize = 10;

/// Monotonic times as those of the wall, at one moment.
struct Wall {
    now: Instant,
    wall: Timestamp,
}

impl Wall {
    fn at(&self, at: Instant) -> Timestamp {
        let span = |time: Duration| SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
        let ago = self.now.saturating_duration_since(at);
        let ahead = at.saturating_duration_since(self.now);
        let before = self
            .wall
            .saturating_sub(span(ago))
            .unwrap_or(Timestamp::MIN);
        before.saturating_add(span(ahead)).unwrap_or(Timestamp::MAX)
    }
}

impl ControllerHandle {
    /// Why `key` last ran, what it decided and wrote, when it runs next, and why it does not run now. Print it, or look at its parts.
    ///
    /// It asks no actor, so that what is stuck cannot keep the answer. The last 512 runs of a shard are remembered whole; of others, what fits into 24
    /// bytes.
    pub fn explain(&self, key: &Key) -> Explanation {
        let shard = shard_of(key, self.views.len());
        let wall = self.wall();
        let mut told = Explanation {
            controller: self.name.clone(),
            key: key.clone(),
            at: wall.wall,
            now: Doing::Idle,
            shut: self.gate.shut(),
            pending: Default::default(),
            next: None,
            failures: 0,
            failing_since: None,
            last: None,
            quarantined: self.quarantined(key),
        };
        let (Some(core), Some(view)) = (self.core.upgrade(), self.views.get(shard)) else {
            let why = "its manager has ended".to_owned();
            told.now = Doing::Unknown { why };
            return told;
        };
        let (record, failure) = {
            let journal = core.journals.of(shard);
            (journal.last(key), journal.failure(key).cloned())
        };
        let since = failure.as_ref().map(|failing| wall.at(failing.since));
        let error = failure.map(|failing| String::from(failing.error));
        let failed = record
            .as_ref()
            .filter(|record| record.ending == Ending::Undecodable);
        let undecodable = failed.map(|record| record.began);
        told.last = record.map(|record| LastRun {
            text: record
                .text
                .clone()
                .map(String::from)
                .or_else(|| error.clone()),
            ..told_of(record, &core, &wall)
        });
        let look = Look {
            core: &core,
            running: self.views.iter().map(|view| view.read().running).sum(),
            view,
            key,
            wall: &wall,
            undecodable,
            error,
        };
        match Cell::of(view, key) {
            Some(cell) => {
                told.pending = cell.causes;
                told.failures = cell.streak.failures.into();
                told.failing_since = since.filter(|_| told.failures > 0);
                told.now = look.cell(&cell, told.shut.is_some());
            }
            None => told.now = look.idle(),
        }
        told.next = match &told.now {
            Doing::Waiting { until, .. } => Some(*until),
            Doing::Parked { .. } => view.parked.get(key).map(|parked| parked.next_try),
            _ => None,
        };
        told
    }

    /// The last runs of `key` that are remembered whole, the newest first: ten at most. It asks no actor.
    pub fn runs(&self, key: &Key) -> Vec<LastRun> {
        let Some(core) = self.core.upgrade() else {
            return Vec::new();
        };
        let wall = self.wall();
        let records: Vec<_> = {
            let journal = core.journals.of(shard_of(key, self.views.len()));
            journal.runs(key).take(RUNS).cloned().collect()
        };
        let told = records.into_iter();
        told.map(|record| told_of(record, &core, &wall)).collect()
    }

    /// The keys that have been failing for `at_least` so long and are not [parked](Self::parked), the one that has been longest first; of each shard 4,096 at
    /// most are known. None on standby: what is remembered is past then, and others run them. It asks no actor.
    pub fn failing_for(&self, at_least: Duration) -> Vec<FailingKey> {
        let wall = self.wall();
        let core = self.core.upgrade().filter(|_| !self.gate.is_standby());
        let (Some(core), Some(then)) = (core, wall.now.checked_sub(at_least)) else {
            return Vec::new();
        };
        let failing = core.journals.failing_since(then, &self.views).into_iter();
        let failing = failing.map(|(key, failing)| FailingKey {
            key,
            error: failing.error.into(),
            since: wall.at(failing.since),
        });
        let mut all: Vec<_> = failing.collect();
        all.sort_unstable_by(|a, b| (a.since, &a.key).cmp(&(b.since, &b.key)));
        all
    }

    fn wall(&self) -> Wall {
        Wall {
            now: self.clock.now(),
            wall: Timestamp::try_from(self.clock.wall()).unwrap_or(Timestamp::MAX),
        }
    }

    fn quarantined(&self, key: &Key) -> Option<String> {
        let mut lists = self.quarantines.iter();
        lists.find_map(|quarantine| quarantine.get(key))
    }
}

/// A run in the words of those who ask.
fn told_of(record: Record, core: &DispatchCore, wall: &Wall) -> LastRun {
    let heard = core.heards.newest(&record.key, record.began);
    LastRun {
        id: record.id,
        began: wall.at(record.began),
        took: record.took,
        causes: record.causes,
        // of a run long ago nobody knows any more whether it was this that woke it
        trigger: heard.filter(|_| record.id.is_some()).map(|heard| {
            let (source, object, version) = (heard.source, heard.object, heard.version);
            format!("{object} of {source} at version {version}")
        }),
        attempt: record.attempt,
        seen: record.seen,
        result: record.ending.label(),
        text: record.text.map(String::from),
        decided: record.decided.map(String::from),
        writes: record.writes,
        written: record.written,
    }
}

/// What a question is answered from.
struct Look<'a> {
    core: &'a DispatchCore,
    /// How many keys of the controller run.
    running: usize,
    view: &'a ShardView,
    key: &'a Key,
    wall: &'a Wall,
    /// Since when it is known that the object does not decode.
    undecodable: Option<Instant>,
    error: Option<String>,
}

impl Look<'_> {
    fn cell(&self, cell: &Cell, is_shut: bool) -> Doing {
        let Self {
            core, key, wall, ..
        } = self;
        let since = wall.at(cell.since);
        // one that has news is parked until it has rested
        if let State::Parked | State::Waiting { .. } = cell.state
            && let Some(parked) = self.parked()
        {
            return parked;
        }
        match cell.state {
            State::Queued { depth, seat } => Doing::Queued {
                lane: cell.lane,
                since,
                of: depth,
                needs: if is_shut {
                    Needs::Open
                } else if self.running >= core.permits.limit() {
                    Needs::Permit(core.permits.limit())
                } else if !seat {
                    Needs::Worker
                } else {
                    Needs::Turn
                },
            },
            State::Running { again } => Doing::Running { since, again },
            State::Waiting { until, why } => {
                let why = match why {
                    Wait::Requeue => Waits::Requeue,
                    Wait::NotReady => Waits::NotReady,
                    Wait::Backoff(_) if until <= wall.now => Waits::Line {
                        error: self.error(),
                    },
                    Wait::Backoff(_) => Waits::Backoff {
                        error: self.error(),
                    },
                    Wait::Conflict => Waits::Conflict,
                    Wait::Lost => Waits::Lost,
                };
                let until = wall.at(until);
                Doing::Waiting { until, why }
            }
            State::Held => {
                let pending = core.surroundings.writes.pending(key);
                let (what, why) = pending.unwrap_or_else(|| {
                    let shown = "the cache shows it by now".to_owned();
                    ("its last writes".to_owned(), shown)
                });
                Doing::Held { since, what, why }
            }
            State::Parked => Doing::Parked {
                since,
                reason: "it is not remembered".to_owned(),
            },
        }
    }

    fn parked(&self) -> Option<Doing> {
        let parked = self.view.parked.get(self.key)?;
        let (since, reason) = (parked.since, parked.reason);
        Some(Doing::Parked { since, reason })
    }

    fn idle(&self) -> Doing {
        match (self.core.runner.look(self.key), self.undecodable) {
            (Ok(Some(_)), Some(since)) => Doing::Undecodable {
                since: self.wall.at(since),
                reason: self.error(),
            },
            (Ok(Some(_)), None) => Doing::Idle,
            (Ok(None), _) => Doing::Unknown {
                why: "there is no such object in the cache".to_owned(),
            },
            (Err(ReadError::Undecodable(error)), since) => Doing::Undecodable {
                since: self.wall.at(since.unwrap_or(self.wall.now)),
                reason: error.to_string(),
            },
            (Err(error), _) => Doing::Unknown {
                why: error.to_string(),
            },
        }
    }

    fn error(&self) -> String {
        let unknown = "it is not remembered".to_owned();
        self.error.clone().unwrap_or(unknown)
    }
}
