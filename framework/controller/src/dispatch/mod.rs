//! From a key that has work to a finished run. Each shard's keys are on a [`Desk`], which outlives every actor: triggers put them there, workers fetch
//! them and run the reconciler, the shard keeps their time and the limiter paces retries. An actor that is lost takes nothing with it.

mod bell;
mod book;
mod complaints;
mod core;
mod counts;
mod departed;
mod desk;
mod echoes;
mod gate;
mod in_flight;
mod limiter;
mod offload;
mod orders;
mod pacing;
mod parked;
mod permits;
mod presence;
mod retry;
mod shard;
mod sick;
mod tally;
mod timer;
mod view;
mod worker;
mod writes;

use std::hash::BuildHasher as _;

use boatswain_cache::Key;
use boatswain_workqueue::Seeded;

use self::parked::ParkedView;
pub(crate) use self::{
    complaints::{Complaints, Tell},
    core::{DispatchCore, Priority, Runner},
    counts::Counts,
    departed::{Departed, LetGo},
    desk::{Desk, Desks},
    echoes::Echoes,
    gate::{Closing, Gate},
    in_flight::InFlight,
    limiter::LimiterActor,
    pacing::Pacing,
    permits::Permits,
    retry::{Ended, Retries},
    shard::Shard,
    sick::Sick,
    tally::{BARRIER, Ending, QUEUE, RECONCILE, Spread, Sums, Tally, Totals},
    view::ShardView,
    worker::Worker,
    writes::{Target, Writes},
};
pub use self::{
    gate::{Pause, Shut},
    orders::ControllerHandle,
    parked::ParkedKey,
    retry::{Pace, RetryPolicy},
};

/// Tells a shard, or the limiter, to see what there is to do. That nothing is in it is why none can be lost with it.
#[derive(actix::Message)]
#[rtype(result = "()")]
pub(crate) struct Look;

/// The shard that owns `key` among `shards`.
pub(crate) fn shard_of(key: &Key, shards: usize) -> usize {
    (hash(key) % shards.max(1) as u64) as usize
}

/// A hash that is the same in every run, so that a run can be repeated.
pub(crate) fn hash(key: &Key) -> u64 {
    Seeded::default().hash_one(key)
}
