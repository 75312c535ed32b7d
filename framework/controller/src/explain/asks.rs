//! Questions to a shard about its cells.

use std::{
    sync::{Arc, Mutex},
    time::Instant,
};

use boatswain_cache::Key;
use boatswain_workqueue::{Lane, Phase, Queue, Streak, Wait};
use tokio::sync::oneshot;

use crate::{reconcile::Causes, sync::lock};

/// Questions that may wait for an answer at once.
const PENDING: usize = 1024;

/// The questions of one shard. A shard that is down answers when it is up again, if whoever asked still waits.
#[derive(Clone, Default)]
pub(crate) struct Asks(Arc<Mutex<Vec<Ask>>>);

struct Ask {
    key: Key,
    answer: oneshot::Sender<Option<Cell>>,
}

/// What a shard knows of a key that is not idle.
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

impl Asks {
    /// Asks; none if too many do already.
    pub(crate) fn ask(&self, key: &Key) -> Option<oneshot::Receiver<Option<Cell>>> {
        let (answer, receiver) = oneshot::channel();
        let mut asks = lock(&self.0);
        asks.retain(|ask| !ask.answer.is_closed());
        if asks.len() >= PENDING {
            return None;
        }
        asks.push(Ask {
            key: key.clone(),
            answer,
        });
        Some(receiver)
    }

    /// The shard answers whatever was asked.
    pub(crate) fn answer(&self, queue: &Queue<Key, Causes>, seat: impl Fn() -> bool) {
        let asks = std::mem::take(&mut *lock(&self.0));
        for Ask { key, answer } in asks {
            // who asked may have gone
            let _ = answer.send(Cell::of(queue, &key, &seat));
        }
    }
}

impl Cell {
    fn of(queue: &Queue<Key, Causes>, key: &Key, seat: &impl Fn() -> bool) -> Option<Self> {
        let view = queue.state_of(key)?;
        let state = match view.phase {
            Phase::Queued => State::Queued {
                depth: queue.depth(view.lane),
                seat: seat(),
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
