//! What a shard's queue says of a key.

use std::time::Instant;

use boatswain_cache::Key;
use boatswain_workqueue::{Lane, Phase, Queue, Streak, Wait};

use crate::{
    dispatch::{ControllerHandle, ShardView, shard_of},
    reconcile::Causes,
};

/// What it knows of a key that is not idle.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) state: State,
    pub(crate) since: Instant,
    pub(crate) lane: Lane,
    pub(crate) causes: Causes,
    pub(crate) streak: Streak,
}

#[derive(Clone, Debug)]
pub(crate) enum State {
    Queued {
        /// How many stand in its lane.
        depth: usize,
        /// Whether a worker is free.
        seat: bool,
    },
    Running {
        again: bool,
    },
    Waiting {
        until: Instant,
        why: Wait,
    },
    Held,
    Parked,
}

/// What a key is doing in one word; `None` when it is idle.
pub(crate) fn state_of(handle: &ControllerHandle, key: &Key) -> Option<&'static str> {
    let view = handle.views.get(shard_of(key, handle.views.len()))?;
    view.look(|queue| Some(word(view, key, &queue.state_of(key)?.phase)))
}

/// What a key in this phase is doing in one word.
pub(crate) fn word(view: &ShardView, key: &Key, phase: &Phase<'_>) -> &'static str {
    match phase {
        Phase::Queued => "queued",
        Phase::Running { .. } => "running",
        // one that has news is parked until it has rested
        Phase::Waiting { .. } if view.parked.contains(key) => "parked",
        Phase::Waiting { .. } => "waiting",
        Phase::Held => "held",
        Phase::Parked { .. } => "parked",
    }
}

impl Cell {
    pub(super) fn of(view: &ShardView, key: &Key) -> Option<Self> {
        view.look(|queue| Self::read(queue, key, view.has_idle_worker()))
    }

    fn read(queue: &Queue<Key, Causes>, key: &Key, seat: bool) -> Option<Self> {
        let view = queue.state_of(key)?;
        let state = match view.phase {
            Phase::Queued => State::Queued {
                depth: queue.depth(view.lane),
                seat,
            },
            Phase::Running { dirty } => State::Running { again: dirty },
            Phase::Waiting { until, why } => State::Waiting { until, why },
            Phase::Held => State::Held,
            Phase::Parked { .. } => State::Parked,
        };
        Some(Self {
            state,
            since: view.since,
            lane: view.lane,
            causes: view.cause.copied().unwrap_or_default(),
            streak: view.streak,
        })
    }
}
