//! The children of one supervisor and what is to be done about them: events in, orders out, in order; pure.
//!
//! Invariants, by which [`Roster::settle`] may be called after any event:
//! 1. `down` holds the seats that want to be started, `live` those whose incarnation has not ended (or whose task must still leave).
//! 2. A seat gets at most one `Start` per exit, so an incarnation never begins before the last one is known to have ended.
//! 3. Under an ordered strategy nothing is started while a seat after the first one down lives: later children stop first, last first.
//! 4. A seat has at most one due time, so timers are bounded by seats.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::backoff::Backoff;
use crate::child::Ending;
use crate::exit::Exit;
use crate::intensity::{Intensity, Window};
use crate::plan::{Decision, decide};
use crate::random::Entropy;
use crate::spec::{Restart, Shutdown, Strategy};

/// Identifies a seat. Tokens grow, so their order is the order of start.
pub(crate) type Token = u64;

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

/// How a child is treated.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) restart: Restart,
    pub(crate) shutdown: Shutdown,
    pub(crate) backoff: Backoff,
    /// How long its task may take to leave once it has been killed.
    pub(crate) grace: Duration,
    /// Added while the supervisor ran: its failed start concerns only whoever added it.
    pub(crate) added_later: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// To be started when its turn comes.
    Down,
    /// To be started when its turn comes, and not before its due time.
    Waiting,
    Starting,
    Up,
    /// Asked to stop; killed when due.
    Asked,
    /// Killed; given up on when due.
    Killed,
    /// Ended, and its task is to leave; given up on when due.
    Leaving,
    /// Ended normally, and is not missed.
    Resting,
}

#[derive(Debug)]
struct Seat {
    terms: Terms,
    phase: Phase,
    due: Option<Instant>,
    /// Failures in a row.
    streak: u32,
    /// Whether any incarnation has started.
    proven: bool,
    /// Whether a task exists.
    tasked: bool,
    /// Whether the task was told to leave with its next exit.
    released: bool,
    /// Whether the seat goes when the task has left.
    leaving: bool,
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
    seats: BTreeMap<Token, Seat>,
    down: BTreeSet<Token>,
    live: BTreeSet<Token>,
    due: BTreeSet<(Instant, Token)>,
    /// Seats that were never started, in the order they will be.
    fresh: BTreeSet<Token>,
    /// The seat whose start the next one waits for.
    opening: Option<Token>,
    mode: Mode,
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
            seats: BTreeMap::new(),
            down: BTreeSet::new(),
            live: BTreeSet::new(),
            due: BTreeSet::new(),
            fresh: BTreeSet::new(),
            opening: None,
            mode: Mode::Opening,
            actions: Vec::new(),
        }
    }

    /// When [`tick`](Self::tick) is to be called next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|&(at, _)| at)
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.mode, Mode::Opening | Mode::Open)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.mode == Mode::Closed
    }

    /// Takes a child after those it has; started by the next [`settle`](Self::settle) whose turn it is.
    pub(crate) fn add(&mut self, token: Token, terms: Terms) {
        let seat = Seat {
            terms,
            phase: Phase::Down,
            due: None,
            streak: 0,
            proven: false,
            tasked: false,
            released: false,
            leaving: false,
        };
        self.seats.insert(token, seat);
        self.down.insert(token);
        self.fresh.insert(token);
    }

    /// A child's incarnation has started.
    pub(crate) fn started(&mut self, token: Token, now: Instant) {
        let Some(seat) = self.seats.get_mut(&token) else {
            return;
        };
        seat.proven = true;
        if seat.phase == Phase::Starting {
            seat.phase = Phase::Up;
            self.actions.push(Action::Up(token));
        }
        if self.opening == Some(token) {
            self.opening = None;
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
        let Some(seat) = self.seats.get_mut(&token) else {
            return;
        };
        let expected = matches!(seat.phase, Phase::Asked | Phase::Killed | Phase::Leaving);
        seat.tasked = !gone;
        seat.proven |= started;
        let first = !seat.proven;
        let leaves = seat.leaving || !matches!(self.mode, Mode::Opening | Mode::Open);
        let (restart, tasked) = (seat.terms.restart, seat.tasked);
        self.stand_down(token);
        if leaves {
            // an exit may cross the order to leave; the task then leaves as soon as it sees it
            if tasked {
                self.dismiss(token, now)
            } else {
                self.forget(token, false)
            }
        } else if expected {
            match restart {
                Restart::Temporary => self.forget(token, false),
                _ => self.put_down(token, first),
            }
        } else if first && !(exit.is_orderly() && restart != Restart::Permanent) {
            self.failed_first_start(token, exit, now);
        } else {
            if let Some(seat) = self.seats.get_mut(&token) {
                seat.proven = true;
            }
            self.decided(token, exit, uptime, now);
        }
        self.settle(now);
    }

    /// A child's task has left, after its exit had been reported.
    pub(crate) fn left(&mut self, token: Token, now: Instant) {
        let Some(seat) = self.seats.get_mut(&token) else {
            return;
        };
        seat.tasked = false;
        match seat.phase {
            Phase::Leaving | Phase::Asked | Phase::Killed => {
                self.stand_down(token);
                self.forget(token, false);
            }
            // its thread has ended, and with it the mailbox: there is nothing to restart
            Phase::Down | Phase::Waiting => self.give_up(token, Exit::Killed, now),
            Phase::Resting | Phase::Starting | Phase::Up => {}
        }
        self.settle(now);
    }

    /// Carries out what is due.
    pub(crate) fn tick(&mut self, now: Instant) {
        while let Some(&(at, token)) = self.due.first().filter(|&&(at, _)| at <= now) {
            self.due.remove(&(at, token));
            let Some(seat) = self.seats.get_mut(&token) else {
                continue;
            };
            seat.due = None;
            match seat.phase {
                Phase::Waiting => {
                    seat.phase = Phase::Down;
                    if !self.strategy.is_ordered() {
                        self.start(token);
                    }
                }
                Phase::Asked => self.kill(token, now),
                Phase::Killed | Phase::Leaving => self.abandon(token),
                Phase::Down | Phase::Starting | Phase::Up | Phase::Resting => {}
            }
        }
        self.settle(now);
    }

    /// Stops one child and forgets it; false if there is none.
    pub(crate) fn remove(&mut self, token: Token, now: Instant) -> bool {
        let Some(seat) = self.seats.get_mut(&token) else {
            return false;
        };
        seat.leaving = true;
        self.see_off(token, now);
        self.settle(now);
        true
    }

    /// Stops all children, last first; in haste, all at once and without asking.
    pub(crate) fn close(&mut self, hasty: bool, now: Instant) {
        match self.mode {
            Mode::Opening | Mode::Open => self.mode = Mode::Closing { hasty },
            Mode::Closing { hasty: before } => {
                self.mode = Mode::Closing {
                    hasty: hasty || before,
                }
            }
            Mode::Closed => return,
        }
        self.settle(now);
    }

    /// Does whatever can be done now.
    pub(crate) fn settle(&mut self, now: Instant) {
        match self.mode {
            Mode::Opening | Mode::Open => {
                if self.strategy.is_ordered() {
                    self.settle_group(now)
                } else {
                    self.start_fresh()
                }
                if self.mode == Mode::Opening && self.fresh.is_empty() && self.opening.is_none() {
                    self.mode = Mode::Open;
                    self.actions.push(Action::Ready);
                }
            }
            Mode::Closing { hasty } => {
                if hasty {
                    for token in self.seats.keys().copied().collect::<Vec<_>>() {
                        if self
                            .seats
                            .get(&token)
                            .is_some_and(|seat| seat.phase == Phase::Asked)
                        {
                            self.kill(token, now);
                        }
                        self.see_off(token, now);
                    }
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
        let Some(&first) = self.down.first() else {
            return;
        };
        let resting = |seat: &Seat| seat.phase == Phase::Resting;
        let rested: Vec<_> = self
            .seats
            .range(first..)
            .filter(|(_, seat)| resting(seat))
            .map(|(&token, _)| token)
            .collect();
        for token in rested {
            self.put_down(token, false);
        }
        if let Some(&last) = self.live.range(first..).next_back() {
            self.ask(last, now);
        } else if self.opening.is_none()
            && self
                .seats
                .get(&first)
                .is_some_and(|seat| seat.phase == Phase::Down)
        {
            self.start(first);
        }
    }

    /// Under an unordered strategy: first starts are still one at a time; restarts do not wait for each other.
    fn start_fresh(&mut self) {
        if let (None, Some(&next)) = (self.opening, self.fresh.first()) {
            self.start(next);
        }
    }

    fn see_off_last(&mut self, now: Instant) {
        while let Some((&token, _)) = self.seats.last_key_value() {
            self.see_off(token, now);
            if self.seats.contains_key(&token) {
                break;
            }
        }
    }

    /// Makes a child leave for good.
    fn see_off(&mut self, token: Token, now: Instant) {
        let hasty = self.mode == Mode::Closing { hasty: true };
        let Some(seat) = self.seats.get_mut(&token) else {
            return;
        };
        match seat.phase {
            Phase::Down | Phase::Waiting | Phase::Resting => {
                if seat.tasked {
                    self.dismiss(token, now)
                } else {
                    self.forget(token, false)
                }
            }
            Phase::Starting | Phase::Up => {
                self.release(token);
                if hasty {
                    self.kill(token, now)
                } else {
                    self.ask(token, now)
                }
            }
            Phase::Asked | Phase::Killed | Phase::Leaving => self.release(token),
        }
    }

    fn start(&mut self, token: Token) {
        let ordered = self.strategy.is_ordered();
        let Some(seat) = self.seats.get_mut(&token) else {
            return;
        };
        seat.phase = Phase::Starting;
        seat.tasked = true;
        if ordered || !seat.proven {
            self.opening = Some(token);
        }
        let temporary = seat.terms.restart == Restart::Temporary;
        self.down.remove(&token);
        self.fresh.remove(&token);
        self.live.insert(token);
        if temporary {
            self.release(token);
        }
        self.actions.push(Action::Start(token));
    }

    /// Asks a running child to stop, once.
    fn ask(&mut self, token: Token, now: Instant) {
        let Some(seat) = self.seats.get_mut(&token) else {
            return;
        };
        if !matches!(seat.phase, Phase::Starting | Phase::Up) {
            return;
        }
        let patience = match seat.terms.shutdown {
            Shutdown::Brutal => return self.kill(token, now),
            Shutdown::Timeout(patience) => Some(patience),
            Shutdown::Infinity => None,
        };
        self.stand_down(token);
        self.take_up(token, Phase::Asked, patience.map(|patience| now + patience));
        self.actions.push(Action::Stop(token));
    }

    fn kill(&mut self, token: Token, now: Instant) {
        let Some(grace) = self.seats.get(&token).map(|seat| seat.terms.grace) else {
            return;
        };
        self.stand_down(token);
        self.take_up(token, Phase::Killed, Some(now + grace));
        self.actions.push(Action::Kill(token));
    }

    /// Lets the task of a child go that has exited already.
    fn dismiss(&mut self, token: Token, now: Instant) {
        let Some(grace) = self.seats.get(&token).map(|seat| seat.terms.grace) else {
            return;
        };
        self.stand_down(token);
        self.release(token);
        self.take_up(token, Phase::Leaving, Some(now + grace));
    }

    fn release(&mut self, token: Token) {
        if let Some(seat) = self.seats.get_mut(&token)
            && !seat.released
        {
            seat.released = true;
            self.actions.push(Action::Release(token));
        }
    }

    /// Takes the seat out of every set but `seats`.
    fn stand_down(&mut self, token: Token) {
        self.live.remove(&token);
        self.down.remove(&token);
        self.fresh.remove(&token);
        if self.opening == Some(token) {
            self.opening = None;
        }
        if let Some(at) = self.seats.get_mut(&token).and_then(|seat| seat.due.take()) {
            self.due.remove(&(at, token));
        }
    }

    fn take_up(&mut self, token: Token, phase: Phase, due: Option<Instant>) {
        let Some(seat) = self.seats.get_mut(&token) else {
            return;
        };
        seat.phase = phase;
        seat.due = due;
        self.due.extend(due.map(|at| (at, token)));
        match phase {
            Phase::Down | Phase::Waiting => self.down.insert(token),
            Phase::Starting | Phase::Up | Phase::Asked | Phase::Killed | Phase::Leaving => {
                self.live.insert(token)
            }
            Phase::Resting => false,
        };
    }

    fn put_down(&mut self, token: Token, fresh: bool) {
        self.take_up(token, Phase::Down, None);
        if fresh {
            self.fresh.insert(token);
        }
    }

    fn forget(&mut self, token: Token, running: bool) {
        self.stand_down(token);
        if self.seats.remove(&token).is_some() {
            self.actions.push(Action::Forget { token, running });
        }
    }

    fn failed_first_start(&mut self, token: Token, exit: Exit, now: Instant) {
        let later = self
            .seats
            .get(&token)
            .is_some_and(|seat| seat.terms.added_later);
        if later {
            self.actions.push(Action::NotStarted { token, exit });
        } else {
            self.escalate(token, exit);
        }
        self.end_seat(token, now);
    }

    /// The child has ended and has no way back.
    fn end_seat(&mut self, token: Token, now: Instant) {
        let Some(seat) = self.seats.get_mut(&token) else {
            return;
        };
        seat.leaving = true;
        if seat.tasked {
            self.dismiss(token, now)
        } else {
            self.forget(token, false)
        }
    }

    fn decided(&mut self, token: Token, exit: Exit, uptime: Duration, now: Instant) {
        let Some(seat) = self.seats.get(&token) else {
            return;
        };
        let (tasked, later) = (seat.tasked, seat.terms.added_later);
        match decide(seat.terms.restart, &exit, self.window.is_some()) {
            Decision::Forget => self.end_seat(token, now),
            Decision::Rest if self.strategy.is_ordered() => self.rest(token),
            // nothing could restart it, so nothing of it is kept; of one that belongs here the place is shown
            Decision::Rest if later => self.end_seat(token, now),
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
                    self.give_up(token, exit, now)
                } else {
                    self.delay(token, uptime, now)
                }
            }
        }
    }

    fn rest(&mut self, token: Token) {
        self.take_up(token, Phase::Resting, None);
        self.actions.push(Action::Rest(token));
    }

    fn delay(&mut self, token: Token, uptime: Duration, now: Instant) {
        let Some(seat) = self.seats.get_mut(&token) else {
            return;
        };
        seat.streak = seat.terms.backoff.next_streak(seat.streak, uptime);
        let delay = seat.terms.backoff.delay(seat.streak, &self.entropy);
        if !delay.is_zero() {
            let until = now + delay;
            self.take_up(token, Phase::Waiting, Some(until));
            self.actions.push(Action::Wait { token, until });
        } else if self.strategy.is_ordered() {
            self.put_down(token, false);
        } else {
            self.start(token);
        }
    }

    /// The child cannot be restarted: the supervisor gives up, or the child is lost if it may not.
    fn give_up(&mut self, token: Token, exit: Exit, now: Instant) {
        if self.window.is_some() {
            self.escalate(token, exit);
        }
        self.end_seat(token, now);
    }

    fn escalate(&mut self, token: Token, exit: Exit) {
        if self.is_open() {
            self.mode = Mode::Closing { hasty: false };
            self.actions.push(Action::Escalate { token, exit });
        }
    }

    /// A child's task does not end, not even when killed.
    fn abandon(&mut self, token: Token) {
        let Some(leaving) = self.seats.get(&token).map(|seat| seat.leaving) else {
            return;
        };
        if self.is_open() && !leaving {
            if self.window.is_none() {
                // nobody above may hear of it: the group waits until the thread comes free
                self.take_up(token, Phase::Killed, None);
                return;
            }
            self.escalate(token, Exit::Stuck);
        }
        self.release(token);
        self.forget(token, true);
    }
}
