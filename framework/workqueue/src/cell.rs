//! What the queue knows of one key, as a state that owns exactly the data its phase needs. Idle is
//! the absence of a cell.

use std::time::Instant;

use crate::time::{Moment, Timeline};
use crate::{Lane, Verdict, When};

/// Why a key is to run; causes of one run are merged into one value.
///
/// Keep it small and of bounded size (a set of flags, the newest trigger): a cell holds at most
/// two.
pub trait Merge {
    /// Takes in the cause of an add that came later and was coalesced with this one.
    fn merge(&mut self, later: Self);
}

/// For queues that do not record causes.
impl Merge for () {
    fn merge(&mut self, (): ()) {}
}

/// Names one run of one key; only [`Queue::start`](crate::Queue::start) and
/// [`Queue::adopt`](crate::Queue::adopt) make one.
///
/// [`Queue::finish`](crate::Queue::finish) asks for it back, so that a report that comes twice, or
/// late, cannot end a later run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId {
    pub(crate) epoch: u32,
    pub(crate) ticket: u64,
}

/// How badly a key has been doing since it last succeeded. Counts stay at their maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Streak {
    /// Failed runs in a row, whoever was at fault. Sets the delay. A run that is merely not ready
    /// yet ends the row.
    pub failures: u16,
    /// Those of them that were the object's own fault. Decides on parking, so that an outage parks
    /// nobody.
    pub strikes: u16,
    /// Write conflicts in a row. No failures; they only space the next tries.
    pub conflicts: u16,
    /// Runs that were not ready yet. No failures; they only space the next tries, and go on doing
    /// so when a failure comes between them.
    pub polls: u16,
    /// Runs that were lost before they could say how they ended.
    pub losses: u16,
    /// How often it has been parked.
    pub parkings: u16,
}

impl Streak {
    pub(crate) fn after(self, verdict: &Verdict) -> Streak {
        let failed = |strikes, parkings| Streak {
            failures: self.failures.saturating_add(1),
            strikes: self.strikes.saturating_add(strikes),
            parkings: self.parkings.saturating_add(parkings),
            conflicts: 0,
            ..self
        };
        match verdict {
            Verdict::Done | Verdict::RequeueAfter(_) => Streak::default(),
            Verdict::NotReady { .. } => Streak {
                polls: self.polls.saturating_add(1),
                ..Streak::default()
            },
            Verdict::Again { .. } => Streak {
                conflicts: self.conflicts.saturating_add(1),
                ..self
            },
            Verdict::Lost { .. } => Streak {
                losses: self.losses.saturating_add(1),
                ..self
            },
            Verdict::Backoff {
                fault: Fault::Infrastructure,
                ..
            } => failed(0, 0),
            Verdict::Backoff {
                fault: Fault::Object,
                ..
            } => failed(1, 0),
            Verdict::Park(_) => failed(1, 1),
        }
    }
}

/// Whose fault a failed run was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The object's: its content, its reconciler's error, panic or missed deadline.
    Object,
    /// The surroundings': connections, overload, timeouts of the server. Never a reason to park.
    Infrastructure,
}

/// What a waiting key waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// The time it asked for itself. An event ends the wait and uses it up.
    Requeue,
    /// Another look at what was not ready. An event ends the wait.
    NotReady,
    /// The end of its backoff after a failure. Events are merged and do not shorten it.
    Backoff(Fault),
    /// A moment after a write conflict. Events are merged and do not shorten it.
    Conflict,
    /// A moment after its run was lost. Events are merged and do not shorten it.
    Lost,
}

impl Wait {
    /// Whether it is a retry after a failure by the object's own fault, which a
    /// [`Pacer`](crate::Pacer) with a bucket lets go at its pace. Every other wait ends with its time.
    #[must_use]
    pub fn is_retry(self) -> bool {
        self == Wait::Backoff(Fault::Object)
    }

    /// Whether news of the key end the wait before its time.
    pub(crate) fn yields(self) -> bool {
        matches!(self, Wait::Requeue | Wait::NotReady)
    }
}

/// A wait that the owner of the timer must know of: hand it to a [`Pacer`](crate::Pacer) or a
/// [`Wheel`](crate::Wheel).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// When the key may run again.
    pub until: Instant,
    /// What it waits for.
    pub why: Wait,
    /// Its failed runs in a row; who failed least is let through first.
    pub failures: u16,
}

/// Work that has been asked for: how urgently and why.
#[derive(Clone, Debug)]
pub(crate) struct Work<C> {
    pub(crate) lane: Lane,
    /// `None` when nobody outside asked: a time the key itself set came due, or it was woken by
    /// hand.
    pub(crate) cause: Option<C>,
}

impl<C> Default for Work<C> {
    fn default() -> Self {
        Work {
            lane: Lane::Normal,
            cause: None,
        }
    }
}

impl<C> Work<C> {
    pub(crate) fn asked(lane: Lane, cause: C) -> Self {
        Work {
            lane,
            cause: Some(cause),
        }
    }
}

impl<C: Merge> Work<C> {
    /// Takes in what asks for the same run. The key's own request asked for no lane: the other says
    /// how urgent it is.
    pub(crate) fn join(&mut self, later: Work<C>) {
        if self.cause.is_none() {
            *self = later;
        } else {
            self.merge(later);
        }
    }

    /// With what is to follow, whatever its time.
    pub(crate) fn and(mut self, then: Option<Then<C>>) -> Self {
        if let Some(then) = then {
            self.merge(then.into_work());
        }
        self
    }

    pub(crate) fn merge(&mut self, later: Work<C>) {
        self.lane = self.lane.max(later.lane);
        match (&mut self.cause, later.cause) {
            (Some(cause), Some(later)) => cause.merge(later),
            (cause @ None, later) => *cause = later,
            (Some(_), None) => {}
        }
    }
}

/// One activation under way. Keeps its work: when it fails, what caused it still stands.
#[derive(Debug)]
pub(crate) struct Run<C> {
    pub(crate) work: Work<C>,
    pub(crate) since: Moment,
    pub(crate) fate: Fate,
}

/// What the end of a run means for its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// What its verdict says.
    Counts,
    /// The key was renewed meanwhile: it is queued at once, as one that never failed.
    Renewed,
    /// The key was removed meanwhile: how the run ends no longer matters to anyone.
    Forgotten,
}

/// What follows a run, apart from what the run itself decides.
#[derive(Debug)]
pub(crate) enum Then<C> {
    /// One more run: the cell is dirty.
    Now(Work<C>),
    /// One more run at a time somebody asked for.
    At(Appointment<C>),
}

/// A time somebody asked for.
#[derive(Debug)]
pub(crate) struct Appointment<C> {
    pub(crate) until: Moment,
    pub(crate) when: When,
    pub(crate) work: Work<C>,
}

impl<C> Then<C> {
    /// The work without its time.
    pub(crate) fn into_work(self) -> Work<C> {
        match self {
            Then::Now(work) => work,
            Then::At(appointment) => appointment.work,
        }
    }
}

/// A key that is out of the round. Boxed, for there are few and every cell is as large as the
/// largest.
#[derive(Debug)]
pub(crate) struct Parked<C> {
    pub(crate) reason: String,
    pub(crate) since: Moment,
    pub(crate) work: Work<C>,
}

#[derive(Debug)]
pub(crate) enum State<C> {
    Queued(Work<C>),
    Running {
        run: Run<C>,
        /// Boxed, for few keys are dirty and every cell is as large as the largest.
        then: Option<Box<Then<C>>>,
    },
    Waiting {
        until: Moment,
        why: Wait,
        since: Moment,
        work: Work<C>,
    },
    Held {
        since: Moment,
        work: Work<C>,
    },
    Parked(Box<Parked<C>>),
}

#[derive(Debug)]
pub(crate) struct Cell<C> {
    /// Number of the last transition: the place in a lane, the name of a run, the order of waits
    /// and of parked keys.
    pub(crate) ticket: u64,
    pub(crate) streak: Streak,
    pub(crate) state: State<C>,
}

impl<C> Cell<C> {
    pub(crate) fn delay(&self, time: &Timeline) -> Option<Delay> {
        match self.state {
            State::Waiting { until, why, .. } => Some(Delay {
                until: time.instant(until)?,
                why,
                failures: self.streak.failures,
            }),
            _ => None,
        }
    }

    /// Drops everything about the key but a run under way. Returns whether there is one, that is,
    /// whether the cell has to stay.
    pub(crate) fn forget(&mut self) -> bool {
        match &mut self.state {
            State::Running { run, then } => {
                run.fate = Fate::Forgotten;
                *then = None;
                self.streak = Streak::default();
                true
            }
            _ => false,
        }
    }
}

/// What a key that is not idle is doing, for those who watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase<'a> {
    /// Ready, in its lane.
    Queued,
    /// Being run; `dirty` when one more run has been asked for.
    Running {
        /// Whether another run follows.
        dirty: bool,
    },
    /// Not yet its time.
    Waiting {
        /// When it may run again.
        until: Instant,
        /// What it waits for.
        why: Wait,
    },
    /// Ready but held back by whoever runs it, until that lets it go.
    Held,
    /// Taken out of the round until something changes.
    Parked {
        /// Why, in words for people.
        reason: &'a str,
    },
}

/// One key that is not idle, as the queue sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellView<'a, C> {
    /// What it is doing.
    pub phase: Phase<'a>,
    /// Since when.
    pub since: Instant,
    /// The lane of its present or next run.
    pub lane: Lane,
    /// Why it runs or will run; `None` when only its own timer or a wake by hand asks for it.
    pub cause: Option<&'a C>,
    /// How it has been doing.
    pub streak: Streak,
}
