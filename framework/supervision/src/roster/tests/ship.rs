//! A model of the children of one supervisor. It obeys the roster's actions as real tasks do, in any order the test chooses, and
//! asserts on each that it is allowed.

mod obey;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use proptest::sample::Index;

pub(super) use crate::roster::{Action, NotIdle, Roster, Terms, Token};

use crate::backoff::Backoff;
use crate::child::Ending;
use crate::exit::Exit;
use crate::intensity::Intensity;
use crate::random::Entropy;
use crate::spec::{AutoShutdown, Policy, Restart, Shutdown, Strategy};
use crate::supervisor::SUPERVISOR_GRACE;
use crate::testing::run;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Unborn,
    Starting,
    Up,
    Parked,
    Gone,
}

#[derive(Debug)]
pub(super) struct Hand {
    pub(super) state: State,
    pub(super) kind: Restart,
    /// Does not heed a stop.
    pub(super) deaf: bool,
    /// Does not heed anything.
    pub(super) blocked: bool,
    /// The roster let it go for good.
    pub(super) dismissed: bool,
    /// The roster forgot it, perhaps while it ran.
    forgotten: bool,
    /// It was terminated, and not started again by hand.
    pub(super) held: bool,
    significant: bool,
    /// Its last start was asked for by hand, which concerns nobody else.
    by_hand: bool,
    /// When its incarnation began, and when the supervisor last heard of an end, in events.
    began: u64,
    ended: Option<u64>,
    stop: bool,
    kill: bool,
    released: bool,
}

enum News {
    Started,
    Exited(Ending),
    Left,
}

pub(super) struct Ship {
    pub(super) roster: Roster,
    policy: Policy,
    pub(super) now: Instant,
    pub(super) hands: BTreeMap<Token, Hand>,
    pub(super) log: Vec<Action>,
    pub(super) finished: bool,
    beats: u64,
    opened: bool,
    closing: bool,
    /// Sent by children, not yet heard by the supervisor.
    news: VecDeque<(Token, News)>,
}

pub(super) fn terms(restart: Restart, backoff: Backoff) -> Terms {
    Terms {
        restart,
        shutdown: Shutdown::default(),
        backoff,
        supervisor: false,
        added_later: false,
        significant: false,
    }
}

pub(super) fn panic_exit() -> Exit {
    Exit::Panic {
        message: "overboard".to_owned(),
        location: None,
    }
}

impl Hand {
    fn lives(&self) -> bool {
        matches!(self.state, State::Starting | State::Up)
    }
}

impl Ship {
    pub(super) fn new(strategy: Strategy, intensity: Option<Intensity>) -> Ship {
        Ship::with(Policy {
            strategy,
            intensity,
            auto_shutdown: AutoShutdown::Never,
        })
    }

    pub(super) fn with(policy: Policy) -> Ship {
        Ship {
            roster: Roster::new(policy, SUPERVISOR_GRACE, Entropy::seeded(1)),
            policy,
            now: run(0, async |options| options.clock.now()),
            hands: BTreeMap::new(),
            log: Vec::new(),
            finished: false,
            beats: 0,
            opened: false,
            closing: false,
            news: VecDeque::new(),
        }
    }

    pub(super) fn hire(&mut self, terms: Terms) -> Token {
        let token = self.hands.len() as Token;
        let hand = Hand {
            state: State::Unborn,
            kind: terms.restart,
            deaf: false,
            blocked: false,
            dismissed: false,
            forgotten: false,
            held: false,
            significant: terms.significant,
            by_hand: false,
            began: 0,
            ended: None,
            stop: false,
            kill: false,
            released: false,
        };
        self.hands.insert(token, hand);
        self.roster.add(token, terms);
        token
    }

    pub(super) fn hand(&mut self, token: Token) -> &mut Hand {
        self.hands.get_mut(&token).unwrap()
    }

    pub(super) fn is_open(&self) -> bool {
        self.roster.is_open()
    }

    pub(super) fn open(&mut self) {
        self.settle();
    }

    pub(super) fn settle(&mut self) {
        self.roster.settle(self.now);
        self.obey();
    }

    pub(super) fn close(&mut self, hasty: bool) {
        self.closing = true;
        self.roster.close(hasty, self.now);
        self.obey();
    }

    /// A child ends by itself, and the supervisor hears of it.
    pub(super) fn exit(&mut self, token: Token, exit: Exit) {
        self.end(token, exit);
        while self.hear() {}
    }

    /// The thread of a child that has ended goes away.
    pub(super) fn leave(&mut self, token: Token) {
        self.hand(token).state = State::Gone;
        self.news.push_back((token, News::Left));
        while self.hear() {}
    }

    pub(super) fn logged(&self, which: impl Fn(&Action) -> bool) -> Vec<Token> {
        let token = |action: &Action| match action {
            Action::Start(token) | Action::Stop(token) | Action::Kill(token) => *token,
            other => panic!("{other:?} is of no interest"),
        };
        self.log
            .iter()
            .filter(|action| which(action))
            .map(token)
            .collect()
    }

    pub(super) fn unblock(&mut self) {
        for hand in self.hands.values_mut() {
            (hand.blocked, hand.deaf) = (false, false);
        }
    }

    /// Lets everybody do what they have to, and time pass, until nothing more happens.
    pub(super) fn calm(&mut self) {
        self.calm_but_blocked();
        assert!(self.hands.values().all(|hand| !hand.blocked));
    }

    pub(super) fn calm_but_blocked(&mut self) {
        for _ in 0..100_000 {
            let tokens: Vec<Token> = self.hands.keys().copied().collect();
            let moved = tokens.into_iter().filter(|&token| self.act(token)).count() > 0;
            if self.hear() || moved {
                continue;
            }
            let Some(due) = self.roster.next_due() else {
                return;
            };
            self.now = self.now.max(due);
            self.tick();
        }
        panic!("no calm: {:?}", self.hands);
    }

    pub(super) fn terminate(&mut self, token: Token) {
        let dynamic = self.policy.strategy == Strategy::SimpleOneForOne;
        let hand = self.hand(token);
        if dynamic || hand.kind == Restart::Temporary {
            hand.dismissed = true;
        } else {
            hand.held = true;
        }
        self.roster.terminate(token, self.now);
        self.obey();
    }

    pub(super) fn revive(&mut self, token: Token) -> Result<(), NotIdle> {
        let before = std::mem::replace(&mut self.hand(token).held, false);
        let by_hand = std::mem::replace(&mut self.hand(token).by_hand, true);
        let revived = self.roster.revive(token, self.now);
        if revived.is_err() {
            self.hand(token).by_hand = by_hand;
        }
        self.hand(token).held = before && revived.is_err();
        self.obey();
        revived
    }

    /// One thing of sixteen happens, to somebody.
    pub(super) fn happen(&mut self, event: u8, whom: Index) {
        if event == 0 {
            return self.pass(Duration::from_millis(1 + whom.index(5000) as u64));
        }
        if event == 1 {
            self.hear();
            return;
        }
        if self.hands.is_empty() {
            return;
        }
        let token = whom.index(self.hands.len()) as Token;
        match event {
            2 | 3 => {
                self.act(token);
            }
            4 => self.end(token, panic_exit()),
            5 => self.end(token, Exit::Normal),
            6 => self.hand(token).deaf = true,
            7 => self.hand(token).blocked ^= true,
            8 if self.hands.len() < 10 => {
                let kind =
                    [Restart::Permanent, Restart::Transient, Restart::Temporary][whom.index(3)];
                if self.is_open() {
                    self.hire(Terms {
                        added_later: true,
                        significant: kind != Restart::Permanent && whom.index(2) == 0,
                        ..terms(kind, Backoff::default())
                    });
                    self.settle();
                }
            }
            9 if self.is_open() => {
                self.hand(token).dismissed = true;
                self.roster.remove(token, self.now);
                self.obey();
            }
            10 if whom.index(10) == 0 => self.close(whom.index(2) == 0),
            11 if self.hand(token).state == State::Parked && whom.index(5) == 0 => {
                // its thread ends
                self.hand(token).state = State::Gone;
                self.news.push_back((token, News::Left));
            }
            12 if self.is_open() => self.terminate(token),
            13 | 14 if self.is_open() => {
                let _ = self.revive(token);
            }
            15 if self.is_open() && self.roster.is_idle(token).is_ok() => {
                self.hand(token).dismissed = true;
                self.roster.remove(token, self.now);
                self.obey();
            }
            _ => {}
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.roster.next_due().filter(|&due| due <= end) {
            self.now = self.now.max(due);
            self.tick();
        }
        self.now = end;
    }

    fn tick(&mut self) {
        self.roster.tick(self.now);
        self.obey();
    }

    /// The supervisor hears the oldest news, if there is any.
    fn hear(&mut self) -> bool {
        let Some((token, news)) = self.news.pop_front() else {
            return false;
        };
        match news {
            News::Started => self.roster.started(token, self.now),
            News::Exited(ending) => {
                self.beats += 1;
                let beats = self.beats;
                let hand = self.hand(token);
                (hand.ended, hand.by_hand) = (Some(beats), false);
                self.roster.exited(token, ending, self.now)
            }
            News::Left => self.roster.left(token, self.now),
        }
        self.obey();
        true
    }

    /// A child does the next thing it has to; whether there was any.
    fn act(&mut self, token: Token) -> bool {
        let hand = self.hand(token);
        if hand.blocked {
            return false;
        }
        match hand.state {
            State::Starting | State::Up if hand.kill => self.end(token, Exit::Killed),
            State::Starting | State::Up if hand.stop && !hand.deaf => {
                self.end(token, Exit::Shutdown)
            }
            State::Starting => {
                hand.state = State::Up;
                self.news.push_back((token, News::Started));
            }
            State::Parked if hand.released => {
                hand.state = State::Gone;
                self.news.push_back((token, News::Left));
            }
            State::Unborn | State::Up | State::Parked | State::Gone => return false,
        }
        true
    }

    fn end(&mut self, token: Token, exit: Exit) {
        let hand = self.hand(token);
        if !hand.lives() || hand.blocked {
            return;
        }
        let started = hand.state == State::Up;
        let gone = hand.released;
        hand.state = if gone { State::Gone } else { State::Parked };
        self.news.push_back((
            token,
            News::Exited(Ending {
                exit,
                uptime: Duration::ZERO,
                started,
                gone,
            }),
        ));
    }
}
