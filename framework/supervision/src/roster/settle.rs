//! What can be done now, given where everybody is.

use std::time::Instant;

use super::seats::{Phase, Seat};
use super::{Action, Mode, Roster, Token};
use crate::clock::later;
use crate::spec::Strategy;

impl Roster {
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
                    && self.seats.none_is_unproven()
                {
                    self.mode = Mode::Open;
                    self.actions.push(Action::Ready);
                }
            }
            Mode::Closing { hasty } => {
                if hasty || self.strategy.is_dynamic() {
                    self.see_off_all(hasty, now);
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

    /// Under an ordered strategy: stops whoever is recalled, then starts, one at a time.
    fn settle_group(&mut self, now: Instant) {
        if let Some(last) = self.seats.last_recalled() {
            return self.ask(last, now);
        }
        let all_wait = self.strategy == Strategy::OneForAll && self.seats.any_waits();
        if all_wait || self.opening.is_some() {
            return;
        }
        let Some(first) = self.seats.first_down() else {
            return;
        };
        if self.seats.get(first).map(Seat::phase) == Some(Phase::Down) {
            self.start(first);
        }
    }

    /// Under an unordered strategy: first starts are still one at a time, unless children are dynamic; restarts do not wait for each other.
    fn start_fresh(&mut self) {
        while let (None, Some(next)) = (self.opening, self.seats.first_fresh()) {
            self.start(next);
        }
    }

    /// Once, and once more in haste: ten thousand leave one by one, and none of them comes back.
    fn see_off_all(&mut self, hasty: bool, now: Instant) {
        if self.seen_off.replace(hasty) == Some(hasty) {
            return;
        }
        for token in self.seats.tokens() {
            self.see_off(token, now);
            let phase = self.seats.get(token).map(Seat::phase);
            if hasty && matches!(phase, Some(Phase::Starting | Phase::Up | Phase::Asked)) {
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
    pub(super) fn see_off(&mut self, token: Token, now: Instant) {
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
                let due = self
                    .seats
                    .due(token)
                    .unwrap_or(later(now, self.grace(token)));
                self.release(token);
                self.place(token, Phase::Killed, Some(due));
            }
        }
    }
}
