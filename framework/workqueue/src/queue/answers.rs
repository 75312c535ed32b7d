//! What goes into a queue and what it says: options, activations, verdicts, answers.

use std::time::{Duration, Instant};

use crate::{Delay, Fault, Lane, RunId, Streak};

/// What can be set about a queue.
#[derive(Clone, Debug)]
pub struct QueueOptions {
    /// From this wait on a lane's head goes before more urgent lanes. Default 30 s.
    pub ageing: Duration,
    /// A parked key woken by an event does not run again sooner than this after it was parked, so
    /// that a key that is parked and writes its own status (which is an event) does not spin.
    /// Waking by hand does not wait. Default 10 s.
    pub parked_rest: Duration,
    /// Tells runs of this queue from those of an earlier queue for the same keys: give each
    /// incarnation another number. Default 0.
    pub epoch: u32,
    /// Seed of the hasher; see [`Seeded`](crate::Seeded). Default 0.
    pub hash_seed: u64,
}

impl Default for QueueOptions {
    fn default() -> Self {
        QueueOptions {
            ageing: Duration::from_secs(30),
            parked_rest: Duration::from_secs(10),
            epoch: 0,
            hash_seed: 0,
        }
    }
}

/// What an add led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a `Delayed` key needs a timer"]
pub enum Added {
    /// The key was idle and is now in its lane.
    Queued,
    /// It was queued, or running and dirty, already.
    Coalesced,
    /// It is running: one more run follows.
    Dirty,
    /// It waits after a failure or conflict and goes on waiting; its timer is set already.
    Backoff,
    /// It waited for the time it had asked for, or was parked, and is now in its lane. A timer set
    /// for it is void.
    Woken,
    /// It was parked a moment ago and waits a little longer: set a timer.
    Delayed(Delay),
}

/// One run of one key, to be carried out and then reported with
/// [`Queue::finish`](crate::Queue::finish).
#[derive(Clone, Debug)]
pub struct Activation<K, C> {
    /// What to run.
    pub key: K,
    /// Names this run.
    pub run: RunId,
    /// Why: everything that was merged since the last run, and what a failed run had not settled.
    /// `None` when the key's own timer or a wake by hand is all there is.
    pub cause: Option<C>,
    /// How the key has been doing up to here.
    pub streak: Streak,
    /// When it became ready.
    pub queued_at: Instant,
    /// The lane it came from.
    pub lane: Lane,
}

impl<K, C> Activation<K, C> {
    /// Which try this is since the last success: 1 for the first.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.streak.failures.saturating_add(1)
    }
}

/// How a run ended, as far as the queue cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Settled; the streak ends.
    Done,
    /// Settled; run again after this time, or earlier if something happens: an event meanwhile uses
    /// the request up. The streak ends.
    RequeueAfter(Duration),
    /// Failed; try again after the delay a limiter gave.
    Backoff {
        /// How long to wait.
        delay: Duration,
        /// Whose fault it was.
        fault: Fault,
    },
    /// Lost a race for a write (409). No failure; try again after a short delay.
    Again {
        /// How long to wait.
        delay: Duration,
    },
    /// Failed for good as things stand: take it out of the round, for this reason.
    Park(String),
}

/// What became of a key after its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a `Waiting` key needs a timer"]
pub enum Next {
    /// Nothing to do; the cell is gone.
    Idle,
    /// In its lane again.
    Queued,
    /// Not yet its time: set a timer.
    Waiting(Delay),
    /// Out of the round.
    Parked,
    /// That run is not under way (reported twice, or by an earlier incarnation); nothing changed.
    NotRunning,
}

/// What a timer's ring led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an `Early` key needs its timer again"]
pub enum Due {
    /// The wait is over; the key is in its lane.
    Queued,
    /// The key waits for a later time than that: set the timer again.
    Early(Delay),
    /// The key does not wait (any more); nothing changed.
    Stale,
}
