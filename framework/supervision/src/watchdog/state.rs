//! What the watchdog makes of one node, look by look; pure.
//!
//! 1. A node that takes turns is never blocked, and one that handles messages and meets its deadlines is never hung.
//! 2. Hung is only who got a turn after it had become suspicious and is suspicious still: one that merely waits for its thread is not.
//! 3. Work within its deadline is neither blocked nor hung.

use std::time::{Duration, Instant};

/// What is seen of a node at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) incarnation: u32,
    /// Odd inside a turn. To be read last: a turn that begins later sees the messages counted here.
    pub(crate) turns: u32,
    pub(crate) handled: u64,
    /// Messages waiting.
    pub(crate) inbox: usize,
    /// Whether it is to handle messages: it has started, was not asked to stop, and is not suspended.
    pub(crate) works: bool,
    /// The earliest deadline it declared.
    pub(crate) deadline: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It has been inside one turn for this long.
    Blocked(Duration),
    /// The turn it was blocked in has ended.
    Unblocked,
    /// It is suspicious: it is to be given a turn, to show that it only waited for its thread.
    Nudge,
    /// It had its turn, and hangs.
    Hung,
}

/// What earlier looks at a node have left.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// The turn it was seen inside, since when, and whether it was called blocked for it.
    turn: Option<(u32, Instant, bool)>,
    /// The incarnation and its count of messages that were seen while others waited, and since when.
    stall: Option<(u32, u64, Instant)>,
    /// How many turns it had had when it was nudged.
    nudged: Option<u32>,
}

impl Watched {
    /// Since when it has been inside the turn it is blocked in.
    pub(crate) fn blocked(&self) -> Option<Instant> {
        self.turn.and_then(|(_, since, told)| told.then_some(since))
    }

    /// Whether there is nothing to remember.
    pub(crate) fn is_blank(&self) -> bool {
        self.turn.is_none() && self.stall.is_none() && self.nudged.is_none()
    }

    /// Takes one look. What comes more than once is said once: blocked per turn, nudged and hung per suspicion.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        patience: Duration,
        sample: &Sample,
    ) -> Option<Verdict> {
        let said = self.look_at_turn(now, patience, sample);
        let overdue = sample.deadline.is_some_and(|deadline| deadline <= now);
        let stalled = self.stalled(now, patience, sample);
        if !(sample.works && (overdue || stalled)) {
            self.nudged = None;
            return said;
        }
        said.or_else(|| self.suspect(sample))
    }

    fn look_at_turn(
        &mut self,
        now: Instant,
        patience: Duration,
        sample: &Sample,
    ) -> Option<Verdict> {
        let was_blocked = self.blocked().is_some();
        match &mut self.turn {
            Some((turn, since, told)) if *turn == sample.turns => {
                let time = now.saturating_duration_since(*since);
                if *told || time < patience || sample.is_within_deadline(now) {
                    return None;
                }
                *told = true;
                Some(Verdict::Blocked(time))
            }
            turn => {
                *turn = sample.is_inside().then_some((sample.turns, now, false));
                was_blocked.then_some(Verdict::Unblocked)
            }
        }
    }

    fn suspect(&mut self, sample: &Sample) -> Option<Verdict> {
        match self.nudged {
            _ if sample.is_inside() => None,
            None => {
                self.nudged = Some(sample.turns);
                Some(Verdict::Nudge)
            }
            Some(turns) if turns == sample.turns => None,
            Some(_) => {
                *self = Watched::default();
                Some(Verdict::Hung)
            }
        }
    }

    /// Whether messages have waited for longer than patience without one being handled.
    fn stalled(&mut self, now: Instant, patience: Duration, sample: &Sample) -> bool {
        if !sample.works || sample.inbox == 0 || sample.is_within_deadline(now) {
            self.stall = None;
            return false;
        }
        match self.stall {
            Some((incarnation, handled, since))
                if (incarnation, handled) == (sample.incarnation, sample.handled) =>
            {
                now.saturating_duration_since(since) >= patience
            }
            _ => {
                self.stall = Some((sample.incarnation, sample.handled, now));
                false
            }
        }
    }
}

impl Sample {
    fn is_inside(&self) -> bool {
        self.turns % 2 == 1
    }

    fn is_within_deadline(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline > now)
    }
}

#[cfg(test)]
mod tests;
