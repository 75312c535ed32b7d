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

/// What an add, a renewal or a request for a time led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a `Delayed` key needs a timer"]
pub enum Added {
    /// The key was idle and is now in its lane.
    Queued,
    /// A run, or a wait whose timer is set already, is there for it.
    Coalesced,
    /// It is running: one more run follows.
    Dirty,
    /// It goes on as it was: it waits after a failure or conflict with its timer set already, is
    /// held, or is parked and was only asked to run later.
    Backoff,
    /// It waited or was parked, and is now in its lane. A timer set for it is void.
    Woken,
    /// It waits, until a time that is new: set a timer.
    Delayed(Delay),
}

/// Which of two times a key waits for when it is asked to run at another.
///
/// Whatever the rule, a run that starts meanwhile uses the wait up: those who still want the time
/// say so again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum When {
    /// The earlier: nobody is told later than they asked for.
    #[default]
    Earliest,
    /// The later: whoever asks again postpones.
    Latest,
    /// The new one.
    Replace,
}

impl When {
    /// The time that holds, of one there is and one that is asked for.
    #[must_use]
    pub fn of<T: Ord>(self, present: T, asked: T) -> T {
        match self {
            When::Earliest => present.min(asked),
            When::Latest => present.max(asked),
            When::Replace => asked,
        }
    }
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
        u32::from(self.streak.failures) + 1
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
    /// Not ready yet: look again after this delay, or as soon as something happens. No failure;
    /// it ends a streak of failures.
    NotReady {
        /// How long to wait.
        delay: Duration,
    },
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
    /// Ended without a word: whoever ran it is gone. No failure; try again after a short delay.
    Lost {
        /// How long to wait.
        delay: Duration,
    },
    /// Failed for good as things stand: take it out of the round, for this reason.
    Park(String),
}

impl Verdict {
    /// Whether what caused the run is dealt with.
    pub(crate) fn settles(&self) -> bool {
        matches!(self, Verdict::Done | Verdict::RequeueAfter(_))
    }
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
