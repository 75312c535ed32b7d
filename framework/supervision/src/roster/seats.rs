//! The seats of a roster, and the sets that find them fast.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::backoff::Backoff;
use crate::spec::{Restart, Shutdown};

/// Identifies a seat. Tokens grow, so their order is the order of start.
pub(crate) type Token = u64;

/// How a child is treated.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) restart: Restart,
    pub(crate) shutdown: Shutdown,
    pub(crate) backoff: Backoff,
    /// Whether it is a supervisor, whose grace has room for that of its children.
    pub(crate) supervisor: bool,
    /// Added while the supervisor ran: its failed start concerns only whoever added it.
    pub(crate) added_later: bool,
    /// Whether its supervisor may end itself when this child ended on its own.
    pub(crate) significant: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
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
    /// Ended normally and is not missed, or was terminated.
    Resting,
}

#[derive(Debug)]
pub(super) struct Seat {
    pub(super) terms: Terms,
    /// Written by [`Seats::place`] only, which keeps the sets true.
    phase: Phase,
    /// Failures in a row.
    pub(super) streak: u32,
    /// Whether any incarnation has started.
    pub(super) proven: bool,
    /// Whether a task exists.
    pub(super) tasked: bool,
    /// Whether the task was told to leave with its next exit.
    pub(super) released: bool,
    /// Whether the seat goes when the task has left.
    pub(super) leaving: bool,
    /// Whether it was terminated, and waits for nobody but who starts it again by hand.
    pub(super) held: bool,
    /// Whether the incarnation that begins was asked for by hand, and its failure concerns only whoever asked.
    pub(super) reviving: bool,
    /// Whether it lives and is to stop because of another. Written by [`Seats::recall`] and [`Seats::place`] only.
    pub(super) recalled: bool,
}

impl Seat {
    pub(super) fn new(terms: Terms) -> Seat {
        Seat {
            terms,
            phase: Phase::Down,
            streak: 0,
            proven: false,
            tasked: false,
            released: false,
            leaving: false,
            held: false,
            reviving: false,
            recalled: false,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }
}

impl Phase {
    /// Whether the incarnation has not ended, or the task has yet to leave.
    fn is_live(self) -> bool {
        match self {
            Phase::Down | Phase::Waiting | Phase::Resting => false,
            Phase::Starting | Phase::Up | Phase::Asked | Phase::Killed | Phase::Leaving => true,
        }
    }
}

/// Seats by token. Every lookup is logarithmic: ten thousand children may fail at once.
#[derive(Debug, Default)]
pub(super) struct Seats {
    all: BTreeMap<Token, Seat>,
    /// Those in `Down` and `Waiting`.
    down: BTreeSet<Token>,
    /// Those in `Down` that were never started.
    fresh: BTreeSet<Token>,
    /// Those that live and are to stop because of another.
    recalled: BTreeSet<Token>,
    /// Those in `Waiting`.
    waiting: BTreeSet<Token>,
    dues: Dues,
}

/// What is due when, kept apart from the seats: most children wait for nothing.
#[derive(Debug, Default)]
struct Dues {
    of: BTreeMap<Token, Instant>,
    first: BTreeSet<(Instant, Token)>,
}

impl Dues {
    fn set(&mut self, token: Token, due: Option<Instant>) {
        let before = match due {
            Some(at) => self.of.insert(token, at),
            None => self.of.remove(&token),
        };
        if let Some(before) = before {
            self.first.remove(&(before, token));
        }
        self.first.extend(due.map(|at| (at, token)));
    }
}

impl Seats {
    pub(super) fn insert(&mut self, token: Token, seat: Seat) {
        self.all.insert(token, seat);
        self.place(token, Phase::Down, None);
    }

    pub(super) fn get(&self, token: Token) -> Option<&Seat> {
        self.all.get(&token)
    }

    pub(super) fn get_mut(&mut self, token: Token) -> Option<&mut Seat> {
        self.all.get_mut(&token)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn tokens(&self) -> Vec<Token> {
        self.all.keys().copied().collect()
    }

    pub(super) fn last(&self) -> Option<Token> {
        self.all.last_key_value().map(|(&token, _)| token)
    }

    pub(super) fn place(&mut self, token: Token, phase: Phase, due: Option<Instant>) {
        self.lift(token);
        let Some(seat) = self.all.get_mut(&token) else {
            return;
        };
        seat.phase = phase;
        self.dues.set(token, due);
        match phase {
            Phase::Down if !seat.proven => {
                self.fresh.insert(token);
                self.down.insert(token);
            }
            Phase::Down => {
                self.down.insert(token);
            }
            Phase::Waiting => {
                self.down.insert(token);
                self.waiting.insert(token);
            }
            Phase::Starting
            | Phase::Up
            | Phase::Asked
            | Phase::Killed
            | Phase::Leaving
            | Phase::Resting => {}
        }
        seat.recalled &= phase.is_live();
        if seat.recalled {
            self.recalled.insert(token);
        }
    }

    pub(super) fn remove(&mut self, token: Token) -> bool {
        self.lift(token);
        self.dues.set(token, None);
        self.all.remove(&token).is_some()
    }

    fn lift(&mut self, token: Token) {
        self.down.remove(&token);
        self.fresh.remove(&token);
        self.recalled.remove(&token);
        self.waiting.remove(&token);
    }

    pub(super) fn first_down(&self) -> Option<Token> {
        self.down.first().copied()
    }

    pub(super) fn first_fresh(&self) -> Option<Token> {
        self.fresh.first().copied()
    }

    /// Whether all have started at least once, but for those that are not wanted.
    pub(super) fn none_is_unproven(&self) -> bool {
        self.all
            .values()
            .all(|seat| seat.proven || seat.leaving || seat.held || seat.phase == Phase::Resting)
    }

    pub(super) fn last_recalled(&self) -> Option<Token> {
        self.recalled.last().copied()
    }

    pub(super) fn any_waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Marks those from `first` on that live as to be stopped because of `failed`, and returns those that have ended and are to come back with it.
    pub(super) fn recall(&mut self, first: Token, failed: Token) -> Vec<Token> {
        let mut resting = Vec::new();
        for (&token, seat) in self.all.range_mut(first..) {
            if token == failed {
                continue;
            }
            if seat.phase == Phase::Resting && !seat.held {
                resting.push(token);
            } else if seat.phase.is_live() {
                // also of one that is on its way out the end is waited for
                seat.recalled = true;
                self.recalled.insert(token);
            }
        }
        resting
    }

    /// Whether a significant child runs, or will again.
    pub(super) fn any_significant_is_left(&self) -> bool {
        self.all.values().any(|seat| {
            let stays = !seat.held && !seat.leaving && seat.phase != Phase::Resting;
            seat.terms.significant && stays
        })
    }

    pub(super) fn due(&self, token: Token) -> Option<Instant> {
        self.dues.of.get(&token).copied()
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.dues.first.first().map(|&(at, _)| at)
    }

    /// Takes a seat whose time has come, and its due time with it.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Token, Phase)> {
        let &(at, token) = self.dues.first.first()?;
        if at > now {
            return None;
        }
        self.dues.set(token, None);
        Some((token, self.all.get(&token)?.phase))
    }
}
