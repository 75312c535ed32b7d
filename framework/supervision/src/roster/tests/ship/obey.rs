//! What the roster orders, carried out, if it is allowed.

use std::time::Duration;

use super::{Action, Hand, Ship, State, Token};
use crate::child::Ending;
use crate::exit::Exit;
use crate::spec::{AutoShutdown, Restart, Strategy};

impl Ship {
    pub(super) fn obey(&mut self) {
        while !self.roster.actions.is_empty() {
            for action in std::mem::take(&mut self.roster.actions) {
                self.log.push(action.clone());
                self.carry_out(action);
            }
        }
    }

    fn carry_out(&mut self, action: Action) {
        assert!(!self.finished, "{action:?} after the end");
        match action {
            Action::Start(token) => {
                assert!(!self.closing, "started {token} while closing");
                assert!(!self.hands[&token].lives(), "started {token} twice");
                let hand = &self.hands[&token];
                assert!(!hand.dismissed, "started {token}, which was let go");
                assert!(!hand.held, "started {token}, which was terminated");
                if let (Some(ended), false) = (hand.ended, hand.by_hand) {
                    let first = match self.policy.strategy {
                        Strategy::OneForOne | Strategy::SimpleOneForOne => Token::MAX,
                        Strategy::RestForOne => token + 1,
                        Strategy::OneForAll => 0,
                    };
                    let old = self
                        .hands
                        .range(first..)
                        .find(|(_, hand)| hand.lives() && !hand.forgotten && hand.began < ended);
                    assert!(
                        old.is_none(),
                        "started {token}, which ended, while {old:?} of its group ran on"
                    );
                }
                self.beats += 1;
                let beats = self.beats;
                let hand = self.hand(token);
                (hand.stop, hand.kill) = (false, false);
                hand.began = beats;
                if hand.state == State::Gone {
                    let ending = Ending {
                        exit: Exit::Killed,
                        uptime: Duration::ZERO,
                        started: false,
                        gone: true,
                    };
                    self.roster.exited(token, ending, self.now);
                } else {
                    hand.state = State::Starting;
                }
            }
            Action::Up(token) => assert_ne!(self.hands[&token].state, State::Unborn),
            Action::Stop(token) => {
                let hand = self.hand(token);
                assert!(!hand.stop, "asked {token} twice");
                assert_ne!(hand.state, State::Unborn);
                hand.stop = true;
            }
            Action::Kill(token) => self.hand(token).kill = true,
            Action::Release(token) => self.hand(token).released = true,
            Action::Wait { token, until } => {
                assert!(until > self.now);
                assert!(!self.hands[&token].lives());
            }
            Action::Queue(token) => assert!(!self.hands[&token].lives()),
            Action::Rest(token) => {
                assert_eq!(self.hands[&token].kind, Restart::Transient);
                assert!(!self.hands[&token].lives());
            }
            Action::NotStarted { token, .. } => {
                let hand = self.hand(token);
                assert!(!hand.lives());
                hand.held = true;
            }
            Action::Held(token) => {
                let hand = self.hand(token);
                assert!(!hand.lives());
                assert_ne!(hand.kind, Restart::Temporary);
                hand.held = true;
            }
            Action::Forget { token, running } => {
                let hand = self.hand(token);
                (hand.dismissed, hand.forgotten) = (true, true);
                let gone = matches!(hand.state, State::Gone | State::Unborn);
                assert!(
                    gone || running,
                    "forgot {token}, whose task exists, as ended"
                );
                assert!(
                    hand.released || gone,
                    "forgot {token} and did not let it go"
                );
            }
            Action::Ready => {
                assert!(!self.opened, "ready twice");
                self.opened = true;
                assert!(
                    self.hands
                        .values()
                        .all(|hand| hand.state != State::Unborn || hand.dismissed || hand.held)
                );
            }
            Action::Escalate { .. } => {
                let may = self.policy.intensity.is_some() || !self.opened;
                assert!(
                    may,
                    "gave up without intensity, and not because of a first start"
                );
                self.closing = true;
            }
            Action::Conclude(token) => {
                assert!(self.hands[&token].significant && !self.hands[&token].lives());
                let running = |hand: &&Hand| {
                    hand.significant && hand.lives() && !hand.dismissed && !hand.held
                };
                match self.policy.auto_shutdown {
                    AutoShutdown::Never => panic!("ended itself"),
                    AutoShutdown::AnySignificant => {}
                    AutoShutdown::AllSignificant => {
                        assert!(
                            self.hands.values().find(running).is_none(),
                            "ended itself too early"
                        );
                    }
                }
                self.closing = true;
            }
            Action::Finish => {
                self.finished = true;
                assert!(
                    self.hands.values().all(|hand| hand.dismissed),
                    "finished, and left {:?}",
                    self.hands
                );
            }
        }
    }
}
