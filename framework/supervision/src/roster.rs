//! The children of one supervisor and what is to be done about them: events in, actions out, in order; pure.
//!
//! Invariants, by which [`Roster::settle`] may be called after any event:
//! 1. A seat gets at most one `Start` per exit, so an incarnation never begins before the last one is known to have ended.
//! 2. Under an ordered strategy nothing is started while a recalled seat lives: those whom a failure concerns stop first, last first.
//! 3. A seat has at most one due time, so timers are bounded by seats.
//! 4. Once it closes nothing is started any more, and it finishes when no seat is left.

mod moves;
mod seats;
mod settle;

use std::time::{Duration, Instant};

use crate::child::Ending;
use crate::exit::Exit;
use crate::intensity::Window;
use crate::random::Entropy;
use crate::spec::{AutoShutdown, Policy, Restart, Strategy};

use seats::{Phase, Seat, Seats};
pub(crate) use seats::{Terms, Token};

/// Seats whose time has come that are dealt with before others on the thread get a turn.
pub(crate) const DUE_PER_TICK: usize = 256;

/// What the supervisor is to do next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Begin an incarnation.
    Start(Token),
    /// The incarnation has started.
    Up(Token),
    /// Ask the child to stop.
    Stop(Token),
    /// End the child without asking.
    Kill(Token),
    /// The child's next exit is its last, or its task may go if it has exited.
    Release(Token),
    /// The child waits for its next start.
    Wait { token: Token, until: Instant },
    /// The child waits for its turn to be started again with its group.
    Queue(Token),
    /// A transient child is done; its place stays.
    Rest(Token),
    /// The start of a child that was asked for at run time failed.
    NotStarted { token: Token, exit: Exit },
    /// The child was terminated; its place stays.
    Held(Token),
    /// The child has left; `running` if its task could not be ended.
    Forget { token: Token, running: bool },
    /// Every child has started for the first time.
    Ready,
    /// The supervisor gives up because of this child; it now stops all others.
    Escalate { token: Token, exit: Exit },
    /// The supervisor ends itself because this significant child ended; it now stops all others.
    Conclude(Token),
    /// Nothing is left: the supervisor ends.
    Finish,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Not every child has started for the first time.
    Opening,
    Open,
    Closing {
        hasty: bool,
    },
    Closed,
}

#[derive(Debug)]
pub(crate) struct Roster {
    strategy: Strategy,
    auto_shutdown: AutoShutdown,
    supervisor_grace: Duration,
    window: Option<Window>,
    entropy: Entropy,
    seats: Seats,
    /// The seat whose start the next one waits for.
    opening: Option<Token>,
    mode: Mode,
    /// Whether all have been seen off at once, and whether in haste.
    seen_off: Option<bool>,
    /// Taken by the supervisor after every event.
    pub(crate) actions: Vec<Action>,
}

/// Why a child cannot be started again by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotIdle {
    /// It runs, or is on its way to.
    Running,
    /// It ended on its own, and was let go.
    Finished,
}

impl Roster {
    /// `supervisor_grace` is how long a supervisor among the children may take to leave once it has been killed.
    pub(crate) fn new(policy: Policy, supervisor_grace: Duration, entropy: Entropy) -> Roster {
        Roster {
            supervisor_grace,
            strategy: policy.strategy,
            auto_shutdown: policy.auto_shutdown,
            window: policy.intensity.map(Window::new),
            entropy,
            seats: Seats::default(),
            opening: None,
            mode: Mode::Opening,
            seen_off: None,
            actions: Vec::new(),
        }
    }

    /// When [`tick`](Self::tick) is to be called next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.seats.next_due()
    }

    /// How often a child has failed in a row.
    pub(crate) fn streak(&self, token: Token) -> u32 {
        self.seats.get(token).map_or(0, |seat| seat.streak)
    }

    /// The failures in the restart window.
    pub(crate) fn failures(&self) -> Vec<Instant> {
        self.window.iter().flat_map(Window::failures).collect()
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.mode, Mode::Opening | Mode::Open)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.mode == Mode::Closed
    }

    /// Takes a child after those it has; started by the next [`settle`](Self::settle) whose turn it is.
    pub(crate) fn add(&mut self, token: Token, terms: Terms) {
        self.seats.insert(token, Seat::new(terms));
    }

    /// A child's incarnation has started.
    pub(crate) fn started(&mut self, token: Token, now: Instant) {
        let Some(seat) = self.seats.get_mut(token) else {
            return;
        };
        seat.proven = true;
        seat.reviving = false;
        // it may have been asked to stop meanwhile
        if seat.phase() == Phase::Starting {
            self.place(token, Phase::Up, None);
            self.actions.push(Action::Up(token));
        }
        self.settle(now);
    }

    /// A child's incarnation has ended.
    pub(crate) fn exited(&mut self, token: Token, ending: Ending, now: Instant) {
        let Ending {
            exit,
            uptime,
            started,
            gone,
        } = ending;
        let open = self.is_open();
        let Some(seat) = self.seats.get_mut(token) else {
            return;
        };
        seat.tasked = !gone;
        seat.proven |= started;
        let restart = seat.terms.restart;
        let reviving = std::mem::take(&mut seat.reviving);
        let expected =
            seat.recalled || matches!(seat.phase(), Phase::Asked | Phase::Killed | Phase::Leaving);
        let done_early = exit.is_orderly() && restart != Restart::Permanent;
        if seat.leaving || !open || (expected && restart == Restart::Temporary) {
            self.dismiss(token, now);
        } else if seat.held {
            self.hold(token);
        } else if expected {
            self.place(token, Phase::Down, None);
            self.actions.push(Action::Queue(token));
        } else if reviving && !started && !done_early {
            self.actions.push(Action::NotStarted { token, exit });
            self.hold(token);
        } else if !seat.proven && !done_early {
            self.failed_first_start(token, exit, now);
        } else {
            seat.proven = true;
            self.decided(token, exit, uptime, now);
        }
        self.settle(now);
    }

    /// A child's task has left, after its exit had been reported.
    pub(crate) fn left(&mut self, token: Token, now: Instant) {
        let open = self.is_open();
        let Some(seat) = self.seats.get_mut(token) else {
            return;
        };
        seat.tasked = false;
        match seat.phase() {
            Phase::Resting => {}
            Phase::Leaving => self.forget(token, false),
            _ if seat.leaving || seat.held || !open => self.forget(token, false),
            // its thread has ended, and with it the mailbox: there is nothing to restart
            _ => self.give_up(token, Exit::Killed, now),
        }
        self.settle(now);
    }

    /// Carries out what is due, up to a batch: what is left is due at once.
    pub(crate) fn tick(&mut self, now: Instant) {
        for _ in 0..DUE_PER_TICK {
            let Some((token, phase)) = self.seats.pop_due(now) else {
                break;
            };
            match phase {
                Phase::Waiting if self.strategy.is_ordered() || !self.is_open() => {
                    self.place(token, Phase::Down, None)
                }
                Phase::Waiting => self.start(token),
                Phase::Asked => self.kill(token, now),
                Phase::Killed | Phase::Leaving => self.abandon(token),
                Phase::Down | Phase::Starting | Phase::Up | Phase::Resting => {}
            }
        }
        self.settle(now);
    }

    /// Stops one child for good.
    pub(crate) fn remove(&mut self, token: Token, now: Instant) {
        if let Some(seat) = self.seats.get_mut(token) {
            seat.leaving = true;
            self.see_off(token, now);
            self.settle(now);
        }
    }

    /// Stops one child, whose place stays: it is started again by [`revive`](Self::revive) and by nothing else. One that never comes back leaves.
    pub(crate) fn terminate(&mut self, token: Token, now: Instant) {
        let dynamic = self.strategy.is_dynamic();
        let Some(seat) = self.seats.get_mut(token) else {
            return;
        };
        if dynamic || seat.terms.restart == Restart::Temporary {
            return self.remove(token, now);
        }
        seat.held = true;
        match seat.phase() {
            Phase::Down | Phase::Waiting => self.hold(token),
            Phase::Resting => self.actions.push(Action::Held(token)),
            Phase::Starting | Phase::Up => self.ask(token, now),
            Phase::Asked | Phase::Killed | Phase::Leaving => {}
        }
        self.settle(now);
    }

    /// Starts a child that does not run: one that was terminated, or has ended and is still here.
    pub(crate) fn revive(&mut self, token: Token, now: Instant) -> Result<(), NotIdle> {
        self.is_idle(token)?;
        let Some(seat) = self.seats.get_mut(token) else {
            return Err(NotIdle::Finished);
        };
        if seat.released {
            return Err(NotIdle::Finished);
        }
        seat.held = false;
        seat.reviving = true;
        seat.streak = 0;
        let proven = seat.proven;
        self.place(token, Phase::Down, None);
        if proven && !self.strategy.is_ordered() {
            self.start(token);
        }
        self.settle(now);
        Ok(())
    }

    /// Whether a child has ended and nothing brings it back but [`revive`](Self::revive) or the restart of its group.
    pub(crate) fn is_idle(&self, token: Token) -> Result<(), NotIdle> {
        match self.seats.get(token).map(Seat::phase) {
            Some(Phase::Resting) if self.is_open() => Ok(()),
            _ => Err(NotIdle::Running),
        }
    }

    /// Stops all children, last first; in haste, all at once and without asking.
    pub(crate) fn close(&mut self, hasty: bool, now: Instant) {
        self.mode = match self.mode {
            Mode::Opening | Mode::Open => Mode::Closing { hasty },
            Mode::Closing { hasty: before } => Mode::Closing {
                hasty: hasty || before,
            },
            Mode::Closed => Mode::Closed,
        };
        self.settle(now);
    }
}

#[cfg(test)]
mod tests;
