//! What happens to one seat.

use std::time::{Duration, Instant};

use super::seats::Phase;
use super::{Action, Mode, Roster, Token};
use crate::clock::later;
use crate::exit::Exit;
use crate::plan::{Decision, decide};
use crate::spec::{AutoShutdown, Shutdown, Strategy};
use crate::supervisor::GRACE;

impl Roster {
    pub(super) fn start(&mut self, token: Token) {
        let (ordered, dynamic) = (self.strategy.is_ordered(), self.strategy.is_dynamic());
        let Some(seat) = self.seats.get_mut(token) else {
            return;
        };
        seat.tasked = true;

        let others_wait = ordered || (!seat.proven && !dynamic);
        self.place(token, Phase::Starting, None);
        if others_wait {
            self.opening = Some(token);
        }

        self.actions.push(Action::Start(token));
    }

    /// Asks a running child to stop, once.
    pub(super) fn ask(&mut self, token: Token, now: Instant) {
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

    pub(super) fn kill(&mut self, token: Token, now: Instant) {
        let due = later(now, self.grace(token));
        self.place(token, Phase::Killed, Some(due));
        self.actions.push(Action::Kill(token));
    }

    /// How long the task of a child may take to leave once it has been killed.
    pub(super) fn grace(&self, token: Token) -> Duration {
        match self.seats.get(token) {
            Some(seat) if seat.terms.supervisor => self.supervisor_grace,
            _ => GRACE,
        }
    }

    /// The child has ended for good: forgets it once its task has left, which it does as soon as it is told.
    pub(super) fn dismiss(&mut self, token: Token, now: Instant) {
        let due = later(now, self.grace(token));
        let Some(seat) = self.seats.get_mut(token) else {
            return;
        };
        seat.leaving = true;
        if seat.tasked {
            self.release(token);
            self.place(token, Phase::Leaving, Some(due));
        } else {
            self.forget(token, false);
        }
    }

    pub(super) fn release(&mut self, token: Token) {
        if let Some(seat) = self.seats.get_mut(token)
            && !seat.released
        {
            seat.released = true;
            self.actions.push(Action::Release(token));
        }
    }

    pub(super) fn place(&mut self, token: Token, phase: Phase, due: Option<Instant>) {
        if self.opening == Some(token) {
            self.opening = None;
        }
        self.seats.place(token, phase, due);
    }

    pub(super) fn forget(&mut self, token: Token, running: bool) {
        if self.opening == Some(token) {
            self.opening = None;
        }
        if self.seats.remove(token) {
            self.actions.push(Action::Forget { token, running });
        }
    }

    pub(super) fn failed_first_start(&mut self, token: Token, exit: Exit, now: Instant) {
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

    /// Does what an exit that nobody asked for calls for.
    pub(super) fn decided(&mut self, token: Token, exit: Exit, uptime: Duration, now: Instant) {
        let Some(seat) = self.seats.get(token) else {
            return;
        };
        let (tasked, later, significant) =
            (seat.tasked, seat.terms.added_later, seat.terms.significant);
        let decision = decide(seat.terms.restart, &exit, self.window.is_some());
        match decision {
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
                    self.recall(token);
                    self.delay(token, uptime, now);
                }
            }
        }
        if significant && matches!(decision, Decision::Forget | Decision::Rest) {
            self.missed(token);
        }
    }

    /// A significant child has ended on its own.
    pub(super) fn missed(&mut self, token: Token) {
        let conclude = match self.auto_shutdown {
            AutoShutdown::Never => false,
            AutoShutdown::AnySignificant => true,
            AutoShutdown::AllSignificant => !self.seats.any_significant_is_left(),
        };
        if conclude && self.is_open() {
            self.mode = Mode::Closing { hasty: false };
            self.actions.push(Action::Conclude(token));
        }
    }

    /// The restart of `failed` concerns these too: they stop, and start again after it.
    pub(super) fn recall(&mut self, failed: Token) {
        let first = match self.strategy {
            Strategy::OneForOne | Strategy::SimpleOneForOne => return,
            Strategy::RestForOne => failed,
            Strategy::OneForAll => Token::MIN,
        };
        for token in self.seats.recall(first, failed) {
            self.place(token, Phase::Down, None);
        }
    }

    /// The child was told not to run, and does not.
    pub(super) fn hold(&mut self, token: Token) {
        if let Some(seat) = self.seats.get_mut(token) {
            seat.held = true;
        }
        self.place(token, Phase::Resting, None);
        self.actions.push(Action::Held(token));
    }

    pub(super) fn rest(&mut self, token: Token) {
        self.place(token, Phase::Resting, None);
        self.actions.push(Action::Rest(token));
    }

    pub(super) fn delay(&mut self, token: Token, uptime: Duration, now: Instant) {
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
    pub(super) fn give_up(&mut self, token: Token, exit: Exit, now: Instant) {
        if self.window.is_some() {
            self.escalate(token, exit);
        }
        self.dismiss(token, now);
    }

    pub(super) fn escalate(&mut self, token: Token, exit: Exit) {
        if self.is_open() {
            self.mode = Mode::Closing { hasty: false };
            self.actions.push(Action::Escalate { token, exit });
        }
    }

    /// A child's task does not end, not even when killed.
    pub(super) fn abandon(&mut self, token: Token) {
        let Some(seat) = self.seats.get(token) else {
            return;
        };
        if self.is_open() && !seat.leaving && !seat.held {
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
