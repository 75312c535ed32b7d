//! One key of the naive model.

use super::*;

/// A run that follows: how urgent, for which adds, and when, unless at once.
type Next = (Lane, Vec<u32>, Option<(Instant, When)>);

#[derive(Clone, Debug)]
pub(super) enum Is {
    Queued,
    Running {
        forgotten: bool,
        renewed: bool,
        next: Option<Next>,
    },
    Held,
    Waiting {
        until: Instant,
        why: Wait,
    },
    Parked,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: u8,
    pub(super) is: Is,
    pub(super) since: Instant,
    /// Number of the step that brought it here: the order of arrival.
    pub(super) arrival: usize,
    pub(super) lane: Lane,
    pub(super) ids: Vec<u32>,
    pub(super) streak: Streak,
    pub(super) run: Option<RunId>,
}

impl Entry {
    pub(super) fn turn(&mut self, is: Is, now: Instant, arrival: usize) {
        *self = Entry {
            is,
            since: now,
            arrival,
            ..self.clone()
        };
    }

    /// Waits until then, or is ready if that is now.
    pub(super) fn wait(&mut self, until: Instant, why: Wait, now: Instant, arrival: usize) {
        self.turn(
            if until > now {
                Is::Waiting { until, why }
            } else {
                Is::Queued
            },
            now,
            arrival,
        );
    }

    pub(super) fn merge(&mut self, lane: Lane, ids: &[u32]) {
        self.lane = self.lane.max(lane);
        self.ids.extend(ids);
    }

    /// As [`merge`](Self::merge), but a key that only its own timer asked for had no lane.
    pub(super) fn join(&mut self, lane: Lane, id: u32) {
        if self.ids.is_empty() {
            self.lane = lane;
        }
        self.merge(lane, &[id]);
    }

    /// How a verdict changes the streak.
    pub(super) fn judge(&mut self, verdict: &Verdict) {
        let streak = &mut self.streak;
        match verdict {
            Verdict::Done | Verdict::RequeueAfter(_) => *streak = Streak::default(),
            Verdict::NotReady { .. } => {
                let polls = streak.polls + 1;
                *streak = Streak {
                    polls,
                    ..Streak::default()
                };
            }
            Verdict::Again { .. } => streak.conflicts += 1,
            Verdict::Lost { .. } => streak.losses += 1,
            Verdict::Backoff { fault, .. } => {
                streak.conflicts = 0;
                streak.failures += 1;
                streak.strikes += u16::from(*fault == Fault::Object);
            }
            Verdict::Park(_) => {
                streak.conflicts = 0;
                streak.failures += 1;
                streak.strikes += 1;
                streak.parkings += 1;
            }
        }
    }

    pub(super) fn delay(&self) -> Option<Delay> {
        match self.is {
            Is::Waiting { until, why } => Some(Delay {
                until,
                why,
                failures: self.streak.failures,
            }),
            _ => None,
        }
    }
}
