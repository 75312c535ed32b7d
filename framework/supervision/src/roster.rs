//! The children of one supervisor and what is to be done about them: events in, actions out, in order; pure.
//!
//! Invariants, by which [`Roster::settle`] may be called after any event:
//! 1. A seat gets at most one `Start` per exit, so an incarnation never begins before the last one is known to have ended.
//! 2. Under an ordered strategy nothing is started while a seat after the first one down lives: later children stop first, last first.
//! 3. A seat has at most one due time, so timers are bounded by seats.
//! 4. Once it closes nothing is started any more, and it finishes when no seat is left.

mod seats;

use std::time::{Duration, Instant};

use crate::child::Ending;
use crate::clock::later;
use crate::exit::Exit;
use crate::intensity::{Intensity, Window};
use crate::plan::{Decision, decide};
use crate::random::Entropy;
use crate::spec::{Restart, Shutdown, Strategy};

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
    /// A transient child is done; its place stays.
    Rest(Token),
    /// The first start of a child that was added at run time failed.
    NotStarted { token: Token, exit: Exit },
    /// The child has left; `running` if its task could not be ended.
    Forget { token: Token, running: bool },
    /// Every child has started for the first time.
    Ready,
    /// The supervisor gives up because of this child; it now stops all others.
    Escalate { token: Token, exit: Exit },
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
    window: Option<Window>,
    entropy: Entropy,
    seats: Seats,
    /// The seat whose start the next one waits for.
    opening: Option<Token>,
    mode: Mode,
    /// Taken by the supervisor after every event.
    pub(crate) actions: Vec<Action>,
}

impl Roster {
    pub(crate) fn new(
        strategy: Strategy,
        intensity: Option<Intensity>,
        entropy: Entropy,
    ) -> Roster {
        Roster {
            strategy,
            window: intensity.map(Window::new),
            entropy,
            seats: Seats::default(),
            opening: None,
            mode: Mode::Opening,
            actions: Vec::new(),
        }
    }

    /// When [`tick`](Self::tick) is to be called next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.seats.next_due()
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
        let expected = matches!(seat.phase(), Phase::Asked | Phase::Killed | Phase::Leaving);
        let done_early = exit.is_orderly() && restart != Restart::Permanent;
        if seat.leaving || !open || (expected && restart == Restart::Temporary) {
            self.dismiss(token, now);
        } else if expected {
            self.place(token, Phase::Down, None);
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
            _ if seat.leaving || !open => self.forget(token, false),
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

    /// Does whatever can be done now.
    pub(crate) fn settle(&mut self, now: Instant) {
        match self.mode {
            Mode::Opening | Mode::Open => {
                if self.strategy.is_ordered() {
                    self.settle_group(now);
                } else {
                    self.start_fresh();
                }
                if self.mode == Mode::Opening
                    && self.seats.first_fresh().is_none()
                    && self.opening.is_none()
                {
                    self.mode = Mode::Open;
                    self.actions.push(Action::Ready);
                }
            }
            Mode::Closing { hasty } => {
                if hasty {
                    self.see_off_all(now);
                } else {
                    self.see_off_last(now);
                }
                if self.seats.is_empty() {
                    self.mode = Mode::Closed;
                    self.actions.push(Action::Finish);
                }
            }
            Mode::Closed => {}
        }
    }

    /// Under an ordered strategy: stops what depends on the first seat down, then starts, one at a time.
    fn settle_group(&mut self, now: Instant) {
        let Some(first) = self.seats.first_down() else {
            return;
        };
        for token in self.seats.resting_after(first) {
            self.place(token, Phase::Down, None);
        }
        if let Some(last) = self.seats.last_live_after(first) {
            self.ask(last, now);
        } else if self.opening.is_none()
            && self
                .seats
                .get(first)
                .is_some_and(|seat| seat.phase() == Phase::Down)
        {
            self.start(first);
        }
    }

    /// Under an unordered strategy: first starts are still one at a time; restarts do not wait for each other.
    fn start_fresh(&mut self) {
        if let (None, Some(next)) = (self.opening, self.seats.first_fresh()) {
            self.start(next);
        }
    }

    fn see_off_all(&mut self, now: Instant) {
        for token in self.seats.tokens() {
            self.see_off(token, now);
            let phase = self.seats.get(token).map(Seat::phase);
            if matches!(phase, Some(Phase::Starting | Phase::Up | Phase::Asked)) {
                self.kill(token, now);
            }
        }
    }

    fn see_off_last(&mut self, now: Instant) {
        while let Some(last) = self.seats.last() {
            self.see_off(last, now);
            if self.seats.get(last).is_some() {
                break;
            }
        }
    }

    /// Makes a child leave for good.
    fn see_off(&mut self, token: Token, now: Instant) {
        let Some(seat) = self.seats.get(token) else {
            return;
        };
        match seat.phase() {
            Phase::Down | Phase::Waiting | Phase::Resting => self.dismiss(token, now),
            Phase::Starting | Phase::Up => {
                self.release(token);
                self.ask(token, now);
            }
            Phase::Asked | Phase::Leaving => self.release(token),
            Phase::Killed => {
                let due = seat.due().unwrap_or(later(now, seat.terms.grace));
                self.release(token);
                self.place(token, Phase::Killed, Some(due));
            }
        }
    }

    fn start(&mut self, token: Token) {
        let ordered = self.strategy.is_ordered();
        let Some(seat) = self.seats.get_mut(token) else {
            return;
        };
        seat.tasked = true;

        let others_wait = ordered || !seat.proven;
        self.place(token, Phase::Starting, None);
        if others_wait {
            self.opening = Some(token);
        }

        self.actions.push(Action::Start(token));
    }

    /// Asks a running child to stop, once.
    fn ask(&mut self, token: Token, now: Instant) {
        let Some(seat) = self.seats.get(token) else {
            return;
        };
        if !matches!(seat.phase(), Phase::Starting | Phase::Up) {
            return;
        }
        let patience = match seat.terms.shutdown {
            Shutdown::Brutal => return self.kill(token, now),
            Shutdown::Timeout(patience) => Some(later(now, patience)),
            Shutdown::Infinity => None,
        };
        self.place(token, Phase::Asked, patience);
        self.actions.push(Action::Stop(token));
    }

    fn kill(&mut self, token: Token, now: Instant) {
        let Some(grace) = self.seats.get(token).map(|seat| seat.terms.grace) else {
            return;
        };
        self.place(token, Phase::Killed, Some(later(now, grace)));
        self.actions.push(Action::Kill(token));
    }

    /// The child has ended for good: forgets it once its task has left, which it does as soon as it is told.
    fn dismiss(&mut self, token: Token, now: Instant) {
        let Some(seat) = self.seats.get_mut(token) else {
            return;
        };
        seat.leaving = true;
        if seat.tasked {
            let due = later(now, seat.terms.grace);
            self.release(token);
            self.place(token, Phase::Leaving, Some(due));
        } else {
            self.forget(token, false);
        }
    }

    fn release(&mut self, token: Token) {
        if let Some(seat) = self.seats.get_mut(token)
            && !seat.released
        {
            seat.released = true;
            self.actions.push(Action::Release(token));
        }
    }

    fn place(&mut self, token: Token, phase: Phase, due: Option<Instant>) {
        if self.opening == Some(token) {
            self.opening = None;
        }
        self.seats.place(token, phase, due);
    }

    fn forget(&mut self, token: Token, running: bool) {
        if self.opening == Some(token) {
            self.opening = None;
        }
        if self.seats.remove(token) {
            self.actions.push(Action::Forget { token, running });
        }
    }

    fn failed_first_start(&mut self, token: Token, exit: Exit, now: Instant) {
        if self
            .seats
            .get(token)
            .is_some_and(|seat| seat.terms.added_later)
        {
            self.actions.push(Action::NotStarted { token, exit });
        } else {
            self.escalate(token, exit);
        }
        self.dismiss(token, now);
    }

    fn decided(&mut self, token: Token, exit: Exit, uptime: Duration, now: Instant) {
        let Some(seat) = self.seats.get(token) else {
            return;
        };
        let (tasked, later) = (seat.tasked, seat.terms.added_later);
        match decide(seat.terms.restart, &exit, self.window.is_some()) {
            Decision::Forget => self.dismiss(token, now),
            Decision::Rest if self.strategy.is_ordered() => self.rest(token),
            // nothing could restart it, so nothing of it is kept; of one that belongs here the place is shown
            Decision::Rest if later => self.dismiss(token, now),
            Decision::Rest => {
                self.release(token);
                self.rest(token);
            }
            Decision::Escalate => self.give_up(token, exit, now),
            Decision::Restart { .. } if !tasked => self.give_up(token, exit, now),
            Decision::Restart { counts } => {
                let full = counts
                    && self
                        .window
                        .as_mut()
                        .is_some_and(|window| window.exceeded(now));
                if full {
                    self.give_up(token, exit, now);
                } else {
                    self.delay(token, uptime, now);
                }
            }
        }
    }

    fn rest(&mut self, token: Token) {
        self.place(token, Phase::Resting, None);
        self.actions.push(Action::Rest(token));
    }

    fn delay(&mut self, token: Token, uptime: Duration, now: Instant) {
        let Some(seat) = self.seats.get_mut(token) else {
            return;
        };
        seat.streak = seat.terms.backoff.next_streak(seat.streak, uptime);
        let delay = seat.terms.backoff.delay(seat.streak, &self.entropy);
        if !delay.is_zero() {
            let until = later(now, delay);
            self.place(token, Phase::Waiting, Some(until));
            self.actions.push(Action::Wait { token, until });
        } else if self.strategy.is_ordered() {
            self.place(token, Phase::Down, None);
        } else {
            self.start(token);
        }
    }

    /// The child cannot be restarted: the supervisor gives up, or the child is lost if it may not.
    fn give_up(&mut self, token: Token, exit: Exit, now: Instant) {
        if self.window.is_some() {
            self.escalate(token, exit);
        }
        self.dismiss(token, now);
    }

    fn escalate(&mut self, token: Token, exit: Exit) {
        if self.is_open() {
            self.mode = Mode::Closing { hasty: false };
            self.actions.push(Action::Escalate { token, exit });
        }
    }

    /// A child's task does not end, not even when killed.
    fn abandon(&mut self, token: Token) {
        let Some(seat) = self.seats.get(token) else {
            return;
        };
        if self.is_open() && !seat.leaving {
            if self.window.is_none() {
                // nobody above may hear of it: the group waits until the thread comes free
                return;
            }
            self.escalate(token, Exit::Stuck);
        }
        self.release(token);
        self.forget(token, true);
    }
}

#[cfg(test)]
mod tests;
