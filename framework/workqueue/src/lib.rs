//! A keyed work queue as a pure data structure: one cell per key, priority lanes with ageing,
//! delays, rate limiters.
//!
//! Nothing here reads a clock, draws a random number, spawns or blocks: time and chance are
//! arguments, and whoever owns a [`Queue`] (an actor, a test) decides when to call. Same calls,
//! same answers, whatever the hasher.
//!
//! # The cell contract
//!
//! A key that has nothing to do has no cell: *idle is absence*. Otherwise it is in exactly one
//! state.
//!
//! | State | [`add`](Queue::add) | leaves it by |
//! |---|---|---|
//! | idle | becomes queued | |
//! | queued | is merged; the more urgent lane wins, the place in line is kept | [`start`](Queue::start) |
//! | running | becomes dirty: one more run follows, however many adds there were | [`finish`](Queue::finish), [`hold`](Queue::hold) |
//! | waiting for the time it asked for, or to look again | becomes queued; the wait is used up | [`due`](Queue::due), [`cancel`](Queue::cancel) |
//! | waiting after a failure or conflict | is merged; a failing key is not hurried. Once its time is over and it only stands in line it becomes queued: news is no retry | [`due`](Queue::due) |
//! | held | is merged | [`free`](Queue::free) |
//! | parked | becomes queued, or waits out the rest of [`parked_rest`](QueueOptions::parked_rest) | an add, [`unpark`](Queue::unpark), [`wake_parked`](Queue::wake_parked) |
//!
//! [`renew`](Queue::renew) is an add for a key whose object is another now, or gone: it forgives the
//! streak and ends every wait. [`schedule`](Queue::schedule) asks for a run at a time.
//!
//! # Guarantees
//!
//! 1. *One at a time.* Between the `start` of a key and the `finish` that names that run the key is
//!    not started again.
//! 2. *Nothing is lost.* After an add the key is queued, waiting, held or parked until a `start` hands it
//!    out. A run that fails, conflicts or parks keeps its cause.
//! 3. *Coalescing.* Any number of adds before a start, or during a run, lead to one run.
//! 4. *Order.* A lane is first in, first out. A head that has waited for the [ageing
//!    bound](QueueOptions::ageing) is started within the next three starts.
//! 5. *Bounded.* Memory follows the keys that are not idle, never the number of keys or events ever
//!    seen. Tables shrink again.
//! 6. Depths, counts and ages are read off the structures that hold the keys; there are no counters
//!    to go astray.
//!
//! # Assumptions
//!
//! `now` never goes back between calls on one value. If it does, nothing is lost, but ages and the
//! order of lanes refer to the times given.
//!
//! # Example
//!
//! A loop that fails once and then succeeds; a real one runs keys elsewhere and reports back.
//!
//! ```
//! use std::time::{Duration, Instant};
//! use boatswain_workqueue::limit::{Exponential, Limiter, Retry};
//! use boatswain_workqueue::{Fault, Lane, Next, Pacer, Queue, QueueOptions, Verdict};
//!
//! let now = Instant::now();
//! let mut queue = Queue::new(QueueOptions::default());
//! let mut pacer = Pacer::default();
//! let mut limiter = Exponential::default().with_jitter(0.0);
//!
//! queue.add("default/web", Lane::Normal, (), now);
//! queue.add("default/web", Lane::Normal, (), now); // coalesced
//!
//! let first = queue.start(now).unwrap();
//! let failures = first.attempt();
//! let delay = limiter.delay(Retry { failures, chance: 0.5, now });
//! let next = queue.finish(&first.key, first.run, Verdict::Backoff { delay, fault: Fault::Object }, now);
//! let Next::Waiting(wait) = next else { unreachable!() };
//! pacer.insert(first.key, wait);
//!
//! let later = now + Duration::from_millis(100);
//! assert_eq!(pacer.next_due(), Some(later));
//! for key in pacer.release(later) {
//!     queue.due(&key, later);
//! }
//! let second = queue.start(later).unwrap();
//! assert_eq!(second.attempt(), 2);
//! assert_eq!(queue.finish(&second.key, second.run, Verdict::Done, later), Next::Idle);
//! assert!(queue.is_empty());
//! ```

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::time::{Duration, Instant};

mod cell;
mod lanes;
pub mod limit;
mod pacer;
mod queue;
mod time;
mod wheel;

pub use cell::{CellView, Delay, Fault, Merge, Phase, RunId, Streak, Wait};
pub use lanes::Lane;
pub use pacer::Pacer;
pub use queue::{Activation, Added, Due, Next, Queue, QueueOptions, Verdict, When};
pub use wheel::Wheel;

/// The hasher used unless another is named: fast on short names, and seeded, so that a run can be
/// repeated.
///
/// Names come from those who may create objects. Where they are not trusted, `Seeded::with_seed`
/// with a number they cannot know makes it impractical to prepare names that collide. No behaviour
/// depends on the seed, only the cost of a collision.
pub type Seeded = foldhash::fast::FixedState;

/// Gives room back after a burst; doubling on the way up and quartering on the way down keep both
/// O(1) per entry.
fn shrink<K: Eq + Hash, V, S: BuildHasher>(table: &mut HashMap<K, V, S>) {
    if table.capacity() > 64 && table.len() < table.capacity() / 4 {
        table.shrink_to(table.len() * 2);
    }
}

/// `now + delay`, where a delay beyond what an `Instant` can tell means "not in this process's
/// life".
fn after(now: Instant, delay: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    now.checked_add(delay.min(FAR)).unwrap_or(now)
}

/// An `Instant` to count from: it has no other constructor, and tests look at differences only.
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "an origin, not a measurement")]
fn origin() -> Instant {
    Instant::now()
}
