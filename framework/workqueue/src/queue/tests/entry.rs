//! One key of the naive model.

use super::*;

#[derive(Clone, Debug)]
pub(super) enum Is {
    Queued,
    Running {
        forgotten: bool,
        next: Option<(Lane, Vec<u32>)>,
    },
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
