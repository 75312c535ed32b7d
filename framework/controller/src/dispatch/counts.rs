//! How many keys of a shard do what.

use std::time::Instant;

use boatswain_cache::Key;
use boatswain_workqueue::{Lane, Queue};
use serde_json::{Value, json};

use crate::reconcile::Causes;

/// Keys of a shard by what they do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Ready, over all lanes.
    pub(crate) queued: usize,
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    pub(crate) held: usize,
    pub(crate) parked: usize,
    pub(crate) high_water: usize,
    /// Ready, by lane: in the order of [`Lane::ALL`].
    pub(crate) lanes: [usize; 3],
    /// Since when the head of each lane has been ready.
    pub(crate) oldest: [Option<Instant>; 3],
}

impl Counts {
    /// Of those that are `listed` as parked some have news, and wait until they have rested.
    pub(crate) fn of(queue: &Queue<Key, Causes>, listed: usize) -> Self {
        Self {
            queued: queue.queued(),
            running: queue.running(),
            waiting: (queue.waiting() + queue.parked()).saturating_sub(listed),
            held: queue.held(),
            parked: listed,
            high_water: queue.high_water(),
            lanes: Lane::ALL.map(|lane| queue.depth(lane)),
            oldest: Lane::ALL.map(|lane| queue.oldest_since(lane)),
        }
    }

    /// Those of several shards together; the oldest of each lane.
    pub(crate) fn sum(shards: impl IntoIterator<Item = Self>) -> Self {
        shards.into_iter().fold(Self::default(), |sum, one| Self {
            queued: sum.queued + one.queued,
            running: sum.running + one.running,
            waiting: sum.waiting + one.waiting,
            held: sum.held + one.held,
            parked: sum.parked + one.parked,
            high_water: sum.high_water + one.high_water,
            lanes: std::array::from_fn(|lane| sum.lanes[lane] + one.lanes[lane]),
            oldest: std::array::from_fn(|lane| {
                let heads = sum.oldest[lane].into_iter().chain(one.oldest[lane]);
                heads.min()
            }),
        })
    }
}

impl From<Counts> for Value {
    fn from(counts: Counts) -> Self {
        let Counts {
            queued,
            running,
            waiting,
            held,
            parked,
            high_water,
            ..
        } = counts;
        json!({
            "queued": queued, "running": running, "waiting": waiting, "held": held, "parked": parked, "queued_high_water": high_water,
        })
    }
}
