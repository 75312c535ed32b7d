//! From a key that has work to a finished run: shards own the key cells, workers run the reconciler, the limiter keeps time.

mod complaints;
mod core;
mod counts;
mod departed;
mod echoes;
mod gate;
mod in_flight;
mod limiter;
mod offload;
mod orders;
mod parked;
mod permits;
mod retry;
mod shard;
mod sick;
mod tally;
mod worker;
mod writes;

use std::hash::BuildHasher as _;

use boatswain_cache::Key;
use boatswain_workqueue::{Delay, Lane, Seeded};

pub(crate) use self::{
    complaints::{Complaints, Tell},
    core::{DispatchCore, Priority, Runner},
    counts::Counts,
    departed::{Departed, LetGo},
    echoes::Echoes,
    gate::{Closing, Gate},
    in_flight::InFlight,
    limiter::LimiterActor,
    permits::Permits,
    retry::{Ended, Retries},
    shard::{Berth, Seat, Shard, ShardView},
    sick::Sick,
    tally::{BARRIER, Ending, QUEUE, RECONCILE, Spread, Sums, Tally, Totals},
    worker::Worker,
    writes::{Target, Writes},
};
pub use self::{
    gate::{Pause, Shut},
    orders::ControllerHandle,
    parked::ParkedKey,
    retry::{Pace, RetryPolicy},
};
use self::{orders::Orders, parked::ParkedView};
use crate::reconcile::Causes;

/// Keys that have work, from a trigger to the shard that owns them.
#[derive(actix::Message)]
#[rtype(result = "()")]
pub(crate) struct Enqueue(pub(crate) Vec<(Key, Lane, Causes)>);

/// What a shard tells the limiter about the waits of its keys.
#[derive(actix::Message)]
#[rtype(result = "()")]
pub(crate) enum Timer {
    /// Say when this wait is over. A later word for the same key replaces an earlier one.
    Set(Vec<(Key, Delay)>),
    /// The key does not wait any more.
    Void(Key),
}

/// Keys whose time has come, from the limiter to their shard.
#[derive(actix::Message)]
#[rtype(result = "()")]
pub(crate) struct Due(pub(crate) Vec<Key>);

/// Asks a shard to tell the limiter again what waits: the limiter lost its wheel.
#[derive(actix::Message)]
#[rtype(result = "()")]
pub(crate) struct Rearm;

/// The shard that owns `key` among `shards`.
pub(crate) fn shard_of(key: &Key, shards: usize) -> usize {
    (hash(key) % shards.max(1) as u64) as usize
}

/// A hash that is the same in every run, so that a run can be repeated.
pub(crate) fn hash(key: &Key) -> u64 {
    Seeded::default().hash_one(key)
}
